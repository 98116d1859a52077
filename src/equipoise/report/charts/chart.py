"""A chart: its theme, specification, file name and labels, and rendering as SVG and PNG without a browser or network.

A chart is drawn with the light palette. The dark version replaces each colour of ``LIGHT`` by the colour of the
same name in ``DARK``: ``render_svg`` does it in a file, the style sheet of ``html.charts`` in a page. So every colour
has a name and all light colours differ. No information is in colour alone: shapes, letters, dashes or texts
repeat it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from json import dumps
from math import isnan, nan
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar
from xml.etree import ElementTree

from equipoise.errors import MissingExtraError, StoreError
from equipoise.io.atomic import write_bytes
from equipoise.progress import report_share
from equipoise.report.terminal import ELLIPSIS, shorten
from equipoise.types import packaged_toml, require_extra

if TYPE_CHECKING:
    from equipoise.io.text import PathLike

T = TypeVar("T")
Spec = dict[str, Any]
"""A Vega-Lite specification, or a part of one."""

SCHEMA: Final = "https://vega.github.io/schema/vega-lite/v6.json"
FONT: Final = "sans-serif"
"""The generic family, available in every browser and converter."""
TEXT_SIZE: Final = 13
SMALL_SIZE: Final = 12
TITLE_SIZE: Final = 15

_PALETTES = packaged_toml("equipoise.report.charts", "palettes.toml")
LIGHT: Final[dict[str, str]] = _PALETTES["light"]
DARK: Final[dict[str, str]] = _PALETTES["dark"]
SHAPES: Final = (
    "circle",
    "square",
    "triangle-up",
    "diamond",
    "cross",
    "triangle-down",
    "triangle-right",
    "triangle-left",
)
SYSTEM_COLOURS: Final = 8
HEAT_STEPS: Final = 7
FIRST_DARK_STEP: Final = 5
"""From this heatmap step on, text has the colour ``on_high``."""


def series_style(index: int) -> tuple[str, str]:
    """The colour and the shape of the series with this index; there are 64 distinct pairs."""
    color = LIGHT[f"system{index % SYSTEM_COLOURS}"]
    return color, SHAPES[(index + index // SYSTEM_COLOURS) % len(SHAPES)]


def heat_step(shade: float) -> int:
    """The step of the colour scale of a shade (0 to 1)."""
    return min(max(int(shade * HEAT_STEPS), 0), HEAT_STEPS - 1)


def heat_color(shade: float) -> tuple[str, str]:
    """The colours of a cell with this shade (0 to 1) and of its text.

    There are steps instead of a gradient because each colour needs a dark counterpart.
    """
    step = heat_step(shade)
    return LIGHT[f"heat{step}"], LIGHT["on_high" if step >= FIRST_DARK_STEP else "on_low"]


def theme_config() -> Spec:
    """The Vega-Lite configuration of all charts."""
    text = {"font": FONT, "fontSize": SMALL_SIZE, "fill": LIGHT["ink"]}
    axis = {
        "aria": False,
        "labelFont": FONT,
        "titleFont": FONT,
        "labelFontSize": SMALL_SIZE,
        "titleFontSize": SMALL_SIZE,
        "titleFontWeight": "normal",
        "labelColor": LIGHT["soft"],
        "titleColor": LIGHT["soft"],
        "domainColor": LIGHT["line"],
        "tickColor": LIGHT["line"],
        "gridColor": LIGHT["grid"],
        "tickSize": 4,
        "labelPadding": 4,
        "titlePadding": 8,
    }
    return {
        "background": LIGHT["paper"],
        "padding": 14,
        "font": FONT,
        "view": {"stroke": None},
        "axis": axis,
        "text": {**text, "baseline": "middle", "aria": False},
        "rule": {"aria": False},
        "tick": {"aria": False},
        "title": {
            "anchor": "start",
            "frame": "bounds",
            "font": FONT,
            "fontSize": TITLE_SIZE,
            "fontWeight": "bold",
            "color": LIGHT["ink"],
            "subtitleFont": FONT,
            "subtitleFontSize": SMALL_SIZE,
            "subtitleColor": LIGHT["soft"],
            "subtitlePadding": 5,
            "offset": 16,
        },
    }


MAX_SLUG = 40
MAX_LABEL = 36
_SEPARATOR = re.compile(r"[/_:\s-]")


@dataclass(frozen=True, slots=True)
class Chart:
    """One chart. ``spec`` is Vega-Lite with inline data, ``description`` the text for screen readers.

    A ``fluid`` chart may be widened: what is right of its plot moves, and what is in the plot is stretched.
    """

    name: str
    title: str
    description: str
    spec: Spec
    zoom: bool = False
    fluid: bool = False

    def _repr_mimebundle_(self, **options: Any) -> dict[str, Any]:
        """The chart for notebooks."""
        return {"application/vnd.vegalite.v6+json": self.spec, "text/plain": self.description}


def chart(
    name: str,
    title: str,
    description: str,
    layers: Sequence[Spec],
    *,
    subtitle: str = "",
    fluid: bool = False,
    **top: object,
) -> Chart:
    """A chart of layers in the common theme; ``top`` are the other properties of the specification."""
    heading: Spec = {"text": title}
    if subtitle:
        heading["subtitle"] = subtitle
    spec: Spec = {
        "$schema": SCHEMA,
        "title": heading,
        "description": description,
        **top,
        "layer": list(layers),
        "config": theme_config(),
    }
    return Chart(name, title, description, spec, fluid=fluid)


def widened(chart: Chart, extra: float) -> Chart:
    """A fluid chart whose plot is wider by this many pixels."""
    width = chart.spec["width"]

    def moved(x: float) -> float:
        """The new position of a position in pixels from the left edge of the plot."""
        return x + extra if x >= width else x * (width + extra) / width if x > 0 else x

    def changed(layer: Spec) -> Spec:
        encoding = dict(layer["encoding"])
        for side in ("x", "x2"):
            if "value" in encoding.get(side, {}):
                encoding[side] = {**encoding[side], "value": moved(encoding[side]["value"])}
        x = encoding.get("x", {})
        is_legend = encoding.get("y", {}).get("value", 0) < 0
        if "data" not in layer or is_legend or not (x.get("field") and "scale" in x and x["scale"] is None):
            return {**layer, "encoding": encoding}
        keys = [x["field"], *filter(None, [encoding.get("x2", {}).get("field")])]
        rows = [{**row, **{key: moved(row[key]) for key in keys}} for row in layer["data"]["values"]]
        return {**layer, "encoding": encoding, "data": {"values": rows}}

    spec = {**chart.spec, "width": width + extra, "layer": [changed(layer) for layer in chart.spec["layer"]]}
    return replace(chart, spec=spec)


def with_largest(items: Iterable[T], value: Callable[[T], float]) -> list[T]:
    """The items with the largest value: more than one if they are tied.

    >>> with_largest(["rye", "oats", "corn"], len)
    ['oats', 'corn']
    """
    values = [(value(item), item) for item in items]
    largest = max((number for number, _ in values if not isnan(number)), default=nan)
    return [item for number, item in values if number == largest]


def slug(text: str) -> str:
    """A name that is safe in a file name and in a URL."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:MAX_SLUG].strip("-") or "x"


