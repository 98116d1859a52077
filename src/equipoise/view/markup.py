"""The viewer's own pages, from templates that escape whatever they are given."""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files
from typing import Any

from equipoise.report.charts import interactive
from equipoise.report.html.shown import shown_value

PACKAGE = "equipoise.view"


def rendered(template: str, **values: Any) -> str:
    """A template filled in."""
    text: str = _environment().get_template(template).render(**values)
    return text


@lru_cache(maxsize=1)
def style() -> str:
    """The style sheet of the report, and the little that a list of runs needs beside it."""
    report = (files("equipoise.report.html") / "style.css").read_text(encoding="utf-8")
    return interactive.style() + report + asset("view.css")


@lru_cache(maxsize=2)
def asset(name: str) -> str:
    """A file that comes with the viewer."""
    return (files(PACKAGE) / name).read_text(encoding="utf-8")


@lru_cache(maxsize=1)
def _environment() -> Any:
    import jinja2

    return jinja2.Environment(
        loader=jinja2.PackageLoader(PACKAGE, "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=shown_value,
    )
