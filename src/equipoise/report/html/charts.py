"""Embed charts in an HTML page: the SVG of the chart files, and a small script for tooltips and zoom.

The engine that draws these specifications in a browser (Vega, Vega-Lite and their embedding) can be bundled
without a network and runs without ``eval`` (its interpreter, ``ast: true``). But the bundle takes 0.9 MB, not
quite half of what a whole page may have, it draws nothing before the script ran, and it adds style elements
of its own, which a strict content-security policy forbids. The drawings of a page with four systems and all
charts take 0.12 MB, work in print and without scripts, and switch to the dark theme by a style sheet alone. So the page
embeds SVG: each mark has a ``data-tooltip``, and ``charts.js`` (4 kB) shows it on hover, with the arrow keys and
to screen readers, and zooms projections.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import TYPE_CHECKING, TypedDict
from xml.etree import ElementTree

from equipoise.errors import MissingExtraError
from equipoise.report.charts import report_charts
from equipoise.report.charts.chart import DARK, FONT, LIGHT, SVG, svg_tree, widened, xml_safe

if TYPE_CHECKING:
    from equipoise.report.charts.chart import Chart
    from equipoise.report.view import RunsView

_REMOVED = ("role", "aria-roledescription", "aria-hidden", "class", "pointer-events", "font-family")
_DEFAULTS = {"opacity": "1", "transform": "translate(0,0)", "font-weight": "normal"}
_SVG = f"{{{SVG}}}"
_STYLE = """\
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
    """A chart for a page: ``svg`` is safe markup, the other texts must be escaped."""

    name: str
    title: str
    subtitle: str
    description: str
    svg: str


SCALE = 1.2
"""Pixels of the page per pixel of a chart, the same for all charts, so that all their texts have one size."""
FULL_WIDTH, HALF_WIDTH = 1000, 488
"""The width of a card of the page, and that of two charts side by side in it, in pixels of a chart."""
MARGIN = 24
"""Room at both sides for texts in a font that is wider than the one the chart was laid out with."""


def embed_chart(chart: Chart) -> EmbeddedChart:
    """The chart as SVG markup. All its marks are children of one image; titles are texts of the page, which wrap."""
    heading = chart.spec.get("title", {})
    chart = _fitted(replace(chart, spec={key: part for key, part in chart.spec.items() if key != "title"}))
    root = svg_tree(chart)
    _remove_background(root)
    for element in root.iter():
        label = element.attrib.pop("aria-label", "")
        if label:
            element.set("data-tooltip", label)
        for attribute in _REMOVED:
            element.attrib.pop(attribute, None)
        for attribute, default in _DEFAULTS.items():
            if element.get(attribute) == default:
                del element.attrib[attribute]
    root.set("font-family", FONT)
    root.set("role", "img")
    title, description = xml_safe(chart.title), xml_safe(chart.description)
    root.set("aria-label", f"{title}. {description}")
    root.set("tabindex", "0")
    root.set("data-chart", chart.name)
    if chart.zoom:
        root.set("data-zoom", "")
    width, height = (float(root.attrib.pop(side)) for side in ("width", "height"))
    width += 2 * MARGIN
    root.set("viewBox", f"-{MARGIN} 0 {width:g} {height:g}")
    root.set("width", f"{SCALE * width:g}")
    svg = ElementTree.tostring(root, encoding="unicode")
    subtitle = xml_safe(str(heading.get("subtitle", "")))
    return {"name": chart.name, "title": title, "subtitle": subtitle, "description": description, "svg": svg}


def _fitted(chart: Chart) -> Chart:
    """A fluid chart at half the width of a card, or at its full width if half is too narrow for it."""
    if not chart.fluid:
        return chart
    width = float(svg_tree(chart).get("width", "0")) + 2 * MARGIN
    extra = next((target - width for target in (HALF_WIDTH, FULL_WIDTH) if target >= width), 0.0)
    return widened(chart, extra)


def chart_script() -> str:
    """The script for all charts of a page, to be included once, after them."""
    return (files("equipoise.report.html") / "charts.js").read_text(encoding="utf-8")


def chart_style() -> str:
    """The style sheet for all charts of a page.

    Every colour is a custom property such as ``--chart-ink``. The theme follows ``prefers-color-scheme``,
    unless ``data-theme`` of the root element is ``light`` or ``dark``; print is always light.
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
        f"{paints}{_STYLE}"
    )


def _properties(palette: dict[str, str]) -> str:
    return ";".join(f"--chart-{_property(name)}:{colour}" for name, colour in palette.items())


def _property(name: str) -> str:
    return name.replace("_", "-")


def _remove_background(root: ElementTree.Element) -> None:
    """Remove the background, which the page provides, and hidden elements."""
    for parent in list(root.iter()):
        for child in list(parent):
            background = parent is root and child.tag == f"{_SVG}rect"
            hidden = child.get("display") == "none" or child.get("class") == "background"
            if background or hidden:
                parent.remove(child)


_SECTIONS = (
    ("leaderboard", "leaderboard"),
    ("cost", "costs"),
    ("differences", "pairwise"),
    ("wins", "pairwise"),
    ("slices", "slices"),
    ("distribution", "distributions"),
    ("tuning", "tuning"),
    ("frontier", "frontiers"),
)
"""Chart name prefix and section id; the first match applies."""


@dataclass(frozen=True)
class PageCharts:
    """The charts of each section, and a note if they could not be rendered."""

    by_section: Mapping[str, tuple[EmbeddedChart, ...]]
    note: str = ""


def page_charts(report: RunsView) -> PageCharts:
    """Every chart of the report; none if the converter is not installed."""
    charts = report_charts(report)
    # The charts of the experiment's sections are the last ones, and each is shown in its own section.
    sections = [f"details-{number}" for number, section in enumerate(report.sections) for _ in section.charts]
    kinds = [section_of(chart.name) for chart in charts[: len(charts) - len(sections)]]
    return embed_charts(zip([*kinds, *sections], charts, strict=True))


def embed_charts(placed: Iterable[tuple[str, Chart]]) -> PageCharts:
    """Charts with the ids of their sections; none if the converter is not installed."""
    by_section: dict[str, list[EmbeddedChart]] = {}
    for section, chart in placed:
        try:
            by_section.setdefault(section, []).append(embed_chart(chart))
        except MissingExtraError as error:
            return PageCharts({}, f"The charts are missing: {error.message}. To add them: {error.hint}")
    return PageCharts({section: tuple(charts) for section, charts in by_section.items()})


def section_of(name: str) -> str:
    """The section of a chart; an unknown kind is put with the distributions.

    >>> section_of("tuning-grid-bm25"), section_of("frontier")
    ('tuning', 'frontiers')
    """
    return next((section for prefix, section in _SECTIONS if name.startswith(prefix)), "distributions")
