"""The view of a fair comparison (held-out accuracy first, then optimistic), and the report of a validation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from equipoise.checks.base import join_names, pluralize
from equipoise.domains.fair.answer_verification import ISSUE_MESSAGES, one_line
from equipoise.domains.fair.checks import TOO_FEW_QUESTIONS
from equipoise.domains.fair.model_result import UNKNOWN_COSTS, ModelCosts, cheapest
from equipoise.domains.fair.questions import DIFFICULTIES
from equipoise.domains.fair.validation_result import CategoryCount, SampleSizeRow, ValidationData
from equipoise.models.cache import format_bytes
from equipoise.report.answer import Answer, AnswerOptions, comparison_answer, score_columns, single_answer
from equipoise.report.pairwise import comparison_caption
from equipoise.report.terminal import ReportColumn
from equipoise.report.view import ReportTable, Section, StatusLine, ThresholdStatus, View
from equipoise.stats.formatting import ScoreFormat, format_count, format_p, format_value
from equipoise.stats.slices import MIN_UNITS, Slice
from equipoise.stats.verdict import Vocabulary
from equipoise.tuning.grid import Params, Trial, TuningRecord, best_within_budget
from equipoise.types import Finding, Severity, with_label

if TYPE_CHECKING:
    from equipoise.domains.fair.validation import NearDuplicateQuestions
    from equipoise.domains.fair.validation_result import AnswerIssue, ValidationResult
    from equipoise.stats.comparison import Comparison
    from equipoise.stats.result import Estimate


@dataclass(frozen=True)
class ModelSummary:
    """One model: its held-out estimate, its tuning record, and the retrieved tokens per question."""

    name: str
    estimate: Estimate
    tuning: TuningRecord
    tokens: float | None = None
    slices: tuple[Slice, ...] = ()
    dimensions: int | None = None
    costs: ModelCosts = UNKNOWN_COSTS
    tied_questions: int = 0
    """How many questions have fractional hits because of tied scores."""

    @property
    def ceiling(self) -> float | None:
        """The share of questions that the best configuration can answer at all; None is unknown."""
        return self.tuning.trials[self.tuning.best].reachable


@dataclass(frozen=True)
class FairReportData:
    """The data of the report; ``comparison`` is None with fewer than two models."""

    models: tuple[ModelSummary, ...]
    comparison: Comparison | None = None
    mcnemar: Comparison | None = None
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    failures: Mapping[str, str] = field(default_factory=dict)
    budget: float | None = None
    tokenizer: str = ""

    @property
    def folds(self) -> int:
        """The number of folds of a split; 0 without nested cross-validation."""
        return self.models[0].tuning.fold_count

    @property
    def splits(self) -> int:
        """The number of random splits that the scores are averaged over."""
        return self.models[0].tuning.splits

    @property
    def nested(self) -> bool:
        """Whether the scores are held-out scores."""
        return self.folds > 0

    @property
    def tried(self) -> int:
        """The number of configurations of the grid."""
        return len(self.models[0].tuning.grid)

    @property
    def ceilings(self) -> dict[str, float]:
        """The models whose chunk boundaries split answers, and the share of answers that they can find at best."""
        known = {model.name: model.ceiling for model in self.models if model.ceiling is not None}
        return {name: ceiling for name, ceiling in known.items() if ceiling < 1}

    @property
    def candidates(self) -> dict[str, ModelCosts]:
        """The costs of the best model and of those that are not significantly worse."""
        if self.comparison is None or self.comparison.leader is None:
            return {}
        names = {self.comparison.leader, *self.comparison.tied_with_leader}
        return {model.name: model.costs for model in self.ranked if model.name in names}

    @property
    def cheapest(self) -> str | None:
        """The cheapest model that is not significantly worse than the best one; None if that is unknown."""
        return cheapest(self.candidates)

    @property
    def ranked(self) -> list[ModelSummary]:
        """The models, best first."""
        if self.comparison is None:
            return list(self.models)
        by_name = {model.name: model for model in self.models}
        return [by_name[name] for name in self.comparison.order]


NESTED_BOOTSTRAP_NOTE = (
    "Held-out scores of different questions are not independent, because they share the selected parameters. "
    "The bootstrap resamples the questions and repeats the whole cross-validation. Intervals come from this "
    "bootstrap."
)

TOKENS_NOTE = {"words": "A token is a word or a punctuation mark.", "": "What a token is was not recorded."}
"""The note for tokenizers without a vocabulary."""


WORDS = Vocabulary("question", "model", "accuracy", percent=True)
COST_RANK, PARAMETERS_RANK = 5, 4


def fair_answer(data: FairReportData, details: str = "") -> Answer:
    """Which model is best, with the selected parameters and the sizes of the models."""
    ranked = data.ranked
    options = AnswerOptions(
        WORDS,
        columns=(
            ReportColumn("chunks", [_best(model.tuning) for model in ranked], rank=PARAMETERS_RANK),
            ReportColumn("chunks/s", [_rate(model.costs) for model in ranked], right=True, rank=COST_RANK),
            ReportColumn("memory", [_bytes(model.costs.memory) for model in ranked], right=True, rank=COST_RANK + 1),
            *_price_column(ranked),
        ),
        baseline="Random retrieval",
        score_note=_tuning_note(data),
        notes=tuple(f"{note}." for note in data.notes),
        warnings=tuple(with_label(f"{name} failed", message) for name, message in data.failures.items()),
        findings=data.findings,
        details=details,
        cheapest=data.cheapest or "",
    )
    if data.comparison is None:
        return single_answer(ranked[0].name, ranked[0].estimate, options)
    return comparison_answer(data.comparison, options)


def _rate(costs: ModelCosts) -> str:
    rate = costs.chunks_per_second
    return "n/a" if rate is None else format_count(round(rate)) if rate >= 9.5 else format_value(rate, 1)


def _bytes(amount: float | None) -> str:
    return "n/a" if amount is None else format_bytes(round(amount))


def _price(costs: ModelCosts) -> str:
    """The price without its unit, which is in the heading."""
    return "n/a" if costs.price is None else "free" if not costs.price else format_value(costs.price, 2)


def _price_column(ranked: Sequence[ModelSummary]) -> tuple[ReportColumn, ...]:
    """The price for a million chunks, if a model is not free."""
    if all(model.costs.price == 0.0 for model in ranked):
        return ()
    cells = [_price(model.costs) for model in ranked]
    return (ReportColumn("$/M chunks", cells, right=True, rank=COST_RANK + 2),)


def cost_section(data: FairReportData) -> Section:
    """Throughput, memory and price of every model."""
    ranked = data.ranked
    columns = [
        ReportColumn("model", [model.name for model in ranked], shortens="middle"),
        ReportColumn("accuracy", [_score(model.estimate.value) for model in ranked], right=True),
        ReportColumn("chunks/s", [_rate(model.costs) for model in ranked], right=True),
        ReportColumn("dims", [_dimensions(model) for model in ranked], right=True, rank=4),
        ReportColumn("index", [_bytes(model.costs.index_bytes) for model in ranked], right=True, rank=1),
        ReportColumn("weights", [_bytes(model.costs.model_bytes) for model in ranked], right=True, rank=2),
        ReportColumn("$/M chunks", [_price(model.costs) for model in ranked], right=True, rank=3),
    ]
    if any(model.costs.rerank_seconds for model in ranked):
        seconds = [format_value(model.costs.rerank_seconds or 0.0, 3) for model in ranked]
        columns.append(ReportColumn("rerank s/question", seconds, right=True, rank=5))
    return Section.of_table(
        "Costs per model",
        columns,
        "Chunks/s is the rate of embedding or indexing on this machine, measured when the texts were last embedded; "
        "index is the size of the vectors or of the lexical index of the best configuration.",
    )


def _dimensions(model: ModelSummary) -> str:
    """The dimensions of the vectors; a lexical system has none."""
    return "-" if model.dimensions is None else format_count(model.dimensions)


def _tuning_note(data: FairReportData) -> str:
    """How the scores relate to the tuning, and by how much tuning on the same questions would bias them."""
    if data.tried == 1:
        return "The grid has one configuration, so nothing was tuned."
    if not data.nested:
        return (
            f"These scores are optimistic: the best of {data.tried:,} configurations was selected and scored on the "
            "same questions. Use --n-folds 5."
        )
    gap = format_value(100 * max(model.tuning.gap for model in data.models), 0)
    return f"Scores are held out; tuning and scoring on the same questions would inflate them by up to {gap} points."


def short_caption(data: FairReportData) -> Iterator[str]:
    """What is needed to read the tables."""
    if data.nested and data.tried > 1:
        yield (
            f"Each question is scored with parameters selected on other questions{_over_splits(data)}; the optimistic "
            "score uses the same questions for both."
        )
    if data.comparison is not None:
        yield _about_p(data.comparison, nested=data.nested and data.tried > 1)
    yield from _about_mcnemar(data)
    if data.ceilings:
        highest = join_names([f"{name} {_score(share)}" for name, share in data.ceilings.items()])
        yield f"Chunk boundaries split answers, so that the maximum score is below 100 %: {highest}."
    yield TOKENS_NOTE.get(data.tokenizer, f"Tokens: {data.tokenizer}.")


def _about_p(comparison: Comparison, *, nested: bool) -> str:
    pairs = sum(contrast.metric == comparison.primary for contrast in comparison.contrasts)
    adjustment = f"adjusted for {pairs} pairs" if pairs > 1 else "not adjusted, because there is one pair"
    return f"The p value is {adjustment}{' and accounts for the parameter selection' if nested else ''}."


def _over_splits(data: FairReportData) -> str:
    """The standard deviation of the score of one split."""
    if data.splits < 2:
        return ""
    spread = max(model.tuning.split_sd or 0.0 for model in data.models)
    return f" ({data.splits} random splits; SD of the score of one split: up to {format_value(100 * spread, 1)} points)"


def _about_mcnemar(data: FairReportData) -> Iterator[str]:
    """A note on the column of McNemar's test, or why it is missing."""
    if data.comparison is None:
        return
    if data.mcnemar is not None:
        counted = "; a question counts as answered if it is answered in most splits" if data.splits > 1 else ""
        yield f"McNemar p is the exact p value{counted}. It is not adjusted, so it can be far below adj. p."
    tied = [model.name for model in data.models if model.tied_questions]
    if tied:
        yield f"McNemar's test was skipped where tied scores give fractional hits ({join_names(tied)})."


