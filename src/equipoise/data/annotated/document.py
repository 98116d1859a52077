"""A document and its gold: terms, what is asserted of each, and where the text says so."""

from __future__ import annotations

import re
from dataclasses import dataclass

from equipoise.errors import FormatError, did_you_mean

Place = tuple[int, int]
"""Characters from the first number up to the second, which is exclusive."""

ASSERTIONS = ("affirmed", "negated", "uncertain", "family_history", "hypothetical")
"""What a text may say of a term; the first is meant where nothing is said."""

_SPELLINGS = {
    "present": "affirmed",
    "positive": "affirmed",
    "true": "affirmed",
    "absent": "negated",
    "negative": "negated",
    "denied": "negated",
    "false": "negated",
    "possible": "uncertain",
    "suspected": "uncertain",
    "family": "family_history",
    "conditional": "hypothetical",
}
_NUMBERED = re.compile(r"([A-Za-z]+)\s*[:_]\s*(\d+)")
_SEVEN_DIGITS = ("HP", "MP", "MONDO", "GO", "UBERON")
"""Ontologies whose ids are numbers of seven digits, which spreadsheets and people shorten."""


@dataclass(frozen=True, slots=True)
class Annotation:
    """A term, what the text asserts of it, and the characters that say so (none where nobody marked them)."""

    term: str
    assertion: str = ASSERTIONS[0]
    spans: tuple[Place, ...] = ()


@dataclass(frozen=True, slots=True)
class AnnotatedDocument:
    """A text with its gold; every (term, assertion) stands once."""

    id: str
    text: str
    annotations: tuple[Annotation, ...]
    language: str = ""
    dataset: str = ""


def assertion_of(given: str) -> str:
    """One of ``ASSERTIONS`` from the spellings that corpora use.

    >>> assertion_of("PRESENT"), assertion_of("Family history")
    ('affirmed', 'family_history')
    """
    name = re.sub(r"[\s\-_]+", "_", given.strip().casefold())
    found = _SPELLINGS.get(name, name)
    if found not in ASSERTIONS:
        raise FormatError(
            f"has the assertion {given!r}",
            hint=did_you_mean(name, [*ASSERTIONS, *_SPELLINGS]) or f"write one of {', '.join(ASSERTIONS)}",
        )
    return found


def term_id(given: str) -> str:
    """An id as its ontology writes it, where the way it writes is known; else without white space around it.

    >>> term_id("hp_1250"), term_id(" HP:0001250 "), term_id("heart-12")
    ('HP:0001250', 'HP:0001250', 'heart-12')
    """
    match = _NUMBERED.fullmatch(given.strip())
    if match is None or match[1].upper() not in _SEVEN_DIGITS:
        return given.strip()
    return f"{match[1].upper()}:{int(match[2]):07d}"
