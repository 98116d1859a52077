"""The view of a concept evaluation: recommendations, ground truth, categories, scores with their parts, and pairs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from math import isnan
from typing import TYPE_CHECKING

from equipoise.checks.base import pluralize
from equipoise.domains.concepts.answer import best_first, concepts_answer, value_with_interval
from equipoise.domains.concepts.checks import MAX_DISSIMILAR
from equipoise.domains.concepts.comparison import ByModel
from equipoise.domains.concepts.evidence import annotator_ceiling
from equipoise.domains.concepts.recommendation import decimals, join_with
from equipoise.domains.concepts.scores import COMPOSITE, CONCEPT_SCORES, GENERAL_USE, interpret_score
from equipoise.report.answer import Answer
from equipoise.report.terminal import ReportColumn
from equipoise.report.view import ReportTable, Section, View
from equipoise.stats.formatting import (
    format_count,
    format_difference,
    format_interval,
    format_p,
    format_percent,
    format_value,
    shared_decimals,
)
from equipoise.stats.multiple_comparisons import p_heading
from equipoise.types import Direction

if TYPE_CHECKING:
    from equipoise.domains.concepts.concept_set import ConceptSet
    from equipoise.domains.concepts.results import ConceptEvaluation
    from equipoise.stats.comparison import Contrast
    from equipoise.stats.intervals import Interval
    from equipoise.types import Finding

MAX_REASON_LENGTH = 24
"""The longest reason that a table shows in place of an interval; results.json has them all."""

Row = tuple[str, ByModel]
"""The name of a metric, and the estimate of every model."""


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


def advice_section(evaluation: ConceptEvaluation) -> list[Section]:
    """What to use, with the values and the tests, and why other models are not recommended."""
    advice = evaluation.advice
    if not advice:
        return []
    columns = [
        ReportColumn("use", [recommendation.use for recommendation in advice]),
        ReportColumn("recommended", [recommendation.names for recommendation in advice], shortens="middle"),
        ReportColumn(
            "ground-truth metric", [recommendation.value or recommendation.metric for recommendation in advice], rank=1
        ),
        ReportColumn("paired test", [recommendation.test or "-" for recommendation in advice], shortens="end", rank=3),
    ]
    uses_of: dict[tuple[str, str], list[str]] = {}
    for recommendation in advice:
        for model, reason in recommendation.excluded.items():
            uses_of.setdefault((model, reason), []).append(recommendation.use)
    notes = [
        f"{model} is not recommended for {join_with(uses, 'or') if len(uses) < len(advice) else 'any use'}: {reason}."
        for (model, reason), uses in uses_of.items()
    ]
    formulas = [
        f"{recommendation.use}: {recommendation.formula}." for recommendation in advice if recommendation.formula
    ]
    return [Section.of_table("Recommendations", columns, *notes, *formulas)]


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
            cells = [
                value_with_interval(by_model[model], decimals(list(by_model.values()))) for by_model in shown.values()
            ]
            columns.append(ReportColumn(model, cells, right=True, rank=place))
        sections.append(Section.of_table(f"{comparison.truth} by category", columns, note))
    return sections


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
        ("Spearman", by_model, best_first(by_model), {}) for by_model in _spearman(evaluation)
    ]
    groups += [
        (scores.score, scores.estimates, scores.order, scores.letters) for scores in evaluation.all_score_comparisons
    ]
    rows = []
    for score, estimates, order, letters in groups:
        places = decimals(list(estimates.values()))
        for number, name in enumerate(order):
            estimate = estimates[name]
            rows.append(
                (
                    score if number == 0 else "",
                    (" ".join(letters[name]) or "-") if letters else "",
                    name,
                    format_value(estimate.value, places),
                    _format_interval(estimate.interval, places),
                    format_value(estimate.chance, places),
                    interpret_score(estimate.value, estimate.interval) if letters else "-",
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


def captions(evaluation: ConceptEvaluation) -> tuple[str, ...]:
    """What the letters, the intervals and the chance levels are."""
    comparisons = evaluation.score_comparisons
    letters = (
        "Models that share a letter are not significantly different on that score "
        f"({comparisons[0].correction or 'one pair, so no correction'})."
        if len(evaluation.models) > 1
        else ""
    )
    return (
        *filter(None, [letters]),
        "Intervals come from resampled data, chance levels from random baselines:",
        *(
            f"{comparison.score}: {comparison.resampling}; chance: {comparison.chance_baseline}."
            for comparison in comparisons
        ),
        "The ratings use the thresholds 0.3, 0.5 and 0.7, independent of chance.",
    )


def component_section(evaluation: ConceptEvaluation) -> Section:
    """What each score adds up, term by term."""
    comparisons = evaluation.score_comparisons
    rows: list[Row] = [("Spearman", by_model) for by_model in _spearman(evaluation)]
    for comparison in comparisons:
        rows.append((f"{comparison.score} =", {}))
        rows += [
            (f"{'+' if number else ' '} {term}", by_model)
            for number, (term, by_model) in enumerate(comparison.terms.items())
        ]
    methods = [comparison.method for comparison in comparisons if comparison.method]
    methods += [line for comparison in comparisons for line in comparison.definitions]
    columns = _estimate_columns("component", rows)
    return Section.of_table("Components of the scores", columns, *(f"{line}." for line in methods))


def reference_metric_section(evaluation: ConceptEvaluation) -> Section:
    """The metrics that the faults of the scores do not affect."""
    rows: list[Row] = []
    for comparison in evaluation.score_comparisons:
        rows.append((comparison.title, {}))
        rows += [(f"  {name} {_arrow(by_model)}", by_model) for name, by_model in comparison.reference_metrics.items()]
    if evaluation.composite is not None and evaluation.composite.ground_truth:
        rows.append((f"{evaluation.composite.truth} ↑", evaluation.composite.ground_truth))
    title = "Ground-truth metrics and other reference metrics"
    return Section.of_table(title, _estimate_columns("metric", rows))


def _estimate_columns(first: str, rows: Sequence[Row]) -> list[ReportColumn]:
    """One row per metric and model; a metric without estimates is the heading of those below it."""
    cells: list[tuple[str, ...]] = []
    for name, by_model in rows:
        places = decimals(list(by_model.values()))
        if not by_model:
            cells.append((name, "", "", "", ""))
        cells += [
            (
                name if number == 0 else "",
                model,
                format_value(estimate.value, places),
                _format_interval(estimate.interval, places),
                format_value(estimate.chance, places),
            )
            for number, (model, estimate) in enumerate(by_model.items())
        ]
    names, models, values, intervals, chance = zip(*cells, strict=True)
    return [
        ReportColumn(first, names),
        ReportColumn("model", models, shortens="middle"),
        ReportColumn("value", values, right=True),
        ReportColumn("interval", intervals, right=True, rank=1),
        ReportColumn("chance", chance, right=True, rank=2),
    ]


def _format_interval(interval: Interval, places: int) -> str:
    """An interval in a table of many: a reason must not be wider than an interval."""
    text = format_interval(interval, places)
    return text if len(text) <= MAX_REASON_LENGTH else "n/a"


def _share(share: float) -> str:
    """A share of all, every one to the same digit."""
    return f"{format_value(100 * share, 1)} %"


def _arrow(by_model: ByModel) -> str:
    return "↓" if next(iter(by_model.values())).better == Direction.DOWN else "↑"


def pairwise_section(evaluation: ConceptEvaluation) -> list[Section]:
    """Every pair of models on every ground-truth metric, then on every score."""
    comparisons = evaluation.all_score_comparisons
    groups = [(comparison.truth, comparison.truth_contrasts) for comparison in comparisons]
    groups += [(comparison.score, comparison.contrasts) for comparison in comparisons]
    correction = evaluation.config.correction
    tables = tuple(
        ReportTable.of(_pair_columns(title, contrasts, correction)) for title, contrasts in groups if contrasts
    )
    return [Section("Differences between the models", tables)] if tables else []


def _pair_columns(title: str, contrasts: Sequence[Contrast], correction: str) -> list[ReportColumn]:
    """Every pair of models on one metric."""
    pairs = [(contrast, shared_decimals([contrast.interval])) for contrast in contrasts]
    differences = [format_difference(contrast.difference, places) for contrast, places in pairs]
    intervals = [_format_interval(contrast.interval, places) for contrast, places in pairs]
    return [
        ReportColumn("model A", [contrast.a for contrast, _ in pairs], shortens="middle"),
        ReportColumn("model B", [contrast.b for contrast, _ in pairs], shortens="middle"),
        ReportColumn(f"{title}: A - B", differences, right=True),
        ReportColumn("interval", intervals, right=True, rank=2),
        ReportColumn(
            p_heading(correction, len(pairs)),
            [format_p(contrast.adjusted) for contrast, _ in pairs],
            right=True,
            rank=1,
        ),
    ]


def weight_section(evaluation: ConceptEvaluation) -> list[Section]:
    """The winners of the composite under other weights."""
    if not evaluation.weight_sensitivities:
        return []
    ordered = sorted(evaluation.weight_sensitivities, key=lambda outcome: -outcome.share)
    columns = [
        ReportColumn("model", [outcome.model for outcome in ordered], shortens="middle"),
        ReportColumn("these data", [_share(outcome.share) for outcome in ordered], right=True),
        ReportColumn("resampled data", [_share(outcome.resampled) for outcome in ordered], right=True),
    ]
    for by_model in _spearman(evaluation):
        places = decimals(list(by_model.values()))
        cells = [value_with_interval(by_model[outcome.model], places) for outcome in ordered]
        columns.insert(1, ReportColumn("Spearman", cells, right=True))
    note = f"A weighting is a set of weights for {COMPOSITE}. All weightings are equally likely."
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
        ReportColumn("content", list(facts.values()), shortens="end"),
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
    missing = [f"{file}: {cost}." for file, cost in missing_sections(concept_set).items()]
    codes = ", ".join(dict.fromkeys(finding.code for finding in findings if finding.code in _SUMMARISING))
    heading = f"{pluralize(len(concept_set.problems), 'problem')} ({codes})" if codes else "problems"
    sections = (
        Section(heading, notes=tuple(lines), always=True),
        Section(
            "Missing or invalid files",
            notes=tuple(missing),
            always=True,
        ),
    )
    notes = (
        *pair_lines(concept_set),
        *([f"Files that were not read: {', '.join(concept_set.unread)}."] if concept_set.unread else []),
    )
    answer = Answer(
        f"The concept set {concept_set.name} {_usability(concept_set, findings)}.",
        columns if facts else (),
        notes=notes,
        findings=tuple(finding for finding in findings if finding.code not in _SUMMARISING),
    )
    return View(answer, tuple(section for section in sections if section.notes), title=concept_set.name)


def _usability(concept_set: ConceptSet, findings: Sequence[Finding]) -> str:
    fatal = sum(problem.fatal for problem in concept_set.problems)
    if fatal:
        return f"cannot be used: fix {pluralize(fatal, 'problem')} first"
    if concept_set.problems:
        return f"is valid, with {pluralize(len(concept_set.problems), 'problem')}"
    if any(finding.code == "EQ135" for finding in findings):
        return "is valid in part: not every score is defined on it"
    return "is valid"


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
            n_concepts = len(concept_set.standard_concepts or ())
            cost = f"{score.name} is computed on the {pluralize(n_concepts, 'concept')} of the clusters instead"
        else:
            unmeasured = [*filter(None, [score.name, score.truth]), COMPOSITE]
            uses = [*filter(None, [score.use]), GENERAL_USE]
            cost = f"{join_with(unmeasured, 'and')} are not computed; no recommendation for {join_with(uses, 'or')}"
        costs[_FILES[score.needs]] = cost
    return costs


def pair_lines(concept_set: ConceptSet) -> list[str]:
    """The categories of the pairs and the number of ratings, if there are any."""
    pairs = concept_set.pairs or ()
    lines = []
    categories = Counter(pair.category for pair in pairs if pair.category)
    if categories:
        counts = ", ".join(f"{name} {format_count(times)}" for name, times in categories.items())
        lines.append(f"Categories of pairs: {counts}.")
    n_ratings = {sum(not isnan(rating) for rating in pair.ratings) for pair in pairs}
    if max(n_ratings, default=0) > 1:
        span = f"{min(n_ratings)} to {max(n_ratings)}" if len(n_ratings) > 1 else f"{max(n_ratings)}"
        ceiling = annotator_ceiling(pairs)
        known = f"; the annotator ceiling is a Spearman correlation of {format_value(ceiling, 2)}"
        lines.append(f"Each pair has {span} ratings{'' if isnan(ceiling) else known}.")
    return lines


def _pair_facts(concept_set: ConceptSet) -> str:
    expected = [pair.expected for pair in concept_set.pairs or ()]
    if not expected:
        return "none can be used"
    unlike = sum(similarity <= MAX_DISSIMILAR for similarity in expected)
    span = f"{format_value(min(expected), 2)} to {format_value(max(expected), 2)}"
    limit = format_value(MAX_DISSIMILAR, 2)
    return f"expected similarity {span}, at most {limit} in {pluralize(unlike, 'pair')}"


def _cluster_facts(concept_set: ConceptSet) -> str:
    sizes = [len(cluster.concepts) for cluster in concept_set.clusters or ()]
    if not sizes:
        return "none can be used"
    span = str(min(sizes)) if min(sizes) == max(sizes) else f"{min(sizes)} to {max(sizes)}"
    return f"{pluralize(sum(sizes), 'concept')}, {span} per cluster"


def _sentence_facts(concept_set: ConceptSet) -> str:
    types = Counter(entity.label for sentence in concept_set.sentences or () for entity in sentence.entities)
    named = ", ".join(f"{label} {format_count(times)}" for label, times in types.most_common())
    count = sum(types.values())
    return f"{format_count(count)} {'entity' if count == 1 else 'entities'}: {named}" if types else "no entities"


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
