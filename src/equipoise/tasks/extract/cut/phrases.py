"""Overlapping phrases: every run of a few words that neither begins nor ends with a small word."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from equipoise.errors import ParameterError
from equipoise.ontology.assertion.language import SMALL_WORDS
from equipoise.tasks.extract.cut.base import Source, Span, trimmed

_WORD = re.compile(r"\S+")


@dataclass(frozen=True)
class Phrases:
    """Every run of one to ``words`` words that neither begins nor ends with a small word, such as *of*.

    Phrases overlap. Of those that overlap only the best-scoring one becomes evidence, see ``predict``.

    >>> text = "loss of fine hair"
    >>> [text[start:end] for start, end in Phrases(3).cut([Source(text)])[0]]
    ['loss', 'loss of fine', 'fine', 'fine hair', 'hair']
    """

    words: int = 5

    def __post_init__(self) -> None:
        if self.words < 1:
            raise ParameterError(f"a phrase of {self.words} words is none", hint="give 1 or more")

    @property
    def name(self) -> str:
        """``phrase``, with the number of words."""
        return f"phrase(words={self.words})"

    def cut(self, sources: Sequence[Source]) -> list[list[Span]]:
        """The phrases of each text, by their start and then their length."""
        return [self._spans(source) for source in sources]

    def _spans(self, source: Source) -> list[Span]:
        text, small = source.text, SMALL_WORDS[source.language]
        words = trimmed(text, (match.span() for match in _WORD.finditer(text)))
        content = [text[start:end].casefold() not in small for start, end in words]
        return [
            (words[first][0], words[last][1])
            for first in range(len(words))
            if content[first]
            for last in range(first, min(first + self.words, len(words)))
            if content[last]
        ]
