"""How much of the texts a model did not read, also for texts whose vectors came from the cache."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from equipoise.embed.batch import Distinct
from equipoise.embed.encoder import Encoder
from equipoise.types import Ints

if TYPE_CHECKING:
    from equipoise.embed.cache.cache import Cache

_SPECIAL_TOKENS = 8
"""More than any model adds to a text."""


class Lengths:
    """Token counts of distinct texts, as far as they can exceed the window.

    A token stands for at least one byte, so a text with fewer bytes than the window has tokens needs no
    counting. The counts of longer ones are kept in the cache beside the vectors, as vectors of one number.
    """

    def __init__(self, encoder: Encoder, cache: Cache | None, variant: str, prompt: str) -> None:
        self.tokens: int | None = 0
        self._encoder = encoder
        self._cache = cache
        self._variant = f"{variant} tokens"
        self._prompt = prompt
        self._window = encoder.card.max_tokens
        self._lost: dict[int, int] = {}
        self._unknown = False

    def note_embedded(self, texts: Sequence[str], places: Ints, counts: Sequence[int] | None) -> None:
        """Counts that came with the vectors; None where the engine keeps them to itself."""
        if counts is None:
            self.tokens, self._unknown = None, True
            return
        if self.tokens is not None:
            self.tokens += sum(counts)
        long = self._long(texts)
        self._note(places[long].tolist(), [counts[at] for at in long])
        self._keep([texts[at] for at in long], [counts[at] for at in long])

    def note_cached(self, texts: Sequence[str], places: Ints) -> None:
        """Texts whose vectors were known: their counts are too, or are counted again."""
        long = self._long(texts)
        if not long or self._cache is None:
            return
        some = [texts[at] for at in long]
        found = self._cache.get_many(self._encoder.identity, self._variant, some, 1)
        absent = [at for at in range(len(some)) if at not in found]
        counted = self._encoder.token_counts([self._prompt + some[at] for at in absent]) if absent else []
        if counted is None:
            self._unknown = True
            return
        counts = {at: int(vector[0]) for at, vector in found.items()} | dict(
            zip(absent, counted, strict=True)
        )
        self._keep([some[at] for at in absent], counted)
        self._note(places[long].tolist(), [counts[at] for at in range(len(some))])

    def lost(self, once: Distinct) -> NDArray[np.int64] | None:
        """For every text in its place, the tokens beyond the window; None when they are unknown."""
        if self._window is None and not self._unknown:
            return np.zeros(1, dtype=np.int64)
        if self._unknown:
            return None
        lost = np.zeros(len(once.first) + len(once.again), dtype=np.int64)
        for place, beyond in self._lost.items():
            lost[once.first[place]] = beyond
        lost[once.again] = lost[once.same_as]
        return lost

    def _long(self, texts: Sequence[str]) -> list[int]:
        if self._window is None:
            return []
        room = self._window - _SPECIAL_TOKENS - len(self._prompt.encode())
        # Four bytes a character at most: most texts need not be encoded to be found short.
        return [at for at, text in enumerate(texts) if 4 * len(text) > room and len(text.encode()) > room]

    def _note(self, places: Sequence[int], counts: Sequence[int]) -> None:
        for place, count in zip(places, counts, strict=True):
            if self._window is not None and count > self._window:
                self._lost[place] = count - self._window

    def _keep(self, texts: Sequence[str], counts: Sequence[int]) -> None:
        if self._cache is not None and texts:
            column = np.array(counts, dtype=np.float32)[:, None]
            self._cache.put_many(self._encoder.identity, self._variant, texts, column)
