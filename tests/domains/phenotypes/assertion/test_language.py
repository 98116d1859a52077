"""Languages are told apart by their small words."""

from __future__ import annotations

import pytest

from equipoise.domains.phenotypes.assertion.detect import guess_language, validate_language
from equipoise.errors import UnknownNameError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The boy was seen for seizures.", "en"),
        ("Der Junge wurde wegen Krampfanfällen vorgestellt.", "de"),
        ("Krampfanfälle, Kleinwüchsigkeit", "de"),
        ("", "en"),
        ("Ataxia", "en"),
    ],
)
def test_the_language_is_guessed(text: str, expected: str) -> None:
    assert guess_language(text) == expected


def test_a_region_makes_no_other_language() -> None:
    assert validate_language(" DE_at ") == "de"


def test_a_mistyped_language_gets_a_suggestion() -> None:
    with pytest.raises(UnknownNameError) as caught:
        validate_language("dee")
    assert caught.value.hint == "did you mean de?"
