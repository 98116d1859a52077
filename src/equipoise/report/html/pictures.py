"""The charts of a page as drawings inside it; without the converter the page says what is missing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from equipoise.errors import MissingExtraError
from equipoise.report.charts import charts_of
from equipoise.report.charts.interactive import Mounted, mount
from equipoise.report.page.model import Page

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
class Pictures:
    """The charts of each section, and a sentence where there could be none."""

    by_section: Mapping[str, tuple[Mounted, ...]]
    note: str = ""


def pictures_of(page: Page) -> Pictures:
    """Every chart of the page, drawn; none where the converter is not installed."""
    drawn: dict[str, list[Mounted]] = {}
    for chart in charts_of(page):
        try:
            picture = mount(chart)
        except MissingExtraError as error:
            return Pictures({}, f"The charts are missing: {error.sentence}. {error.hint} brings them.")
        drawn.setdefault(section_of(chart.name), []).append(picture)
    return Pictures({section: tuple(pictures) for section, pictures in drawn.items()})


def section_of(name: str) -> str:
    """Where a chart belongs; one of an unknown kind stands with the distributions.

    >>> section_of("tuning-grid-bm25"), section_of("frontier")
    ('tuning', 'frontiers')
    """
    return next((section for start, section in _SECTIONS if name.startswith(start)), "distributions")
