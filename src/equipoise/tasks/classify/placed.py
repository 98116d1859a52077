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

    @property
    def has_ties(self) -> bool:
        """Whether any target shares its score with another class."""
        return bool(self.tied.any())

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
    """The classes that are candidates, by rising codes; an order of their names is made when a tie asks."""

    codes: Ints

    @cached_property
    def order(self) -> Ints:
        """A number for each column that grows as its name does in an order by id; "10" comes before "9".

        >>> Columns(np.array([1, 9, 10, 11, 100])).order.argsort().tolist()
        [0, 2, 4, 3, 1]
        """
        codes, longest = self.codes, len(str(self.codes[-1]))
        digits = 1 + sum((codes >= 10**power).astype(np.int64) for power in range(1, longest))
        # All names are filled up to one length; of those that are equal then, the shorter comes first.
        order: Ints = codes * 10 ** (longest - digits) * (longest + 1) + digits
        return order

    @property
    def span(self) -> slice | None:
        """The columns as one slice, where no gap is between them; then nothing has to be copied."""
        first, last = int(self.codes[0]), int(self.codes[-1])
        return slice(first, last + 1) if last - first + 1 == len(self.codes) else None

    def places(self, codes: Ints) -> Ints:
        """The column of each class among these."""
        if self.span is None:
            return np.searchsorted(self.codes, codes)
        return codes - self.span.start if self.span.start else codes

    def named(self, places: Ints) -> Ints:
        """The class of each column: the inverse of ``places``."""
        if self.span is None:
            return self.codes[places]
        return places + self.span.start if self.span.start else places


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
