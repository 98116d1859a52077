"""Differences between systems, and spreads: numbers in rows and columns of metrics that are no metric values.

``+2.9`` under HR@1 says by how much a hit rate rose. It has other bounds than a hit rate, and no law of hit
rates holds for it. A difference is known by the name of its row or column, or by its sign.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from equipoise.checks.audit.drafts import Draft
from equipoise.data.published.markup import plain
from equipoise.data.published.record import Record

_SPREADS = r"std\.?(?: ?dev\.?)?|sd|stdev|stderr|s\.e\.|standard (?:deviation|error)|variance|p[-_ ]?values?"
_ROW = re.compile(
    r"(?i)(?<![^\W_])(?:delta|diff\.?|differences?|improvements?|improv\.?|impr?\.|changes?|vs\.?|versus|"
    rf"(?<!information )(?<!info )(?<!cumulative )gains?|(?:uplift|lift)|{_SPREADS})(?![^\W_])|[Δ∆δ±]"
)
"""In a row or column of levels these words do not occur; a loss or a time may be part of a system's name."""
_SIGN = re.compile(r"^\s*(?:(?P<plus>\+)|(?P<minus>[-\u2212\u2013]))(?=\s*[\d.])")
_ARROW = re.compile(r"^[\s$*]*(?:[↑↓⬆⬇▲▼]\ufe0f?|\\(?:up|down)arrow)[\s$*]*[\d.]")
LONGEST_NAME = 6
"""Words; a longer heading that mentions a change says nothing of its numbers."""


def names_difference(name: str) -> bool:
    """Whether a row of this name holds differences or spreads.

    >>> names_difference("Δ vs. BM25"), names_difference("rel. improvement"), names_difference("DeltaNet")
    (True, True, False)
    """
    bare = plain(name.replace("_", " "))
    return len(bare.split()) <= LONGEST_NAME and _ROW.search(bare) is not None


def without_differences(
    drafts: Sequence[tuple[Record, list[Draft]]],
) -> tuple[list[tuple[Record, list[Draft]]], list[str]]:
    """The drafts of metric values, and the names of the rows and columns that hold differences."""
    named: dict[str, None] = {}
    kept: list[tuple[Record, list[Draft]]] = []
    columns = _signed_columns(drafts)
    named |= dict.fromkeys(columns)
    for record, found in drafts:
        rest = [each for each in found if each.cell.label not in columns]
        levels = [] if names_difference(record.name) else _without_signed(rest)
        if len(levels) < len(rest):
            named[record.name or "a row"] = None
        kept.append((record, levels))
    return kept, list(named)


def _signed_columns(drafts: Sequence[tuple[Record, list[Draft]]]) -> frozenset[str]:
    """The labels of columns whose every number has a sign, though the metric is never negative."""
    columns: dict[str, list[Draft]] = {}
    for _, found in drafts:
        for each in found:
            columns.setdefault(each.cell.label, []).append(each)
    return frozenset(label for label, column in columns.items() if len(column) > 1 and _all_signed(column))


def _all_signed(drafts: Sequence[Draft]) -> bool:
    signs = [_sign(each) for each in drafts if each.number.value != 0]
    return len(signs) > 1 and all(signs) and all(map(_never_negative, drafts))


def _without_signed(drafts: list[Draft]) -> list[Draft]:
    """A row without its differences: those with a plus sign, and all of a row where most are signed."""
    levels = [each for each in drafts if _never_negative(each)]
    raised = [each for each in levels if _sign(each) == "+"]
    signed = [each for each in levels if _sign(each)]
    if _all_signed(levels) or (raised and 2 * len(signed) >= len(levels)):
        return []
    return [each for each in drafts if not (raised and _never_negative(each) and _sign(each))]


def _sign(draft: Draft) -> str:
    """``+`` or ``-`` where one is printed, an arrow being a plus; empty otherwise."""
    if _ARROW.match(draft.cell.text):
        return "+"
    match = _SIGN.match(plain(draft.cell.text))
    return "" if match is None else "+" if match["plus"] else "-"


def _never_negative(draft: Draft) -> bool:
    return draft.measure.bounds[0] >= 0
