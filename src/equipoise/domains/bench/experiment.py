"""Run a benchmark: every system on every data set, stored as soon as it is finished, then compared."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equipoise import __version__
from equipoise.config import DEFAULT_STATS, StatsConfig
from equipoise.domains.bench.costs import SystemCost, dense_cost, retriever_cost
from equipoise.domains.bench.data import BenchData, Observation
from equipoise.domains.bench.recognition import read_suite
from equipoise.domains.bench.results import BenchComparison, DataComparison, ScoredSystem
from equipoise.domains.bench.systems import DEFAULT_DEPTH, OpenSystem, SystemPool, SystemSpec, expand_systems
from equipoise.errors import EquipoiseError, PartialError, StoreError
from equipoise.io.json import parse_json
from equipoise.io.text import open_text
from equipoise.runs.compare import compare as compare_systems
from equipoise.runs.evaluate import evaluate
from equipoise.runs.experiment import RESULTS, RUNS, check_writable, folder_names
from equipoise.runs.manifest import Manifest, redact_secrets
from equipoise.runs.progress import ProgressCallback, report_progress
from equipoise.runs.store import load_run, save_run
from equipoise.stats.estimate import result_from_values
from equipoise.stats.result import Result

if TYPE_CHECKING:
    from equipoise.models.cache import VectorCache

PROTOCOL = "bench 1"
"""Part of the key of stored runs; it changes when the same inputs would give other scores."""


def compare(
    models: Any,
    data: Any,
    *,
    text: Sequence[str] = (),
    split: str | None = None,
    dims: Sequence[int] = (),
    dtypes: Sequence[str] = (),
    rerankers: Sequence[str] = (),
    rerank_depth: int = DEFAULT_DEPTH,
    baselines: bool = True,
    prices: Mapping[str, float] | None = None,
    config: StatsConfig = DEFAULT_STATS,
    cache: VectorCache | Path | str | bool | None = None,
    threads: int = 1,
    device: str | None = None,
    output: str | Path | None = None,
    progress: ProgressCallback | None = None,
    command: Sequence[str] = (),
) -> BenchComparison:
    """Compare embedding models on your own data sets.

    Parameters
    ----------
    models
        Model specs (``minilm``, ``bm25:``, ``sum:minilm+bm25:``), objects with ``encode``, or a mapping from names to
        models.
    data
        Paths, frames, ``datasets`` objects or ``bench.Retrieval(...)`` and the like; one or several.
    text
        Columns of text.
    split
        The split of BEIR folders.
    dims
        Truncated dimensions, as variants of every model that embeds.
    dtypes
        Storage types, as variants of every model that embeds: float32, float16, int8 or binary.
    rerankers
        Rerankers such as ``maxsim:minilm``, applied to the first hits of every system.
    rerank_depth
        Number of hits that are reranked.
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
        The device of sentence-transformers models.
    output
        A folder for results.json and the run directories. A repeated call uses what is stored there.
    progress
        Called with the progress over the jobs.
    command
        The command line that is recorded in the manifests.

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
    plan = plan_benchmark(
        models,
        data,
        text=text,
        split=split,
        dims=dims,
        dtypes=dtypes,
        rerankers=rerankers,
        rerank_depth=rerank_depth,
        baselines=baselines,
        device=device,
        config=config,
        output=output,
    )
    return run_benchmark(plan, prices=prices, cache=cache, threads=threads, progress=progress, command=command)


@dataclass(frozen=True)
class BenchPlan:
    """What a benchmark consists of: data sets, systems and jobs."""

    suite: Sequence[BenchData]
    systems: Sequence[SystemSpec]
    jobs: Sequence[BenchJob]
    folder: Path | None
    config: StatsConfig

    @property
    def key(self) -> str:
        """Equal for plans with equal results."""
        return hashlib.sha256("".join(job.key for job in self.jobs).encode()).hexdigest()

    def stored(self) -> dict[str, Any] | None:
        """The content of results.json, if the same plan has been finished before without failures."""
        if self.folder is None or not all(system.repeatable for system in self.systems):
            return None
        try:
            content: Any = parse_json(open_text(self.folder / RESULTS))
        except EquipoiseError:
            return None
        if not isinstance(content, dict) or content.get("key") != self.key or content.get("failures"):
            return None
        return content if all(job.path is not None and job.path.is_dir() for job in self.jobs) else None


