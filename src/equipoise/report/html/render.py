"""The page as one HTML file: style, script, data and drawings inside it, and nothing fetched."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from itertools import groupby
from typing import TYPE_CHECKING, Any

from equipoise.report.escaping import inert
from equipoise.report.html import charts as interactive
from equipoise.report.html.charts import PageCharts, page_charts
from equipoise.report.tuning import BASELINE, BEST, BUDGET, CHOSEN

if TYPE_CHECKING:
    from equipoise.report.view_model import (
        AxisScale,
        Explorer,
        Grid,
        HeatCell,
        Hit,
        LeagueRow,
        Number,
        Page,
        SliceRow,
        Tuned,
        UnitDetail,
    )

# Rows put together for the page: who stands where, slices of one name, and what is known of tunings.


def group_by_tie(rows: Sequence[LeagueRow]) -> list[tuple[str, list[LeagueRow]]]:
    """Those that lead or are tied for it, those behind them, and those that nothing is known of."""
    leaders = rows[0].bands
    first = [row for row in rows if share_tie_group(leaders, row.bands)]
    behind = [row for row in rows if row.bands and not share_tie_group(leaders, row.bands)]
    named = [
        ("Leads" if len(first) == 1 else "Tied for first", first),
        ("Behind the leader", behind),
        ("Without a value", [row for row in rows if not row.bands]),
    ]
    return [(what, group) for what, group in named if group]


def share_tie_group(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Whether two systems have a letter in common."""
    return bool(set(one) & set(other))


def group_slices(rows: Iterable[SliceRow]) -> list[tuple[str, list[SliceRow]]]:
    """The rows of each slice, in the order in which they stand."""
    return [(name, list(group)) for name, group in groupby(rows, key=lambda row: row.name)]


def setting_names(tuned: Iterable[Tuned]) -> list[str]:
    """What is said of at least one tuning, each once."""
    return list(dict.fromkeys(name for each in tuned for name, _ in each.facts))


# The units as JSON inside the page: columns instead of rows, so that it stays small.

# In JSON these stand only inside strings. As escapes they cannot end the element, nor open another.
_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
_PLACES = 4


def unit_data_json(page: Page) -> str:
    """Everything that the explorer needs, safe to stand between two script tags.

    >>> safe_json({"text": "</script><b>"})
    '{"text":"\\\\u003c/script\\\\u003e\\\\u003cb\\\\u003e"}'
    """
    return "" if page.explorer is None else safe_json(_content(page, page.explorer))


