"""Similarities of pairs: what a system says beside what people say; and the guards of plain columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import DuplicateError, InputError, NotFiniteError, ShapeError
from equipoise.evidence.base import Arrays, Evidence, as_ids, plain_ids, restored_ids
from equipoise.types import Floats, Ids, Ints


@dataclass(frozen=True, eq=False)
class Pairs(Evidence):
    """The similarity of each pair as a system predicts it and as it is expected; a unit is a pair.

    >>> pairs = Pairs.of([0.9, 0.2, 0.4], expected=[1.0, 0.0, 0.5], unit_ids=["a-b", "a-c", "b-c"])
    >>> len(pairs), pairs.take(np.array([2])).predicted.tolist()
    (3, [0.4])
    """

    kind: ClassVar[str] = "pairs"

    unit_ids: Ids
    predicted: Floats
    expected: Floats

    @classmethod
    def of(cls, predicted: Any, expected: Any, *, unit_ids: Any = None) -> Self:
        """Two columns of finite numbers, as long as each other."""
        said, wanted = column(predicted, "the predicted similarities"), column(expected, "the expected ones")
        same_length(said, wanted, "predicted similarities", "expected ones")
        return cls(unique_ids(unit_ids, len(said)), said, wanted)

    def take(self, index: Ints) -> Self:
        """The pairs at ``index``, in that order."""
        return type(self)(self.unit_ids[index], self.predicted[index], self.expected[index])

    def shuffled(self, rng: np.random.Generator) -> Self:
        """The same predictions, handed to the pairs at random."""
        return type(self)(self.unit_ids, rng.permutation(self.predicted), self.expected)

    def to_arrays(self) -> Arrays:
        """Ids and the two columns."""
        return {"unit_ids": plain_ids(self.unit_ids), "predicted": self.predicted, "expected": self.expected}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """The inverse of ``to_arrays``."""
        return cls(restored_ids(arrays["unit_ids"]), arrays["predicted"], arrays["expected"])


def column(values: Any, what: str, *, nan: bool = False) -> Floats:
    """One float64 number a unit, all finite; ``nan=True`` lets NaN stand for "undefined"."""
    try:
        numbers = np.asarray(host(values), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{what} are not numbers: {error}") from error
    if numbers.ndim != 1:
        raise ShapeError(f"{what} have shape {numbers.shape}", hint="give one number a unit")
    bad = np.isinf(numbers) if nan else ~np.isfinite(numbers)
    if bad.any():
        first = int(np.argmax(bad))
        raise NotFiniteError(
            f"{what} hold {numbers[first]} at position {first} ({int(bad.sum())} such in all)",
            hint="drop these units or repair what produced them",
        )
    return numbers


def same_length(one: NDArray[Any], other: NDArray[Any], one_name: str, other_name: str) -> None:
    """Refuse columns of unequal length, naming both."""
    if len(one) != len(other):
        raise ShapeError(
            f"there are {len(one)} {one_name} and {len(other)} {other_name}", hint="give one of each a unit"
        )


def unique_ids(ids: Any, count: int, *, of: str = "unit") -> Ids:
    """One id for each unit or class, none of them twice; 0, 1, 2, ... where none are given."""
    names = as_ids(None if ids is None else host(ids), count)
    if len(names) != count:
        raise ShapeError(f"there are {len(names)} {of} ids for {count}", hint=f"give one id for each {of}")
    distinct, times = np.unique(names, return_counts=True)
    if len(distinct) != count:
        twice = distinct[np.argmax(times)]
        raise DuplicateError(
            f"the {of} id {twice!s} appears {int(times.max())} times", hint="ids must be unique"
        )
    return names


def host(values: Any) -> NDArray[Any]:
    """An array-like as a numpy array, fetched from the device where it lives on one."""
    if isinstance(values, (np.ndarray, list, tuple)):
        return np.asarray(values)
    if hasattr(values, "detach"):  # torch refuses to export a tensor that still tracks gradients
        values = values.detach()
    if hasattr(values, "cpu"):
        values = values.cpu()
    return np.asarray(values)
