"""The closest passage, compared with a plain search over all windows."""

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


def test_a_misspelt_answer_gets_the_passage_of_the_document() -> None:
    assert nearest("Best Altenative to a Negotiated Agreement") == "Best Alternative to a Negotiated Agreement"


def test_an_additional_or_missing_word_does_not_change_the_passage() -> None:
    assert nearest("the third last Sunday of October") == "the third Sunday of October"
    assert nearest("planted by two brothers") == "planted in 1871 by two brothers"


def test_a_different_last_word_gets_the_words_of_the_document() -> None:
    assert nearest("sell the land to the bank") == "sell the land to the railway"


def test_one_misspelt_word_gets_the_word_of_the_document() -> None:
    assert nearest("orchad") == "orchard"


def test_an_answer_without_similar_words_gets_no_passage() -> None:
    assert nearest("quantum chromodynamics") is None
    assert nearest("???") is None


def test_an_empty_document_has_no_passages() -> None:
    assert nearest("anything", "") is None
    assert nearest("anything", "  \n") is None


def test_an_answer_longer_than_the_document_is_compared_with_the_whole_document() -> None:
    assert nearest("only three words here", "only three words") == "only three words"


def test_scripts_without_spaces_have_passages() -> None:
    assert nearest("東京都渋谷区神宮前", "本社は東京都渋谷区神南にあります。") == "東京都渋谷区神南に"


def test_passages_come_from_any_of_several_documents() -> None:
    assert nearest("the mill came to 166%", "nothing of interest", DOCUMENT) == "the mill came to 165%"


def test_a_repeated_word_does_not_shorten_the_passage() -> None:
    assert nearest("apple applex apple", "apple " * 20) == "apple apple apple"


@pytest.mark.slow
@given(st.lists(st.text("abcdefgh", min_size=4, max_size=8), min_size=20, max_size=60, unique=True), st.data())
def test_the_passage_is_as_similar_as_any_window(document: list[str], data: st.DataObject) -> None:
    """A misspelt part of the document, compared by difflib with every window of its length."""
    length = data.draw(st.integers(3, 6))
    start = data.draw(st.integers(0, len(document) - length))
    answer = document[start : start + length]
    position = data.draw(st.integers(0, length - 1))
    answer[position] = answer[position] + "x"
    misspelt = " ".join(answer)
    best = max(
        SequenceMatcher(None, " ".join(document[first : first + length]), misspelt, autojunk=False).ratio()
        for first in range(len(document) - length + 1)
    )
    passage = PassageIndex([" ".join(document)]).nearest(misspelt)
    assert passage is not None
    assert passage.similarity >= max(MIN_PASSAGE_SIMILARITY, best - 0.05)
    assert passage.text in " ".join(document)
