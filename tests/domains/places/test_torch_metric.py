"""``PlaceMetric`` against ``PlaceMeter``, scikit-learn and torchmetrics, alone and in two processes."""

from __future__ import annotations

import pickle
import subprocess
import sys
from threading import Barrier, Thread

import numpy as np
import pytest

from equipoise.domains.places.training_meter import PlaceMeter
from equipoise.errors import EquipoiseError, MissingExtraError, ParameterError

torch = pytest.importorskip("torch")
torchmetrics = pytest.importorskip("torchmetrics")
pytestmark = pytest.mark.engines("torchmetrics")

CLASSES = 25


def batches(n=6, rows=32, seed=0, decimals=1):
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(n, rows, CLASSES, generator=generator, dtype=torch.float64).round(decimals=decimals)
    return logits, torch.randint(1, CLASSES, (n, rows), generator=generator)


def meter_fractions(logits, targets, **options):
    meter = PlaceMeter(compiled=False, **options)
    meter.update(logits.reshape(-1, CLASSES).numpy(), targets.reshape(-1).numpy())
    return meter.compute().fractions


def new_metric(**options):
    from equipoise.places import PlaceMetric

    return PlaceMetric(CLASSES, **options)


def as_floats(computed):
    return {name: float(value) for name, value in computed.items()}


@pytest.mark.parametrize(
    "options", [{}, {"padding": [0]}, {"ks": (1, 7)}, {"ignore_index": 3}, {"padding": [0], "ignore_index": 3}]
)
@pytest.mark.parametrize("decimals", [1, 12])
def test_values_equal_the_meter_with_and_without_ties(options, decimals):
    logits, targets = batches(decimals=decimals)
    logits[0, 0] = float("-inf")
    place_metric = new_metric(**options)
    for batch, batch_targets in zip(logits, targets, strict=True):
        place_metric.update(batch, batch_targets)
    assert as_floats(place_metric.compute()) == pytest.approx(meter_fractions(logits, targets, **options), abs=1e-12)


def test_accuracy_and_f1_equal_torchmetrics_and_scikit_learn():
    from sklearn.metrics import f1_score

    logits, targets = (tensor.flatten(0, 1) for tensor in batches(decimals=12))
    values = as_floats(new_metric()(logits, targets))
    for k in (1, 5):
        accuracy = torchmetrics.functional.accuracy(
            logits, targets, task="multiclass", num_classes=CLASSES, top_k=k, average="micro"
        )
        assert values[f"acc@{k}"] == pytest.approx(float(accuracy), abs=1e-6)  # torchmetrics computes in float32
    for name, average in (("f1", "weighted"), ("f1_macro", "macro"), ("f1_micro", "micro")):
        assert values[name] == pytest.approx(f1_score(targets, logits.argmax(1), average=average), abs=1e-12)


def test_forward_gives_the_batch_value_and_compute_that_of_all_batches():
    logits, targets = batches()
    place_metric = new_metric()
    for batch, batch_targets in zip(logits, targets, strict=True):
        assert as_floats(place_metric(batch, batch_targets)) == pytest.approx(
            meter_fractions(batch, batch_targets), abs=1e-12
        )
    assert as_floats(place_metric.compute()) == pytest.approx(meter_fractions(logits, targets), abs=1e-12)
    place_metric.reset()
    place_metric.update(logits[0], targets[0])
    assert as_floats(place_metric.compute()) == pytest.approx(meter_fractions(logits[0], targets[0]), abs=1e-12)


def test_merged_states_and_pickled_metrics_equal_the_metric_of_all_rows():
    logits, targets = batches()
    place_metric, other_metric = new_metric(), new_metric()
    place_metric.update(logits[:4].flatten(0, 1), targets[:4].flatten())
    other_metric.update(logits[4:].flatten(0, 1), targets[4:].flatten())
    place_metric.merge_state(pickle.loads(pickle.dumps(other_metric)))
    assert as_floats(place_metric.compute()) == pytest.approx(meter_fractions(logits, targets), abs=1e-12)


def test_a_state_merged_after_compute_is_included():
    logits, targets = batches()
    place_metric, other_metric = new_metric(), new_metric()
    place_metric.update(logits[0], targets[0])
    assert as_floats(place_metric.compute()) == pytest.approx(meter_fractions(logits[0], targets[0]), abs=1e-12)
    other_metric.update(logits[1], targets[1])
    place_metric.merge_state(other_metric.metric_state)
    assert as_floats(place_metric.compute()) == pytest.approx(meter_fractions(logits[:2], targets[:2]), abs=1e-12)


@pytest.mark.filterwarnings("error")
def test_a_metric_without_rows_merges_other_metrics():
    logits, targets = batches()
    merged = new_metric()
    for batch, batch_targets in zip(logits, targets, strict=True):
        batch_metric = new_metric()
        batch_metric.update(batch, batch_targets)
        merged.merge_state(batch_metric)
    assert as_floats(merged.compute()) == pytest.approx(meter_fractions(logits, targets), abs=1e-12)


