"""The view of a concept evaluation: recommendations, ground truth, categories, scores with their parts, and pairs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from math import isnan
from typing import TYPE_CHECKING

from equipoise.checks.base import join_names, pluralize
from equipoise.domains.concepts.checks import MAX_DISSIMILAR
from equipoise.domains.concepts.comparison import ByModel, ScoreComparison
from equipoise.domains.concepts.scores import COMPOSITE, CONCEPT_SCORES, GENERAL_USE, GROUND_TRUTH, interpret_score
from equipoise.report.answer import Answer
from equipoise.report.terminal import ReportColumn
from equipoise.report.view import ReportTable, Section, View
from equipoise.stats.formatting import (
    format_count,
    format_difference,
    format_interval,
    format_p,
    format_percent,
    format_range,
    format_value,
    shared_decimals,
)
from equipoise.types import Direction, with_label

if TYPE_CHECKING:
    from equipoise.domains.concepts.concept_set import ConceptSet
    from equipoise.domains.concepts.results import ConceptEvaluation
    from equipoise.stats.comparison import Contrast
    from equipoise.stats.intervals import Interval
    from equipoise.stats.result import Estimate
    from equipoise.types import Finding

SMALL = 10.0
"""Values below this are no ranks."""
MAX_REASON_LENGTH = 24
"""The longest reason that a table shows in place of an interval; results.json has them all."""

Row = tuple[str, str, ByModel]
"""The subject of a metric, its name, and the estimate of every model."""


def concepts_view(evaluation: ConceptEvaluation) -> View:
    """The answer, then advice, ground truth and reference metrics, categories, scores, pairs and weightings."""
    sections = (
        *advice_section(evaluation),
        reference_metric_section(evaluation),
        *slice_section(evaluation),
        score_section(evaluation),
        component_section(evaluation),
        *pairwise_section(evaluation),
        *weight_section(evaluation),
    )
    return View(concepts_answer(evaluation), sections)


AT_CHANCE = "*"
"""Marks a ground-truth metric that is not significantly above chance."""


def concepts_answer(evaluation: ConceptEvaluation) -> Answer:
    """Which model to use for what, and every model with its ground-truth metrics, best first."""
    comparisons = evaluation.all_score_comparisons
    with_truth = [comparison for comparison in comparisons if comparison.ground_truth]
    # By the metric of the headline: the mean of all ground-truth metrics, or the first one if there is no mean.
    deciding = with_truth[-1 if comparisons[-1].truth == GROUND_TRUTH else 0] if with_truth else None
    order = _best_first(deciding.ground_truth) if deciding else comparisons[-1].order
    columns = [ReportColumn("model", order, shortens="middle")]
    for number, comparison in enumerate(with_truth, start=1):
        # On a narrow screen the deciding column is omitted last.
        rank = 0 if comparison is deciding else number
        columns.append(ReportColumn(comparison.truth, _truth_cells(comparison, order), right=True, rank=rank))
    if not with_truth or comparisons[-1].truth:
        last = comparisons[-1]
        columns.append(ReportColumn(last.score, _score_cells(last, order), right=True, rank=len(comparisons) + 1))
    return Answer(
        headline=_decision(evaluation),
        columns=tuple(columns),
        notes=(
            *filter(None, [_chance_sentence(with_truth)]),
            *(f"{recommendation.use}: {recommendation.short}." for recommendation in evaluation.advice),
            *(f"{note}." for note in evaluation.notes),
        ),
        warnings=tuple(with_label(f"{name} failed", error.message) for name, error in evaluation.failures.items()),
        findings=evaluation.findings,
        details="Details: add -v (recommendations with values, categories, scores, parts, pairs, findings with hints).",
    )


def _truth_cells(comparison: ScoreComparison, order: Sequence[str]) -> list[str]:
    """``0.56 [0.44, 0.66]``, marked if it is not above chance."""
    estimates = comparison.ground_truth
    places = _places(list(estimates.values()))
    return [
        f"{format_value(estimates[name].value, places)} {_reach(estimates[name].interval, places)}"
        + (" " if comparison.above_chance(name) else AT_CHANCE)
        for name in order
    ]


def _score_cells(comparison: ScoreComparison, order: Sequence[str]) -> list[str]:
    places = _places(list(comparison.estimates.values()))
    return [format_value(comparison.estimates[name].value, places) for name in order]


def _decision(evaluation: ConceptEvaluation) -> str:
    """The recommendation for general use, or for the first use that was measured."""
    name = evaluation.concept_set.name
    if not evaluation.advice:
        return f"Not decided: no task that was measured on {name} has labels to compare the models with."
    advice = evaluation.advice[0]
    if not advice.models:
        return f"No model can be recommended on {name}. {advice.message}."
    best, others = advice.models[0], advice.models[1:]
    if len(evaluation.models) < 2:
        return f"{best} on {name}: {advice.value}. One model alone does not show which is best: add a baseline."
    if others:
        verb = "is" if len(others) == 1 else "are"
        names = join_names(others)
        return f"Not decided: {best} is highest on {name} ({advice.value}); {names} {verb} not significantly worse."
    count = len(evaluation.models)
    if not advice.test.startswith("significantly better"):
        return f"{best} is the only one of {count} models that can be recommended on {name} ({advice.value})."
    return f"{best} is the best of {count} models on {name} ({advice.value})."


def _chance_sentence(with_truth: Sequence[ScoreComparison]) -> str:
    """The chance level of each metric, and what the mark means."""
    known = [
        (comparison.truth, _chance(comparison.ground_truth, _places(list(comparison.ground_truth.values()))))
        for comparison in with_truth
    ]
    levels = ", ".join(f"{metric} {chance}" for metric, chance in known if chance)
    has_mark = any(not comparison.above_chance(name) for comparison in with_truth for name in comparison.ground_truth)
    mark = f" {AT_CHANCE} is not significantly above chance." if has_mark else ""
    return f"Chance levels: {levels}.{mark}" if levels else ""


def advice_section(evaluation: ConceptEvaluation) -> list[Section]:
    """What to use, with the test, and what the published formula would have picked."""
    advice = evaluation.advice
    if not advice:
        return []
    columns = [
        ReportColumn("use", [recommendation.use for recommendation in advice]),
        ReportColumn("recommended", [recommendation.names for recommendation in advice], shortens="middle"),
        ReportColumn("by", [recommendation.value or recommendation.metric for recommendation in advice], rank=1),
        ReportColumn("paired test", [recommendation.test for recommendation in advice], shortens="end", rank=3),
    ]
    notes = [f"{recommendation.use}: {recommendation.formula}." for recommendation in advice if recommendation.formula]
    notes += [
        f"{recommendation.use}: {model} is not recommended, because {reason}."
        for recommendation in advice
        for model, reason in recommendation.excluded.items()
    ]
    return [Section.of_table("What to use, by ground truth", columns, *notes)]


def slice_section(evaluation: ConceptEvaluation) -> list[Section]:
    """The ground-truth metric by category, one column per model, and the annotator ceiling."""
    ceiling = evaluation.ceiling
    note = (
        ""
        if isnan(ceiling)
        else f"Annotator ceiling: an annotator has a mean Spearman correlation of {format_value(ceiling, 2)} with the "
        "mean of the others. A model is not expected to exceed it."
    )
    sections = []
    for comparison in evaluation.score_comparisons:
        rows = comparison.slices
        if not rows and not (note and comparison.truth == "Spearman"):
            continue
        shown: Mapping[str, ByModel] = {f"all {comparison.units}": comparison.ground_truth, **rows}
        columns = [
            ReportColumn("category", list(shown)),
            ReportColumn("n", [str(next(iter(by_model.values())).n) for by_model in shown.values()], right=True),
        ]
        for place, model in enumerate(evaluation.models):
            cells = [_value_and_interval(by_model, model) for by_model in shown.values()]
            columns.append(ReportColumn(model, cells, right=True, rank=place))
        sections.append(Section.of_table(f"{comparison.truth} by category", columns, note))
    return sections


def _value_and_interval(by_model: ByModel, model: str) -> str:
    places = _places(list(by_model.values()))
    return f"{format_value(by_model[model].value, places)} {_reach(by_model[model].interval, places)}"


def score_section(evaluation: ConceptEvaluation) -> Section:
    """Every score of every model, with what is known about it."""
    several = ", best first in every score" if len(evaluation.models) > 1 else ""
    title = (
        f"The weighted scores of {pluralize(len(evaluation.models), 'model')} on {evaluation.concept_set.name}{several}"
    )
    return Section(title, (ReportTable.of(score_columns(evaluation)),), captions(evaluation))


def score_columns(evaluation: ConceptEvaluation) -> list[ReportColumn]:
    """One row per score and model, Spearman first; on a narrow screen the score and the band are kept longest."""
    groups: list[tuple[str, ByModel, Sequence[str], Mapping[str, Sequence[str]]]] = [
        ("Spearman", by_model, _best_first(by_model), {}) for by_model in _spearman(evaluation)
    ]
    groups += [
        (scores.score, scores.estimates, scores.order, scores.letters) for scores in evaluation.all_score_comparisons
    ]
    rows = []
    for score, estimates, order, letters in groups:
        places = _places(list(estimates.values()))
        for number, name in enumerate(order):
            estimate = estimates[name]
            rows.append(
                (
                    score if number == 0 else "",
                    (" ".join(letters[name]) or "-") if letters else "",
                    name,
                    format_value(estimate.value, places),
                    format_interval(estimate.interval, places),
                    format_value(estimate.chance, places),
                    interpret_score(estimate.value, estimate.interval) if letters else "ground truth",
                )
            )
    score_cells, band, model, value, interval, chance, rating = zip(*rows, strict=True)
    several = [ReportColumn("band", band, rank=1)] if len(evaluation.models) > 1 else []
    return [
        ReportColumn("score", score_cells),
        *several,
        ReportColumn("model", model, shortens="middle"),
        ReportColumn("value", value, right=True),
        ReportColumn(f"{format_percent(evaluation.config.confidence_level)} interval", interval, right=True, rank=2),
        ReportColumn("chance", chance, right=True, rank=3),
        ReportColumn("rating", rating, rank=4),
    ]


def _spearman(evaluation: ConceptEvaluation) -> list[ByModel]:
    """Spearman's correlation by model, if similarities were measured."""
    return [item.ground_truth for item in evaluation.score_comparisons if item.truth == "Spearman"]


