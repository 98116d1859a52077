"""What people see of a fair comparison: the honest figures first, then the optimistic ones, named as such."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from equipoise.checks.base import join_names, pluralize
from equipoise.domains.fair.answer_verification import ISSUE_MESSAGES, one_line
from equipoise.domains.fair.questions import DIFFICULTIES, UNSPECIFIED
from equipoise.domains.fair.validation_report import CategoryCount, SampleSizeRow, ValidationData
from equipoise.report.findings import findings_section
from equipoise.report.pairwise import comparison_caption
from equipoise.report.status_lines import StatusLine, ThresholdStatus
from equipoise.report.terminal import Paragraph, ReportColumn, TerminalTable, heading
from equipoise.stats.formatting import (
    format_count,
    format_difference,
    format_interval,
    format_p,
    format_percent,
    format_value,
    shared_decimals,
)
from equipoise.stats.slices import MIN_UNITS, Slice
from equipoise.tuning.grid import Params, Trial, TuningRecord, best_within_budget
from equipoise.types import Finding, Severity, with_label

if TYPE_CHECKING:
    from equipoise.domains.fair.validation import NearDuplicateQuestions
    from equipoise.domains.fair.validation_result import AnswerIssue, ValidationResult
    from equipoise.stats.comparison import Comparison
    from equipoise.stats.result import Estimate

# All that the report of a fair comparison shows, put together by whoever compared.


@dataclass(frozen=True)
class ModelSummary:
    """One model: its honest estimate, how it was tuned, and what a question costs."""

    name: str
    estimate: Estimate
    tuning: TuningRecord
    tokens: float | None = None
    slices: tuple[Slice, ...] = ()
    tied_questions: int = 0
    """How many questions have fractional hits, since tied scores leave the rank of the answer open."""

    @property
    def ceiling(self) -> float | None:
        """The share of questions that the best configuration could answer at all; None is unknown."""
        return self.tuning.trials[self.tuning.best].reachable


@dataclass(frozen=True)
class FairReportData:
    """All that the report of one comparison shows; without two models there is no comparison."""

    contenders: tuple[ModelSummary, ...]
    comparison: Comparison | None = None
    mcnemar: Comparison | None = None
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    failures: Mapping[str, str] = field(default_factory=dict)
    budget: float | None = None
    tokenizer: str = ""

    @property
    def folds(self) -> int:
        """The number of folds of a split; 0 where nothing is nested."""
        return self.contenders[0].tuning.fold_count

    @property
    def splits(self) -> int:
        """Over how many random splits into folds the scores are averaged."""
        return self.contenders[0].tuning.splits

    @property
    def nested(self) -> bool:
        """Whether the figures are of questions that had no say in the parameters."""
        return self.folds > 0

    @property
    def tried(self) -> int:
        """How many configurations each model was tried at."""
        return len(self.contenders[0].tuning.grid)

    @property
    def ceilings(self) -> dict[str, float]:
        """The models whose chunks cut answers, and the share of answers that they can find at best."""
        known = {each.name: each.ceiling for each in self.contenders if each.ceiling is not None}
        return {name: ceiling for name, ceiling in known.items() if ceiling < 1}

    @property
    def ranked(self) -> list[ModelSummary]:
        """The models, best first."""
        if self.comparison is None:
            return list(self.contenders)
        by_name = {each.name: each for each in self.contenders}
        return [by_name[name] for name in self.comparison.order]


# The text below the table of a fair comparison: enough to read it, and all of it on request.

NESTED_BOOTSTRAP_NOTE = (
    "Questions that are scored by what others chose are not independent. So questions are resampled, split "
    "and chosen on again, thousands of times: intervals come from this bootstrap, and p is the larger of "
    "the test's and of the bootstrap's."
)

TOKENS_NOTE = {"words": "A token is a word or a punctuation mark.", "": "What a token is was not recorded."}
"""What is said of a tokenizer that is no vocabulary."""


def short_caption(edition: FairReportData) -> Iterator[str]:
    """What a reader must know in order to read the table."""
    tried = edition.tried
    if tried == 1:
        yield "One configuration was tried, so that nothing was chosen."
    elif edition.nested:
        yield (
            f"Each question is scored with parameters chosen on others ({edition.folds} folds"
            f"{_over_splits(edition)}); optimistic chooses and scores on the same, and the gap is what that "
            "adds."
        )
    else:
        yield (
            f"The best of {tried:,} configurations is partly the luckiest of them; with folds it is scored "
            "on other questions than those that chose it."
        )
    if edition.comparison is not None:
        yield _about_p(edition.comparison, drawn=edition.nested and tried > 1)
    yield from _about_mcnemar(edition)
    if edition.ceilings:
        least = join_names([f"{name} {format_value(share, 2)}" for name, share in edition.ceilings.items()])
        yield f"Chunk borders cut answers, and the best that can be scored is below 1: {least}."
    yield TOKENS_NOTE.get(edition.tokenizer, f"Tokens: {edition.tokenizer}.")


def _about_p(comparison: Comparison, *, drawn: bool) -> str:
    pairs = sum(each.metric == comparison.primary for each in comparison.contrasts)
    family = f"p is adjusted for {pairs} pairs" if pairs > 1 else "p is of one pair"
    choice = " and allows for the choice of parameters" if drawn else ""
    level = format_percent(comparison.config.confidence_level)
    return f"Models that share a letter are not significantly different at {level}; {family}{choice}."


def _over_splits(edition: FairReportData) -> str:
    """Over how many splits the scores are means, and how much the score of one split varies."""
    if edition.splits < 2:
        return ""
    spread = max(each.tuning.split_sd or 0.0 for each in edition.contenders)
    return f", mean over {edition.splits} splits; SD of one split up to {format_value(spread, 3)}"


def _about_mcnemar(edition: FairReportData) -> Iterator[str]:
    """What the column of McNemar's test says, or why there is none."""
    if edition.comparison is None:
        return
    if edition.mcnemar is not None:
        counted = "questions answered in most splits" if edition.splits > 1 else "answered questions"
        yield f"McNemar p: exact, of {counted}, not adjusted."
    tied = [each.name for each in edition.contenders if each.tied_questions]
    if tied:
        yield f"McNemar's test was skipped where tied scores give fractional hits ({join_names(tied)})."


