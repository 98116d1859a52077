"""``hash:``: words hashed into a fixed number of dimensions; the baseline that any model must beat."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np

from equipoise.models.analyzer import tokenize_words
from equipoise.models.encoder import EncodedBatch, Encoder, LocalEncoder, ModelCard
from equipoise.models.registry import SHARED_OPTIONS, ModelSpec, check_nameless

if TYPE_CHECKING:
    from equipoise.models.encoder import Role

OPTIONS = ("dims",)
DIMS = 256


class HashEncoder(LocalEncoder):
    """Each word adds +1 or -1 to one dimension; both come from its BLAKE2b hash, which is the same on every machine.

    Words are folded as for BM25. Vectors have length one; a text without words is the zero vector.
    """

    block_texts = 4096
    cacheable = False

    def __init__(self, dims: int, spec: str) -> None:
        self.card = ModelCard(
            "hashed words", spec, dims=dims, origin="computed", revision="blake2b 1",
            note="no model: minimum baseline",
        )  # fmt: skip
        self.identity = f"hash 1 blake2b dims={dims}"
        self._dims = dims

    def encode_counted(self, texts: Sequence[str], role: Role) -> EncodedBatch:
        """Hash every distinct word once, then add up."""
        words = [tokenize_words(text) for text in texts]
        counts = [len(text_words) for text_words in words]
        distinct = {
            word: index for index, word in enumerate(dict.fromkeys(w for text_words in words for w in text_words))
        }
        hashes = np.fromiter(map(_hash_word, distinct), np.uint64, len(distinct))
        columns = np.fromiter((distinct[word] for text_words in words for word in text_words), np.int64, sum(counts))
        column = (hashes >> np.uint64(1)) % np.uint64(self._dims)
        sign = np.where(hashes & np.uint64(1), 1.0, -1.0)
        row = np.repeat(np.arange(len(texts)), counts)
        sums = np.bincount(
            row * self._dims + column[columns].astype(np.int64), sign[columns], minlength=len(texts) * self._dims
        ).reshape(len(texts), self._dims)
        length = np.sqrt((sums**2).sum(axis=1, keepdims=True))
        unit = np.divide(sums, length, out=sums, where=length > 0.0)
        return EncodedBatch(unit.astype(np.float32), counts)

    def token_counts(self, texts: Sequence[str]) -> list[int] | None:
        """Lengths in words; there is no window."""
        return [len(tokenize_words(text)) for text in texts]


def load(spec: ModelSpec) -> Encoder:
    """From ``hash:`` or ``hash:,dims=1024``."""
    check_nameless(spec, (*OPTIONS, *SHARED_OPTIONS))
    return HashEncoder(spec.count("dims") or DIMS, str(spec))


def _hash_word(word: str) -> int:
    return int.from_bytes(blake2b(word.encode(), digest_size=8).digest(), "little")
