"""The view of a fair comparison: held-out accuracy first, then costs, tuning, token budgets, slices and folds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from equipoise.checks.base import join_names, pluralize
from equipoise.domains.fair.costs import ModelCosts
from equipoise.models.vector_cache import format_bytes
from equipoise.report.answer import Answer, AnswerOptions, comparison_answer, failure_line, score_columns, single_answer
from equipoise.report.pairwise import comparison_caption
from equipoise.report.terminal import ReportColumn
from equipoise.report.view import ReportTable, Section, View
from equipoise.stats.formatting import ScoreFormat, format_count, format_p, format_value
from equipoise.stats.slices import MIN_UNITS
from equipoise.stats.verdict import Vocabulary
from equipoise.tuning.grid import FoldSelection, Params, Trial, TuningRecord, best_within_budget

if TYPE_CHECKING:
    from equipoise.domains.fair.results import FairComparison, FairModelResult
    from equipoise.stats.comparison import Comparison, Contrast


NESTED_BOOTSTRAP_NOTE = (
    "Held-out scores of different questions are not independent, because they share the selected parameters. "
    "Therefore the bootstrap resamples the questions and repeats the whole cross-validation. The intervals are Wilson "
    "intervals with the variance from this bootstrap."
)

TOKENS_NOTE = {"words": "A token is a word or a punctuation mark.", "": "What a token is was not recorded."}
"""The note for tokenizers without a vocabulary."""

OPTIMISTIC_NOTE = "Optimistic is the score if the same questions are used for selection and scoring."
CHANCE_NOTE = "Chance is the expected score of the same number of random chunks."
RETRIEVED_TOKENS_NOTE = "Tokens is the mean number of tokens that the best configuration retrieves per question."


WORDS = Vocabulary("question", "model", "accuracy", percent=True)
COST_RANK, PARAMETERS_RANK = 5, 4


def fair_answer(data: FairComparison, details: str = "") -> Answer:
    """Which model is best, with the selected parameters and the sizes of the models."""
    ranked = data.ranked
    costs = [model.profile.costs for model in ranked]
    options = AnswerOptions(
        WORDS,
        columns=(
            ReportColumn("chunking", [_best(model.tuning) for model in ranked], rank=PARAMETERS_RANK),
            ReportColumn(
                "chunks/s",
                [_rate(cost) for cost in costs],
                right=True,
                rank=COST_RANK,
                values={"chunks/s": [cost.documents_per_second for cost in costs]},
            ),
            ReportColumn(
                "memory",
                [_bytes(cost.memory) for cost in costs],
                right=True,
                rank=COST_RANK + 1,
                values={"memory (bytes)": [cost.memory for cost in costs]},
            ),
            *_price_column(ranked),
        ),
        baseline="Random retrieval",
        score_note=_tuning_note(data),
        notes=tuple(f"{note}." for note in _unreached_budget(data)),
        failures=failure_line(data.failures, len(data.outcomes)),
        findings=data.findings,
        details=details,
        cheapest=data.cheapest or "",
    )
    if data.comparison is None:
        return single_answer(ranked[0].name, ranked[0].estimate, options)
    return comparison_answer(data.comparison, options)


def _rate(costs: ModelCosts) -> str:
    rate = costs.documents_per_second
    return "n/a" if rate is None else format_count(round(rate)) if rate >= 9.5 else format_value(rate, 1)


def _bytes(amount: float | None) -> str:
    return "n/a" if amount is None else format_bytes(round(amount))


def _price(costs: ModelCosts) -> str:
    """The price without its unit, which is in the heading."""
    return "n/a" if costs.price is None else "free" if not costs.price else format_value(costs.price, 2)


def _price_column(ranked: Sequence[FairModelResult]) -> tuple[ReportColumn, ...]:
    """The price for a million chunks, if a model is not free."""
    if all(model.profile.costs.price == 0.0 for model in ranked):
        return ()
    head, costs = "$/M chunks", [model.profile.costs for model in ranked]
    prices = {head: [cost.price for cost in costs]}
    return (ReportColumn(head, list(map(_price, costs)), right=True, rank=COST_RANK + 2, values=prices),)


def cost_section(data: FairComparison) -> Section:
    """Throughput, memory and price of every model; a lexical system has no dimensions."""
    ranked = data.ranked
    dims = ["-" if model.profile.dimensions is None else f"{model.profile.dimensions:,}" for model in ranked]
    columns = [
        ReportColumn("model", [model.name for model in ranked], shortens="middle"),
        ReportColumn("accuracy", [_score(model.estimate.value) for model in ranked], right=True),
        ReportColumn("chunks/s", [_rate(model.profile.costs) for model in ranked], right=True),
        ReportColumn("dims", dims, right=True, rank=4),
        ReportColumn("index", [_bytes(model.profile.costs.index_bytes) for model in ranked], right=True, rank=1),
        ReportColumn("weights", [_bytes(model.profile.costs.model_bytes) for model in ranked], right=True, rank=2),
        ReportColumn("$/M chunks", [_price(model.profile.costs) for model in ranked], right=True, rank=3),
    ]
    if any(model.profile.costs.rerank_seconds != 0.0 for model in ranked):
        times = [model.profile.costs.rerank_seconds for model in ranked]
        seconds = ["n/a" if time is None else format_value(time, 3) for time in times]
        columns.append(ReportColumn("rerank s/question", seconds, right=True, rank=5))
    return Section.of_table(
        "Costs per model",
        columns,
        "Chunks/s is the embedding or indexing speed on this machine (for embedding models, the highest measured so "
        "far). Index is the size of the vectors or of the lexical index of the best configuration.",
    )


def _tuning_note(data: FairComparison) -> str:
    """How the scores relate to the tuning, and by how much tuning on the same questions would bias them."""
    n_tried = data.outcomes[0].n_tried
    if n_tried == 1:
        return "The grid has one configuration, so nothing was tuned."
    if not data.plan.requested.nested:
        return (
            f"These scores are optimistic: the best of {n_tried:,} configurations was selected and scored on the "
            "same questions. Use --n-folds 5."
        )
    gap = format_value(100 * max(model.tuning.gap for model in data.outcomes), 0)
    if float(gap) <= 0:
        return "Scores are cross-validated; tuning on the same questions would not change them."
    points = f"{gap} point{'' if gap == '1' else 's'}"
    return f"Scores are cross-validated; tuning on the same questions would add up to {points}."


def _unreached_budget(data: FairComparison) -> Iterator[str]:
    """A note if the requested top_k retrieves fewer tokens than the budget allows, so that it excludes nothing."""
    budget = data.plan.requested.budget if data.plan.requested.top_ks is not None else None
    costs = [trial.cost for model in data.outcomes for trial in model.tuning.grid if trial.cost is not None]
    if budget is not None and costs and max(costs) < budget:
        yield (
            f"The budget is {format_value(budget, 0)} tokens per question, and the largest configuration retrieves "
            f"{format_value(max(costs), 0)}: raise --top-k to use the whole budget"
        )


def short_caption(data: FairComparison) -> Iterator[str]:
    """The notes on the tables."""
    yield from (f"{note}." for note in data.notes)
    if data.plan.requested.nested and data.outcomes[0].n_tried > 1:
        yield f"Each question is scored with parameters selected on other questions{_over_splits(data)}."
    yield TOKENS_NOTE.get(
        data.plan.requested.tokenizer_name,
        f"Tokens are counted with the {data.plan.requested.tokenizer_name} tokenizer.",
    )


def _about_p(comparison: Comparison, *, nested: bool) -> str:
    pairs = sum(contrast.metric == comparison.primary for contrast in comparison.contrasts)
    adjusted = [f"Adj. p is adjusted for {pairs} pairs."] if comparison.is_adjusted else []
    selection = ["The p value accounts for the parameter selection."] if nested else []
    return " ".join([*adjusted, *selection])


def _over_splits(data: FairComparison) -> str:
    """The standard deviation of the score of one split."""
    splits = data.outcomes[0].tuning.splits
    if splits < 2:
        return ""
    spread = max(model.tuning.split_sd or 0.0 for model in data.outcomes)
    sd = format_value(100 * spread, 1)
    return f", averaged over {splits} random splits (standard deviation between splits: up to {sd} points)"


def _about_mcnemar(data: FairComparison, comparison: Comparison) -> str:
    """A note on the column of McNemar's test, and why models lack it."""
    counted = (
        " A question counts as answered if it is answered in most splits." if data.outcomes[0].tuning.splits > 1 else ""
    )
    unadjusted = " and is not adjusted for the number of pairs" if comparison.is_adjusted else ""
    tied = [model.name for model in data.outcomes if model.profile.tied_questions]
    skipped = f" It is n/a for models whose tied scores give fractional hits ({join_names(tied)})." if tied else ""
    return (
        f"McNemar p is that of McNemar's exact test. It ignores the parameter selection{unadjusted}, so it is often "
        f"much smaller than {comparison.p_heading}.{counted}{skipped}"
    )