def unique_names(charts: Sequence[Chart]) -> tuple[Chart, ...]:
    """The charts with unique names: the second of two equal names gets a number."""
    used: set[str] = set()
    renamed = []
    for item in charts:
        name, number = item.name, 1
        while name in used:
            number += 1
            name = f"{item.name}-{number}"
        used.add(name)
        renamed.append(replace(item, name=name))
    return tuple(renamed)


def shorten_label(name: str, max_length: int = MAX_LABEL) -> str:
    """A name with its middle left out if it is too long; any white space becomes a blank."""
    return shorten(" ".join(name.split()), max_length)


def shorten_labels(names: Sequence[str], max_length: int = MAX_LABEL) -> list[str]:
    """Shortened names that differ: a common prefix is left out first, then numbers are added."""
    full = [" ".join(name.split()) for name in names]
    labels = [shorten(name, max_length) for name in full]
    if len(set(labels)) < len(set(full)):
        common = _common_prefix(full)
        labels = [shorten(f"{ELLIPSIS}{name[common:]}", max_length) if common else name for name in full]
        labels = [shorten(name, max_length) for name in labels]
    return _numbered(labels)


def _common_prefix(names: Sequence[str]) -> int:
    """The length of the common prefix of all names, up to a separator."""
    first, last = min(names), max(names)
    n_same = next(
        (index for index, pair in enumerate(zip(first, last, strict=False)) if len(set(pair)) > 1), len(first)
    )
    ends = [match.end() for match in _SEPARATOR.finditer(first[:n_same])]
    return ends[-1] if ends else 0


def _numbered(names: Sequence[str]) -> list[str]:
    counts: Counter[str] = Counter()
    numbered = []
    for name in names:
        counts[name] += 1
        numbered.append(name if counts[name] == 1 else f"{name} ({counts[name]})")
    return numbered


# Rendering as SVG and PNG.

