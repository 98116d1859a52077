"""Render charts as SVG and PNG, and write them to files, without a browser and without network access."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from equipoise.errors import MissingExtraError, StoreError
from equipoise.io.atomic import write_bytes
from equipoise.report.charts import report_charts
from equipoise.report.charts.theme import DARK, LIGHT
from equipoise.runs.experiment_folder import VISUALIZATIONS
from equipoise.runs.store import load_run
from equipoise.types import require_extra

if TYPE_CHECKING:
    from equipoise.io.text import PathLike
    from equipoise.report.charts.chart import Chart
    from equipoise.stats.comparison import Comparison

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


def render_png(chart: Chart, scale: float = 2, dark: bool = False) -> bytes:
    """The chart as a PNG image with ``scale`` pixels per SVG unit."""
    converter = require_extra("vl_convert", extra="report")
    image: bytes = converter.svg_to_png(render_svg(chart, dark), scale=scale)
    return image


def write_charts(charts: Iterable[Chart], folder: PathLike, *, required: bool = True) -> list[Path]:
    """Write charts as PNG and SVG into a folder, and return the paths.

    Without the converter it is an error, unless the charts are not ``required``: then nothing is written.
    """
    target = Path(folder)
    written = []
    try:
        for chart in charts:
            target.mkdir(parents=True, exist_ok=True)
            for suffix, content in (("svg", render_svg(chart).encode()), ("png", render_png(chart))):
                file = target / f"{chart.name}.{suffix}"
                write_bytes(file, content)
                written.append(file)
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


def write_run_charts(folder: Path, runs: Sequence[Path], comparison: Comparison | None) -> list[Path]:
    """Every chart of these run directories as PNG and SVG; none if the converter is not installed."""
    from equipoise.report.build import build_report

    report = build_report([load_run(path, evidence=False) for path in runs], comparison, exports=False)
    return write_charts(report_charts(report), folder / VISUALIZATIONS, required=False)