def long_caption(data: FairComparison) -> Iterator[str]:
    """The full description of the method."""
    preferred = "the first one in the grid" if data.plan.requested.joins else "the one with the fewest tokens"
    yield f"Of equally accurate configurations, {preferred} is selected."
    if data.plan.requested.nested:
        yield NESTED_BOOTSTRAP_NOTE


TOKEN_BUDGETS = (250, 500, 1000, 2000, 4000, 8000, 16000)
"""The numbers of retrieved tokens for which the best accuracy is shown."""

RARE = 0.05
"""Configurations that a smaller share of the folds selected are not listed."""

_SPARSE = _OVER_BUDGET = "*"
FINE, WHOLE = ScoreFormat(1, percent=True), ScoreFormat(0, percent=True)
"""Percent with one decimal for tables, without decimals for small subsets."""


def fair_view(data: FairComparison, details: str = "") -> View:
    """The answer, then all tables and the methods."""
    sections = [
        Section(_title(data), (ReportTable.of(held_out_columns(data)),), on_page=False),
        Section("Method", notes=(*short_caption(data), *long_caption(data))),
        *pair_section(data),
        cost_section(data),
        *optimistic_section(data),
        *token_budget_section(data),
        *slice_section(data),
        *fold_section(data),
    ]
    return View(fair_answer(data, details), tuple(sections))


