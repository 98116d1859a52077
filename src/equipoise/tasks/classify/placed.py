"""What a look at some rows tells: where each target landed, and which class came first."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from equipoise.types import Bools, Floats, Ints


@dataclass(frozen=True, slots=True)
class Placed:
    """For each row: the classes above its target and tied with it, the first class, and whether that is tied.

    ``before`` counts those tied with the target that an order by id puts first, as in a ``Ranking``.
    ``confidence`` and ``target_probability`` are the softmax of the first class and of the target; None where
    nobody asked.
    """

    above: Ints
    tied: Ints
    before: Ints
    predicted: Ints
    tied_top: Bools
    confidence: Floats | None = None
    target_probability: Floats | None = None

    @classmethod
    def empty(cls, rows: int, *, probabilities: bool) -> Self:
        """Room for so many rows."""
        above, tied, before, predicted = np.zeros((4, rows), dtype=np.int64)
        shares = [np.zeros(rows) if probabilities else None for _ in range(2)]
        return cls(above, tied, before, predicted, np.zeros(rows, dtype=bool), *shares)

    def put(self, part: slice, other: Placed) -> None:
        """Write what a block has shown into its rows."""
        for each in fields(self):
            mine, theirs = getattr(self, each.name), getattr(other, each.name)
            if mine is not None and theirs is not None:
                mine[part] = theirs


@dataclass(frozen=True)
class Columns:
    """The classes that are candidates, by their codes; an order of their names is made when a tie asks."""

    codes: Ints

    @cached_property
    def order(self) -> Ints:
        """The place of each column in an order by name, as an order by id has it.

        >>> Columns(np.array([8, 9, 10, 11])).order.tolist()
        [2, 3, 0, 1]
        """
        order = np.empty(len(self.codes), dtype=np.int64)
        order[np.argsort(self.codes.astype(str), kind="stable")] = np.arange(len(self.codes))
        return order

    @property
    def span(self) -> slice | None:
        """The columns as one slice, where no gap is between them; then nothing has to be copied."""
        first, last = int(self.codes[0]), int(self.codes[-1])
        return slice(first, last + 1) if last - first + 1 == len(self.codes) else None

    def places(self, codes: Ints) -> Ints:
        """The column of each class among these."""
        return np.searchsorted(self.codes, codes) if self.span is None else codes - self.span.start


class NotANumberError(Exception):
    """A score is no number; ``row`` is the first row of the block that holds one."""

    def __init__(self, row: int) -> None:
        super().__init__(row)
        self.row = row


class EndlessError(Exception):
    """A score is infinite where a softmax was asked for; ``row`` is the first such row of the block."""

    def __init__(self, row: int) -> None:
        super().__init__(row)
        self.row = row


def refuse_nan(largest: NDArray[Any]) -> None:
    """Refuse a row whose largest score is NaN: a maximum passes NaN on."""
    unknown = largest != largest
    if unknown.any():
        raise NotANumberError(int(np.argmax(unknown)))