def test_metrics_of_other_arguments_are_not_merged():
    for options in ({"ks": (1, 2, 3, 4)}, {"padding": [0]}, {"ignore_index": 3}):
        with pytest.raises(ParameterError):
            new_metric().merge_state(new_metric(**options))


def test_a_clone_is_independent_and_the_constants_are_read_only():
    logits, targets = batches()
    place_metric = new_metric()
    place_metric.clone().update(logits[0], targets[0])
    place_metric.update(logits[1], targets[1])
    assert as_floats(place_metric.compute()) == pytest.approx(meter_fractions(logits[1], targets[1]), abs=1e-12)
    assert place_metric.state_dict() == {}
    for constant in ("is_differentiable", "higher_is_better"):
        with pytest.raises(RuntimeError):
            setattr(place_metric, constant, not getattr(place_metric, constant))


@pytest.mark.parametrize(
    ("logits", "targets"),
    [
        (torch.zeros(2, 3), torch.zeros(2, dtype=torch.int64)),
        (torch.zeros(2, CLASSES), torch.zeros(3, dtype=torch.int64)),
        (torch.zeros(2, CLASSES), torch.tensor([0, CLASSES])),
        (torch.full((2, CLASSES), float("nan")), torch.zeros(2, dtype=torch.int64)),
    ],
)
def test_invalid_batches_are_errors(logits, targets):
    with pytest.raises(EquipoiseError):
        new_metric().update(logits, targets)


def test_without_torchmetrics_the_error_is_a_missing_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "torchmetrics", None)
    monkeypatch.delitem(sys.modules, "equipoise.domains.places.torch_metric", raising=False)
    from equipoise.domains.places.torch_metric import PlaceMetric

    with pytest.raises(MissingExtraError):
        PlaceMetric(3)


TWO_PROCESSES = """
import pickle, sys, torch
from torch import distributed, multiprocessing
from equipoise.places import PlaceMeter, PlaceMetric

def work(rank, port):
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", init_method=f"tcp://localhost:{port}", rank=rank, world_size=2)
    generator = torch.Generator().manual_seed(7)
    logits = torch.randn(4, 16, 25, generator=generator).round(decimals=1)
    targets = torch.randint(0, 25, (4, 16), generator=generator)

    def expected(index):
        meter = PlaceMeter(compiled=False)
        for at in index:
            meter.update(logits[at].numpy(), targets[at].numpy())
        return meter

    def check(values, meter):
        summary = meter.compute()
        assert all(abs(float(value) - summary[name]) < 1e-12 for name, value in values.items()), (values, summary)

    for on_step in (False, True):
        metric, meter = pickle.loads(pickle.dumps(PlaceMetric(25, dist_sync_on_step=on_step))), PlaceMeter()
        for at in range(rank, 4, 2):
            batch = metric(logits[at], targets[at])
            meter.update(logits[at].numpy(), targets[at].numpy())
            check(batch, expected([at - rank, at - rank + 1] if on_step else [at]))
        assert distributed.get_world_size() == 2 and int(metric.total) == 32, metric.total
        check(metric.compute(), expected(range(4)))
        assert int(metric.total) == 32, "the metric keeps the rows of its process after compute"

    def gather(meter):
        meters = [None, None]
        distributed.all_gather_object(meters, meter)
        return meters

    assert meter.sync(gather).compute().fractions == expected(range(4)).compute().fractions
    distributed.destroy_process_group()

if __name__ == "__main__":
    # Forked, so that torch is imported once.
    multiprocessing.start_processes(work, args=(int(sys.argv[1]),), nprocs=2, start_method="fork")
"""


@pytest.mark.slow
def test_two_processes_have_the_values_of_all_rows_and_batches(tmp_path):
    import socket

    with socket.socket() as free_socket:
        free_socket.bind(("localhost", 0))
        port = free_socket.getsockname()[1]
    script = tmp_path / "two.py"
    script.write_text(TWO_PROCESSES)
    process = subprocess.run(
        [sys.executable, str(script), str(port)], capture_output=True, text=True, timeout=120, check=False
    )
    assert process.returncode == 0, process.stderr


def test_meters_of_several_workers_are_gathered_without_torch():
    logits, targets = batches()
    meters, barrier, fractions = [PlaceMeter() for _ in range(3)], Barrier(3), [None] * 3

    def work(rank):
        for index in range(rank, 6, 3):
            meters[rank].update(logits[index].numpy(), targets[index].numpy())
        barrier.wait()
        merged = meters[rank].sync(lambda _: [pickle.loads(pickle.dumps(meter)) for meter in meters])
        fractions[rank] = merged.compute().fractions

    threads = [Thread(target=work, args=(rank,)) for rank in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = meter_fractions(logits, targets)
    assert fractions == [expected] * 3
    assert np.isfinite(list(expected.values())).all()
