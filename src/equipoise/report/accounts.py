"""What people see of embedded trees: a row an embedding, who can be told from whom, depths and branches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from equipoise.checks.base import counted
from equipoise.report.findings import findings_part
from equipoise.report.table import Column, FittedTable
from equipoise.report.terminal import Paragraph, heading
from equipoise.stats.comparison import Comparison
from equipoise.stats.numbers import count, figure, percent, shared_decimals, span
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
class AccountsRow:
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
class AccountsEdition:
    """All that the report of one tree shows."""

    source: str
    nodes: int
    edges: int
    roots: int
    levels: int
    relation: str
    filtered: bool
    single: bool
    rows: tuple[AccountsRow, ...]
    comparison: Comparison | None = None
    branches: str = ""
    branch_names: Mapping[str, str] = field(default_factory=dict)
    rates: tuple[float, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def leader(self) -> AccountsRow:
        """The embedding that leads, or the first one."""
        best = None if self.comparison is None else self.comparison.leader
        return next((row for row in self.rows if row.system == best), self.rows[0])


def accounts_report(edition: AccountsEdition, *, verbose: bool = False, quiet: bool = False) -> list[Any]:
    """The table, how to read it, the verdict, the slices of the leader, and the findings."""
    title = (
        f"{edition.source}: {counted(edition.nodes, 'node')}, {counted(edition.edges, 'edge')}, "
        f"{counted(edition.roots, 'root')}, {counted(edition.levels, 'level')}"
    )
    parts: list[Any] = [heading(title), Paragraph(""), FittedTable(accounts_columns(edition))]
    if quiet:
        return parts
    parts += [Paragraph(""), *(Paragraph(text) for text in captions(edition)), *seeds_part(edition)]
    if edition.comparison is not None:
        parts += [Paragraph(""), Paragraph(edition.comparison.verdict("node"))]
    if verbose:
        parts += [*places_part(edition)]
    parts += slices_part(edition.leader, edition.branch_names, verbose=verbose)
    return [*parts, *findings_part(edition.findings, verbose=verbose)]


def accounts_columns(edition: AccountsEdition) -> list[Column]:
    """One row an embedding."""
    rows = edition.rows
    level = percent(rows[0].map.interval.level)
    columns = [
        Column("embedding", [row.system for row in rows], shortens="middle"),
        *_estimated("MR", [row.mean_rank for row in rows], level, rank=3),
        *_estimated("MAP", [row.map for row in rows], level, rank=2),
        Column("Spearman", [figure(row.spearman.value, 2) for row in rows], right=True, rank=1),
        Column("median", [figure(row.median_rank.value, 1) for row in rows], right=True, rank=4, extra=True),
    ]
    if not edition.single:
        macro = [figure(row.macro_mean_rank.value, 2) for row in rows]
        columns.append(Column("MR over nodes", macro, right=True, rank=5, extra=True))
    if edition.comparison is not None:
        bands = edition.comparison.bands
        columns.append(Column("band", ["".join(bands[row.system]) for row in rows]))
    return columns


def _estimated(name: str, estimates: Sequence[Estimate], level: str, rank: int) -> list[Column]:
    """A figure and its interval."""
    places = min(shared_decimals(each.interval for each in estimates), 3)
    return [
        Column(name, [figure(each.value, places) for each in estimates], right=True),
        Column(
            f"{name}, {level}", [span(each.interval, places) for each in estimates], right=True, rank=rank
        ),
    ]


def captions(edition: AccountsEdition) -> list[str]:
    """What was ranked, how ranks are read, what is resampled, and what the baselines are."""
    ranks = (
        "other relatives do not count as rivals (filtered)"
        if edition.filtered
        else "all others are rivals (raw)"
    )
    first = edition.rows[0]
    methods = dict.fromkeys(
        each.interval.method
        for row in edition.rows
        for each in (row.mean_rank, row.map)
        if each.interval.known
    )
    told = [
        f"Each node ranks {RELATIVES[edition.relation]} among all others by distance; {ranks}. MR is the "
        f"mean over edges, lower is better, and {figure(first.mean_rank.chance, 1)} by chance; MAP is the "
        f"mean over nodes, {figure(first.map.chance, 3)} by chance. Spearman: norm against place between "
        "root and leaf.",
        f"Intervals: {', '.join(methods) or 'n/a'}. {edition.branches}",
    ]
    if first.map.undefined:
        alone = counted(first.map.undefined, "node")
        told.append(
            f"Left out: {alone} that {'has' if first.map.undefined == 1 else 'have'} no relative to rank."
        )
    if edition.single:
        told.append(SINGLE)
    if any(row.system.startswith("euclidean") for row in edition.rows) and len(edition.rates) > 1:
        rates = ", ".join(f"{rate:g}" for rate in edition.rates)
        told.append(
            f"Every trained embedding was tried at the learning rates {rates}, and its lowest loss was kept; "
            "euclidean and random stand beside as baselines."
        )
    told += trained_on_others(edition.rows, edition.relation)
    if edition.comparison is not None:
        told.append(f"Embeddings that share a letter cannot be told apart on {edition.comparison.primary}.")
    return told


def trained_on_others(rows: Sequence[AccountsRow], relation: str) -> list[str]:
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


def seeds_part(edition: AccountsEdition) -> list[Any]:
    """Mean and spread over seeds, where there are several."""
    rows = [row for row in edition.rows if row.seeds]
    if not rows:
        return []
    names = [rows[0].mean_rank.metric, rows[0].map.metric]
    table = FittedTable(
        [
            Column("embedding", [row.system for row in rows], shortens="middle"),
            *(Column(name, [row.seeds[name] for row in rows], right=True) for name in names),
        ]
    )
    return [Paragraph(""), heading("Over seeds"), Paragraph(""), table]


def places_part(edition: AccountsEdition) -> list[Any]:
    """Where the points lie, as their space measures: from the origin, and from the parents."""
    rows = edition.rows
    table = FittedTable(
        [
            Column("embedding", [row.system for row in rows], shortens="middle"),
            Column("geometry", [row.geometry for row in rows]),
            Column("distance from the origin", [_spread(row.radii) for row in rows], right=True),
            Column("distance to the parent", [_spread(row.parent_distances) for row in rows], right=True),
        ]
    )
    return [Paragraph(""), heading("Mean ± standard deviation"), Paragraph(""), table]


def _spread(pair: tuple[float, float]) -> str:
    return f"{figure(pair[0], 2)} ± {figure(pair[1], 2)}"


def slices_part(row: AccountsRow, names: Mapping[str, str], *, verbose: bool = False) -> list[Any]:
    """The primary metric at every depth and in every branch."""
    defined = [each for each in row.slices if each.estimate.n]
    shown = defined if verbose else _largest(defined)
    if not shown:
        return []
    table = FittedTable(
        [
            Column("slice", [each.name for each in shown]),
            Column("", [_value(each, names) for each in shown], shortens="end"),
            Column("n", [f"{count(each.estimate.n)}{'*' if each.few else ''}" for each in shown], right=True),
            Column("estimate", [figure(each.estimate.value, 2) for each in shown], right=True),
            Column("interval", [span(each.estimate.interval, 2) for each in shown], right=True, rank=1),
        ]
    )
    title = f"{shown[0].estimate.metric} of {row.system} by depth and branch"
    parts: list[Any] = [Paragraph(""), heading(title), Paragraph(""), table]
    if len(shown) < len(defined):
        parts.append(
            Paragraph(f"{count(len(defined) - len(shown))} smaller branches are left out; -v shows them.")
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


def one_line(row: AccountsRow) -> str:
    """The figures of one embedding in a sentence."""
    parts = [
        f"{name} {figure(each.value)} {span(each.interval, 3)}"
        for name, each in (
            (row.mean_rank.metric, row.mean_rank),
            ("MAP", row.map),
            ("Spearman", row.spearman),
        )
    ]
    return f"{'; '.join(parts)}."


def by_chance(row: AccountsRow) -> str:
    """What an embedding that knows nothing would score."""
    luck = figure(row.mean_rank.chance, 1), figure(row.map.chance, 3)
    return f"By chance {row.mean_rank.metric} would be {luck[0]} and MAP {luck[1]}."
