"""Tuned systems: a fusion weight or a rerank depth, selected by nested cross-validation over the queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.errors import ParameterError
from equipoise.io.splits import kfold_splits
from equipoise.models.fusion import parse_fusion
from equipoise.models.retriever import is_fusion
from equipoise.runs.evaluate import evaluate
from equipoise.stats.estimate import result_from_values
from equipoise.tuning.grid import FoldSelection, Params, Trial, TuningRecord, parameter_grid
from equipoise.tuning.nested_cv import NestedResult, fold_means, repeated_choice

if TYPE_CHECKING:
    from equipoise.config import StatsConfig
    from equipoise.domains.bench.base_data import BenchData, BenchObservation
    from equipoise.domains.bench.systems import SystemPool, SystemSpec
    from equipoise.runs.unit_table import UnitContents
    from equipoise.stats.result import Result
    from equipoise.types import Floats

TUNABLE = ("fusion", "depth")
"""What ``--tune`` accepts: the weight of a ``sum:`` fusion of two systems, and the depth of a reranker."""
TUNED = " (tuned)"
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


def tuned_systems(systems: Sequence[SystemSpec], tune: Sequence[str]) -> list[SystemSpec]:
    """A tuned variant of each system that has a parameter to tune."""
    for name in tune:
        if name not in TUNABLE:
            raise ParameterError(f"{name!r} cannot be tuned", hint=f"choose {', '.join(TUNABLE)}")
    found = []
    for system in systems:
        own = tuple(name for name in TUNABLE if name in tune and _applies(name, system))
        if own:
            found.append(replace(system, name=f"{system.name}{TUNED}", tune=own))
    missing = [name for name in tune if not any(name in system.tune for system in found)]
    if missing:
        needs = {"fusion": "a fusion of two systems (--models sum:a+b)", "depth": "a reranker (--rerankers SPEC)"}
        raise ParameterError(
            f"no system has a parameter {missing[0]} to tune", hint=f"tuning {missing[0]} needs {needs[missing[0]]}"
        )
    return found


def _applies(name: str, system: SystemSpec) -> bool:
    if name == "depth":
        return system.reranker is not None
    if not (isinstance(system.model, str) and is_fusion(system.model)):
        return False
    kind, _, parts = parse_fusion(system.model)
    return kind == "sum" and len(parts) == 2


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
    return repeated_choice(table, [kfold_splits(unit_ids, n_folds, groups=groups, rng=rng) for _ in range(SPLITS)])


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
