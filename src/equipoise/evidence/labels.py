"""Evidence for classification and clustering: the true and the predicted class of each unit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import InputError, NotFiniteError, ParameterError, ShapeError
from equipoise.evidence.base import (
    Arrays,
    Evidence,
    StoredArrays,
    as_ids,
    check_same_length,
    ids_to_array,
    to_numpy,
    unique_ids,
)

if TYPE_CHECKING:
    from equipoise.types import Bools, Ids, Ints

BLOCK_SCORES = 1 << 22
"""Scores per block, so that a large logit matrix needs little extra memory."""


@dataclass(frozen=True, eq=False, repr=False)
class Labels(Evidence):
    """The true and the predicted class of each unit, as codes into ``classes``.

    For a clustering, the predictions are cluster names. ``tied_top`` marks the units whose largest score is tied
    (None if unknown); the lowest class code is predicted there.

    >>> labels = Labels.of(["home", "work", "home"], ["home", "home", "home"])
    >>> labels.classes.tolist(), labels.true.tolist(), labels.predicted.tolist()
    (['home', 'work'], [0, 1, 0], [0, 0, 0])
    """

    kind: ClassVar[str] = "labels"

    unit_ids: Ids
    true: Ints
    predicted: Ints
    classes: Ids
    tied_top: Bools | None = None

    @classmethod
    def of(cls, true: Any, predicted: Any, *, unit_ids: Any = None) -> Self:
        """From two columns of class names: integers, or values that are converted to strings."""
        truth, guess = as_class_labels(true, "true labels"), as_class_labels(predicted, "predicted labels")
        check_same_length(truth, guess, "true labels", "predicted ones")
        if truth.dtype == object or guess.dtype == object:
            truth, guess = (np.array([str(name) for name in side], dtype=object) for side in (truth, guess))
        classes, codes = np.unique(np.concatenate([truth, guess]), return_inverse=True)
        codes = codes.astype(np.int64)
        return cls(unique_ids(unit_ids, len(truth)), codes[: len(truth)], codes[len(truth) :], classes)

    @classmethod
    def from_logits(
        cls,
        logits: Any,
        targets: Any,
        *,
        classes: Any = None,
        exclude: Iterable[int] = (),
        unit_ids: Any = None,
    ) -> Self:
        """The class with the largest score in each row, and the target codes.

        ``logits`` is a (units, classes) matrix of numpy or of any array-API library; the maximum is computed on
        its device. Columns in ``exclude``, such as padding, can be neither predictions nor targets.

        >>> labels = Labels.from_logits(np.array([[9.0, 1, 2], [9.0, 3, 3]]), [2, 2], exclude=[0])
        >>> labels.predicted.tolist(), labels.tied_top.tolist()
        ([2, 1], [False, True])
        """
        if getattr(logits, "ndim", None) != 2:
            raise ShapeError(
                f"the logits have shape {getattr(logits, 'shape', None)}",
                hint="give an array with one row per unit and one column per class",
            )
        units, width = (int(size) for size in logits.shape)
        columns = _predictable_columns(exclude, width)
        true = _target_codes(targets, units, width, columns)
        predicted, tied = _argmax_with_ties(logits, columns)
        names = unique_ids(classes, width, of="class")
        return cls(unique_ids(unit_ids, units), true, predicted, names, tied)

    def take(self, index: Ints) -> Self:
        """The units at ``index``, in that order."""
        tied = None if self.tied_top is None else self.tied_top[index]
        return type(self)(self.unit_ids[index], self.true[index], self.predicted[index], self.classes, tied)

    def shuffled(self, rng: np.random.Generator) -> Self:
        """The same predictions, assigned to the units at random."""
        order = rng.permutation(len(self))
        tied = None if self.tied_top is None else self.tied_top[order]
        return type(self)(self.unit_ids, self.true, self.predicted[order], self.classes, tied)

    def to_arrays(self) -> Arrays:
        """Ids, codes, class names, and the ties if known."""
        arrays: Arrays = {
            "unit_ids": ids_to_array(self.unit_ids),
            "true": self.true,
            "predicted": self.predicted,
            "classes": ids_to_array(self.classes),
        }
        return arrays if self.tied_top is None else {**arrays, "tied_top": self.tied_top}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """The inverse of ``to_arrays``."""
        stored = StoredArrays(arrays)
        unit_ids, classes = stored.ids("unit_ids"), stored.ids("classes")
        units = len(unit_ids)
        return cls(
            unit_ids,
            stored.codes("true", len(classes), units),
            stored.codes("predicted", len(classes), units),
            classes,
            stored.flags("tied_top", units) if "tied_top" in stored else None,
        )


def as_class_labels(labels: Any, argument: str) -> Ids:
    """A column of labels: int64 if all are integers, strings otherwise."""
    names = to_numpy(labels)
    if names.ndim != 1:
        raise ShapeError(f"the {argument} have shape {names.shape}", hint="give one label per unit")
    if names.dtype.kind == "b":
        return names.astype(np.int64)
    if names.dtype.kind == "f":
        if not np.isfinite(names).all():
            raise NotFiniteError(f"the {argument} contain NaN or infinity", hint="every unit needs a class")
        if (names == np.rint(names)).all():
            return names.astype(np.int64)
    if names.dtype == object:
        missing = [index for index, name in enumerate(names) if name is None or name != name]
        if missing:
            raise InputError(f"the {argument} have no class at position {missing[0]} ({len(missing)} in total)")
    return as_ids(names, len(names))


def _predictable_columns(exclude: Iterable[int], width: int) -> Ints:
    """The class codes that can be predicted."""
    predictable = np.ones(width, dtype=bool)
    for code in exclude:
        if not 0 <= code < width:
            raise ParameterError(f"the excluded class {code} is not among the {width} columns of the logits")
        predictable[code] = False
    if not predictable.any():
        raise ParameterError("all classes are excluded", hint="leave at least one class to predict")
    return np.flatnonzero(predictable).astype(np.int64)


def _target_codes(targets: Any, units: int, width: int, columns: Ints) -> Ints:
    """Targets as codes of classes that can be predicted."""
    codes = as_class_labels(targets, "targets")
    if len(codes) != units:
        raise ShapeError(f"there are {len(codes)} targets for {units} rows of logits")
    if codes.dtype == object:
        raise InputError("the targets are names, not class codes", hint="give the column of each target")
    if len(codes) and (codes.min() < 0 or codes.max() >= width):
        raise InputError(f"the targets reach from {codes.min()} to {codes.max()}, but the logits have {width} columns")
    masked = ~np.isin(codes, columns)
    if masked.any():
        raise InputError(
            f"{int(masked.sum())} targets are of an excluded class, first in row {int(np.argmax(masked))}",
            hint="remove these rows: no prediction can be correct there",
        )
    return codes.astype(np.int64)


def _argmax_with_ties(logits: Any, class_columns: Ints) -> tuple[Ints, Bools]:
    """For each row the lowest code with the largest score, and whether another class ties with it."""
    from array_api_compat import array_namespace, device

    xp = array_namespace(logits)
    units, width = logits.shape
    columns = None if len(class_columns) == width else xp.asarray(class_columns, device=device(logits))
    predicted, tied = np.empty(units, dtype=np.int64), np.empty(units, dtype=bool)
    rows = max(1, BLOCK_SCORES // max(1, width))
    for start in range(0, units, rows):
        block = logits[start : start + rows, :]
        block = block if columns is None else xp.take(block, columns, axis=1)
        top = xp.max(block, axis=1, keepdims=True)
        unknown = to_numpy(top != top)[:, 0]
        if unknown.any():
            raise NotFiniteError(
                f"the logits contain NaN, first in row {start + int(np.argmax(unknown))}",
                hint="a model that produces NaN cannot be scored; mask padding with exclude=",
            )
        at_top = block == top
        predicted[start : start + rows] = to_numpy(xp.argmax(block, axis=1))
        tied[start : start + rows] = to_numpy(xp.count_nonzero(at_top, axis=1)) > 1
    return class_columns[predicted], tied
