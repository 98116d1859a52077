"""Windows of tokens as spans of characters, so that no chunk begins or ends inside a character.

The tokens of a document are grouped by the character borders between them. What lies between two
groups belongs to the later one, so that consecutive windows leave nothing out.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from equipoise.embed.chunk.tokens import Tokenizer
from equipoise.types import Bools, Ints

Span = tuple[int, int]

_JOINER = 0x200D
_FLAG_LETTERS = (0x1F1E6, 0x1F1FF)
_SKIN_TONES = (0x1F3FB, 0x1F3FF)


class Layout:
    """The tokens of one document, and how many of them lie in any stretch of it."""

    def __init__(self, document: str, tokenizer: Tokenizer) -> None:
        offsets = tokenizer.offsets(document)
        filled = np.flatnonzero(offsets[:, 0] < offsets[:, 1])
        self._starts: Ints = offsets[filled, 0]
        self._ends: Ints = offsets[filled, 1]
        # An empty token is a further part of the character before it; at the very start, of the first one.
        self._before: list[int] = [0, *filled[1:].tolist(), len(offsets)] if len(filled) else [0]
        self._edges: Ints = (
            np.concatenate([[0], self._ends[:-1], [len(document)]]) if len(filled) else np.zeros(1, int)
        )
        whole = _between_clusters(document, self._edges)
        index = np.arange(len(whole))
        self._whole_up_to: Ints = np.maximum.accumulate(np.where(whole, index, 0))
        self._whole_from: Ints = np.minimum.accumulate(np.where(whole, index, len(whole) - 1)[::-1])[::-1]

    def tokens(self, start: int, end: int, limit: int | None = None) -> int:
        """How many tokens lie in a span; those that end beyond ``limit`` are counted elsewhere."""
        first = int(np.searchsorted(self._ends, start, side="right"))
        last = int(np.searchsorted(self._starts, end, side="left"))
        if limit is not None:
            last = min(last, int(np.searchsorted(self._ends, limit, side="right")))
        return self._before[last] - self._before[first] if last > first else 0

    def spans(self, start: int, end: int, size: int, overlap: int) -> Iterator[Span]:
        """Windows over a stretch of the document, each of at most ``size`` tokens, ``overlap`` shared by two.

        A border prefers to stand between clusters (a letter with its accents, a joined emoji), and gives up
        a few tokens for it. A window is larger only where characters share more tokens than ``size``.
        """
        first = int(np.searchsorted(self._ends, start, side="right"))
        last = (
            int(np.searchsorted(self._ends, end, side="right")) if end < self._edges[-1] else len(self._ends)
        )
        if first >= last:
            yield start, end
            return
        for left, right in self._windows(first, last, size, overlap):
            yield (
                start if left == first else int(self._edges[left]),
                end if right == last else int(self._edges[right]),
            )

    def _windows(self, first: int, last: int, size: int, overlap: int) -> Iterator[Span]:
        """Ranges of groups; each ends beyond the one before it."""
        before = self._before
        left, reached = first, first
        while True:
            right = min(max(bisect_right(before, before[left] + size) - 1, left + 1), last)
            if right < last and self._whole_up_to[right] > reached:
                right = int(self._whole_up_to[right])
            yield left, right
            if right >= last:
                return
            # The next window must have room for the group behind this one, or it would bring nothing new.
            shared = bisect_left(before, before[right] - overlap)
            roomy = bisect_left(before, before[right + 1] - size)
            reached = right
            left = min(int(self._whole_from[min(max(shared, roomy, left), right)]), right)


def _between_clusters(document: str, edges: Ints) -> Bools:
    """For each edge, whether it separates what readers see as two characters."""
    whole = np.ones(len(edges), dtype=np.bool_)
    inner = np.flatnonzero((edges > 0) & (edges < len(document)))
    if not len(inner):
        return whole
    codes = np.frombuffer(document.encode("utf-32-le"), dtype="<u4")
    left, right = codes[edges[inner] - 1], codes[edges[inner]]
    joined = _extends(right) | (left == _JOINER) | ((left == ord("\r")) & (right == ord("\n")))
    joined |= _within(left, _FLAG_LETTERS) & _within(right, _FLAG_LETTERS)
    whole[inner] = ~joined
    return whole


def _extends(codes: NDArray[np.uint32]) -> Bools:
    """Whether each character belongs to the one before it: accents, vowel signs, joiners, skin tones."""
    distinct, where = np.unique(codes, return_inverse=True)
    marks = [unicodedata.category(chr(code)).startswith("M") for code in distinct.tolist()]
    extends: Bools = np.array(marks, dtype=np.bool_)[where]
    return extends | (codes == _JOINER) | _within(codes, _SKIN_TONES)


def _within(codes: NDArray[np.uint32], bounds: Span) -> Bools:
    inside: Bools = (codes >= bounds[0]) & (codes <= bounds[1])
    return inside
