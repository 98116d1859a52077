"""One call of ``embed``: known vectors are looked up, the rest is made, and every row goes to its place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from equipoise.embed.batch import Distinct, blocks
from equipoise.embed.elsewhere import Spread, encode_elsewhere
from equipoise.embed.encoder import Vectors
from equipoise.embed.lengths import Lengths
from equipoise.embed.local.encoder import Encoded, encode_counted
from equipoise.embed.local.workers import Workers
from equipoise.errors import EquipoiseError, NotFiniteError, ShapeError, StoppedError
from equipoise.types import Role

if TYPE_CHECKING:
    from equipoise.embed.model import Embedder

Progress = Callable[[int, int], None]
"""Called with how many distinct texts are done and how many there are."""

_LOOKED_UP_AT_ONCE = 16_384


class Work:
    """One call of ``embed``: rows are finished and put in place as they come, so nothing is held twice."""

    def __init__(
        self,
        model: Embedder,
        once: Distinct,
        total: int,
        role: Role,
        progress: Progress | None,
        over: Spread | None = None,
    ) -> None:
        self.lengths = Lengths(model.encoder, model.cache, model.variant(role), model.prompts[role])
        self._model = model
        self._once = once
        self._total = total
        self._role = role
        self._progress = progress or (lambda done, total: None)
        self._over = over
        self._has = np.zeros(len(once.texts), dtype=bool)
        self._done = 0
        self._out: Vectors | None = None

    def from_cache(self) -> list[int]:
        """Take what is known; returns the places, among the distinct texts, of what is not."""
        texts, cache = self._once.texts, self._model.cache
        self._progress(0, len(texts))
        if cache is None:
            return list(range(len(texts)))
        missing: list[int] = []
        for start in range(0, len(texts), _LOOKED_UP_AT_ONCE):
            some = texts[start : start + _LOOKED_UP_AT_ONCE]
            found = cache.lookup(
                self._model.encoder.identity, self._model.variant(self._role), some, self._model.raw_dims
            )
            if len(found.places):
                self._put(found.places + start, found.vectors)
                self.lengths.note_cached(
                    [some[place] for place in found.places.tolist()], found.places + start
                )
            absent = np.ones(len(some), dtype=bool)
            absent[found.places] = False
            missing += (np.flatnonzero(absent) + start).tolist()
        return missing

    def embed(self, missing: list[int]) -> None:
        """Run the model over the rest, block by block, keeping each block at once."""
        if not missing:
            return
        texts = [self._once.texts[place] for place in missing]
        prompt = self._model.prompts[self._role]
        groups = list(blocks(texts, self._model.encoder.block_texts))
        inputs = ([prompt + texts[place] for place in group] for group in groups)
        at = 0
        try:
            for number, encoded in self._encoded(inputs):
                some = [texts[place] for place in groups[number]]
                places = np.array([missing[place] for place in groups[number]])
                self._check(encoded.vectors, some)
                self._keep(some, encoded.vectors)
                self.lengths.note_embedded(some, places, encoded.counts)
                self._put(places, encoded.vectors)
                at = number + 1
        except EquipoiseError as error:
            block = groups[at] if at < len(groups) else []
            self._keep_finished(error, np.array([missing[place] for place in block], dtype=np.int64))
            if isinstance(error, StoppedError):
                raise error.counted(self._texts_done(), self._total) from None
            raise

    def vectors(self) -> Vectors:
        """All rows in the order of the texts, repetitions filled in."""
        assert self._out is not None
        for start in range(0, len(self._once.again), _LOOKED_UP_AT_ONCE):
            some = slice(start, start + _LOOKED_UP_AT_ONCE)
            self._out[self._once.again[some]] = self._out[self._once.same_as[some]]
        return self._out

    def _encoded(self, inputs: Iterable[list[str]]) -> Iterator[tuple[int, Encoded]]:
        """Each block's number and vectors; from other processes, in the order in which they finish."""
        encoder = self._model.encoder
        if self._over is not None:
            return encode_elsewhere(self._model, list(inputs), self._role, self._over)
        if isinstance(encoder, Workers):
            return encoder.encode_blocks(inputs, self._role)
        return enumerate(encode_counted(encoder, texts, self._role) for texts in inputs)

    def _keep(self, texts: Sequence[str], vectors: Vectors) -> None:
        if self._model.cache is not None and texts:
            identity, variant = self._model.encoder.identity, self._model.variant(self._role)
            self._model.cache.put_many(identity, variant, texts, vectors)

    def _keep_finished(self, error: EquipoiseError, block: NDArray[np.int64]) -> None:
        """A service that failed may have answered for some of the block: that was paid for."""
        finished = getattr(error, "finished", None)
        if finished is not None:
            places = block[finished.places]
            self._keep([self._once.texts[place] for place in places.tolist()], finished.vectors)
            self._has[places] = True

    def _texts_done(self) -> int:
        """How many of the texts of the call have a vector, repetitions included."""
        first = self._once.first[self._has]
        return len(first) + int(np.isin(self._once.same_as, first).sum())

    def _put(self, places: NDArray[np.int64], raw: Vectors) -> None:
        self._model.note_dims(raw.shape[1])
        if self._out is None:
            self._out = np.empty((self._total, self._model.dims), dtype=np.float32)
        self._out[self._once.first[places]] = self._model.finish(raw)
        self._has[places] = True
        self._done += len(places)
        self._progress(self._done, len(self._once.texts))

    def _check(self, vectors: Vectors, texts: Sequence[str]) -> None:
        name = self._model.encoder.card.name
        if vectors.ndim != 2 or len(vectors) != len(texts):
            raise ShapeError(f"{name} gave an array of shape {vectors.shape} for {len(texts)} texts")
        finite = np.isfinite(vectors).all(axis=1)
        if not finite.all():
            text = texts[int(np.argmin(finite))]
            raise NotFiniteError(
                f"{name} gave NaN or infinity for the text {text[:60]!r}", hint="the model fails on it"
            )
