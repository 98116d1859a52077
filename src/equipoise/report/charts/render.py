"""Charts as files: SVG and PNG, without a browser and without a network."""

from __future__ import annotations

import re
from functools import lru_cache
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from equipoise.errors import StoreError
from equipoise.io.atomic import write_bytes
from equipoise.report.charts import report_charts
from equipoise.report.charts.theme import DARK, LIGHT
from equipoise.types import require_extra

if TYPE_CHECKING:
    from equipoise.io.text import PathLike
    from equipoise.report.charts.chart import Chart
    from equipoise.report.view_model import Page

SVG = "http://www.w3.org/2000/svg"
# No address is ever allowed, so that nothing in a name can make the converter load something.
_NO_ADDRESSES: list[str] = []
_NOT_IN_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")
_REFERENCE = re.compile(r"url\(#([^)]+)\)")
_PAINTS = ("fill", "stroke")
_LONG_NUMBER = re.compile(r"-?\d+\.\d{3,}(?:e[-+]?\d+)?")
_DRAWN = ("d", "transform", "x", "y", "x2", "y2", "width", "height")
_TO_DARK = {LIGHT[name]: DARK[name] for name in LIGHT}

ElementTree.register_namespace("", SVG)


def render_svg(chart: Chart, dark: bool = False) -> str:
    """The chart as an SVG document with its title and description; the same chart gives the same bytes."""
    root = svg_tree(chart)
    for place, (tag, text) in enumerate((("title", chart.title), ("desc", chart.description))):
        element = ElementTree.Element(f"{{{SVG}}}{tag}", {"id": f"{chart.name}-{tag}"})
        element.text = xml_safe(text)
        root.insert(place, element)
    root.set("aria-labelledby", f"{chart.name}-title {chart.name}-desc")
    if dark:
        _darken(root)
    return ElementTree.tostring(root, encoding="unicode") + "\n"


def render_png(chart: Chart, scale: float = 2, dark: bool = False) -> bytes:
    """The chart as a PNG image with ``scale`` pixels for each of the SVG."""
    converter = require_extra("vl_convert", extra="report")
    image: bytes = converter.svg_to_png(render_svg(chart, dark), scale=scale)
    return image


def write_charts(page: Page, folder: PathLike) -> list[Path]:
    """Write every chart of a page as PNG and SVG into a folder, and say which files those are."""
    target = Path(folder)
    written = []
    try:
        target.mkdir(parents=True, exist_ok=True)
        for each in report_charts(page):
            for suffix, content in (("svg", render_svg(each).encode()), ("png", render_png(each))):
                file = target / f"{each.name}.{suffix}"
                write_bytes(file, content)
                written.append(file)
    except OSError as error:
        raise StoreError(f"{folder} cannot hold the charts: {error.strerror}", hint="choose another folder") from error
    return written


def svg_tree(chart: Chart) -> ElementTree.Element:
    """The chart as a tree of SVG elements whose ids are its own, so that several fit into one page."""
    root = ElementTree.fromstring(_converted(dumps(_cleaned(chart.spec))))
    for element in root.iter():
        own = element.get("id")
        if own:
            element.set("id", f"{chart.name}-{own}")
        for key, value in element.items():
            if "url(#" in value and not key.startswith("aria"):
                element.set(key, _REFERENCE.sub(rf"url(#{chart.name}-\1)", value))
            elif key in _DRAWN:
                element.set(key, _LONG_NUMBER.sub(_rounded, value))
    return root


@lru_cache(maxsize=64)
def _converted(spec: str) -> str:
    """What the converter draws; kept, since a page and its files show the same charts."""
    converter = require_extra("vl_convert", extra="report")
    text: str = converter.vegalite_to_svg(spec, allowed_base_urls=_NO_ADDRESSES)
    return text


def _rounded(number: re.Match[str]) -> str:
    """A hundredth of a pixel is enough."""
    return f"{float(number[0]):.2f}".rstrip("0").rstrip(".")


def _darken(root: ElementTree.Element) -> None:
    for element in root.iter():
        for paint in _PAINTS:
            colour = element.get(paint)
            if colour in _TO_DARK:
                element.set(paint, _TO_DARK[colour])


def xml_safe(text: str) -> str:
    """Characters that XML cannot hold become the sign for what cannot be shown."""
    return _NOT_IN_XML.sub("\N{REPLACEMENT CHARACTER}", text)


def _cleaned(value: object) -> object:
    """A specification in which every text can stand in an SVG."""
    if isinstance(value, str):
        return xml_safe(value)
    if isinstance(value, dict):
        return {key: _cleaned(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_cleaned(each) for each in value]
    return value