def safe_json(value: Any) -> str:
    """JSON that a parser of HTML reads as nothing but text."""
    text = json.dumps(_inert(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character, escape in _ESCAPES.items():
        text = text.replace(character, escape)
    return text


def _inert(value: Any) -> Any:
    """The same value with every text made safe to show."""
    if isinstance(value, str):
        return inert(value)
    if isinstance(value, list | tuple):
        return [_inert(each) for each in value]
    return {key: _inert(each) for key, each in value.items()} if isinstance(value, dict) else value


def _content(page: Page, explorer: Explorer) -> dict[str, Any]:
    return {
        "systems": [{"name": each.name, "letter": each.letter} for each in page.systems],
        "columns": [
            {
                "metric": each.metric,
                "better": each.better,
                "values": [[_rounded(value) for value in row] for row in each.values],
            }
            for each in explorer.columns
        ],
        "units": explorer.units,
        "slices": [{"name": each.name, "values": each.values, "of": each.of_unit} for each in explorer.slices],
        "texts": explorer.texts,
        "items": [[each.id, each.text, each.where] for each in explorer.items],
        "details": [None if each is None else _detail(each) for each in explorer.details],
        "total": explorer.total,
    }


def _detail(detail: UnitDetail) -> list[Any]:
    return [detail.text, detail.expected, [_hits(hits) for hits in detail.retrieved]]


def _hits(hits: tuple[Hit, ...]) -> list[Any]:
    """Places of the items, their scores, and the ranks (from 0) of the right ones."""
    right = [rank for rank, hit in enumerate(hits) if hit.relevant]
    return [[hit.item for hit in hits], [_rounded(hit.score) for hit in hits], right]


def _rounded(value: Number) -> Number:
    if value is None:
        return None
    short = round(value, _PLACES)
    return int(short) if short == int(short) else short


# Where else a page can lead: only a server has other pages, so a page on its own has none of these.

Link = tuple[str, str]
"""What it is called, and its address."""


@dataclass(frozen=True, slots=True)
class PageLinks:
    """The way back, the same page ordered by other metrics, and files to take away."""

    home: str
    orders: tuple[Link, ...] = ()
    files: tuple[Link, ...] = ()


# The small drawings inside tables: where things lie, in pixels; how they look is for the style sheet.

WIDTH = 200
HEIGHT = 22
MARGIN = 8
HEAT_STEPS = 7
SIGNS = {BEST: "★", BASELINE: "○", BUDGET: "◎", CHOSEN: "✓"}
"""What a cell of a grid has room for."""


@dataclass(frozen=True, slots=True)
class PixelScale:
    """Places on a scale that is drawn ``WIDTH`` pixels wide."""

    scale: AxisScale
    width: int = WIDTH
    height: int = HEIGHT

    def x(self, value: Number) -> str:
        """Where a number lies, to a tenth of a pixel; numbers outside stay at the edge.

        >>> from equipoise.report.view_model import AxisScale
        >>> PixelScale(AxisScale(0.0, 1.0, ())).x(0.5)
        '100'
        """
        low, high = self.scale.low, self.scale.high
        share = 0.0 if value is None or high <= low else (value - low) / (high - low)
        return f"{MARGIN + min(max(share, 0.0), 1.0) * (self.width - 2 * MARGIN):.1f}".removesuffix(".0")

    @property
    def middle(self) -> str:
        """Half of the height."""
        return f"{self.height / 2:g}"

    @property
    def labels(self) -> tuple[tuple[str, str], ...]:
        """Places and texts of the first tick, of 0 or the middle one, and of the last: more do not fit."""
        ticks = self.scale.ticks
        if not ticks:
            return ()
        inner = [at for at, (value, _) in enumerate(ticks) if value == 0] or [len(ticks) // 2]
        chosen = [0, inner[0], len(ticks) - 1] if self._has_room(ticks[inner[0]][0]) else [0, len(ticks) - 1]
        return tuple((self.x(ticks[at][0]), ticks[at][1]) for at in dict.fromkeys(chosen))

    def _has_room(self, value: float) -> bool:
        """Whether a label can stand here without touching those at the ends."""
        return 6 * MARGIN <= float(self.x(value)) <= self.width - 6 * MARGIN


def heat_class(shade: Number) -> str:
    """The class of a cell with this shade; none where there is nothing to shade.

    >>> heat_class(0.0), heat_class(1.0), heat_class(None)
    ('heat0', 'heat6', 'plain')
    """
    return "plain" if shade is None else f"heat{min(int(shade * HEAT_STEPS), HEAT_STEPS - 1)}"


def grid_symbol(mark: str) -> str:
    """A mark of a grid in one or two characters.

    >>> grid_symbol("best"), grid_symbol("chosen by 4")
    ('★', '✓4')
    """
    return SIGNS.get(mark) or SIGNS[CHOSEN] + mark.removeprefix(f"{CHOSEN} by ")


def is_selected(cell: HeatCell) -> bool:
    """Whether a fold chose this point."""
    return any(mark.startswith(CHOSEN) for mark in cell.marks)


def grid_legend(grid: Grid) -> list[tuple[str, str]]:
    """The signs that this grid has, and what they mean."""
    cells = [cell for _, row in grid.rows for cell in row if cell is not None]
    seen = {mark for cell in cells for mark in cell.marks}
    known = [(SIGNS[mark], mark) for mark in (BEST, BASELINE, BUDGET) if mark in seen]
    return [*known, (SIGNS[CHOSEN], "chosen by so many folds")] if any(map(is_selected, cells)) else known


# What a template does with every value before it escapes it.


def shown_value(value: Any) -> Any:
    """A text without control characters; markup and whatever is no text stay as they are."""
    return inert(value) if isinstance(value, str) and not hasattr(value, "__html__") else value


PACKAGE = "equipoise.report.html"
TEMPLATES = "templates"
MARKS = {"issue": "!", "tip": "+", "note": "–"}
LARGE = 6
"""With more pairs than this only those with the leader stand there unfolded."""
SCRIPTS = ("page.js", "tables.js", "take.js", "units.js")


def render_html(page: Page, *, charts: bool = True, links: PageLinks | None = None) -> str:
    """The page as text; the same page gives the same bytes.

    ``charts=False`` leaves the charts out; ``links`` lead to other pages where a server has some.
    """
    pictures = page_charts(page) if charts else PageCharts({})
    style = interactive.chart_style() + _asset("style.css")
    script = _script()
    text: str = (
        _environment()
        .get_template("page.html")
        .render(
            page=page,
            letters={each.name: each.letter for each in page.systems},
            places={each.name: place for place, each in enumerate(page.systems)},
            pictures=pictures,
            links=links,
            sections=_sections(page),
            policy=content_security_policy(style, script),
            style=style,
            script=script,
            data=unit_data_json(page),
        )
    )
    return text


def _sections(page: Page) -> list[tuple[str, str]]:
    """The ids and headings of what this page has, in order."""
    named: list[tuple[str, str, object]] = [
        # What is wrong comes before what is claimed.
        ("findings", "Findings", page.findings),
        ("verdict", "Verdict", True),
        ("league", "League table" if page.pairs else "Scores", page.leagues),
        ("pairs", "Paired differences", page.pairs),
        ("slices", "Slices", page.slices),
        ("units", "Unit by unit", page.explorer),
        ("distributions", "Distributions", page.distributions),
        ("tuning", "Tuning", page.tuned),
        ("maps", "Map", page.maps),
        ("findings", "Findings", not page.findings),
        ("protocol", "Protocol and provenance", True),
        ("take", "Take it with you", page.downloads or page.notes),
    ]
    return [(name, heading) for name, heading, present in named if present]


def content_security_policy(style: str, script: str) -> str:
    """What the browser may do: these very styles and scripts, drawings inside the page, and nothing else."""
    return (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@lru_cache(maxsize=1)
def _environment() -> Any:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(PACKAGE, TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=shown_value,
    )
    environment.globals.update(MARKS=MARKS, LARGE=LARGE, Ruler=PixelScale)
    for function in (
        heat_class,
        grid_symbol,
        grid_legend,
        is_selected,
        share_tie_group,
        group_by_tie,
        group_slices,
        setting_names,
    ):
        environment.globals[function.__name__] = function
    return environment


@lru_cache(maxsize=1)
def _script() -> str:
    """All scripts as one, which keeps its names to itself."""
    own = "\n".join(_asset(name) for name in SCRIPTS)
    return f'(() => {{\n"use strict";\n{own}}})();\n{interactive.chart_script()}'


@lru_cache(maxsize=8)
def _asset(name: str) -> str:
    return (files(PACKAGE) / name).read_text(encoding="utf-8")
