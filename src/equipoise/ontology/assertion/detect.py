"""What a text says of its spans: affirmed, negated, uncertain, of a relative, or not yet so."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from equipoise.errors import InputError
from equipoise.ontology.assertion.kinds import Assertion
from equipoise.ontology.assertion.language import SMALL_WORDS, checked_language
from equipoise.ontology.assertion.languages import RULES
from equipoise.ontology.assertion.scope import Cue, CueTable, Span

_WORD = re.compile(r"\w+")
_OUTRANKING = (Assertion.HYPOTHETICAL, Assertion.FAMILY_HISTORY)


@dataclass(frozen=True, slots=True)
class Judgement:
    """What is said of a span, and the words that say so."""

    assertion: Assertion
    cues: tuple[Span, ...] = ()


def detect(text: str, spans: Sequence[Span], language: str = "en") -> list[Assertion]:
    """For each span what the text says of it.

    >>> text = "No fever or rash, but cough. His mother has asthma."
    >>> places = [(text.index(word), text.index(word) + len(word)) for word in ("rash", "cough", "asthma")]
    >>> [str(found) for found in detect(text, places)]
    ['negated', 'affirmed', 'family_history']
    """
    return [judgement.assertion for judgement in judged(text, spans, language)]


def judged(text: str, spans: Sequence[Span], language: str = "en") -> list[Judgement]:
    """The same with the cues that decided.

    A cue speaks of a span when more than half of the span's words lie in its scope: small words and words of
    cues do not count. Where several speak of it, what is hypothetical or said of a relative goes before
    negation and doubt, and of these the earlier one wins, as it governs the later: *possibly no fever* is
    uncertain, *no sign of suspected fever* is negated.
    """
    code = checked_language(language)
    for start, end in spans:
        if not 0 <= start <= end <= len(text):
            raise InputError(
                f"the span {start} to {end} does not lie in a text of {len(text)} characters",
                hint="spans count characters from 0, and the end is exclusive",
            )
    table = CueTable(text, RULES[code])
    return [_judged(text, span, table.near(span), SMALL_WORDS[code]) for span in spans]


def _judged(text: str, span: Span, cues: Sequence[Cue], small: frozenset[str]) -> Judgement:
    start, end = span
    telling = [cue for cue in cues if not (cue.part_of_term and start <= cue.start and cue.end <= end)]
    words = _content(text, span, telling, small)
    speaking: dict[Assertion, list[Cue]] = {}
    for kind in Assertion:
        own = [cue for cue in telling if cue.assertion is kind]
        reached = [[cue for cue in own if cue.reaches(word)] for word in words]
        if 2 * sum(map(bool, reached)) > len(words):
            speaking[kind] = [cue for each in reached for cue in each]
    if not speaking:
        return Judgement(Assertion.AFFIRMED)
    first = next((kind for kind in _OUTRANKING if kind in speaking), None)
    kind = first or min(speaking, key=lambda each: min(cue.start for cue in speaking[each]))
    return Judgement(kind, tuple(sorted({(cue.start, cue.end) for cue in speaking[kind]})))


def _content(text: str, span: Span, cues: Sequence[Cue], small: frozenset[str]) -> list[int]:
    """Where the words of a span begin that can be a finding; all words, where it has no such."""
    inside = [cue for cue in cues if cue.start < span[1] and span[0] < cue.end]
    every = [
        match.start()
        for match in _WORD.finditer(text, *span)
        if not any(cue.start <= match.start() < cue.end for cue in inside)
    ]
    telling = [word for word in every if _WORD.match(text, word)[0].casefold() not in small]  # type: ignore[index]
    return telling or every
