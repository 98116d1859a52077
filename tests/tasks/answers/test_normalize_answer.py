"""Normalisation of answers and texts before comparison."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.domains.fair.answer_matching import normalize_answer


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("Straße", "STRASSE"),
        ("cafe\u0301", "Café"),
        ("ﬁne", "fine"),
        ("６５％", "65%"),
        ("“quoted” «words»", '"quoted" "words"'),
        ("rock ’n’ roll", "rock 'n' roll"),
        ("1990–1995 — about", "1990-1995 - about"),
        ("−40", "-40"),
        ("a\u00a0b\n\tc", "a b c"),
        ("sour\u00addough zero\u200bwidth \ufeffmark", "sourdough zerowidth mark"),
        ("Equipoise™ and Foo®", "equipoise and foo"),
        ("5′ 10″", "5' 10\""),
    ],
)
def test_equivalent_spellings_are_equal_after_normalisation(left, right):
    assert normalize_answer(left) == normalize_answer(right)


def test_case_and_white_space_can_be_kept():
    assert normalize_answer("A  b", fold_case=False) == "A b"
    assert normalize_answer("A  b", collapse_spaces=False) == "a  b"


@given(st.text())
def test_normalisation_is_idempotent(text):
    once = normalize_answer(text)
    assert normalize_answer(once) == once


@given(st.text())
def test_normalised_text_is_in_nfkc_and_contains_no_separator(text):
    for spaces in (True, False):
        normalised = normalize_answer(text, collapse_spaces=spaces)
        assert "\0" not in normalised
    assert unicodedata.is_normalized("NFKC", normalize_answer(text))


@given(st.text(st.characters(max_codepoint=127)))
def test_ascii_is_only_folded_and_collapsed(text):
    assert normalize_answer(text) == " ".join(text.replace("`", "'").replace("\0", "").casefold().split())
