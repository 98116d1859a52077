"""The view model of a report: finished strings, and numbers to draw with. Nothing here computes.

``text`` fields are for reading and already rounded; number fields are for drawing. ``None`` is a number that
does not exist, and the text beside it says why. Systems stand in one order everywhere: that of
``Page.systems``, best first. What a page has nothing to say about is None or empty.
"""

from __future__ import annotations

from dataclasses import dataclass

Number = float | None


@dataclass(frozen=True, slots=True)
class SystemInfo:
    """One system: its name, a letter that stands for it where there is no room, and how it is doing.

    ``caution`` says that its run is not complete.
    """

    name: str
    letter: str
    caution: str = ""


@dataclass(frozen=True, slots=True)
class Value:
    """A number with the interval around it, to draw and to read."""

    value: Number
    low: Number
    high: Number
    text: str
    span: str


@dataclass(frozen=True, slots=True)
class AxisScale:
    """The axis that figures of one kind share, with the places of its ticks and their labels."""

    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]


@dataclass(frozen=True, slots=True)
class LeagueRow:
    """One system on one metric. ``difference``, ``p`` and ``counts`` are against the leader, empty for it.

    ``bands`` are the letters of the tie bands on this metric, ``counts`` win/tie/loss; ``rank`` is known on
    the primary metric only.
    """

    system: str
    figure: Value
    n: str
    undefined: str
    chance: Number
    chance_text: str
    bands: tuple[str, ...] = ()
    rank: str = ""
    difference: str = ""
    difference_span: str = ""
    p: str = ""
    counts: str = ""


@dataclass(frozen=True, slots=True)
class League:
    """All systems on one metric, best first on the primary one. ``better`` is ``up`` or ``down``."""

    metric: str
    better: str
    unit: str
    level: str
    scale: AxisScale
    rows: tuple[LeagueRow, ...]
    caption: str


@dataclass(frozen=True, slots=True)
class ReportTable:
    """One kind of cost, a value a system in the order of the page: ``dims``, ``seconds``, ..."""

    name: str
    head: str
    values: tuple[Number, ...]
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Pair:
    """System ``a`` minus system ``b`` on one metric; ``winner`` is empty where the data cannot tell."""

    metric: str
    a: str
    b: str
    figure: Value
    p: str
    adjusted: str
    winner: str
    n: str
    wins: int | None = None
    ties: int | None = None
    losses: int | None = None
    detectable: str = ""
    needed: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class WinCell:
    """What the system of the row does against that of the column; ``share`` is wins of all units."""

    text: str
    share: Number
    told_apart: bool


@dataclass(frozen=True, slots=True)
class Pairs:
    """Every pair on the primary metric: differences for a forest plot, and wins as a matrix.

    ``matrix`` has a row and a column a system, None on the diagonal. ``others`` are the pairs on the
    other metrics.
    """

    metric: str
    better: str
    scale: AxisScale
    rows: tuple[Pair, ...]
    matrix: tuple[tuple[WinCell | None, ...], ...]
    others: tuple[Pair, ...]
    caption: str


@dataclass(frozen=True, slots=True)
class HeatCell:
    """A number in a heat table; ``shade`` is 0 (worst seen) to 1 (best seen), ``few`` greys it."""

    text: str
    value: Number
    shade: Number
    note: str = ""
    few: bool = False
    marks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SliceRow:
    """One value of one slice, a cell a system."""

    name: str
    value: str
    n: int
    few: bool
    cells: tuple[HeatCell, ...]


@dataclass(frozen=True, slots=True)
class Slices:
    """The primary metric on parts of the units."""

    metric: str
    better: str
    rows: tuple[SliceRow, ...]
    caption: str


@dataclass(frozen=True, slots=True)
class Column:
    """The per-unit values of one metric: a row a system, a value a unit that is kept."""

    metric: str
    better: str
    values: tuple[tuple[Number, ...], ...]


@dataclass(frozen=True, slots=True)
class UnitSlice:
    """A slice of the units that are kept: the values it has, and for each unit which one (-1 for none)."""

    name: str
    values: tuple[str, ...]
    of_unit: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Item:
    """What can be retrieved: its id, and the places of its text and source in ``Explorer.texts``."""

    id: str
    text: int
    where: int


@dataclass(frozen=True, slots=True)
class Hit:
    """One retrieved item, by its place in ``Explorer.items``; is it a right answer to this unit?"""

    item: int
    score: Number
    relevant: bool


@dataclass(frozen=True, slots=True)
class UnitDetail:
    """What one unit is: places of its text and right answers, and what each system retrieved, best first."""

    text: int
    expected: tuple[int, ...]
    retrieved: tuple[tuple[Hit, ...], ...]


