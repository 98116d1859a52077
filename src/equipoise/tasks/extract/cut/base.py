"""What every way of cutting does: for each text, spans of it, in order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

Span = tuple[int, int]

EDGES = ".,;:!?()[]{}\"'„“”‚‘’«»–—-/*•·…"
"""What a piece neither begins nor ends with, beside white space."""


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
        while start < end and _is_edge(text[start]):
            start += 1
        while end > start and _is_edge(text[end - 1]):
            end -= 1
        if any(letter.isalnum() for letter in text[start:end]):
            kept.append((start, end))
    return kept


def between(text: str, separators: Iterable[Span]) -> list[Span]:
    """The spans between separators, trimmed; separators are in order and may overlap.

    >>> between("fever and cough", [(6, 9)])
    [(0, 5), (10, 15)]
    """
    spans, begun = [], 0
    for start, end in separators:
        spans.append((begun, max(begun, start)))
        begun = max(begun, end)
    return trimmed(text, [*spans, (begun, len(text))])


def _is_edge(letter: str) -> bool:
    return letter.isspace() or letter in EDGES
