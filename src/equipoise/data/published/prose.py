"""What the text around a table says of its figures, where a sentence says it in so many words."""

from __future__ import annotations

import re

from equipoise.data.published.markup import plain
from equipoise.data.published.record import Said

_PARENT = re.compile(
    r"(?:\brank(?:s|ing)?|\bretriev(?:e|es|ing))\s+(?:its|the|their)\s+(?:one |only |direct |true )?parent\b"
    r"|\bparent(?: \w+)? is (?:the only relevant|ranked|retrieved)",
    re.IGNORECASE,
)
_SEVERAL = re.compile(r"ancestor|transitive closure|all parents|several parents", re.IGNORECASE)
_OVER_RELEVANT = re.compile(
    r"\\?min\s*\\?[({]\s*k\s*,\s*\|?\s*(?:R|(?:num_|number of )?relevant\w*)\s*\|?\s*\\?[)}]", re.IGNORECASE
)
_LIKE = re.compile(r"\bScored like ([\w-]+)")
_PERCENT = re.compile(
    r"(?:\bin|\bas)\s+(?:percent|percentages?|\\?%)|\bpercentages\b|(?:×|\\times|\bx|\btimes)\s*100\b",
    re.IGNORECASE,
)
_BROAD = re.compile(r"\s+")


def said_in(text: str) -> tuple[Said, ...]:
    """The facts that the text states.

    >>> said_in("For each account we rank its parent among all others.")
    (Said(label='relation', text='parent', quote='rank its parent'),)
    """
    found = []
    flat = _BROAD.sub(" ", text)
    if (match := _PARENT.search(flat)) and not _SEVERAL.search(flat):
        found.append(Said("relation", "parent", match[0]))
    if match := _OVER_RELEVANT.search(flat):
        found.append(Said("map_over", "relevant", match[0]))
    # A caption of this program; it escapes what Markdown or LaTeX would take for markup.
    if match := _LIKE.search(plain(flat)):
        found.append(Said("like", match[1], match[0]))
    if match := _PERCENT.search(flat):
        found.append(Said("unit", "percent", match[0]))
    return tuple(found)
