"""Token windows as embedding-eval 0.2.0 chunks them, to reproduce its scores."""

from __future__ import annotations

from equipoise.models.chunking import Chunk
from equipoise.models.tokenizers import Cl100kTokenizer, check_text, utf8_character_index


class EmbeddingEvalWindows:
    r"""The tokens of one document, split at any token; white space at the ends is kept.

    A boundary may be inside a character that consists of several tokens. Its remains on either side are
    decoded as U+FFFD; the offsets of the chunk then include the whole character.

    >>> [chunk.text for chunk in EmbeddingEvalWindows("soba 麺, ramen", Cl100kTokenizer()).chunks(5, 1)]
    ['soba 麺', '\ufffd, ramen']
    """

    def __init__(self, document: str, tokenizer: Cl100kTokenizer) -> None:
        self._data = check_text(document, "the document").encode()
        self._borders = tokenizer.byte_borders(document)
        self._begun = utf8_character_index(self._data)

    def chunks(self, size: int, overlap: int) -> list[Chunk]:
        """Windows of ``size`` tokens, of which ``overlap`` are shared with the window before."""
        count = len(self._borders) - 1
        starts = range(0, max(count - overlap, min(count, 1)), size - overlap)
        return [self._chunk(first, min(first + size, count)) for first in starts]

    def _chunk(self, first: int, last: int) -> Chunk:
        left, right = self._borders[[first, last]].tolist()
        text = self._data[left:right].decode("utf-8", "replace")
        return Chunk(text, int(self._begun[left]) - 1, int(self._begun[right - 1]), last - first)