def _best_first(by_model: ByModel) -> list[str]:
    """The models by value, the highest first and undefined ones last."""
    return sorted(by_model, key=lambda name: (isnan(by_model[name].value), -by_model[name].value))


def captions(evaluation: ConceptEvaluation) -> tuple[str, ...]:
    """What the letters, the intervals and the chance levels are."""
    comparisons = evaluation.score_comparisons
    letters = (
        "Models that share a letter are not significantly different on that score "
        f"({comparisons[0].family or 'one pair, so no correction'})."
        if len(evaluation.models) > 1
        else ""
    )
    return (
        *filter(None, [letters]),
        "Intervals come from resampled data, chance levels from random baselines:",
        *(
            f"{comparison.score}: {comparison.drawn}; chance: {comparison.chance_baseline}."
            for comparison in comparisons
        ),
        "The ratings use the thresholds 0.3, 0.5 and 0.7, independent of chance.",
    )


def component_section(evaluation: ConceptEvaluation) -> Section:
    """What each score adds up, term by term."""
    comparisons = evaluation.score_comparisons
    rows = [("ground truth", "  Spearman", by_model) for by_model in _spearman(evaluation)]
    rows += [
        (f"{score_comparison.score} =" if place == 0 else "", f"{'+ ' if place else '  '}{term}", by_model)
        for score_comparison in comparisons
        for place, (term, by_model) in enumerate(score_comparison.terms.items())
    ]
    methods = [comparison.method for comparison in comparisons if comparison.method]
    methods += [line for comparison in comparisons for line in comparison.readings]
    columns = _estimate_columns("score", "part", rows)
    return Section.of_table("What the scores are made of", columns, *(f"{method}." for method in methods))