def long_caption(edition: FairReportData) -> Iterator[str]:
    """How everything was made, in full."""
    yield (
        "Chance is what as many chunks drawn at random would score; tokens is what the best configuration "
        "retrieves for a question, in the mean. Of equally accurate configurations the one that retrieves "
        "less is chosen (with the matcher source: the first of the grid)."
    )
    if edition.nested:
        yield NESTED_BOOTSTRAP_NOTE
    if edition.comparison is not None:
        yield comparison_caption(edition.comparison)
    if edition.mcnemar is not None:
        yield (
            "McNemar's exact test looks at the questions that one of two models answers and the other does "
            "not. It takes questions for independent and the parameters for given, which adj. p does not."
        )


TOKEN_BUDGETS = (250, 500, 1000, 2000, 4000, 8000, 16000)
"""The numbers of retrieved tokens for which the best accuracy is shown."""

_SPARSE = _BEYOND = "*"


def fair_report(edition: FairReportData, *, verbose: bool = False, quiet: bool = False) -> list[Any]:
    """The whole report, part by part."""
    parts = [*honest_part(edition, verbose=verbose, quiet=quiet), *optimistic_table(edition, quiet=quiet)]
    if not quiet:
        parts += [*token_budget_table(edition), *slice_table(edition), *fold_table(edition, verbose=verbose)]
        parts += findings_section(edition.findings, verbose=verbose)
    return parts


def honest_part(edition: FairReportData, *, verbose: bool = False, quiet: bool = False) -> list[Any]:
    """The figures that may be quoted: on questions that had no say in the parameters."""
    parts: list[Any] = [heading(_title(edition)), Paragraph(""), TerminalTable(honest_columns(edition))]
    parts += [Paragraph(with_label(f"{name} failed", sentence)) for name, sentence in edition.failures.items()]
    if quiet:
        return parts
    parts += [Paragraph(f"{note}.") for note in edition.notes]
    more = () if verbose else ("More: --verbose.",)
    parts += [Paragraph(""), Paragraph(" ".join([*short_caption(edition), *more]))]
    if verbose:
        parts += [Paragraph(line) for line in long_caption(edition)]
    if edition.comparison is not None:
        parts += [Paragraph(""), Paragraph(edition.comparison.verdict(), style="bold")]
    return parts


def _title(edition: FairReportData) -> str:
    asked = pluralize(edition.contenders[0].estimate.n, "question")
    within = "" if edition.budget is None else f", within {_budget(edition.budget)}"
    if edition.nested:
        return f"Accuracy on {asked} that had no say in the parameters{within}"
    return f"Accuracy on the very {asked} that chose the parameters{within} (optimistic)"


