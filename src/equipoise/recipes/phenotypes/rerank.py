"""A second stage: the first terms of a case in the order of a judge that reads their names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from equipoise.embed.rerank.rerank import Reranker, reranked_scores


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
        return reranked_scores(
            scores, self.reranker, queries=texts, documents=self.documents, depth=self.depth
        )
