"""Cutting by what is written: paragraphs, sentences, punctuation marks, conjunctions."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import pairwise

from equipoise.embed.chunk.sentences import sentence_starts
from equipoise.ontology.assertion.languages import RULES
from equipoise.ontology.assertion.scope import words_about
from equipoise.tasks.extract.cut.base import Source, Span, between, trimmed

_BLANK = re.compile(r"\n[^\S\n]*\n\s*")
_ITEM = re.compile(r"\n[^\S\n]*+(?:[-*•]|\d{1,2}[.)])\s+")
# A comma between digits is part of a number, a colon or stroke inside a word part of the word.
_MARKS = re.compile(r"[;\n()\[\]{}]+|(?<!\d),|,(?!\d)|:(?=\s)|\s[–—-]\s|(?<!\w)/|/(?!\w)")
_JOINTS = {
    "en": re.compile(
        r"\b(?:and/or|as well as|and|or|but|nor|with|without|except(?: for)?|plus|however|although|though"
        r"|while|whereas|because of|due to|associated with|accompanied by|followed by|including|such as"
        r"|characterized by|characterised by)\b",
        re.IGNORECASE,
    ),
    "de": re.compile(
        r"\b(?:und/oder|sowie|und|oder|aber|jedoch|sondern|mit|ohne|außer|während|obwohl|wegen|aufgrund"
        r"|bzw\.|beziehungsweise|einschließlich|begleitet von|gefolgt von|sowohl|als auch|weder|noch)(?!\w)",
        re.IGNORECASE,
    ),
}


_LEADING = {
    "en": re.compile(
        r"\b(?:(?:seen|referred|admitted|treated|evaluated|known|presenting) (?:for|with|because of)"
        r"|diagnos(?:ed|is) (?:with|of)|suffers? from|suffer(?:ed|ing) from|history of|consistent with)\b",
        re.IGNORECASE,
    ),
    "de": re.compile(
        r"\b(?:(?:leidet|litt|leiden|erkrankt) an|(?:vorgestellt|aufgenommen|behandelt|bekannt) (?:wegen|mit)"
        r"|Zustand nach|Z\.\s?n\.|Vorliegen (?:von|einer|eines)|besteht|bestehen|bestand|bestanden"
        r"|(?:fand|fanden|findet|finden|zeigten?) sich)(?!\w)",
        re.IGNORECASE,
    ),
}


class _Rule(ABC):
    """A cutter that needs nothing but the text."""

    name: str

    def cut(self, sources: Sequence[Source]) -> list[list[Span]]:
        """The spans of each text by itself."""
        return [self._spans(source) for source in sources]

    @abstractmethod
    def _spans(self, source: Source) -> list[Span]: ...

    def __repr__(self) -> str:
        return f"<cutter {self.name}>"


class Paragraphs(_Rule):
    """Stretches between empty lines; each item of a list is one too.

    >>> [span for spans in Paragraphs().cut([Source("Fever.\\n\\nCough.")]) for span in spans]
    [(0, 5), (8, 13)]
    """

    name = "paragraph"

    def _spans(self, source: Source) -> list[Span]:
        breaks = {match.span() for pattern in (_BLANK, _ITEM) for match in pattern.finditer(source.text)}
        return between(source.text, sorted(breaks))


class Sentences(_Rule):
    """Sentences; abbreviations and initials end none.

    >>> Sentences().cut([Source("Seen by Dr. Roe. Has fever.")])
    [[(0, 15), (17, 26)]]
    """

    name = "sentence"

    def _spans(self, source: Source) -> list[Span]:
        return trimmed(source.text, pairwise([*sentence_starts(source.text), len(source.text)]))


class Punctuation(_Rule):
    """Stretches between commas, semicolons, colons, brackets, dashes and line ends; numbers stay whole.

    >>> text = "Fever of 39,5 degrees, cough (dry)"
    >>> [text[start:end] for start, end in Punctuation().cut([Source(text)])[0]]
    ['Fever of 39,5 degrees', 'cough', 'dry']
    """

    name = "punctuation"

    def _spans(self, source: Source) -> list[Span]:
        return between(source.text, (match.span() for match in _MARKS.finditer(source.text)))


class Conjunctions(_Rule):
    """Stretches between words that join findings, such as and, with, without; the words are left out.

    >>> text = "seizures and developmental delay without regression"
    >>> [text[start:end] for start, end in Conjunctions().cut([Source(text)])[0]]
    ['seizures', 'developmental delay', 'regression']
    """

    name = "conjunction"

    def _spans(self, source: Source) -> list[Span]:
        return between(
            source.text, (match.span() for match in _JOINTS[source.language].finditer(source.text))
        )


class Cues(_Rule):
    """What is left when the words are cut out that speak about findings: cues, and verbs of having.

    A piece that is nothing but a result, as *negative*, is left out: what it speaks of stands elsewhere.

    >>> text = "The patient has no sign of fever"
    >>> [text[start:end] for start, end in Cues().cut([Source(text)])[0]]
    ['The patient', 'fever']
    >>> Cues().cut([Source("unremarkable")])
    [[]]
    """

    name = "cue"

    def _spans(self, source: Source) -> list[Span]:
        rules = RULES[source.language]
        leading = [match.span() for match in _LEADING[source.language].finditer(source.text)]
        pieces = between(source.text, sorted([*leading, *words_about(source.text, rules)]))
        return [piece for piece in pieces if not rules.bare_pattern.fullmatch(source.text, *piece)]