def honest_columns(edition: FairReportData) -> list[ReportColumn]:
    """One row a model, by tie band; on a narrow screen what says who differs stays longest."""
    ranked, comparison = edition.ranked, edition.comparison
    estimates = [each.estimate for each in ranked]
    places = shared_decimals(each.interval for each in estimates)
    level = format_percent(estimates[0].interval.confidence_level)
    columns = [
        ReportColumn("model", [each.name for each in ranked], shortens="middle"),
        ReportColumn("accuracy", [format_value(each.value, places) for each in estimates], right=True),
        ReportColumn(
            f"{level} interval",
            [format_interval(each.interval, places) for each in estimates],
            right=True,
            rank=1,
        ),
    ]
    if comparison is not None:
        bands = [" ".join(comparison.bands[each.name]) or "-" for each in ranked]
        columns.insert(0, ReportColumn("band", bands))
        columns.append(ReportColumn("adj. p", [_p(comparison, each.name) for each in ranked], right=True, rank=2))
    if edition.nested and edition.tried > 1:
        best = [format_value(each.tuning.optimistic, places) for each in ranked]
        columns.append(ReportColumn("optimistic", best, right=True, rank=3))
        gaps = [format_difference(each.tuning.gap, places) for each in ranked]
        columns.append(ReportColumn("gap", gaps, right=True, rank=4))
    columns += [
        ReportColumn("tokens", [_tokens(each.tokens) for each in ranked], right=True, rank=5),
        ReportColumn("parameters", [_best(each.tuning) for each in ranked], rank=6),
        ReportColumn("chance", [format_value(each.chance, places) for each in estimates], right=True, rank=7),
    ]
    if comparison is not None and edition.mcnemar is not None:
        exact = [_exact_p(edition.mcnemar, each.name, comparison.leader) for each in ranked]
        columns.append(ReportColumn("McNemar p", exact, right=True, rank=8))
    return columns


def optimistic_table(edition: FairReportData, *, quiet: bool = False) -> list[Any]:
    """What tuning gains over the baseline for as many tokens, on the questions that chose.

    Who retrieves more finds more. So the best configuration of the whole grid is not compared with the
    baseline, but the best of those that retrieve no more than the baseline does.
    """
    ranked = sorted(edition.contenders, key=lambda each: -each.tuning.optimistic)
    rows = [_Gain.of(each.tuning, edition.budget) for each in ranked]
    table = TerminalTable(
        [
            ReportColumn("Model", [each.name for each in ranked], shortens="middle"),
            ReportColumn("Baseline", [f"{_percent(row.baseline)}{row.mark}" for row in rows], right=True),
            ReportColumn("Optimized", [_percent(row.tuned) for row in rows], right=True),
            ReportColumn("Δ", [row.points for row in rows], right=True),
            ReportColumn("tokens", [row.tokens for row in rows], right=True, rank=2),
            ReportColumn("parameters", [row.params for row in rows], rank=1),
        ]
    )
    parts: list[Any] = [
        Paragraph(""),
        heading("Optimistic, in percent: the best configuration that retrieves no more than the baseline"),
        Paragraph(""),
        table,
    ]
    tuning = ranked[0].tuning
    if not quiet and tuning.baseline is not None:
        base = params_text(tuning.trials[tuning.baseline].params)
        parts.append(Paragraph(f"Baseline: {base} (chunk size/overlap), for those who tune nothing."))
    if any(row.mark for row in rows):
        parts.append(
            Paragraph(
                f"{_BEYOND} The baseline retrieves more than the budget allows. Optimized is the best within "
                "the budget, and not compared with it."
            )
        )
    return parts


@dataclass(frozen=True)
class _Gain:
    """The baseline of a model, and the best trial for no more tokens; None where there is none."""

    baseline: Trial
    tuned: Trial | None
    mark: str

    @classmethod
    def of(cls, tuning: TuningRecord, budget: float | None) -> _Gain:
        start = _baseline(tuning)
        beyond = budget is not None and start.cost is not None and start.cost > budget
        limit = budget if beyond else start.cost
        at = None if limit is None else best_within_budget(tuning.frontier, limit)
        return cls(start, None if at is None else tuning.frontier[at], _BEYOND if beyond else "")

    @property
    def points(self) -> str:
        """The difference in percentage points, where both spend alike."""
        if self.tuned is None or self.mark:
            return "n/a"
        return f"{format_difference(100 * (self.tuned.value - self.baseline.value), 1)}pp"

    @property
    def tokens(self) -> str:
        """The tokens per question with the baseline and with the best."""
        return f"{_tokens(self.baseline.cost)} -> {_tokens(None if self.tuned is None else self.tuned.cost)}"

    @property
    def params(self) -> str:
        return "" if self.tuned is None else params_text(self.tuned.params)


