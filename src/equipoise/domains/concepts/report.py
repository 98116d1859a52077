"""What people see of concept scores: the scores with intervals and chance, their parts, and what to use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan, nan
from typing import TYPE_CHECKING, Any

from equipoise.checks.base import join_names, pluralize
from equipoise.errors import UnknownNameError
from equipoise.report.answer import Answer
from equipoise.report.terminal import ReportColumn
from equipoise.report.view import ReportTable, Section, View
from equipoise.stats.formatting import (
    format_difference,
    format_interval,
    format_p,
    format_percent,
    format_range,
    format_value,
    shared_decimals,
)
from equipoise.stats.result import Estimate
from equipoise.types import Direction, Finding, with_label

if TYPE_CHECKING:
    from equipoise.stats.contrasts import Contrast
    from equipoise.stats.intervals import Interval

# What a report on concept scores shows: every model on every score, the claims, and what to use.

ByModel = Mapping[str, Estimate]


@dataclass(frozen=True)
class ScoreComparison:
    """All models on one score.

    ``terms`` are the summands of the score; ``parts`` are the values behind them, and ``reference_metrics``
    what judges without its faults; each by name and then by model. ``letters`` are tie bands: two models
    share one exactly if they are not significantly different. ``units`` are the units of the score, ``drawn``
    says how they were resampled for the intervals, ``chance_baseline`` the baseline of the chance level, ``family``
    what p was corrected for. ``readings`` define ambiguous parts.
    ``truth`` names the reference metric that uses the true labels: ``chance_p`` has the p of "no
    better than shuffled" by figure and model, ``truth_contrasts`` every pair of models on it.
    """

    score: str
    title: str
    formula: str
    estimates: ByModel
    contrasts: tuple[Contrast, ...] = field(repr=False)
    letters: Mapping[str, tuple[str, ...]]
    order: tuple[str, ...]
    drawn: str
    units: str = ""
    chance_baseline: str = ""
    family: str = ""
    method: str = ""
    readings: tuple[str, ...] = ()
    truth: str = ""
    chance_p: Mapping[str, Mapping[str, float]] = field(default_factory=dict, repr=False)
    truth_contrasts: tuple[Contrast, ...] = field(default=(), repr=False)
    terms: Mapping[str, ByModel] = field(default_factory=dict, repr=False)
    parts: Mapping[str, ByModel] = field(default_factory=dict, repr=False)
    reference_metrics: Mapping[str, ByModel] = field(default_factory=dict, repr=False)
    slices: Mapping[str, ByModel] = field(default_factory=dict, repr=False)
    """The ground-truth metric by category of the units and by model."""

    @property
    def ground_truth(self) -> ByModel:
        """The ground-truth metric by model; empty if there is none."""
        return self.reference_metrics.get(self.truth, {})

    @property
    def leader(self) -> str | None:
        """The model with the highest score; None where no model has one."""
        return next((name for name in self.order if self.letters[name]), None)

    @property
    def tied_with_leader(self) -> tuple[str, ...]:
        """The models that cannot be told from the leader, best first."""
        if self.leader is None:
            return ()
        mine = set(self.letters[self.leader])
        return tuple(name for name in self.order if name != self.leader and mine & set(self.letters[name]))

    @property
    def scored(self) -> tuple[str, ...]:
        """The models that have this score, best first."""
        return tuple(name for name in self.order if self.letters[name])

    def above_chance(self, figure: str, model: str) -> bool:
        """Whether a reference metric is significantly above chance: by permutation, else by its interval."""
        estimate = self.reference_metrics[figure][model]
        if figure in self.chance_p:
            return self.chance_p[figure].get(model, nan) < 1 - estimate.interval.confidence_level
        return estimate.interval.known and estimate.interval.low > estimate.chance

    def truth_contrast(self, a: str, b: str) -> Contrast | None:
        """Model ``a`` minus model ``b`` in the ground-truth metric; None if they could not be compared."""
        for contrast in self.truth_contrasts:
            if {contrast.a, contrast.b} == {a, b}:
                return contrast if contrast.a == a else contrast.reversed()
        return None

    def is_better(self, a: str, b: str) -> bool:
        """Whether the ground-truth metric of ``a`` is significantly better than that of ``b``."""
        contrast = self.truth_contrast(a, b)
        return (
            contrast is not None
            and contrast.difference > 0
            and contrast.adjusted < 1 - contrast.interval.confidence_level
        )

    def contrast(self, a: str, b: str) -> Contrast:
        """Model ``a`` minus model ``b``."""
        for contrast in self.contrasts:
            if {contrast.a, contrast.b} == {a, b} and a != b:
                return contrast if contrast.a == a else contrast.reversed()
        raise UnknownNameError.of("pair of models", f"{a}, {b}", (f"{c.a}, {c.b}" for c in self.contrasts))


@dataclass(frozen=True, slots=True)
class Recommendation:
    """What to use for a kind of work.

    ``models`` are the best in the ground-truth ``metric`` and those that are not significantly worse; none if no
    model can be recommended, and ``message`` then says why. ``value`` is the metric of the first of them with interval
    and chance level, ``test`` the result of the paired test. ``formula`` says which model the ``score`` would have
    picked, if another, and why it is not taken. ``excluded`` has the models that cannot be recommended, with reasons.
    """

    use: str
    score: str
    metric: str
    models: tuple[str, ...] = ()
    message: str = ""
    value: str = ""
    test: str = ""
    formula: str = ""
    excluded: Mapping[str, str] = field(default_factory=dict)

    @property
    def names(self) -> str:
        """The recommended models in words."""
        return join_with(self.models, "or") if self.models else "none"

    @property
    def short(self) -> str:
        """The models, the test and what the score would have picked; the table has the values."""
        text = f"{self.names} ({self.test})" if self.models else self.message
        return f"{text}; {self.formula}" if self.formula else text

    @property
    def text(self) -> str:
        """Everything in one sentence."""
        parts = (f"{self.names}: {self.value}", self.test) if self.models else (self.message,)
        return "; ".join(filter(None, (*parts, self.formula)))

    @property
    def settled(self) -> bool:
        """Whether the data separate one model from all others."""
        return len(self.models) == 1


def join_with(names: Sequence[str], word: str) -> str:
    """Names joined with commas and a conjunction.

    >>> join_with(["a", "b", "c"], "or"), join_with(["a"], "and")
    ('a, b or c', 'a')
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {word} {names[-1]}"


