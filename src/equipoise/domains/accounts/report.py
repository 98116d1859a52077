"""What people see of embedded trees: a row an embedding, who can be told from whom, depths and branches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan
from typing import TYPE_CHECKING, Any

from equipoise.checks.base import pluralize
from equipoise.report.findings import findings_section
from equipoise.report.terminal import Paragraph, ReportColumn, TerminalTable, heading
from equipoise.stats.formatting import (
    format_count,
    format_interval,
    format_percent,
    format_value,
    shared_decimals,
)

if TYPE_CHECKING:
    from equipoise.stats.comparison import Comparison
    from equipoise.stats.result import Estimate
    from equipoise.stats.slices import Slice
    from equipoise.types import Finding

MOST_SLICES = 12
"""Of more branches than this the largest are shown."""
SINGLE = "Every node has one relative at most, so that MAP is the mean reciprocal rank."
RELATIVES = {
    "parent": "its parent",
    "ancestors": "its ancestors",
    "closure": "its ancestors and descendants",
}


@dataclass(frozen=True)
class EmbeddingScores:
    """One embedding; norms, radii and distances are mean and standard deviation, ``seeds`` texts by metric.

    Radii are distances from the origin in the space itself: in the ball they differ from the norms.
    """

    system: str
    geometry: str
    dim: int
    mean_rank: Estimate
    macro_mean_rank: Estimate
    median_rank: Estimate
    map: Estimate
    spearman: Estimate
    norms: tuple[float, float]
    radii: tuple[float, float]
    parent_distances: tuple[float, float]
    slices: tuple[Slice, ...] = ()
    seeds: Mapping[str, str] = field(default_factory=dict)
    train_on: str | None = None


@dataclass(frozen=True)
class AccountsReportData:
    """All that the report of one tree shows."""

    source: str
    nodes: int
    edges: int
    roots: int
    levels: int
    relation: str
    filtered: bool
    single: bool
    rows: tuple[EmbeddingScores, ...]
    comparison: Comparison | None = None
    branches: str = ""
    branch_names: Mapping[str, str] = field(default_factory=dict)
    rates: tuple[float, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def leader(self) -> EmbeddingScores:
        """The embedding that leads, or the first one."""
        best = None if self.comparison is None else self.comparison.leader
        return next((row for row in self.rows if row.system == best), self.rows[0])


def accounts_report(edition: AccountsReportData, *, verbose: bool = False, quiet: bool = False) -> list[Any]:
    """The table, how to read it, the verdict, the slices of the leader, and the findings."""
    title = (
        f"{edition.source}: {pluralize(edition.nodes, 'node')}, {pluralize(edition.edges, 'edge')}, "
        f"{pluralize(edition.roots, 'root')}, {pluralize(edition.levels, 'level')}"
    )
    parts: list[Any] = [heading(title), Paragraph(""), TerminalTable(accounts_columns(edition))]
    if quiet:
        return parts
    parts += [Paragraph(""), *(Paragraph(text) for text in captions(edition)), *seed_table(edition)]
    if edition.comparison is not None:
        parts += [Paragraph(""), Paragraph(edition.comparison.verdict("node"))]
    if verbose:
        parts += [*position_table(edition)]
    parts += slice_table(edition.leader, edition.branch_names, verbose=verbose)
    return [*parts, *findings_section(edition.findings, verbose=verbose)]


def accounts_columns(edition: AccountsReportData) -> list[ReportColumn]:
    """One row an embedding."""
    rows = edition.rows
    level = format_percent(rows[0].map.interval.confidence_level)
    columns = [
        ReportColumn("embedding", [row.system for row in rows], shortens="middle"),
        *_estimated("MR", [row.mean_rank for row in rows], level, rank=3),
        *_estimated("MAP", [row.map for row in rows], level, rank=2),
        ReportColumn("Spearman", [format_value(row.spearman.value, 2) for row in rows], right=True, rank=1),
        ReportColumn(
            "median", [format_value(row.median_rank.value, 1) for row in rows], right=True, rank=4, extra=True
        ),
    ]
    if not edition.single:
        macro = [format_value(row.macro_mean_rank.value, 2) for row in rows]
        columns.append(ReportColumn("MR over nodes", macro, right=True, rank=5, extra=True))
    if edition.comparison is not None:
        bands = edition.comparison.bands
        columns.append(ReportColumn("band", ["".join(bands[row.system]) for row in rows]))
    return columns


def _estimated(name: str, estimates: Sequence[Estimate], level: str, rank: int) -> list[ReportColumn]:
    """A figure and its interval."""
    places = min(shared_decimals(each.interval for each in estimates), 3)
    return [
        ReportColumn(name, [format_value(each.value, places) for each in estimates], right=True),
        ReportColumn(
            f"{name}, {level}",
            [format_interval(each.interval, places) for each in estimates],
            right=True,
            rank=rank,
        ),
    ]


def captions(edition: AccountsReportData) -> list[str]:
    """What was ranked, how ranks are read, what is resampled, and what the baselines are."""
    ranks = "other relatives do not count as rivals (filtered)" if edition.filtered else "all others are rivals (raw)"
    first = edition.rows[0]
    methods = dict.fromkeys(
        each.interval.method for row in edition.rows for each in (row.mean_rank, row.map) if each.interval.known
    )
    told = [
        f"Each node ranks {RELATIVES[edition.relation]} among all others by distance; {ranks}. MR is the "
        f"mean over edges, lower is better, and {format_value(first.mean_rank.chance, 1)} by chance; MAP is the "
        f"mean over nodes, {format_value(first.map.chance, 3)} by chance. Spearman: norm against place between "
        "root and leaf.",
        f"Intervals: {', '.join(methods) or 'n/a'}. {edition.branches}",
    ]
    if first.map.undefined:
        alone = pluralize(first.map.undefined, "node")
        told.append(f"Left out: {alone} that {'has' if first.map.undefined == 1 else 'have'} no relative to rank.")
    if edition.single:
        told.append(SINGLE)
    if any(row.system.startswith("euclidean") for row in edition.rows) and len(edition.rates) > 1:
        rates = ", ".join(f"{rate:g}" for rate in edition.rates)
        told.append(
            f"Every trained embedding was tried at the learning rates {rates}, and its lowest loss was kept; "
            "euclidean and random stand beside as baselines."
        )
    told += training_relation_notes(edition.rows, edition.relation)
    if edition.comparison is not None:
        told.append(f"Embeddings that share a letter cannot be told apart on {edition.comparison.primary}.")
    return told


def training_relation_notes(rows: Sequence[EmbeddingScores], relation: str) -> list[str]:
    """A sentence for each relation that embeddings were trained on and are not judged by."""
    told = []
    for other in dict.fromkeys(row.train_on for row in rows):
        if other in RELATIVES and other != relation:
            names = ", ".join(row.system for row in rows if row.train_on == other)
            told.append(
                f"Trained on another relation: {names}. There training drew {RELATIVES[other]} near to each "
                f"node; judged is {RELATIVES[relation]}."
            )
    return told


def seed_table(edition: AccountsReportData) -> list[Any]:
    """Mean and spread over seeds, where there are several."""
    rows = [row for row in edition.rows if row.seeds]
    if not rows:
        return []
    names = [rows[0].mean_rank.metric, rows[0].map.metric]
    table = TerminalTable(
        [
            ReportColumn("embedding", [row.system for row in rows], shortens="middle"),
            *(ReportColumn(name, [row.seeds[name] for row in rows], right=True) for name in names),
        ]
    )
    return [Paragraph(""), heading("Over seeds"), Paragraph(""), table]


def position_table(edition: AccountsReportData) -> list[Any]:
    """Where the points lie, as their space measures: from the origin, and from the parents."""
    rows = edition.rows
    table = TerminalTable(
        [
            ReportColumn("embedding", [row.system for row in rows], shortens="middle"),
            ReportColumn("geometry", [row.geometry for row in rows]),
            ReportColumn("distance from the origin", [_spread(row.radii) for row in rows], right=True),
            ReportColumn("distance to the parent", [_spread(row.parent_distances) for row in rows], right=True),
        ]
    )
    return [Paragraph(""), heading("Mean ± standard deviation"), Paragraph(""), table]


def _spread(pair: tuple[float, float]) -> str:
    return f"{format_value(pair[0], 2)} ± {format_value(pair[1], 2)}"


def slice_table(row: EmbeddingScores, names: Mapping[str, str], *, verbose: bool = False) -> list[Any]:
    """The primary metric at every depth and in every branch."""
    defined = [each for each in row.slices if each.estimate.n]
    shown = defined if verbose else _largest(defined)
    if not shown:
        return []
    table = TerminalTable(
        [
            ReportColumn("slice", [each.name for each in shown]),
            ReportColumn("", [_value(each, names) for each in shown], shortens="end"),
            ReportColumn(
                "n",
                [f"{format_count(each.estimate.n)}{'*' if each.few else ''}" for each in shown],
                right=True,
            ),
            ReportColumn("estimate", [format_value(each.estimate.value, 2) for each in shown], right=True),
            ReportColumn(
                "interval", [format_interval(each.estimate.interval, 2) for each in shown], right=True, rank=1
            ),
        ]
    )
    title = f"{shown[0].estimate.metric} of {row.system} by depth and branch"
    parts: list[Any] = [Paragraph(""), heading(title), Paragraph(""), table]
    if len(shown) < len(defined):
        parts.append(
            Paragraph(f"{format_count(len(defined) - len(shown))} smaller branches are left out; -v shows them.")
        )
    if any(each.few for each in shown):
        parts.append(Paragraph("* few nodes: such a figure says little."))
    return parts


def _largest(slices: Sequence[Slice]) -> list[Slice]:
    """All depths, and the branches with the most nodes in their own order."""
    branches = sorted((each for each in slices if each.name == "branch"), key=lambda each: -each.estimate.n)
    kept = {each.value for each in branches[:MOST_SLICES]}
    return [each for each in slices if each.name != "branch" or each.value in kept]


def _value(part: Slice, names: Mapping[str, str]) -> str:
    return names.get(part.value, part.value) if part.name == "branch" else part.value


def summary_line(row: EmbeddingScores) -> str:
    """The figures of one embedding in a sentence."""
    parts = [
        f"{name} {format_value(each.value)} {format_interval(each.interval, 3)}"
        for name, each in (
            (row.mean_rank.metric, row.mean_rank),
            ("MAP", row.map),
            ("Spearman", row.spearman),
        )
    ]
    return f"{'; '.join(parts)}."


def chance_note(row: EmbeddingScores) -> str:
    """What an embedding that knows nothing would score."""
    luck = format_value(row.mean_rank.chance, 1), format_value(row.map.chance, 3)
    return f"By chance {row.mean_rank.metric} would be {luck[0]} and MAP {luck[1]}."


# Figures of embedded trees in the source's layout: a column a dimension, a row a figure.

WIDTH = 100
NAMES = 26
CELL = 9
DASHES = "-" * WIDTH
LAYOUT_METRICS: tuple[tuple[str, str, float], ...] = (
    ("mean_rank", "Mean Rank (MR)", 1.0),
    ("median_rank", "Median Rank", 1.0),
    ("map", "MAP (%)", 100.0),
    ("spearman", "Spearman ρ (%)", 100.0),
)
"""The rows: the column of the frame, the name in print, and what it is multiplied with in print."""
BASELINE_NOTE = "evaluate_tree(tester.tree, ...) puts a tuned euclidean embedding and a random one beside."
BEST_PER_ROW = (
    ("mean_rank", "Best Mean Rank", 1.0, "", min),
    ("map", "Best MAP", 100.0, "%", max),
    ("spearman", "Best Spearman ρ", 100.0, "%", max),
)


def chart_of_accounts_table(dims: Sequence[int], figures: Mapping[str, Sequence[float]], title: str) -> str:
    """The table as text. ``figures`` are ranks and fractions, one a dimension, by the names of the frame.

    >>> print(chart_of_accounts_table([2, 5], {"mean_rank": [4, 2], "map": [0.5, 0.75]}, "Accounts").splitlines()[9])
    Mean Rank (MR)            |     4.00     2.00
    """
    lines = ["=" * WIDTH, title.center(WIDTH).rstrip(), "=" * WIDTH, ""]
    lines += ["By embedding dimension, as Nickel & Kiela (2018) report it:", DASHES, ""]
    lines += [_line("Metric", [str(dim) for dim in dims]), DASHES]
    lines += [
        _line(name, [format_value(scale * float(value), 2) for value in figures[column]])
        for column, name, scale in LAYOUT_METRICS
        if column in figures
    ]
    return "\n".join([*lines, DASHES, "", "Summary:", *_summary(dims, figures)]) + "\n"


def _line(name: str, cells: Sequence[str]) -> str:
    return f"{name:<{NAMES}}|" + "".join(f"{cell:>{CELL}}" for cell in cells)


def _summary(dims: Sequence[int], figures: Mapping[str, Sequence[float]]) -> list[str]:
    lines = []
    for column, name, scale, sign, choose in BEST_PER_ROW:
        known = [(float(value), dim) for value, dim in zip(figures.get(column, ()), dims, strict=False)]
        known = [each for each in known if not isnan(each[0])]
        if not known:
            lines.append(f"  {name}: n/a")
            continue
        value, dim = choose(known, key=lambda each: each[0])
        lines.append(f"  {name}: {format_value(scale * value, 2)}{sign} at dimension {dim}")
    return lines


def chart_of_accounts_summary(row: EmbeddingScores, *, nodes: int, single: bool) -> str:
    """One embedding in plain lines: every figure of the source, with its interval."""
    level = format_percent(row.map.interval.confidence_level)
    lines = [
        "=" * WIDTH,
        f"{row.system}: {nodes} nodes, {row.geometry}, {row.dim} dimensions",
        "=" * WIDTH,
        f"{'':<{NAMES}}|{'estimate':>12}   {level} interval",
        DASHES,
    ]
    for name, title, scale in LAYOUT_METRICS:
        estimate = getattr(row, name)
        reach = estimate.interval
        if reach.known:
            reach = type(reach)(scale * reach.low, scale * reach.high, reach.confidence_level, reach.method)
        lines.append(f"{title:<{NAMES}}|{format_value(scale * estimate.value, 2):>12}   {format_interval(reach, 2)}")
    lines.append(DASHES)
    described = [("Norm", row.norms), ("Parent-child distance", row.parent_distances)]
    if row.radii != row.norms:
        described.insert(1, ("Distance from the origin", row.radii))
    for title, pair in described:
        lines.append(f"{title:<{NAMES}}|{format_value(pair[0], 3):>12}   standard deviation {format_value(pair[1], 3)}")
    by_luck = format_value(row.mean_rank.chance, 1), format_value(100 * row.map.chance, 2)
    chance = f"By chance MR would be {by_luck[0]} and MAP {by_luck[1]} %."
    return "\n".join([*lines, DASHES, chance, BASELINE_NOTE, *([SINGLE] if single else [])]) + "\n"
