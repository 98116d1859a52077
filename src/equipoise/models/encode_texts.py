"""One call of ``embed``: deduplicate, look up cached vectors, encode the rest in batches, and count truncation."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import EquipoiseError, InputError, NotFiniteError, ShapeError, StoppedError
from equipoise.models.encoder import EncodedBatch, Encoder, Vectors
from equipoise.models.tokenizers import check_text
from equipoise.models.vector_cache_storage import TOKEN_COUNTS
from equipoise.models.worker_pool import ExecutorMap, encode_remote
from equipoise.progress import redirect_shares, report_share

if TYPE_CHECKING:
    from equipoise.models.embedder import Embedder
    from equipoise.models.encoder import Role
    from equipoise.models.vector_cache import VectorCache
    from equipoise.types import Ints

T = TypeVar("T")

# Unique texts in batches of similar length, and back to the input order.

MAX_BATCH_CHARACTERS = 1 << 20
"""A block ends here even if it could take more texts, so that long texts do not pile up in memory."""


@dataclass(frozen=True, slots=True)
class UniqueTexts:
    """Every text once, in the order of first appearance; ``first`` and ``again`` lead back."""

    texts: list[str]
    first: Ints
    """Where each distinct text appeared first."""
    again: Ints
    """The positions of all repetitions."""
    same_as: Ints
    """For each repetition, where its text appeared first."""


def check_texts(texts: Iterable[str], *, start: int = 0) -> list[str]:
    """The texts as a list, if each is a non-empty string without lone surrogates; errors count from ``start``.

    >>> check_texts(["a", ""])
    Traceback (most recent call last):
    ...
    equipoise.errors.InputError: text 1 (counted from 0) is empty
    """
    if isinstance(texts, str | bytes):
        raise InputError("one text was given where a list of texts is needed", hint="write [text]")
    if not isinstance(texts, Iterable):
        raise InputError(f"the texts are of type {type(texts).__name__}, not a list of texts", hint="write [text, ...]")
    checked = list(texts)
    if not checked:
        raise InputError("there are no texts to embed", hint="check that the file or list is not empty")
    for number, text in enumerate(checked, start):
        check_text(text, subject=f"text {number} (counted from 0)")
        if not text or text.isspace():
            raise InputError(f"text {number} (counted from 0) is empty", hint="leave empty texts out")
    return checked


def unique_texts(texts: Sequence[str]) -> UniqueTexts:
    """Find the repetitions.

    >>> unique_texts(["a", "b", "a"]).texts
    ['a', 'b']
    """
    first_index: dict[str, int] = {}
    first_positions = np.fromiter(
        (first_index.setdefault(text, index) for index, text in enumerate(texts)), np.int64, len(texts)
    )
    again = np.flatnonzero(first_positions != np.arange(len(texts)))
    first = np.fromiter(first_index.values(), np.int64, len(first_index))
    return UniqueTexts(list(first_index), first, again, first_positions[again])


def length_batches(texts: Sequence[str], max_texts: int) -> Iterator[list[int]]:
    """Indices of texts of similar length, longest first, with at most ``max_texts`` and a bounded size per batch."""
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    longest_first = np.argsort(-lengths, kind="stable").tolist()
    return split_by_size(longest_first, lambda index: len(texts[index]), max_texts, MAX_BATCH_CHARACTERS)


def split_by_size(items: Iterable[T], size: Callable[[T], int], max_items: int, max_total: int) -> Iterator[list[T]]:
    """Successive items in lists of at most ``max_items`` with a total size of ``max_total``, or of one larger item.

    >>> list(split_by_size(["a", "bcd", "ef", "g"], len, max_items=2, max_total=3))
    [['a'], ['bcd'], ['ef', 'g']]
    """
    part: list[T] = []
    total = 0
    for item in items:
        item_size = size(item)
        if part and (len(part) == max_items or total + item_size > max_total):
            yield part
            part, total = [], 0
        part.append(item)
        total += item_size
    if part:
        yield part


def token_batches(lengths: Sequence[int], max_tokens: int) -> Iterator[list[int]]:
    """Indices of texts to run together, longest first: padded to the longest, none exceeds ``max_tokens``.

    A longer text is a batch of one. A batch of a quarter of ``max_tokens`` is not padded further:
    it ends before a shorter text.

    >>> list(token_batches([2, 5, 2, 1], max_tokens=5))
    [[1], [0, 2], [3]]
    """
    batch: list[int] = []
    for index in sorted(range(len(lengths)), key=lambda index: -lengths[index]):
        longest = lengths[batch[0]] if batch else 0
        full = (len(batch) + 1) * longest > max_tokens
        if batch and (full or (lengths[index] < longest and 4 * len(batch) * longest >= max_tokens)):
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


# Truncated tokens, also of texts whose vectors came from the cache.

_SPECIAL_TOKENS = 8
"""An upper bound of the special tokens that a model adds to a text."""


class TruncationCounter:
    """Token counts of distinct texts, as far as they can exceed the window.

    A token covers at least one byte, so a text with fewer bytes than the window has tokens needs no
    counting. The counts of longer ones are cached with the vectors, as vectors of one number.
    """

    def __init__(self, encoder: Encoder, cache: VectorCache | None, variant: str, prompt: str) -> None:
        self.tokens: int | None = 0
        self._encoder = encoder
        self._cache = cache
        self._variant = f"{variant}{TOKEN_COUNTS}"
        self._prompt = prompt
        self._window = encoder.card.max_tokens
        self._lost: dict[int, int] = {}
        self._unknown = False

    def note_embedded(self, texts: Sequence[str], positions: Ints, counts: Sequence[int] | None) -> None:
        """Record the token counts of embedded texts; None if the engine does not report them."""
        if counts is None:
            self.tokens, self._unknown = None, True
            return
        if self.tokens is not None:
            self.tokens += sum(counts)
        long = self._long(texts)
        self._note(positions[long].tolist(), [counts[at] for at in long])
        self._keep([texts[at] for at in long], [counts[at] for at in long])

    def note_cached(self, texts: Sequence[str], positions: Ints) -> None:
        """Record the token counts of cached texts, from the cache or counted again."""
        long = self._long(texts)
        if not long:
            return
        long_texts = [texts[at] for at in long]
        identity, variant = self._encoder.identity, self._variant
        token_counts = {} if self._cache is None else self._cache.get_many(identity, variant, long_texts, 1)
        absent = [at for at in range(len(long_texts)) if at not in token_counts]
        counted = self._encoder.token_counts([self._prompt + long_texts[at] for at in absent]) if absent else []
        if counted is None:
            self._unknown = True
            return
        counts = {at: int(vector[0]) for at, vector in token_counts.items()} | dict(zip(absent, counted, strict=True))
        self._keep([long_texts[at] for at in absent], counted)
        self._note(positions[long].tolist(), [counts[at] for at in range(len(long_texts))])

    def lost(self, unique: UniqueTexts) -> NDArray[np.int64] | None:
        """For every text the number of tokens beyond the window; None if unknown."""
        if self._window is None and not self._unknown:
            return np.zeros(1, dtype=np.int64)
        if self._unknown:
            return None
        n_tokens = np.zeros(len(unique.first) + len(unique.again), dtype=np.int64)
        for position, n_truncated in self._lost.items():
            n_tokens[unique.first[position]] = n_truncated
        n_tokens[unique.again] = n_tokens[unique.same_as]
        return n_tokens

    def _long(self, texts: Sequence[str]) -> list[int]:
        if self._window is None:
            return []
        max_bytes = self._window - _SPECIAL_TOKENS - len(self._prompt.encode())
        # At most four bytes per character: most texts are known to be short without encoding them.
        return [at for at, text in enumerate(texts) if 4 * len(text) > max_bytes and len(text.encode()) > max_bytes]

    def _note(self, positions: Sequence[int], counts: Sequence[int]) -> None:
        for position, count in zip(positions, counts, strict=True):
            if self._window is not None and count > self._window:
                self._lost[position] = count - self._window

    def _keep(self, texts: Sequence[str], counts: Sequence[int]) -> None:
        if self._cache is not None and texts:
            column = np.array(counts, dtype=np.float32)[:, None]
            self._cache.put_many(self._encoder.identity, self._variant, texts, column)


Progress = Callable[[int, int], None]
"""Called with the number of distinct texts that are done and their total."""

_LOOKUP_BATCH = 16_384
_CHARACTERS_PER_TOKEN = 4
"""Roughly; a longer text is truncated, and takes no more time."""
_PENDING_WRITES = 2
"""Blocks that may wait to be cached; they are what a killed process loses in addition to the block it computes."""


class BackgroundWriter:
    """Calls functions in order in one other thread, so that the model does not wait for the disk.

    At most ``max_pending`` calls are pending; with 0 each call is waited for. Leaving the block waits for all of them
    and raises the first error.
    """

    def __init__(self, max_pending: int) -> None:
        self._max_pending = max_pending

    def __enter__(self) -> Self:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="equipoise-cache")
        self._pending: deque[Future[None]] = deque()
        return self

    def __call__(self, function: Callable[..., None], *arguments: Any) -> None:
        """Queue a call."""
        self._pending.append(self._thread.submit(function, *arguments))
        if len(self._pending) > self._max_pending:
            self._pending.popleft().result()

    def __exit__(self, *error: object) -> None:
        self._thread.shutdown(wait=True)
        if error[0] is None:
            for call in self._pending:
                call.result()


class EncodePass:
    """One call of ``embed``: rows are written to the result as they are finished, without a second copy."""

    def __init__(
        self,
        model: Embedder,
        once: UniqueTexts,
        total: int,
        role: Role,
        progress: Progress | None,
        map_function: ExecutorMap | None = None,
    ) -> None:
        self.lengths = TruncationCounter(model.encoder, model.cache, model.variant(role), model.prompts[role])
        self._model = model
        self._once = once
        self._total = total
        self._role = role
        self._progress = progress or (lambda done, total: None)
        self._map_function = map_function
        self._has = np.zeros(len(once.texts), dtype=bool)
        self._done = 0
        self._out: Vectors | None = None

    def from_cache(self) -> list[int]:
        """Fill in cached vectors; returns the indices of the distinct texts that are not cached."""
        texts, cache = self._once.texts, self._model.cache
        self._progress(0, len(texts))
        if cache is None:
            return list(range(len(texts)))
        missing: list[int] = []
        for start in range(0, len(texts), _LOOKUP_BATCH):
            batch = texts[start : start + _LOOKUP_BATCH]
            cached = cache.lookup(
                self._model.encoder.identity, self._model.variant(self._role), batch, self._model.raw_dims
            )
            if len(cached.positions):
                self._put(cached.positions + start, cached.vectors)
                self.lengths.note_cached(
                    [batch[position] for position in cached.positions.tolist()], cached.positions + start
                )
            absent = np.ones(len(batch), dtype=bool)
            absent[cached.positions] = False
            missing += (np.flatnonzero(absent) + start).tolist()
        return missing

    def embed(self, missing: list[int]) -> None:
        """Encode the remaining texts block by block; each block is cached when it is finished."""
        if not missing:
            return
        texts = [self._once.texts[index] for index in missing]
        prompt = self._model.prompts[self._role]
        groups = list(length_batches(texts, self._model.encoder.block_texts))
        inputs = ([prompt + texts[index] for index in group] for group in groups)
        with BackgroundWriter(_PENDING_WRITES if self._model.encoder.pipelined else 0) as self._write:
            self._embed_groups(texts, np.array(missing), groups, inputs)

    def _embed_groups(
        self, texts: list[str], missing: Ints, groups: list[list[int]], inputs: Iterable[list[str]]
    ) -> None:
        at = 0
        try:
            for number, encoded in self._encoded_with_progress(texts, groups, inputs):
                batch = [texts[index] for index in groups[number]]
                positions = missing[groups[number]]
                self._check(encoded.vectors, batch)
                self._keep(batch, encoded.vectors)
                self.lengths.note_embedded(batch, positions, encoded.counts)
                self._put(positions, encoded.vectors)
                at = number + 1
        except EquipoiseError as error:
            self._keep_finished(error, missing[groups[at]] if at < len(groups) else missing[:0])
            if isinstance(error, StoppedError):
                raise error.counted(self._texts_done(), self._total) from None
            raise

    def vectors(self) -> Vectors:
        """All rows in the order of the texts, repetitions filled in."""
        assert self._out is not None
        for start in range(0, len(self._once.again), _LOOKUP_BATCH):
            part = slice(start, start + _LOOKUP_BATCH)
            self._out[self._once.again[part]] = self._out[self._once.same_as[part]]
        return self._out

    def _encoded_with_progress(
        self, texts: list[str], groups: list[list[int]], inputs: Iterable[list[str]]
    ) -> Iterator[tuple[int, EncodedBatch]]:
        """The blocks, with reports of the share of the characters that are encoded, also within a block."""
        window = self._model.encoder.card.max_tokens
        longest = MAX_BATCH_CHARACTERS if window is None else _CHARACTERS_PER_TOKEN * window
        sizes = [sum(min(len(texts[index]), longest) for index in group) for group in groups]
        done, total, n_done = 0, sum(sizes), 0

        def within_block(share: float) -> None:
            report_share(done + share * sizes[n_done], total)
            self._progress(self._done + int(share * len(groups[n_done])), len(self._once.texts))

        blocks = iter(self._encoded(inputs))
        while True:
            with redirect_shares(within_block):
                block = next(blocks, None)
            if block is None:
                return
            yield block
            done, n_done = done + sizes[block[0]], n_done + 1
            report_share(done, total)

    def _encoded(self, inputs: Iterable[list[str]]) -> Iterator[tuple[int, EncodedBatch]]:
        """Each block's number and vectors; from other processes, in the order in which they finish."""
        encoder = self._model.encoder
        if self._map_function is not None:
            return encode_remote(self._model, list(inputs), self._role, self._map_function)
        return encoder.encode_blocks(inputs, self._role)

    def _keep(self, texts: Sequence[str], vectors: Vectors) -> None:
        if self._model.cache is not None and texts:
            identity, variant = self._model.encoder.identity, self._model.variant(self._role)
            self._write(self._model.cache.put_many, identity, variant, texts, vectors)

    def _keep_finished(self, error: EquipoiseError, block: NDArray[np.int64]) -> None:
        """Cache what a failed service has returned of the block: it was paid for."""
        finished = getattr(error, "finished", None)
        if finished is not None:
            positions = block[finished.positions]
            self._keep([self._once.texts[position] for position in positions.tolist()], finished.vectors)
            self._has[positions] = True

    def _texts_done(self) -> int:
        """The number of texts of the call with a vector, repetitions included."""
        first = self._once.first[self._has]
        return len(first) + int(np.isin(self._once.same_as, first).sum())

    def _put(self, positions: NDArray[np.int64], raw: Vectors) -> None:
        self._model.note_dims(raw.shape[1])
        if self._out is None:
            self._out = np.empty((self._total, self._model.dims), dtype=np.float32)
        self._out[self._once.first[positions]] = self._model.finish(raw)
        self._has[positions] = True
        self._done += len(positions)
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
