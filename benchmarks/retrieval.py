"""Random retrieval results of a given size, as arrays and as equal dicts of dicts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

CUTOFFS = (1, 3, 5, 10)
SIZES = ((1_000, 100, 5), (10_000, 100, 5), (10_000, 1_000, 20), (100_000, 100, 2))
METRICS = ["MRR"] + [f"{name}@{k}" for name in ("HR", "nDCG", "R", "P", "MAP(norm=R)") for k in CUTOFFS]

Dicts = dict[str, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Results:
    """``retrieved`` are ids, best first; ``relevant`` are the relevant ids, one of which was not retrieved."""

    retrieved: NDArray[np.int64]
    relevant: NDArray[np.int64]

    @classmethod
    def of_size(cls, queries: int, depth: int, relevant: int, *, seed: int = 0) -> Results:
        """Relevant ids are at random ranks, more often near the top."""
        rng = np.random.default_rng(seed)
        corpus = 10 * depth
        order = rng.permutation(corpus)
        offset = rng.integers(0, corpus, (queries, 1))
        retrieved = order[(offset + np.arange(depth)) % corpus]
        not_retrieved = order[(offset[:, 0] + depth) % corpus]
        columns = np.empty((queries, relevant - 1), dtype=np.int64)
        for start in range(0, queries, 1_000):
            block = retrieved[start : start + 1_000]
            keys = rng.exponential(size=block.shape) * np.arange(1, depth + 1)
            positions = np.argpartition(keys, relevant - 1, axis=1)[:, : relevant - 1]
            columns[start : start + 1_000] = np.take_along_axis(block, positions, axis=1)
        return cls(retrieved, np.column_stack([columns, not_retrieved]))

    def as_dicts(self, *, seed: int = 1) -> tuple[Dicts, Dicts]:
        """Qrels and run as dicts of dicts, as from a file: items in random order, each id a separate string.

        Scores are distinct integer multiples of 2^-20 within a list, so that they are not tied in float32.
        """
        rng = np.random.default_rng(seed)
        depth = self.retrieved.shape[1]
        scores = np.arange(depth, 0, -1) / 2.0**20
        qrels: Dicts = {}
        run: Dicts = {}
        for query, (row, relevant_items) in enumerate(zip(self.retrieved, self.relevant, strict=True)):
            shuffled = rng.permutation(depth)
            unit = f"q{query:06d}"
            run[unit] = dict(zip(_names(row[shuffled]), scores[shuffled].tolist(), strict=True))
            qrels[unit] = dict.fromkeys(_names(relevant_items), 1)
        return qrels, run

    def as_pairs(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Qrels and run in the format of ranx: arrays of (id, gain) and of (id, score)."""
        depth = self.retrieved.shape[1]
        scores = np.broadcast_to(np.arange(depth, 0, -1), self.retrieved.shape)
        gains = np.ones(self.relevant.shape)
        return np.stack([self.relevant, gains], axis=-1), np.stack([self.retrieved, scores], axis=-1).astype(np.float64)


def _names(items: NDArray[np.int64]) -> list[str]:
    return [f"doc{item:07d}" for item in items.tolist()]


def size_name(queries: int, depth: int, relevant: int) -> str:
    """``10k x 100 x 5``."""
    short = f"{queries // 1000}k" if queries % 1000 == 0 else f"{queries}"
    return f"{short} x {depth} x {relevant}"