def reference_metric_section(evaluation: ConceptEvaluation) -> Section:
    """The metrics that the faults of the scores do not affect."""
    rows = [
        (score_comparison.title if place == 0 else "", f"{name} {_arrow(by_model)}", by_model)
        for score_comparison in evaluation.score_comparisons
        for place, (name, by_model) in enumerate(score_comparison.reference_metrics.items())
    ]
    if evaluation.composite is not None and evaluation.composite.ground_truth:
        rows.append(("All tasks", f"{evaluation.composite.truth} ↑", evaluation.composite.ground_truth))
    title = "Ground truth, and other metrics that do not depend on scale"
    return Section.of_table(title, _estimate_columns("about", "metric", rows))


def _estimate_columns(first: str, second: str, rows: Sequence[Row]) -> list[ReportColumn]:
    """One row per metric and model."""
    digits = [_places(list(by_model.values())) for _, _, by_model in rows]
    cells = [
        (
            about if place == 0 else "",
            name if place == 0 else "",
            model,
            format_value(estimate.value, places),
            _reach(estimate.interval, places),
            format_value(estimate.chance, places),
        )
        for (about, name, by_model), places in zip(rows, digits, strict=True)
        for place, (model, estimate) in enumerate(by_model.items())
    ]
    abouts, names, models, values, reaches, chance = zip(*cells, strict=True)
    return [
        ReportColumn(first, abouts, rank=5),
        ReportColumn(second, names),
        ReportColumn("model", models, shortens="middle"),
        ReportColumn("value", values, right=True),
        ReportColumn("interval", reaches, right=True, rank=1),
        ReportColumn("chance", chance, right=True, rank=2),
    ]


