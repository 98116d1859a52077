"""The units as JSON inside the page: columns instead of rows, so that it stays small."""

from __future__ import annotations

import json
from typing import Any

from equipoise.report.inert import inert
from equipoise.report.page.model import Explorer, Hit, Number, Page, UnitDetail

# In JSON these stand only inside strings. As escapes they cannot end the element, nor open another.
_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
_PLACES = 4


def island(page: Page) -> str:
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
        "slices": [
            {"name": each.name, "values": each.values, "of": each.of_unit} for each in explorer.slices
        ],
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
