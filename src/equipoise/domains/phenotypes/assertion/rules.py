"""The form of the rules: cues with a direction, words that look like cues, and words that end a scope."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

# What a text says of a finding: that it is there, that it is not, or something between.


class Assertion(StrEnum):
    """Who has a finding, and how sure the text is of it."""

    AFFIRMED = "affirmed"
    """The patient has it, or had it."""
    NEGATED = "negated"
    """The patient does not have it."""
    UNCERTAIN = "uncertain"
    """The patient may have it."""
    FAMILY_HISTORY = "family_history"
    """The text speaks of a relative, who may have it or not."""
    HYPOTHETICAL = "hypothetical"
    """It may come, is looked for, or is to be prevented."""


ASSERTIONS: tuple[Assertion, ...] = tuple(Assertion)
"""All of them, ``affirmed`` first."""


STATEMENT_START = r"(?:(?<=[.;:\n]\x20)|(?<=\n)|(?<=\A))"
"""Where a statement begins, as a part of a phrase."""


class CueDirection(StrEnum):
    """Which way a cue looks."""

    FORWARD = "forward"
    BACKWARD = "backward"
    BOTH = "both"
    SECTION = "section"
    """A heading: its sentence, where the line goes on behind that, else all up to the next heading."""


@dataclass(frozen=True)
class CueGroup:
    """Phrases that assert the same of what they reach; each is a regular expression of whole words.

    ``part_of_term`` marks words that terms are themselves made of, as in *absence of the thumb*: they say
    nothing about a span that they lie in.
    """

    assertion: Assertion
    reach: CueDirection
    phrases: tuple[str, ...]
    part_of_term: bool = False

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Any of the phrases, longer ones first."""
        return phrase_pattern(self.phrases)


@dataclass(frozen=True)
class AssertionRules:
    """All that is known of a language."""

    cues: tuple[CueGroup, ...]
    pseudo: tuple[str, ...]
    """Phrases that hold a cue's words and mean something else."""
    ends: tuple[str, ...]
    """Words that end every scope."""
    ends_of: Mapping[Assertion, tuple[str, ...]] = field(default_factory=dict)
    """Words that end the scopes of some assertions, as the patient ends what was said of a relative."""
    joining: tuple[str, ...] = ()
    """Words that join the members of a list."""
    said: tuple[str, ...] = ()
    """What ends a statement that something is there, as *is present* does."""
    patient: tuple[str, ...] = ()
    """Who the text is about: such a word opens a sentence that is of no relative."""
    bare: tuple[str, ...] = ()
    """Results that name no finding where they stand alone, as behind a heading."""

    @cached_property
    def said_pattern(self) -> re.Pattern[str]:
        """Any end of a statement that something is there."""
        return phrase_pattern(self.said)

    @cached_property
    def patient_pattern(self) -> re.Pattern[str]:
        """Any word for the patient."""
        return phrase_pattern(self.patient)

    @cached_property
    def bare_pattern(self) -> re.Pattern[str]:
        """Any result that names no finding."""
        return phrase_pattern(self.bare)

    @cached_property
    def pseudo_pattern(self) -> re.Pattern[str]:
        """Any of the pseudo cues."""
        return phrase_pattern(self.pseudo)

    @cached_property
    def end_patterns(self) -> dict[Assertion, re.Pattern[str]]:
        """What ends a scope, by assertion."""
        return {kind: phrase_pattern((*self.ends, *self.ends_of.get(kind, ()))) for kind in Assertion}

    @cached_property
    def joint_pattern(self) -> re.Pattern[str]:
        """A list word, somewhere."""
        return phrase_pattern(self.joining)

    @cached_property
    def list_pattern(self) -> re.Pattern[str]:
        """A comma or a list word at the very end of a stretch of text."""
        return re.compile(rf"(?:,|\b(?:{'|'.join(self.joining)}))\s*\Z", re.IGNORECASE)


def phrase_pattern(phrases: Iterable[str]) -> re.Pattern[str]:
    """Any of some phrases as whole words; a space in a phrase is any white space.

    >>> phrase_pattern(["no", "no sign of"]).findall("No sign\\nof fever, no cough, known")
    ['No sign\\nof', 'no']
    """
    longest_first = sorted(phrases, key=len, reverse=True)
    body = "|".join(phrase.replace(" ", r"\s+") for phrase in longest_first)
    return re.compile(rf"(?:(?<!\w)|(?=\W))(?:{body})(?:(?!\w)|(?<=\W))", re.IGNORECASE)
