"""Evidence for classification and clustering: the true and the predicted class of each unit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from equipoise.errors import InputError, NotFiniteError, ShapeError
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
    def of(cls, true: ArrayLike, predicted: ArrayLike, *, unit_ids: ArrayLike | None = None) -> Self:
        """Build the evidence from two columns of classes.

        Parameters
        ----------
        true
            The true class of each unit: integers, or values that are converted to strings.
        predicted
            The predicted class or cluster of each unit.
        unit_ids
            Ids of the units; 0, 1, 2, ... by default.
        """
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
        logits: ArrayLike,
        targets: ArrayLike,
        *,
        classes: ArrayLike | None = None,
        exclude: Iterable[int] = (),
        unit_ids: ArrayLike | None = None,
    ) -> Self:
        """Build the evidence from logits: the class with the largest score in each row is predicted.

        Parameters
        ----------
        logits
            A matrix (units x classes) of any library that follows the array API; the maximum is computed on its
            device.
        targets
            The column of the true class of each unit.
        classes
            Names of the classes; 0, 1, 2, ... by default.
        exclude
            Columns that can be neither predictions nor targets, such as padding.
        unit_ids
            Ids of the units; 0, 1, 2, ... by default.

        Examples
        --------
        >>> labels = Labels.from_logits(np.array([[9.0, 1, 2], [9.0, 3, 3]]), [2, 2], exclude=[0])
        >>> labels.predicted.tolist(), labels.tied_top.tolist()
        ([2, 1], [False, True])
        """
        from equipoise.evidence.kernels.dispatch import check_score_matrix, rank_targets

        scores = check_score_matrix(logits)
        ranks = rank_targets(scores, targets, padding=exclude)
        names = unique_ids(classes, int(scores.shape[1]), noun="class")
        ids = unique_ids(unit_ids, len(ranks.true))
        return cls(ids, ranks.true, ranks.predicted, names, ranks.counts.tied_top)

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