def long_caption(data: FairReportData) -> Iterator[str]:
    """The full description of the method."""
    yield (
        "Chance is the expected score of the same number of random chunks. Tokens is the mean number of tokens that "
        "the best configuration retrieves per question. Of equally accurate configurations, the one that retrieves "
        "the fewest tokens is selected (with --matcher source, the first one of the grid)."
    )
    if data.nested:
        yield NESTED_BOOTSTRAP_NOTE
    if data.comparison is not None:
        yield comparison_caption(data.comparison, "Model")
    if data.mcnemar is not None:
        yield (
            "McNemar's exact test uses the questions that exactly one of two models answers. It assumes "
            "independent questions and fixed parameters; adj. p does not."
        )


TOKEN_BUDGETS = (250, 500, 1000, 2000, 4000, 8000, 16000)
"""The numbers of retrieved tokens for which the best accuracy is shown."""

_SPARSE = _OVER_BUDGET = "*"
FINE, WHOLE = ScoreFormat(1, percent=True), ScoreFormat(0, percent=True)
"""Percent with one decimal for tables, without decimals for small subsets."""


def fair_view(data: FairReportData, details: str = "") -> View:
    """The answer, then all tables and the methods."""
    sections = [
        Section(
            _title(data),
            (ReportTable.of(held_out_columns(data)),),
            (" ".join(short_caption(data)), *long_caption(data)),
        ),
        cost_section(data),
        optimistic_section(data),
        *token_budget_section(data),
        *slice_section(data),
        *fold_section(data),
    ]
    return View(fair_answer(data, details), tuple(sections))