def _places(estimates: Sequence[Estimate]) -> int:
    """Decimals for values next to each other; two at least where they are small: a correlation is never 1.0."""
    places = shared_decimals(estimate.interval for estimate in estimates)
    return (
        max(places, 2)
        if all(abs(estimate.value) < SMALL or isnan(estimate.value) for estimate in estimates)
        else places
    )


def _reach(interval: Interval, places: int) -> str:
    """An interval in a table of many: a reason must not be wider than an interval."""
    text = format_interval(interval, places)
    return text if len(text) <= MAX_REASON_LENGTH else "n/a"


def _share(share: float) -> str:
    """A share of all, every one to the same digit."""
    return f"{format_value(100 * share, 1)} %"


def _arrow(by_model: ByModel) -> str:
    return "↓" if next(iter(by_model.values())).better == Direction.DOWN else "↑"


def _chance(by_model: ByModel, places: int) -> str:
    """The chance level over all models, which differs a little where it depends on their vectors."""
    known = [estimate.chance for estimate in by_model.values() if not isnan(estimate.chance)]
    return format_range(min(known), max(known), places) if known else ""


def pairwise_section(evaluation: ConceptEvaluation) -> list[Section]:
    """Every pair of models on every ground-truth metric, then on every score."""
    comparisons = evaluation.all_score_comparisons
    groups = [(comparison.truth, comparison.truth_contrasts) for comparison in comparisons]
    groups += [(comparison.score, comparison.contrasts) for comparison in comparisons]
    tables = tuple(ReportTable.of(_pair_columns(title, contrasts)) for title, contrasts in groups if contrasts)
    return [Section("Every pair", tables)] if tables else []


