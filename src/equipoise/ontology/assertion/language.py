"""Which of the languages with rules a text is written in, told by its small words."""

from __future__ import annotations

import re

from equipoise.errors import UnknownNameError

LANGUAGES = ("en", "de")

_SMALL = {
    "en": (
        "a an the of and or in on at to for from with without by as is are was were be been being has have "
        "had he she it they his her their its this that these those there which who not no but both some any "
        "one also other such than then into during after before since up"
    ),
    "de": (
        "der die das den dem des ein eine einen einem einer eines und oder in im am an auf aus bei beim mit "
        "ohne von vom zu zum zur für nach seit ist sind war waren wird wurde wurden werden hat haben hatte "
        "er sie es ihr ihre sein seine nicht kein keine keinen aber auch als wie dass sich noch nur so sowie "
        "bis über unter vor durch"
    ),
}
SMALL_WORDS = {name: frozenset(words.split()) for name, words in _SMALL.items()}
"""Words that carry no finding, by language."""

_WORD = re.compile(r"[^\W\d_]+")


def guessed_language(text: str) -> str:
    """``en`` or ``de``, whichever has more of its small words in the text; English where none is known.

    >>> guessed_language("Kein Fieber, aber Husten."), guessed_language("No fever.")
    ('de', 'en')
    """
    words = [word.casefold() for word in _WORD.findall(text)]
    counts = {name: sum(word in SMALL_WORDS[name] for word in words) for name in LANGUAGES}
    # Umlauts are all but absent from English, and a note of nouns may have no small word at all.
    counts["de"] += len(re.findall("[äöüÄÖÜß]", text))
    return max(LANGUAGES, key=lambda name: counts[name])


def checked_language(name: str) -> str:
    """The language of a code such as ``de`` or ``en-GB``; one without rules is refused.

    >>> checked_language("en-GB")
    'en'
    """
    found = name.strip().casefold().replace("_", "-").partition("-")[0]
    if found not in LANGUAGES:
        raise UnknownNameError.of(
            "language with rules", name, LANGUAGES, more="there are rules for en and de"
        )
    return found
