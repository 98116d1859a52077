"""Evidence for similarity tasks: the predicted and the expected similarity of each pair."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from equipoise.evidence.base import (
    Arrays,
    Evidence,
    StoredArrays,
    check_same_length,
    float_column,
    ids_to_array,
    unique_ids,
)

if TYPE_CHECKING:
    from equipoise.types import Floats, Ids, Ints


@dataclass(frozen=True, eq=False, repr=False)
class Pairs(Evidence):
    """The predicted and the expected similarity of each pair; a unit is a pair.

    >>> pairs = Pairs.of([0.9, 0.2, 0.4], expected=[1.0, 0.0, 0.5], unit_ids=["a-b", "a-c", "b-c"])
    >>> len(pairs), pairs.take(np.array([2])).predicted.tolist()
    (3, [0.4])
    """

    kind: ClassVar[str] = "pairs"

    unit_ids: Ids
    predicted: Floats
    expected: Floats

    @classmethod
    def of(cls, predicted: ArrayLike, expected: ArrayLike, *, unit_ids: ArrayLike | None = None) -> Self:
        """Build the evidence from two columns of similarities.

        Parameters
        ----------
        predicted
            The similarity of each pair as a model predicts it: finite numbers.
        expected
            The expected similarity of each pair, such as a human rating.
        unit_ids
            Ids of the pairs; 0, 1, 2, ... by default.
        """
        similarities, targets = (
            float_column(predicted, "the predicted similarities"),
            float_column(expected, "the expected ones"),
        )
        check_same_length(similarities, targets, "predicted similarities", "expected ones")
        return cls(unique_ids(unit_ids, len(similarities)), similarities, targets)

    def take(self, index: Ints) -> Self:
        """The pairs at ``index``, in that order."""
        return type(self)(self.unit_ids[index], self.predicted[index], self.expected[index])

    def shuffled(self, rng: np.random.Generator) -> Self:
        """The same predictions, assigned to the pairs at random."""
        return type(self)(self.unit_ids, rng.permutation(self.predicted), self.expected)

    def to_arrays(self) -> Arrays:
        """Ids and the two columns."""
        return {
            "unit_ids": ids_to_array(self.unit_ids),
            "predicted": self.predicted,
            "expected": self.expected,
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """The inverse of ``to_arrays``."""
        stored = StoredArrays(arrays)
        unit_ids = stored.ids("unit_ids")
        return cls(unit_ids, *(stored.numbers(name, len(unit_ids)) for name in ("predicted", "expected")))
