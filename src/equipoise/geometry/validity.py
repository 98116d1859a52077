"""What is wrong with some points of a geometry: how many, which, why, and whether they can be used at all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from equipoise.errors import InputError, NotFiniteError
from equipoise.types import Bools, Ints

_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Fault:
    """One way in which points are invalid: the rows, and a predicate that reads after their number."""

    rows: Ints
    predicate: str
    remedy: str
    fatal: bool = True
    finite: bool = True

    def __str__(self) -> str:
        first = ", ".join(str(row) for row in self.rows[:_SHOWN])
        more = ", ..." if len(self.rows) > _SHOWN else ""
        return f"{self.predicate} (row{'s' if len(self.rows) > 1 else ''} {first}{more})"


@dataclass(frozen=True, slots=True)
class Validity:
    """The verdict of ``Geometry.check``: nothing is clamped or dropped, everything is named."""

    geometry: str
    points: int
    faults: tuple[Fault, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether nothing at all is wrong."""
        return not self.faults

    @property
    def usable(self) -> bool:
        """Whether nearness is defined for every point; zero vectors under cosine are odd, but usable."""
        return not any(fault.fatal for fault in self.faults)

    @property
    def rows(self) -> Ints:
        """The rows with any fault, ascending."""
        found = [fault.rows for fault in self.faults]
        return np.unique(np.concatenate(found)) if found else np.empty(0, dtype=np.int64)

    def __str__(self) -> str:
        if self.ok:
            return f"all {self.points} points are valid {self.geometry} points"
        return "; ".join(f"{len(fault.rows)} of {self.points} points {fault}" for fault in self.faults)

    def require_usable(self, subject: str) -> None:
        """Refuse points for which nearness is undefined, naming how many and the first rows."""
        for fault in self.faults:
            if fault.fatal:
                kind = InputError if fault.finite else NotFiniteError
                raise kind(f"{subject}: {len(fault.rows)} of {self.points} points {fault}", hint=fault.remedy)


def faults(*found: tuple[Bools, str, str]) -> tuple[Fault, ...]:
    """Fatal faults from masks over the rows; a mask without a row is no fault."""
    return tuple(
        Fault(np.flatnonzero(mask), predicate, remedy) for mask, predicate, remedy in found if mask.any()
    )