def _percent(trial: Trial | None) -> str:
    return "n/a" if trial is None else f"{format_value(100 * trial.value, 1)}%"


def token_budget_table(edition: FairReportData) -> list[Any]:
    """What a number of retrieved tokens buys, from the frontier of each model."""
    edges = {each.name: each.tuning.frontier for each in edition.ranked if each.tuning.frontier}
    if not edges:
        return []
    dearest = max(edge[-1].cost or 0.0 for edge in edges.values())
    cheapest = min(edge[0].cost or 0.0 for edge in edges.values())
    known = sorted({*TOKEN_BUDGETS, *_own_price(edition)})
    prices = [*(price for price in known if cheapest <= price < dearest), dearest]
    heads = [*(f"<= {format_count(round(price))}" for price in prices[:-1]), "any"]
    columns = [ReportColumn("tokens", heads, right=True)]
    for name, edge in edges.items():
        found = [best_within_budget(edge, price) for price in prices]
        cells = ["-" if at is None else format_value(edge[at].value) for at in found]
        columns.append(ReportColumn(name, cells, right=True, rank=len(columns) if len(columns) > 1 else 0))
    return [
        Paragraph(""),
        heading("Best accuracy for a number of retrieved tokens a question (optimistic)"),
        Paragraph(""),
        TerminalTable(columns),
    ]


def slice_table(edition: FairReportData) -> list[Any]:
    """The honest accuracy by category and difficulty, each with its number of questions."""
    ranked = edition.ranked
    keys = [(each.name, each.value) for each in ranked[0].slices]
    if not keys:
        return []
    first = {(each.name, each.value): each.estimate for each in ranked[0].slices}
    columns = [
        ReportColumn("slice", [f"{name} {value}" for name, value in keys]),
        ReportColumn("n", [_n(first[key].n) for key in keys], right=True),
    ]
    for place, contender in enumerate(ranked):
        cells = {(each.name, each.value): format_value(each.estimate.value, 2) for each in contender.slices}
        columns.append(ReportColumn(contender.name, [cells[key] for key in keys], right=True, rank=place))
    sparse = any(first[key].n < MIN_UNITS for key in keys)
    parts: list[Any] = [
        Paragraph(""),
        heading("Accuracy by kind of question"),
        Paragraph(""),
        TerminalTable(columns),
    ]
    if sparse:
        parts.append(Paragraph(f"{_SPARSE} fewer than {MIN_UNITS} questions: such a figure says little."))
    return parts


def fold_table(edition: FairReportData, *, verbose: bool = False) -> list[Any]:
    """What each fold chose; shown on request."""
    if not verbose or not edition.nested:
        return []
    rows = [(each, choice) for each in edition.ranked for choice in each.tuning.folds]
    splits = [f"{each.name} {format_value(each.tuning.split_sd, 4)}" for each in edition.ranked if each.tuning.split_sd]
    parts: list[Any] = [
        Paragraph(""),
        heading("What was chosen without each fold"),
        Paragraph(""),
        TerminalTable(
            [
                ReportColumn("model", [each.name for each, _ in rows], shortens="middle"),
                ReportColumn("folds", [str(choice.times) for _, choice in rows], right=True),
                ReportColumn("n", [str(choice.n) for _, choice in rows], right=True),
                ReportColumn("parameters", [params_text(choice.params) for _, choice in rows]),
                ReportColumn("inner", [format_value(choice.inner) for _, choice in rows], right=True),
                ReportColumn("outer", [format_value(choice.outer) for _, choice in rows], right=True),
            ]
        ),
    ]
    if splits:
        parts.append(Paragraph(f"Standard deviation of the score of a single split: {', '.join(splits)}."))
    return parts


def params_text(params: Params) -> str:
    """A configuration in a few characters.

    >>> params_text({"chunker": "section", "chunk_size": 512, "overlap": 50, "top_k": 10})
    'section 512/50 top 10'
    """
    named = f"{params['chunker']} " if "chunker" in params else ""
    return f"{named}{params['chunk_size']}/{params['overlap']} top {params['top_k']}"


