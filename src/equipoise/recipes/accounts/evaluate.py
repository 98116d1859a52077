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
from equipoise.recipes.accounts.branches import Branches, resampled_branches
from equipoise.recipes.accounts.evaluation import AccountsEvaluation
from equipoise.recipes.accounts.findings import quiet_baseline
from equipoise.recipes.accounts.judged import Judged, judge
from equipoise.recipes.accounts.settings import DIMS, Cell, Settings, checked_settings
from equipoise.recipes.accounts.store import (
    kept_vectors,
    refuse_other_tree,
    vectors_key,
    write_judged,
    write_results,
    write_tree,
)
from equipoise.recipes.accounts.training import Progress, trained
from equipoise.recipes.accounts.vectors import in_order
from equipoise.run.evaluate import compare
from equipoise.run.progress import Step, reported
from equipoise.stats.comparison import Comparison
from equipoise.stats.result import Result
from equipoise.stats.seeds import summarise_seeds
from equipoise.stats.terms import GRID, TRIALS
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
    **settings: Any,
) -> AccountsEvaluation:
    """Embed a tree in every geometry at every dimension, judge each, and compare all of them.

    A euclidean embedding tuned at the same learning rates and a random one always stand beside. ``vectors``
    are embeddings that are there already, by name. ``settings`` are those of ``checked_settings``:
    ``embedders`` by name, ``relation``, ``filtered``, ``rates``, ``seeds``, ``level``, ``resamples``,
    ``seed``. With an ``output`` folder everything is kept, and vectors of the same inputs are read back
    from it; a folder that holds another tree is refused.

    >>> tree = Tree.from_edges([(f"{top}{sub}", top) for top in "abc" for sub in range(4)])
    >>> found = evaluate_tree(tree, "lorentz", [2], rates=[0.3], options={"epochs": 5}, resamples=50)
    >>> [each.system for each in found.judged]
    ['lorentz-2', 'euclidean-2', 'random-2']
    """
    work = _Work(
        tree,
        checked_settings(geometry, dims, **settings),
        resampled_branches(tree),
        None if output is None else Path(output),
        tuple(command),
        progress,
    )
    own = {name: in_order(each, tree) for name, each in (vectors or {}).items()}
    _refuse_taken(own, work.settings)
    refuse_edgeless(tree)
    if work.output is not None:
        refuse_other_tree(work.output, tree)
    judged: list[Judged] = []
    resumed: list[str] = []
    total = len(own) + len(work.settings.cells)
    with reported(output, "evaluation of a tree", total, command=command, step=step) as tell:
        for name, embedded in own.items():
            tell(f"judging {name}")
            judged.append(work.own(name, embedded))
        for cell in work.settings.cells:
            tell(cell.system)
            found, again = work.cell(cell)
            judged.append(found)
            resumed += [cell.system] if again else []
    comparison = compared([each.result for each in judged], work.settings)
    found_all = AccountsEvaluation(
        tree, work.settings, tuple(judged), comparison, work.branches, tuple(resumed)
    )
    if work.output is not None:
        write_results(work.output, found_all.to_dict())
    return found_all


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


@dataclass(frozen=True)
class _Work:
    """What every cell needs besides itself."""

    tree: Tree
    settings: Settings
    branches: Branches
    output: Path | None
    command: tuple[str, ...]
    progress: Progress | None

    def own(self, name: str, embedded: Embedded) -> Judged:
        """Vectors that were there already."""
        begun = perf_counter()
        judged = self._judge(name, embedded)
        self._keep(judged, perf_counter() - begun)
        return judged

    def cell(self, cell: Cell) -> tuple[Judged, bool]:
        """A cell trained with the first seed and judged, and whether its vectors were read back."""
        begun = perf_counter()
        seed, *more = self.settings.seeds
        key = vectors_key(self.tree, cell, self.settings, seed)
        kept = kept_vectors(self.output, cell, key)
        embedded = kept or trained(self.tree, cell, self.settings, seed, self.progress)
        judged = self._over_seeds(cell, self._judge(cell.system, embedded, cell), more)
        self._keep(judged, perf_counter() - begun, key)
        return judged, kept is not None

    def _keep(self, judged: Judged, seconds: float, key: str = "") -> None:
        """Write what was judged, and the tree with it: a folder never holds what could not be judged."""
        if self.output is not None:
            write_tree(self.output, self.tree)
            write_judged(self.output, self.tree, judged, key=key, command=self.command, seconds=seconds)

    def _judge(self, system: str, embedded: Embedded, cell: Cell | None = None) -> Judged:
        judged = judge(self.tree, embedded, system=system, branches=self.branches, **self.settings.judging)
        if cell is None:
            return judged
        result = quiet_baseline(judged.result, cell, self.settings)
        if cell.is_trained:
            rates = list(self.settings.rates)
            terms = {TRIALS: len(rates), GRID: {"rate": rates}}
            result = replace(result, settings={**result.settings, **terms})
        return replace(judged, result=result)

    def _over_seeds(self, cell: Cell, first: Judged, seeds: Sequence[int]) -> Judged:
        """The same with mean and spread over all seeds, where there are more than one."""
        if not seeds or cell.dim is None:
            return first
        results = [first.result]
        for seed in seeds:
            embedded = trained(self.tree, cell, self.settings, seed, self.progress)
            results.append(self._judge(cell.system, embedded).result)
        spread = {
            name: summarise_seeds(
                [each.estimates[name].value for each in results], level=self.settings.sure.level
            )
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
