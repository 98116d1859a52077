"""Checks of models: the vector cache, truncated texts, the recall of an index, and how they were tuned."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isnan
from typing import TYPE_CHECKING, Self

from equipoise.checks.base import Observation, declared_checks, join_names, pluralize
from equipoise.models.retriever import FittedRetriever
from equipoise.models.vector_cache import VectorCache
from equipoise.stats.formatting import format_count, format_difference, format_value

if TYPE_CHECKING:
    from equipoise.tuning.grid import Trial, TuningRecord

MAX_RECALL_LOSS = 0.01
DEPTHS = ("top_k", "k", "depth")
"""Parameters of the retrieval depth: the first five results are part of the first ten."""
PLACES = 4
MAX_LISTED = 3


@dataclass(frozen=True)
class TruncationStats:
    """Truncation by the input window of a model: the window, the texts and what was truncated; None is unknown."""

    model: str
    tokens: int | None
    texts: int
    truncated: int | None
    lost_tokens: int | None


def cache_problem(cache: VectorCache) -> Iterator[Observation]:
    """EQ150: the file of the cache cannot be used, or parts of it failed verification."""
    for problem in cache.problems:
        yield Observation(problem.subject, problem.message, (str(cache.path),), problem.hint)


def truncated_texts(window: TruncationStats) -> Iterator[Observation]:
    """EQ151: texts longer than the input window of the model."""
    if window.truncated:
        reads = f"{format_count(window.tokens)} tokens" if window.tokens is not None else "its window"
        yield Observation(
            window.model,
            f"of {pluralize(window.texts, 'text')}, {format_count(window.truncated)} exceed {reads}; "
            f"{pluralize(window.lost_tokens or 0, 'token')} of them were not read",
            (f"{format_value(window.truncated / window.texts, 4)} of the texts",),
        )


def low_index_recall(system: FittedRetriever) -> Iterator[Observation]:
    """EQ152: the approximate index of a system misses what an exact search finds."""
    recall = system.index_recall
    if recall is not None and recall.recall < 1 - MAX_RECALL_LOSS:
        yield Observation(
            "the index",
            f"it returns {format_value(recall.recall, 4)} of the {recall.k} nearest neighbours on average, "
            f"{format_value(recall.worst, 4)} in the worst case",
            (f"{format_count(recall.complete)} of {pluralize(len(recall.per_query), 'query')} complete",),
        )


@dataclass(frozen=True)
class TunedSystem:
    """A system, its tuning, and whether its reported score is the nested one."""

    system: str
    tuning: TuningRecord
    nested: bool
    depths: Sequence[str] = DEPTHS

    @classmethod
    def of(cls, system: str, tuning: TuningRecord) -> Self:
        """A system that reports the nested score if its tuning has one, else that of the best trial."""
        return cls(system, tuning, nested=bool(tuning.folds))


def tuned_on_reported_units(tuned: TunedSystem) -> Iterator[Observation]:
    """EQ201: the score is that of the best of several trials, on the units that selected it."""
    tuning = tuned.tuning
    trials = len(tuning.affordable)
    if tuned.nested or trials < 2:
        return
    # A best trial outside the grid is that of the default parameters.
    compared = f"{trials} trials{'' if tuning.best < len(tuning.grid) else ' and the defaults'}"
    best = f"{tuning.trial_metric} {format_value(tuning.optimistic, PLACES)} is the best of {compared}"
    nested = f"the held-out score (nested cross-validation) is {format_value(tuning.nested, PLACES)}"
    yield Observation(
        tuned.system,
        f"{best}, selected and scored on the same data, so the score is optimistic",
        (best, *(() if isnan(tuning.nested) else (f"{nested}, {format_difference(-tuning.gap, PLACES)}",))),
    )


def monotone_parameter(tuned: TunedSystem) -> Iterator[Observation]:
    """EQ202: a retrieval depth was tuned without a cost, although more depth can only help."""
    tuning = tuned.tuning
    if tuning.budget is not None:
        return
    for axis in tuned.depths:
        series = _series(tuning.grid, axis)
        steps = [after.value - before.value for trials in series for before, after in pairwise(trials)]
        if steps and min(steps) >= 0 and max(steps) > 0:
            tuned_values = sorted({_number(trial, axis) for trials in series for trial in trials})
            yield Observation(
                tuned.system,
                f"{axis} was tuned over {join_names([f'{depth:g}' for depth in tuned_values])} without a budget; "
                f"{tuning.trial_metric} never falls as {axis} grows, so tuning selects the largest value",
                tuple(_values_by_parameter(trials, axis) for trials in series[:MAX_LISTED]),
            )


def _series(trials: Sequence[Trial], axis: str) -> list[list[Trial]]:
    """Groups of at least two trials that differ in this parameter only, sorted by its value."""
    groups: dict[tuple[object, ...], list[Trial]] = {}
    for trial in trials:
        if isinstance(trial.params.get(axis), int | float) and not isnan(trial.value):
            other_params = tuple(sorted((name, str(value)) for name, value in trial.params.items() if name != axis))
            groups.setdefault(other_params, []).append(trial)
    several = [group for group in groups.values() if len(group) > 1]
    return [sorted(group, key=lambda trial: _number(trial, axis)) for group in several]


def _number(trial: Trial, axis: str) -> float:
    return float(trial.params[axis] or 0)


def _values_by_parameter(trials: Sequence[Trial], axis: str) -> str:
    """``top_k 5: 0.7000, 10: 0.8000``, and the fixed parameters."""
    fixed = ", ".join(f"{name} {value}" for name, value in trials[0].params.items() if name != axis)
    steps = ", ".join(f"{_number(trial, axis):g}: {format_value(trial.value, PLACES)}" for trial in trials)
    return f"{axis} {steps}" + (f" ({fixed})" if fixed else "")


CHECKS = declared_checks(
    "equipoise.checks",
    {
        "EQ150": (VectorCache, cache_problem),
        "EQ151": (TruncationStats, truncated_texts),
        "EQ152": (FittedRetriever, low_index_recall),
        "EQ201": (TunedSystem, tuned_on_reported_units),
        "EQ202": (TunedSystem, monotone_parameter),
    },
)
