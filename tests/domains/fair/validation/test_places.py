"""Counts of occurrences equal those of plain code and agree with the matcher."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from equipoise.domains.fair.answer_matching import answer_matcher, normalize_answer
from equipoise.domains.fair.answer_verification import count_occurrences, occurrences

RULE = answer_matcher("words")
TEXTS = st.text(alphabet="ab1 .,%-", max_size=40)


def test_a_rejected_occurrence_does_not_hide_the_next() -> None:
    assert count_occurrences("1 1", "11 1 1", RULE) == 1


def test_overlapping_occurrences_count_once() -> None:
    assert count_occurrences("ha ha", "ha ha ha", RULE) == 1
    assert count_occurrences("ha ha", "ha ha ha ha", RULE) == 2


def test_an_empty_answer_has_no_occurrences() -> None:
    assert list(occurrences("", "text")) == []


@given(st.lists(st.sampled_from(["cat", "cats", "category", "the", "cat.", "(cat)", "wildcat"]), max_size=12))
def test_word_counts_equal_those_of_a_regular_expression(words: list[str]) -> None:
    text = " ".join(words)
    assert count_occurrences("cat", text, RULE) == len(re.findall(r"\bcat\b", text))


@given(TEXTS, TEXTS)
def test_an_answer_has_an_occurrence_exactly_if_the_matcher_accepts_it(answer: str, text: str) -> None:
    normalized_answer, normalized_text = normalize_answer(answer), normalize_answer(text)
    assert (count_occurrences(normalized_answer, normalized_text, RULE) > 0) == RULE.holds(answer, text)