def _own_price(edition: FairReportData) -> Sequence[float]:
    return () if edition.budget is None else (edition.budget,)


def _budget(budget: float) -> str:
    return f"{format_value(budget, 0)} retrieved tokens"


def _best(tuning: TuningRecord) -> str:
    return params_text(tuning.trials[tuning.best].params)


def _baseline(tuning: TuningRecord) -> Trial:
    """The trial of those who tune nothing; one without a value where there is none."""
    return Trial({}, float("nan")) if tuning.baseline is None else tuning.trials[tuning.baseline]


def _tokens(tokens: float | None) -> str:
    return "n/a" if tokens is None else format_count(round(tokens))


def _p(comparison: Comparison, name: str) -> str:
    leader = comparison.leader
    return "" if leader is None or name == leader else format_p(comparison.contrast(name, leader).adjusted)


def _exact_p(mcnemar: Comparison, name: str, leader: str | None) -> str:
    """The exact p of this pair alone; n/a where tied scores leave one of them without hits and misses."""
    if leader is None or name == leader:
        return ""
    tested = {name, leader} <= set(mcnemar.systems)
    return format_p(mcnemar.contrast(name, leader).p) if tested else "n/a"


def _n(n: int) -> str:
    return f"{format_count(n)}{_SPARSE if n < MIN_UNITS else ''}"


# The result of a validation as the report shows it.

NOT_VERIFIED = "not verified: no document given"


def validation_view(result: ValidationResult) -> ValidationData:
    """Everything in the order of the page."""
    categories = sorted(result.category_counts, key=lambda name: -result.category_counts[name])
    difficulties = sorted(result.difficulty_counts, key=_rank_of_difficulty)
    return ValidationData(
        questions=result.total_questions,
        facts=(_answers(result), _duplicates(result)),
        method=_method(result),
        categories=_shares(categories, result.category_counts, result.category_percentages),
        difficulties=_shares(difficulties, result.difficulty_counts, result.difficulty_percentages),
        thresholds=_thresholds(result),
        status=_status(result),
        sizes=_sizes(result),
        sizes_note=_sizes_note(result),
        lists=_lists(result),
        findings=result.findings,
    )


def _answers(result: ValidationResult) -> StatusLine:
    found = result.verification
    if found is None:
        return StatusLine(ThresholdStatus.UNKNOWN, f"Answers: {NOT_VERIFIED}")
    text = f"Answers verified: {result.answers_found:,}/{result.total_questions:,}"
    if result.answers_missing:
        return StatusLine(ThresholdStatus.BAD, f"{text}; {result.answers_missing:,} not in the document")
    return StatusLine(ThresholdStatus.GOOD, f"{text} in the document")


def _method(result: ValidationResult) -> str:
    """By which rule the answers were looked for, and in what."""
    found = result.verification
    if found is None:
        return ""
    return f"matched by the rule {found.matcher}, in {pluralize(found.chunks, 'chunk')} of {found.chunking}"


def _duplicates(result: ValidationResult) -> StatusLine:
    if result.duplicates_found:
        return StatusLine(
            ThresholdStatus.BAD, f"Duplicates: {pluralize(result.duplicates_found, 'question')} asked before"
        )
    if result.near_duplicates:
        return StatusLine(
            ThresholdStatus.FAIR,
            f"Duplicates: none; {pluralize(len(result.near_duplicates), 'pair')} nearly so",
        )
    return StatusLine(ThresholdStatus.GOOD, "Duplicates: none")


def _shares(names: list[str], counts: Mapping[str, int], percentages: Mapping[str, float]) -> tuple[CategoryCount, ...]:
    return tuple(CategoryCount(name, counts[name], percentages[name]) for name in names)


def _rank_of_difficulty(name: str) -> int:
    """Easy before hard; what nobody knows comes last."""
    known = list(DIFFICULTIES)
    return known.index(name) if name in known else len(known)


