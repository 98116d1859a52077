"""The small drawings inside tables: where things lie, in pixels; how they look is for the style sheet."""

from __future__ import annotations

from dataclasses import dataclass

from equipoise.report.page.model import Grid, HeatCell, Number, Scale
from equipoise.report.page.tuned import BASELINE, BEST, BUDGET, CHOSEN

WIDTH = 200
HEIGHT = 22
MARGIN = 8
HEAT_STEPS = 7
SIGNS = {BEST: "★", BASELINE: "○", BUDGET: "◎", CHOSEN: "✓"}
"""What a cell of a grid has room for."""


@dataclass(frozen=True, slots=True)
class Ruler:
    """Places on a scale that is drawn ``WIDTH`` pixels wide."""

    scale: Scale
    width: int = WIDTH
    height: int = HEIGHT

    def x(self, value: Number) -> str:
        """Where a number lies, to a tenth of a pixel; numbers outside stay at the edge.

        >>> Ruler(Scale(0.0, 1.0, ())).x(0.5)
        '100'
        """
        low, high = self.scale.low, self.scale.high
        share = 0.0 if value is None or high <= low else (value - low) / (high - low)
        return f"{MARGIN + min(max(share, 0.0), 1.0) * (self.width - 2 * MARGIN):.1f}".removesuffix(".0")

    @property
    def middle(self) -> str:
        """Half of the height."""
        return f"{self.height / 2:g}"

    @property
    def labels(self) -> tuple[tuple[str, str], ...]:
        """Places and texts of the first tick, of 0 or the middle one, and of the last: more do not fit."""
        ticks = self.scale.ticks
        if not ticks:
            return ()
        inner = [at for at, (value, _) in enumerate(ticks) if value == 0] or [len(ticks) // 2]
        chosen = [0, inner[0], len(ticks) - 1] if self._has_room(ticks[inner[0]][0]) else [0, len(ticks) - 1]
        return tuple((self.x(ticks[at][0]), ticks[at][1]) for at in dict.fromkeys(chosen))

    def _has_room(self, value: float) -> bool:
        """Whether a label can stand here without touching those at the ends."""
        return 6 * MARGIN <= float(self.x(value)) <= self.width - 6 * MARGIN


def heat(shade: Number) -> str:
    """The class of a cell with this shade; none where there is nothing to shade.

    >>> heat(0.0), heat(1.0), heat(None)
    ('heat0', 'heat6', 'plain')
    """
    return "plain" if shade is None else f"heat{min(int(shade * HEAT_STEPS), HEAT_STEPS - 1)}"


def sign(mark: str) -> str:
    """A mark of a grid in one or two characters.

    >>> sign("best"), sign("chosen by 4")
    ('★', '✓4')
    """
    return SIGNS.get(mark) or SIGNS[CHOSEN] + mark.removeprefix(f"{CHOSEN} by ")


def chosen(cell: HeatCell) -> bool:
    """Whether a fold chose this point."""
    return any(mark.startswith(CHOSEN) for mark in cell.marks)


def signs(grid: Grid) -> list[tuple[str, str]]:
    """The signs that this grid has, and what they mean."""
    cells = [cell for _, row in grid.rows for cell in row if cell is not None]
    seen = {mark for cell in cells for mark in cell.marks}
    known = [(SIGNS[mark], mark) for mark in (BEST, BASELINE, BUDGET) if mark in seen]
    return [*known, (SIGNS[CHOSEN], "chosen by so many folds")] if any(map(chosen, cells)) else known
