"""Pairs of a concept set: texts with an expected similarity, an optional category and optional single ratings."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import isnan, nan
from typing import Any

import numpy as np

from equipoise.domains.concepts.concept_set import ConceptPair, IssueKind
from equipoise.domains.concepts.concept_set_sections import SectionRows, quote_value
from equipoise.evidence.segments import average_ranks
from equipoise.metrics.pairs import correlation

TEXTS = (
    ("concept_1", "concept_2"),
    ("sentence1", "sentence2"),
    ("sentence_1", "sentence_2"),
    ("text1", "text2"),
    ("text_1", "text_2"),
    ("first", "second"),
)
"""Accepted keys of the two texts."""
SCORES = ("expected_similarity", "similarity", "score", "similarity_score", "label")
"""Accepted keys of the similarity; ``score_0_5`` and ``score (0-5)`` give its scale as well."""
CATEGORIES = ("category", "stratum", "difficulty", "genre")
"""Accepted keys of the category, which results are also shown by."""
SELF_SIMILARITY_LIMIT = 0.9
"""Every model gives a text similarity 1 to itself; a lower expectation is an error."""
PAIRS_EXAMPLE = '{"concept_1": "...", "concept_2": "...", "expected_similarity": 0.7}'

_SCALED = re.compile(
    rf"(?:{'|'.join(SCORES)})[ _]*[\[(]?0(?:[ _]*(?:-|\.\.|to)[ _]*|_)([0-9]+(?:\.[0-9]+)?)[\])]?", re.I
)
_RATING = re.compile(r"(?:rating|rater|annotator)[ _-]?[0-9]+", re.I)
"""A column with the ratings of one annotator."""


def parse_pairs(entries: SectionRows, scale: float | None = None) -> tuple[ConceptPair, ...]:
    """The pairs; similarities on a scale from 0 to ``scale`` are divided by it.

    A scale that the name of a column gives counts for that column. Without any, 3.8 is out of range: it may
    be a slip of the point as well as another scale.
    """
    pairs: list[ConceptPair] = []
    first_of: dict[frozenset[str], tuple[int, ConceptPair]] = {}
    duplicates: list[int] = []
    for row in range(len(entries)):
        pair = _pair(entries, row, scale)
        if pair is None:
            continue
        if pair.first.casefold() == pair.second.casefold() and pair.expected < SELF_SIMILARITY_LIMIT:
            fact = f"pairs {pair.first!r} with itself and expects the similarity {pair.expected:g}"
            entries.report(IssueKind.ENTRY, [row], fact, "a text is always equal to itself; leave it out")
            continue
        texts = frozenset((pair.first.casefold(), pair.second.casefold()))
        first, earlier = first_of.setdefault(texts, (row, pair))
        if first == row:
            pairs.append(pair)
        elif earlier.expected == pair.expected:
            duplicates.append(row)
        else:
            fact = (
                f"are the same pair, {pair.first!r} and {pair.second!r}, and expect the similarities "
                f"{earlier.expected:g} and {pair.expected:g}"
            )
            entries.report(IssueKind.REPEATED, [first, row], fact, "keep one of them, or give both as ratings")
    entries.report_duplicates(duplicates)
    entries.too_few(
        2, "pair", len(entries) - len(duplicates), "a correlation needs two pairs, and means little below twenty"
    )
    return tuple(pairs)


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


def _pair(entries: SectionRows, row: int, scale: float | None) -> ConceptPair | None:
    value = entries.record(row, PAIRS_EXAMPLE)
    if value is None:
        return None
    keys = next((pair for pair in TEXTS if pair[0] in value or pair[1] in value), TEXTS[0])
    first, second = (entries.text(row, value, key) for key in keys)
    ratings = _ratings(entries, row, value, scale)
    if ratings is None:
        return None
    known = [rating for rating in ratings if not isnan(rating)]
    key, key_scale = score_key(value)
    if key is None and not known:
        entries.missing(row, value, SCORES[0])
        return None
    expected = _similarity(entries, row, value, key, key_scale or scale) if key else sum(known) / len(known)
    if first is None or second is None or expected is None:
        return None
    category = next((str(value[key]).strip() for key in CATEGORIES if value.get(key) is not None), "")
    return ConceptPair(first, second, expected, category, ratings)


def _similarity(
    entries: SectionRows, row: int, value: Mapping[str, Any], key: str, scale: float | None
) -> float | None:
    score = entries.number(row, value, key)
    if score is None:
        return None
    # Without "+ 0.0", a similarity of -0.0 would have a different fingerprint.
    expected = score / (scale or 1.0) + 0.0
    if 0.0 <= expected <= 1.0:
        return expected
    hint = "correct it" if scale else "correct it; for values up to 5 use --similarity-scale 5 or a column score_0_5"
    fact = f"expects the similarity {score:g}, outside 0 to {scale or 1:g}"
    entries.report(IssueKind.RANGE, [row], fact, hint)
    return None


def _ratings(entries: SectionRows, row: int, value: Mapping[str, Any], scale: float | None) -> tuple[float, ...] | None:
    """The rating of each annotator, NaN for an empty cell; None after a report of an invalid one."""
    listed = value.get("ratings")
    if listed is not None and not isinstance(listed, list | tuple):
        fact = f"has {quote_value(listed)} as its ratings"
        entries.report(IssueKind.ENTRY, [row], fact, "write a list with one number per annotator: [0.7, 0.8]")
        return None
    named = {f"rating {nth}": rating for nth, rating in enumerate(listed or (), start=1)}
    named |= {str(key): rating for key, rating in value.items() if _RATING.fullmatch(str(key).strip())}
    ratings = []
    for key, rating in named.items():
        is_empty = rating is None or (isinstance(rating, str) and not rating.strip())
        similarity = nan if is_empty else _similarity(entries, row, named, key, scale)
        if similarity is None:
            return None
        ratings.append(similarity)
    return tuple(ratings)


def annotator_ceiling(pairs: Sequence[ConceptPair]) -> float:
    """Mean Spearman correlation of each annotator with the mean of the others: what a human reaches on these pairs.

    The annotator in position j of every pair is taken for the same person. NaN for fewer than two annotators.

    >>> rated = [ConceptPair("a", str(at), 0.5, ratings=(at / 9, at / 9, (at / 9) ** 2)) for at in range(10)]
    >>> round(annotator_ceiling(rated), 6)
    1.0
    """
    annotators = max((len(pair.ratings) for pair in pairs), default=0)
    ratings = np.full((len(pairs), annotators), nan)
    for row, pair in enumerate(pairs):
        ratings[row, : len(pair.ratings)] = pair.ratings
    given = ~np.isnan(ratings)
    values = np.where(given, ratings, 0.0)
    agreements = []
    for nth in range(annotators):
        # Summed without the annotator: a subtraction would turn ties into almost ties.
        others = np.delete(given, nth, axis=1).sum(axis=1)
        rows = given[:, nth] & (others > 0)
        means = np.delete(values, nth, axis=1).sum(axis=1)[rows] / others[rows]
        agreements.append(correlation(average_ranks(values[rows, nth]), average_ranks(means)))
    defined = [agreement for agreement in agreements if not isnan(agreement)]
    return float(np.mean(defined)) if defined else nan
