"""The parts of ``RunsView``: formatted texts and numbers for charts. Renderers read them and compute nothing.

Texts are rounded and final. Numbers are for charts and sorting; ``None`` is an undefined number, and the text
of the same value gives the reason. Systems have one order everywhere: that of ``RunsView.systems``, best first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from equipoise.stats.formatting import metric_heading, with_unit

Number = float | None


@dataclass(frozen=True, slots=True)
class SystemInfo:
    """One system: its name, a letter as its short label, and a warning if its run is incomplete."""

    name: str
    letter: str
    caution: str = ""


@dataclass(frozen=True, slots=True)
class Value:
    """A number with its interval, as numbers and as text."""

    number: Number
    low: Number
    high: Number
    text: str
    interval_text: str


@dataclass(frozen=True, slots=True)
class AxisScale:
    """An axis that several values share: its ends and the positions and labels of its ticks."""

    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]


@dataclass(frozen=True, slots=True)
class LeaderboardRow:
    """One system on one metric. ``difference``, ``p`` and ``counts`` compare it with the best system.

    They are empty for the best system itself. ``tie_groups`` are letters: systems that share one do not differ
    significantly; a system whose differences were not tested has none. ``counts`` is win/tie/loss.
    """

    system: str
    score: Value
    n: str
    undefined: str
    chance: Number
    chance_text: str
    tie_groups: tuple[str, ...] = ()
    rank: str = ""
    difference: str = ""
    p: str = ""
    counts: str = ""


@dataclass(frozen=True, slots=True)
class Leaderboard:
    """All systems on one metric, best first on the primary one. ``better`` is ``up`` or ``down``.

    ``adjusted`` says whether the p values are adjusted for several pairs.
    """

    metric: str
    better: str
    unit: str
    confidence_level: str
    scale: AxisScale
    rows: tuple[LeaderboardRow, ...]
    caption: str
    system: str = "system"
    untested: str = ""
    """Why no pair of systems was tested on this metric; empty if a pair was, and for a single system."""
    adjusted: bool = True

    @property
    def heading(self) -> str:
        """The metric with its unit, as a heading."""
        return with_unit(metric_heading(self.metric), self.unit)


@dataclass(frozen=True, slots=True)
class PairDifference:
    """System ``a`` minus system ``b`` on one metric; ``winner`` is empty if the difference is not significant."""

    metric: str
    a: str
    b: str
    difference: Value
    p: str
    p_adjusted: str
    winner: str
    n: str
    wins: int | None = None
    ties: int | None = None
    losses: int | None = None
    detectable: str = ""
    n_needed: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class WinCell:
    """Win/tie/loss of the row's system against the column's; ``win_fraction`` is the fraction of units won."""

    text: str
    win_fraction: Number
    significant: bool


@dataclass(frozen=True, slots=True)
class PairwiseTable:
    """Every pair on the primary metric: differences for a forest plot, and wins as a matrix.

    ``matrix`` has one row and one column per system, and None on the diagonal. ``others`` are the pairs on
    the other metrics. ``adjusted`` says whether ``p_adjusted`` is adjusted for several pairs.
    """

    metric: str
    better: str
    scale: AxisScale
    rows: tuple[PairDifference, ...]
    matrix: tuple[tuple[WinCell | None, ...], ...]
    others: tuple[PairDifference, ...]
    caption: str
    units: str = "units"
    system: str = "system"
    adjusted: bool = True


@dataclass(frozen=True, slots=True)
class HeatCell:
    """A number in a heatmap table; ``shade`` is 0 (worst) to 1 (best), ``small_sample`` makes it grey."""

    text: str
    value: Number
    shade: Number
    note: str = ""
    small_sample: bool = False
    marks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SliceRow:
    """One value of one slice, with one cell per system."""

    name: str
    value: str
    n: int
    small_sample: bool
    cells: tuple[HeatCell, ...]


@dataclass(frozen=True, slots=True)
class SliceTable:
    """The primary metric on subsets of the units."""

    metric: str
    better: str
    rows: tuple[SliceRow, ...]
    caption: str
    units: str = "units"


@dataclass(frozen=True, slots=True)
class UnitExplorer:
    """The units one by one, as the script of the page reads them. Items and texts are stored once and named by index.

    ``columns`` have the values of a metric, one row per system; ``slices`` the values of a slice and the index of the
    value of each unit (-1 for none). ``details`` has one entry per unit, None if the run has no details of it: the
    index of its text, those of the relevant texts, and for each system the indices of the retrieved items, their
    scores and the ranks (from 0) of the relevant ones. ``items`` are ids with the indices of text and source.
    ``unit_note`` is shown with each unit: what the values and lists of tuned systems are.
    """

    units: list[str]
    columns: list[dict[str, Any]]
    slices: list[dict[str, Any]]
    details: list[list[Any] | None]
    items: list[tuple[str, int, int]]
    texts: list[str]
    total: int
    note: str = ""
    unit_note: str = ""


@dataclass(frozen=True, slots=True)
class BinCounts:
    """The number of units of one system in each bin."""

    name: str
    counts: tuple[int, ...]
    undefined: int = 0


@dataclass(frozen=True, slots=True)
class ValueDistribution:
    """Histograms of one metric, one per system. ``labels`` name the bins between the ``edges``.

    ``bins_heading`` is the heading of the bins in a table. ``n_equal`` is the number of units on which two systems are
    equal, for a histogram of their differences.
    """

    title: str
    metric: str
    edges: tuple[float, ...]
    labels: tuple[str, ...]
    series: tuple[BinCounts, ...]
    caption: str
    units: str = "units"
    bins_heading: str = ""
    n_equal: int | None = None


@dataclass(frozen=True, slots=True)
class TrialPoint:
    """One point of the grid; ``chosen`` is the number of folds that selected it."""

    label: str
    params: tuple[tuple[str, str], ...]
    value: float
    text: str
    cost: Number
    cost_text: str
    chosen: int = 0
    best: bool = False
    baseline: bool = False
    frontier: bool = False
    within_budget: bool = False


@dataclass(frozen=True, slots=True)
class TuningGrid:
    """The trials as a heatmap: ``column_title`` is the parameter of the columns."""

    row_title: str
    column_title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[HeatCell | None, ...]], ...]


@dataclass(frozen=True, slots=True)
class FoldScore:
    """The point selected on the other folds, its score there (inner) and on this fold (outer)."""

    name: str
    chosen: str
    inner: float
    outer: float
    inner_text: str
    outer_text: str
    n: str


@dataclass(frozen=True, slots=True)
class TuningView:
    """The tuning of one system; ``summary`` has the nested and the optimistic score, and their gap.

    ``metric`` is the metric of every grid point, ``scale`` the axis that all folds share.
    """

    system: str
    metric: str
    summary: tuple[tuple[str, str], ...]
    trials: tuple[TrialPoint, ...]
    grid: TuningGrid
    folds: tuple[FoldScore, ...]
    scale: AxisScale
    frontier: tuple[TrialPoint, ...]
    cost_unit: str
    budget: Number
    caption: str
    units: str = "units"


@dataclass(frozen=True, slots=True)
class Point:
    """A point of a projection. ``size`` is any number that sets the mark size, for example the depth in a tree."""

    x: float
    y: float
    label: str
    group: str = ""
    size: Number = None


@dataclass(frozen=True, slots=True)
class Projection:
    """Points in the plane (``kind`` "plane") or in the unit disk ("disk"); ``links`` are pairs of indices."""

    title: str
    kind: str
    points: tuple[Point, ...]
    links: tuple[tuple[int, int], ...] = ()
    caption: str = ""


@dataclass(frozen=True, slots=True)
class ProtocolEntry:
    """One parameter, setting or fingerprint with one text per system; ``differs`` marks relevant differences."""

    name: str
    texts: tuple[str, ...]
    differs: bool


@dataclass(frozen=True, slots=True)
class ProtocolGroup:
    """Entries of one kind. ``folded`` groups give the provenance of scores, not their meaning."""

    title: str
    entries: tuple[ProtocolEntry, ...]
    folded: bool = False


@dataclass(frozen=True, slots=True)
class ProtocolSection:
    """How the scores were computed: ``notes`` on the method, then settings per system."""

    notes: tuple[str, ...]
    groups: tuple[ProtocolGroup, ...]


@dataclass(frozen=True, slots=True)
class Download:
    """An exported text: LaTeX, CSV, JSON, a model card, citations."""

    name: str
    title: str
    filename: str
    media: str
    text: str
