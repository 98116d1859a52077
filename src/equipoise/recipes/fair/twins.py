"""Questions whose answers are nearly one: what one of them shows, the other must not know.

"Weber" and "Jonas Weber" stand in the same passage, so that parameters chosen on the one are chosen on the
other. Such questions go to the same fold, and are drawn together.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from equipoise.recipes.fair.validation.duplicates import TWINS, similar_pairs
from equipoise.tasks.answers.normal import normalised

LARGE_PART = 0.5
"""An answer within another is nearly the same from this share of its words on: a year is not a whole date."""

_WORDS = re.compile(r"\w+")
_NUMBER = re.compile(r"\d+")

Words = tuple[str, ...]


def answer_groups(answers: Sequence[str]) -> list[int]:
    """A number for each answer, the same for answers that are nearly one, directly or through others.

    Nearly one are answers of the same words, those of which one is a large part of the other, word for word
    and in order, and those that share most of their letters and all of their numbers.

    >>> answer_groups(["Weber", "in May 1871", "Jonas Weber", "1871", "weber"])
    [0, 1, 0, 2, 0]
    """
    group = list(range(len(answers)))

    def root(place: int) -> int:
        while group[place] != place:
            group[place] = place = group[group[place]]
        return place

    for one, other in _pairs(answers):
        first, second = sorted((root(one), root(other)))
        group[second] = first
    number: dict[int, int] = {}
    return [number.setdefault(root(place), len(number)) for place in range(len(answers))]


def _pairs(answers: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Places of answers that belong together; enough of them to connect all that do."""
    plain = [normalised(answer) for answer in answers]
    words = [tuple(_WORDS.findall(text)) or (text,) for text in plain]
    first_of: dict[Words, int] = {}
    for place, own in enumerate(words):
        yield first_of.setdefault(own, place), place
    lengths = sorted(set(map(len, first_of)))
    for place, own in enumerate(words):
        yield from ((first_of[part], place) for part in _large_parts(own, lengths) if part in first_of)
    numbers = [_NUMBER.findall(text) for text in plain]
    for one, other, _ in similar_pairs(plain, TWINS):
        if numbers[one] == numbers[other]:
            yield one, other


def _large_parts(words: Words, lengths: Sequence[int]) -> Iterator[Words]:
    """All stretches of the words that are a large part of them, of the lengths that answers have."""
    for length in lengths:
        if LARGE_PART * len(words) <= length < len(words):
            for start in range(len(words) - length + 1):
                yield words[start : start + length]
