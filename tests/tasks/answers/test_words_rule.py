"""The rule "words": matches within one text at the boundaries of words and numbers."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.domains.fair.answer_matching import WholeWordMatcher, answer_matcher, normalize_answer
from equipoise.errors import ParameterError, UnknownNameError


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("65%", "It rose by 65%."),
        ("65%", "(65%)"),
        ("art", "the art of baking"),
        ("Art", "THE ART"),
        ("C++", "written in C++, mostly"),
        ("C++", "C++"),
        ("$5", "US$5 each"),
        ("$5", "costs $5."),
        ("-40", "at −40 degrees"),
        ("e.g.", "bread, e.g. rye"),
        ("dog", "the dog's bowl"),
        ("2024", "on 12.05.2024"),
        ("2", "rows 1,2,3"),
        ("1,234,567", "sold 1,234,567 loaves"),
        ("1.5", "by 1.5."),
        ("5", "1990, 5 loaves"),
        ("京都", "在京都市内"),
        ("5", "第5章"),
        ("서울", "서울은 크다"),
        ("กรุงเทพ", "อยู่กรุงเทพมหานคร"),
        ("Best  alternative\nto", "the best alternative to a deal"),
        ("it's", "It’s late"),
        ("well-known", "a well‑known baker"),
        (".NET", "the .NET runtime"),
        ("#1", "ranked #1 overall"),
        ("naïve", "a nai\u0308ve rule"),
    ],
)
def test_text_holds_the_answer(answer, text):
    assert answer_matcher("words").holds(answer, text)


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("65%", "It rose by 165%."),
        ("65%", "by 1.65%"),
        ("65%", "by 0,65%"),
        ("art", "party"),
        ("art", "start"),
        ("art", "arts"),
        ("$5", "$50"),
        ("$5", "$5.50"),
        ("$5", "$5,000"),
        ("5", "2.5"),
        ("2", "2.5"),
        ("567", "1,234,567"),
        ("234", "1,234,567.8"),
        ("1995", "19956"),
        ("-40", "20-40 degrees"),
        ("art_1", "art_12"),
        ("x", "x\u0302 is not x\u0302"),
        ("rye wheat", "rye"),
        ("rye wheat", "rye. wheat"),
        ("cafe", "café"),
        ("\u00ad", "anything"),
        ("anything", ""),
    ],
)
def test_text_does_not_hold_the_answer(answer, text):
    assert not answer_matcher("words").holds(answer, text)


def test_answers_across_two_texts_do_not_match():
    assert not len(answer_matcher("words").build_index(["dark rye", "bread rolls"]).holders("rye bread"))


@pytest.mark.parametrize(
    ("answer", "text", "is_held"),
    [
        ("international", "an inter-\nnational treaty", True),
        ("international", "an inter\u00ad\n   national treaty", True),
        ("well-known", "a well-\nknown case", True),
        ("well-known international", "a well-\r\nknown inter-\nnational treaty", True),
        ("1995-1998", "the years 1995-\n1998", True),
        ("19951998", "the years 1995-\n1998", False),
        ("national", "an inter-\nnational treaty", True),  # without joining, it is a separate word
        ("international", "an inter- national treaty", False),
        ("international", "an inter-\n\x0cstate treaty", False),
    ],
)
def test_words_hyphenated_at_line_ends_are_joined(answer, text, is_held):
    assert answer_matcher("words").holds(answer, text) is is_held


def test_hyphenated_texts_keep_their_index():
    index = answer_matcher("words").build_index(["rye", "inter-\nnational", "wheat", "an international inter-\nval"])
    assert index.holders("international").tolist() == [1, 3]
    assert index.holders("interval").tolist() == [3]
    assert index.holders_of_any(["wheat", "rye", "international"]).tolist() == [0, 1, 2, 3]
    assert index.first_hit_of_any(["interval", "wheat"], [0, 1, 2, 3]) == 3


def test_the_first_hit_is_the_position_of_the_first_matching_text():
    rule = answer_matcher("words")
    assert rule.first_hit("rye", ["wheat", "rye", "rye"]) == 2
    assert rule.first_hit("rye", ["wheat"]) is None
    assert rule.first_hit("rye", []) is None


@pytest.mark.parametrize(
    ("answer", "text", "is_held"),
    [
        ("$5", "costs $ 5", True),
        ("$5", "costs 5 dollars", True),
        ("5 €", "kostet 5€", True),
        ("€5", "costs $5", False),
        ("$5", "costs $50", False),
        ("$5", "costs 15", False),
        ("$", "costs 5", False),
    ],
)
def test_currency_is_an_option(answer, text, is_held):
    assert answer_matcher("words", currency=True).holds(answer, text) is is_held


@pytest.mark.parametrize(
    ("answer", "text", "is_held"),
    [
        ("one two three four five", "five and four, two with one", True),
        ("one two three four five", "five and four, two", False),
        ("one two", "one", False),
        ("rye rye rye wheat", "rye", False),
        ("...", "rye", False),
    ],
)
def test_fuzzy_matching_is_an_option(answer, text, is_held):
    assert answer_matcher("words", fuzzy=True).holds(answer, text) is is_held
    assert not answer_matcher("words").holds(answer, text)


def test_the_threshold_is_an_option():
    assert answer_matcher("words", fuzzy=True, threshold=0.5).holds("one two", "one")


def test_names_show_the_options_that_differ_from_the_default():
    assert answer_matcher().name == "words"
    assert answer_matcher("words", currency=True, threshold=0.5).name == "words(currency=True, threshold=0.5)"
    assert answer_matcher("embedding-eval").name == "embedding-eval"


def test_unknown_names_and_options_raise_errors_with_a_suggestion():
    with pytest.raises(UnknownNameError) as error:
        answer_matcher("word")
    assert error.value.hint == "did you mean words?"
    with pytest.raises(ParameterError) as error:
        answer_matcher("words", curency=True)
    assert error.value.hint == "did you mean currency?"
    with pytest.raises(ParameterError):
        answer_matcher("words", fuzzy="yes")
    with pytest.raises(ParameterError) as error:
        answer_matcher("words", threshold=80)
    assert error.value.code == "E310"
    with pytest.raises(ParameterError):
        answer_matcher(WholeWordMatcher(), fuzzy=True)
    assert answer_matcher(WholeWordMatcher()) == WholeWordMatcher()


PIECES = [
    "art",
    "p",
    "rye",
    "1",
    "65",
    "5",
    "%",
    "$",
    "-",
    ".",
    ",",
    " ",
    " ",
    "_",
    "'",
    "京",
    "都",
    "é",
    "\n",
]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=12).map("".join)


@given(st.lists(TEXTS, max_size=8), st.lists(TEXTS, max_size=5), st.booleans(), st.booleans())
def test_the_index_agrees_with_a_loop_over_texts(texts, answers, currency, fuzzy):
    rule = answer_matcher("words", currency=currency, fuzzy=fuzzy)
    index = rule.build_index(texts)
    holders_per_answer = [index.holders(answer) for answer in answers]
    for answer, holders in zip(answers, holders_per_answer, strict=True):
        assert holders.dtype == np.int64
        assert holders.tolist() == [
            index_of_text for index_of_text, text in enumerate(texts) if rule.holds(answer, text)
        ]


def matches_regular_expression(answer: str, text: str) -> bool:
    """The rule for ASCII letters and digits only, by the word boundaries of regular expressions."""
    normalised = normalize_answer(answer)
    left, right = (r"\b" if edge.isalnum() or edge == "_" else "" for edge in (normalised[:1], normalised[-1:]))
    return bool(normalised) and re.search(left + re.escape(normalised) + right, normalize_answer(text)) is not None


ASCII = st.lists(st.sampled_from(["art", "p", "rye", "1", "65", "%", "$", " ", "_", "'", "!"]), max_size=12).map(
    "".join
)


@given(ASCII, ASCII)
def test_word_boundaries_agree_with_regular_expressions(answer, text):
    assert answer_matcher("words").holds(answer, text) == matches_regular_expression(answer, text)


@given(TEXTS, TEXTS, TEXTS)
def test_answers_between_spaces_are_held_in_longer_texts(answer, before, after):
    normalised = normalize_answer(answer)
    if normalised:
        assert answer_matcher("words").holds(answer, f"{before} {answer} {after}")