def _thresholds(result: ValidationResult) -> tuple[StatusLine, ...]:
    limits = result.thresholds
    multihop = _given_share(result.multihop_percentage, result.category_counts)
    hard = _given_share(result.hard_percentage, result.difficulty_counts)
    rows = (
        ("Questions", f"{result.total_questions:,}", result.meets_min_questions,
         result.meets_recommended_questions, f"{limits.min_questions:,}",
         f"{limits.recommended_questions:,}"),
        ("Multi-hop", multihop, result.meets_min_multihop, result.meets_recommended_multihop,
         _view_percent(limits.min_multihop_pct), _view_percent(limits.recommended_multihop_pct)),
        ("Hard", hard, result.meets_min_hard, result.meets_recommended_hard,
         _view_percent(limits.min_hard_pct), _view_percent(limits.recommended_hard_pct)),
    )  # fmt: skip
    return tuple(_threshold(*row) for row in rows)


def _threshold(label: str, value: str, least_met: bool, met: bool, least: str, wanted: str) -> StatusLine:
    demand = f"minimum {least}, recommended {wanted}"
    mark = ThresholdStatus.BAD if not least_met else ThresholdStatus.GOOD if met else ThresholdStatus.FAIR
    return StatusLine(mark, f"{label}: {value} ({demand})")


def _given_share(share: float, counts: Mapping[str, int]) -> str:
    """A share of the questions; unknown where none says what it is."""
    return _view_percent(share) if set(counts) - {UNSPECIFIED} else UNSPECIFIED


def _status(result: ValidationResult) -> StatusLine:
    against = list(_against(result))
    if against:
        return StatusLine(ThresholdStatus.BAD, f"Status: invalid ({'; '.join(against)})", indent=0)
    if not result.verified:
        return StatusLine(
            ThresholdStatus.GOOD,
            f"Status: valid, as far as it was checked (answers {NOT_VERIFIED})",
            indent=0,
        )
    return StatusLine(ThresholdStatus.GOOD, "Status: valid (every answer found, every minimum met)", indent=0)


def _against(result: ValidationResult) -> Iterator[str]:
    """What makes the fixture invalid."""
    if result.answers_missing:
        yield f"{pluralize(result.answers_missing, 'answer')} missing"
    if result.duplicates_found:
        yield pluralize(result.duplicates_found, "duplicate question")
    if not result.meets_min_questions:
        yield "too few questions"
    if not result.meets_min_multihop:
        yield _lacking("multi-hop", "category", result.category_counts)
    if not result.meets_min_hard:
        yield _lacking("hard", "difficulty", result.difficulty_counts)


def _lacking(name: str, kind: str, counts: Mapping[str, int]) -> str:
    return f"too few {name} questions" if set(counts) - {UNSPECIFIED} else f"no {kind} is given"


def _sizes(result: ValidationResult) -> tuple[SampleSizeRow, ...]:
    return tuple(
        SampleSizeRow(
            each.n,
            100 * each.half_width,
            None if each.detectable is None else 100 * each.detectable,
            each.n == result.total_questions,
        )
        for each in result.resolutions
    )


def _sizes_note(result: ValidationResult) -> str:
    accuracy = _view_percent(100 * result.resolutions[0].accuracy) if result.resolutions else ""
    return (
        f"For systems of accuracy {accuracy}: the half-width of the Wilson interval, and the smallest "
        "difference that a paired test shows four times in five when two systems err independently. Systems "
        "that fail on the same questions are told apart by smaller differences."
    )


def _lists(result: ValidationResult) -> dict[str, list[str]]:
    graver = sorted(result.answer_issues, key=lambda each: each.severity != Severity.ISSUE)
    return {
        "Answers": [_issue_line(each) for each in graver],
        "Questions asked before": [one_line(each) for each in result.duplicate_questions],
        "Questions that are nearly the same": [
            f'"{one_line(each.first)}" and "{one_line(each.second)}": {_alike(each)}' for each in result.near_duplicates
        ],
        "Unusual names": [
            f'{each.kind} "{each.name}" of {pluralize(each.count, "question")}: {each.suggestion}'
            for each in result.unknown_names
        ],
    }


def _alike(pair: NearDuplicateQuestions) -> str:
    answers = "the same answer" if pair.same_answer else "different answers"
    return f"similarity {format_value(pair.similarity, 2)}, {answers}"


def _issue_line(issue: AnswerIssue) -> str:
    more = f"; {issue.suggestion}" if issue.suggestion else ""
    return f'{issue.question_id} "{one_line(issue.answer)}": {ISSUE_MESSAGES[issue.issue_type]}{more}'


def _view_percent(value: float) -> str:
    """A percentage with as many decimals as it has, at most one.

    >>> _view_percent(20.0), _view_percent(12.5)
    ('20 %', '12.5 %')
    """
    return f"{format_value(value, 1).removesuffix('.0')} %"
