"""A tree embedded in several ways and dimensions, each judged, and all compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any

from equipoise.errors import ParameterError
from equipoise.hierarchy.embedded import Embedded
from equipoise.hierarchy.tree import Tree
from equipoise.recipes.accounts.branches import resampled_branches
from equipoise.recipes.accounts.evaluation import AccountsEvaluation
from equipoise.recipes.accounts.judged import Judged
from equipoise.recipes.accounts.piece import Ground, Made, Piece, make
from equipoise.recipes.accounts.settings import DIMS, Cell, Settings, checked_settings
from equipoise.recipes.accounts.store import (
    kept_seed,
    kept_vectors,
    refuse_other_tree,
    vectors_key,
    write_judged,
    write_results,
    write_seed,
    write_tree,
)
from equipoise.recipes.accounts.training import Progress
from equipoise.recipes.accounts.vectors import in_order
from equipoise.run.engines.base import Engine
from equipoise.run.engines.local import LocalEngine
from equipoise.run.evaluate import compare
from equipoise.run.progress import Step, reported
from equipoise.stats.comparison import Comparison
from equipoise.stats.result import Result
from equipoise.stats.seeds import summarise_seeds
from equipoise.tasks.reconstruct import refuse_edgeless


def evaluate_tree(
    tree: Tree,
    geometry: str | Sequence[str] = "lorentz",
    dims: Sequence[int] = DIMS,
    *,
    vectors: Mapping[str, Embedded] | None = None,
    output: str | Path | None = None,
    command: Sequence[str] = (),
    step: Step | None = None,
    progress: Progress | None = None,
    engine: Engine | None = None,
    **settings: Any,
) -> AccountsEvaluation:
    """Embed a tree in every geometry at every dimension, judge each, and compare all of them.

    A euclidean embedding tuned at the same learning rates and a random one always stand beside. ``vectors``
    are embeddings that are there already, by name. ``settings`` are those of ``checked_settings``:
    ``embedders`` by name, ``relation``, ``filtered``, ``rates``, ``seeds``, ``level``, ``resamples``,
    ``seed``, ``device``. With an ``output`` folder everything is kept as soon as it is finished, and vectors
    of the same inputs are read back from it; a folder that holds another tree is refused. ``engine`` makes
    the embeddings elsewhere, with the same figures; ``progress`` of training is told in this process alone.

    >>> tree = Tree.from_edges([(f"{top}{sub}", top) for top in "abc" for sub in range(4)])
    >>> found = evaluate_tree(tree, "lorentz", [2], rates=[0.3], options={"epochs": 5}, resamples=50)
    >>> [each.system for each in found.judged]
    ['lorentz-2', 'euclidean-2', 'random-2']
    """
    refuse_device(settings.get("device"), engine or LocalEngine())
    ground = Ground(tree, checked_settings(geometry, dims, **settings), resampled_branches(tree), progress)
    work = _Work(ground, None if output is None else Path(output), tuple(command), engine or LocalEngine())
    own = {name: in_order(each, tree) for name, each in (vectors or {}).items()}
    _refuse_taken(own, ground.settings)
    refuse_edgeless(tree)
    if work.output is not None:
        refuse_other_tree(work.output, tree)
    pieces = work.pieces()
    with reported(output, "evaluation of a tree", len(own) + len(pieces), command=command, step=step) as tell:
        judged = [work.own(name, embedded, tell) for name, embedded in own.items()]
        judged += _over_seeds(pieces, work.made(pieces, tell), ground.settings)
    resumed = tuple(each.cell.system for each in pieces if each.is_first and each.kept is not None)
    comparison = compared([each.result for each in judged], ground.settings)
    found = AccountsEvaluation(tree, ground.settings, tuple(judged), comparison, ground.branches, resumed)
    if work.output is not None:
        write_results(work.output, found.to_dict())
    return found


def compared(results: Sequence[Result], settings: Settings) -> Comparison | None:
    """All pairs on mean rank and average precision; None for one embedding alone."""
    if len(results) < 2:
        return None
    primary = results[0].names[0]
    sure = settings.sure
    return compare(
        results,
        [primary, "MAP"],
        primary=primary,
        level=sure.level,
        resamples=sure.resamples,
        seed=sure.seed,
    )


def refuse_device(device: str | None, engine: Engine) -> None:
    """Whether cells find the same device elsewhere nobody knows; can be asked before anything is begun."""
    if device is not None and not isinstance(engine, LocalEngine):
        raise ParameterError(
            f"the device {device} can only be chosen on this machine, and the engine {engine.name} trains on "
            "the processors of its nodes",
            hint=f"leave out --device {device}, or --engine {engine.name}",
        )


@dataclass(frozen=True)
class _Work:
    """Where pieces are made, and where they are kept."""

    ground: Ground
    output: Path | None
    command: tuple[str, ...]
    engine: Engine

    def own(self, name: str, embedded: Embedded, tell: Step) -> Judged:
        """Vectors that were there already, judged and kept."""
        tell(f"judging {name}")
        begun = perf_counter()
        judged = self.ground.judged(name, embedded)
        self._keep(judged, perf_counter() - begun)
        return judged

    def pieces(self) -> list[Piece]:
        """Everything to be made, with the vectors that an earlier call has left of it."""
        found: list[Piece] = []
        for cell in self.ground.settings.cells:
            first, *more = self.ground.settings.seeds_of(cell)
            found.append(Piece(cell, first, True, kept_vectors(self.output, cell, self._key(cell, first))))
            found += [
                Piece(cell, seed, False, kept_seed(self.output, cell, seed, self._key(cell, seed)))
                for seed in more
            ]
        return found

    def made(self, pieces: Sequence[Piece], tell: Step) -> list[Judged]:
        """Every piece, kept as soon as it is finished.

        Elsewhere a piece that fails keeps no other from being finished; here nothing else is under way.
        """
        shared = self.ground if self._is_here else replace(self.ground, progress=None)
        done: dict[int, Judged] = {}
        failures: list[Exception] = []
        for each in self.engine.map(make, pieces, shared, step=tell):
            if isinstance(each.outcome, Exception):
                failures.append(each.outcome)
                if self._is_here:
                    break
                continue
            done[each.place] = each.outcome.judged
            self._keep_piece(pieces[each.place], each.outcome)
        if failures:
            raise failures[0]
        return [done[place] for place in range(len(pieces))]

    @property
    def _is_here(self) -> bool:
        return isinstance(self.engine, LocalEngine)

    def _key(self, cell: Cell, seed: int) -> str:
        return vectors_key(self.ground.tree, cell, self.ground.settings, seed)

    def _keep_piece(self, piece: Piece, made: Made) -> None:
        key = self._key(piece.cell, piece.seed)
        if piece.is_first:
            self._keep(made.judged, made.seconds, key)
        elif self.output is not None and piece.kept is None:
            write_seed(self.output, piece.cell, piece.seed, key, made.judged.embedded)

    def _keep(self, judged: Judged, seconds: float, key: str = "") -> None:
        """Write what was judged, and the tree with it: a folder never holds what could not be judged."""
        if self.output is not None:
            tree = self.ground.tree
            write_tree(self.output, tree)
            write_judged(self.output, tree, judged, key=key, command=self.command, seconds=seconds)


def _over_seeds(pieces: Sequence[Piece], judged: Sequence[Judged], settings: Settings) -> list[Judged]:
    """Each cell with its first seed, and mean and spread over all seeds where there are more than one."""
    by_cell: dict[Cell, list[Judged]] = {}
    for piece, each in zip(pieces, judged, strict=True):
        by_cell.setdefault(piece.cell, []).append(each)
    return [_spread(some, settings.sure.level) for some in by_cell.values()]


def _spread(judged: Sequence[Judged], level: float) -> Judged:
    first, *more = judged
    if not more:
        return first
    spread = {
        name: summarise_seeds([each.result.estimates[name].value for each in judged], level=level)
        for name in first.result.names
    }
    return replace(first, over_seeds=spread)


def _refuse_taken(own: Mapping[str, Embedded], settings: Settings) -> None:
    """Vectors of one's own may not bear the name of an embedding that is made here."""
    taken = [cell.system for cell in settings.cells if cell.system in own]
    if taken:
        raise ParameterError(
            f"the vectors {taken[0]} have the name of an embedding that is made here",
            hint="give them another name: mine=vectors.csv",
        )
