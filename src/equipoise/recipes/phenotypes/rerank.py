"""A second stage: the first terms of a case in the order of a judge that reads their names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.embed.lexical.leading import leading_columns
from equipoise.embed.rerank.rerank import Reranker, rerank
from equipoise.geometry import Neighbours


@dataclass(frozen=True)
class Judge:
    """A reranker, what it reads of each term, and how many of the first terms it judges."""

    reranker: Reranker
    documents: Sequence[str]
    depth: int

    @property
    def name(self) -> str:
        """How the judge is written."""
        return self.reranker.card.spec

    def scores(self, texts: Sequence[str], scores: NDArray[Any]) -> NDArray[Any]:
        """Judged terms score above 0 by their new order, all others 0 or less in their old one."""
        columns, best = leading_columns(scores, min(self.depth, scores.shape[1]))
        judged = rerank(Neighbours(columns, best), self.reranker, queries=texts, documents=self.documents)
        placed = scores.astype(np.float64)
        placed -= placed.max(axis=1, keepdims=True)
        np.put_along_axis(placed, judged.indices, judged.scores + columns.shape[1], axis=1)
        return placed
