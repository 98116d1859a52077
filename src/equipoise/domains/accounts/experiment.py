"""The evaluation of a tree: embeddings of several embedders and dimensions, each evaluated, and all compared.

``tree_evaluation_config`` validates the options, ``run_embedding_job`` trains and evaluates one embedding, and
``evaluate_tree`` runs all jobs, stores their results and compares them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import numpy as np

from equipoise.checks.base import pluralize
from equipoise.config import DEFAULT_STATS, StatsConfig
from equipoise.domains.accounts.checks import without_chance_finding
from equipoise.domains.accounts.embedders import LorentzEmbedder, normalise_name, training_loss, tree_embedder
from equipoise.domains.accounts.evaluation import (
    BranchClusters,
    EmbeddingEvaluation,
    branch_clusters,
    check_has_edges,
    evaluate_embedding,
    mean_over_seeds,
)
from equipoise.domains.accounts.results import AccountsEvaluation, EmbeddingStore
from equipoise.domains.accounts.training.torch_backend import DEVICE_EMBEDDERS, device_config, fit_on_device
from equipoise.domains.accounts.training.trainer import default_restarts
from equipoise.domains.accounts.trees.tree import PARENT, RELATIONS, Tree
from equipoise.domains.accounts.vectors import NodeVectors, align_to_tree, in_geometry
from equipoise.errors import DuplicateError, ParameterError, UnknownNameError
from equipoise.geometry.gpu_search import check_device_name, torch_device
from equipoise.geometry.spaces import ALIASES
from equipoise.geometry.spaces import geometry as geometry_named
from equipoise.progress import portion, report_share
from equipoise.runs.compare import compare
from equipoise.runs.executors import Executor, LocalExecutor, check_device
from equipoise.runs.experiment_folder import ExperimentFolder
from equipoise.runs.progress_file import ProgressCallback, report_progress
from equipoise.runs.runner import Job, JobContext, JobOutput, run_jobs
from equipoise.stats.result import GRID, TRIALS
from equipoise.stats.seeds import summarise_seeds

DIMS = (2, 5, 10, 15, 25, 50)
"""The dimensions of the chart-of-accounts evaluation that ``AccountEmbedderTester`` follows."""
LEARNING_RATES = (0.1, 0.3, 1.0, 3.0)
"""Learning rates at which every trained embedder is tried; the lowest training loss decides."""
RANDOM = "random"
COMBINATORIAL = "combinatorial"
BASELINES = (COMBINATORIAL, "euclidean", RANDOM)
TRAINED = ("euclidean", "poincare", "lorentz")
HYPERBOLIC = ("poincare", "lorentz")
TEXT = "text:"


@dataclass(frozen=True)
class EmbeddingSpec:
    """One embedder at one dimension; None is the full dimension of a text model."""

    embedder: str
    dim: int | None

    @property
    def system(self) -> str:
        """Name in tables."""
        return self.embedder if self.dim is None else f"{self.embedder}-{self.dim}"

    @property
    def is_trained(self) -> bool:
        """Whether it has a learning rate that can be tuned."""
        return self.embedder in TRAINED


@dataclass(frozen=True)
class TreeEvaluationConfig:
    """How trees are embedded and evaluated; ``training`` has the options of the trained embedders.

    These include the relation of training, by default that of the evaluation. With a ``device`` hyperbolic embedders
    are trained there, and all embeddings are ranked there.
    """

    embedders: tuple[str, ...] = ("lorentz",)
    dims: tuple[int, ...] = DIMS
    relation: str = "parent"
    filtered: bool | None = None
    learning_rates: tuple[float, ...] = LEARNING_RATES
    seeds: tuple[int, ...] = (0,)
    training: dict[str, Any] = field(default_factory=dict)
    stats: StatsConfig = DEFAULT_STATS
    device: str | None = None

    @property
    def specs(self) -> tuple[EmbeddingSpec, ...]:
        """All embeddings: the requested ones, then the baselines that were not requested."""
        names = (*self.embedders, *(name for name in BASELINES if name not in self.embedders))
        specs: list[EmbeddingSpec] = []
        for name in names:
            if name.startswith(TEXT):
                specs.append(EmbeddingSpec(name, None))
            else:
                # The construction needs two dimensions; as a baseline it is left out below.
                specs += [EmbeddingSpec(name, dim) for dim in self.dims if dim > 1 or name != COMBINATORIAL]
        return tuple(specs)

    def seeds_for(self, spec: EmbeddingSpec) -> tuple[int, ...]:
        """The seeds of a spec; a text model has no randomness and gets the first only."""
        return self.seeds if spec.dim is not None else self.seeds[:1]

    def is_on_device(self, spec: EmbeddingSpec) -> bool:
        """Whether a spec is trained on the device."""
        return self.device is not None and spec.embedder in DEVICE_EMBEDDERS

    def is_baseline(self, spec: EmbeddingSpec) -> bool:
        """Whether a spec is a baseline: a random embedding, or one of the others that was not requested."""
        return spec.embedder == RANDOM or spec.embedder not in self.embedders

    def same_points(self, spec: EmbeddingSpec) -> EmbeddingSpec | None:
        """The spec that has the same points in other coordinates: Lorentz and Poincare embeddings are trained once."""
        hyperbolic = [name for name in self.embedders if name in HYPERBOLIC]
        is_second = spec.embedder in hyperbolic[1:]
        return EmbeddingSpec(hyperbolic[0], spec.dim) if is_second else None


def tree_evaluation_config(
    geometry: str | Iterable[str] = "lorentz",
    dims: Iterable[int] = DIMS,
    *,
    embedders: Iterable[str] = (),
    relation: str = "parent",
    filtered: bool | None = None,
    learning_rates: Iterable[float] = LEARNING_RATES,
    seeds: int | Iterable[int] = (0,),
    training: dict[str, Any] | None = None,
    config: StatsConfig = DEFAULT_STATS,
    device: str | None = None,
) -> TreeEvaluationConfig:
    """Validate all options, and the availability of the device, before any work starts.

    >>> [spec.system for spec in tree_evaluation_config("hyperbolic_lorentz", [2]).specs]
    ['lorentz-2', 'combinatorial-2', 'euclidean-2', 'random-2']
    """
    geometries = [geometry] if isinstance(geometry, str) else list(geometry)
    for name in embedders:
        tree_embedder(name)  # an unknown name is an error with suggestions
    names = [*map(embedder_for_geometry, geometries), *map(normalise_name, embedders)]
    if relation not in RELATIONS:
        raise UnknownNameError.of("relation", relation, RELATIONS, more=f"there are: {', '.join(RELATIONS)}")
    training = {"train_relation": relation, **(training or {})}
    candidates = tuple(float(learning_rate) for learning_rate in learning_rates)
    if not candidates:
        raise ParameterError("no learning rate was given", hint="give one, such as 0.3")
    for learning_rate in candidates:
        tree_embedder("lorentz", **{**training, "learning_rate": learning_rate})
    if device is not None:
        check_device_name(device)
        device_config(training)
    checked_dims = _validate_integers(dims, "dimension", 1)
    for name in names:
        check_combinatorial_dim(name, min(checked_dims))
    settings = TreeEvaluationConfig(
        embedders=tuple(dict.fromkeys(names)),
        dims=checked_dims,
        relation=relation,
        filtered=filtered,
        learning_rates=candidates,
        seeds=_validate_integers([seeds] if isinstance(seeds, int) else seeds, "seed", 0),
        training=training,
        stats=config,
        device=device,
    )
    if device is not None:
        torch_device(device)
    return settings


def embedder_for_geometry(geometry: str) -> str:
    """The embedder that is trained in a geometry, under any name of the geometry.

    >>> embedder_for_geometry("hyperboloid")
    'lorentz'
    """
    try:
        space = geometry_named(geometry).name
    except UnknownNameError as error:
        similar = [*TRAINED, *(item for item, name in ALIASES.items() if name in TRAINED)]
        more = f"there are: {', '.join(TRAINED)}"
        raise UnknownNameError.of("geometry", geometry, similar, more=more) from error
    if space not in TRAINED:
        raise ParameterError(f"no tree embedder is trained in {space} space", hint=f"there are: {', '.join(TRAINED)}")
    return space


def check_combinatorial_dim(name: str, dim: int | None) -> None:
    """The combinatorial construction needs at least two dimensions."""
    if name == COMBINATORIAL and dim is not None and dim < 2:
        raise ParameterError(
            f"{name}-{dim}: the construction needs at least two dimensions",
            hint="request 2 or more dimensions",
        )


def _validate_integers(numbers: Iterable[int], what: str, least: int) -> tuple[int, ...]:
    values: Sequence[int] = list(numbers)
    if not values:
        raise ParameterError(f"no {what} was given", hint=f"give one, such as {max(least, 2)}")
    for number in values:
        if isinstance(number, bool) or int(number) != number or number < least:
            raise ParameterError(f"a {what} is {number}", hint=f"it is an integer of {least} or more")
    if len(set(values)) < len(values):
        raise DuplicateError(f"a {what} was given twice", hint="give each once")
    return tuple(int(number) for number in values)


Progress = Callable[[int, int], None]


def train_best_learning_rate(
    tree: Tree,
    spec: EmbeddingSpec,
    settings: TreeEvaluationConfig,
    seed: int,
    progress: Progress | None = None,
) -> NodeVectors:
    """The vectors of a spec.

    A trained embedder is tried from several starts, and from the best one at every learning rate of the configuration,
    euclidean and hyperbolic ones equally. The loss on the training pairs decides (``rank_loss``). A loss or a point
    that is not finite is never selected; if no learning rate gives finite points, that is an error.
    """
    if not spec.is_trained:
        return _fit(tree, spec, {}, seed, progress)
    learning_rates: Sequence[Any] = (
        [settings.training["learning_rate"]] if "learning_rate" in settings.training else settings.learning_rates
    )
    if settings.is_on_device(spec):
        candidates = []
        for number, learning_rate in enumerate(learning_rates):
            training = {**settings.training, "learning_rate": learning_rate}
            with portion(number / len(learning_rates), (number + 1) / len(learning_rates)):
                candidates.append(_fit(tree, spec, training, seed, progress, settings.device))
        return check_finite_vectors(min(candidates, key=training_loss), spec.system)
    default = tree_embedder(spec.embedder, **settings.training).config.learning_rate  # type: ignore[attr-defined]
    first, *others = sorted(learning_rates, key=lambda rate: abs(math.log(rate / default)))
    n_starts = settings.training.get("restarts") or default_restarts(len(tree.pairs(PARENT)))
    n_runs = n_starts + len(others)
    with portion(0.0, n_starts / n_runs):
        best = _fit(tree, spec, {**settings.training, "learning_rate": first}, seed, progress)
    start = int(best.settings["start"])
    for number, learning_rate in enumerate(others, n_starts):
        if training_loss(best) == 0.0:
            break
        training = {**settings.training, "learning_rate": learning_rate}
        with portion(number / n_runs, (number + 1) / n_runs):
            candidate = _fit(tree, spec, training, seed, progress, start=start)
        best = min(best, candidate, key=training_loss)
    return check_finite_vectors(best, spec.system)


def check_finite_vectors(vectors: NodeVectors, system: str) -> NodeVectors:
    """The same vectors; points that are not finite after training are an error."""
    n_invalid = int(np.count_nonzero(~np.isfinite(vectors.vectors).all(axis=1)))
    if n_invalid and vectors.history:
        learning_rate = vectors.settings.get("learning_rate")
        raise ParameterError(
            f"{system}: training at the learning rate {learning_rate} left {n_invalid:,} of "
            f"{pluralize(len(vectors.ids), 'point')} without finite coordinates",
            hint="try a smaller learning rate, such as 0.3",
        )
    return vectors


def _fit(
    tree: Tree,
    spec: EmbeddingSpec,
    training: dict[str, object],
    seed: int,
    progress: Progress | None,
    device: str | None = None,
    start: int | None = None,
) -> NodeVectors:
    def report(done: int, total: int) -> None:
        report_share(done, total)
        if progress is not None:
            progress(done, total)

    if device is not None and spec.dim is not None:
        return fit_on_device(device, spec.embedder, tree, spec.dim, seed, options=training, progress=report)
    embedder = tree_embedder(spec.embedder, **training)
    try:
        if start is not None and spec.dim is not None:
            assert isinstance(embedder, LorentzEmbedder)
            return embedder.fit_from(tree, spec.dim, seed, start, progress=report)
        # Without a dimension a text model keeps its full dimension.
        return embedder.fit(tree, spec.dim, seed, progress=report)  # type: ignore[arg-type]
    except ParameterError as error:
        raise ParameterError(f"{spec.system}: {error.message}", hint=error.hint) from error


@dataclass(frozen=True)
class EmbeddingInputs:
    """A spec with a seed, or vectors of the user without a spec; ``vectors`` are those that need no training."""

    system: str
    spec: EmbeddingSpec | None = None
    seed: int = 0
    is_first: bool = True
    vectors: NodeVectors | None = field(default=None, repr=False)

    @property
    def name(self) -> str:
        """The name of the job."""
        return self.system if self.is_first else f"{self.system}, seed {self.seed}"


@dataclass(frozen=True)
class EvaluationContext:
    """The inputs that all jobs share."""

    tree: Tree
    settings: TreeEvaluationConfig
    branches: BranchClusters
    progress: Progress | None = None

    def evaluate(self, system: str, vectors: NodeVectors, spec: EmbeddingSpec | None = None) -> EmbeddingEvaluation:
        """Evaluate vectors; the result of a spec records the tuning of its learning rate."""
        evaluation = evaluate_embedding(
            self.tree,
            vectors,
            system=system,
            branches=self.branches,
            relation=self.settings.relation,
            filtered=self.settings.filtered,
            config=self.settings.stats,
            device=self.settings.device,
        )
        if spec is None:
            return evaluation
        result = without_chance_finding(evaluation.result, spec, self.settings)
        if spec.is_trained:
            learning_rates = list(self.settings.learning_rates)
            tuning = {TRIALS: len(learning_rates), GRID: {"learning_rate": learning_rates}}
            result = replace(result, settings={**result.settings, **tuning})
        return replace(evaluation, result=result)


def run_embedding_job(
    job: Job[EmbeddingInputs], context: JobContext[EvaluationContext]
) -> JobOutput[EmbeddingEvaluation]:
    """Train the embedding, unless it has vectors, and evaluate it."""
    context.progress(job.name)
    shared, inputs = context.shared, job.inputs
    vectors = inputs.vectors
    if vectors is None:
        assert inputs.spec is not None
        vectors = train_best_learning_rate(shared.tree, inputs.spec, shared.settings, inputs.seed, shared.progress)
    return JobOutput(shared.evaluate(inputs.system, vectors, inputs.spec))


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
    """Embed a tree in every geometry at every dimension, evaluate each embedding, and compare all of them.

    The combinatorial construction, a Euclidean embedding that is tuned over the same learning rates and a random
    embedding are always included as baselines.

    Parameters
    ----------
    tree
        The tree.
    geometry
        Geometries of the trained embeddings.
    dims
        Dimensions of the embeddings.
    vectors
        Existing embeddings, by name.
    output
        Folder for all results. Each job is stored when it finishes, and stored vectors of the same inputs are reused. A
        folder with another tree is an error.
    command
        The command line that is recorded in the manifests.
    step
        Called with the progress over the jobs.
    progress
        Called with the progress of training, in this process only.
    engine
        Executor of the jobs; results do not depend on it.
    **settings
        Further options: ``embedders``, ``relation``, ``filtered``, ``learning_rates``, ``seeds``, ``training`` (fields
        of ``TrainingConfig``), ``config`` (a ``StatsConfig``) and ``device``.

    Returns
    -------
    AccountsEvaluation
        One evaluation per embedding, and their comparison.

    Examples
    --------
    >>> tree = Tree.from_edges([(f"{top}{sub}", top) for top in "abc" for sub in range(4)])
    >>> options = {"learning_rates": [0.3], "training": {"epochs": 5}, "config": StatsConfig(n_resamples=50)}
    >>> evaluation = evaluate_tree(tree, "lorentz", [2], **options)
    >>> [embedding.system for embedding in evaluation.evaluations]
    ['lorentz-2', 'combinatorial-2', 'euclidean-2', 'random-2']
    """
    engine = engine or LocalExecutor()
    check_device(settings.get("device"), engine)
    config = tree_evaluation_config(geometry, dims, **settings)
    # Training reports its progress only in this process.
    context = EvaluationContext(tree, config, branch_clusters(tree), None if engine.is_remote else progress)
    user_vectors = {name: align_to_tree(item, tree) for name, item in (vectors or {}).items()}
    _check_names_are_free(user_vectors, config)
    check_has_edges(tree)
    store = None
    if output is not None:
        ExperimentFolder(Path(output)).check_same_data({tree.source: tree.fingerprint})
        store = EmbeddingStore(Path(output), tree, config, tuple(command))
    existing = [Job(name, EmbeddingInputs(name, vectors=item)) for name, item in user_vectors.items()]
    inputs = _embedding_inputs(config, store)
    jobs = [Job(item.name, item) for item in inputs if item.spec is None or config.same_points(item.spec) is None]
    with report_progress(
        output, "evaluation of a tree", len(existing) + len(inputs), command=command, step=step
    ) as report:
        # Vectors of the user are inputs: if they are invalid, that is an error before any training.
        user_results = run_jobs(run_embedding_job, existing, context, store=store, progress=report, on_failure="finish")
        results = run_jobs(run_embedding_job, jobs, context, executor=engine, store=store, progress=report)
        converted = [Job(item.name, item) for item in _converted_inputs(inputs, results.outputs, config)]
        converted_results = run_jobs(run_embedding_job, converted, context, store=store, progress=report)
    outputs = {**results.outputs, **converted_results.outputs}
    evaluations = [*user_results.outputs.values(), *_summarise_seeds(inputs, outputs, config)]
    if not evaluations:
        raise next(iter(results.failures.values()))
    resumed = tuple(item.system for item in inputs if item.is_first and item.vectors is not None)
    results_of_all = [item.result for item in evaluations]
    primary = results_of_all[0].names[0]
    comparison = (
        compare(results_of_all, [primary, "MAP"], primary=primary, config=config.stats)
        if len(evaluations) > 1
        else None
    )
    result = AccountsEvaluation(
        tree, config, tuple(evaluations), comparison, context.branches, resumed, results.failures
    )
    if output is not None:
        ExperimentFolder(Path(output)).write_results(result.to_dict())
    return result


def _embedding_inputs(config: TreeEvaluationConfig, store: EmbeddingStore | None) -> list[EmbeddingInputs]:
    """All embeddings of a configuration, with the vectors that an earlier run stored."""
    return [
        EmbeddingInputs(
            spec.system, spec, seed, is_first, None if store is None else store.load_vectors(spec, seed, is_first)
        )
        for spec in config.specs
        for seed, is_first in zip(config.seeds_for(spec), chain([True], repeat(False)), strict=False)
    ]


UNTRAINED_SHARE = 0.05
"""The expected time of an embedding that is not trained, as a share of the time of a trained one."""


def job_weights(config: TreeEvaluationConfig) -> dict[str, float]:
    """The expected relative time of each job by name, for the progress."""
    return {
        item.name: 1.0 if item.spec.is_trained and config.same_points(item.spec) is None else UNTRAINED_SHARE
        for item in _embedding_inputs(config, None)
        if item.spec is not None
    }


def _converted_inputs(
    inputs: Sequence[EmbeddingInputs], outputs: Mapping[str, EmbeddingEvaluation], config: TreeEvaluationConfig
) -> list[EmbeddingInputs]:
    """The embeddings whose points were trained in other coordinates of the same space."""
    converted = []
    for item in inputs:
        config_of_points = None if item.spec is None else config.same_points(item.spec)
        trained = None if config_of_points is None else outputs.get(replace(item, system=config_of_points.system).name)
        if trained is not None:
            assert item.spec is not None
            vectors = in_geometry(trained.vectors, item.spec.embedder)
            converted.append(replace(item, vectors=vectors if item.vectors is None else item.vectors))
    return converted


def _summarise_seeds(
    inputs: Sequence[EmbeddingInputs], outputs: Mapping[str, EmbeddingEvaluation], config: TreeEvaluationConfig
) -> list[EmbeddingEvaluation]:
    """Each system with its mean result over seeds, and their variability if there are several."""
    by_system: dict[str, list[EmbeddingEvaluation]] = {}
    for item in inputs:
        if item.name in outputs and (item.is_first or item.system in by_system):
            by_system.setdefault(item.system, []).append(outputs[item.name])
    return [_with_seed_summaries(group, config.stats) for group in by_system.values()]


def _with_seed_summaries(evaluations: Sequence[EmbeddingEvaluation], config: StatsConfig) -> EmbeddingEvaluation:
    first, *more = evaluations
    if not more:
        return first
    summaries = {
        name: summarise_seeds(
            [evaluation.result.estimates[name].value for evaluation in evaluations],
            confidence_level=config.confidence_level,
        )
        for name in first.result.names
    }
    result = mean_over_seeds([evaluation.result for evaluation in evaluations], config)
    return replace(first, result=result, seed_summaries=summaries)


def _check_names_are_free(user_vectors: Mapping[str, NodeVectors], settings: TreeEvaluationConfig) -> None:
    """Vectors of the user may not have the name of an embedding that is computed here."""
    used_names = [spec.system for spec in settings.specs if spec.system in user_vectors]
    if used_names:
        raise ParameterError(
            f"the vectors {used_names[0]} have the name of an embedding that is computed here",
            hint="give them another name: mine=vectors.csv",
        )