def plan_benchmark(
    models: Any,
    data: Any,
    *,
    text: Sequence[str] = (),
    split: str | None = None,
    dims: Sequence[int] = (),
    dtypes: Sequence[str] = (),
    rerankers: Sequence[str] = (),
    rerank_depth: int = DEFAULT_DEPTH,
    baselines: bool = True,
    device: str | None = None,
    config: StatsConfig = DEFAULT_STATS,
    output: str | Path | None = None,
) -> BenchPlan:
    """Read the data and list the systems; no model is loaded. The parameters are those of ``compare``."""
    suite = read_suite(data, text=text, split=split)
    systems = expand_systems(
        models,
        dims=dims,
        dtypes=dtypes,
        rerankers=rerankers,
        depth=rerank_depth,
        device=device,
        baselines=baselines,
        data=suite,
    )
    folder = None if output is None else Path(output)
    if folder is not None:
        check_writable(folder)
    return BenchPlan(suite, systems, plan_jobs(systems, suite, folder, config), folder, config)


def run_benchmark(
    plan: BenchPlan,
    *,
    prices: Mapping[str, float] | None = None,
    cache: VectorCache | Path | str | bool | None = None,
    threads: int = 1,
    progress: ProgressCallback | None = None,
    command: Sequence[str] = (),
) -> BenchComparison:
    """Run the jobs of a plan that are not stored, and compare all results."""
    pool = SystemPool(cache=cache, threads=threads)
    with report_progress(plan.folder, "benchmark", len(plan.jobs), command=command, step=progress) as step:
        outcomes = list(run_jobs(plan.jobs, pool, plan.config, step, prices or {}, command))
    comparison = collect(plan, outcomes)
    if plan.folder is not None:
        comparison.write(plan.folder)
    return comparison


@dataclass(frozen=True)
class BenchJob:
    """One system on one data set; ``path`` is where its run is stored."""

    system: SystemSpec
    data: BenchData
    path: Path | None
    key: str

    def stored(self) -> ScoredSystem | None:
        """The result of an earlier call with the same key; None if there is none."""
        if self.path is None or not self.system.repeatable:
            return None
        try:
            run = load_run(self.path)
        except EquipoiseError:
            return None
        if run.manifest.parameters.get("key") != self.key or not run.manifest.complete:
            return None
        return ScoredSystem(self.system.name, run.result, SystemCost.from_dict(run.manifest.cost), resumed=True)


def plan_jobs(
    systems: Sequence[SystemSpec], suite: Sequence[BenchData], folder: Path | None, config: StatsConfig
) -> list[BenchJob]:
    """The jobs in the order in which they run: all data sets of a system, one system after another."""
    names = folder_names(system.name for system in systems)
    data_folders = folder_names(data.name for data in suite)
    return [
        BenchJob(
            system,
            data,
            None if folder is None else folder / RUNS / data_folders[data.name] / names[system.name],
            _key(system, data, config),
        )
        for system in systems
        for data in suite
        if not system.why_not(data)
    ]


def run_jobs(
    jobs: Sequence[BenchJob],
    pool: SystemPool,
    config: StatsConfig,
    step: ProgressCallback,
    prices: Mapping[str, float],
    command: Sequence[str],
) -> Iterator[tuple[BenchJob, ScoredSystem | EquipoiseError]]:
    """Each job with its result, or the error of a system that failed; the others go on."""
    opened: OpenSystem | None = None
    broken: dict[str, EquipoiseError] = {}
    for place, job in enumerate(jobs):
        step(f"{job.system.name} on {job.data.name}")
        stored = job.stored()
        if stored is not None:
            yield job, stored
            continue
        if job.system.name in broken:
            yield job, broken[job.system.name]
            continue
        try:
            if opened is None or opened.spec is not job.system:
                pool.keep_only(each.system for each in jobs[place:])
                opened = None
                opened = pool.open(job.system)
            scored = run_job(job, opened, pool, config, prices.get(job.system.name))
        except Exception as error:  # a failing model must not lose the results of the others
            failure = _as_our_error(job, error)
            if opened is None:
                broken[job.system.name] = failure
            yield job, failure
            continue
        if job.path is not None:
            _save(job, scored, command, config)
        yield job, scored
    pool.keep_only(())