@dataclass(frozen=True, slots=True)
class WeightSensitivity:
    """The share of weightings in which a model is first: with the scores, and with resampled units."""

    model: str
    share: float
    resampled: float


@dataclass(frozen=True)
class ConceptReportData:
    """The whole of it; ``composite`` is None where not all of its scores are there, and ``notes`` say why."""

    name: str
    models: tuple[str, ...]
    score_comparisons: tuple[ScoreComparison, ...]
    composite: ScoreComparison | None
    advice: tuple[Recommendation, ...]
    winning: tuple[WeightSensitivity, ...]
    readings: Mapping[str, Mapping[str, str]]
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    failures: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    ceiling: float = nan
    """Mean correlation of an annotator with the others; NaN without several ratings."""

    @property
    def all_score_comparisons(self) -> tuple[ScoreComparison, ...]:
        """The scores and, where there is one, the composite after them."""
        return self.score_comparisons if self.composite is None else (*self.score_comparisons, self.composite)


SMALL = 10.0
"""Figures below this are no ranks."""
MAX_REASON_LENGTH = 24
"""The longest reason that a table shows in place of an interval; results.json has them all."""

Row = tuple[str, str, ByModel]
"""What a figure is about, its name, and what every model has."""


def concepts_view(report_data: ConceptReportData) -> View:
    """The answer, then advice, ground truth and reference metrics, categories, scores, pairs and weightings."""
    sections = (
        *advice_section(report_data),
        reference_metric_section(report_data),
        *slice_section(report_data),
        score_section(report_data),
        component_section(report_data),
        *pairwise_section(report_data),
        *weight_section(report_data),
    )
    return View(concepts_answer(report_data), sections)


AT_CHANCE = "*"
"""Marks a ground-truth metric that is not significantly above chance."""


def concepts_answer(report_data: ConceptReportData) -> Answer:
    """Which model to use for what, and every model with its ground-truth metrics, best first."""
    comparisons = report_data.all_score_comparisons
    with_truth = [comparison for comparison in comparisons if comparison.ground_truth]
    order = _answer_order(with_truth, comparisons[-1])
    columns = [ReportColumn("model", order, shortens="middle")]
    for rank, comparison in enumerate(with_truth, start=1):
        columns.append(ReportColumn(comparison.truth, _truth_cells(comparison, order), right=True, rank=rank))
    if not with_truth or comparisons[-1].truth:
        last = comparisons[-1]
        columns.append(ReportColumn(last.score, _score_cells(last, order), right=True, rank=len(comparisons) + 1))
    return Answer(
        headline=_decision(report_data),
        columns=tuple(columns),
        notes=(
            *filter(None, [_chance_sentence(with_truth)]),
            *(f"{recommendation.use}: {recommendation.short}" for recommendation in report_data.advice),
            *(f"{note}." for note in report_data.notes),
        ),
        warnings=tuple(with_label(f"{name} failed", text) for name, text in report_data.failures.items()),
        findings=report_data.findings,
        details="Details: add -v (recommendations with values, categories, scores, parts, pairs, findings with hints).",
    )


