"""The page as one HTML file: style, script, data and drawings inside it, and nothing fetched."""

from __future__ import annotations

import base64
import hashlib
from functools import lru_cache
from importlib.resources import files
from typing import Any

from equipoise.report.charts import interactive
from equipoise.report.html.grouping import by_name, fact_names, shares, standing
from equipoise.report.html.island import island
from equipoise.report.html.links import Links
from equipoise.report.html.marks import Ruler, chosen, heat, sign, signs
from equipoise.report.html.pictures import Pictures, pictures_of
from equipoise.report.html.shown import shown_value
from equipoise.report.page.model import Page

PACKAGE = "equipoise.report.html"
TEMPLATES = "templates"
MARKS = {"issue": "!", "tip": "+", "note": "–"}
LARGE = 6
"""With more pairs than this only those with the leader stand there unfolded."""
SCRIPTS = ("page.js", "tables.js", "take.js", "units.js")


def html_page(page: Page, *, charts: bool = True, links: Links | None = None) -> str:
    """The page as text; the same page gives the same bytes.

    ``charts=False`` leaves the charts out; ``links`` lead to other pages where a server has some.
    """
    pictures = pictures_of(page) if charts else Pictures({})
    style = interactive.style() + _asset("style.css")
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
            policy=policy(style, script),
            style=style,
            script=script,
            data=island(page),
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


def policy(style: str, script: str) -> str:
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
    environment.globals.update(MARKS=MARKS, LARGE=LARGE, Ruler=Ruler)
    for function in (heat, sign, signs, chosen, shares, standing, by_name, fact_names):
        environment.globals[function.__name__] = function
    return environment


@lru_cache(maxsize=1)
def _script() -> str:
    """All scripts as one, which keeps its names to itself."""
    own = "\n".join(_asset(name) for name in SCRIPTS)
    return f'(() => {{\n"use strict";\n{own}}})();\n{interactive.script()}'


@lru_cache(maxsize=8)
def _asset(name: str) -> str:
    return (files(PACKAGE) / name).read_text(encoding="utf-8")
