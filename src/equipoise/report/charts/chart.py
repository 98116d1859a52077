"""The chart class, file names of charts, and labels shortened to fit."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from equipoise.report.charts.theme import SCHEMA, Spec, theme_config
from equipoise.report.terminal import ELLIPSIS, shorten

MAX_SLUG = 40
MAX_LABEL = 36
_SEPARATOR = re.compile(r"[/_:\s-]")


@dataclass(frozen=True, slots=True)
class Chart:
    """One chart. ``spec`` is Vega-Lite with inline data, ``description`` the text for screen readers."""

    name: str
    title: str
    description: str
    spec: Spec
    zoom: bool = False


def chart(
    name: str, title: str, description: str, layers: Sequence[Spec], *, subtitle: str = "", **top: object
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
    return Chart(name, title, description, spec)


def slug(text: str) -> str:
    """A name that is safe in a file name and in a URL.

    >>> slug("nDCG@10"), slug("../../etc"), slug("<>")
    ('ndcg-10', 'etc', 'x')
    """
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:MAX_SLUG].strip("-") or "x"


def unique_names(charts: Sequence[Chart]) -> tuple[Chart, ...]:
    """The charts with unique names: the second of two equal names gets a number."""
    taken: set[str] = set()
    renamed = []
    for item in charts:
        name, number = item.name, 1
        while name in taken:
            number += 1
            name = f"{item.name}-{number}"
        taken.add(name)
        renamed.append(replace(item, name=name))
    return tuple(renamed)


def shorten_label(name: str, max_length: int = MAX_LABEL) -> str:
    """A name with its middle left out if it is too long; any white space becomes a blank."""
    return shorten(" ".join(name.split()), max_length)


def shorten_labels(names: Sequence[str], max_length: int = MAX_LABEL) -> list[str]:
    """Shortened names that differ: a common prefix is left out first, then numbers are added.

    >>> shorten_labels(["team/model-small-en-v1", "team/model-large-en-v1"], 12)
    ['…small-en-v1', '…large-en-v1']
    >>> shorten_labels(["same", "same"])
    ['same', 'same (2)']
    """
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
    same = next((index for index, pair in enumerate(zip(first, last, strict=False)) if len(set(pair)) > 1), len(first))
    ends = [match.end() for match in _SEPARATOR.finditer(first[:same])]
    return ends[-1] if ends else 0


def _numbered(names: Sequence[str]) -> list[str]:
    seen: Counter[str] = Counter()
    numbered = []
    for name in names:
        seen[name] += 1
        numbered.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return numbered