def _title(data: FairComparison) -> str:
    questions = pluralize(data.outcomes[0].estimate.n, "question")
    budget, folds = data.plan.requested.budget, data.outcomes[0].tuning.fold_count
    within = "" if budget is None else f", within {format_value(budget, 0)} retrieved tokens"
    if folds:
        return f"Held-out accuracy on {questions} (nested {folds}-fold cross-validation){within}"
    return f"Optimistic accuracy on {questions} (selected and scored on the same questions){within}"


def held_out_columns(data: FairComparison) -> list[ReportColumn]:
    """One row per model, by tie band; on a narrow terminal the columns of the comparison are dropped last."""
    ranked, comparison = data.ranked, data.comparison
    tuned_apart = data.plan.requested.nested and data.outcomes[0].n_tried > 1
    estimates = [model.estimate for model in ranked]
    columns = [
        ReportColumn("model", [model.name for model in ranked], shortens="middle"),
        *score_columns(estimates, FINE, "accuracy"),
    ]
    if comparison is not None:
        bands = [" ".join(comparison.bands[model.name]) or "-" for model in ranked]
        columns.insert(0, ReportColumn("band", bands))
        adjusted = [_p(comparison, model.name) for model in ranked]
        note = _about_p(comparison, nested=tuned_apart)
        columns.append(ReportColumn(comparison.p_heading, adjusted, right=True, rank=2, note=note))
    if tuned_apart:
        best = [_score(model.tuning.optimistic) for model in ranked]
        columns.append(ReportColumn("optimistic", best, right=True, rank=3, note=OPTIMISTIC_NOTE))
        gaps = [FINE.signed_difference(model.tuning.gap) for model in ranked]
        columns.append(
            ReportColumn(
                "gap", gaps, right=True, rank=4, note="Gap is optimistic minus accuracy, computed before rounding."
            )
        )
    tokens = [_tokens(model.profile.retrieved_tokens) for model in ranked]
    columns += [
        ReportColumn("tokens", tokens, right=True, rank=5, note=RETRIEVED_TOKENS_NOTE),
        ReportColumn("parameters", [_best(model.tuning) for model in ranked], rank=6),
        ReportColumn("chance", [_score(part.chance) for part in estimates], right=True, rank=7, note=CHANCE_NOTE),
    ]
    return columns


