"""The jobs of a benchmark: one system on one data set each, stored as a run directory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from equipoise import __version__
from equipoise.domains.bench.costs import SystemCost, dense_cost, retriever_cost
from equipoise.domains.bench.results import ScoredSystem
from equipoise.domains.bench.systems import SystemPool, SystemSpec, encoder_keys
from equipoise.domains.bench.tuning import evaluate_tuned
from equipoise.errors import EquipoiseError
from equipoise.models.dense import dense_parts
from equipoise.runs.evaluate import evaluate
from equipoise.runs.experiment_folder import RUNS, ExperimentFolder, folder_names
from equipoise.runs.manifest import Manifest, read_manifest, redact_secrets
from equipoise.runs.runner import Job, JobContext, JobOutput, StoredOutput, executor_map, resume_key
from equipoise.runs.store import load_run, save_run
from equipoise.stats.estimate import result_from_values
from equipoise.stats.verdict import UNIT_NOUN

if TYPE_CHECKING:
    from equipoise.config import StatsConfig
    from equipoise.domains.bench.base_data import BenchData, BenchObservation
    from equipoise.stats.result import Result

PROTOCOL = "bench 2"
"""Part of the key of stored runs; it changes when the same inputs would give other scores."""


DIVISIBLE_TEXTS = 10_000
"""On a cluster, several workers share the documents of one model if there are so many."""


class JobInputs(NamedTuple):
    """The positions of a system and of a data set in the ``BenchContext``, which is sent once per run."""

    system: int
    data: int


@dataclass(frozen=True)
class BenchContext:
    """What all jobs share: systems, data sets, statistics, prices, and the systems that are loaded."""

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
        if not system.why_not(data)
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
        cost = retriever_cost(shared.pool.open(tuned.best), data)
        return JobOutput(ScoredSystem(spec.name, result, cost, details=tuned.details, tuning=tuned.record))
    system = shared.pool.open(spec)
    for dense in dense_parts(system.retriever):
        dense.shard_folder = shared.shards
        if context.executor is not None:
            dense.map_function = executor_map(context.executor, n_cores=shared.pool.threads)
    encoder = shared.pool.encoder_of(system)
    before = None if encoder is None else deepcopy(encoder.use)
    observed = data.observe(system, seed=shared.config.seed)
    result = score(data, observed, spec.name, shared.config)
    if encoder is not None and before is not None and spec.reranker is None:
        cost = dense_cost(system, encoder, encoder.use.since(before), data, shared.prices.get(spec.name))
    else:
        cost = retriever_cost(system, data)
    return JobOutput(ScoredSystem(spec.name, result, cost, details=observed.details))


def score(data: BenchData, observed: BenchObservation, system: str, config: StatsConfig) -> Result:
    """The result of a system: every metric of the kind with interval and chance level."""
    own, settings = _own_config(data, config), _settings(data)
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


def _own_config(data: BenchData, config: StatsConfig) -> StatsConfig:
    return config if data.clusters is None else replace(config, clusters=data.clusters)


def _settings(data: BenchData) -> dict[str, Any]:
    """What a result records of its data set."""
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
    """What a stored run depends on."""
    prices = () if price is None else (price,)
    return resume_key(PROTOCOL, __version__, system.version(), data.fingerprint, config, data.metrics, *prices)
