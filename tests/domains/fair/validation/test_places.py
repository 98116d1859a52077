"""Places are counted as slow code counts them, and agree with what the matcher finds."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from equipoise.domains.fair.answer_matching import answer_matcher, normalize_answer
from equipoise.domains.fair.answer_verification import count_occurrences, occurrences

RULE = answer_matcher("words")
TEXTS = st.text(alphabet="ab1 .,%-", max_size=40)


def test_a_rejected_place_does_not_hide_the_next() -> None:
    assert count_occurrences("1 1", "11 1 1", RULE) == 1


def test_places_that_overlap_count_once() -> None:
    assert count_occurrences("ha ha", "ha ha ha", RULE) == 1
    assert count_occurrences("ha ha", "ha ha ha ha", RULE) == 2


def test_nothing_stands_nowhere() -> None:
    assert list(occurrences("", "text")) == []


@given(st.lists(st.sampled_from(["cat", "cats", "category", "the", "cat.", "(cat)", "wildcat"]), max_size=12))
def test_words_are_counted_as_a_regular_expression_counts_them(words: list[str]) -> None:
    text = " ".join(words)
    assert count_occurrences("cat", text, RULE) == len(re.findall(r"\bcat\b", text))


@given(TEXTS, TEXTS)
def test_an_answer_has_a_place_exactly_where_the_matcher_finds_it(answer: str, text: str) -> None:
    plain, whole = normalize_answer(answer), normalize_answer(text)
    assert (count_occurrences(plain, whole, RULE) > 0) == RULE.holds(answer, text)