def _pair_columns(title: str, contrasts: Sequence[Contrast]) -> list[ReportColumn]:
    """Every pair of models on one metric, whose name is the head of the first column."""
    pairs = [(contrast, shared_decimals([contrast.interval])) for contrast in contrasts]
    return [
        ReportColumn(title, [contrast.a for contrast, _ in pairs], shortens="middle"),
        ReportColumn("minus", [contrast.b for contrast, _ in pairs], shortens="middle"),
        ReportColumn("difference", [format_difference(contrast.difference, at) for contrast, at in pairs], right=True),
        ReportColumn("interval", [_reach(contrast.interval, at) for contrast, at in pairs], right=True, rank=2),
        ReportColumn("adj. p", [format_p(contrast.adjusted) for contrast, _ in pairs], right=True, rank=1),
    ]


def weight_section(evaluation: ConceptEvaluation) -> list[Section]:
    """The winners of the composite under other weights."""
    if not evaluation.winning:
        return []
    ordered = sorted(evaluation.winning, key=lambda outcome: -outcome.share)
    columns = [
        ReportColumn("model", [outcome.model for outcome in ordered], shortens="middle"),
        ReportColumn("these data", [_share(outcome.share) for outcome in ordered], right=True),
        ReportColumn("resampled data", [_share(outcome.resampled) for outcome in ordered], right=True),
    ]
    for by_model in _spearman(evaluation):
        cells = [_value_and_interval(by_model, outcome.model) for outcome in ordered]
        columns.insert(1, ReportColumn("Spearman", cells, right=True))
    note = "The weightings are those of the composite. All weightings are equally likely."
    return [Section.of_table("Share of weightings in which each model is first", columns, note)]


# The files of a concept set: what each part holds, all problems, and whether it can be used.

_SUMMARISING = ("EQ130", "EQ131", "EQ132", "EQ136")
"""Findings that sum up the problems, which the view lists one by one."""
MAX_LISTED = 100
"""Problems that are listed without ``--verbose``: a table with a wrong header has one per row."""


def concept_set_view(concept_set: ConceptSet, findings: Sequence[Finding], *, verbose: bool = False) -> View:
    """Whether the concept set can be used, its parts, the cost of missing files, all problems and other findings."""
    facts = summary_lines(concept_set)
    sizes = [format_count(len(getattr(concept_set, part))) for part in facts]
    columns = (
        ReportColumn("part", list(facts)),
        ReportColumn("entries", sizes, right=True),
        ReportColumn("", list(facts.values()), shortens="end"),
    )
    problems = concept_set.problems if verbose else concept_set.problems[:MAX_LISTED]
    following = [*(problem.hint for problem in problems[1:]), ""]
    lines = [
        # A hint that several problems share is given after the last of them.
        f"{problem.message}{f' ({problem.hint})' if problem.hint != hint else ''}"
        for problem, hint in zip(problems, following, strict=False)
    ]
    n_more = len(concept_set.problems) - len(lines)
    lines += [f"and {format_count(n_more)} more (-v shows all)"] if n_more else []
    missing = [f"{file}: {cost}" for file, cost in missing_sections(concept_set).items()]
    codes = ", ".join(dict.fromkeys(finding.code for finding in findings if finding.code in _SUMMARISING))
    heading = f"{pluralize(len(concept_set.problems), 'problem')} ({codes})" if codes else "problems"
    sections = (
        Section(heading, notes=tuple(lines), always=True),
        Section("Not computed because files are missing", notes=tuple(missing), always=True),
    )
    answer = Answer(
        f"The concept set {concept_set.name} {_usability(concept_set, findings)}.",
        columns if facts else (),
        notes=(f"not read: {', '.join(concept_set.unread)}",) if concept_set.unread else (),
        findings=tuple(finding for finding in findings if finding.code not in _SUMMARISING),
    )
    return View(answer, tuple(section for section in sections if section.notes), title=concept_set.name)


def _usability(concept_set: ConceptSet, findings: Sequence[Finding]) -> str:
    fatal = sum(problem.fatal for problem in concept_set.problems)
    if fatal:
        return f"cannot be used: fix {pluralize(fatal, 'problem')} first"
    if concept_set.problems:
        return f"can be used, with {pluralize(len(concept_set.problems), 'problem')}"
    if any(finding.code == "EQ135" for finding in findings):
        return "can be used in part: not every score is defined on it"
    return "can be used"


