"""What people see of a fair comparison: the honest figures first, then the optimistic ones, named as such."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from equipoise.checks.base import counted
from equipoise.report.edition import Edition
from equipoise.report.fair_caption import long_caption, short_caption
from equipoise.report.findings import findings_part
from equipoise.report.table import Column, FittedTable
from equipoise.report.terminal import Paragraph, heading
from equipoise.stats.comparison import Comparison
from equipoise.stats.numbers import count, figure, p_value, percent, shared_decimals, signed, span
from equipoise.stats.slices import FEW
from equipoise.tune.budget import best_within
from equipoise.tune.record import Params, Trial, Tuning
from equipoise.types import labelled

PRICES = (250, 500, 1000, 2000, 4000, 8000, 16000)
"""The numbers of retrieved tokens for which the best accuracy is shown."""

_SPARSE = _BEYOND = "*"


def fair_report(edition: Edition, *, verbose: bool = False, quiet: bool = False) -> list[Any]:
    """The whole report, part by part."""
    parts = [*honest_part(edition, verbose=verbose, quiet=quiet), *optimistic_part(edition, quiet=quiet)]
    if not quiet:
        parts += [*price_part(edition), *slices_part(edition), *fold_part(edition, verbose=verbose)]
        parts += findings_part(edition.findings, verbose=verbose)
    return parts


def honest_part(edition: Edition, *, verbose: bool = False, quiet: bool = False) -> list[Any]:
    """The figures that may be quoted: on questions that had no say in the parameters."""
    parts: list[Any] = [heading(_title(edition)), Paragraph(""), FittedTable(honest_columns(edition))]
    parts += [Paragraph(labelled(f"{name} failed", sentence)) for name, sentence in edition.failures.items()]
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


def _title(edition: Edition) -> str:
    asked = counted(edition.contenders[0].estimate.n, "question")
    within = "" if edition.budget is None else f", within {_budget(edition.budget)}"
    if edition.nested:
        return f"Accuracy on {asked} that had no say in the parameters{within}"
    return f"Accuracy on the very {asked} that chose the parameters{within} (optimistic)"


def honest_columns(edition: Edition) -> list[Column]:
    """One row a model, by tie band; on a narrow screen what says who differs stays longest."""
    ranked, comparison = edition.ranked, edition.comparison
    estimates = [each.estimate for each in ranked]
    places = shared_decimals(each.interval for each in estimates)
    level = percent(estimates[0].interval.level)
    columns = [
        Column("model", [each.name for each in ranked], shortens="middle"),
        Column("accuracy", [figure(each.value, places) for each in estimates], right=True),
        Column(f"{level} interval", [span(each.interval, places) for each in estimates], right=True, rank=1),
    ]
    if comparison is not None:
        bands = [" ".join(comparison.bands[each.name]) or "-" for each in ranked]
        columns.insert(0, Column("band", bands))
        columns.append(Column("adj. p", [_p(comparison, each.name) for each in ranked], right=True, rank=2))
    if edition.nested and edition.tried > 1:
        best = [figure(each.tuning.optimistic, places) for each in ranked]
        columns.append(Column("optimistic", best, right=True, rank=3))
        gaps = [signed(each.tuning.gap, places) for each in ranked]
        columns.append(Column("gap", gaps, right=True, rank=4))
    columns += [
        Column("tokens", [_tokens(each.tokens) for each in ranked], right=True, rank=5),
        Column("parameters", [_best(each.tuning) for each in ranked], rank=6),
        Column("chance", [figure(each.chance, places) for each in estimates], right=True, rank=7),
    ]
    if comparison is not None and edition.mcnemar is not None:
        exact = [_exact_p(edition.mcnemar, each.name, comparison.leader) for each in ranked]
        columns.append(Column("McNemar p", exact, right=True, rank=8))
    return columns


def optimistic_part(edition: Edition, *, quiet: bool = False) -> list[Any]:
    """What tuning gains over the baseline for as many tokens, on the questions that chose.

    Who retrieves more finds more. So the best configuration of the whole grid is not compared with the
    baseline, but the best of those that retrieve no more than the baseline does.
    """
    ranked = sorted(edition.contenders, key=lambda each: -each.tuning.optimistic)
    rows = [_Gain.of(each.tuning, edition.budget) for each in ranked]
    table = FittedTable(
        [
            Column("Model", [each.name for each in ranked], shortens="middle"),
            Column("Baseline", [f"{_percent(row.baseline)}{row.mark}" for row in rows], right=True),
            Column("Optimized", [_percent(row.tuned) for row in rows], right=True),
            Column("Δ", [row.points for row in rows], right=True),
            Column("tokens", [row.tokens for row in rows], right=True, rank=2),
            Column("parameters", [row.params for row in rows], rank=1),
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
    def of(cls, tuning: Tuning, budget: float | None) -> _Gain:
        start = _baseline(tuning)
        beyond = budget is not None and start.cost is not None and start.cost > budget
        limit = budget if beyond else start.cost
        at = None if limit is None else best_within(tuning.frontier, limit)
        return cls(start, None if at is None else tuning.frontier[at], _BEYOND if beyond else "")

    @property
    def points(self) -> str:
        """The difference in percentage points, where both spend alike."""
        if self.tuned is None or self.mark:
            return "n/a"
        return f"{signed(100 * (self.tuned.value - self.baseline.value), 1)}pp"

    @property
    def tokens(self) -> str:
        """The tokens per question with the baseline and with the best."""
        return f"{_tokens(self.baseline.cost)} -> {_tokens(None if self.tuned is None else self.tuned.cost)}"

    @property
    def params(self) -> str:
        return "" if self.tuned is None else params_text(self.tuned.params)


def _percent(trial: Trial | None) -> str:
    return "n/a" if trial is None else f"{figure(100 * trial.value, 1)}%"


def price_part(edition: Edition) -> list[Any]:
    """What a number of retrieved tokens buys, from the frontier of each model."""
    edges = {each.name: each.tuning.frontier for each in edition.ranked if each.tuning.frontier}
    if not edges:
        return []
    dearest = max(edge[-1].cost or 0.0 for edge in edges.values())
    cheapest = min(edge[0].cost or 0.0 for edge in edges.values())
    known = sorted({*PRICES, *_own_price(edition)})
    prices = [*(price for price in known if cheapest <= price < dearest), dearest]
    heads = [*(f"<= {count(round(price))}" for price in prices[:-1]), "any"]
    columns = [Column("tokens", heads, right=True)]
    for name, edge in edges.items():
        found = [best_within(edge, price) for price in prices]
        cells = ["-" if at is None else figure(edge[at].value) for at in found]
        columns.append(Column(name, cells, right=True, rank=len(columns) if len(columns) > 1 else 0))
    return [
        Paragraph(""),
        heading("Best accuracy for a number of retrieved tokens a question (optimistic)"),
        Paragraph(""),
        FittedTable(columns),
    ]


def slices_part(edition: Edition) -> list[Any]:
    """The honest accuracy by category and difficulty, each with its number of questions."""
    ranked = edition.ranked
    keys = [(each.name, each.value) for each in ranked[0].slices]
    if not keys:
        return []
    first = {(each.name, each.value): each.estimate for each in ranked[0].slices}
    columns = [
        Column("slice", [f"{name} {value}" for name, value in keys]),
        Column("n", [_n(first[key].n) for key in keys], right=True),
    ]
    for place, contender in enumerate(ranked):
        cells = {(each.name, each.value): figure(each.estimate.value, 2) for each in contender.slices}
        columns.append(Column(contender.name, [cells[key] for key in keys], right=True, rank=place))
    sparse = any(first[key].n < FEW for key in keys)
    parts: list[Any] = [
        Paragraph(""),
        heading("Accuracy by kind of question"),
        Paragraph(""),
        FittedTable(columns),
    ]
    if sparse:
        parts.append(Paragraph(f"{_SPARSE} fewer than {FEW} questions: such a figure says little."))
    return parts


def fold_part(edition: Edition, *, verbose: bool = False) -> list[Any]:
    """What each fold chose; shown on request."""
    if not verbose or not edition.nested:
        return []
    rows = [(each, choice) for each in edition.ranked for choice in each.tuning.folds]
    splits = [
        f"{each.name} {figure(each.tuning.split_sd, 4)}" for each in edition.ranked if each.tuning.split_sd
    ]
    parts: list[Any] = [
        Paragraph(""),
        heading("What was chosen without each fold"),
        Paragraph(""),
        FittedTable(
            [
                Column("model", [each.name for each, _ in rows], shortens="middle"),
                Column("folds", [str(choice.times) for _, choice in rows], right=True),
                Column("n", [str(choice.n) for _, choice in rows], right=True),
                Column("parameters", [params_text(choice.params) for _, choice in rows]),
                Column("inner", [figure(choice.inner) for _, choice in rows], right=True),
                Column("outer", [figure(choice.outer) for _, choice in rows], right=True),
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


def _own_price(edition: Edition) -> Sequence[float]:
    return () if edition.budget is None else (edition.budget,)


def _budget(budget: float) -> str:
    return f"{figure(budget, 0)} retrieved tokens"


def _best(tuning: Tuning) -> str:
    return params_text(tuning.trials[tuning.best].params)


def _baseline(tuning: Tuning) -> Trial:
    """The trial of those who tune nothing; one without a value where there is none."""
    return Trial({}, float("nan")) if tuning.baseline is None else tuning.trials[tuning.baseline]


def _tokens(tokens: float | None) -> str:
    return "n/a" if tokens is None else count(round(tokens))


def _p(comparison: Comparison, name: str) -> str:
    leader = comparison.leader
    return "" if leader is None or name == leader else p_value(comparison.contrast(name, leader).adjusted)


def _exact_p(mcnemar: Comparison, name: str, leader: str | None) -> str:
    """The exact p of this pair alone; n/a where tied scores leave one of them without hits and misses."""
    if leader is None or name == leader:
        return ""
    tested = {name, leader} <= set(mcnemar.systems)
    return p_value(mcnemar.contrast(name, leader).p) if tested else "n/a"


def _n(n: int) -> str:
    return f"{count(n)}{_SPARSE if n < FEW else ''}"
