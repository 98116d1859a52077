"""Retrievers: fitted on documents, they score them for queries; opened by spec, alone or several by name."""

from __future__ import annotations

import hashlib
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from equipoise.errors import DuplicateError, ParameterError
from equipoise.geometry.base import PointArray
from equipoise.geometry.search import Neighbors
from equipoise.geometry.topk import top_columns
from equipoise.models.analyzer import check_nonempty_texts
from equipoise.models.registry import (
    FUSIONS,
    ModelSpec,
    check_spec_options,
    parse_spec,
    spec_kind,
    spec_parts,
    spec_prefix,
)

if TYPE_CHECKING:
    from pathlib import Path

    from equipoise.geometry.base import Geometry
    from equipoise.models.encoder import ModelCard
    from equipoise.models.stores.base import VectorStore
    from equipoise.models.stores.recall import IndexRecall
    from equipoise.models.vector_cache import VectorCache

Blocks = Iterator[tuple[slice, PointArray]]

_BLOCK_BYTES = 64 << 20


class ScoreScale(StrEnum):
    """The range of the scores of a system, which determines whether they can be added to those of another."""

    COSINE = "cosine"
    """In [-1, 1], the same for every query."""
    POSITIVE = "positive"
    """0 if no term matches, with no upper bound."""
    ORDER = "order"
    """Only the order counts."""


