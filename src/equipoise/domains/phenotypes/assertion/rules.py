"""ConText rules of a language: assertions, cues with a direction, pseudo cues and terminators."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property


class Assertion(StrEnum):
    """The assertion status of a finding, with its experiencer."""

    AFFIRMED = "affirmed"
    """The patient has or had the finding."""
    NEGATED = "negated"
    """The patient does not have the finding."""
    UNCERTAIN = "uncertain"
    """The patient may have the finding."""
    FAMILY_HISTORY = "family_history"
    """The experiencer is a relative."""
    HYPOTHETICAL = "hypothetical"
    """The finding is possible in the future, screened for, or to be prevented."""


ASSERTIONS: tuple[Assertion, ...] = tuple(Assertion)
"""All assertions, ``affirmed`` first."""


STATEMENT_START = r"(?:(?<=[.;:\n]\x20)|(?<=\n)|(?<=\A))"
"""A regular expression that matches at the start of a statement."""


ITEM_START = r"(?:(?<=\A)|(?<=[\s,;:(/]))"
"""A regular expression that matches at the start of an item of a list."""
ITEM_END = r"(?=\s*(?:[.,;)\n]|\Z))"
"""A regular expression that matches at the end of an item of a list."""
SHORT_CUES = (
    # A hyphen before a word negates it (*-fever*); a hyphen and a space only after a comma, because it may be a bullet.
    rf"{ITEM_START}[-−–](?=[^\W\d])",
    r"(?<=[,;]\x20)[-−–](?=\x20\w)",
    rf"{ITEM_START}\([-−–]\)(?=\s*\w)",
    rf"{ITEM_START}[Øø](?=\s)",
)
"""Signs that negate the next item in every language."""
MINUS_AFTER = (rf"(?<=\w\x20)[-−–∅Ø]{ITEM_END}", r"\([-−–]\)")
"""Signs that negate the item before them: *cough +, sputum -*."""
SHORT_QUESTIONS = (rf"{ITEM_START}\?(?=\s?\w)",)
PLUS_AFTER = rf"(?<=\w\x20)\++{ITEM_END}"
PLUS_SIGNS = (r"\+(?=\s?\w)", r"\(\+\)", r"\+ve")
MEASUREMENT = r"\d+(?:[.,]\d+)?\s?(?:cm|mm|kg|%)"
"""An item with a measurement is affirmed: *no edema, hepatomegaly 3 cm*."""


class CueDirection(StrEnum):
    """The direction of a cue's scope."""

    FORWARD = "forward"
    BACKWARD = "backward"
    BOTH = "both"
    ITEM = "item"
    """Forward, up to the next comma or conjunction."""
    SECTION = "section"
    """A heading: the scope is its sentence if the line continues, otherwise the text up to the next heading."""


@dataclass(frozen=True)
class CueGroup:
    """Cue phrases with the same assertion and direction; each is a regular expression of whole words.

    ``part_of_term`` marks words that occur in term labels, as in *absence of the thumb*. Such a cue does not
    apply to a span that contains it.
    """

    assertion: Assertion
    direction: CueDirection
    phrases: tuple[str, ...]
    part_of_term: bool = False
    ends_at_comma: bool = False
    """Whether a comma ends the scope, unless a conjunction follows: *rhinitis without fever, cough*."""

    starts_phrase: bool = False
    """Whether the cue ends the scope of an earlier negation or uncertainty: *possible pneumonia without effusion*."""

    @cached_property
    def matcher(self) -> PhraseMatcher:
        """Any of the phrases."""
        return PhraseMatcher(self.phrases)


@dataclass(frozen=True)
class AssertionRules:
    """The ConText rules of one language."""

    cues: tuple[CueGroup, ...]
    pseudo: tuple[str, ...]
    """Pseudo cues: phrases that contain the words of a cue but assert nothing."""
    terminators: tuple[str, ...]
    """Terminators of every scope."""
    terminators_by_assertion: Mapping[Assertion, tuple[str, ...]] = field(default_factory=dict)
    """Additional terminators per assertion: a mention of the patient ends a family-history scope."""
    conjunctions: tuple[str, ...] = ()
    """Words that join the items of a list."""
    affirmed_cues: tuple[str, ...] = ()
    """Phrases that affirm a finding at the end of a clause, such as *is present*."""
    patient: tuple[str, ...] = ()
    """Words for the patient; a sentence that starts with one is not about a relative."""
    bare_results: tuple[str, ...] = ()
    """Results that name no finding if they are alone, as after a heading."""

    @cached_property
    def affirmed_matcher(self) -> PhraseMatcher:
        """Any affirming phrase."""
        return PhraseMatcher(self.affirmed_cues)

    @cached_property
    def patient_pattern(self) -> re.Pattern[str]:
        """Any word for the patient."""
        return phrase_pattern(self.patient)

    @cached_property
    def bare_result_pattern(self) -> re.Pattern[str]:
        """Any bare result."""
        return phrase_pattern(self.bare_results)

    @cached_property
    def pseudo_matcher(self) -> PhraseMatcher:
        """Any of the pseudo cues."""
        return PhraseMatcher(self.pseudo)

    @cached_property
    def terminator_matcher(self) -> PhraseMatcher:
        """The terminators of every scope."""
        return PhraseMatcher(self.terminators)

    @cached_property
    def terminator_matchers(self) -> dict[Assertion, PhraseMatcher]:
        """The additional terminators by assertion; assertions with the same ones share a matcher."""
        matchers = {phrases: PhraseMatcher(phrases) for phrases in self.terminators_by_assertion.values()}
        return {kind: matchers[phrases] for kind, phrases in self.terminators_by_assertion.items()}

    @cached_property
    def conjunction_pattern(self) -> re.Pattern[str]:
        """Any conjunction."""
        return phrase_pattern(self.conjunctions)

    @cached_property
    def separator_pattern(self) -> re.Pattern[str]:
        """A comma or a conjunction."""
        return re.compile(rf",|\b(?:{'|'.join(self.conjunctions)})(?!\w)", re.IGNORECASE)

    @cached_property
    def list_pattern(self) -> re.Pattern[str]:
        """A comma or a conjunction at the end of a text."""
        return re.compile(rf"(?:,|\b(?:{'|'.join(self.conjunctions)}))\s*\Z", re.IGNORECASE)


