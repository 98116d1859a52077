"""Batches in any split and any order of merging give the same bytes."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.domains.places.training_meter import (
    PlaceMeter,
    calculate_correct_total_prediction,
    get_performance_dict,
)
from equipoise.errors import InputError, ParameterError, ShapeError, UnknownNameError

ROWS, CLASSES = 40, 12
RNG = np.random.default_rng(5)
LOGITS = RNG.integers(0, 6, size=(ROWS, CLASSES)).astype(np.float32) + np.eye(CLASSES)[RNG.integers(0, 12, ROWS)]
TARGETS = RNG.integers(1, CLASSES, ROWS)
USERS = np.array([f"u{user}" for user in RNG.integers(0, 5, ROWS)])


def meter_of(rows, *, users=True, **options) -> PlaceMeter:
    meter = PlaceMeter(padding=0, unseen=1, **options)
    meter.update(LOGITS[rows], TARGETS[rows], users=USERS[rows] if users else None)
    return meter


def bytes_of(meter: PlaceMeter) -> bytes:
    return pickle.dumps(meter.compute().to_dict())


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(st.permutations(range(ROWS)), st.lists(st.integers(0, ROWS), max_size=6), st.randoms())
def test_any_split_and_any_order_of_merging_give_the_same_bytes(order, cuts, random):
    parts = np.split(np.array(order), sorted(cuts))
    meters = [meter_of(part) for part in parts]
    while len(meters) > 1:
        meter = meters.pop(random.randrange(len(meters)))
        random.choice(meters).merge_state(meter)
    assert bytes_of(meters[0]) == bytes_of(meter_of(np.arange(ROWS)))


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(1, ROWS), max_size=6))
def test_consecutive_updates_equal_one_large_update(cuts):
    meter = PlaceMeter(padding=0, unseen=1)
    for part in np.split(np.arange(ROWS), sorted(cuts)):
        meter.update(LOGITS[part], TARGETS[part], users=USERS[part])
    assert bytes_of(meter) == bytes_of(meter_of(np.arange(ROWS)))
    assert len(meter) == ROWS


PROCESS = """
import pickle, sys
import numpy as np
from equipoise.domains.places.training_meter import PlaceMeter
data = np.load(sys.argv[1])
meter = PlaceMeter(padding=0, unseen=1)
meter.update(data["logits"], data["targets"], users=data["users"])
sys.stdout.buffer.write(pickle.dumps(meter))
"""


@pytest.mark.slow
def test_meters_of_other_processes_are_merged(tmp_path):
    meters = []
    for number, rows in enumerate(np.array_split(np.arange(ROWS), 2)):
        path = tmp_path / f"{number}.npz"
        np.savez(path, logits=LOGITS[rows], targets=TARGETS[rows], users=USERS[rows])
        process = subprocess.run([sys.executable, "-c", PROCESS, path], check=True, capture_output=True)
        meters.append(pickle.loads(process.stdout))
    meters[1].merge_state(meters[0])
    assert bytes_of(meters[1]) == bytes_of(meter_of(np.arange(ROWS)))


def test_values_equal_those_of_the_functions_in_fractions_and_percent():
    logits = np.random.default_rng(0).normal(size=(60, 15))
    targets = np.arange(60) % 15
    meter = PlaceMeter()
    for rows in np.array_split(np.arange(60), 7):
        meter.update(logits[rows], targets[rows])
    summary = meter.compute()
    expected = get_performance_dict(*calculate_correct_total_prediction(logits, targets))
    for name in ("acc@1", "acc@3", "acc@5", "acc@10", "mrr", "ndcg", "f1"):
        assert summary.percent[name] == pytest.approx(expected[name])
        assert summary[name] == pytest.approx(expected[name] / 100)
    assert summary["f1_micro"] == pytest.approx(summary["acc@1"])
    assert f"acc@1 {expected['acc@1']:.2f} %" in repr(summary)
    with pytest.raises(UnknownNameError) as error_info:
        summary["acc@2"]
    assert "acc@1" in error_info.value.hint


def test_users_have_equal_weight_and_answerable_rows_are_scored_separately():
    summary = meter_of(np.arange(ROWS)).compute()
    hits = np.array(
        [calculate_correct_total_prediction(_masked(row), [target])[0][0] for row, target in _logits_with_targets()]
    )
    means = [hits[user == USERS].mean() for user in np.unique(USERS)]
    assert summary.by_user["acc@1"] == pytest.approx(np.mean(means))
    assert summary.users == len(means)
    assert summary.answerable["acc@1"] == pytest.approx(hits[TARGETS != 1].mean())
    assert summary.answerable_n == np.count_nonzero(TARGETS != 1)
    assert summary["acc@1"] == pytest.approx(hits.mean())
    assert summary.tied > 0
    assert summary.tied_top > 0
    assert summary.classes == CLASSES - 1


def _logits_with_targets():
    return zip(LOGITS, TARGETS, strict=True)


def _masked(row):
    return np.where(np.arange(CLASSES) == 0, -np.inf, row)[None, :]


def test_rows_of_an_ignored_target_are_counted_and_left_out():
    targets = TARGETS.copy()
    targets[::4] = 0
    meter = PlaceMeter(padding=0, ignore_index=0)
    meter.update(LOGITS, targets)
    filtered = PlaceMeter(padding=0)
    filtered.update(LOGITS[targets != 0], targets[targets != 0])
    assert meter.compute().fractions == filtered.compute().fractions
    assert meter.compute().ignored == 10
    all_ignored = PlaceMeter(padding=0, ignore_index=0)
    all_ignored.update(LOGITS, np.zeros(ROWS, dtype=int))
    with pytest.raises(InputError, match="40"):
        all_ignored.compute()


@pytest.mark.engines("torch")
def test_ignored_rows_of_a_tensor_are_left_out():
    torch = pytest.importorskip("torch")
    targets = np.where(np.arange(ROWS) % 3, TARGETS, 0)
    from_tensor, from_array = PlaceMeter(padding=0, ignore_index=0), PlaceMeter(padding=0, ignore_index=0)
    from_tensor.update(torch.tensor(LOGITS).bfloat16(), torch.tensor(targets))
    from_array.update(torch.tensor(LOGITS).bfloat16().float().numpy(), targets)
    assert bytes_of(from_tensor) == bytes_of(from_array)


def test_a_batch_without_rows_adds_nothing_and_no_batch_is_an_error():
    meter = PlaceMeter()
    meter.update(np.zeros((0, CLASSES)), [])
    with pytest.raises(InputError):
        meter.compute()
    meter.update(LOGITS, TARGETS)
    meter.reset()
    assert len(meter) == 0


def test_incompatible_meters_and_batches_are_errors():
    meter = meter_of(np.arange(ROWS))
    with pytest.raises(ParameterError):
        meter.merge_state(PlaceMeter())
    with pytest.raises(ShapeError, match=r"12 classes.*13"):
        meter.update(np.zeros((2, 13)), [1, 2], users=["a", "b"])
    with pytest.raises(InputError):
        meter.merge_state(meter_of(np.arange(3), users=False))
    with pytest.raises(ShapeError, match=r"2 users.*40 targets"):
        meter.update(LOGITS, TARGETS, users=["a", "b"])
    with pytest.raises(ParameterError):
        PlaceMeter(ks=())


@pytest.mark.parametrize("classes", [1, 2, 4, 9, 10])
def test_default_cutoffs_stop_at_the_number_of_classes_with_a_note(classes):
    rng = np.random.default_rng(classes)
    logits, targets = rng.normal(size=(20, classes)), rng.integers(0, classes, 20)
    meter = PlaceMeter()
    meter.update(logits, targets, users=np.arange(20) % 3)
    summary = meter.compute()
    ks = [k for k in (1, 3, 5, 10) if k <= classes]
    assert [name for name in summary if name.startswith("acc@")] == [f"acc@{k}" for k in ks]
    for k in ks:
        hits = (np.argsort(-logits, axis=1)[:, :k] == targets[:, None]).any(axis=1)
        assert summary[f"acc@{k}"] == pytest.approx(hits.mean())
    assert summary.settings["ks"] == ks
    assert bool(summary.notes) == (classes < 10)
    assert all(f"Acc@{k}" in summary.notes[0] for k in (1, 3, 5, 10) if k > classes)


def test_a_given_cutoff_above_the_number_of_classes_is_an_error():
    with pytest.raises(ParameterError):
        PlaceMeter(ks=(1, 3, 5, 10)).update(np.zeros((2, 4)), [0, 1])
