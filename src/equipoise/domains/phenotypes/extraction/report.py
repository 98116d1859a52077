"""Views of extraction runs and of extraction tunings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from typing import TYPE_CHECKING

from equipoise.checks.base import pluralize
from equipoise.metrics.sets import (
    AVERAGES,
    Mode,
    OverDocuments,
    SetAverageMetric,
    SetF1,
    SetPrecision,
    SetRecall,
)
from equipoise.report.answer import Answer
from equipoise.report.terminal import ReportColumn
from equipoise.report.view import Section, View
from equipoise.stats.formatting import (
    format_count,
    format_difference,
    format_interval,
    format_p,
    format_percent,
    format_value,
)

if TYPE_CHECKING:
    from equipoise.domains.phenotypes.assertion.evaluation import AssertionAccuracy, AssertionEvaluation
    from equipoise.domains.phenotypes.extraction.experiment import DictionaryBaseline
    from equipoise.stats.comparison import Comparison
    from equipoise.stats.result import Estimate, Result
    from equipoise.tuning.grid import Params, TuningRecord
    from equipoise.types import Finding

TITLES: dict[Mode, str] = {"strict": "with assertion", "present": "affirmed only", "id": "id only"}
SCORES: tuple[tuple[str, Callable[..., SetAverageMetric]], ...] = (
    ("precision", SetPrecision),
    ("recall", SetRecall),
    ("F1", SetF1),
)
MAX_LISTED = 100
"""Number of problems that are listed one by one."""
_SCORE_DECIMALS = 3
DETAILS = "Details: add -v (modes and averages, stages, errors by kind, gold spans, findings with hints)."


@dataclass(frozen=True)
class ExtractionReportData:
    """The data of the report of a run.

    ``stages`` counts gold entries by where they ended; ``errors_by_kind`` predicted and gold entries by kind;
    ``split`` how many the pipeline found, the chunker lost and the model lost, where spans are known.
    """

    result: Result
    averaging: OverDocuments
    mode: Mode
    counted: str
    documents: int
    chunks: int
    seconds: float
    stages: Mapping[str, int]
    errors_by_kind: Mapping[str, Mapping[str, int]]
    spans: tuple[Estimate, ...]
    split: tuple[int, ...]
    baseline: DictionaryBaseline | None
    notes: tuple[str, ...]
    problems: tuple[str, ...]
    citation: str
    findings: tuple[Finding, ...]


def extraction_view(edition: ExtractionReportData) -> View:
    """The primary scores, then all modes and averages, where gold entries were lost, errors, and the gold spans."""
    sections = (
        _mode_section(edition),
        *_stage_section(edition),
        _error_section(edition),
        *_gold_span_section(edition),
        *problem_section(edition.problems),
    )
    return View(extraction_answer(edition), sections, citation=edition.citation)


def extraction_answer(edition: ExtractionReportData) -> Answer:
    """The F1 with its interval, and the primary precision, recall and F1, exact and soft."""
    f1 = edition.result[SetF1(edition.averaging, edition.mode).name]
    level = format_percent(f1.interval.confidence_level)
    interval = format_interval(f1.interval, _SCORE_DECIMALS) if f1.interval.known else "n/a"
    return Answer(
        headline=(
            f"{edition.result.system}: {edition.averaging} F1 {format_value(f1.value, _SCORE_DECIMALS)} on "
            f"{pluralize(edition.documents, 'document')} ({level} interval {interval}; chance "
            f"{format_value(f1.chance, _SCORE_DECIMALS)})."
        ),
        columns=tuple(_primary_columns(edition)),
        notes=(
            *_baseline_note(edition),
            _run_caption(edition),
            *(f"{note}." for note in edition.notes),
            *_problem_note(edition.problems),
        ),
        findings=edition.findings,
        details=DETAILS,
    )


def _baseline_note(edition: ExtractionReportData) -> list[str]:
    """The paired difference from the dictionary alone."""
    if edition.baseline is None:
        return []
    contrast = edition.baseline.contrast
    interval = format_interval(contrast.interval, _SCORE_DECIMALS) if contrast.interval.known else "n/a"
    return [
        f"Difference from the dictionary alone (dict:) in {edition.averaging} F1, paired by document: "
        f"{format_difference(contrast.difference, _SCORE_DECIMALS)} ({interval}), p {format_p(contrast.p)}."
    ]


def _problem_note(problems: tuple[str, ...]) -> list[str]:
    return [f"{pluralize(len(problems), 'problem')} in the documents: -v lists them."] if problems else []


def problem_section(problems: tuple[str, ...]) -> list[Section]:
    """What did not fit in the documents, line by line."""
    if not problems:
        return []
    more = len(problems) - MAX_LISTED
    rest = (f"and {more} more.",) if more > 0 else ()
    return [Section("What did not fit in the documents", notes=(*problems[:MAX_LISTED], *rest))]


def _primary_rows(edition: ExtractionReportData) -> list[tuple[str, str, Estimate]]:
    """One row per score: title, kind of match, and estimate; the last row is the F1 of the dictionary alone."""
    rows = [
        (title, "soft" if soft else "exact", edition.result[kind(edition.averaging, edition.mode, soft).name])
        for soft in (False, True)
        for title, kind in SCORES
    ]
    if edition.baseline is not None:
        f1 = SetF1(edition.averaging, edition.mode).name
        rows.append(("F1 of dict:", "exact", edition.baseline.result[f1]))
    return rows


def _primary_columns(edition: ExtractionReportData) -> list[ReportColumn]:
    """The primary precision, recall and F1, exact and soft."""
    rows = _primary_rows(edition)
    estimates = [estimate for _, _, estimate in rows]
    level = format_percent(estimates[0].interval.confidence_level)
    return [
        ReportColumn(edition.averaging, [title for title, _, _ in rows]),
        ReportColumn("match", [match for _, match, _ in rows]),
        ReportColumn("estimate", [format_value(estimate.value, _SCORE_DECIMALS) for estimate in estimates], right=True),
        ReportColumn(
            f"{level} interval",
            [format_interval(estimate.interval, _SCORE_DECIMALS) for estimate in estimates],
            right=True,
            rank=1,
        ),
        ReportColumn(
            "chance",
            [format_value(estimate.chance, _SCORE_DECIMALS) for estimate in estimates],
            right=True,
            rank=2,
        ),
    ]


def _run_caption(edition: ExtractionReportData) -> str:
    shown = [estimate for _, _, estimate in _primary_rows(edition)]
    shown += [edition.result[SetF1(average, mode).name] for mode in TITLES for average in AVERAGES]
    methods = dict.fromkeys(estimate.interval.method for estimate in shown if estimate.interval.known)
    how = f"Intervals over documents: {', '.join(methods)}. " if methods else ""
    rate = edition.documents / edition.seconds if edition.seconds else 0.0
    return (
        f"Counted: {edition.counted}. Soft scores match terms one to one, with partial credit for similar terms. "
        f"{how}Chance is the score of the same predictions, assigned to documents at random. "
        f"{format_count(edition.chunks)} phrases in {format_value(edition.seconds, 1)} s, "
        f"{format_value(rate, 1)} documents per second."
    )


def _mode_section(edition: ExtractionReportData) -> Section:
    """P, R and F1 by every mode and average."""
    rows = [(mode, average) for mode in TITLES for average in AVERAGES]
    columns = [
        ReportColumn("mode", [TITLES[mode] if average == AVERAGES[0] else "" for mode, average in rows]),
        ReportColumn("average", [average for _, average in rows]),
    ]
    for title, kind in SCORES:
        estimates = [edition.result[kind(average, mode).name] for mode, average in rows]
        columns.append(
            ReportColumn(title, [format_value(estimate.value, _SCORE_DECIMALS) for estimate in estimates], right=True)
        )
    of_f1 = [edition.result[SetF1(average, mode).name] for mode, average in rows]
    columns.append(
        ReportColumn(
            "F1 interval",
            [format_interval(estimate.interval, _SCORE_DECIMALS) for estimate in of_f1],
            right=True,
            rank=1,
        )
    )
    undefined = [str(estimate.undefined) for estimate in of_f1]
    columns.append(ReportColumn("undefined", undefined, right=True, rank=2))
    return Section.of_table("By mode and average", columns)


def _stage_section(edition: ExtractionReportData) -> list[Section]:
    """Where the gold entries ended."""
    total = sum(edition.stages.values())
    met = {stage: number for stage, number in edition.stages.items() if number}
    if not total:
        return []
    columns = [
        ReportColumn("ended at", list(met)),
        ReportColumn("gold entries", [format_count(number) for number in met.values()], right=True),
        ReportColumn("share", [format_value(number / total, _SCORE_DECIMALS) for number in met.values()], right=True),
    ]
    return [Section.of_table("What became of the gold", columns)]


def _error_section(edition: ExtractionReportData) -> Section:
    """Predicted and gold entries by kind."""
    kinds = list(edition.errors_by_kind["predicted"])
    columns = [
        ReportColumn("kind", kinds),
        ReportColumn(
            "predicted", [format_count(edition.errors_by_kind["predicted"][kind]) for kind in kinds], right=True
        ),
        ReportColumn("gold", [format_count(edition.errors_by_kind["gold"][kind]) for kind in kinds], right=True),
    ]
    note = "Parent, child, sibling: what was found, seen from the gold term of the same document."
    return Section.of_table("Errors by kind", columns, note)


def _gold_span_section(edition: ExtractionReportData) -> list[Section]:
    """The gold-span oracle."""
    if not edition.spans:
        return []
    columns = [
        ReportColumn("gold spans as queries", [span.metric for span in edition.spans], shortens="end"),
        ReportColumn("estimate", [format_value(span.value, _SCORE_DECIMALS) for span in edition.spans], right=True),
        ReportColumn(
            "interval",
            [format_interval(span.interval, _SCORE_DECIMALS) for span in edition.spans],
            right=True,
            rank=1,
        ),
    ]
    n_found, chunker, model = edition.split
    note = (
        f"Marked gold terms: {format_count(n_found + chunker + model)}. Found: {format_count(n_found)}. Lost by "
        f"the chunker: {format_count(chunker)}, which their own words would have found. Lost by the "
        f"model: {format_count(model)}, which are not found even so."
    )
    return [Section.of_table("The model apart from the chunker", columns, note)]


_TUNING_DECIMALS = 3


@dataclass(frozen=True)
class TunedModelSummary:
    """One model: its tuning, the nested estimate, and precision and recall of every trial.

    ``unseen`` are further scores on held-out documents, by name.
    """

    name: str
    tuning: TuningRecord
    estimate: Estimate
    precision: tuple[float, ...]
    recall: tuple[float, ...]
    unseen: tuple[tuple[str, float], ...] = ()

    @property
    def frontier(self) -> list[int]:
        """The Pareto-optimal trials of the grid in precision and recall, by increasing recall.

        Of equal trials only the first is included.
        """
        known = [
            place
            for place in range(len(self.tuning.grid))
            if not isnan(self.precision[place]) and not isnan(self.recall[place])
        ]
        order = sorted(known, key=lambda place: (-self.recall[place], -self.precision[place], place))
        edge: list[int] = []
        for place in order:
            if not edge or self.precision[place] > self.precision[edge[-1]]:
                edge.append(place)
        return edge[::-1]


@dataclass(frozen=True)
class TuningReportData:
    """The data of the report of a tuning."""

    parts: tuple[TunedModelSummary, ...]
    documents: int
    counted: str
    comparison: Comparison | None
    notes: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()


def tuning_view(edition: TuningReportData) -> View:
    """The held-out scores and what to deploy, then precision against recall and the folds of every model."""
    first = edition.parts[0].tuning
    nested = bool(first.folds)
    documents = pluralize(edition.documents, "document")
    title = (
        f"Held-out {first.trial_metric} on {documents} (nested cross-validation)"
        if nested
        else f"Optimistic {first.metric} on {documents} (selected and scored on the same documents)"
    )
    comparison = edition.comparison
    answer = Answer(
        headline=title if comparison is None else comparison.verdict("document"),
        columns=tuple(model_table(edition)),
        notes=(
            *(() if comparison is None else (f"{title}.",)),
            *_deployment_lines(edition),
            _tuning_caption(edition, nested),
            *(f"{note}." for note in edition.notes),
            *_problem_note(edition.problems),
        ),
        findings=edition.findings,
        details="Details: add -v (precision against recall, folds, findings with hints).",
    )
    by_model = [section for part in edition.parts for section in (*_frontier_section(part), *_fold_section(part))]
    return View(answer, (*by_model, *problem_section(edition.problems)))


def model_table(edition: TuningReportData) -> list[ReportColumn]:
    """One row per model, best first: the nested and the optimistic score."""
    ranked = sorted(edition.parts, key=lambda model: -model.estimate.value)
    estimates = [model.estimate for model in ranked]
    level = format_percent(estimates[0].interval.confidence_level)
    columns = [
        ReportColumn("model", [model.name for model in ranked], shortens="middle"),
        ReportColumn("held-out" if ranked[0].tuning.folds else "F1", _format_estimates(estimates), right=True),
        ReportColumn(
            f"{level} interval",
            [format_interval(estimate.interval, _TUNING_DECIMALS) for estimate in estimates],
            right=True,
            rank=1,
        ),
    ]
    if edition.comparison is not None:
        columns.append(
            ReportColumn("adj. p", [_adjusted_p(edition.comparison, model.name) for model in ranked], right=True)
        )
    if ranked[0].tuning.folds:
        best = [format_value(model.tuning.optimistic, _TUNING_DECIMALS) for model in ranked]
        columns.append(ReportColumn("optimistic", best, right=True, rank=2))
        columns.append(
            ReportColumn(
                "gap", [format_difference(model.tuning.gap, _TUNING_DECIMALS) for model in ranked], right=True, rank=4
            )
        )
    usual = [_baseline(model.tuning) for model in ranked]
    columns.append(ReportColumn("untuned", usual, right=True, rank=3))
    columns.append(
        ReportColumn(
            "chance", [format_value(estimate.chance, _TUNING_DECIMALS) for estimate in estimates], right=True, rank=5
        )
    )
    return columns


def _deployment_lines(edition: TuningReportData) -> list[str]:
    """The parameters to deploy per model: the best trial, or the defaults if no trial is better."""
    lines = []
    for part in edition.parts:
        tuning = part.tuning
        usual = None if tuning.baseline is None else tuning.trials[tuning.baseline]
        if usual is None or usual.value < tuning.optimistic:
            lines.append(f"Deploy {part.name} with {format_params(tuning.trials[tuning.best].params)}.")
        else:
            lines.append(
                f"Deploy {part.name} with the default parameters ({format_params(usual.params)}): they have "
                f"{format_value(usual.value, _TUNING_DECIMALS)}, and no trial is better."
            )
    return lines


def format_params(params: Params) -> str:
    """Parameters in a few words.

    >>> few = {"num_results": 3, "chunk_threshold": 0.61, "min_confidence": 0.0, "top_term_only": False}
    >>> format_params(few | {"dictionary": True, "chunkers": "span", "branch": "HP:0000118"})
    'dictionary and span below HP:0000118, 3 terms, threshold 0.61'
    """
    generator = ("dictionary and " if params.get("dictionary") else "") + str(params.get("chunkers") or "chunks")
    if params.get("branch"):
        generator += f" below {params['branch']}"
    parts = [generator, "top term only" if params["top_term_only"] else f"{params['num_results']} terms"]
    parts.append(f"threshold {float(params['chunk_threshold'] or 0.0):g}")
    confidence = float(params["min_confidence"] or 0.0)
    if confidence > 0:
        parts.append(f"confidence {confidence:g}")
    return ", ".join(parts)


def _format_estimates(estimates: Sequence[Estimate]) -> list[str]:
    return [format_value(estimate.value, _TUNING_DECIMALS) for estimate in estimates]


def _baseline(tuning: TuningRecord) -> str:
    return "n/a" if tuning.baseline is None else format_value(tuning.trials[tuning.baseline].value, _TUNING_DECIMALS)


def _adjusted_p(comparison: Comparison, name: str) -> str:
    """The adjusted p against the leader."""
    leader = comparison.leader
    if leader is None or name == leader:
        return ""
    return format_p(comparison.contrast(leader, name).adjusted)


def _tuning_caption(edition: TuningReportData, nested: bool) -> str:
    first = edition.parts[0]
    trials = pluralize(len(first.tuning.grid), "trial")
    sentences = [f"Counted: {edition.counted}. {trials} per model, from one grid; {_distinct_outcomes(edition)}."]
    if nested:
        sentences.append(
            f"{len(first.tuning.folds)} folds: each document is scored with parameters selected on the others. "
            "Optimistic is the score of the best trial on the documents used to select it. Thresholds are quantiles of "
            "the model's scores on all texts, including the held-out fold; annotations are not used."
        )
    unseen = ", ".join(f"{name} {format_value(value, _TUNING_DECIMALS)}" for name, value in first.unseen)
    if nested and unseen:
        sentences.append(f"On held-out documents {first.name} has {unseen}.")
    return " ".join(sentences)


def _distinct_outcomes(edition: TuningReportData) -> str:
    """The number of distinct outcomes per model."""
    sentences = []
    for part in edition.parts:
        values = [trial.value for trial in part.tuning.grid]
        rows = zip(values, part.precision, part.recall, strict=False)
        sentences.append(f"{len({repr(row) for row in rows})} of {part.name}")
    return f"{', '.join(sentences)} have distinct scores"


def _frontier_section(part: TunedModelSummary) -> list[Section]:
    """The Pareto-optimal trials."""
    edge = part.frontier
    if not edge:
        return []
    best = part.tuning.best
    columns = [
        ReportColumn("", ["chosen" if place == best else "" for place in edge]),
        ReportColumn(
            "precision", [format_value(part.precision[place], _TUNING_DECIMALS) for place in edge], right=True
        ),
        ReportColumn("recall", [format_value(part.recall[place], _TUNING_DECIMALS) for place in edge], right=True),
        ReportColumn(
            "F1", [format_value(part.tuning.trials[place].value, _TUNING_DECIMALS) for place in edge], right=True
        ),
        ReportColumn("parameters", [format_params(part.tuning.trials[place].params) for place in edge], rank=1),
    ]
    title = f"Precision against recall of {part.name}, on the documents that chose (optimistic)"
    return [Section.of_table(title, columns)]


def _fold_section(part: TunedModelSummary) -> list[Section]:
    """The trial that each fold selected, with its inner and outer score."""
    folds = part.tuning.folds
    if not folds:
        return []
    columns = [
        ReportColumn("fold", [str(number) for number in range(1, len(folds) + 1)], right=True),
        ReportColumn("documents", [str(fold.n) for fold in folds], right=True),
        ReportColumn("inner", [format_value(fold.inner, _TUNING_DECIMALS) for fold in folds], right=True),
        ReportColumn("outer", [format_value(fold.outer, _TUNING_DECIMALS) for fold in folds], right=True),
        ReportColumn("chosen", [format_params(fold.params) for fold in folds]),
    ]
    return [Section.of_table(f"Folds of {part.name}", columns)]


def assertion_view(evaluations: Sequence[AssertionEvaluation]) -> View:
    """The accuracy of assertion detection by language and assertion; by kind of sentence and the errors in detail."""
    parts = ", ".join(
        f"{evaluation.language} {format_value(evaluation.total.value, _SCORE_DECIMALS)} on "
        f"{pluralize(evaluation.total.n_cases, 'case')}"
        for evaluation in evaluations
    )
    rows = [
        (evaluation.language, group)
        for evaluation in evaluations
        for group in (evaluation.total, *evaluation.by_assertion)
    ]
    sections = [
        Section.of_table(
            f"By kind of sentence ({evaluation.language})",
            _accuracy_columns([(evaluation.language, group) for group in evaluation.by_kind]),
        )
        for evaluation in evaluations
    ]
    errors = [
        f"{case.text} ({case.finding}: {case.expected}, detected {detected})"
        for evaluation in evaluations
        for case, detected in evaluation.errors
    ]
    sections += [Section("Errors", notes=tuple(errors[:MAX_LISTED]))] if errors else []
    answer = Answer(
        headline=f"Accuracy of assertions: {parts}.",
        columns=tuple(_accuracy_columns(rows)),
        notes=("Intervals are Wilson's.",),
        details="Details: add -v (accuracy by kind of sentence, errors).",
    )
    return View(answer, tuple(sections))


def _accuracy_columns(rows: Sequence[tuple[str, AssertionAccuracy]]) -> list[ReportColumn]:
    groups = [group for _, group in rows]
    level = format_percent(groups[0].interval.confidence_level)
    return [
        ReportColumn("language", [language for language, _ in rows]),
        ReportColumn("cases of", [group.group for group in groups]),
        ReportColumn("accuracy", [format_value(group.value, _SCORE_DECIMALS) for group in groups], right=True),
        ReportColumn(
            f"{level} interval", [format_interval(group.interval, _SCORE_DECIMALS) for group in groups], right=True
        ),
        ReportColumn("n", [format_count(group.n_cases) for group in groups], right=True),
    ]
