"""Places are counted as slow code counts them, and agree with what the matcher finds."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from equipoise.recipes.fair.validation.places import occurrences, places
from equipoise.tasks.answers.matcher import matcher
from equipoise.tasks.answers.normal import normalised

RULE = matcher("words")
TEXTS = st.text(alphabet="ab1 .,%-", max_size=40)


def test_a_rejected_place_does_not_hide_the_next() -> None:
    assert places("1 1", "11 1 1", RULE) == 1


def test_places_that_overlap_count_once() -> None:
    assert places("ha ha", "ha ha ha", RULE) == 1
    assert places("ha ha", "ha ha ha ha", RULE) == 2


def test_nothing_stands_nowhere() -> None:
    assert list(occurrences("", "text")) == []


@given(st.lists(st.sampled_from(["cat", "cats", "category", "the", "cat.", "(cat)", "wildcat"]), max_size=12))
def test_words_are_counted_as_a_regular_expression_counts_them(words: list[str]) -> None:
    text = " ".join(words)
    assert places("cat", text, RULE) == len(re.findall(r"\bcat\b", text))


@given(TEXTS, TEXTS)
def test_an_answer_has_a_place_exactly_where_the_matcher_finds_it(answer: str, text: str) -> None:
    plain, whole = normalised(answer), normalised(text)
    assert (places(plain, whole, RULE) > 0) == RULE.holds(answer, text)
