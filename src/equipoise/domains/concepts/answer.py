"""The short answer of a concept evaluation: which model is best over all tasks, and by task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from math import isnan, nan
from typing import TYPE_CHECKING

from equipoise.checks.base import join_names
from equipoise.domains.concepts.recommendation import decimals
from equipoise.domains.concepts.scores import COMPOSITE, CONCEPT_SCORES, GROUND_TRUTH
from equipoise.report.answer import Answer, AnswerOptions, comparison_answer, failure_line
from equipoise.report.terminal import ReportColumn
from equipoise.stats.comparison import Comparison, Contrast
from equipoise.stats.formatting import about, format_interval, format_percent, format_range, format_value
from equipoise.stats.intervals import Interval
from equipoise.stats.power import POWER
from equipoise.stats.verdict import Vocabulary
from equipoise.types import Direction

if TYPE_CHECKING:
    from equipoise.domains.concepts.comparison import ByModel, ScoreComparison
    from equipoise.domains.concepts.results import ConceptEvaluation
    from equipoise.stats.result import Estimate

AT_CHANCE = "*"
"""Marks a ground-truth metric that is not significantly above chance."""
WEIGHTED_SCORE_FINDINGS = ("EQ311", "EQ312")
"""Findings about the weighted scores, which the answer does not show if there is a ground truth."""
TASK_OF_SCORE = {score.name: task for task, score in CONCEPT_SCORES.items()}
DIMS_RANK = 20


def concepts_answer(evaluation: ConceptEvaluation) -> Answer:
    """Which model is best, and every model with its ground-truth metrics, best first."""
    comparisons = evaluation.all_score_comparisons
    with_truth = [comparison for comparison in comparisons if comparison.ground_truth]
    deciding = _deciding(with_truth)
    if deciding is not None and len(evaluation.models) > 1:
        return _ranked_answer(evaluation, deciding, with_truth)
    order = best_first(with_truth[0].ground_truth) if with_truth else comparisons[-1].order
    columns = [ReportColumn("model", order, shortens="middle")]
    for rank, comparison in enumerate(with_truth):
        columns.append(_truth_column(comparison, order, rank, with_intervals=True))
    if not with_truth:
        scores = comparisons[-1].estimates
        places = decimals(list(scores.values()))
        cells = [format_value(scores[name].value, places) for name in order]
        values = {comparisons[-1].score: [scores[name].value for name in order]}
        columns.append(ReportColumn(comparisons[-1].score, cells, right=True, values=values))
    return Answer(
        headline=_recommendation(evaluation),
        columns=tuple(columns),
        notes=tuple(filter(None, (_chance_levels(with_truth), _mark_note(with_truth), *_notes(evaluation)))),
        failures=failure_line(evaluation.failures, len(evaluation.models)),
        findings=evaluation.findings,
        details="Details: add -v.",
        explains_codes=True,
        details_only=WEIGHTED_SCORE_FINDINGS if with_truth else (),
    )


def _deciding(with_truth: Sequence[ScoreComparison]) -> ScoreComparison | None:
    """The comparison on the mean of all tasks, or on the only one; None if there are several tasks without a mean."""
    is_mean = bool(with_truth) and with_truth[-1].truth == GROUND_TRUTH
    return with_truth[-1] if is_mean or len(with_truth) == 1 else None


def _ranked_answer(
    evaluation: ConceptEvaluation, deciding: ScoreComparison, with_truth: Sequence[ScoreComparison]
) -> Answer:
    """The models by the deciding metric, with rank intervals, and the metric of each task."""
    comparison = truth_comparison(evaluation, deciding)
    tasks = [item for item in with_truth if item is not deciding]
    dims = [evaluation.scores[name].dims for name in comparison.order]
    columns = [
        *(_truth_column(item, comparison.order, rank) for rank, item in enumerate(tasks, start=3)),
        ReportColumn("dims", [str(size) for size in dims], right=True, rank=DIMS_RANK, values={"dims": dims}),
    ]
    options = AnswerOptions(
        comparison.words,
        columns=tuple(columns),
        baseline="A random model",
        score_note=_mark_note(tasks),
        notes=tuple(filter(None, (_by_task(evaluation), *_notes(evaluation)))),
        failures=failure_line(evaluation.failures, len(evaluation.models)),
        findings=evaluation.findings,
        details="Details: add -v.",
        explains_codes=True,
        sample_size=_data_needed(comparison),
    )
    answer = comparison_answer(comparison, options)
    advice = evaluation.advice[0] if evaluation.advice else None
    # A model that is collapsed or at chance is not recommended, whatever its rank.
    is_recommended = advice is not None and advice.models[:1] == (comparison.leader,)
    only_one = is_recommended and advice is not None and len(advice.models) == 1 and comparison.tied_with_leader
    headline = answer.headline if is_recommended and not only_one else _recommendation(evaluation)
    return replace(answer, headline=headline, details_only=WEIGHTED_SCORE_FINDINGS)


def truth_comparison(evaluation: ConceptEvaluation, deciding: ScoreComparison) -> Comparison:
    """The models on the ground-truth metric of a comparison, with its paired tests."""
    truth, models, name = deciding.truth, evaluation.models, evaluation.concept_set.name
    metric, data = truth, f"{deciding.units} of {name}"
    if truth == GROUND_TRUTH:
        tasks = [task for task in evaluation.weights if CONCEPT_SCORES[task].truth]
        has_weights = len({evaluation.weights[task] for task in tasks}) > 1
        metric, data = "weighted task mean" if has_weights else "task mean", name
    n = max(estimate.n for estimate in deciding.ground_truth.values())
    return Comparison(
        systems=models,
        metrics=(truth,),
        primary=truth,
        better=Direction.UP,
        n=n,
        clusters=None,
        estimates={model: {truth: deciding.ground_truth[model]} for model in models},
        contrasts=tuple(_contrast(deciding, a, b) for a, b in combinations(models, 2)),
        scores={model: deciding.ground_truth[model].value for model in models},
        families={truth: deciding.correction},
        config=evaluation.config,
        words=Vocabulary("example", "model", metric, data=data),
    )


def _contrast(deciding: ScoreComparison, a: str, b: str) -> Contrast:
    """A pair on the ground-truth metric; unknown if the results could not be compared."""
    found = deciding.truth_contrast(a, b)
    if found is not None:
        return replace(found, metric=deciding.truth)
    reason = "the results could not be compared"
    difference = deciding.ground_truth[a].value - deciding.ground_truth[b].value
    unknown = Interval.unknown(reason)
    return Contrast(deciding.truth, a, b, Direction.UP, difference, unknown, nan, nan, 0, 0, reason=reason)


def _data_needed(comparison: Comparison) -> str:
    """How many times as much data would show the difference between the best model and the next one."""
    other = next(iter(comparison.tied_with_leader), None)
    if comparison.leader is None or other is None:
        return ""
    contrast = comparison.contrast(comparison.leader, other)
    if not contrast.needed.known or contrast.needed.value <= contrast.n:
        return ""
    times = contrast.needed.value / contrast.n
    return (
        f"About {about(times) if times >= 10 else format_value(times, 1)} times as much data would be needed to "
        f"distinguish {comparison.leader} from {other} ({format_percent(POWER)} power)."
    )


def _recommendation(evaluation: ConceptEvaluation) -> str:
    """The recommendation, if no comparison of all models states it."""
    name, advice = evaluation.concept_set.name, evaluation.advice
    if not advice:
        return f"Inconclusive: no task that was measured on {name} has labels to compare the models with."
    first = advice[0]
    if not any(recommendation.models for recommendation in advice):
        return f"No model can be recommended for {name}. {first.message}."
    alone = ""
    if len(evaluation.models) < 2:
        alone = " One model alone does not show which is best: add a baseline."
        if evaluation.failures:
            alone = f" Only {join_names(evaluation.models)} was evaluated."
    if len(advice) > 1 and (first.score != COMPOSITE or not first.models):
        tasks_of: dict[str, list[str]] = {}
        for recommendation in advice:
            task = TASK_OF_SCORE.get(recommendation.score, "all tasks")
            tasks_of.setdefault(recommendation.names, []).append(task)
        groups = ", ".join(f"{names} ({', '.join(tasks)})" for names, tasks in tasks_of.items())
        return f"Recommended for {name}: {groups}.{alone}"
    best, others = first.models[0], first.models[1:]
    if alone:
        return f"{best} on {name}: {first.value}.{alone}"
    if others:
        verb = "is" if len(others) == 1 else "are"
        names = join_names(others)
        return (
            f"Inconclusive: of the models that can be recommended, {best} is highest on {name} ({first.value}); "
            f"{names} {verb} not significantly worse."
        )
    return (
        f"{best} is the only one of {len(evaluation.models)} models that can be recommended for {name} ({first.value})."
    )


def _by_task(evaluation: ConceptEvaluation) -> str:
    """The recommended models of each task, and the choice of the published score if it is another one."""
    by_task = [f"{TASK_OF_SCORE[item.score]} {item.names}" for item in evaluation.advice if item.score in TASK_OF_SCORE]
    text = f"By task: {'; '.join(by_task)}." if len(by_task) > 1 else ""
    composite = evaluation.composite
    if composite is None or composite.leader is None or not evaluation.advice or not evaluation.advice[0].formula:
        return text
    published = f"The published {COMPOSITE} would choose {composite.leader} (EQ312: eq explain EQ312)."
    return f"{text} {published}".strip()


def _notes(evaluation: ConceptEvaluation) -> list[str]:
    return [f"{note}." for note in evaluation.notes]


def _chance_levels(with_truth: Sequence[ScoreComparison]) -> str:
    known = [(item.truth, chance_range(item.ground_truth)) for item in with_truth]
    levels = ", ".join(f"{metric} {chance}" for metric, chance in known if chance)
    return f"Chance levels: {levels}." if levels else ""


def chance_range(by_model: ByModel) -> str:
    """The chance level over all models, which differs a little where it depends on their vectors."""
    known = [estimate.chance for estimate in by_model.values() if not isnan(estimate.chance)]
    return format_range(min(known), max(known), decimals(list(by_model.values()))) if known else ""


def _mark_note(with_truth: Sequence[ScoreComparison]) -> str:
    """What the mark means, if a value has it."""
    has_mark = any(_is_at_chance(item, name) for item in with_truth for name in item.ground_truth)
    return f"{AT_CHANCE} is not significantly above chance." if has_mark else ""


def _is_at_chance(comparison: ScoreComparison, name: str) -> bool:
    """Whether the ground-truth metric of a model is defined and not significantly above chance."""
    return not isnan(comparison.ground_truth[name].value) and not comparison.above_chance(name)


def _truth_column(
    comparison: ScoreComparison, order: Sequence[str], rank: int, *, with_intervals: bool = False
) -> ReportColumn:
    """The ground-truth metric of a task; values that are not above chance have a mark."""
    estimates = comparison.ground_truth
    places = decimals(list(estimates.values()))
    marks = [AT_CHANCE if _is_at_chance(comparison, name) else "" for name in order]
    # Numbers with and without a mark are aligned.
    marks = [mark or " " for mark in marks] if any(marks) else marks
    head = comparison.truth if with_intervals else TASK_OF_SCORE[comparison.score]
    texts = [
        value_with_interval(estimates[name], places) if with_intervals else format_value(estimates[name].value, places)
        for name in order
    ]
    values = {head: [estimates[name].value for name in order]}
    if with_intervals:
        values |= {
            f"{head}_low": [estimates[name].interval.low for name in order],
            f"{head}_high": [estimates[name].interval.high for name in order],
        }
    cells = [f"{text}{mark}" for text, mark in zip(texts, marks, strict=True)]
    return ReportColumn(head, cells, right=True, rank=rank, values=values)


def value_with_interval(estimate: Estimate, places: int) -> str:
    """``0.56 [0.44, 0.66]``, or ``n/a`` once if neither is defined."""
    value = format_value(estimate.value, places)
    if isnan(estimate.value):
        return value
    return f"{value} {format_interval(estimate.interval, places) if estimate.interval.known else '[n/a]'}"


def best_first(by_model: ByModel) -> list[str]:
    """The models by value, the highest first and undefined ones last."""
    return sorted(by_model, key=lambda name: (isnan(by_model[name].value), -by_model[name].value))
