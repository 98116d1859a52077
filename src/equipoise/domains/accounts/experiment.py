"""A tree embedded in several ways and dimensions, each judged, and all compared."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf, isfinite
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.checks.base import pluralize
from equipoise.config import DEFAULT_STATS, StatsConfig
from equipoise.domains.accounts.checks import without_chance_finding
from equipoise.domains.accounts.embedders import normalise_name, tree_embedder
from equipoise.domains.accounts.evaluation import (
    BranchClusters,
    EmbeddingEvaluation,
    branch_clusters,
    evaluate_embedding,
)
from equipoise.domains.accounts.reconstruction import check_has_edges
from equipoise.domains.accounts.results import (
    AccountsEvaluation,
    check_same_tree,
    kept_seed,
    kept_vectors,
    vectors_fingerprint,
    write_judged,
    write_results,
    write_seed,
    write_tree,
)
from equipoise.domains.accounts.training.torch_backend import THERE, fitted_on, whole_schedule
from equipoise.domains.accounts.trees.tree import RELATIONS, Tree
from equipoise.domains.accounts.vectors import NodeVectors, align_to_tree
from equipoise.errors import DuplicateError, ParameterError, UnknownNameError
from equipoise.geometry.gpu_search import check_device_name, torch_device
from equipoise.geometry.spaces import ALIASES
from equipoise.geometry.spaces import geometry as geometry_named
from equipoise.runs.compare import compare
from equipoise.runs.executors import Executor, LocalExecutor
from equipoise.runs.progress import ProgressCallback, report_progress
from equipoise.stats.alignment import GRID, TRIALS
from equipoise.stats.seeds import summarise_seeds

if TYPE_CHECKING:
    from equipoise.stats.comparison import Comparison
    from equipoise.stats.result import Result

# What an evaluation of a tree is made of: which embedders at which dimensions, and how they are judged.

DIMS = (2, 5, 10, 15, 25, 50)
"""The dimensions of the source."""
LEARNING_RATES = (0.1, 0.3, 1.0, 3.0)
"""Learning rates at which every trained embedder is tried; the lowest loss decides."""
RANDOM = "random"
BASELINES = ("euclidean", RANDOM)
TRAINED = ("euclidean", "poincare", "lorentz")
TEXT = "text:"
COMBINATORIAL = "combinatorial"


@dataclass(frozen=True)
class EmbeddingSpec:
    """One embedder at one dimension; a text model has its own dimension (None)."""

    embedder: str
    dim: int | None

    @property
    def system(self) -> str:
        """What it is called in tables."""
        return self.embedder if self.dim is None else f"{self.embedder}-{self.dim}"

    @property
    def is_trained(self) -> bool:
        """Whether it has a learning rate that can be tuned."""
        return self.embedder in TRAINED


@dataclass(frozen=True)
class TreeEvaluationConfig:
    """How trees are embedded and judged; ``options`` go to the trained embedders.

    These hold the relation of training: that of judging, unless ``checked_settings`` was given another.

    On a ``device`` hyperbolic embedders are trained, and all embeddings are ranked.
    """

    embedders: tuple[str, ...] = ("lorentz",)
    dims: tuple[int, ...] = DIMS
    relation: str = "parent"
    filtered: bool | None = None
    rates: tuple[float, ...] = LEARNING_RATES
    seeds: tuple[int, ...] = (0,)
    options: dict[str, Any] = field(default_factory=dict)
    stats: StatsConfig = DEFAULT_STATS
    device: str | None = None

    @property
    def cells(self) -> tuple[EmbeddingSpec, ...]:
        """Everything to be embedded: what was asked for, then the baselines that were not."""
        names = (*self.embedders, *(name for name in BASELINES if name not in self.embedders))
        cells: list[EmbeddingSpec] = []
        for name in names:
            if name.startswith(TEXT):
                cells.append(EmbeddingSpec(name, None))
            else:
                cells += [EmbeddingSpec(name, dim) for dim in self.dims]
        return tuple(cells)

    def seeds_of(self, cell: EmbeddingSpec) -> tuple[int, ...]:
        """The seeds that a cell is made with; a text model knows none."""
        return self.seeds if cell.dim is not None else self.seeds[:1]

    def is_on_device(self, cell: EmbeddingSpec) -> bool:
        """Whether a cell is trained on the device."""
        return self.device is not None and cell.embedder in THERE

    def is_baseline(self, cell: EmbeddingSpec) -> bool:
        """Whether a cell only stands beside: a random embedding, or a euclidean one nobody asked for."""
        return cell.embedder == RANDOM or cell.embedder not in self.embedders

    @property
    def judging(self) -> dict[str, Any]:
        """How an embedding is judged, as arguments of ``judge``."""
        return {
            "relation": self.relation,
            "filtered": self.filtered,
            "config": self.stats,
            "device": self.device,
        }


def checked_settings(
    geometry: str | Iterable[str] = "lorentz",
    dims: Iterable[int] = DIMS,
    *,
    embedders: Iterable[str] = (),
    relation: str = "parent",
    filtered: bool | None = None,
    rates: Iterable[float] = LEARNING_RATES,
    seeds: int | Iterable[int] = (0,),
    options: dict[str, Any] | None = None,
    confidence_level: float = 0.95,
    n_resamples: int = 2000,
    seed: int = 0,
    device: str | None = None,
) -> TreeEvaluationConfig:
    """The settings, every word of them checked before any work begins, and whether the device is there.

    >>> [cell.system for cell in checked_settings("hyperbolic_lorentz", [2]).cells]
    ['lorentz-2', 'euclidean-2', 'random-2']
    """
    spaces = [geometry] if isinstance(geometry, str) else list(geometry)
    names = [*map(embedder_for_geometry, spaces), *(_known(name) for name in embedders)]
    if relation not in RELATIONS:
        raise UnknownNameError.of("relation", relation, RELATIONS, more=f"there are: {', '.join(RELATIONS)}")
    options = {"train_on": relation, **(options or {})}
    tried = tuple(float(rate) for rate in rates)
    if not tried:
        raise ParameterError("no learning rate is left to try", hint="name one: 0.3")
    for rate in tried:
        tree_embedder("lorentz", **{**options, "rate": rate})
    if device is not None:
        check_device_name(device)
        whole_schedule(options)
    chosen = _whole(dims, "dimension", 1)
    for name in names:
        check_combinatorial_dim(name, min(chosen))
    settings = TreeEvaluationConfig(
        embedders=tuple(dict.fromkeys(names)),
        dims=chosen,
        relation=relation,
        filtered=filtered,
        rates=tried,
        seeds=_whole([seeds] if isinstance(seeds, int) else seeds, "seed", 0),
        options=options,
        stats=StatsConfig(confidence_level=confidence_level, n_resamples=n_resamples, seed=seed),
        device=device,
    )
    if device is not None:
        torch_device(device)
    return settings


def embedder_for_geometry(geometry: str) -> str:
    """The embedder that is trained in a geometry, under any name of it.

    >>> embedder_for_geometry("hyperboloid")
    'lorentz'
    """
    try:
        space = geometry_named(geometry).name
    except UnknownNameError as error:
        near = [*TRAINED, *(each for each, name in ALIASES.items() if name in TRAINED)]
        more = f"there are: {', '.join(TRAINED)}"
        raise UnknownNameError.of("geometry", geometry, near, more=more) from error
    if space not in TRAINED:
        raise ParameterError(f"no tree embedder is trained in {space} space", hint=f"there are: {', '.join(TRAINED)}")
    return space


def check_combinatorial_dim(name: str, dim: int | None) -> None:
    """The combinatorial construction turns around its points, for which a line has no room."""
    if name == COMBINATORIAL and dim is not None and dim < 2:
        raise ParameterError(
            f"{name}-{dim}: the construction is made in a disk, which has two dimensions at least",
            hint="ask for 2 dimensions or more",
        )


def _known(name: str) -> str:
    """An embedder by name; one that nothing answers to is refused with a did-you-mean."""
    tree_embedder(name)
    return normalise_name(name)


def _whole(numbers: Iterable[int], what: str, least: int) -> tuple[int, ...]:
    found: Sequence[int] = list(numbers)
    if not found:
        raise ParameterError(f"no {what} was named", hint=f"name one, such as {max(least, 2)}")
    for number in found:
        if isinstance(number, bool) or int(number) != number or number < least:
            raise ParameterError(f"a {what} is {number}", hint=f"it is a whole number from {least}")
    if len(set(found)) < len(found):
        raise DuplicateError(f"a {what} was named twice", hint="name each once")
    return tuple(int(number) for number in found)


# One embedder at one dimension, trained at several learning rates; the lowest loss is kept.

Progress = Callable[[int, int], None]


def train_best_learning_rate(
    tree: Tree,
    cell: EmbeddingSpec,
    settings: TreeEvaluationConfig,
    seed: int,
    progress: Progress | None = None,
) -> NodeVectors:
    """The vectors of a cell.

    A trained embedder is tried at every rate of the settings, euclidean and hyperbolic alike. The loss at the
    end decides, not the figures that are reported later: these had no say in the choice. A loss or a point
    that is not finite never wins, and where no rate gives others that is an error.
    """
    if not cell.is_trained:
        return _fitted(tree, cell, {}, seed, progress)
    rates = [settings.options["rate"]] if "rate" in settings.options else settings.rates
    device = settings.device if settings.is_on_device(cell) else None
    tried = [_fitted(tree, cell, {**settings.options, "rate": rate}, seed, progress, device) for rate in rates]
    return check_finite_vectors(min(tried, key=_loss), cell.system)


def check_finite_vectors(found: NodeVectors, system: str) -> NodeVectors:
    """The same vectors, once it is known that training has not thrown them out of their space."""
    lost = int(np.count_nonzero(~np.isfinite(found.vectors).all(axis=1)))
    if lost and found.history:
        rate = found.settings.get("rate")
        raise ParameterError(
            f"{system}: training at the rate {rate} left {lost:,} of {pluralize(len(found.ids), 'point')} "
            "without finite coordinates",
            hint="try a smaller rate, such as 0.3",
        )
    return found


def _fitted(
    tree: Tree,
    cell: EmbeddingSpec,
    options: dict[str, object],
    seed: int,
    progress: Progress | None,
    device: str | None = None,
) -> NodeVectors:
    if device is not None and cell.dim is not None:
        return fitted_on(device, cell.embedder, tree, cell.dim, seed, options=options, progress=progress)
    made = tree_embedder(cell.embedder, **options)
    try:
        # A text model that is given no dimension keeps its own.
        return made.fit(tree, cell.dim, seed, progress=progress)  # type: ignore[arg-type]
    except ParameterError as error:
        raise ParameterError(f"{cell.system}: {error.message}", hint=error.hint) from error


def _loss(found: NodeVectors) -> float:
    """The mean loss of the last epoch; what never trained, or ended out of bounds, is better than nothing."""
    sound = found.history and isfinite(found.history[-1]) and np.isfinite(found.vectors).all()
    return found.history[-1] if sound else inf


# One embedder at one dimension with one seed as a cell of an engine: embedded, and judged.


@dataclass(frozen=True)
class EmbeddingJob:
    """What is made: a cell with a seed; ``kept`` are its vectors, where they were made before."""

    cell: EmbeddingSpec
    seed: int
    is_first: bool = True
    kept: NodeVectors | None = field(default=None, repr=False)

    @property
    def name(self) -> str:
        """What is told of it while it is made."""
        return self.cell.system if self.is_first else f"{self.cell.system}, seed {self.seed}"


@dataclass(frozen=True)
class EvaluationContext:
    """What all pieces share."""

    tree: Tree
    settings: TreeEvaluationConfig
    branches: BranchClusters
    progress: Progress | None = None

    def judged(self, system: str, embedded: NodeVectors, cell: EmbeddingSpec | None = None) -> EmbeddingEvaluation:
        """Vectors judged; those of a cell with the terms that it was made on."""
        found = evaluate_embedding(self.tree, embedded, system=system, branches=self.branches, **self.settings.judging)
        if cell is None:
            return found
        result = without_chance_finding(found.result, cell, self.settings)
        if cell.is_trained:
            rates = list(self.settings.rates)
            terms = {TRIALS: len(rates), GRID: {"rate": rates}}
            result = replace(result, settings={**result.settings, **terms})
        return replace(found, result=result)


@dataclass(frozen=True)
class Made:
    """A piece that is finished, and the seconds that it took."""

    judged: EmbeddingEvaluation
    seconds: float


def run_embedding_job(piece: EmbeddingJob, ground: EvaluationContext, step: ProgressCallback) -> Made:
    """Train the piece, where it was not trained before, and judge it."""
    step(piece.name)
    begun = perf_counter()
    embedded = piece.kept or train_best_learning_rate(
        ground.tree, piece.cell, ground.settings, piece.seed, ground.progress
    )
    judged = ground.judged(piece.cell.system, embedded, piece.cell)
    return Made(judged, perf_counter() - begun)


def evaluate_tree(
    tree: Tree,
    geometry: str | Sequence[str] = "lorentz",
    dims: Sequence[int] = DIMS,
    *,
    vectors: Mapping[str, NodeVectors] | None = None,
    output: str | Path | None = None,
    command: Sequence[str] = (),
    step: ProgressCallback | None = None,
    progress: Progress | None = None,
    engine: Executor | None = None,
    **settings: Any,
) -> AccountsEvaluation:
    """Embed a tree in every geometry at every dimension, judge each, and compare all of them.

    A euclidean embedding tuned at the same learning rates and a random one always stand beside. ``vectors``
    are embeddings that are there already, by name. ``settings`` are those of ``checked_settings``:
    ``embedders`` by name, ``relation``, ``filtered``, ``rates``, ``seeds``, ``confidence_level``, ``n_resamples``,
    ``seed``, ``device``. With an ``output`` folder everything is kept as soon as it is finished, and vectors
    of the same inputs are read back from it; a folder that holds another tree is refused. ``engine`` makes
    the embeddings elsewhere, with the same figures; ``progress`` of training is told in this process alone.

    >>> tree = Tree.from_edges([(f"{top}{sub}", top) for top in "abc" for sub in range(4)])
    >>> found = evaluate_tree(tree, "lorentz", [2], rates=[0.3], options={"epochs": 5}, n_resamples=50)
    >>> [each.system for each in found.judged]
    ['lorentz-2', 'euclidean-2', 'random-2']
    """
    check_device(settings.get("device"), engine or LocalExecutor())
    ground = EvaluationContext(tree, checked_settings(geometry, dims, **settings), branch_clusters(tree), progress)
    work = _Work(ground, None if output is None else Path(output), tuple(command), engine or LocalExecutor())
    own = {name: align_to_tree(each, tree) for name, each in (vectors or {}).items()}
    _refuse_taken(own, ground.settings)
    check_has_edges(tree)
    if work.output is not None:
        check_same_tree(work.output, tree)
    pieces = work.pieces()
    with report_progress(output, "evaluation of a tree", len(own) + len(pieces), command=command, step=step) as tell:
        judged = [work.own(name, embedded, tell) for name, embedded in own.items()]
        judged += _over_seeds(pieces, work.made(pieces, tell), ground.settings)
    resumed = tuple(each.cell.system for each in pieces if each.is_first and each.kept is not None)
    comparison = compare_embeddings([each.result for each in judged], ground.settings)
    found = AccountsEvaluation(tree, ground.settings, tuple(judged), comparison, ground.branches, resumed)
    if work.output is not None:
        write_results(work.output, found.to_dict())
    return found


def compare_embeddings(results: Sequence[Result], settings: TreeEvaluationConfig) -> Comparison | None:
    """All pairs on mean rank and average precision; None for one embedding alone."""
    if len(results) < 2:
        return None
    primary = results[0].names[0]
    return compare(
        results,
        [primary, "MAP"],
        primary=primary,
        config=settings.stats,
    )


def check_device(device: str | None, engine: Executor) -> None:
    """Whether cells find the same device elsewhere nobody knows; can be asked before anything is begun."""
    if device is not None and not isinstance(engine, LocalExecutor):
        raise ParameterError(
            f"the device {device} can only be chosen on this machine, and the engine {engine.name} trains on "
            "the processors of its nodes",
            hint=f"leave out --device {device}, or --engine {engine.name}",
        )


@dataclass(frozen=True)
class _Work:
    """Where pieces are made, and where they are kept."""

    ground: EvaluationContext
    output: Path | None
    command: tuple[str, ...]
    engine: Executor

    def own(self, name: str, embedded: NodeVectors, tell: ProgressCallback) -> EmbeddingEvaluation:
        """Vectors that were there already, judged and kept."""
        tell(f"judging {name}")
        begun = perf_counter()
        judged = self.ground.judged(name, embedded)
        self._keep(judged, perf_counter() - begun)
        return judged

    def pieces(self) -> list[EmbeddingJob]:
        """Everything to be made, with the vectors that an earlier call has left of it."""
        found: list[EmbeddingJob] = []
        for cell in self.ground.settings.cells:
            first, *more = self.ground.settings.seeds_of(cell)
            found.append(EmbeddingJob(cell, first, True, kept_vectors(self.output, cell, self._key(cell, first))))
            found += [
                EmbeddingJob(cell, seed, False, kept_seed(self.output, cell, seed, self._key(cell, seed)))
                for seed in more
            ]
        return found

    def made(self, pieces: Sequence[EmbeddingJob], tell: ProgressCallback) -> list[EmbeddingEvaluation]:
        """Every piece, kept as soon as it is finished.

        Elsewhere a piece that fails keeps no other from being finished; here nothing else is under way.
        """
        shared = self.ground if self._is_here else replace(self.ground, progress=None)
        done: dict[int, EmbeddingEvaluation] = {}
        failures: list[Exception] = []
        for each in self.engine.map(run_embedding_job, pieces, shared, step=tell):
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
        return isinstance(self.engine, LocalExecutor)

    def _key(self, cell: EmbeddingSpec, seed: int) -> str:
        return vectors_fingerprint(self.ground.tree, cell, self.ground.settings, seed)

    def _keep_piece(self, piece: EmbeddingJob, made: Made) -> None:
        key = self._key(piece.cell, piece.seed)
        if piece.is_first:
            self._keep(made.judged, made.seconds, key)
        elif self.output is not None and piece.kept is None:
            write_seed(self.output, piece.cell, piece.seed, key, made.judged.embedded)

    def _keep(self, judged: EmbeddingEvaluation, seconds: float, key: str = "") -> None:
        """Write what was judged, and the tree with it: a folder never holds what could not be judged."""
        if self.output is not None:
            tree = self.ground.tree
            write_tree(self.output, tree)
            write_judged(self.output, tree, judged, key=key, command=self.command, seconds=seconds)


def _over_seeds(
    pieces: Sequence[EmbeddingJob], judged: Sequence[EmbeddingEvaluation], settings: TreeEvaluationConfig
) -> list[EmbeddingEvaluation]:
    """Each cell with its first seed, and mean and spread over all seeds where there are more than one."""
    by_cell: dict[EmbeddingSpec, list[EmbeddingEvaluation]] = {}
    for piece, each in zip(pieces, judged, strict=True):
        by_cell.setdefault(piece.cell, []).append(each)
    return [_spread(some, settings.stats.confidence_level) for some in by_cell.values()]


def _spread(judged: Sequence[EmbeddingEvaluation], confidence_level: float) -> EmbeddingEvaluation:
    first, *more = judged
    if not more:
        return first
    spread = {
        name: summarise_seeds([each.result.estimates[name].value for each in judged], confidence_level=confidence_level)
        for name in first.result.names
    }
    return replace(first, over_seeds=spread)


def _refuse_taken(own: Mapping[str, NodeVectors], settings: TreeEvaluationConfig) -> None:
    """Vectors of one's own may not bear the name of an embedding that is made here."""
    taken = [cell.system for cell in settings.cells if cell.system in own]
    if taken:
        raise ParameterError(
            f"the vectors {taken[0]} have the name of an embedding that is made here",
            hint="give them another name: mine=vectors.csv",
        )
