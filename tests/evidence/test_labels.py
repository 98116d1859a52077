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


def test_class_names_keep_their_type():
    named = Labels.of(["b", "a"], ["c", "a"])
    assert named.classes[named.true].tolist() == ["b", "a"]
    assert named.classes[named.predicted].tolist() == ["c", "a"]
    numbered = Labels.of(np.array([7, 3]), np.array([3.0, 3.0]))
    assert numbered.classes.tolist() == [3, 7]
    mixed = Labels.of(["x", "y"], [0, 1])
    assert mixed.classes.tolist() == ["0", "1", "x", "y"]
    assert Labels.of([True, False], [True, True]).classes.tolist() == [0, 1]


@given(LOGITS)
def test_logits_predict_the_first_best_class_and_mark_ties(logits):
    labels = Labels.from_logits(logits, np.zeros(len(logits), dtype=int))
    for row, predicted, tied in zip(logits, labels.predicted, labels.tied_top, strict=True):
        best = [code for code, score in enumerate(row) if score == max(row)]
        assert predicted == best[0]
        assert tied == (len(best) > 1)


@given(LOGITS)
def test_excluded_classes_are_not_predicted_and_do_not_tie(logits):
    padded = np.column_stack([np.full(len(logits), 9.0), logits])
    masked = Labels.from_logits(padded, np.ones(len(logits), dtype=int), exclude=[0])
    plain = Labels.from_logits(logits, np.zeros(len(logits), dtype=int))
    np.testing.assert_array_equal(masked.predicted, plain.predicted + 1)
    np.testing.assert_array_equal(masked.tied_top, plain.tied_top)


@pytest.mark.engines("torch")
@pytest.mark.parametrize("exclude", [(), (0, 3)])
def test_tensors_give_the_labels_of_numpy_arrays(exclude):
    torch = pytest.importorskip("torch")
    logits = np.random.default_rng(0).integers(0, 4, size=(200, 7)).astype(np.float32)
    targets = np.full(200, 2)
    from_numpy = Labels.from_logits(logits, targets, exclude=exclude)
    from_torch = Labels.from_logits(torch.tensor(logits), torch.tensor(targets), exclude=exclude)
    for name, array in from_numpy.to_arrays().items():
        np.testing.assert_array_equal(from_torch.to_arrays()[name], array)


def test_minus_infinity_is_allowed_and_nan_raises_not_finite_error():
    logits = np.array([[-np.inf, 1.0], [2.0, -np.inf]])
    assert Labels.from_logits(logits, [0, 0]).predicted.tolist() == [1, 0]
    with pytest.raises(NotFiniteError, match="row 1"):
        Labels.from_logits(np.array([[0.0, 1.0], [np.nan, 1.0]]), [0, 0])
    nan_in_padding = np.array([[np.nan, 1.0, 0.0]])
    assert Labels.from_logits(nan_in_padding, [1], exclude=[0]).predicted.tolist() == [1]


def test_bad_labels_raise_errors():
    with pytest.raises(ShapeError, match=r"2 true.*1 predicted"):
        Labels.of(["a", "b"], ["a"])
    with pytest.raises(ShapeError, match=r"shape \(1, 1\)"):
        Labels.of([["a"]], ["a"])
    with pytest.raises(NotFiniteError, match="NaN"):
        Labels.of([1.0, float("nan")], [1, 2])
    with pytest.raises(InputError, match="position 1"):
        Labels.of(["a", "b"], ["a", None])


def test_bad_logits_raise_errors():
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


def test_take_shuffle_and_save_keep_units_aligned(tmp_path):
    logits = np.random.default_rng(3).integers(0, 3, size=(40, 4))
    labels = Labels.from_logits(logits, logits[:, 0], classes=list("wxyz"))
    taken = labels.take(np.array([4, 4, 1]))
    assert taken.tied_top.tolist() == labels.tied_top[[4, 4, 1]].tolist()
    shuffled = labels.shuffled(np.random.default_rng(0))
    np.testing.assert_array_equal(shuffled.true, labels.true)
    pairs = zip(labels.predicted, labels.tied_top, strict=True)
    assert sorted(zip(shuffled.predicted, shuffled.tied_top, strict=True)) == sorted(pairs)
    assert (shuffled.predicted != labels.predicted).any()
    for evidence in (labels, Labels.of(["a"], ["b"])):
        evidence.save(tmp_path / "one.npz")
        loaded = Labels.load(tmp_path / "one.npz")
        loaded.save(tmp_path / "two.npz")
        assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()
        assert (loaded.tied_top is None) == (evidence.tied_top is None)
        assert loaded.classes.tolist() == evidence.classes.tolist()
