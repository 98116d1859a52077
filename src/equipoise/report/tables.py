"""Score tables of the terminal, the costs of systems as columns, and the same tables as HTML in a notebook."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import floor, isfinite, isnan, log10
from typing import TYPE_CHECKING

from equipoise.evidence.sets import Sets
from equipoise.report.terminal import Paragraph, Part, ReportColumn, TerminalTable, heading, sort_by_severity
from equipoise.stats.formatting import (
    capitalised,
    estimate_decimals,
    format_count,
    format_interval,
    format_percent,
    format_value,
    with_unit,
)
from equipoise.stats.verdict import EVIDENCE_NOUNS, UNKNOWN_CANDIDATES, Vocabulary, unit_noun
from equipoise.types import Direction, Finding

if TYPE_CHECKING:
    from equipoise.report.view_model import Number
    from equipoise.stats.comparison import Comparison
    from equipoise.stats.result import Estimate, Result

BOUND_NOTE = (
    "With <= or >= it is only a bound, because the size of the corpus is unknown: --corpus-size gives the exact value."
)
COST_DIGITS = 3
"""Significant digits of a cost, which is measured once."""


def bounded_systems(findings: Iterable[Finding]) -> set[str]:
    """The systems whose chance levels count only the items that were retrieved or are relevant."""
    return {finding.subject for finding in findings if finding.code == UNKNOWN_CANDIDATES}


def chance_text(estimate: Estimate, decimals: int, *, bounded: bool) -> str:
    """The chance level; with an incomplete set of candidates it is a bound."""
    text = format_value(estimate.chance, decimals)
    return f"{chance_bound_sign(estimate.better)}{text}" if bounded and not isnan(estimate.chance) else text


def chance_bound_sign(better: Direction) -> str:
    """The side of the bound on which the true chance level is."""
    return "<= " if better == Direction.UP else ">= "


def score_part(results: Sequence[Result], *, quiet: bool = False) -> list[Part]:
    """Title, table and caption of one or more results over the same metrics."""
    first = results[0]
    title = f"{first.system} on " if len(results) == 1 else f"{len(results)} systems on "
    title += " or ".join(dict.fromkeys(map(_size, results)))
    table = TerminalTable(score_columns(results))
    parts: list[Part] = [heading(title), Paragraph(""), table]
    return parts if quiet else [*parts, Paragraph(""), Paragraph(caption(results))]


def score_columns(results: Sequence[Result]) -> list[ReportColumn]:
    """One row per metric and system; the metric is named in its first row."""
    rows: list[tuple[str, ...]] = []
    for name in dict.fromkeys(name for result in results for name in result.names):
        with_metric = [result for result in results if name in result.estimates]
        decimals = estimate_decimals([result.estimates[name] for result in with_metric])
        for number, result in enumerate(with_metric):
            bounded = result.system in bounded_systems(result.findings)
            cells = _cells(result.estimates[name], decimals, bounded=bounded)
            heading = with_unit(name, result.estimates[name].unit)
            rows.append((heading if number == 0 else "", result.system, *cells))
    metric, system, value, interval, n, undefined, chance = zip(*rows, strict=True)
    confidence_level = next(iter(results[0].estimates.values())).interval.confidence_level
    columns = [
        ReportColumn("metric", metric),
        ReportColumn("system", system, shortens="middle"),
        ReportColumn("estimate", value, right=True),
        ReportColumn(f"{format_percent(confidence_level)} interval", interval, right=True, rank=1),
        ReportColumn("n", n, right=True, rank=3),
        ReportColumn("undefined", undefined, right=True, rank=4),
        ReportColumn("chance", chance, right=True, rank=2),
    ]
    return columns if len(results) > 1 else [columns[0], *columns[2:]]


def _size(result: Result) -> str:
    """The number of units and clusters."""
    return Vocabulary.nouns([result]).size(len(result.unit_ids), result.n_clusters)


def _cells(estimate: Estimate, decimals: int, *, bounded: bool) -> tuple[str, ...]:
    return (
        format_value(estimate.value, decimals),
        format_interval(estimate.interval, decimals),
        format_count(estimate.n),
        format_count(estimate.undefined),
        chance_text(estimate, decimals, bounded=bounded),
    )


def caption(results: Sequence[Result]) -> str:
    """The interval methods, the metrics for which smaller is better, and the meaning of chance."""
    estimates = [estimate for result in results for estimate in result.estimates.values()]
    methods = interval_methods(estimates)
    down = dict.fromkeys(estimate.metric for estimate in estimates if estimate.better == Direction.DOWN)
    notes = [f"Intervals: {methods}."] if methods else []
    if down:
        notes.append(f"Smaller is better: {', '.join(down)}.")
    notes.append(chance_meaning(unit_noun(results)))
    if any(bounded_systems(result.findings) for result in results):
        notes.append(BOUND_NOTE)
    return " ".join(notes)


def chance_meaning(unit: str) -> str:
    """The random baseline in a sentence: predicted sets of documents are exchanged between the documents.

    >>> chance_meaning("query")
    'Chance is the expected score of a random baseline.'
    """
    if unit == EVIDENCE_NOUNS[Sets.kind]:
        return "Chance is the expected score if the predictions are assigned to documents at random."
    return "Chance is the expected score of a random baseline."


METHOD_NAMES = {
    "wilson": "Wilson",
    "wilson-effective": "Wilson with the effective sample size",
    "wilson-bootstrap-errors": "Wilson, with the variance estimated by bootstrapping the whole cross-validation",
    "bootstrap-errors": "bootstrap of the whole cross-validation",
    "gaffke": "Gaffke",
    "subsample": "subsampling",
    "bca": "BCa bootstrap",
    "bias-corrected": "bias-corrected bootstrap",
    "percentile": "percentile bootstrap",
    "t": "Student's t",
}
"""What the methods of intervals are called in a report."""


def method_name(method: str) -> str:
    """The method of an interval, as readers know it."""
    return METHOD_NAMES.get(method, method)


def interval_methods(estimates: Iterable[Estimate], display: Callable[[str], str] = str) -> str:
    """The method of the intervals of each metric; the metrics of the most frequent method are not listed.

    ``display`` gives the name of a metric that the report uses.

    >>> from equipoise import Ranking, evaluate
    >>> result = evaluate(Ranking.from_ranks([1, 2, 3, 1, 9], candidates=20), ["MRR", "nDCG@10", "HR@1"])
    >>> interval_methods(result.estimates.values())
    "Wilson for HR@1; Student's t for the other metrics"
    """
    methods: dict[str, dict[str, None]] = {}
    for estimate in estimates:
        if estimate.interval.known:
            methods.setdefault(display(estimate.metric), {})[method_name(estimate.interval.method)] = None
    metrics: dict[str, list[str]] = {}
    for metric, names in methods.items():
        metrics.setdefault(" or ".join(names), []).append(metric)
    if len(metrics) < 2:
        return next(iter(metrics), "")
    most = max(metrics, key=lambda method: len(metrics[method]))
    rest = f"; {most} for the other metrics" if len(metrics[most]) > 1 else ""
    listed = [f"{method} for {', '.join(names)}" for method, names in metrics.items() if method != most or not rest]
    return "; ".join(listed) + rest


def finite_or_none(value: float) -> Number:
    """The number, or None if it is not finite."""
    return float(value) if isfinite(value) else None


@dataclass(frozen=True, slots=True)
class SystemColumn:
    """A cost (``dims``, ``seconds``) or a parameter, with one value per system in the order of the report."""

    name: str
    title: str
    values: tuple[Number, ...]
    texts: tuple[str, ...]


def cost_columns(names: Sequence[str], costs: Mapping[str, Mapping[str, float | None]]) -> tuple[SystemColumn, ...]:
    """One column per standard cost that some system recorded, in the order of ``names``.

    If the systems embed chunks of documents, the titles say so.
    """
    columns = []
    noun = _embedded_noun(costs)
    for key, kind in STANDARD_COSTS.items():
        recorded = [costs.get(name, {}).get(key) for name in names]
        # A price of 0 for all, because every model is local, says nothing.
        if any(recorded) if key == "price" else any(value is not None for value in recorded):
            values = tuple(None if value is None else finite_or_none(kind.convert(value)) for value in recorded)
            texts = tuple("" if value is None else kind.text(value) for value in values)
            columns.append(SystemColumn(key, kind.title.replace("texts", noun), values, texts))
    return tuple(columns)


def _embedded_noun(costs: Mapping[str, Mapping[str, float | None]]) -> str:
    """What the systems embed."""
    return "chunks" if any("chunks" in cost for cost in costs.values()) else "texts"


def extra_costs(cost: Mapping[str, float | None]) -> dict[str, str]:
    """The recorded costs of a run that are not standard costs, as text."""
    numbers = {
        name: None if value is None else finite_or_none(value)
        for name, value in cost.items()
        if name not in STANDARD_COSTS
    }
    return {name: "" if value is None else format_cost(value) for name, value in numbers.items()}


def format_cost(value: float) -> str:
    """A number with three significant digits, an integer in full."""
    if value == int(value):
        return format_value(value, 0)
    return format_value(value, max(0, COST_DIGITS - 1 - floor(log10(abs(value)))))


def _percent(value: float) -> str:
    return format_percent(round(value, 3))


def _milliseconds(seconds: float) -> float:
    return 1000 * seconds


def _seconds_per_1000(rate: float) -> float:
    return 1000 / rate if rate else float("nan")


@dataclass(frozen=True, slots=True)
class CostKind:
    """The title of a cost, its format, its conversion from the recorded number, and whether a chart shows it.

    ``missing`` is why a system may lack it.
    """

    title: str
    text: Callable[[float], str] = format_cost
    convert: Callable[[float], float] = float
    charted: bool = False
    missing: str = "not recorded or not applicable"


STANDARD_COSTS = {
    "dims": CostKind("dims"),
    "documents_per_second": CostKind("seconds per 1,000 texts", convert=_seconds_per_1000, charted=True),
    "seconds": CostKind("total seconds", charted=True, missing="not shown if texts were read from the cache"),
    "latency_p50": CostKind("milliseconds per query (median, measured once)", convert=_milliseconds),
    "bytes_per_vector": CostKind("bytes per vector", charted=True),
    "price": CostKind("US dollars per million texts", charted=True),
    "truncated_share": CostKind("texts truncated", _percent),
    "retrieved_tokens": CostKind("tokens retrieved"),
}

ANSWER_COSTS = {
    "price": "$/M texts",
    "documents_per_second": "s/1k texts",
    "seconds": "",
    "bytes_per_vector": "B/vector",
    "dims": "",
}
"""The costs in the short answer, most important first, and their short headings."""
COST_RANK = 5


def cost_report_columns(
    names: Sequence[str], costs: Mapping[str, Mapping[str, float | None]]
) -> tuple[ReportColumn, ...]:
    """The costs that some system recorded, as columns that a narrow terminal drops first."""
    columns = {column.name: column for column in cost_columns(names, costs)}
    noun = _embedded_noun(costs)
    return tuple(
        ReportColumn(
            head.replace("texts", noun) or columns[name].title,
            [text or "-" for text in columns[name].texts],
            right=True,
            rank=COST_RANK + index,
            extra=True,
            values={columns[name].title: columns[name].values},
        )
        for index, (name, head) in enumerate(ANSWER_COSTS.items())
        if name in columns
    )


# In a notebook: the tables of the terminal as HTML, and the findings below.

FINDING_HEADS = ("severity", "code", "subject", "finding", "hint", "evidence")


def html_table(heads: Sequence[str], rows: Iterable[Sequence[str]], *, caption: str = "") -> str:
    """A table with headers; all cells are escaped.

    >>> html_table(["system"], [["<b>"]], caption="a & b")
    '<table><caption>a &amp; b</caption><tr><th>system</th></tr><tr><td>&lt;b&gt;</td></tr></table>'
    """
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    return f"<table>{title}{_html_row('th', heads)}{''.join(_html_row('td', row) for row in rows)}</table>"


def findings_html(findings: Iterable[Finding]) -> str:
    """One row per finding, most severe first; nothing if there is none."""
    rows = [
        (finding.severity, finding.code, finding.subject, finding.message, finding.hint, "; ".join(finding.evidence))
        for finding in sort_by_severity(findings)
    ]
    return html_table(FINDING_HEADS, rows) if rows else ""


def _html_row(tag: str, cells: Iterable[str]) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(cell)}</{tag}>' for cell in cells)}</tr>"


def _columns_html(columns: Sequence[ReportColumn], caption: str) -> str:
    rows = zip(*(column.cells for column in columns), strict=True)
    return html_table([column.head for column in columns], rows, caption=caption)


def paired_test_caption(comparison: Comparison) -> str:
    """The paired test, its permutations and its seed, as the beginning of a sentence."""
    n = comparison.n_permutations
    permutations = "" if n is None else f", {format_count(n)} permutations"
    return f"{capitalised(comparison.test)}, two-sided{permutations}, seed {comparison.config.seed}"


def result_html(result: Result) -> str:
    """One row per metric; the caption has the system, the number of units and whether the run is complete."""
    status = f" ({result.settings['status']} run)" if "status" in result.settings else ""
    title = f"{result.system}{status}: {_size(result)}."
    columns = score_columns([result]) if result.estimates else []
    return _columns_html(columns, f"{title} {caption([result])}") + findings_html(result.findings)


def comparison_html(comparison: Comparison) -> str:
    """One row per system, best first, and a table of the other metrics."""
    from equipoise.report.pairwise import metric_table, other_metrics_caption, primary_columns

    title = (
        f"{comparison.verdict()} Systems that share a tie-band letter do not differ significantly at the "
        f"{format_percent(comparison.alpha)} level: {comparison.test}, two-sided; {comparison.family}."
    )
    tables = [_columns_html(primary_columns(comparison), title)]
    others = [name for name in comparison.metrics if name != comparison.primary]
    if others:
        tables.append(_columns_html(metric_table(comparison, others), other_metrics_caption(comparison, others)))
    return "".join(tables) + findings_html(comparison.findings)
