"""Charts inside a page: the drawing that the files have, and a small script that lets its marks speak.

The engine that draws these specifications in a browser (Vega, Vega-Lite and their embedding) can be bundled
without a network and runs without ``eval`` (its interpreter, ``ast: true``). But the bundle takes 0.9 MB, not
quite half of what a whole page may have, it draws nothing before the script ran, and it adds style elements
of its own, which a strict content-security policy forbids. The drawings of a page with four systems and all
charts take 0.12 MB, stand in print and without scripts, and change to dark ground by a style sheet alone. So
the page gets the drawings: each mark carries what it says in ``data-says``, and ``layer.js`` (4 kB) shows it
to the pointer, to the arrow keys and to screen readers, and looks closer at maps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, TypedDict
from xml.etree import ElementTree

from equipoise.errors import MissingExtraError
from equipoise.report.charts import report_charts
from equipoise.report.charts.render import SVG, svg_tree, xml_safe
from equipoise.report.charts.theme import DARK, FONT, LIGHT

if TYPE_CHECKING:
    from equipoise.report.charts.chart import Chart
    from equipoise.report.view_model import Page

_FOR_READERS = ("role", "aria-roledescription", "aria-hidden", "class", "pointer-events", "font-family")
_TITLES = ("title", "subtitle")
_NO_NEWS = {"opacity": "1", "transform": "translate(0,0)", "font-weight": "normal"}
_SVG = f"{{{SVG}}}"
_LOOK = """\
svg[data-chart]{max-width:100%;height:auto;overflow:visible;touch-action:manipulation}
svg[data-chart]:focus-visible{outline:2px solid var(--chart-lead);outline-offset:2px}
svg[data-chart] text{pointer-events:none}
svg[data-chart] .chart-on{stroke:var(--chart-ink);stroke-width:2.4px}
.chart-tip{position:fixed;z-index:99;max-width:22rem;padding:.35rem .6rem;border-radius:.3rem;font-size:.8rem;
line-height:1.35;pointer-events:none;overflow-wrap:anywhere;
background:var(--chart-ink);color:var(--chart-paper)}
.chart-tip[hidden]{display:none}
"""


class EmbeddedChart(TypedDict):
    """What a page needs of a chart: ``svg`` is finished markup, the others are texts still to be escaped."""

    name: str
    title: str
    description: str
    svg: str


def embed_chart(chart: Chart) -> EmbeddedChart:
    """The chart as markup to be put into a page as it stands. All its marks are children of one image."""
    root = svg_tree(chart)
    _without_ground(root)
    for element in root.iter():
        says = element.attrib.pop("aria-label", "")
        if says and element.get("aria-roledescription") not in _TITLES:
            element.set("data-says", says)
        for attribute in _FOR_READERS:
            element.attrib.pop(attribute, None)
        for attribute, usual in _NO_NEWS.items():
            if element.get(attribute) == usual:
                del element.attrib[attribute]
    root.set("font-family", FONT)
    root.set("role", "img")
    title, description = xml_safe(chart.title), xml_safe(chart.description)
    root.set("aria-label", f"{title}. {description}")
    root.set("tabindex", "0")
    root.set("data-chart", chart.name)
    if chart.zoom:
        root.set("data-zoom", "")
    svg = ElementTree.tostring(root, encoding="unicode")
    return {"name": chart.name, "title": title, "description": description, "svg": svg}


def chart_script() -> str:
    """The script for all charts of a page, to be put in once, after them."""
    return (files("equipoise.report.charts") / "layer.js").read_text(encoding="utf-8")


def chart_style() -> str:
    """The style sheet for all charts of a page.

    Every colour is a custom property such as ``--chart-ink``. Dark ground is what the reader's system asks
    for, unless ``data-theme`` of the root element is ``light`` or ``dark``; print is always light.
    """
    light, dark = _properties(LIGHT), _properties(DARK)
    paints = "".join(
        f'svg[data-chart] [{paint}="{colour}"]{{{paint}:var(--chart-{_property(name)})}}\n'
        for name, colour in LIGHT.items()
        for paint in ("fill", "stroke")
    )
    return (
        f":root{{{light}}}\n"
        f'@media (prefers-color-scheme:dark){{:root:not([data-theme="light"]){{{dark}}}}}\n'
        f':root[data-theme="dark"]{{{dark}}}\n'
        f"@media print{{:root:root:root{{{light}}}}}\n"
        f"{paints}{_LOOK}"
    )


def _properties(palette: dict[str, str]) -> str:
    return ";".join(f"--chart-{_property(name)}:{colour}" for name, colour in palette.items())


def _property(name: str) -> str:
    return name.replace("_", "-")


def _without_ground(root: ElementTree.Element) -> None:
    """Remove the paper, which the page has, and what is never seen."""
    for parent in list(root.iter()):
        for child in list(parent):
            paper = parent is root and child.tag == f"{_SVG}rect"
            unseen = child.get("display") == "none" or child.get("class") == "background"
            if paper or unseen:
                parent.remove(child)


# The charts of a page as drawings inside it; without the converter the page says what is missing.

_SECTIONS = (
    ("league", "league"),
    ("forest", "pairs"),
    ("wins", "pairs"),
    ("slices", "slices"),
    ("distribution", "distributions"),
    ("tuning", "tuning"),
    ("frontier", "frontiers"),
    ("map", "maps"),
)
"""Where a chart belongs, by how its name begins; the first that fits."""


@dataclass(frozen=True)
class PageCharts:
    """The charts of each section, and a sentence where there could be none."""

    by_section: Mapping[str, tuple[EmbeddedChart, ...]]
    note: str = ""


def page_charts(page: Page) -> PageCharts:
    """Every chart of the page, drawn; none where the converter is not installed."""
    drawn: dict[str, list[EmbeddedChart]] = {}
    for chart in report_charts(page):
        try:
            picture = embed_chart(chart)
        except MissingExtraError as error:
            return PageCharts({}, f"The charts are missing: {error.message}. {error.hint} brings them.")
        drawn.setdefault(section_of(chart.name), []).append(picture)
    return PageCharts({section: tuple(pictures) for section, pictures in drawn.items()})


def section_of(name: str) -> str:
    """Where a chart belongs; one of an unknown kind stands with the distributions.

    >>> section_of("tuning-grid-bm25"), section_of("frontier")
    ('tuning', 'frontiers')
    """
    return next((section for start, section in _SECTIONS if name.startswith(start)), "distributions")