def _title(data: FairReportData) -> str:
    questions = pluralize(data.models[0].estimate.n, "question")
    within = "" if data.budget is None else f", within {_budget(data.budget)}"
    if data.nested:
        return f"Held-out accuracy on {questions} (nested {data.folds}-fold cross-validation){within}"
    return f"Optimistic accuracy on {questions} (selected and scored on the same questions){within}"


def held_out_columns(data: FairReportData) -> list[ReportColumn]:
    """One row per model, by tie band; on a narrow terminal the columns of the comparison are dropped last."""
    ranked, comparison = data.ranked, data.comparison
    estimates = [model.estimate for model in ranked]
    columns = [
        ReportColumn("model", [model.name for model in ranked], shortens="middle"),
        *score_columns(estimates, FINE, "accuracy"),
    ]
    if comparison is not None:
        bands = [" ".join(comparison.bands[model.name]) or "-" for model in ranked]
        columns.insert(0, ReportColumn("band", bands))
        columns.append(ReportColumn("adj. p", [_p(comparison, model.name) for model in ranked], right=True, rank=2))
    if data.nested and data.tried > 1:
        best = [_score(model.tuning.optimistic) for model in ranked]
        columns.append(ReportColumn("optimistic", best, right=True, rank=3))
        gaps = [FINE.signed_difference(model.tuning.gap) for model in ranked]
        columns.append(ReportColumn("gap", gaps, right=True, rank=4))
    columns += [
        ReportColumn("tokens", [_tokens(model.tokens) for model in ranked], right=True, rank=5),
        ReportColumn("parameters", [_best(model.tuning) for model in ranked], rank=6),
        ReportColumn("chance", [_score(estimate.chance) for estimate in estimates], right=True, rank=7),
    ]
    if comparison is not None and data.mcnemar is not None:
        exact = [_exact_p(data.mcnemar, model.name, comparison.leader) for model in ranked]
        columns.append(ReportColumn("McNemar p", exact, right=True, rank=8))
    return columns


