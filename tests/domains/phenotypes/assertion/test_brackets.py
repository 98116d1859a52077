"""Brackets that close and open what a place lies in, against counting character by character."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from equipoise.domains.phenotypes.assertion.detect import BracketIndex


def slow_closing(text: str, start: int) -> int | None:
    depth = 0
    for place in range(start, len(text)):
        depth += (text[place] in "([") - (text[place] in ")]")
        if depth < 0:
            return place
    return None


def slow_opening(text: str, end: int) -> int | None:
    depth = 0
    for place in range(end - 1, -1, -1):
        depth += (text[place] in ")]") - (text[place] in "([")
        if depth < 0:
            return place + 1
    return None


@given(st.text(alphabet="a()[]", max_size=30))
def test_every_place_finds_its_brackets(text: str) -> None:
    brackets = BracketIndex(text)
    places = range(len(text) + 1)
    assert [brackets.closing(place) for place in places] == [slow_closing(text, place) for place in places]
    assert [brackets.opening(place) for place in places] == [slow_opening(text, place) for place in places]
