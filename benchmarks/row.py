"""One row of a benchmark table: a task, the cost here and in another package, and the target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Goal = Literal["faster", "within", "below"]


@dataclass(frozen=True, slots=True)
class Row:
    """The result of one measurement; ``ours`` and ``theirs`` are in ``unit`` (seconds or MB).

    The goal is at least ``target`` times less than the peer (``faster``), at most ``target`` times as
    much (``within``), or at most ``target`` units (``below``). Rows without a target are for
    information.
    """

    task: str
    ours: float
    peer: str = ""
    theirs: float | None = None
    target: float | None = None
    goal: Goal = "faster"
    unit: str = "s"
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """Theirs divided by ours; ours divided by theirs for the goal ``within``."""
        if self.theirs is None:
            return None
        numerator, denominator = (self.ours, self.theirs) if self.goal == "within" else (self.theirs, self.ours)
        return numerator / denominator

    @property
    def met(self) -> bool | None:
        """Whether the target was reached; None without a target."""
        if self.target is None:
            return None
        if self.goal == "below":
            return self.ours <= self.target
        ratio = self.ratio
        if ratio is None:
            return None
        return ratio >= self.target if self.goal == "faster" else ratio <= self.target

    @property
    def cells(self) -> tuple[str, ...]:
        """The formatted cells in the columns of ``HEAD``."""
        sign = {"faster": "≥ {} x", "within": "≤ {} x", "below": f"≤ {{}} {self.unit}"}[self.goal]
        return (
            self.task,
            self._amount(self.ours),
            self.peer,
            "" if self.theirs is None else self._amount(self.theirs),
            "" if self.ratio is None else f"{self.ratio:.3g} x",
            "" if self.target is None else sign.format(f"{self.target:g}"),
            {True: "yes", False: "**no**", None: ""}[self.met],
            self.note,
        )

    def _amount(self, value: float) -> str:
        return f"{value:.3g} {self.unit}"


HEAD = ("task", "ours", "peer", "theirs", "ratio", "target", "met", "note")