def run_job(
    job: BenchJob, system: OpenSystem, pool: SystemPool, config: StatsConfig, price: float | None
) -> ScoredSystem:
    """Evaluate an open system on a data set, and measure its cost."""
    encoder = pool.encoder_of(system)
    before = None if encoder is None else deepcopy(encoder.use)
    observed = job.data.observe(system, seed=config.seed)
    result = score(job.data, observed, job.system.name, config)
    if encoder is not None and before is not None and job.system.reranker is None:
        used = deepcopy(encoder.use)
        for role in used.texts:
            used.texts[role] -= before.texts[role]
            used.seconds[role] -= before.seconds[role]
        cost = dense_cost(system, encoder, used, job.data, price)
    else:
        cost = retriever_cost(system, job.data)
    return ScoredSystem(job.system.name, result, cost, details=observed.details)


def score(data: BenchData, observed: Observation, system: str, config: StatsConfig) -> Result:
    """The result of a system: every metric of the kind with interval and chance level."""
    own = config if data.clusters is None else replace(config, clusters=data.clusters)
    settings = {"data": {data.name: data.fingerprint}, "kind": data.kind}
    if observed.evidence is None:
        values, chance = dict(observed.values), dict(observed.chance)
        return result_from_values(system, data.unit_ids, values, chance=chance, config=own, settings=settings)
    names = [name for name in data.metrics if name not in observed.further]
    result = evaluate(observed.evidence, names, system=system, config=own)
    estimates, per_unit = dict(result.estimates), dict(result.per_unit)
    for name, (evidence, metric) in observed.further.items():
        more = evaluate(evidence, metric, system=system, config=own)
        estimates[name] = replace(more.estimates[metric], metric=name)
        if metric in more.per_unit:
            per_unit[name] = more.per_unit[metric]
    return replace(result, estimates=estimates, per_unit=per_unit, settings={**result.settings, **settings})


def collect(plan: BenchPlan, outcomes: Sequence[tuple[BenchJob, ScoredSystem | EquipoiseError]]) -> BenchComparison:
    """All results by data set, compared; if nothing could be evaluated, the first error is raised."""
    suite, systems, config = plan.suite, plan.systems, plan.config
    datasets = []
    failures: dict[str, EquipoiseError] = {}
    for data in suite:
        here = [(job, outcome) for job, outcome in outcomes if job.data is data]
        scored = [outcome for _, outcome in here if isinstance(outcome, ScoredSystem)]
        failures |= {
            f"{job.system.name} on {data.name}": outcome
            for job, outcome in here
            if not isinstance(outcome, ScoredSystem)
        }
        if scored:
            datasets.append(DataComparison(data, scored, _compared(scored, data, config)))
    if not datasets:
        raise next(iter(failures.values())) if failures else StoreError("there is nothing to evaluate")
    skipped = [
        reason for data in suite for system in systems if not system.baseline and (reason := system.why_not(data))
    ]
    baselines = [system.name for system in systems if system.baseline]
    return BenchComparison(datasets, failures, list(dict.fromkeys(skipped)), baselines, config, plan.key)


def _compared(scored: Sequence[ScoredSystem], data: BenchData, config: StatsConfig) -> Any:
    """The paired comparison on the primary metric; None for a single system."""
    if len(scored) < 2:
        return None
    return compare_systems([each.result for each in scored], [data.primary], primary=data.primary, config=config)


def _save(job: BenchJob, scored: ScoredSystem, command: Sequence[str], config: StatsConfig) -> None:
    assert job.path is not None
    manifest = Manifest(
        system=job.system.name,
        command=redact_secrets(command),
        seed=config.seed,
        datasets={job.data.name: job.data.fingerprint},
        parameters={"key": job.key, "model": job.system.name, "kind": job.data.kind, "dataset": job.data.name},
        cost=scored.cost.to_dict(),
    )
    job.path.parent.mkdir(parents=True, exist_ok=True)
    save_run(job.path, scored.result, manifest=manifest, details=scored.details)


def _key(system: SystemSpec, data: BenchData, config: StatsConfig) -> str:
    """What a stored run depends on."""
    parts = (PROTOCOL, __version__, system.version(), data.fingerprint, repr(config), repr(data.metrics))
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


def _as_our_error(job: BenchJob, error: Exception) -> EquipoiseError:
    if isinstance(error, EquipoiseError):
        return error
    failure = PartialError(
        f"{job.system.name} failed on {job.data.name} with {type(error).__name__}: {error}",
        hint="the other systems are not affected",
    )
    failure.__cause__ = error
    return failure
