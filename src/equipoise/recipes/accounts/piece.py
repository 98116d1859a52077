"""One embedder at one dimension with one seed as a cell of an engine: embedded, and judged."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from time import perf_counter

from equipoise.hierarchy.embedded import Embedded
from equipoise.hierarchy.tree import Tree
from equipoise.recipes.accounts.branches import Branches
from equipoise.recipes.accounts.findings import quiet_baseline
from equipoise.recipes.accounts.judged import Judged, judge
from equipoise.recipes.accounts.settings import Cell, Settings
from equipoise.recipes.accounts.training import Progress, trained
from equipoise.run.progress import Step
from equipoise.stats.terms import GRID, TRIALS


@dataclass(frozen=True)
class Piece:
    """What is made: a cell with a seed; ``kept`` are its vectors, where they were made before."""

    cell: Cell
    seed: int
    is_first: bool = True
    kept: Embedded | None = field(default=None, repr=False)

    @property
    def name(self) -> str:
        """What is told of it while it is made."""
        return self.cell.system if self.is_first else f"{self.cell.system}, seed {self.seed}"


@dataclass(frozen=True)
class Ground:
    """What all pieces share."""

    tree: Tree
    settings: Settings
    branches: Branches
    progress: Progress | None = None

    def judged(self, system: str, embedded: Embedded, cell: Cell | None = None) -> Judged:
        """Vectors judged; those of a cell with the terms that it was made on."""
        found = judge(self.tree, embedded, system=system, branches=self.branches, **self.settings.judging)
        if cell is None:
            return found
        result = quiet_baseline(found.result, cell, self.settings)
        if cell.is_trained:
            rates = list(self.settings.rates)
            terms = {TRIALS: len(rates), GRID: {"rate": rates}}
            result = replace(result, settings={**result.settings, **terms})
        return replace(found, result=result)


@dataclass(frozen=True)
class Made:
    """A piece that is finished, and the seconds that it took."""

    judged: Judged
    seconds: float


def make(piece: Piece, ground: Ground, step: Step) -> Made:
    """Train the piece, where it was not trained before, and judge it."""
    step(piece.name)
    begun = perf_counter()
    embedded = piece.kept or trained(ground.tree, piece.cell, ground.settings, piece.seed, ground.progress)
    judged = ground.judged(piece.cell.system, embedded, piece.cell)
    return Made(judged, perf_counter() - begun)