@dataclass(frozen=True, slots=True)
class Explorer:
    """The units one by one. Items and texts stand once and are named by their places.

    ``details`` has an entry a unit that is kept, None where nothing more is known of it. ``total`` counts
    all units, and ``note`` says which of them are kept where not all are.
    """

    units: tuple[str, ...]
    columns: tuple[Column, ...]
    slices: tuple[UnitSlice, ...]
    details: tuple[UnitDetail | None, ...]
    items: tuple[Item, ...]
    texts: tuple[str, ...]
    total: int
    note: str = ""


@dataclass(frozen=True, slots=True)
class BinCounts:
    """How many units of one system fall into each bin."""

    name: str
    counts: tuple[int, ...]
    undefined: int = 0


@dataclass(frozen=True, slots=True)
class ValueDistribution:
    """Where the units of every system lie on one metric. ``labels`` name the bins between the ``edges``."""

    title: str
    metric: str
    edges: tuple[float, ...]
    labels: tuple[str, ...]
    series: tuple[BinCounts, ...]
    caption: str


@dataclass(frozen=True, slots=True)
class TrialPoint:
    """One point of the grid; ``chosen`` counts the folds that chose it."""

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
class Grid:
    """The trials as a heat table: ``column_head`` is the parameter that runs across."""

    row_head: str
    column_head: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[HeatCell | None, ...]], ...]


@dataclass(frozen=True, slots=True)
class Fold:
    """What was chosen on the other folds, its value there (inner) and here (outer)."""

    name: str
    chosen: str
    inner: float
    outer: float
    inner_text: str
    outer_text: str
    n: str


@dataclass(frozen=True, slots=True)
class Tuned:
    """How one system was tuned; ``facts`` are the nested and the optimistic score, and their gap.

    ``metric`` is what was measured at every point of the grid, ``scale`` the axis of all folds.
    """

    system: str
    metric: str
    facts: tuple[tuple[str, str], ...]
    trials: tuple[TrialPoint, ...]
    grid: Grid
    folds: tuple[Fold, ...]
    scale: AxisScale
    frontier: tuple[TrialPoint, ...]
    cost_unit: str
    budget: Number
    caption: str


@dataclass(frozen=True, slots=True)
class Point:
    """A point of a map; ``depth`` or another number may size it, ``group`` says what it belongs to."""

    x: float
    y: float
    label: str
    group: str = ""
    size: Number = None


@dataclass(frozen=True, slots=True)
class Projection:
    """Points in the plane (``kind`` "plane") or in the unit disk ("disk"), linked by places in ``points``."""

    title: str
    kind: str
    points: tuple[Point, ...]
    links: tuple[tuple[int, int], ...] = ()
    caption: str = ""


@dataclass(frozen=True, slots=True)
class FindingGroup:
    """Findings of one code: what it means, whom it concerns, the evidence, and what to do."""

    code: str
    severity: str
    title: str
    items: tuple[FindingItem, ...]
    hint: str


@dataclass(frozen=True, slots=True)
class FindingItem:
    """One complaint about one subject."""

    subject: str
    message: str
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Fact:
    """One parameter, setting or fingerprint, a text a system; ``differs`` where being unequal matters."""

    name: str
    texts: tuple[str, ...]
    differs: bool


@dataclass(frozen=True, slots=True)
class FactGroup:
    """Facts of one kind. ``folded`` where they say where figures come from rather than what they mean."""

    title: str
    facts: tuple[Fact, ...]
    folded: bool = False


@dataclass(frozen=True, slots=True)
class Protocol:
    """How the figures came about: ``sentences`` of the method, then facts a system."""

    sentences: tuple[str, ...]
    groups: tuple[FactGroup, ...]


@dataclass(frozen=True, slots=True)
class Download:
    """A text to take away: LaTeX, CSV, JSON, a model card, citations."""

    name: str
    title: str
    filename: str
    media: str
    text: str


@dataclass(frozen=True, slots=True)
class Page:
    """Everything a report says, in the order in which it says it."""

    title: str
    subtitle: str
    systems: tuple[SystemInfo, ...]
    primary: str
    better: str
    cautions: tuple[str, ...]
    verdict: str
    leagues: tuple[League, ...]
    costs: tuple[ReportTable, ...]
    pairs: Pairs | None
    slices: Slices | None
    explorer: Explorer | None
    distributions: tuple[ValueDistribution, ...]
    tuned: tuple[Tuned, ...]
    maps: tuple[Projection, ...]
    findings: tuple[FindingGroup, ...]
    protocol: Protocol
    downloads: tuple[Download, ...] = ()
    notes: tuple[str, ...] = ()
    program: str = ""

    @property
    def league(self) -> League:
        """The table that decides: all systems on the primary metric."""
        return self.leagues[0]
