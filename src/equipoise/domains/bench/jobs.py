"""The jobs of a benchmark: one system on one data set each, stored as soon as it is finished."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equipoise import __version__
from equipoise.domains.bench.costs import SystemCost, dense_cost, retriever_cost
from equipoise.domains.bench.results import ScoredSystem
from equipoise.domains.bench.systems import OpenSystem, SystemPool, SystemSpec, encoder_keys
from equipoise.errors import EquipoiseError, PartialError
from equipoise.runs.evaluate import evaluate
from equipoise.runs.experiment import RUNS, folder_names
from equipoise.runs.manifest import Manifest, redact_secrets
from equipoise.runs.store import load_run, save_run
from equipoise.stats.estimate import result_from_values

if TYPE_CHECKING:
    from equipoise.config import StatsConfig
    from equipoise.domains.bench.data import BenchData, BenchObservation
    from equipoise.runs.executors import Executor
    from equipoise.runs.progress import ProgressCallback
    from equipoise.stats.result import Result

PROTOCOL = "bench 1"
"""Part of the key of stored runs; it changes when the same inputs would give other scores."""


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


Outcome = tuple[BenchJob, ScoredSystem | EquipoiseError]
"""A job with its result, or with the error of a system that failed."""


@dataclass(frozen=True)
class BenchContext:
    """What all jobs share: statistics, prices, the vector cache and threads per model."""

    config: StatsConfig
    prices: Mapping[str, float]
    cache: Any = None
    threads: int = 1


def run_jobs(
    jobs: Sequence[BenchJob],
    context: BenchContext,
    step: ProgressCallback,
    command: Sequence[str],
    engine: Executor | None = None,
) -> Iterator[Outcome]:
    """Every job once, in the order in which they are finished; each is stored before the next is awaited."""
    todo = []
    for job in jobs:
        stored = job.stored()
        if stored is None:
            todo.append(job)
        else:
            step(f"{job.system.name} on {job.data.name}")
            yield job, stored
    if engine is None or engine.name == "local":
        outcomes = evaluate_jobs(todo, context, step)
    else:
        outcomes = _evaluate_remotely(todo, context, step, engine)
    for job, outcome in outcomes:
        if isinstance(outcome, ScoredSystem) and job.path is not None:
            _save(job, outcome, command, context.config)
        yield job, outcome


def evaluate_jobs(jobs: Sequence[BenchJob], context: BenchContext, step: ProgressCallback) -> Iterator[Outcome]:
    """Evaluate the jobs one after another in this process; a system that fails does not stop the others."""
    pool = SystemPool(cache=context.cache, threads=context.threads)
    opened: OpenSystem | None = None
    broken: dict[str, EquipoiseError] = {}
    for place, job in enumerate(jobs):
        step(f"{job.system.name} on {job.data.name}")
        if job.system.name in broken:
            yield job, broken[job.system.name]
            continue
        try:
            if opened is None or opened.spec is not job.system:
                pool.keep_only(each.system for each in jobs[place:])
                opened = None
                opened = pool.open(job.system)
            scored = run_job(job, opened, pool, context.config, context.prices.get(job.system.name))
        except Exception as error:  # a failing model must not lose the results of the others
            failure = _as_our_error(job, error)
            if opened is None:
                broken[job.system.name] = failure
            yield job, failure
        else:
            yield job, scored
    pool.keep_only(())


def job_groups(jobs: Sequence[BenchJob]) -> list[list[BenchJob]]:
    """Jobs that share an encoder, directly or through others, are in one group."""
    groups: list[tuple[set[str], list[BenchJob]]] = []
    for job in jobs:
        keys = set(encoder_keys(job.system.model)) or {job.system.name}
        joined = [group for group in groups if group[0] & keys]
        groups = [group for group in groups if not group[0] & keys]
        groups.append(
            (keys.union(*(known for known, _ in joined)), [*(each for _, part in joined for each in part), job])
        )
    return [part for _, part in groups]


def _evaluate_remotely(
    jobs: Sequence[BenchJob], context: BenchContext, step: ProgressCallback, engine: Executor
) -> Iterator[Outcome]:
    """Evaluate each group of jobs on an executor."""
    groups = job_groups(jobs)
    for completed in engine.map(_evaluate_group, groups, context, progress=step, n_cores=context.threads):
        group = groups[completed.index]
        if isinstance(completed.outcome, Exception):
            yield from ((job, _as_our_error(job, completed.outcome)) for job in group)
        else:
            yield from zip(group, completed.outcome, strict=True)


def _evaluate_group(
    group: Sequence[BenchJob], context: BenchContext, step: ProgressCallback
) -> list[ScoredSystem | EquipoiseError]:
    return [outcome for _, outcome in evaluate_jobs(group, context, step)]


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


def score(data: BenchData, observed: BenchObservation, system: str, config: StatsConfig) -> Result:
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