def _answer_order(with_truth: Sequence[ScoreComparison], last: ScoreComparison) -> tuple[str, ...]:
    """The models, best first in the last ground-truth metric: the mean of all, if there is one."""
    if not with_truth:
        return last.order
    values = with_truth[-1].ground_truth
    return tuple(sorted(last.order, key=lambda name: (isnan(values[name].value), -values[name].value)))


def _truth_cells(comparison: ScoreComparison, order: Sequence[str]) -> list[str]:
    """``0.56 [0.44, 0.66]``, marked if it is not above chance."""
    estimates = comparison.ground_truth
    places = _places(list(estimates.values()))
    return [
        f"{format_value(estimates[name].value, places)} {_reach(estimates[name].interval, places)}"
        + (" " if comparison.above_chance(comparison.truth, name) else AT_CHANCE)
        for name in order
    ]


def _score_cells(comparison: ScoreComparison, order: Sequence[str]) -> list[str]:
    places = _places(list(comparison.estimates.values()))
    return [format_value(comparison.estimates[name].value, places) for name in order]


def _decision(report_data: ConceptReportData) -> str:
    """The recommendation for general use, or for the first use that was measured."""
    name = report_data.name
    if not report_data.advice:
        return f"Not decided: no task that was measured on {name} has labels to compare the models with."
    advice = report_data.advice[0]
    if not advice.models:
        return f"No model can be recommended on {name}: {advice.message.removeprefix('no model: ')}."
    best, others = advice.models[0], advice.models[1:]
    if len(report_data.models) < 2:
        return f"{best} on {name}: {advice.value}. One model alone does not show which is best: add a baseline."
    if others:
        verb = "is" if len(others) == 1 else "are"
        names = join_names(others)
        return f"Not decided: {best} is highest on {name} ({advice.value}); {names} {verb} not significantly worse."
    count = len(report_data.models)
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
    marked = any(
        not comparison.above_chance(comparison.truth, name)
        for comparison in with_truth
        for name in comparison.ground_truth
    )
    mark = f" {AT_CHANCE} is not significantly above chance." if marked else ""
    return f"Chance levels: {levels}.{mark}" if levels else ""


def advice_section(report_data: ConceptReportData) -> list[Section]:
    """What to use, with the test, and what the published formula would have picked."""
    advice = report_data.advice
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
        f"{recommendation.use}: {model} is not recommended: {reason}."
        for recommendation in advice
        for model, reason in recommendation.excluded.items()
    ]
    return [Section.of_table("What to use, by ground truth", columns, *notes)]


def slice_section(report_data: ConceptReportData) -> list[Section]:
    """The ground-truth metric by category, one column per model, and the annotator ceiling."""
    ceiling = report_data.ceiling
    note = (
        ""
        if isnan(ceiling)
        else f"Annotator ceiling: an annotator has a mean Spearman correlation of {format_value(ceiling, 2)} with the "
        "mean of the others. A model is not expected to exceed it."
    )
    sections = []
    for comparison in report_data.score_comparisons:
        rows = comparison.slices
        if not rows and not (note and comparison.truth == "Spearman"):
            continue
        shown: Mapping[str, ByModel] = {f"all {comparison.units}": comparison.ground_truth, **rows}
        columns = [
            ReportColumn("category", list(shown)),
            ReportColumn("n", [str(next(iter(by_model.values())).n) for by_model in shown.values()], right=True),
        ]
        for place, model in enumerate(report_data.models):
            cells = [_value_and_interval(by_model, model) for by_model in shown.values()]
            columns.append(ReportColumn(model, cells, right=True, rank=place))
        sections.append(Section.of_table(f"{comparison.truth} by category", columns, note))
    return sections


def _value_and_interval(by_model: ByModel, model: str) -> str:
    places = _places(list(by_model.values()))
    return f"{format_value(by_model[model].value, places)} {_reach(by_model[model].interval, places)}"


def score_section(report_data: ConceptReportData) -> Section:
    """Every score of every model, with what is known about it."""
    several = ", best first in every score" if len(report_data.models) > 1 else ""
    title = f"The weighted scores of {pluralize(len(report_data.models), 'model')} on {report_data.name}{several}"
    return Section(title, (ReportTable.of(score_columns(report_data)),), (caption(report_data),))