def optimistic_section(data: FairReportData) -> Section:
    """The optimistic gain of tuning over the baseline for at most as many tokens.

    Retrieving more chunks finds more answers. So the baseline is compared with the best configuration that
    retrieves no more tokens than the baseline.
    """
    ranked = sorted(data.models, key=lambda model: -model.tuning.optimistic)
    rows = [_Gain.of(model.tuning, data.budget) for model in ranked]
    columns = [
        ReportColumn("model", [model.name for model in ranked], shortens="middle"),
        ReportColumn("baseline", [f"{_score(row.baseline.value)}{row.mark}" for row in rows], right=True),
        ReportColumn("tuned", [row.tuned_score for row in rows], right=True),
        ReportColumn("gain", [row.points for row in rows], right=True),
        ReportColumn("tokens", [row.tokens for row in rows], right=True, rank=2),
        ReportColumn("parameters", [row.params for row in rows], rank=1),
    ]
    notes = []
    tuning = ranked[0].tuning
    if tuning.baseline is not None:
        base = params_text(tuning.trials[tuning.baseline].params)
        notes.append(f"Baseline: {base} (chunk size/overlap), without tuning.")
    if any(row.mark for row in rows):
        notes.append(
            f"{_OVER_BUDGET} The baseline exceeds the token budget. Tuned is the best configuration within "
            "the budget, and is not compared with the baseline."
        )
    title = "Gain from tuning, with no more retrieved tokens than the baseline (optimistic accuracy)"
    return Section.of_table(title, columns, *notes)


@dataclass(frozen=True)
class _Gain:
    """The baseline of a model, and the best trial with no more tokens, if there is one."""

    baseline: Trial
    tuned: Trial | None
    mark: str

    @classmethod
    def of(cls, tuning: TuningRecord, budget: float | None) -> _Gain:
        start = _baseline(tuning)
        beyond = budget is not None and start.cost is not None and start.cost > budget
        limit = budget if beyond else start.cost
        at = None if limit is None else best_within_budget(tuning.frontier, limit)
        return cls(start, None if at is None else tuning.frontier[at], _OVER_BUDGET if beyond else "")

    @property
    def points(self) -> str:
        """The difference in percentage points; n/a if the baseline is over budget."""
        if self.tuned is None or self.mark:
            return "n/a"
        return FINE.signed_difference(self.tuned.value - self.baseline.value)

    @property
    def tuned_score(self) -> str:
        """The accuracy of the best configuration within the limit."""
        return "n/a" if self.tuned is None else _score(self.tuned.value)

    @property
    def tokens(self) -> str:
        """The tokens per question with the baseline and with the best."""
        return f"{_tokens(self.baseline.cost)} -> {_tokens(None if self.tuned is None else self.tuned.cost)}"

    @property
    def params(self) -> str:
        return "" if self.tuned is None else params_text(self.tuned.params)


