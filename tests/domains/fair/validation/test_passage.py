"""The closest passage is the one that slow and obviously right code finds as well."""

from __future__ import annotations

from difflib import SequenceMatcher

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.domains.fair.answer_verification import MIN_PASSAGE_SIMILARITY, PassageIndex

DOCUMENT = """\
The orchard was planted in 1871 by two brothers.
Their Best Alternative to a Negotiated
Agreement was to sell the land to the railway. The gross margin of the mill
came to 165% in a good year, and the harvest festival is held on the third Sunday of October.
"""

WORDS = ["apple", "barrel", "cider", "dew", "elm", "frost", "grain", "harrow", "ice", "jug"]


def nearest(answer: str, *documents: str) -> str | None:
    passage = PassageIndex(documents or [DOCUMENT]).nearest(answer)
    return passage.text if passage else None


def test_a_typing_error_is_put_right() -> None:
    assert nearest("Best Altenative to a Negotiated Agreement") == "Best Alternative to a Negotiated Agreement"


def test_a_word_too_many_or_too_few_does_not_hide_the_passage() -> None:
    assert nearest("the third last Sunday of October") == "the third Sunday of October"
    assert nearest("planted by two brothers") == "planted in 1871 by two brothers"


def test_another_word_at_the_end_is_shown_as_the_document_has_it() -> None:
    assert nearest("sell the land to the bank") == "sell the land to the railway"


def test_one_misspelt_word_finds_its_like() -> None:
    assert nearest("orchad") == "orchard"


def test_what_resembles_nothing_gets_no_passage() -> None:
    assert nearest("quantum chromodynamics") is None
    assert nearest("???") is None


def test_an_empty_document_has_no_passages() -> None:
    assert nearest("anything", "") is None
    assert nearest("anything", "  \n") is None


def test_an_answer_longer_than_the_document_is_compared_with_all_of_it() -> None:
    assert nearest("only three words here", "only three words") == "only three words"


def test_scripts_without_spaces_have_passages_too() -> None:
    assert nearest("東京都渋谷区神宮前", "本社は東京都渋谷区神南にあります。") == "東京都渋谷区神南に"


def test_passages_come_from_any_of_several_documents() -> None:
    assert nearest("the mill came to 166%", "nothing of interest", DOCUMENT) == "the mill came to 165%"


def test_a_word_that_is_repeated_does_not_shorten_the_passage() -> None:
    assert nearest("apple applex apple", "apple " * 20) == "apple apple apple"


@pytest.mark.slow
@given(st.lists(st.text("abcdefgh", min_size=4, max_size=8), min_size=20, max_size=60, unique=True), st.data())
def test_the_passage_is_as_close_as_any_window(document: list[str], data: st.DataObject) -> None:
    """A misspelt stretch of the document against every window of its length, measured by difflib."""
    length = data.draw(st.integers(3, 6))
    start = data.draw(st.integers(0, len(document) - length))
    answer = document[start : start + length]
    place = data.draw(st.integers(0, length - 1))
    answer[place] = answer[place] + "x"
    wanted = " ".join(answer)
    best = max(
        SequenceMatcher(None, " ".join(document[first : first + length]), wanted, autojunk=False).ratio()
        for first in range(len(document) - length + 1)
    )
    passage = PassageIndex([" ".join(document)]).nearest(wanted)
    assert passage is not None
    assert passage.similarity >= max(MIN_PASSAGE_SIMILARITY, best - 0.05)
    assert passage.text in " ".join(document)
