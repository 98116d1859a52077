"""The form of the rules: cues with a direction, words that look like cues, and words that end a scope."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

from equipoise.ontology.assertion.kinds import Assertion

OPENING = r"(?:(?<=[.;:\n]\x20)|(?<=\n)|(?<=\A))"
"""Where a statement begins, as a part of a phrase."""


class Reach(StrEnum):
    """Which way a cue looks."""

    FORWARD = "forward"
    BACKWARD = "backward"
    BOTH = "both"
    SECTION = "section"
    """A heading: its sentence, where the line goes on behind that, else all up to the next heading."""


@dataclass(frozen=True)
class Cues:
    """Phrases that assert the same of what they reach; each is a regular expression of whole words.

    ``part_of_term`` marks words that terms are themselves made of, as in *absence of the thumb*: they say
    nothing about a span that they lie in.
    """

    assertion: Assertion
    reach: Reach
    phrases: tuple[str, ...]
    part_of_term: bool = False

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Any of the phrases, longer ones first."""
        return any_of(self.phrases)


@dataclass(frozen=True)
class Rules:
    """All that is known of a language."""

    cues: tuple[Cues, ...]
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
        return any_of(self.said)

    @cached_property
    def patient_pattern(self) -> re.Pattern[str]:
        """Any word for the patient."""
        return any_of(self.patient)

    @cached_property
    def bare_pattern(self) -> re.Pattern[str]:
        """Any result that names no finding."""
        return any_of(self.bare)

    @cached_property
    def pseudo_pattern(self) -> re.Pattern[str]:
        """Any of the pseudo cues."""
        return any_of(self.pseudo)

    @cached_property
    def end_patterns(self) -> dict[Assertion, re.Pattern[str]]:
        """What ends a scope, by assertion."""
        return {kind: any_of((*self.ends, *self.ends_of.get(kind, ()))) for kind in Assertion}

    @cached_property
    def joint_pattern(self) -> re.Pattern[str]:
        """A list word, somewhere."""
        return any_of(self.joining)

    @cached_property
    def list_pattern(self) -> re.Pattern[str]:
        """A comma or a list word at the very end of a stretch of text."""
        return re.compile(rf"(?:,|\b(?:{'|'.join(self.joining)}))\s*\Z", re.IGNORECASE)


def any_of(phrases: Iterable[str]) -> re.Pattern[str]:
    """Any of some phrases as whole words; a space in a phrase is any white space.

    >>> any_of(["no", "no sign of"]).findall("No sign\\nof fever, no cough, known")
    ['No sign\\nof', 'no']
    """
    longest_first = sorted(phrases, key=len, reverse=True)
    body = "|".join(phrase.replace(" ", r"\s+") for phrase in longest_first)
    return re.compile(rf"(?:(?<!\w)|(?=\W))(?:{body})(?:(?!\w)|(?<=\W))", re.IGNORECASE)
