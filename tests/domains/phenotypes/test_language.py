"""Languages of texts and of segments of texts."""

from __future__ import annotations

from itertools import pairwise, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.domains.phenotypes.language import (
    guess_language,
    language_segments,
    most_probable_languages,
    validate_language,
)
from equipoise.errors import UnknownNameError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The boy was seen for seizures.", "en"),
        ("Der Junge wurde wegen Krampfanfällen vorgestellt.", "de"),
        ("Krampfanfälle, Kleinwüchsigkeit", "de"),
        ("", "en"),
        ("Ataxia", "en"),
        ("Arterielle Hypertonie", "de"),
        ("Knochenbrüche", "de"),
        ("Short stature, hearing loss", "en"),
    ],
)
def test_the_language_is_guessed(text: str, expected: str) -> None:
    assert guess_language(text) == expected


def test_a_region_is_removed_from_a_language() -> None:
    assert validate_language(" DE_at ") == "de"


def test_a_mistyped_language_gets_a_suggestion() -> None:
    with pytest.raises(UnknownNameError) as error_info:
        validate_language("dee")
    assert error_info.value.hint == "did you mean de?"


@pytest.mark.parametrize(
    ("text", "german"),
    [
        (
            "She was admitted with fever. Diagnoses: arterielle Hypertonie, obesity. She is well.",
            ["arterielle Hypertonie, "],
        ),
        ("Der Junge hat eine Skoliose. There is no evidence of the disease.", ["Der Junge hat eine Skoliose. "]),
        ("The boy felt angst and has a doppelganger, which is not of any concern to the doctor.", []),
        ("Die Familie ist bekannt.", ["Die Familie ist bekannt."]),
    ],
)
def test_segments_in_another_language_are_detected(text: str, german: list[str]) -> None:
    assert [text[start:end] for start, end, language in language_segments(text) if language == "de"] == german


@given(st.text(alphabet="der the und and Fieber fever,. ", max_size=80))
def test_segments_cover_the_text_and_differ_from_their_neighbours(text: str) -> None:
    segments = language_segments(text)
    assert "".join(text[start:end] for start, end, _ in segments) == text
    assert all(first[2] != second[2] for first, second in pairwise(segments))


def best_sequence(evidence: list[int], *, is_german: bool) -> float:
    """The value of the best of all sequences of languages."""
    document_language = [is_german]
    return max(
        sum(word if german else -word for word, german in zip(evidence, states, strict=True))
        - 1.5 * sum(first != second for first, second in pairwise([*document_language, *states, *document_language]))
        for states in product((False, True), repeat=len(evidence))
    )


@given(st.lists(st.sampled_from([-1, 1]), min_size=1, max_size=9), st.booleans())
def test_the_sequence_of_languages_is_optimal(evidence: list[int], is_german: bool) -> None:
    states = most_probable_languages(evidence, is_german=is_german)
    changes = sum(first != second for first, second in pairwise([is_german, *states, is_german]))
    value = sum(word if german else -word for word, german in zip(evidence, states, strict=True)) - 1.5 * changes
    assert value == best_sequence(evidence, is_german=is_german)
