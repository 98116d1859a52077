"""Cutting where the meaning turns: a window of words is compared with the window that follows it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from equipoise.embed.model import Embedder
from equipoise.errors import ParameterError
from equipoise.tasks.extract.cut.base import Source, Span, trimmed
from equipoise.types import Bools, Floats, Role

_WORD = re.compile(r"\S+")


@dataclass(frozen=True)
class SemanticWindows:
    """Slides over the words, and cuts where what was said and what follows agree least.

    At each gap between words the ``words`` before it are compared with the ``words`` behind it, by cosine. A
    cut is a local minimum below ``threshold`` that leaves at least ``least`` words on both sides. All windows
    of all texts are embedded in one batch.
    """

    embedder: Embedder
    words: int = 4
    threshold: float = 0.5
    least: int = 2

    def __post_init__(self) -> None:
        if self.words < 1 or self.least < 1:
            raise ParameterError(
                f"a window of {self.words} words, and pieces of {self.least}, cannot be",
                hint="give 1 or more",
            )

    @property
    def name(self) -> str:
        """``semantic``, with its parameters and the model."""
        return (
            f"semantic(words={self.words}, threshold={self.threshold:g}, least={self.least}, "
            f"model={self.embedder.card.spec})"
        )

    def cut(self, sources: Sequence[Source]) -> list[list[Span]]:
        """The pieces of each text."""
        words = [[match.span() for match in _WORD.finditer(source.text)] for source in sources]
        agreement = iter(self._agreement(sources, words))
        pieces = []
        for source, spans in zip(sources, words, strict=True):
            gaps = np.array([next(agreement) for _ in self._gaps(spans)])
            cuts = [self.least + int(gap) for gap in np.flatnonzero(self._turns(gaps))]
            borders = [0, *(spans[cut][0] for cut in cuts), len(source.text)]
            pieces.append(trimmed(source.text, pairwise(borders)))
        return pieces

    def _gaps(self, spans: Sequence[Span]) -> range:
        """Where a text may be cut: before the words of these numbers."""
        return range(self.least, len(spans) - self.least + 1)

    def _agreement(self, sources: Sequence[Source], words: Sequence[Sequence[Span]]) -> Floats:
        """The cosine across every gap of every text, in order."""
        before, behind = [], []
        for source, spans in zip(sources, words, strict=True):
            for gap in self._gaps(spans):
                before.append(source.text[spans[max(0, gap - self.words)][0] : spans[gap - 1][1]])
                behind.append(source.text[spans[gap][0] : spans[min(len(spans), gap + self.words) - 1][1]])
        if not before:
            return np.zeros(0)
        distinct = {text: place for place, text in enumerate(dict.fromkeys([*before, *behind]))}
        vectors = self.embedder.embed(list(distinct), role=Role.QUERY).astype(np.float64)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        unit = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
        left, right = ([distinct[text] for text in side] for side in (before, behind))
        cosines: Floats = np.einsum("ij,ij->i", unit[left], unit[right])
        return cosines

    def _turns(self, gaps: Floats) -> Bools:
        """The gaps that are cut: below the threshold, and none lower nearby; the first of equals."""
        chosen = np.zeros(len(gaps), dtype=np.bool_)
        reach = max(1, self.least - 1)
        for gap in np.flatnonzero(gaps < self.threshold):
            around = slice(max(0, gap - reach), gap + reach + 1)
            chosen[gap] = gaps[gap] <= gaps[around].min() and not chosen[around].any()
        return chosen
