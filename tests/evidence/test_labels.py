"""Labels from label columns and from logits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from equipoise.errors import InputError, NotFiniteError, ParameterError, ShapeError
from equipoise.evidence.labels import Labels

LOGITS = arrays.arrays(
    np.float64,
    st.tuples(st.integers(1, 12), st.integers(2, 6)),
    elements=st.sampled_from([-2.0, -0.5, 0.0, 1.0, 3.5]),
)


def test_class_names_survive_whatever_their_type():
    named = Labels.of(["b", "a"], ["c", "a"])
    assert named.classes[named.true].tolist() == ["b", "a"]
    assert named.classes[named.predicted].tolist() == ["c", "a"]
    numbered = Labels.of(np.array([7, 3]), np.array([3.0, 3.0]))
    assert numbered.classes.tolist() == [3, 7]
    mixed = Labels.of(["x", "y"], [0, 1])
    assert mixed.classes.tolist() == ["0", "1", "x", "y"]
    assert Labels.of([True, False], [True, True]).classes.tolist() == [0, 1]


@given(LOGITS)
def test_logits_give_the_first_best_class_and_name_ties(logits):
    labels = Labels.from_logits(logits, np.zeros(len(logits), dtype=int))
    for row, predicted, tied in zip(logits, labels.predicted, labels.tied_top, strict=True):
        best = [code for code, score in enumerate(row) if score == max(row)]
        assert predicted == best[0]
        assert tied == (len(best) > 1)


@given(LOGITS)
def test_an_excluded_class_is_never_predicted_and_never_ties(logits):
    padded = np.column_stack([np.full(len(logits), 9.0), logits])
    masked = Labels.from_logits(padded, np.ones(len(logits), dtype=int), exclude=[0])
    plain = Labels.from_logits(logits, np.zeros(len(logits), dtype=int))
    np.testing.assert_array_equal(masked.predicted, plain.predicted + 1)
    np.testing.assert_array_equal(masked.tied_top, plain.tied_top)


@pytest.mark.engines("torch")
@pytest.mark.parametrize("exclude", [(), (0, 3)])
def test_tensors_give_what_numpy_gives(exclude):
    torch = pytest.importorskip("torch")
    logits = np.random.default_rng(0).integers(0, 4, size=(200, 7)).astype(np.float32)
    targets = np.full(200, 2)
    ours = Labels.from_logits(logits, targets, exclude=exclude)
    theirs = Labels.from_logits(torch.tensor(logits), torch.tensor(targets), exclude=exclude)
    for name, array in ours.to_arrays().items():
        np.testing.assert_array_equal(theirs.to_arrays()[name], array)


def test_masked_scores_of_minus_infinity_are_allowed_and_nan_is_not():
    logits = np.array([[-np.inf, 1.0], [2.0, -np.inf]])
    assert Labels.from_logits(logits, [0, 0]).predicted.tolist() == [1, 0]
    with pytest.raises(NotFiniteError, match="row 1"):
        Labels.from_logits(np.array([[0.0, 1.0], [np.nan, 1.0]]), [0, 0])
    nan_in_padding = np.array([[np.nan, 1.0, 0.0]])
    assert Labels.from_logits(nan_in_padding, [1], exclude=[0]).predicted.tolist() == [1]


def test_bad_labels_are_explained():
    with pytest.raises(ShapeError, match=r"2 true.*1 predicted"):
        Labels.of(["a", "b"], ["a"])
    with pytest.raises(ShapeError, match=r"shape \(1, 1\)"):
        Labels.of([["a"]], ["a"])
    with pytest.raises(NotFiniteError, match="NaN"):
        Labels.of([1.0, float("nan")], [1, 2])
    with pytest.raises(InputError, match="no class at position 1"):
        Labels.of(["a", "b"], ["a", None])


def test_bad_logits_are_explained():
    logits = np.zeros((2, 3))
    with pytest.raises(ShapeError, match=r"shape \(3,\)"):
        Labels.from_logits(np.zeros(3), [0])
    with pytest.raises(ShapeError, match=r"1 targets.*2 rows"):
        Labels.from_logits(logits, [0])
    with pytest.raises(InputError, match="target 3 of row 1"):
        Labels.from_logits(logits, [0, 3])
    with pytest.raises(InputError):
        Labels.from_logits(logits, ["a", "b"])
    with pytest.raises(InputError, match="row 1"):
        Labels.from_logits(logits, [1, 0], exclude=[0])
    with pytest.raises(ParameterError, match="padding class 3"):
        Labels.from_logits(logits, [0, 0], exclude=[3])
    with pytest.raises(ParameterError):
        Labels.from_logits(logits, [0, 0], exclude=[0, 1, 2])
    with pytest.raises(ShapeError, match=r"2 class.*3"):
        Labels.from_logits(logits, [0, 0], classes=["a", "b"])


def test_take_shuffle_and_store_keep_units_together(tmp_path):
    logits = np.random.default_rng(3).integers(0, 3, size=(40, 4))
    labels = Labels.from_logits(logits, logits[:, 0], classes=list("wxyz"))
    taken = labels.take(np.array([4, 4, 1]))
    assert taken.tied_top.tolist() == labels.tied_top[[4, 4, 1]].tolist()
    shuffled = labels.shuffled(np.random.default_rng(0))
    np.testing.assert_array_equal(shuffled.true, labels.true)
    pairs = zip(labels.predicted, labels.tied_top, strict=True)
    assert sorted(zip(shuffled.predicted, shuffled.tied_top, strict=True)) == sorted(pairs)
    assert (shuffled.predicted != labels.predicted).any()
    for each in (labels, Labels.of(["a"], ["b"])):
        each.save(tmp_path / "one.npz")
        again = Labels.load(tmp_path / "one.npz")
        again.save(tmp_path / "two.npz")
        assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()
        assert (again.tied_top is None) == (each.tied_top is None)
        assert again.classes.tolist() == each.classes.tolist()
