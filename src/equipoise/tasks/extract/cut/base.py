"""What every way of cutting does: for each text, spans of it, in order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

Span = tuple[int, int]

EDGES = " \t\r\n\f\v.,;:!?()[]{}\"'„“”‚‘’«»–—-/*•·…"
"""What a piece neither begins nor ends with."""


@dataclass(frozen=True, slots=True)
class Source:
    """A text to cut, and its language."""

    text: str
    language: str = "en"


@runtime_checkable
class Cutter(Protocol):
    """A way of cutting. It gets the pieces of all documents at once, so that a model embeds in one batch."""

    @property
    def name(self) -> str:
        """The kind with every parameter that is not usual."""

    def cut(self, sources: Sequence[Source]) -> list[list[Span]]:
        """For each text the spans of its pieces; what lies between them separates and is left out."""


def trimmed(text: str, spans: Iterable[Span]) -> list[Span]:
    """Spans without white space and marks at their ends; those that then hold nothing are left out.

    >>> trimmed("fever, (cough)", [(0, 6), (6, 14)])
    [(0, 5), (8, 13)]
    """
    kept = []
    for start, end in spans:
        while start < end and text[start] in EDGES:
            start += 1
        while end > start and text[end - 1] in EDGES:
            end -= 1
        if any(letter.isalnum() for letter in text[start:end]):
            kept.append((start, end))
    return kept


def between(text: str, separators: Iterable[Span]) -> list[Span]:
    """The spans between separators, trimmed.

    >>> between("fever and cough", [(6, 9)])
    [(0, 5), (10, 15)]
    """
    spans, begun = [], 0
    for start, end in separators:
        spans.append((begun, start))
        begun = end
    return trimmed(text, [*spans, (begun, len(text))])