def token_budget_section(data: FairReportData) -> list[Section]:
    """The best accuracy per token budget, from the Pareto frontier of each model."""
    frontiers = {model.name: model.tuning.frontier for model in data.ranked if model.tuning.frontier}
    if not frontiers:
        return []
    highest = max(frontier[-1].cost or 0.0 for frontier in frontiers.values())
    lowest = min(frontier[0].cost or 0.0 for frontier in frontiers.values())
    known = sorted({*TOKEN_BUDGETS, *_budget_row(data)})
    prices = [*(price for price in known if lowest <= price < highest), highest]
    heads = [*(f"<= {format_count(round(price))}" for price in prices[:-1]), "any"]
    columns = [ReportColumn("tokens", heads, right=True)]
    for name, frontier in frontiers.items():
        positions = [best_within_budget(frontier, price) for price in prices]
        cells = ["-" if at is None else _score(frontier[at].value) for at in positions]
        columns.append(ReportColumn(name, cells, right=True, rank=len(columns) if len(columns) > 1 else 0))
    return [Section.of_table("Best accuracy per number of retrieved tokens (optimistic)", columns)]


def slice_section(data: FairReportData) -> list[Section]:
    """The held-out accuracy by category and difficulty, with the number of questions."""
    ranked = data.ranked
    keys = [(part.name, part.value) for part in ranked[0].slices]
    if not keys:
        return []
    first = {(part.name, part.value): part.estimate for part in ranked[0].slices}
    columns = [
        ReportColumn("slice", [f"{name} {value}" for name, value in keys]),
        ReportColumn("n", [_n(first[key].n) for key in keys], right=True),
    ]
    for index, model in enumerate(ranked):
        cells = {(part.name, part.value): WHOLE.value(part.estimate.value) for part in model.slices}
        columns.append(ReportColumn(model.name, [cells[key] for key in keys], right=True, rank=index))
    sparse = any(first[key].n < MIN_UNITS for key in keys)
    note = f"{_SPARSE} fewer than {MIN_UNITS} questions: not reliable." if sparse else ""
    return [Section.of_table("Accuracy by category and difficulty", columns, note)]


def fold_section(data: FairReportData) -> list[Section]:
    """The configurations selected per fold."""
    if not data.nested:
        return []
    rows = [(model, choice) for model in data.ranked for choice in model.tuning.folds]
    splits = [
        f"{model.name} {format_value(100 * model.tuning.split_sd, 2)}" for model in data.ranked if model.tuning.split_sd
    ]
    columns = [
        ReportColumn("model", [model.name for model, _ in rows], shortens="middle"),
        ReportColumn("folds", [str(choice.times) for _, choice in rows], right=True),
        ReportColumn("n", [str(choice.n) for _, choice in rows], right=True),
        ReportColumn("parameters", [params_text(choice.params) for _, choice in rows]),
        ReportColumn("inner", [_score(choice.inner) for _, choice in rows], right=True),
        ReportColumn("outer", [_score(choice.outer) for _, choice in rows], right=True),
    ]
    note = f"Standard deviation of the score of a single split, in points: {', '.join(splits)}." if splits else ""
    return [Section.of_table("Configurations selected by nested cross-validation", columns, note)]


def params_text(params: Params) -> str:
    """A configuration in a few characters.

    >>> params_text({"chunker": "section", "chunk_size": 512, "overlap": 50, "top_k": 10})
    'section 512/50 top 10'
    >>> params_text({"chunk_size": 512, "overlap": 50, "top_k": 10, "rerank_depth": 20})
    '512/50 rerank 20 top 10'
    """
    named = f"{params['chunker']} " if "chunker" in params else ""
    reranked = f"rerank {params['rerank_depth']} " if "rerank_depth" in params else ""
    return f"{named}{params['chunk_size']}/{params['overlap']} {reranked}top {params['top_k']}"


def _budget_row(data: FairReportData) -> Sequence[float]:
    return () if data.budget is None else (data.budget,)


def _score(value: float) -> str:
    return FINE.value(value)


def _budget(budget: float) -> str:
    return f"{format_value(budget, 0)} retrieved tokens"


def _best(tuning: TuningRecord) -> str:
    return params_text(tuning.trials[tuning.best].params)


def _baseline(tuning: TuningRecord) -> Trial:
    """The baseline trial; undefined if there is none."""
    return Trial({}, float("nan")) if tuning.baseline is None else tuning.trials[tuning.baseline]


def _tokens(tokens: float | None) -> str:
    return "n/a" if tokens is None else format_count(round(tokens))


def _p(comparison: Comparison, name: str) -> str:
    leader = comparison.leader
    return "" if leader is None or name == leader else format_p(comparison.contrast(name, leader).adjusted)


