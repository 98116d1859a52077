"""One line of the table: a task, what it cost us and another, and what was hoped for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Goal = Literal["faster", "within", "below"]


@dataclass(frozen=True, slots=True)
class Row:
    """What one measurement found; ``ours`` and ``theirs`` are in ``unit`` (seconds or MB).

    The goal reads: at least ``target`` times less than the peer (``faster``), at most ``target`` times as
    much (``within``), or at most ``target`` units whatever others need (``below``). Without a
    target the line is there to be known.
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
        """Theirs over ours; ours over theirs where the goal is to stay within a multiple."""
        if self.theirs is None:
            return None
        numerator, under = (self.ours, self.theirs) if self.goal == "within" else (self.theirs, self.ours)
        return numerator / under

    @property
    def met(self) -> bool | None:
        """Whether the target was reached; None where there is none."""
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
        """The line as people read it; ``HEAD`` names the columns."""
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
