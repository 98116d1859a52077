"""Cells in this process, one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from equipoise.run.engines.base import Cell, Engine, Finished, Function, Shared, Value
from equipoise.run.progress import Step


class LocalEngine(Engine):
    """Runs each cell when it is asked for; nothing is copied, so that anything may be a cell.

    >>> engine = LocalEngine()
    >>> [each.value() for each in engine.map(lambda cell, shared, step: cell * shared, [1, 2], 10)]
    [10, 20]
    """

    name = "local"

    def map(
        self,
        function: Function[Cell, Shared, Value],
        cells: Sequence[Cell],
        shared: Shared,
        *,
        step: Step | None = None,
        cores: int = 1,
    ) -> Iterator[Finished[Value]]:
        """Every cell in turn."""
        for place, cell in enumerate(cells):
            try:
                value = function(cell, shared, step or _silent)
            except Exception as error:  # whatever one cell does, the others go on
                yield Finished(place, error)
            else:
                yield Finished(place, value)


def _silent(text: str) -> None:
    """Nobody listens."""
