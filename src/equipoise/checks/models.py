"""Checks of models: the vector cache, truncated texts, the recall of an index, and how they were tuned."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isnan
from typing import TYPE_CHECKING, Self

from equipoise.checks.base import Check, Observation, join_names, pluralize
from equipoise.models.cache import VectorCache
from equipoise.models.retriever import FittedRetriever
from equipoise.stats.formatting import format_count, format_difference, format_value
from equipoise.types import Severity

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
    for trouble in cache.troubles:
        yield Observation(trouble.subject, trouble.message, (str(cache.path),), trouble.hint)


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
            f"it returns {format_value(recall.recall, 4)} of the {recall.k} nearest on average, "
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
    best = f"{tuning.trial_metric} {format_value(tuning.optimistic, PLACES)} is the best of {trials} trials"
    nested = f"the held-out score (nested cross-validation) is {format_value(tuning.nested, PLACES)}"
    yield Observation(
        tuned.system,
        f"{best} on the same data that selected it, so the score is optimistic",
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
            tried = sorted({_number(trial, axis) for trials in series for trial in trials})
            yield Observation(
                tuned.system,
                f"{axis} was tuned over {join_names([f'{depth:g}' for depth in tried])} without a budget, and "
                f"{tuning.trial_metric} never falls as it grows: tuning selects the largest value",
                tuple(_values_by_parameter(trials, axis) for trials in series[:MAX_LISTED]),
            )


def _series(trials: Sequence[Trial], axis: str) -> list[list[Trial]]:
    """Groups of at least two trials that differ in this parameter only, sorted by its value."""
    groups: dict[tuple[object, ...], list[Trial]] = {}
    for trial in trials:
        if isinstance(trial.params.get(axis), int | float) and not isnan(trial.value):
            rest = tuple(sorted((name, str(value)) for name, value in trial.params.items() if name != axis))
            groups.setdefault(rest, []).append(trial)
    several = [group for group in groups.values() if len(group) > 1]
    return [sorted(group, key=lambda trial: _number(trial, axis)) for group in several]


def _number(trial: Trial, axis: str) -> float:
    return float(trial.params[axis] or 0)


def _values_by_parameter(trials: Sequence[Trial], axis: str) -> str:
    """``top_k 5: 0.7000, 10: 0.8000``, and the fixed parameters."""
    fixed = ", ".join(f"{name} {value}" for name, value in trials[0].params.items() if name != axis)
    steps = ", ".join(f"{_number(trial, axis):g}: {format_value(trial.value, PLACES)}" for trial in trials)
    return f"{axis} {steps}" + (f" ({fixed})" if fixed else "")


CHECKS: tuple[Check, ...] = (
    Check(
        code="EQ150",
        title="the vector cache cannot be used",
        severity=Severity.TIP,
        applies_to=VectorCache,
        function=cache_problem,
        why="""\
Vectors are cached so that no text is embedded twice. If the file cannot be written or is damaged, they
are computed again and not stored: the scores are the same, but each run repeats the work.""",
        hint="make the folder writable, or set EQUIPOISE_CACHE to another folder",
        example="""\
import numpy
from equipoise.checks.base import run_checks
from equipoise.models.cache import VectorCache
from equipoise.models.retriever import FittedRetriever
cache = VectorCache("/dev/null/a file is no folder")
cache.put_many("model", "query", ["text"], numpy.ones((1, 2), dtype="float32"))
run_checks(cache)""",
    ),
    Check(
        code="EQ151",
        title="texts longer than the model's input window",
        severity=Severity.TIP,
        applies_to=TruncationStats,
        function=truncated_texts,
        why="""\
A model reads a fixed number of tokens and drops the rest without a message. An answer in the dropped part
cannot be found by its vector, and a model with a larger window then scores higher for a reason
other than embedding quality.""",
        hint="split the texts into chunks that fit, or use a model with a larger window",
        example="""\
from equipoise.checks.base import run_checks
from equipoise.checks.models import TruncationStats
run_checks(TruncationStats("minilm", tokens=256, texts=100, truncated=12, lost_tokens=3400))""",
    ),
    Check(
        code="EQ152",
        title="low recall of the index",
        severity=Severity.TIP,
        applies_to=FittedRetriever,
        function=low_index_recall,
        why="""\
An approximate index trades some of the nearest neighbours for speed. What it misses lowers every score of the
system, and without this value the loss would be attributed to the model.""",
        hint="use exact search to compare models, or raise the search effort of the index",
        example="""\
import numpy
from equipoise import retriever
from equipoise.checks.base import run_checks
from equipoise.models.stores.recall import IndexRecall
from equipoise.types import Severity
system = retriever("hash").fit(["rye", "wheat"])  # with store="faiss:hnsw", search measures the recall
system.index_recall = IndexRecall(10, numpy.array([1.0, 0.9, 0.7]))
run_checks(system)""",
    ),
    Check(
        code="EQ201",
        title="tuned on the reported data",
        severity=Severity.ISSUE,
        applies_to=TunedSystem,
        function=tuned_on_reported_units,
        why="""\
The best of many trials is partly the best by chance, and scoring it on the units that selected it counts that
chance again.
With 27 equally good configurations and 100 questions the best one scores about 6 points too high,
and a 95 % interval around it covers the true value in 75 % of cases. A system with more trials gains
more. The held-out score (nested cross-validation) is unbiased: the configuration that is scored on a
unit was selected without it.""",
        hint="report the held-out score, or select on one part of the data and report on the other",
        example="""\
from equipoise.checks.base import run_checks
from equipoise.checks.models import TunedSystem
from equipoise.tuning.grid import Trial, TuningRecord
trials = (Trial({"chunk_size": 256}, 0.71), Trial({"chunk_size": 512}, 0.78))
tuning = TuningRecord("accuracy", trials, 1, None, optimistic=0.78, nested=float("nan"), folds=())
run_checks(TunedSystem.of("minilm", tuning))""",
    ),
    Check(
        code="EQ202",
        title="the score only rises or only falls with a parameter",
        severity=Severity.TIP,
        applies_to=TunedSystem,
        function=monotone_parameter,
        why="""\
Hits within the first 5 are also hits within the first 10. A metric that
counts hits can only rise with top_k, so tuning always selects the largest value of the grid, and the
accuracy shows how much was retrieved rather than how well. A cost makes the choice meaningful:
retrieved tokens cost money and distract the reader.""",
        hint="set a budget of retrieved tokens, fix top_k, or compare the whole frontier",
        example="""\
from equipoise.checks.base import run_checks
from equipoise.checks.models import TunedSystem
from equipoise.tuning.grid import Trial, TuningRecord
trials = (Trial({"top_k": 5}, 0.71), Trial({"top_k": 10}, 0.78), Trial({"top_k": 20}, 0.84))
run_checks(TunedSystem.of("minilm", TuningRecord("accuracy", trials, 2, None, 0.84, float("nan"), folds=())))""",
    ),
)
