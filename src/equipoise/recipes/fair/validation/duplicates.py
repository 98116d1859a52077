"""Questions that were asked before: word for word, or nearly so."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from equipoise.data.fixture import Question
from equipoise.tasks.answers.normal import normalised
from equipoise.types import Floats

TWINS = 0.7
"""Questions with the same answer that are at least this similar are near duplicates."""

REPEATS = 0.9
"""So are questions with different answers from here on, if they name the same numbers."""

_BLOCK = 256
_NUMBER = re.compile(r"\d+")
_WORDS = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class NearDuplicate:
    """Two questions that are nearly one.

    ``similarity`` is the share of groups of three letters that they have in common (Jaccard), without regard
    to case, punctuation and white space.
    """

    first: str
    second: str
    similarity: float
    same_answer: bool


def repeated_questions(questions: Sequence[Question]) -> list[Question]:
    """The questions that an earlier one equals after normalisation.

    >>> pairs = [Question("a", "Who was it?", "Ada"), Question("b", "who  was it?", "Ada")]
    >>> [each.id for each in repeated_questions(pairs)]
    ['b']
    """
    seen: set[str] = set()
    repeated = []
    for each in questions:
        key = normalised(each.question)
        if key in seen:
            repeated.append(each)
        seen.add(key)
    return repeated


def near_duplicates(questions: Sequence[Question]) -> list[NearDuplicate]:
    """Pairs of questions that are similar beyond ``TWINS`` or ``REPEATS`` and not equal.

    >>> texts = ["Who wrote the first program?", "Who wrote a first program"]
    >>> pairs = [Question(f"q{number}", text, "Ada") for number, text in enumerate(texts)]
    >>> [(each.first, each.same_answer) for each in near_duplicates(pairs)]
    [('Who wrote the first program?', True)]
    """
    once = list({normalised(each.question): each for each in reversed(questions)}.values())[::-1]
    answers = [normalised(each.answer) for each in once]
    numbers = [_NUMBER.findall(each.question) for each in once]
    found = []
    for first, second, similarity in similar_pairs([each.question for each in once], TWINS):
        same = answers[first] == answers[second]
        if same or (similarity >= REPEATS and numbers[first] == numbers[second]):
            found.append(NearDuplicate(once[first].question, once[second].question, similarity, same))
    return found


def similar_pairs(texts: Sequence[str], least: float) -> list[tuple[int, int, float]]:
    """Places of all pairs of texts with at least this Jaccard similarity, first before second."""
    from scipy.sparse import csr_array

    numbers: dict[str, int] = {}
    rows = [[numbers.setdefault(gram, len(numbers)) for gram in sorted(grams(text))] for text in texts]
    sizes: Floats = np.array([len(row) for row in rows], dtype=np.float64)
    starts = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    columns = np.array([number for row in rows for number in row], dtype=np.int64)
    table = csr_array((np.ones(len(columns)), columns, starts), shape=(len(texts), max(len(numbers), 1)))
    pairs = []
    for start in range(0, len(texts), _BLOCK):
        shared = (table[start : start + _BLOCK] @ table.T).toarray()
        union = sizes[start : start + _BLOCK, None] + sizes[None, :] - shared
        jaccard = np.divide(shared, union, out=np.zeros_like(shared), where=union > 0)
        for row, column in np.argwhere(jaccard >= least).tolist():
            if start + row < column:
                pairs.append((start + row, column, float(jaccard[row, column])))
    return pairs


def grams(text: str) -> frozenset[str]:
    """Groups of three letters of a text's words, its ends marked.

    >>> sorted(grams("Is it?"))
    [' is', ' it', 'is ', 'it ', 's i']
    """
    line = f" {' '.join(_WORDS.findall(normalised(text)))} "
    return frozenset(line[place : place + 3] for place in range(len(line) - 2))
