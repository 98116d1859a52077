"""A chart: a name for its file, a title, a sentence for those who do not see it, and the specification."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from equipoise.report.charts.theme import SCHEMA, Spec, config

LONGEST_SLUG = 40


@dataclass(frozen=True, slots=True)
class Chart:
    """One chart. ``spec`` is Vega-Lite with its data inside; ``zoom`` says that looking closer helps."""

    name: str
    title: str
    description: str
    spec: Spec
    zoom: bool = False


def chart(
    name: str, title: str, description: str, layers: Sequence[Spec], *, subtitle: str = "", **top: object
) -> Chart:
    """A chart of layers in the common theme; ``top`` are the other properties of the specification."""
    head: Spec = {"text": title}
    if subtitle:
        head["subtitle"] = subtitle
    spec: Spec = {
        "$schema": SCHEMA,
        "title": head,
        "description": description,
        **top,
        "layer": list(layers),
        "config": config(),
    }
    return Chart(name, title, description, spec)


def slug(text: str) -> str:
    """A name that is safe in a file name and in an address.

    >>> slug("nDCG@10"), slug("../../etc"), slug("<>")
    ('ndcg-10', 'etc', 'x')
    """
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:LONGEST_SLUG].strip("-") or "x"


def apart(charts: Sequence[Chart]) -> tuple[Chart, ...]:
    """The charts with names that all differ: the second of two equal names gets a number."""
    taken: set[str] = set()
    named = []
    for each in charts:
        name, number = each.name, 1
        while name in taken:
            number += 1
            name = f"{each.name}-{number}"
        taken.add(name)
        named.append(replace(each, name=name))
    return tuple(named)