class FittedRetriever(ABC):
    """A retriever with indexed documents. Higher scores are better; equal documents have equal scores."""

    bytes_per_score: int = 8
    """Bytes per score while a block is computed."""
    documents: int
    index_recall: IndexRecall | None = None
    """The recall of the approximate index, after ``search``; None for exact search."""

    def __len__(self) -> int:
        return self.documents

    def search(self, queries: Iterable[str], k: int) -> Neighbors:
        """The best k documents of every query, best first; equal scores in the order of the documents."""
        queries = self.require(queries, k)
        indices = np.empty((len(queries), k), dtype=np.int64)
        best = np.empty((len(queries), k))
        for rows, scores in self.score_blocks(queries, block_bytes=_BLOCK_BYTES // 4):
            indices[rows], best[rows] = top_columns(scores, k)
        return Neighbors(indices, best)

    def score_blocks(self, queries: Iterable[str], block_bytes: int = _BLOCK_BYTES) -> Blocks:
        """The scores of all documents for a few queries at a time, as many as fit ``block_bytes``.

        Yields the slice of queries and an array (queries, documents), which may be overwritten; the next
        block may reuse it. The scores are exact: full-depth ranks are counted from them, and a store is not used.
        """
        queries = check_nonempty_texts(queries, "queries")
        if block_bytes < 1:
            raise ParameterError(f"block_bytes is {block_bytes}; it must be 1 or more")
        return self.row_blocks(queries, max(1, block_bytes // (self.bytes_per_score * self.documents)))

    @abstractmethod
    def row_blocks(self, queries: Sequence[str], rows: int) -> Blocks:
        """The same in blocks of exactly ``rows`` queries; the last may be smaller."""

    def require(self, queries: Iterable[str], k: int) -> list[str]:
        """The queries as a list; an error unless they are texts and there are at least k documents."""
        texts = check_nonempty_texts(queries, "queries")
        if not 1 <= k <= self.documents:
            raise ParameterError(
                f"k is {k} and there are {self.documents} documents",
                hint=f"k is 1 to {self.documents}; len(fitted) is the number of documents",
            )
        return texts


class Retriever(ABC):
    """A system that scores documents for queries; its fingerprint covers everything that determines the scores."""

    scale: ScoreScale
    """The range of its scores."""

    @property
    @abstractmethod
    def card(self) -> ModelCard:
        """Its name, its spec and other metadata."""

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """Equal only if the scores are equal for all documents."""

    @abstractmethod
    def fit(self, documents: Iterable[str]) -> FittedRetriever:
        """Index the documents; row i of all later scores is document i."""


class RetrieverFromSpec(Protocol):
    """A class of retrievers that can be made from a spec."""

    def from_spec(self, spec: ModelSpec) -> Retriever:
        """The retriever that the spec names."""


LEXICAL = {"bm25": "BM25Retriever", "tfidf": "TfidfRetriever"}
"""The kinds that score words, and their classes in ``models.lexical``."""


def retriever(
    system: str | ModelSpec | Retriever | object,
    *,
    geometry: str | Geometry | None = None,
    store: str | VectorStore | None = None,
    cache: VectorCache | Path | str | bool | None = None,
    threads: int = 1,
    **options: object,
) -> Retriever:
    """Load a retrieval system by its spec, alias or path, or wrap an object that embeds.

    ``bm25:`` and ``tfidf:`` are lexical; ``sum:a+b`` and ``rrf:a+b`` fuse two or more systems; everything else is an
    embedding model whose vectors are compared in a geometry.

    Parameters
    ----------
    system
        A spec, an alias, a path, a retriever, or an object with ``encode`` or ``embed``.
    geometry
        How vectors are compared: ``cosine`` (the default), ``dot``, ``euclidean``, ``poincare`` or ``lorentz``.
    store
        A vector store that answers ``search`` for an embedding model: a spec such as ``faiss:hnsw`` or an empty
        ``VectorStore``. ``FittedDense.index_recall`` measures what an approximate one misses.
    cache
        As in ``embedder``.
    threads
        Threads per model.
    **options
        Options of the spec: ``retriever("bm25:", k1=1.2)`` is ``retriever("bm25:,k1=1.2")``.

    Returns
    -------
    Retriever
        A system with ``fit(documents)``, which returns an object with ``search(queries, k)``.

    Examples
    --------
    >>> hits = retriever("bm25:", k1=1.2).fit(["a red fox", "a blue whale"]).search(["red whale fox"], k=1)
    >>> hits.indices.tolist()
    [[0]]
    """
    if isinstance(system, Retriever):
        if options or geometry is not None or store is not None:
            raise ParameterError(
                f"{system.card.spec} exists already and takes no options",
                hint="give the options with a spec",
            )
        return system
    kind = spec_kind(system)
    if store is not None and kind in (*FUSIONS, *LEXICAL):
        hint = "write store= after the part that embeds" if kind in FUSIONS else "leave store out"
        raise ParameterError(f"{kind}: has no vectors that a store could hold", hint=hint)
    if kind in FUSIONS:
        from equipoise.models.fusion import fusion_from_spec

        text = system.text or str(system) if isinstance(system, ModelSpec) else str(system)
        return fusion_from_spec(text, geometry=geometry, cache=cache, threads=threads, **options)
    if kind in LEXICAL:
        spec = system if isinstance(system, ModelSpec) else parse_spec(str(system))
        if geometry is not None:
            raise ParameterError(f"{kind}: has no geometry", hint="leave geometry out: it scores words")
        maker: RetrieverFromSpec = getattr(import_module("equipoise.models.lexical"), LEXICAL[kind])
        return maker.from_spec(spec.with_options(**_format_options(options)))
    from equipoise.models.dense import dense_retriever

    return dense_retriever(system, geometry=geometry, store=store, cache=cache, threads=threads, **options)


def resolve_models(models: Any) -> dict[str, Any]:
    """The models by name: specs as they are written, objects by their cards or types; a dict gives the names.

    >>> list(resolve_models(["minilm", "bm25:"])), list(resolve_models({"lexical": "bm25:"}))
    (['minilm', 'bm25:'], ['lexical'])
    """
    if isinstance(models, Mapping):
        for model in models.values():
            _name(model)  # raises for what is not a model
        return {str(name): model for name, model in models.items()}
    from equipoise.models.backends.python_object import is_model

    model_list = (
        [models] if isinstance(models, str) or is_model(models) or not isinstance(models, Iterable) else list(models)
    )
    if not model_list:
        raise ParameterError("no model was given", hint="eq ls models lists what works here")
    by_name: dict[str, Any] = {}
    for model in model_list:
        name = _name(model)
        if name in by_name:
            raise DuplicateError(f"the model {name} is named twice", hint="name each model once")
        by_name[name] = model
    return by_name


@contextmanager
def open_retriever(model: Any, *, cache: Any = None, threads: int = 1) -> Iterator[Retriever]:
    """The model as a retriever. A model given by name is closed afterwards; a model given as an object is not."""
    system = retriever(model, cache=cache, threads=threads)
    try:
        yield system
    finally:
        if isinstance(model, str | os.PathLike | ModelSpec):
            from equipoise.models.dense import dense_models

            for dense_model in dense_models(system):
                dense_model.close()


def _name(model: Any) -> str:
    """The name of a model in tables and folders; an error for what is not a model."""
    from equipoise.models.backends.python_object import is_model, object_name
    from equipoise.models.embedder import Embedder

    if isinstance(model, str | os.PathLike):
        text = os.fspath(model)
        for part in spec_parts(text):
            check_spec_options(parse_spec(part))
        return str(text).strip()
    if isinstance(model, ModelSpec):
        return str(model)
    if isinstance(model, Retriever | Embedder):
        return model.card.spec
    if is_model(model):
        return f"py:{object_name(model)}"
    raise ParameterError(
        f"a {type(model).__name__} is not a model",
        hint="give a spec such as minilm, an object with encode(texts), or a function of texts",
    )


def has_lexical_baseline(systems: Iterable[object]) -> bool:
    """Whether one of these is a lexical system, as a baseline for the others.

    >>> has_lexical_baseline(["minilm", "bm25:"]), has_lexical_baseline(["minilm", "sum:minilm+bm25:"])
    (True, False)
    """
    return any(
        (spec_prefix(system.card.spec) if isinstance(system, Retriever) else spec_kind(system)) in LEXICAL
        for system in systems
    )


def content_fingerprint(*parts: str) -> str:
    """A hash of everything that determines the scores."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _format_options(options: dict[str, object]) -> dict[str, object]:
    """Options as they would be written: words are separated by bars, the ends of a range by a hyphen."""
    written = dict(options)
    for name, value in options.items():
        if isinstance(value, list | tuple | set | frozenset):
            numbers = all(isinstance(item, int) for item in value)
            written[name] = "-".join(map(str, value)) if numbers else "|".join(sorted(map(str, value))) + "|"
    return written
