"""Pairs: construction, subsets, shuffling, storage and errors."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.errors import DuplicateError, InputError, NotFiniteError, ShapeError, StoreError
from equipoise.evidence.base import to_numpy
from equipoise.evidence.labels import Labels
from equipoise.evidence.pairs import Pairs

SIMILARITIES = st.lists(st.tuples(st.floats(-1, 1), st.floats(-1, 1)), min_size=1, max_size=20)


def random_pairs(n: int = 6) -> Pairs:
    rng = np.random.default_rng(n)
    return Pairs.of(rng.random(n), rng.random(n), unit_ids=[f"p{i}" for i in range(n)])


def test_units_without_ids_are_numbered():
    assert Pairs.of([0.1, 0.2], [0.3, 0.4]).unit_ids.tolist() == [0, 1]


@given(SIMILARITIES)
def test_taking_all_units_changes_nothing(rows):
    pairs = Pairs.of(*zip(*rows, strict=True))
    taken = pairs.take(np.arange(len(pairs)))
    for name, array in pairs.to_arrays().items():
        np.testing.assert_array_equal(taken.to_arrays()[name], array)


def test_an_index_may_repeat_and_reorder():
    taken = random_pairs().take(np.array([5, 0, 0]))
    assert taken.unit_ids.tolist() == ["p5", "p0", "p0"]
    assert taken.predicted.tolist() == [random_pairs().predicted[i] for i in (5, 0, 0)]


def test_shuffling_permutes_predictions_only():
    pairs = random_pairs(50)
    shuffled = pairs.shuffled(np.random.default_rng(1))
    assert sorted(shuffled.predicted) == sorted(pairs.predicted)
    assert (shuffled.predicted != pairs.predicted).any()
    np.testing.assert_array_equal(shuffled.expected, pairs.expected)


def test_saved_pairs_load_unchanged_and_equal_pairs_have_equal_bytes(tmp_path):
    random_pairs().save(tmp_path / "a.npz")
    random_pairs().save(tmp_path / "b.npz")
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    loaded = Pairs.load(tmp_path / "a.npz")
    loaded.save(tmp_path / "b.npz")
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    assert loaded.unit_ids.tolist() == random_pairs().unit_ids.tolist()


def test_evidence_of_another_kind_raises_store_error(tmp_path):
    random_pairs().save(tmp_path / "pairs.npz")
    with pytest.raises(StoreError):
        Labels.load(tmp_path / "pairs.npz")


def test_bad_columns_raise_errors():
    with pytest.raises(ShapeError, match=r"2 predicted.*3 expected"):
        Pairs.of([0.1, 0.2], [0.1, 0.2, 0.3])
    with pytest.raises(ShapeError, match=r"shape \(1, 2\)"):
        Pairs.of([[0.1, 0.2]], [0.1, 0.2])
    with pytest.raises(NotFiniteError, match="nan at position 1"):
        Pairs.of([0.1, float("nan")], [0.1, 0.2])
    with pytest.raises(InputError):
        Pairs.of(["high", "low"], [0.1, 0.2])
    with pytest.raises(DuplicateError, match="2 times"):
        Pairs.of([0.1, 0.2], [0.1, 0.2], unit_ids=["a-b", "a-b"])
    with pytest.raises(ShapeError, match=r"3 unit.*2"):
        Pairs.of([0.1, 0.2], [0.1, 0.2], unit_ids=["a", "b", "c"])


@pytest.mark.engines("torch")
def test_tensors_that_track_gradients_are_read():
    torch = pytest.importorskip("torch")
    assert to_numpy(torch.tensor([1.0, 2.0], requires_grad=True)).tolist() == [1.0, 2.0]


def test_evidence_is_stored_with_the_fastest_compression(tmp_path: Path) -> None:
    Pairs.of(np.arange(2000) / 2000, np.arange(2000) % 7 / 7).save(tmp_path / "pairs.npz")
    with zipfile.ZipFile(tmp_path / "pairs.npz") as archive:
        content, info = archive.read("predicted.npy"), archive.getinfo("predicted.npy")
    fastest, default = (len(zlib.compress(content, level, wbits=-15)) for level in (1, -1))
    assert info.compress_size == fastest != default