def pair_section(data: FairComparison) -> list[Section]:
    """The difference of every pair of models, with the p values of both tests."""
    comparison = data.comparison
    if comparison is None:
        return []
    pairs = [contrast for contrast in comparison.contrasts if contrast.metric == comparison.primary]
    unadjusted = ReportColumn("p", [format_p(pair.p) for pair in pairs], right=True, rank=3)
    columns = [
        ReportColumn("model", [pair.a for pair in pairs], shortens="middle"),
        ReportColumn("minus", [pair.b for pair in pairs], shortens="middle"),
        ReportColumn("points", [FINE.signed_difference(pair.difference) for pair in pairs], right=True),
        ReportColumn("interval", [FINE.difference_interval(pair.interval) for pair in pairs], right=True, rank=2),
        *([unadjusted] if comparison.is_adjusted else []),
        ReportColumn(comparison.p_heading, [format_p(pair.adjusted) for pair in pairs], right=True, rank=1),
    ]
    captions = [comparison_caption(comparison, "Model")]
    if data.mcnemar is not None:
        exact = [_exact_p(data.mcnemar, pair) for pair in pairs]
        columns.append(ReportColumn("McNemar p", exact, right=True, rank=4))
        captions.append(_about_mcnemar(data, comparison))
    return [Section("Every pair of models", (ReportTable.of(columns),), tuple(captions))]


def optimistic_section(data: FairComparison) -> list[Section]:
    """The optimistic gain of tuning over the baseline for at most as many tokens.

    Retrieving more chunks finds more answers. So the baseline is compared with the best configuration that
    retrieves no more tokens than the baseline. A default baseline that is not in the grid is left out.
    """
    in_grid = all(_baseline_in_grid(model.tuning) for model in data.outcomes)
    if data.plan.requested.baseline_params is None and not in_grid:
        return []
    ranked = sorted(data.outcomes, key=lambda model: -model.tuning.optimistic)
    rows = [_Gain.of(model.tuning, data.plan.requested.budget) for model in ranked]
    columns = [
        ReportColumn("model", [model.name for model in ranked], shortens="middle"),
        ReportColumn("baseline", [f"{_score(row.baseline.value)}{row.mark}" for row in rows], right=True),
        ReportColumn("tuned", [row.tuned_score for row in rows], right=True),
        ReportColumn("gain", [row.points for row in rows], right=True),
        ReportColumn("tokens", [row.tokens for row in rows], right=True, rank=2),
        ReportColumn("parameters", [row.params for row in rows], rank=1),
    ]
    notes = []
    baselines = [model.tuning.trials[index] for model in ranked if (index := model.tuning.baseline) is not None]
    if baselines:
        base = params_text(baselines[0].params)
        notes.append(f"The baseline is not tuned: {base} (chunk size/overlap, number of chunks).")
    if any(row.mark for row in rows):
        notes.append(
            f"{_OVER_BUDGET} The baseline exceeds the token budget. Tuned is the best configuration within "
            "the budget, and is not compared with the baseline."
        )
    title = "Gain from tuning, retrieving no more tokens than the baseline (optimistic accuracy)"
    notes.append("Parameters are selected and scored on the same questions, so the tuned score is biased upwards.")
    if not in_grid:
        notes.append("The baseline is not in the grid, so the gain can be negative.")
    return [Section.of_table(title, columns, *notes)]


def _baseline_in_grid(tuning: TuningRecord) -> bool:
    """Whether each parameter of the baseline has a value that other configurations have; the grid is a product."""
    if tuning.baseline is None:
        return False
    others = [trial.params for index, trial in enumerate(tuning.trials) if index != tuning.baseline]
    values = tuning.trials[tuning.baseline].params.items()
    return not others or all(any(params.get(name) == value for params in others) for name, value in values)


@dataclass(frozen=True)
class _Gain:
    """The baseline of a model, and the best trial with no more tokens, if there is one."""

    baseline: Trial
    tuned: Trial | None
    mark: str

    @classmethod
    def of(cls, tuning: TuningRecord, budget: float | None) -> _Gain:
        start = _baseline(tuning)
        over_budget = budget is not None and start.cost is not None and start.cost > budget
        limit = budget if over_budget else start.cost
        at = None if limit is None else best_within_budget(tuning.frontier, limit)
        return cls(start, None if at is None else tuning.frontier[at], _OVER_BUDGET if over_budget else "")

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