SVG = "http://www.w3.org/2000/svg"
# The converter may not load any URL, whatever a name contains.
_ALLOWED_URLS: list[str] = []
_NOT_IN_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")
_REFERENCE = re.compile(r"url\(#([^)]+)\)")
_PAINTS = ("fill", "stroke")
_LONG_NUMBER = re.compile(r"-?\d+\.\d{3,}(?:e[-+]?\d+)?")
_COORDINATES = ("d", "transform", "x", "y", "x2", "y2", "width", "height")
_TO_DARK = {LIGHT[name]: DARK[name] for name in LIGHT}

ElementTree.register_namespace("", SVG)


def render_svg(chart: Chart, dark: bool = False) -> str:
    """Render a chart as SVG. The same chart gives the same bytes.

    Parameters
    ----------
    chart
        A chart of a result, such as one of ``PlacesDemo.charts()``.
    dark
        Whether colours are for a dark background.

    Returns
    -------
    str
        An SVG document with title and description.

    Examples
    --------
    >>> Path("chart.svg").write_text(render_svg(chart))  # doctest: +SKIP
    """
    root = svg_tree(chart)
    for index, (tag, text) in enumerate((("title", chart.title), ("desc", chart.description))):
        element = ElementTree.Element(f"{{{SVG}}}{tag}", {"id": f"{chart.name}-{tag}"})
        element.text = xml_safe(text)
        root.insert(index, element)
    root.set("aria-labelledby", f"{chart.name}-title {chart.name}-desc")
    if dark:
        _darken(root)
    return ElementTree.tostring(root, encoding="unicode") + "\n"


def render_png(chart: Chart, scale: float = 2) -> bytes:
    """The chart as a PNG image with ``scale`` pixels per SVG unit."""
    converter = require_extra("vl_convert", extra="report")
    image: bytes = converter.svg_to_png(render_svg(chart), scale=scale)
    return image


def write_charts(charts: Iterable[Chart], folder: PathLike, *, required: bool = True) -> list[Path]:
    """Write charts as PNG and SVG into a folder, and return the paths.

    Without the converter it is an error, unless the charts are not ``required``: then nothing is written.
    """
    target, charts = Path(folder), tuple(charts)
    written = []
    try:
        for number, chart in enumerate(charts, 1):
            target.mkdir(parents=True, exist_ok=True)
            for suffix, content in (("svg", render_svg(chart).encode()), ("png", render_png(chart))):
                file = target / f"{chart.name}.{suffix}"
                write_bytes(file, content)
                written.append(file)
            report_share(number, len(charts))
    except MissingExtraError:
        if required:
            raise
    except OSError as error:
        message = f"the charts cannot be written to {folder}: {error.strerror}"
        raise StoreError(message, hint="choose another folder") from error
    return written


def svg_tree(chart: Chart) -> ElementTree.Element:
    """The chart as a tree of SVG elements; ids start with the chart name, so that a page can hold several."""
    root = ElementTree.fromstring(_converted(dumps(_cleaned(chart.spec))))
    for element in root.iter():
        element_id = element.get("id")
        if element_id:
            element.set("id", f"{chart.name}-{element_id}")
        for key, value in element.items():
            if "url(#" in value and not key.startswith("aria"):
                element.set(key, _REFERENCE.sub(rf"url(#{chart.name}-\1)", value))
            elif key in _COORDINATES:
                element.set(key, _LONG_NUMBER.sub(_rounded, value))
    return root


@lru_cache(maxsize=64)
def _converted(spec: str) -> str:
    """The SVG of a specification; memoised because a page and its files have the same charts."""
    converter = require_extra("vl_convert", extra="report")
    text: str = converter.vegalite_to_svg(spec, allowed_base_urls=_ALLOWED_URLS)
    return text


def _rounded(number: re.Match[str]) -> str:
    """The number with at most two decimals."""
    return f"{float(number[0]):.2f}".rstrip("0").rstrip(".")


def _darken(root: ElementTree.Element) -> None:
    for element in root.iter():
        for paint in _PAINTS:
            color = element.get(paint)
            if color in _TO_DARK:
                element.set(paint, _TO_DARK[color])


def xml_safe(text: str) -> str:
    """The text with characters that XML does not allow replaced by U+FFFD."""
    return _NOT_IN_XML.sub("\N{REPLACEMENT CHARACTER}", text)


def _cleaned(value: object) -> object:
    """The specification with every text made safe for XML."""
    if isinstance(value, str):
        return xml_safe(value)
    if isinstance(value, dict):
        return {key: _cleaned(element) for key, element in value.items()}
    if isinstance(value, list | tuple):
        return [_cleaned(element) for element in value]
    return value