def score_columns(report_data: ConceptReportData) -> list[ReportColumn]:
    """One row a score and model; on a narrow screen the score and who differs stay longest."""
    rows = []
    for score_comparison in report_data.all_score_comparisons:
        estimates = [score_comparison.estimates[name] for name in score_comparison.order]
        places = _places(estimates)
        for number, (name, estimate) in enumerate(zip(score_comparison.order, estimates, strict=True)):
            rows.append(
                (
                    score_comparison.score if number == 0 else "",
                    " ".join(score_comparison.letters[name]) or "-",
                    name,
                    format_value(estimate.value, places),
                    format_interval(estimate.interval, places),
                    format_value(estimate.chance, places),
                    report_data.readings[score_comparison.score][name],
                )
            )
    score, band, model, value, reach, chance, said = zip(*rows, strict=True)
    confidence_level = format_percent(report_data.settings.get("confidence_level", 0.95))
    several = [ReportColumn("band", band, rank=1)] if len(report_data.models) > 1 else []
    return [
        ReportColumn("score", score),
        *several,
        ReportColumn("model", model, shortens="middle"),
        ReportColumn("value", value, right=True),
        ReportColumn(f"{confidence_level} interval", reach, right=True, rank=2),
        ReportColumn("chance", chance, right=True, rank=3),
        ReportColumn("reading", said, rank=4),
    ]


def caption(report_data: ConceptReportData) -> str:
    """What the letters, the intervals and the chance levels are."""
    comparisons = report_data.score_comparisons
    letters = (
        "Models that share a letter are not significantly different on that score "
        f"({comparisons[0].family or 'one pair, nothing to correct for'}). "
        if len(report_data.models) > 1
        else ""
    )
    drawn = ", ".join(comparison.drawn for comparison in comparisons)
    chance = "; ".join(comparison.chance_baseline for comparison in comparisons)
    return (
        f"{letters}Intervals come from bootstrap resamples: {drawn}. Chance is the score of a random "
        f"baseline: shuffled pairs and labels, or random vectors of the same shape ({chance}). The readings "
        "use the thresholds 0.3, 0.5 and 0.7, independent of chance."
    )


def component_section(report_data: ConceptReportData) -> Section:
    """What each score adds up, term by term."""
    comparisons = report_data.score_comparisons
    rows = [
        (f"{score_comparison.score} =" if place == 0 else "", f"{'+ ' if place else '  '}{term}", by_model)
        for score_comparison in comparisons
        for place, (term, by_model) in enumerate(score_comparison.terms.items())
    ]
    methods = [comparison.method for comparison in comparisons if comparison.method]
    methods += [line for comparison in comparisons for line in comparison.readings]
    columns = _estimate_columns("score", "part", rows)
    return Section.of_table("What the scores are made of", columns, *(f"{method}." for method in methods))


def reference_metric_section(report_data: ConceptReportData) -> Section:
    """Figures that the faults of the blends do not touch."""
    rows = [
        (score_comparison.title if place == 0 else "", f"{name} {_arrow(by_model)}", by_model)
        for score_comparison in report_data.score_comparisons
        for place, (name, by_model) in enumerate(score_comparison.reference_metrics.items())
    ]
    if report_data.composite is not None and report_data.composite.ground_truth:
        rows.append(("All tasks", f"{report_data.composite.truth} ↑", report_data.composite.ground_truth))
    title = "Ground truth, and other metrics that do not depend on scale"
    return Section.of_table(title, _estimate_columns("about", "metric", rows))


def _estimate_columns(first: str, second: str, rows: Sequence[Row]) -> list[ReportColumn]:
    """One row per figure and model."""
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
    """Decimals for figures side by side; two at least where they are small: a correlation is never 1.0."""
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


def pairwise_section(report_data: ConceptReportData) -> list[Section]:
    """Every pair of models on every ground-truth metric, then on every score."""
    comparisons = report_data.all_score_comparisons
    every = [(comparison.truth, comparison.truth_contrasts) for comparison in comparisons]
    every += [(comparison.score, comparison.contrasts) for comparison in comparisons]
    tables = tuple(ReportTable.of(_pair_columns(title, contrasts)) for title, contrasts in every if contrasts)
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


def weight_section(report_data: ConceptReportData) -> list[Section]:
    """How much the winner of the composite owes to the weights."""
    if not report_data.winning:
        return []
    ordered = sorted(report_data.winning, key=lambda outcome: -outcome.share)
    columns = [
        ReportColumn("model", [outcome.model for outcome in ordered], shortens="middle"),
        ReportColumn("comes first in", [_share(outcome.share) for outcome in ordered], right=True),
        ReportColumn("with resampled data", [_share(outcome.resampled) for outcome in ordered], right=True),
    ]
    note = "of all weightings of the composite, each as likely as any other."
    return [Section.of_table("If the scores were weighted otherwise", columns, note)]