def _exact_p(mcnemar: Comparison, name: str, leader: str | None) -> str:
    """The unadjusted exact p of this pair; n/a if one of them has fractional hits."""
    if leader is None or name == leader:
        return ""
    tested = {name, leader} <= set(mcnemar.systems)
    return format_p(mcnemar.contrast(name, leader).p) if tested else "n/a"


def _n(n: int) -> str:
    return f"{format_count(n)}{_SPARSE if n < MIN_UNITS else ''}"


# Validation of a question set.

_NOT_VERIFIED = "not verified: no document given"


def validation_view(result: ValidationResult, *, strict: bool = False) -> ValidationData:
    """The data of the validation report; ``strict`` counts a minimum that is not met as a failure."""
    categories = sorted(result.category_counts, key=lambda name: -result.category_counts[name])
    difficulties = sorted(result.difficulty_counts, key=_rank_of_difficulty)
    return ValidationData(
        questions=result.total_questions,
        facts=(_answers(result), _duplicates(result)),
        method=_method(result),
        categories=_shares(categories, result.category_counts, result.category_percentages)
        if result.has_categories
        else (),
        difficulties=_shares(difficulties, result.difficulty_counts, result.difficulty_percentages)
        if result.has_difficulties
        else (),
        thresholds=_thresholds(result),
        status=_status(result, strict=strict),
        sizes=_sizes(result),
        sizes_note=_sizes_note(result),
        lists=_lists(result),
        # The thresholds already show that there are too few questions.
        findings=tuple(finding for finding in result.findings if finding.code != TOO_FEW_QUESTIONS),
    )


def _answers(result: ValidationResult) -> StatusLine:
    if result.verification is None:
        return StatusLine(ThresholdStatus.UNKNOWN, f"Answers: {_NOT_VERIFIED}")
    text = f"Answers verified: {result.answers_found:,}/{result.total_questions:,}"
    if result.answers_missing:
        return StatusLine(ThresholdStatus.BAD, f"{text}; {result.answers_missing:,} not in the document")
    return StatusLine(ThresholdStatus.GOOD, f"{text} in the document")


def _method(result: ValidationResult) -> str:
    """The matcher and the chunks that were searched."""
    verification = result.verification
    if verification is None:
        return ""
    chunks = f"{pluralize(verification.chunks, 'chunk')} of {verification.chunking}"
    return f"matching rule: {verification.matcher}, in {chunks}"


def _duplicates(result: ValidationResult) -> StatusLine:
    if result.duplicates_found:
        return StatusLine(ThresholdStatus.BAD, f"Duplicates: {pluralize(result.duplicates_found, 'question')}")
    if result.near_duplicates:
        return StatusLine(
            ThresholdStatus.FAIR,
            f"Duplicates: none; {pluralize(len(result.near_duplicates), 'near-duplicate pair')}",
        )
    return StatusLine(ThresholdStatus.GOOD, "Duplicates: none")


def _shares(names: list[str], counts: Mapping[str, int], percentages: Mapping[str, float]) -> tuple[CategoryCount, ...]:
    return tuple(CategoryCount(name, counts[name], percentages[name]) for name in names)


def _rank_of_difficulty(name: str) -> int:
    """Sort key: easy before hard, unknown labels last."""
    known = list(DIFFICULTIES)
    return known.index(name) if name in known else len(known)


def _thresholds(result: ValidationResult) -> tuple[StatusLine, ...]:
    """The thresholds; those of categories and difficulties only if the question set has them."""
    limits = result.thresholds
    rows = [
        ("Questions", f"{result.total_questions:,}", result.meets_min_questions,
         result.meets_recommended_questions, f"{limits.min_questions:,}",
         f"{limits.recommended_questions:,}"),
    ]  # fmt: skip
    if result.has_categories:
        rows.append((
            "Multi-hop", _short_percent(result.multihop_percentage), result.meets_min_multihop,
            result.meets_recommended_multihop, _short_percent(limits.min_multihop_pct),
            _short_percent(limits.recommended_multihop_pct),
        ))  # fmt: skip
    if result.has_difficulties:
        rows.append((
            "Hard", _short_percent(result.hard_percentage), result.meets_min_hard, result.meets_recommended_hard,
            _short_percent(limits.min_hard_pct), _short_percent(limits.recommended_hard_pct),
        ))  # fmt: skip
    return tuple(_threshold(*row) for row in rows)


