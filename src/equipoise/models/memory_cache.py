"""An in-memory cache around an embedder, so that a grid search embeds every text once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.models.dense import DenseRetriever
from equipoise.models.embedder import Embedder, EmbedResult, EmbedStats
from equipoise.models.encode_texts import Progress, check_texts
from equipoise.types import Role

if TYPE_CHECKING:
    from equipoise.models.encoder import Vectors
    from equipoise.models.retriever import Retriever
    from equipoise.models.worker_pool import ExecutorMap


class MemoisedEmbedder(Embedder):
    """An embedder that encodes each text of a role once."""

    def __init__(self, model: Embedder) -> None:
        super().__init__(model.encoder, model.spec, cache=model.cache)
        self._rows: dict[Role, dict[str, Vectors]] = {role: {} for role in Role}
        self.cached = 0
        """How many texts the cache of an earlier run had."""

    def embed_report(
        self,
        texts: Iterable[str],
        role: Role | str = Role.DOCUMENT,
        *,
        progress: Progress | None = None,
        map_function: ExecutorMap | None = None,
    ) -> EmbedResult:
        """The vectors, from memory where they were made before; the report is of what was made now."""
        start = perf_counter()
        text_list = check_texts(texts)
        rows = self._rows[Role(role)]
        new = [text for text in dict.fromkeys(text_list) if text not in rows]
        if new:
            new_report = super().embed_report(new, role, progress=progress, map_function=map_function)
            rows.update(zip(new, new_report.vectors, strict=True))
            self.cached += new_report.report.from_cache
        report = EmbedStats(
            texts=len(text_list),
            distinct=len(set(text_list)),
            from_cache=len(set(text_list)) - (new_report.report.embedded if new else 0),
            embedded=new_report.report.embedded if new else 0,
            truncated=None,
            tokens=new_report.report.tokens if new else 0,
            lost_tokens=None,
            seconds=perf_counter() - start,
        )
        return EmbedResult(np.array([rows[text] for text in text_list]), report)


def memoise_retriever(system: Retriever) -> Retriever:
    """A copy of the system whose models embed each text once."""
    if isinstance(system, DenseRetriever):
        dense = copy(system)
        dense.embedder = MemoisedEmbedder(system.embedder)
        return dense
    parts = getattr(system, "parts", None)
    if parts is None:
        return system
    fusion: Any = copy(system)
    fusion.parts = tuple(memoise_retriever(part) for part in parts)
    return fusion


def dense_models(system: Retriever) -> list[Embedder]:
    """The models that embed in a system: one, several in a fusion, or none."""
    if isinstance(system, DenseRetriever):
        return [system.embedder]
    return [model for part in getattr(system, "parts", ()) for model in dense_models(part)]


def n_cached_texts(system: Retriever) -> int:
    """The number of texts that a memoised system took from the cache of an earlier run."""
    return sum(model.cached for model in dense_models(system) if isinstance(model, MemoisedEmbedder))


@dataclass(frozen=True, slots=True)
class Truncation:
    """How many of some texts a model reads only in part, and what it does not read; None is unknown."""

    texts: int
    truncated: int | None
    lost_tokens: int | None

    @property
    def share(self) -> float | None:
        """The share of the texts."""
        return None if self.truncated is None else self.truncated / self.texts


def measure_truncation(model: Embedder, texts: Sequence[str]) -> Truncation:
    """What the model leaves out of texts that it embeds as documents."""
    window = model.card.max_tokens
    prompt = model.prompts[Role.DOCUMENT]
    # Without a window nothing is truncated, and one word shows whether the model counts tokens.
    read = ["word"] if window is None else [prompt + text for text in texts]
    counts = model.encoder.token_counts(read)
    if counts is None:
        return Truncation(len(texts), None, None)
    beyond = np.array([max(0, count - window) if window is not None else 0 for count in counts])
    return Truncation(len(texts), int((beyond > 0).sum()), int(beyond.sum()))
