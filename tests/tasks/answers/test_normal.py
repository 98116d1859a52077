"""The one form in which answers and texts are compared."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.domains.fair.answer_matching import normalize_answer


@pytest.mark.parametrize(
    ("one", "other"),
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
def test_what_people_read_as_equal_is_equal(one, other):
    assert normalize_answer(one) == normalize_answer(other)


def test_case_and_white_space_can_be_kept():
    assert normalize_answer("A  b", fold_case=False) == "A b"
    assert normalize_answer("A  b", collapse_spaces=False) == "a  b"


@given(st.text())
def test_normalising_twice_changes_nothing(text):
    once = normalize_answer(text)
    assert normalize_answer(once) == once


@given(st.text())
def test_the_result_is_in_nfkc_and_holds_no_separator(text):
    for spaces in (True, False):
        normal = normalize_answer(text, collapse_spaces=spaces)
        assert "\0" not in normal
    assert unicodedata.is_normalized("NFKC", normalize_answer(text))


@given(st.text(st.characters(max_codepoint=127)))
def test_ascii_is_only_folded_and_collapsed(text):
    assert normalize_answer(text) == " ".join(text.replace("`", "'").replace("\0", "").casefold().split())