def _threshold(
    label: str, value: str, meets_minimum: bool, meets_recommended: bool, minimum: str, recommended: str
) -> StatusLine:
    limits = f"minimum {minimum}, recommended {recommended}"
    mark = (
        ThresholdStatus.BAD
        if not meets_minimum
        else ThresholdStatus.GOOD
        if meets_recommended
        else ThresholdStatus.FAIR
    )
    return StatusLine(mark, f"{label}: {value} ({limits})")


def _status(result: ValidationResult, *, strict: bool) -> StatusLine:
    reasons = list(_invalid_reasons(result))
    if reasons:
        return StatusLine(ThresholdStatus.BAD, f"Status: invalid ({'; '.join(reasons)})", indent=0)
    unmet = list(_unmet_minimums(result))
    if unmet and strict:
        return StatusLine(ThresholdStatus.BAD, f"Status: failed (--strict): {' and '.join(unmet)}", indent=0)
    if unmet:
        return StatusLine(ThresholdStatus.FAIR, f"Status: usable, {' and '.join(unmet)}", indent=0)
    if not result.verified:
        return StatusLine(
            ThresholdStatus.GOOD,
            f"Status: valid (answers {_NOT_VERIFIED})",
            indent=0,
        )
    return StatusLine(ThresholdStatus.GOOD, "Status: valid (every answer found, every minimum met)", indent=0)


def _invalid_reasons(result: ValidationResult) -> Iterator[str]:
    """The reasons why the question set is invalid."""
    if result.answers_missing:
        yield f"{pluralize(result.answers_missing, 'answer')} missing"
    if result.duplicates_found:
        yield pluralize(result.duplicates_found, "duplicate question")


def _unmet_minimums(result: ValidationResult) -> Iterator[str]:
    """The minimums that are not met, as the end of a sentence."""
    if not result.meets_min_questions:
        yield "with fewer questions than the minimum"
    if not result.meets_min_multihop:
        yield "with few multi-hop questions"
    if not result.meets_min_hard:
        yield "with few hard questions"


def _sizes(result: ValidationResult) -> tuple[SampleSizeRow, ...]:
    return tuple(
        SampleSizeRow(
            resolution.n,
            100 * resolution.half_width,
            None if resolution.detectable is None else 100 * resolution.detectable,
            resolution.n == result.total_questions,
        )
        for resolution in result.resolutions
    )


def _sizes_note(result: ValidationResult) -> str:
    accuracy = _short_percent(100 * result.resolutions[0].accuracy) if result.resolutions else ""
    return (
        f"For models with an accuracy of {accuracy}: the half-width of the Wilson interval, and the smallest "
        "difference that a paired test detects with 80 % power if the errors of two models are independent. If "
        "both fail on the same questions, smaller differences are detectable."
    )


def _lists(result: ValidationResult) -> dict[str, list[str]]:
    by_severity = sorted(result.answer_issues, key=lambda issue: issue.severity != Severity.ISSUE)
    return {
        "Answers": [_issue_line(issue) for issue in by_severity],
        "Duplicate questions": [one_line(question) for question in result.duplicate_questions],
        "Near-duplicate questions": [
            f'"{one_line(duplicate.first)}" and "{one_line(duplicate.second)}": {_pair_text(duplicate)}'
            for duplicate in result.near_duplicates
        ],
        "Unknown labels": [
            f'{name.kind} "{name.name}" of {pluralize(name.count, "question")}: {name.suggestion}'
            for name in result.unknown_names
        ],
    }


def _pair_text(pair: NearDuplicateQuestions) -> str:
    answers = "the same answer" if pair.same_answer else "different answers"
    return f"similarity {format_value(pair.similarity, 2)}, {answers}"


def _issue_line(issue: AnswerIssue) -> str:
    more = f"; {issue.suggestion}" if issue.suggestion else ""
    return f'{issue.question_id} "{one_line(issue.answer)}": {ISSUE_MESSAGES[issue.issue_type]}{more}'


def _short_percent(value: float) -> str:
    """A percentage with as many decimals as it has, at most one.

    >>> _short_percent(20.0), _short_percent(12.5)
    ('20 %', '12.5 %')
    """
    return f"{format_value(value, 1).removesuffix('.0')} %"
