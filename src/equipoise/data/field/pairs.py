"""Pairs of texts with the similarity that people expect: the project's own form, and STS-style tables."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from equipoise.data.field.entries import Entries
from equipoise.data.field.problem import Rule
from equipoise.data.field.records import Pair

TEXTS = (
    ("concept_1", "concept_2"),
    ("sentence1", "sentence2"),
    ("sentence_1", "sentence_2"),
    ("text1", "text2"),
    ("text_1", "text_2"),
    ("first", "second"),
)
"""Under which keys the two texts may stand."""
SCORES = ("expected_similarity", "similarity", "score", "similarity_score", "label")
"""Under which key the similarity may stand; ``score_0_5`` and ``score (0-5)`` give its scale as well."""
ITSELF = 0.9
"""Every model finds a text wholly like itself; people who expect less have mistyped something."""
EXAMPLE = '{"concept_1": "...", "concept_2": "...", "expected_similarity": 0.7}'

_SCALED = re.compile(
    rf"(?:{'|'.join(SCORES)})[ _]*[\[(]?0(?:[ _]*(?:-|\.\.|to)[ _]*|_)([0-9]+(?:\.[0-9]+)?)[\])]?", re.I
)


def pairs_in(entries: Entries, scale: float | None = None) -> tuple[Pair, ...]:
    """The pairs; similarities on a scale from 0 to ``scale`` are divided by it.

    A scale that the name of a column gives counts for that column. Without any, 3.8 is out of range: it may
    be a slip of the point as well as another scale.
    """
    made: list[Pair] = []
    first_of: dict[frozenset[str], int] = {}
    for place in range(len(entries)):
        pair = _pair(entries, place, scale)
        if pair is None:
            continue
        if pair.first.casefold() == pair.second.casefold() and pair.expected < ITSELF:
            fact = f"pairs {pair.first!r} with itself and expects the similarity {pair.expected:g}"
            entries.report(Rule.ENTRY, [place], fact, "a thing is always like itself; leave it out")
            continue
        made.append(pair)
        first = first_of.setdefault(frozenset((pair.first.casefold(), pair.second.casefold())), place)
        if first != place:
            fact = f"are the same pair, {pair.first!r} and {pair.second!r}"
            entries.report(Rule.REPEATED, [first, place], fact, "keep one of them")
    entries.too_few(2, "pair", len(entries), "a correlation needs two pairs, and means little below twenty")
    return tuple(made)


def score_key(value: Mapping[str, Any]) -> tuple[str | None, float | None]:
    """The key of the similarity, and the scale that its name gives.

    >>> score_key({"sentence1": "a", "sentence2": "b", "score (0-5)": "4.2"})
    ('score (0-5)', 5.0)
    """
    for key in SCORES:
        if key in value:
            return key, None
    for key in value:
        match = _SCALED.fullmatch(str(key).strip())
        if match:
            return key, float(match[1])
    return None, None


def _pair(entries: Entries, place: int, scale: float | None) -> Pair | None:
    value = entries.record(place, EXAMPLE)
    if value is None:
        return None
    keys = next((pair for pair in TEXTS if pair[0] in value or pair[1] in value), TEXTS[0])
    first, second = (entries.text(place, value, key) for key in keys)
    key, named = score_key(value)
    if key is None:
        entries.missing(place, value, SCORES[0])
        return None
    score = entries.number(place, value, key)
    if first is None or second is None or score is None:
        return None
    # Without "+ 0.0", a similarity of -0.0 would have a fingerprint of its own.
    expected = score / (named or scale or 1.0) + 0.0
    if not 0.0 <= expected <= 1.0:
        _out_of_range(entries, place, score, named or scale)
        return None
    return Pair(first, second, expected)


def _out_of_range(entries: Entries, place: int, score: float, scale: float | None) -> None:
    limit = f"0 to {scale or 1:g}"
    hint = (
        "correct it"
        if scale
        else "correct it; if all run from 0 to 5, --scale 5 or a column score_0_5 says so"
    )
    entries.report(Rule.RANGE, [place], f"expects the similarity {score:g}, outside {limit}", hint)