def phrase_pattern(phrases: Iterable[str]) -> re.Pattern[str]:
    """A pattern that matches any of the phrases as whole words; a space matches any white space.

    >>> phrase_pattern(["no", "no sign of"]).findall("No sign\\nof fever, no cough, known")
    ['No sign\\nof', 'no']
    """
    longest_first = sorted(phrases, key=len, reverse=True)
    body = "|".join(phrase.replace(" ", r"\s+") for phrase in longest_first)
    # The shorter start is the same for phrases that start with a letter, and takes less than half of the time.
    start = r"(?<!\w)" if all(map(_starts_with_letter, longest_first)) else r"(?:(?<!\w)|(?=\W))"
    return re.compile(rf"{start}(?:{body})(?:(?!\w)|(?<=\W))", re.IGNORECASE)


def _starts_with_letter(phrase: str) -> bool:
    """Whether every match of a regular expression starts with a letter."""
    if not phrase.startswith("(?:"):
        return phrase[:1].isalpha()
    end = _end_of_atom(phrase, 0)
    inner = all(map(_starts_with_letter, _split_alternatives(phrase[3 : end - 1])))
    return inner and (phrase[end : end + 1] not in ("?", "*") or _starts_with_letter(phrase[end + 1 :]))


class PhraseMatcher:
    """Finds phrases as whole words. A phrase is tried only if the text has the letters that it needs.

    Most texts have few of the phrases, and looking for fixed letters takes a small part of the time of a regular
    expression. Matches of different phrases may overlap; those of one phrase do not.

    >>> [match[0] for match in PhraseMatcher(["no", "no sign of"]).finditer("No sign of fever")]
    ['No', 'No sign of']
    """

    def __init__(self, phrases: Iterable[str]) -> None:
        by_letters: dict[tuple[str, ...], list[str]] = {}
        for phrase in phrases:
            by_letters.setdefault(required_letters(phrase), []).append(phrase)
        # Phrases without known letters share a pattern; the others may overlap, and have one each.
        others = by_letters.pop((), [])
        self._patterns = [
            (letters, phrase_pattern([phrase])) for letters, listed in by_letters.items() for phrase in listed
        ]
        self._always = phrase_pattern(others) if others else None

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        """All matches, phrase by phrase."""
        lowered = text.lower()
        for letters, pattern in self._patterns:
            for part in letters:
                if part in lowered:
                    yield from pattern.finditer(text)
                    break
        if self._always is not None:
            yield from self._always.finditer(text)


def required_letters(phrase: str) -> tuple[str, ...]:
    """Runs of letters of which every match of a regular expression has at least one; empty if none are known.

    >>> required_letters("no longer(?: has)?"), required_letters("signs? of"), required_letters("(?:is|was) seen")
    (('longer',), ('sign',), ('seen',))
    >>> required_letters("(?:his|her) (?:mother|father)"), required_letters(r"\\d+")
    (('mother', 'father'), ())
    """
    alternatives = _split_alternatives(phrase)
    if len(alternatives) > 1:
        parts = [required_letters(alternative) for alternative in alternatives]
        return tuple(dict.fromkeys(letters for part in parts for letters in part)) if all(parts) else ()
    options: list[tuple[str, ...]] = []
    run, position = "", 0
    while position < len(phrase):
        letter = phrase[position]
        end = _end_of_atom(phrase, position)
        is_optional = phrase[end : end + 1] in ("?", "*", "{") and end < len(phrase)
        if letter.isalpha() and not is_optional:
            run += letter.lower()
        else:
            options.append((run,))
            run = ""
            if phrase.startswith("(?:", position) and not is_optional:
                options.append(required_letters(phrase[position + 3 : end - 1]))
        position = end
    options.append((run,))
    known = [option for option in options if option and all(option)]
    return max(known, key=lambda option: (min(map(len, option)), -len(option)), default=())


def _end_of_atom(phrase: str, position: int) -> int:
    """The end of the character, escape, character class or group that starts at a position."""
    if phrase[position] == "\\":
        return position + 2
    if phrase[position] == "[":
        return phrase.index("]", position + 2) + 1
    if phrase[position] != "(":
        return position + 1
    position += 1
    while phrase[position] != ")":
        position = _end_of_atom(phrase, position)
    return position + 1


def _split_alternatives(phrase: str) -> list[str]:
    """The alternatives of a regular expression, outside of groups and classes."""
    parts, start, position = [], 0, 0
    while position < len(phrase):
        if phrase[position] == "|":
            parts.append(phrase[start:position])
            start = position + 1
        position = _end_of_atom(phrase, position)
    return [*parts, phrase[start:]]