def summary_lines(concept_set: ConceptSet) -> dict[str, str]:
    """A line about each part that there is."""
    return {part: _FACTS[part](concept_set) for part in concept_set.present}


_FILES = {
    "pairs": "pairs.json",
    "clusters": "clusters.json",
    "sentences": "entities.json",
    "relations": "relations.json",
    "concepts": "concepts.json",
}


def missing_sections(concept_set: ConceptSet) -> dict[str, str]:
    """For each missing file: the scores, the ground-truth metric and the recommendations that are not computed."""
    from equipoise.domains.concepts.experiment import select_tasks

    tasks = select_tasks(concept_set, ())[0] if concept_set.present else ()
    costs = {}
    for score in CONCEPT_SCORES.values():
        if getattr(concept_set, score.needs) is not None:
            continue
        if score.task in tasks:
            cost = (
                f"{score.name} is measured on the {len(concept_set.standard_concepts or ())} concepts of the clusters"
            )
        else:
            unmeasured = [score.name, *filter(None, [score.truth]), COMPOSITE]
            uses = [*filter(None, [score.use]), GENERAL_USE]
            cost = f"no {', no '.join(unmeasured)}; no recommendation for {' and '.join(uses)}"
        costs[_FILES[score.needs]] = cost
    return costs


def _pair_facts(concept_set: ConceptSet) -> str:
    expected = [pair.expected for pair in concept_set.pairs or ()]
    if not expected:
        return "none can be used"
    unlike = sum(similarity <= MAX_DISSIMILAR for similarity in expected)
    span = f"expected {format_value(min(expected), 2)} to {format_value(max(expected), 2)}"
    facts = [f"{span}, {format_count(unlike)} at {format_value(MAX_DISSIMILAR, 2)} or below"]
    categories = Counter(pair.category for pair in concept_set.pairs or () if pair.category)
    if categories:
        facts.append(f"categories: {', '.join(f'{name} {format_count(times)}' for name, times in categories.items())}")
    n_ratings = {sum(not isnan(rating) for rating in pair.ratings) for pair in concept_set.pairs or ()}
    if max(n_ratings) > 1:
        span = f"{min(n_ratings)} to {max(n_ratings)}" if len(n_ratings) > 1 else f"{max(n_ratings)}"
        facts.append(f"{span} ratings per pair")
    return "; ".join(facts)


def _cluster_facts(concept_set: ConceptSet) -> str:
    sizes = [len(cluster.concepts) for cluster in concept_set.clusters or ()]
    if not sizes:
        return "none can be used"
    span = str(min(sizes)) if min(sizes) == max(sizes) else f"{min(sizes)} to {max(sizes)}"
    return f"{pluralize(sum(sizes), 'concept')}, {span} in a cluster"


def _sentence_facts(concept_set: ConceptSet) -> str:
    types = Counter(entity.label for sentence in concept_set.sentences or () for entity in sentence.entities)
    named = ", ".join(f"{label} {format_count(times)}" for label, times in types.most_common())
    return f"{sum(types.values()):,} entities: {named}" if types else "no entities"


def _relation_facts(concept_set: ConceptSet) -> str:
    relations = concept_set.relations or ()
    entities = {name for relation in relations for name in (relation.subject, relation.object)}
    predicates = {relation.predicate for relation in relations}
    return f"{format_count(len(entities))} entities, {pluralize(len(predicates), 'predicate')}"


def _concept_facts(concept_set: ConceptSet) -> str:
    concepts = concept_set.concepts or ()
    return ", ".join([*concepts[:3], *(["..."] if len(concepts) > 3 else [])])


_FACTS: dict[str, Callable[[ConceptSet], str]] = {
    "pairs": _pair_facts,
    "clusters": _cluster_facts,
    "sentences": _sentence_facts,
    "relations": _relation_facts,
    "concepts": _concept_facts,
}
