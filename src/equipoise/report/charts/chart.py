"""Names that fit beside a plot and still differ."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from equipoise.report.charts.theme import SCHEMA, Spec, theme_config
from equipoise.report.terminal import ELLIPSIS, shorten

# A chart: a name for its file, a title, a sentence for those who do not see it, and the specification.

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
        "config": theme_config(),
    }
    return Chart(name, title, description, spec)


def slug(text: str) -> str:
    """A name that is safe in a file name and in an address.

    >>> slug("nDCG@10"), slug("../../etc"), slug("<>")
    ('ndcg-10', 'etc', 'x')
    """
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:LONGEST_SLUG].strip("-") or "x"


def unique_names(charts: Sequence[Chart]) -> tuple[Chart, ...]:
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


LONGEST_NAME = 36
_SEPARATOR = re.compile(r"[/_:\s-]")


def shorten_label(name: str, longest: int = LONGEST_NAME) -> str:
    """One name without its middle where it is too long; white space of any kind becomes a blank."""
    return shorten(" ".join(name.split()), longest)


def shorten_labels(names: Sequence[str], longest: int = LONGEST_NAME) -> list[str]:
    """Names that differ after they were shortened: what all begin with goes first, then numbers help.

    >>> shorten_labels(["team/model-small-en-v1", "team/model-large-en-v1"], 12)
    ['…small-en-v1', '…large-en-v1']
    >>> shorten_labels(["same", "same"])
    ['same', 'same (2)']
    """
    whole = [" ".join(name.split()) for name in names]
    brief = [shorten(name, longest) for name in whole]
    if len(set(brief)) < len(set(whole)):
        common = _common_beginning(whole)
        brief = [shorten(f"{ELLIPSIS}{name[common:]}", longest) if common else name for name in whole]
        brief = [shorten(name, longest) for name in brief]
    return _numbered(brief)


def _common_beginning(names: Sequence[str]) -> int:
    """How many characters all names share at their beginning, up to a separator."""
    first, last = min(names), max(names)
    same = next((at for at, pair in enumerate(zip(first, last, strict=False)) if len(set(pair)) > 1), len(first))
    ends = [match.end() for match in _SEPARATOR.finditer(first[:same])]
    return ends[-1] if ends else 0


def _numbered(names: Sequence[str]) -> list[str]:
    seen: Counter[str] = Counter()
    numbered = []
    for name in names:
        seen[name] += 1
        numbered.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return numbered
