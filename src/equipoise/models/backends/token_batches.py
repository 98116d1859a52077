"""Run a sentence-transformers model on token ids: each text is tokenised once, batches are bounded in tokens.

On a GPU, tokens are made by processes ahead of the device (``TokenizerPool``), batches are copied there and back
while it computes, and weights are float16 or bfloat16 if that keeps the vectors.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.models.encoder import EncodedBatch, Vectors
from equipoise.models.tokenizers import TruncatingTokenizer
from equipoise.models.worker_pool import WorkerPool
from equipoise.types import require_extra

CPU_BATCH_TOKENS, GPU_BATCH_TOKENS = 4096, 1 << 17
"""Tokens of one batch, padding included: what the caches of a core hold, and what fills a large GPU."""

PIECE_CHARACTERS = 1 << 15
"""Texts that one process tokenises at a time: about 10 ms of work."""

MIN_POOL_CHARACTERS = 1 << 20
"""Fewer characters than this are tokenised before processes have started."""

BLOCKS_AHEAD, BLOCKS_RUNNING = 4, 2
"""Blocks whose tokens are made ahead of the device, and blocks that are queued on it."""

MIN_COSINE = 0.9999
"""A lower precision is used only if every probe text keeps this cosine to its float32 vector."""

PROBE_TEXTS = (
    "Short text",
    "A longer sentence, with Capitals, numbers such as 3.14159 and an abbreviation (e.g. DNA).",
    "Größe, naïve café, 東京, привет: words of several languages in one text.",
    "The boiling point of a liquid depends on the pressure of the surrounding gas. " * 12,
)


@dataclass(frozen=True, slots=True)
class TokenBlock:
    """The token ids of some texts, one text after another; lengths after, and counts before truncation."""

    ids: NDArray[np.int32]
    lengths: NDArray[np.int64]
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, window: TruncatingTokenizer, texts: Sequence[str]) -> TokenBlock:
        """Tokenise the texts."""
        cut = window.cut(texts)
        lengths = np.fromiter(map(len, cut.ids), np.int64, len(cut.ids))
        ids = np.fromiter(chain.from_iterable(cut.ids), np.int32, int(lengths.sum()))
        return cls(ids, lengths, np.array(cut.counts, dtype=np.int64))

    @classmethod
    def joined(cls, blocks: Sequence[TokenBlock]) -> TokenBlock:
        """Several blocks as one."""
        return cls(
            np.concatenate([block.ids for block in blocks]),
            np.concatenate([block.lengths for block in blocks]),
            np.concatenate([block.counts for block in blocks]),
        )

    def batches(self, max_tokens: int) -> Iterator[slice]:
        """Parts of the texts, which are ordered by length; padded, a part has at most ``max_tokens``."""
        start = 0
        while start < len(self.lengths):
            size = max(1, max_tokens // max(1, int(self.lengths[start])))
            yield slice(start, start + size)
            start += size

    def longest_first(self) -> tuple[TokenBlock, NDArray[np.int64], NDArray[np.int64]]:
        """The block with its lengths in descending order, the texts in that order, and where their ids begin."""
        order = np.argsort(-self.lengths, kind="stable")
        starts = np.cumsum(self.lengths) - self.lengths
        return TokenBlock(self.ids, self.lengths[order], self.counts), order, starts[order]


@dataclass(frozen=True)
class TokenizerJob:
    """What a tokenizing process needs: the content of a ``tokenizer.json`` and the window."""

    content: str
    max_tokens: int | None

    def open(self) -> tuple[None, Any]:
        """Load the tokenizer; the function takes texts and returns their tokens."""
        os.environ["TOKENIZERS_PARALLELISM"] = "false"
        engine = require_extra("tokenizers", extra="st")
        # More than one thread is the batch call of the library, which is faster also without its thread pool.
        window = TruncatingTokenizer(engine.Tokenizer.from_str(self.content), self.max_tokens, threads=2)
        return None, lambda texts: TokenBlock.of(window, texts)


class TokenRunner:
    """The modules of a model, called with token ids.

    ``pad`` is the id of padding; attention ignores it. The vectors are those of the library's ``encode``:
    ``agrees`` checks that once, and models with other inputs are left to the library.
    """

    def __init__(self, model: Any, window: TruncatingTokenizer, tokenizer: Any) -> None:
        self._model = model
        self._window = window
        self._tokenizer = tokenizer
        self._pad = int(getattr(model.tokenizer, "pad_token_id", None) or 0)
        self._types = "token_type_ids" in getattr(model.tokenizer, "model_input_names", ())
        self._pool: WorkerPool | None = None

    @property
    def on_gpu(self) -> bool:
        """Whether the model is on a CUDA device."""
        return bool(self._model.device.type == "cuda")

    def agrees(self) -> bool:
        """Whether the vectors of the probe texts are those of the library."""
        try:
            expected = self._model.encode(list(PROBE_TEXTS), prompt="", show_progress_bar=False)
            vectors = self.encode(PROBE_TEXTS).vectors
        except Exception:  # a model with other inputs fails in its own way
            return False
        return vectors.shape == expected.shape and bool(np.allclose(vectors, expected, rtol=1e-3, atol=1e-4))

    def lower_precision(self) -> str:
        """Set the weights to float16 or bfloat16 if the probe texts keep their vectors; returns the precision."""
        import torch

        full = self.encode(PROBE_TEXTS).vectors
        for precision in ("float16", "bfloat16"):
            self._model.to(getattr(torch, precision))
            if _least_cosine(full, self.encode(PROBE_TEXTS).vectors) >= MIN_COSINE:
                return precision
            self._model.to(torch.float32)
        return "float32"

    def encode(self, texts: Sequence[str]) -> EncodedBatch:
        """One row per text, in order."""
        return self._finish(self._launch(TokenBlock.of(self._window, texts)))

    def encode_blocks(self, blocks: Iterable[list[str]]) -> Iterator[tuple[int, EncodedBatch]]:
        """Blocks in order: while one is on the device, the tokens of the next ones are made."""
        numbered = enumerate(blocks)
        ahead: deque[tuple[int, list[Future[Any]]]] = deque()
        running: deque[tuple[int, _Running]] = deque()
        while True:
            while len(ahead) < BLOCKS_AHEAD and (item := next(numbered, None)) is not None:
                ahead.append((item[0], self._tokenize(item[1])))
            if ahead and len(running) < BLOCKS_RUNNING:
                number, pieces = ahead.popleft()
                running.append((number, self._launch(TokenBlock.joined([piece.result() for piece in pieces]))))
            elif running:
                number, batch = running.popleft()
                yield number, self._finish(batch)
            else:
                return

    def close(self) -> None:
        """End the tokenizing processes."""
        if self._pool is not None:
            self._pool.close()
            self._pool = None

    def _tokenize(self, texts: list[str]) -> list[Future[Any]]:
        if self._pool is None:
            job = TokenizerJob(self._tokenizer.to_str(), self._window.max_tokens)
            self._pool = WorkerPool(job, max(1, (os.cpu_count() or 2) - 1))
        pieces = max(1, sum(map(len, texts)) // PIECE_CHARACTERS)
        step = -(-len(texts) // pieces)
        return [self._pool.submit(texts[start : start + step]) for start in range(0, len(texts), step)]

    def _launch(self, tokens: TokenBlock) -> _Running:
        """Queue all batches of a block; on a GPU nothing is waited for."""
        import torch

        device = self._model.device
        tokens, order, starts = tokens.longest_first()
        ids = self._to_device(tokens.ids)
        order, starts, lengths = self._to_device(np.stack([order, starts, tokens.lengths]))
        rows: Any = None
        with torch.inference_mode():
            for batch in tokens.batches(GPU_BATCH_TOKENS if self.on_gpu else CPU_BATCH_TOKENS):
                token = torch.arange(int(tokens.lengths[batch.start]), device=device)
                present = token < lengths[batch, None]
                padded = ids[torch.where(present, starts[batch, None] + token, 0)].long()
                features = {"input_ids": padded.masked_fill(~present, self._pad), "attention_mask": present.long()}
                if self._types:
                    features["token_type_ids"] = torch.zeros_like(padded)
                vectors = self._model(features)["sentence_embedding"].float()
                if rows is None:
                    rows = torch.empty((len(tokens.lengths), vectors.shape[1]), dtype=torch.float32, device=device)
                rows[order[batch]] = vectors
            if not self.on_gpu:
                return _Running(rows, tokens.counts, None)
            host = torch.empty(rows.shape, dtype=torch.float32, pin_memory=True)
            host.copy_(rows, non_blocking=True)
            done = torch.cuda.Event()  # type: ignore[no-untyped-call, unused-ignore]
            done.record()
            return _Running(host, tokens.counts, done)

    def _finish(self, running: _Running) -> EncodedBatch:
        if running.done is not None:
            running.done.synchronize()
        return EncodedBatch(running.rows.numpy(), running.counts.tolist())

    def _to_device(self, array: NDArray[Any]) -> Any:
        import torch

        tensor = torch.from_numpy(array)
        return tensor.pin_memory().to(self._model.device, non_blocking=True) if self.on_gpu else tensor


@dataclass(frozen=True, slots=True)
class _Running:
    """Vectors on their way to the host; they are there when ``done`` is."""

    rows: Any
    counts: NDArray[np.int64]
    done: Any


def _least_cosine(left: Vectors, right: Vectors) -> float:
    norms = np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1)
    cosines = np.einsum("ij,ij->i", left, right, dtype=np.float64) / norms
    return float(np.nan_to_num(cosines, nan=-1.0).min())