def token_budget_section(data: FairComparison) -> list[Section]:
    """The best accuracy per token budget, from the Pareto frontier of each model."""
    frontiers = {model.name: model.tuning.frontier for model in data.ranked if model.tuning.frontier}
    if not frontiers:
        return []
    highest = max(frontier[-1].cost or 0.0 for frontier in frontiers.values())
    lowest = min(frontier[0].cost or 0.0 for frontier in frontiers.values())
    budget = data.plan.requested.budget
    known = sorted({*TOKEN_BUDGETS, *(() if budget is None else (budget,))})
    prices = [*(price for price in known if lowest <= price < highest), highest]
    heads = [*(f"<= {format_count(round(price))}" for price in prices[:-1]), "any"]
    columns = [ReportColumn("tokens", heads, right=True)]
    for name, frontier in frontiers.items():
        positions = [best_within_budget(frontier, price) for price in prices]
        cells = ["-" if at is None else _score(frontier[at].value) for at in positions]
        columns.append(ReportColumn(name, cells, right=True, rank=len(columns) if len(columns) > 1 else 0))
    return [Section.of_table("Best accuracy by number of retrieved tokens (optimistic)", columns)]


def slice_section(data: FairComparison) -> list[Section]:
    """The held-out accuracy by category and difficulty, with the number of questions."""
    ranked = data.ranked
    slices = data.slices
    keys = [(part.name, part.value) for part in slices[ranked[0].name]]
    if not keys:
        return []
    first = {(part.name, part.value): part.estimate for part in slices[ranked[0].name]}
    columns = [
        ReportColumn("slice", [f"{name} {value}" for name, value in keys]),
        ReportColumn("n", [_n(first[key].n) for key in keys], right=True),
    ]
    for index, model in enumerate(ranked):
        cells = {(part.name, part.value): WHOLE.value(part.estimate.value) for part in slices[model.name]}
        columns.append(ReportColumn(model.name, [cells[key] for key in keys], right=True, rank=index))
    sparse = any(first[key].n < MIN_UNITS for key in keys)
    note = f"{_SPARSE} fewer than {MIN_UNITS} questions: not reliable." if sparse else ""
    return [Section("Accuracy by category and difficulty", (ReportTable.of(columns, note),), on_page=False)]


def fold_section(data: FairComparison) -> list[Section]:
    """The configurations that the folds selected, without rare ones."""
    if not data.plan.requested.nested:
        return []
    choices = [(model, choice) for model in data.ranked for choice in model.tuning.folds]
    rows = [(model, choice) for model, choice in choices if not _is_rare(choice, model.tuning)]
    splits = [
        f"{model.name} {format_value(100 * model.tuning.split_sd, 2)}" for model in data.ranked if model.tuning.split_sd
    ]
    columns = [
        ReportColumn("model", [model.name for model, _ in rows], shortens="middle"),
        ReportColumn("folds", [str(choice.times) for _, choice in rows], right=True),
        ReportColumn("questions", [f"{choice.n:,}" for _, choice in rows], right=True),
        ReportColumn("parameters", [params_text(choice.params) for _, choice in rows]),
        ReportColumn("selection score", [_score(choice.inner) for _, choice in rows], right=True),
        ReportColumn("held-out score", [_score(choice.outer) for _, choice in rows], right=True),
    ]
    meaning = (
        "Folds: how many folds selected the configuration. Questions: how many held-out questions were scored with it, "
        "over all splits. Selection score: mean accuracy on the questions used for selection. Held-out score: mean "
        "accuracy on the held-out questions."
    )
    n_rare = len(choices) - len(rows)
    rare = f"Not shown: {n_rare:,} selected in fewer than {WHOLE.value(RARE)} of the folds." if n_rare else ""
    note = f"Standard deviation of the score over splits, in points: {', '.join(splits)}." if splits else ""
    table = ReportTable.of(columns, rare, meaning, note)
    return [Section("Configurations selected by nested cross-validation", (table,), on_page=False)]


def _is_rare(choice: FoldSelection, tuning: TuningRecord) -> bool:
    """Whether few folds selected the configuration, and another one was selected more often."""
    most = max(other.times for other in tuning.folds)
    return choice.times < min(most, RARE * tuning.splits * tuning.fold_count)


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


def _score(value: float) -> str:
    return FINE.value(value)


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


def _exact_p(mcnemar: Comparison, pair: Contrast) -> str:
    """The unadjusted exact p of this pair; n/a if one of them has fractional hits."""
    tested = {pair.a, pair.b} <= set(mcnemar.systems)
    return format_p(mcnemar.contrast(pair.a, pair.b).p) if tested else "n/a"


def _n(n: int) -> str:
    return f"{format_count(n)}{_SPARSE if n < MIN_UNITS else ''}"
