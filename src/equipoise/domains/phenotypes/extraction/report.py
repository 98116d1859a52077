"""Views of extraction runs, of extraction tunings and of the evaluation of assertions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from equipoise.checks.base import pluralize
from equipoise.domains.phenotypes.config import MODE_DESCRIPTIONS, MODE_TITLES, metric_label
from equipoise.metrics.sets import AVERAGES, SetAverageMetric, SetF1, SetPrecision, SetRecall
from equipoise.report.answer import Answer, failure_line
from equipoise.report.tables import interval_methods
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
    from equipoise.domains.phenotypes.extraction.experiment import ExtractionRun
    from equipoise.domains.phenotypes.extraction.tuning_results import ExtractionTuning, TunedModel
    from equipoise.stats.intervals import Interval
    from equipoise.stats.result import Estimate
    from equipoise.tuning.grid import Params

SCORES: tuple[tuple[str, Callable[..., SetAverageMetric]], ...] = (
    ("precision", SetPrecision),
    ("recall", SetRecall),
    ("F1", SetF1),
)
STAGES: dict[str, str] = {
    "chunking": "lost: no phrase contains or retrieves it",
    "retrieval": "lost: no phrase retrieves it",
    "num_results": "lost: it ranks below --top-k",
    "top_term": "lost: another term ranks first in its phrase",
    "threshold": "lost: its confidence is below --chunk-threshold",
    "overlap": "lost: its phrase was dropped for an overlapping one",
    "confidence": "lost: its mean confidence is below --min-confidence",
    "assertion": "found with another assertion",
    "found": "found",
}
"""What happened to a gold term, by its ``LossStage``."""
MAX_LISTED = 100
"""Number of problems that are listed one by one."""
_DECIMALS = 3


def _number(value: float) -> str:
    return format_value(value, _DECIMALS)


def _values(title: str, values: Iterable[float], rank: int = 0) -> ReportColumn:
    return ReportColumn(title, [_number(value) for value in values], right=True, rank=rank)


def _counts(title: str, counts: Iterable[int]) -> ReportColumn:
    return ReportColumn(title, [format_count(count) for count in counts], right=True)


def _intervals(title: str, intervals: Iterable[Interval], rank: int = 1) -> ReportColumn:
    cells = [format_interval(interval, _DECIMALS).replace(" units ", " documents ") for interval in intervals]
    return ReportColumn(title, cells, right=True, rank=rank)


def _interval_title(estimates: Sequence[Estimate]) -> str:
    return f"{format_percent(estimates[0].interval.confidence_level)} interval"


def extraction_view(run: ExtractionRun) -> View:
    """The primary scores, then all modes and averages, where gold entries were lost, errors, and the gold spans."""
    sections = (
        _mode_section(run),
        *_stage_section(run),
        _error_section(run),
        *_gold_span_section(run),
        *_problem_section(run.gold.problem_messages),
    )
    return View(_extraction_answer(run), sections, citation=run.gold.ontology.citation)


def _extraction_answer(run: ExtractionRun) -> Answer:
    """The F1 with its interval, and the primary precision, recall and F1, exact and soft."""
    averaging = run.settings.averaging
    f1 = run.result[SetF1(averaging, run.settings.mode).name]
    level = format_percent(f1.interval.confidence_level)
    notes = []
    if run.baseline is not None:
        contrast = run.baseline.contrast
        notes.append(
            f"Difference from the dictionary alone (dict) in {averaging} F1, paired by document: "
            f"{format_difference(contrast.difference, _DECIMALS)}, {level} interval "
            f"{_known_interval(contrast.interval)}, p {format_p(contrast.p)}."
        )
    rows = _primary_rows(run)
    estimates = [estimate for _, _, estimate in rows]
    return Answer(
        headline=(
            f"{run.result.system}: {averaging} F1 {_number(f1.value)} on "
            f"{pluralize(len(run.gold.annotated), 'document')} ({level} interval {_known_interval(f1.interval)}; "
            f"chance {_number(f1.chance)})."
        ),
        columns=(
            ReportColumn("score", [title for title, _, _ in rows]),
            ReportColumn("match", [match for _, match, _ in rows]),
            _values(averaging, [estimate.value for estimate in estimates]),
            _intervals(_interval_title(estimates), [estimate.interval for estimate in estimates]),
            _values("chance", [estimate.chance for estimate in estimates], rank=2),
        ),
        notes=(
            *notes,
            _run_caption(run, estimates),
            *(f"{note}." for note in (*run.gold.notes, *run.notes)),
            *_problem_note(run.gold.problem_messages),
        ),
        findings=run.findings,
        details="Details: add -v (modes and averages, stages, errors by kind, gold spans, findings with hints).",
    )


def _known_interval(interval: Interval) -> str:
    return format_interval(interval, _DECIMALS) if interval.known else "n/a"


def _problem_note(problems: tuple[str, ...]) -> list[str]:
    return [f"{pluralize(len(problems), 'problem')} in the documents: -v lists them."] if problems else []


def _problem_section(problems: tuple[str, ...]) -> list[Section]:
    if not problems:
        return []
    more = len(problems) - MAX_LISTED
    more_note = (f"and {more} more.",) if more > 0 else ()
    return [Section("Problems of the documents", notes=(*problems[:MAX_LISTED], *more_note))]


def _primary_rows(run: ExtractionRun) -> list[tuple[str, str, Estimate]]:
    """One row per score: title, kind of match, and estimate; the last row is the F1 of the dictionary alone."""
    averaging, mode = run.settings.averaging, run.settings.mode
    rows = [
        (title, "soft" if soft else "exact", run.result[kind(averaging, mode, soft).name])
        for soft in (False, True)
        for title, kind in SCORES
    ]
    if run.baseline is not None:
        rows.append(("F1 (dict)", "exact", run.baseline.result[SetF1(averaging, mode).name]))
    return rows


def _run_caption(run: ExtractionRun, primary: Sequence[Estimate]) -> str:
    methods = interval_methods(primary, metric_label)
    method_note = f"Intervals over documents: {methods}. " if methods else ""
    rate = len(run.gold.annotated) / run.seconds if run.seconds else 0.0
    return (
        f"What is counted: {MODE_DESCRIPTIONS[run.settings.mode]}. Soft scores match terms one to one, with partial "
        f"credit for similar terms. {method_note}Chance is the expected score if the predictions are assigned to "
        "documents at random. "
        f"{format_count(len(run.candidates))} phrases in {format_value(run.seconds, 1)} s, "
        f"{format_value(rate, 1)} documents/s."
    )


def _mode_section(run: ExtractionRun) -> Section:
    rows = [(mode, average) for mode in MODE_TITLES for average in AVERAGES]
    f1 = [run.result[SetF1(average, mode).name] for mode, average in rows]
    columns = [
        ReportColumn("mode", [MODE_TITLES[mode] if average == AVERAGES[0] else "" for mode, average in rows]),
        ReportColumn("average", [average for _, average in rows]),
        *(
            _values(title, [run.result[kind(average, mode).name].value for mode, average in rows])
            for title, kind in SCORES
        ),
        _intervals(f"{_interval_title(f1)} of F1", [estimate.interval for estimate in f1]),
        ReportColumn("undefined", [str(estimate.undefined) for estimate in f1], right=True, rank=2),
    ]
    return Section.of_table("By mode and average", columns, f"Intervals: {interval_methods(f1, metric_label)}.")


def _stage_section(run: ExtractionRun) -> list[Section]:
    """The gold terms that were found, and the stages at which the others were lost."""
    reached = {stage: number for stage, number in run.stages.items() if number}
    if not reached:
        return []
    total = sum(reached.values())
    columns = [
        ReportColumn("", [STAGES[stage] for stage in reached]),
        _counts("gold terms", reached.values()),
        _values("share", [number / total for number in reached.values()]),
    ]
    return [Section.of_table("Where gold terms were lost", columns)]


def _error_section(run: ExtractionRun) -> Section:
    counts = run.errors_by_kind.to_dict()
    columns = [
        ReportColumn("kind", ["correct", *list(counts["predicted"])[1:]]),
        *(_counts(side, numbers.values()) for side, numbers in counts.items()),
    ]
    note = "Parent, child and sibling: the relation of the predicted term to a gold term of the same document."
    return Section.of_table("Predicted and gold terms by kind of error", columns, note)


def _gold_span_section(run: ExtractionRun) -> list[Section]:
    oracle = run.gold_span_oracle
    if oracle is None:
        return []
    columns = [
        ReportColumn("score", [estimate.metric for estimate in oracle.estimates], shortens="end"),
        _values("estimate", [estimate.value for estimate in oracle.estimates]),
        _intervals(_interval_title(oracle.estimates), [estimate.interval for estimate in oracle.estimates]),
    ]
    n_found, chunker, model = oracle.n_found, oracle.n_lost_by_chunking, oracle.n_lost_by_model
    note = (
        f"Of {pluralize(n_found + chunker + model, 'gold term')} with a marked span, {format_count(n_found)} "
        f"{'was' if n_found == 1 else 'were'} found. Missed, but found if the span itself is the phrase (errors of "
        f"splitting): {format_count(chunker)}. Missed even then (errors of the model or dictionary): "
        f"{format_count(model)}."
    )
    return [Section.of_table("Gold spans as phrases: errors of splitting and of the model", columns, note)]


def tuning_view(tuning: ExtractionTuning) -> View:
    """The held-out scores and the parameters to use, then precision against recall and the folds of every model."""
    first = tuning.models[0].tuning
    documents = _scored_documents(tuning)
    score, protocol = (
        (f"held-out {metric_label(first.trial_metric)}", "nested cross-validation")
        if first.folds
        else (f"optimistic {metric_label(first.metric)}", "selected and scored on the same documents")
    )
    comparison = tuning.comparison
    only = tuning.models[0]
    answer = Answer(
        headline=f"{only.name}: {score} {_number(only.estimate.value)} on {documents} ({protocol})."
        if comparison is None
        else comparison.verdict("document"),
        columns=tuple(_model_columns(tuning)),
        notes=(
            *(() if comparison is None else (f"The scores are {score} on {documents} ({protocol}).",)),
            *map(_deployment_line, tuning.models),
            _tuning_caption(tuning),
            *(f"{note}." for note in tuning.gold.notes),
            *_problem_note(tuning.gold.problem_messages),
        ),
        failures=failure_line(tuning.failures, len(tuning.models)),
        findings=tuning.findings,
        details="Details: add -v (precision against recall, folds, findings with hints).",
    )
    by_model = [section for model in tuning.models for section in (*_frontier_section(model), *_fold_section(model))]
    return View(answer, (*by_model, *_problem_section(tuning.gold.problem_messages)))


def _scored_documents(tuning: ExtractionTuning) -> str:
    """The number of documents on which the scores are defined: ``27 of 28 documents, bm25 on 26``."""
    total, most = len(tuning.gold.annotated), max(model.estimate.n for model in tuning.models)
    fewer = [f", {model.name} on {model.estimate.n}" for model in tuning.models if model.estimate.n != most]
    return f"{'' if most == total else f'{most} of '}{pluralize(total, 'document')}{''.join(fewer)}"


def _model_columns(tuning: ExtractionTuning) -> list[ReportColumn]:
    """One row per model, best first: the nested and the optimistic score."""
    ranked = sorted(tuning.models, key=lambda model: -model.estimate.value)
    estimates, records = [model.estimate for model in ranked], [model.tuning for model in ranked]
    comparison = tuning.comparison
    columns = [
        ReportColumn("model", [model.name for model in ranked], shortens="middle"),
        _values("held-out" if records[0].folds else "F1", [estimate.value for estimate in estimates]),
        _intervals(_interval_title(estimates), [estimate.interval for estimate in estimates]),
    ]
    if comparison is not None:
        leader = comparison.leader
        adjusted = [
            "" if leader in (None, model.name) else format_p(comparison.contrast(str(leader), model.name).adjusted)
            for model in ranked
        ]
        columns.append(ReportColumn(comparison.p_heading, adjusted, right=True))
    if records[0].folds:
        gaps = [format_difference(record.gap, _DECIMALS) for record in records]
        columns.append(_values("optimistic", [record.optimistic for record in records], rank=2))
        columns.append(ReportColumn("gap", gaps, right=True, rank=4))
    untuned = [
        "n/a" if record.baseline is None else _number(record.trials[record.baseline].value) for record in records
    ]
    columns.append(ReportColumn("untuned", untuned, right=True, rank=3))
    columns.append(_values("chance", [estimate.chance for estimate in estimates], rank=5))
    return columns


def _deployment_line(model: TunedModel) -> str:
    """The parameters to use with a model: the best trial, or the defaults if no trial is better."""
    tuning = model.tuning
    if model.best == tuning.trials[tuning.best].params:
        return f"If you use {model.name}, use {format_params(model.best)}."
    untuned = _number(tuning.trials[tuning.baseline or 0].value)
    return (
        f"If you use {model.name}, keep the default parameters ({format_params(model.best)}): they score {untuned}, "
        "and no trial scores higher."
    )


def format_params(params: Params) -> str:
    """Parameters in a few words, such as *dictionary and span chunking; terms below HP:0000118, 3 terms*."""
    chunkers = params.get("chunkers")
    generator = "dictionary and " if params.get("dictionary") else ""
    generator += f"{chunkers} chunking" if chunkers else "chunks"
    if params.get("branch"):
        generator += f"; terms below {params['branch']}"
    parts = [generator, "top term only" if params["top_term_only"] else f"{params['num_results']} terms"]
    parts.append(f"threshold {float(params['chunk_threshold'] or 0.0):g}")
    confidence = float(params["min_confidence"] or 0.0)
    return ", ".join([*parts, *([f"confidence {confidence:g}"] if confidence > 0 else [])])


def _tuning_caption(tuning: ExtractionTuning) -> str:
    first, mode = tuning.models[0], tuning.settings.mode
    distinct = ", ".join(f"{model.name} {_n_distinct_trials(model)}" for model in tuning.models)
    trials = pluralize(len(first.tuning.grid), "trial")
    sentences = [
        f"What is counted: {MODE_DESCRIPTIONS[mode]}. {trials} per model; trials with distinct scores: {distinct}. "
        "Untuned is the score of the default parameters."
    ]
    if first.tuning.folds:
        unseen = ", ".join(
            f"{average} {title} {_number(kind(average, mode).measure(first.sets).value)}"
            for average in AVERAGES[:2]
            for title, kind in SCORES
        )
        sentences += [
            f"{len(first.tuning.folds)} folds: each document is scored with parameters selected on the others. "
            "Optimistic is the score of the best trial on the documents used to select it, and gap is optimistic minus "
            "held-out. Thresholds are quantiles of "
            "the model's scores on all texts, including the held-out fold; annotations are not used.",
            f"On held-out documents, {first.name} has {unseen}.",
        ]
    return " ".join(sentences)


def _n_distinct_trials(model: TunedModel) -> int:
    rows = zip(model.tuning.grid, model.trials.precision.tolist(), model.trials.recall.tolist(), strict=False)
    return len({repr((trial.value, precision, recall)) for trial, precision, recall in rows})


def _frontier_section(model: TunedModel) -> list[Section]:
    if not model.frontier:
        return []
    edge, tuning = model.frontier, model.tuning
    columns = [
        ReportColumn("", ["best trial" if place == tuning.best else "" for place in edge]),
        _values("precision", [model.trials.precision[place] for place in edge]),
        _values("recall", [model.trials.recall[place] for place in edge]),
        _values("F1", [tuning.trials[place].value for place in edge]),
        ReportColumn("parameters", [format_params(tuning.trials[place].params) for place in edge], rank=1),
    ]
    title = f"Precision against recall of {model.name}, on the documents used for selection (optimistic)"
    return [Section.of_table(title, columns)]


def _fold_section(model: TunedModel) -> list[Section]:
    """The trial that each fold selected, with its inner and outer score."""
    folds = model.tuning.folds
    if not folds:
        return []
    columns = [
        ReportColumn("fold", [str(number) for number in range(1, len(folds) + 1)], right=True),
        ReportColumn("documents", [str(fold.n) for fold in folds], right=True),
        _values("selection score", [fold.inner for fold in folds]),
        _values("held-out score", [fold.outer for fold in folds]),
        ReportColumn("selected parameters", [format_params(fold.params) for fold in folds]),
    ]
    return [Section.of_table(f"Folds of {model.name}", columns)]


DEVELOPMENT_NOTE = (
    "The rules were developed on these sentences, so the accuracy is optimistic. A file of your own sentences gives an "
    "unbiased one."
)


def assertion_view(evaluations: Sequence[AssertionEvaluation], *, included: bool = False) -> View:
    """The accuracy of assertion detection by language and assertion; by kind of sentence and the errors in detail.

    ``included``: the sentences are those on which the rules were developed.
    """
    totals = [(evaluation.language, evaluation.total) for evaluation in evaluations]
    parts = ", ".join(f"{code} {_number(total.value)} on {pluralize(total.n_cases, 'case')}" for code, total in totals)
    rows = [
        (evaluation.language, group)
        for evaluation in evaluations
        for group in (evaluation.total, *evaluation.by_assertion)
    ]
    sections = [
        Section.of_table(
            f"By kind of sentence ({evaluation.language})",
            _accuracy_columns([(evaluation.language, group) for group in evaluation.by_kind], "kind of sentence"),
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
        headline=f"Accuracy of assertion detection: {parts}.",
        columns=tuple(_accuracy_columns(rows, "assertion")),
        notes=(
            "A case is a marked finding in a sentence. Intervals: Wilson.",
            *((DEVELOPMENT_NOTE,) if included else ()),
        ),
        details="Details: add -v (accuracy by kind of sentence, errors).",
    )
    return View(answer, tuple(sections))


def _accuracy_columns(rows: Sequence[tuple[str, AssertionAccuracy]], title: str) -> list[ReportColumn]:
    groups = [group for _, group in rows]
    level = format_percent(groups[0].interval.confidence_level)
    return [
        ReportColumn("language", [language for language, _ in rows]),
        ReportColumn(title, [group.group for group in groups]),
        _values("accuracy", [group.value for group in groups]),
        _intervals(f"{level} interval", [group.interval for group in groups], rank=0),
        _counts("n", [group.n_cases for group in groups]),
    ]
