"""Run a benchmark: plan the jobs, evaluate them, and compare the systems on every data set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from equipoise import __version__
from equipoise.checks.base import run_checks
from equipoise.checks.models import TruncationStats
from equipoise.config import DEFAULT_STATS, StatsConfig
from equipoise.domains.bench.costs import SystemCost, dense_cost, retriever_cost
from equipoise.domains.bench.read_data import read_suite
from equipoise.domains.bench.results import BenchComparison, DataComparison, ScoredSystem
from equipoise.domains.bench.systems import (
    DEFAULT_DEPTH,
    RANDOM,
    SystemPool,
    SystemSpec,
    SystemVariants,
    encoder_keys,
    expand_systems,
)
from equipoise.errors import EquipoiseError, InputError, ParameterError, UnknownNameError
from equipoise.io.json import parse_json
from equipoise.io.splits import kfold_splits
from equipoise.io.text import open_text
from equipoise.models.dense import SHARDED_TEXTS, Truncation, dense_models, dense_parts, worst_truncation
from equipoise.runs.compare import compare as compare_systems
from equipoise.runs.evaluate import evaluate
from equipoise.runs.experiment_folder import OPTIONS, RESULTS, RUNS, ExperimentFolder, folder_names
from equipoise.runs.manifest import Manifest, read_manifest, redact_secrets
from equipoise.runs.progress_file import ProgressCallback, report_progress
from equipoise.runs.run_folder import load_run, save_run
from equipoise.runs.runner import (
    Job,
    JobContext,
    JobOutput,
    JobResults,
    StoredOutput,
    executor_map,
    resume_key,
    run_jobs,
)
from equipoise.stats.estimate import result_from_values
from equipoise.stats.result import WINDOW
from equipoise.stats.verdict import UNIT_NOUN, name_list
from equipoise.tuning.grid import FoldSelection, Params, Trial, TuningRecord, parameter_grid
from equipoise.tuning.nested_cv import NestedResult, fold_means, repeated_nested_cv

if TYPE_CHECKING:
    from equipoise.domains.bench.base_data import BenchData, BenchObservation
    from equipoise.domains.bench.systems import OpenSystem
    from equipoise.models.vector_cache import VectorCache
    from equipoise.runs.executors import Executor
    from equipoise.runs.unit_table import UnitContents
    from equipoise.stats.result import Result
    from equipoise.types import Floats


SHARDS = "shards"
"""The folder of vectors of large corpora in the output folder."""
DIVISIBLE_TEXTS = 10_000
"""From this number of documents on, several workers of a cluster share those of one model."""


def compare(
    models: str | Sequence[object] | Mapping[str, object],
    data: object,
    *,
    text: Sequence[str] = (),
    split: str | None = None,
    dims: Sequence[int] = (),
    dtypes: Sequence[str] = (),
    rerankers: Sequence[Any] = (),
    rerank_depth: int = DEFAULT_DEPTH,
    tune: Sequence[str] = (),
    baselines: bool = True,
    prices: Mapping[str, float] | None = None,
    config: StatsConfig = DEFAULT_STATS,
    cache: VectorCache | Path | str | bool | None = None,
    threads: int = 1,
    device: str | None = None,
    output: str | Path | None = None,
    progress: ProgressCallback | None = None,
    command: Sequence[str] = (),
    engine: Executor | None = None,
) -> BenchComparison:
    """Compare embedding models on your own data sets.

    Parameters
    ----------
    models
        Model specs (``minilm``, ``bm25:``, ``sum:minilm+bm25:``), objects with ``encode``, or a mapping from names to
        models.
    data
        One or several paths, frames, ``datasets`` objects, or kinds of data such as ``bench.Retrieval(...)``.
    text
        Columns of text.
    split
        The split of BEIR folders.
    dims
        Truncated dimensions, as variants of every model that embeds.
    dtypes
        Storage types, as variants of every model that embeds: float32, float16, int8 or binary.
    rerankers
        Rerankers such as ``maxsim:minilm``, or ``CrossEncoder`` objects, applied to the first hits of every system.
    rerank_depth
        Number of hits that are reranked.
    tune
        ``fusion`` adds a variant of every ``sum:`` fusion of two systems with a selected weight, ``depth`` one of every
        reranked system with a selected depth. They are scored by nested cross-validation over the queries.
    baselines
        Whether BM25, TF-IDF and random vectors are added.
    prices
        US dollars per million tokens by model, for hosted models.
    config
        Options of intervals and tests.
    cache
        The vector cache; False for none.
    threads
        Threads per model.
    device
        The device of sentence-transformers models, such as ``cuda``.
    output
        A folder for results.json and the run directories. A repeated call uses what is stored there.
    progress
        Called with the progress over the jobs.
    command
        The command line that is recorded in the manifests.
    engine
        Executor of the jobs, such as a Ray cluster; results do not depend on it.

    Returns
    -------
    BenchComparison
        One comparison per data set, the aggregate over data sets, costs and the decision.

    Examples
    --------
    >>> rows = [{"query": f"word{i}", "positive": f"a text on word{i}"} for i in range(12)]
    >>> comparison = compare(["hash"], [rows], baselines=False, cache=False)
    >>> comparison.datasets[0].data.kind, comparison.datasets[0].systems[0].name
    ('retrieval', 'hash')
    """
    variants = SystemVariants(
        dims=dims,
        dtypes=dtypes,
        rerankers=rerankers,
        rerank_depth=rerank_depth,
        tune=tune,
        baselines=baselines,
        device=device,
    )
    plan = plan_benchmark(models, data, variants, text=text, split=split, prices=prices, config=config, output=output)
    return run_benchmark(plan, cache=cache, threads=threads, progress=progress, command=command, engine=engine)


FAST_SHARE = 0.02
"""The expected time of a job that encodes no new texts, as a share of the time of one that does."""


@dataclass(frozen=True)
class BenchPlan:
    """The data sets, systems and jobs of a benchmark."""

    suite: Sequence[BenchData]
    systems: Sequence[SystemSpec]
    jobs: Sequence[Job[JobInputs]]
    folder: ExperimentFolder | None
    config: StatsConfig
    prices: Mapping[str, float]

    @cached_property
    def weights(self) -> dict[str, float]:
        """The expected relative time of each job by name, for the progress: most of it is for encoding new texts."""
        weights: dict[str, float] = {}
        encoded: set[tuple[str, int]] = set()
        for job in self.jobs:
            system, place = self.systems[job.inputs.system], job.inputs.data
            keys = {(key, place) for key in encoder_keys(system.model) if key != RANDOM}
            n_slow = len(keys - encoded) + (system.reranker is not None)
            encoded |= keys
            characters = sum(len(text) for texts in self.suite[place].texts for text in texts)
            weights[job.name] = characters * (n_slow or FAST_SHARE)
        return weights

    @property
    def key(self) -> str:
        """Equal for plans with equal results; empty if a Python object is among the systems."""
        keys = [job.key for job in self.jobs]
        return resume_key(keys) if all(keys) else ""

    def store(self, command: Sequence[str] = ()) -> BenchRunStore | None:
        """Where the results of the jobs are stored; None without an output folder."""
        if self.folder is None:
            return None
        return BenchRunStore(self.folder, self.systems, self.suite, self.config, tuple(command))

    def stored(self) -> dict[str, Any] | None:
        """The content of results.json, if the same plan has been finished before without failures."""
        store = self.store()
        if store is None or not self.key:
            return None
        try:
            content: Any = parse_json(open_text(store.folder.path / RESULTS))
        except EquipoiseError:
            return None
        if not isinstance(content, dict) or content.get("key") != self.key or content.get("failures"):
            return None
        return content if all(store.path(job).is_dir() for job in self.jobs) else None


def plan_benchmark(
    models: Any,
    data: Any,
    variants: SystemVariants,
    *,
    text: Sequence[str] = (),
    split: str | None = None,
    prices: Mapping[str, float] | None = None,
    config: StatsConfig = DEFAULT_STATS,
    output: str | Path | None = None,
) -> BenchPlan:
    """Read the data and list the systems; no model is loaded. The parameters are those of ``compare``."""
    suite = read_suite(data, text=text, split=split)
    systems = expand_systems(models, variants, suite)
    for name, price in (prices or {}).items():
        if name not in (known := [system.name for system in systems]):
            raise UnknownNameError.of("model", name, known, more=f"the models are {', '.join(known)}")
        if not (isfinite(price) and price >= 0):
            raise ParameterError(
                f"the price of {name} is {price:g}", hint="give US dollars per million tokens, 0 or more"
            )
    jobs, folder = plan_jobs(systems, suite, config, prices or {}), ExperimentFolder.of(output)
    if folder is not None:
        datasets = {data.name: data.fingerprint for data in suite}
        folder.check_same_data(
            datasets, is_further=lambda manifest: manifest.parameters.get("dataset") not in (None, *datasets)
        )
    plan = BenchPlan(suite, systems, jobs, folder, config, prices or {})
    if (store := plan.store()) is not None:
        store.folder.check_same_options(map(store.path, jobs), resume_key(config))
    return plan


def run_benchmark(
    plan: BenchPlan,
    *,
    cache: VectorCache | Path | str | bool | None = None,
    threads: int = 1,
    progress: ProgressCallback | None = None,
    command: Sequence[str] = (),
    engine: Executor | None = None,
) -> BenchComparison:
    """Run the jobs of a plan that are not stored, and compare all results."""
    folder, store = None if plan.folder is None else plan.folder.path, plan.store(command)
    pool = SystemPool(cache=cache, threads=threads)
    for system in plan.systems:
        if system.reranker is not None:
            pool.reranker(system.reranker)  # one that cannot be opened is an error before any model is loaded
    try:
        with report_progress(folder, "benchmark", len(plan.jobs) + 1, command=command, step=progress) as step:
            results = run_jobs(
                evaluate_job,
                plan.jobs,
                BenchContext(plan.systems, plan.suite, plan.config, plan.prices, pool, folder and folder / SHARDS),
                executor=engine,
                store=store,
                progress=step,
                n_cores=threads,
            )
            step("comparing the systems")
            comparison = collect(plan, results)
            if store is not None:
                paths = [store.path(job) for job in plan.jobs if job.name in results.outputs]
                comparison.write(store.folder.path, paths)
            return comparison
    finally:
        pool.keep_only(())


def collect(plan: BenchPlan, results: JobResults[ScoredSystem]) -> BenchComparison:
    """All results by data set, compared; if nothing could be evaluated, the first error is raised."""
    if not plan.jobs:
        raise InputError(
            "no system can be evaluated on these data: " + "; ".join(_skipped(plan)),
            hint="name a model that embeds with --models",
        )
    results.raise_if_all_failed()
    outputs = results.outputs
    scored = {job.inputs: outputs[job.name] for job in plan.jobs if job.name in outputs}
    datasets = []
    for place, data in enumerate(plan.suite):
        systems = [system for inputs, system in scored.items() if inputs.data == place]
        if systems:
            datasets.append(DataComparison(data, systems, _compared(systems, data, plan.config)))
    baselines = [system.name for system in plan.systems if system.baseline]
    return BenchComparison(datasets, results.failures, _skipped(plan), baselines, plan.config, plan.key)


def _skipped(plan: BenchPlan) -> list[str]:
    """The requested systems that do not apply to some kinds of data, with these kinds."""
    skipped = []
    for system in plan.systems:
        kinds = list(dict.fromkeys(data.kind for data in plan.suite if not system.applies_to(data)))
        if kinds and not system.baseline:
            need = "needs" if len(kinds) == 1 else "need"
            skipped.append(f"{system.name} on {name_list(kinds)}, which {need} vectors")
    return skipped


def _compared(scored: Sequence[ScoredSystem], data: BenchData, config: StatsConfig) -> Any:
    """The paired comparison on the primary metric; None for a single system."""
    if len(scored) < 2:
        return None
    return compare_systems([system.result for system in scored], [data.primary], primary=data.primary, config=config)


PROTOCOL = "bench 4"
"""Part of the key of stored runs; it changes when the same inputs would give other scores."""


class JobInputs(NamedTuple):
    """The positions of a system and of a data set in the ``BenchContext``, which is sent once per run."""

    system: int
    data: int


@dataclass(frozen=True)
class BenchContext:
    """The shared context of all jobs: systems, data sets, statistics, prices, and loaded systems."""

    systems: Sequence[SystemSpec]
    suite: Sequence[BenchData]
    config: StatsConfig
    prices: Mapping[str, float]
    pool: SystemPool
    shards: Path | None = None
    """Where the vectors of large corpora are kept."""


def plan_jobs(
    systems: Sequence[SystemSpec], suite: Sequence[BenchData], config: StatsConfig, prices: Mapping[str, float]
) -> list[Job[JobInputs]]:
    """The jobs in the order in which they run: all data sets of a system, one system after another.

    The job of a Python object has no key: its name does not identify it, so it is computed again.
    """
    return [
        Job(
            f"{system.name} on {data.name}",
            JobInputs(row, column),
            _key(system, data, config, prices.get(system.name)) if system.repeatable else "",
            divisible=bool(encoder_keys(system.model)) and len(data.texts[1]) >= DIVISIBLE_TEXTS,
        )
        for row, system in enumerate(systems)
        for column, data in enumerate(suite)
        if system.applies_to(data)
    ]


def evaluate_job(job: Job[JobInputs], context: JobContext[BenchContext]) -> JobOutput[ScoredSystem]:
    """Evaluate a system on a data set, and measure its cost."""
    shared = context.shared
    spec, data = shared.systems[job.inputs.system], shared.suite[job.inputs.data]
    context.progress(job.name)
    shared.pool.keep_only(shared.systems[job.inputs.system :])
    if spec.tune:
        tuned = evaluate_tuned(spec, data, shared.pool, _own_config(data, shared.config))
        result = replace(tuned.result, settings={**tuned.result.settings, **_settings(data)})
        best = shared.pool.open(tuned.best)
        result = with_truncation(result, best, data)
        cost = retriever_cost(best, data)
        return JobOutput(ScoredSystem(spec.name, result, cost, details=tuned.details, tuning=tuned.record))
    system = shared.pool.open(spec)
    for dense in dense_parts(system.retriever):
        dense.shard_folder = shared.shards
        if context.executor is not None:
            dense.map_function = executor_map(context.executor, n_cores=shared.pool.threads)
    encoder = shared.pool.encoder_of(system)
    before = None if encoder is None else deepcopy(encoder.use)
    observed = data.observe(system, seed=shared.config.seed)
    result = with_truncation(score(data, observed, spec.name, shared.config), system, data)
    if encoder is not None and before is not None and spec.reranker is None:
        cost = dense_cost(system, encoder, encoder.use.since(before), data, shared.prices.get(spec.name))
    else:
        cost = retriever_cost(system, data)
    return JobOutput(ScoredSystem(spec.name, result, cost, details=observed.details))


def score(data: BenchData, observed: BenchObservation, system: str, config: StatsConfig) -> Result:
    """The result of a system: every metric of the kind with interval and chance level."""
    data_config, settings = _own_config(data, config), _settings(data)
    if observed.evidence is None:
        values, chance = dict(observed.values), dict(observed.chance)
        return result_from_values(system, data.unit_ids, values, chance=chance, config=data_config, settings=settings)
    names = [name for name in data.metrics if name not in observed.further]
    result = evaluate(observed.evidence, names, system=system, config=data_config)
    estimates, per_unit = dict(result.estimates), dict(result.per_unit)
    for name, (evidence, metric) in observed.further.items():
        more = evaluate(evidence, metric, system=system, config=data_config)
        estimates[name] = replace(more.estimates[metric], metric=name)
        if metric in more.per_unit:
            per_unit[name] = more.per_unit[metric]
    # Random vectors are expected to score at chance.
    findings = () if system == RANDOM else result.findings
    return replace(
        result, estimates=estimates, per_unit=per_unit, settings={**result.settings, **settings}, findings=findings
    )


def with_truncation(result: Result, system: OpenSystem, data: BenchData) -> Result:
    """The result with the share of the documents that exceed the input window of the model, and a finding about it.

    Tokens are not counted for documents in shards, and for random vectors.
    """
    documents = data.texts[1]
    if system.spec.name == RANDOM or len(documents) >= SHARDED_TEXTS:
        return result
    cut = worst_truncation(system.retriever, documents) or Truncation(len(documents), 0, 0)
    windows = [model.card.max_tokens for model in dense_models(system.retriever)]
    tokens = min((window for window in windows if window is not None), default=None)
    window = {"tokens": tokens, "texts": cut.texts, "truncated": cut.truncated}
    findings = run_checks(TruncationStats(result.system, tokens, cut.texts, cut.truncated, cut.lost_tokens))
    return replace(result, settings={**result.settings, WINDOW: window}, findings=(*result.findings, *findings))


def _own_config(data: BenchData, config: StatsConfig) -> StatsConfig:
    return config if data.clusters is None else replace(config, clusters=data.clusters)


def _settings(data: BenchData) -> dict[str, Any]:
    """The settings of a result that describe its data set."""
    return {"data": {data.name: data.fingerprint}, "kind": data.kind, UNIT_NOUN: data.unit}


@dataclass(frozen=True)
class BenchRunStore:
    """The run directories ``runs/DATA/SYSTEM``; their manifests have the resume keys."""

    folder: ExperimentFolder
    systems: Sequence[SystemSpec]
    suite: Sequence[BenchData]
    config: StatsConfig
    command: Sequence[str] = ()

    def check_writable(self) -> None:
        """Raise ``StoreError`` if the output folder cannot be written."""
        self.folder.check_writable()

    def load(self, job: Job[JobInputs]) -> StoredOutput[ScoredSystem] | None:
        """The finished run with the key of the job; None if there is none."""
        path = self.path(job)
        try:
            manifest = read_manifest(path)
            if not job.key or manifest.parameters.get("key") != job.key or not manifest.complete:
                return None
            run = load_run(path)
        except (EquipoiseError, OSError):
            return None
        name, cost = self.systems[job.inputs.system].name, SystemCost.from_dict(manifest.cost)
        return StoredOutput(job.key, ScoredSystem(name, run.result, cost, resumed=True, tuning=run.tuning))

    def save(self, job: Job[JobInputs], value: ScoredSystem, *, key: str, seconds: float) -> None:
        """Write the run directory of a job."""
        data, path, tuning = self.suite[job.inputs.data], self.path(job), value.tuning
        selected = {} if tuning is None else tuning.trials[tuning.best].params
        manifest = Manifest(
            system=value.name,
            command=redact_secrets(self.command),
            seed=self.config.seed,
            datasets={data.name: data.fingerprint},
            inputs={OPTIONS: resume_key(self.config)},
            parameters={"key": key, "model": value.name, "kind": data.kind, "dataset": data.name, **selected},
            cost=value.cost.to_dict(),
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        save_run(path, value.result, manifest=manifest, details=value.details, tuning=value.tuning)

    def path(self, job: Job[JobInputs]) -> Path:
        """The run directory of a job."""
        data, system = self.suite[job.inputs.data].name, self.systems[job.inputs.system].name
        return self.folder.path / RUNS / self._data_folders[data] / self._system_folders[system]

    @cached_property
    def _data_folders(self) -> dict[str, str]:
        return folder_names(data.name for data in self.suite)

    @cached_property
    def _system_folders(self) -> dict[str, str]:
        return folder_names(system.name for system in self.systems)


def _key(system: SystemSpec, data: BenchData, config: StatsConfig, price: float | None) -> str:
    """The facts that a stored run depends on."""
    prices = () if price is None else (price,)
    return resume_key(PROTOCOL, __version__, system.version(), data.fingerprint, config, data.metrics, *prices)


WEIGHTS = tuple(step / 10 for step in range(1, 10))
"""Weights of the first part of a fusion; that of the second is 1 minus it."""
DEPTHS = (10, 20, 50, 100)
FOLDS, SPLITS = 5, 5
_STREAM = 29
_TRIAL_RESAMPLES = 100
"""The intervals of single trials are not used."""


@dataclass(frozen=True)
class TunedResult:
    """The held-out result of a tuned system, its trials, and the system with the parameters selected on all units."""

    result: Result
    record: TuningRecord
    best: SystemSpec
    details: UnitContents


def trial_systems(system: SystemSpec, n_documents: int) -> list[tuple[Params, SystemSpec]]:
    """The parameters and the system of every trial."""
    depths = [depth for depth in DEPTHS if depth <= n_documents] or [n_documents]
    axes: dict[str, Sequence[Any]] = {"weight": WEIGHTS, "depth": depths}
    used = {name: axes[name] for name, tunable in (("weight", "fusion"), ("depth", "depth")) if tunable in system.tune}
    return [(params, replace(system, tune=(), **params)) for params in parameter_grid(**used)]  # type: ignore[arg-type]


def evaluate_tuned(system: SystemSpec, data: BenchData, pool: SystemPool, config: StatsConfig) -> TunedResult:
    """Evaluate all trials, and score each query with the trials that were selected without it."""
    trials = trial_systems(system, len(data.texts[1]))
    observed: list[BenchObservation] = []
    results: list[Result] = []
    trial_config = replace(config, n_resamples=_TRIAL_RESAMPLES)
    for _, trial in trials:
        observation = data.observe(pool.open(trial), seed=config.seed)
        assert observation.evidence is not None  # systems without vectors apply only to rankings
        names = [name for name in data.metrics if name not in observation.further]
        results.append(evaluate(observation.evidence, names, config=trial_config, chance=not results))
        observed.append(observation)
    metrics = [name for name in results[0].names if all(name in result.per_unit for result in results)]
    unit_ids = results[0].unit_ids
    tables = {name: np.array([result.per_unit[name] for result in results]) for name in metrics}
    nested = _nested(tables[data.primary], unit_ids.tolist(), data, config)
    values = {name: _held_out(table, nested) for name, table in tables.items()}
    result = result_from_values(
        system.name,
        unit_ids,
        values,
        chance={name: results[0][name].chance for name in metrics},
        config=config,
    )
    record = _record(data.primary, trials, tables[data.primary], nested)
    details = {
        unit: observed[trial].details[unit]
        for unit, trial in zip(unit_ids.tolist(), nested.usual_trial.tolist(), strict=True)
        if unit in observed[trial].details
    }
    return TunedResult(result, record, trials[nested.best][1], details)


def _nested(table: Floats, unit_ids: list[Any], data: BenchData, config: StatsConfig) -> NestedResult:
    """Repeated nested cross-validation; units of one cluster are in one fold."""
    groups = None if data.clusters is None else [data.clusters[unit] for unit in unit_ids]
    n_folds = min(FOLDS, len(set(groups)) if groups is not None else len(unit_ids))
    rng = config.rng(_STREAM)
    return repeated_nested_cv(table, [kfold_splits(unit_ids, n_folds, groups=groups, rng=rng) for _ in range(SPLITS)])


def _held_out(table: Floats, nested: NestedResult) -> Floats:
    """The mean over the splits of the trials that were selected without each unit."""
    scores = table[nested.trial_of, np.arange(table.shape[1])]
    return fold_means(scores.T, np.ones((len(scores), 1)))[:, 0]


def _record(
    metric: str, trials: Sequence[tuple[Params, SystemSpec]], table: Floats, nested: NestedResult
) -> TuningRecord:
    means = fold_means(table, np.ones((table.shape[1], 1)))[:, 0]
    n_folds = len(nested.chosen) // len(nested.by_split)
    selections = []
    for trial in np.unique(nested.chosen).tolist():
        folds = np.flatnonzero(nested.chosen == trial)
        n_units = round(len(folds) * table.shape[1] / n_folds)
        inner, outer = float(nested.inner[folds].mean()), float(np.nanmean(nested.outer[folds]))
        selections.append(FoldSelection(trials[trial][0], inner, outer, n_units, len(folds)))
    return TuningRecord(
        metric=metric,
        trials=tuple(Trial(params, float(mean)) for (params, _), mean in zip(trials, means, strict=True)),
        best=nested.best,
        baseline=None,
        optimistic=nested.optimistic,
        nested=nested.value,
        folds=tuple(selections),
        splits=len(nested.by_split),
        split_sd=nested.split_sd,
    )
