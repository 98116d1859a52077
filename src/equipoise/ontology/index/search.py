"""The one thing that scores terms for texts: a system over the components of an ontology's terms."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from equipoise.embed.card import Card
from equipoise.embed.lexical.leading import leading_columns
from equipoise.embed.lexical.words import require_texts
from equipoise.embed.retriever import Fitted, Retriever, fingerprint_of, retriever
from equipoise.embed.work import Progress
from equipoise.errors import ParameterError
from equipoise.geometry import Points
from equipoise.ontology.index.aggregate import (
    DEFAULT_STRATEGY,
    Weights,
    aggregate,
    columns_needed,
    strategy_of,
)
from equipoise.ontology.index.components import Components, Kind, components
from equipoise.ontology.index.fitting import fitted_system
from equipoise.ontology.index.held import HeldVectors
from equipoise.ontology.index.screen import QUERIES_AT_ONCE, Leading, screen_for
from equipoise.ontology.index.store import TermIndex
from equipoise.ontology.ontology import Ontology
from equipoise.types import Ints

TermBlocks = Iterator[tuple[slice, Points]]

_BLOCK_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Found:
    """For each query its best terms, their scores, and the component of each that agrees most with the query.

    Best first; equal scores in the order of the ontology. ``component`` is an index of ``Components.texts``,
    among the parts that the strategy reads.
    """

    terms: Ints
    scores: Points
    component: Ints

    def __len__(self) -> int:
        return len(self.terms)


class TermSystem:
    """Scores the terms of an ontology for texts, exactly, over all components of every term.

    ``spec`` is whatever ``embed.retriever`` takes. A model that embeds uses the vectors of ``index``, where
    one is given that it made; else it embeds the components at the first use. Systems that score words, and
    fusions, are fitted on the components. ``multi`` and ``strategy`` say what becomes of a term's texts; a
    single-vector system has one text a term, and no strategy.
    """

    def __init__(
        self,
        spec: str | Retriever,
        ontology: Ontology,
        *,
        multi: bool = True,
        strategy: str = DEFAULT_STRATEGY,
        weights: Weights | None = None,
        index: TermIndex | Sequence[TermIndex] | None = None,
        progress: Progress | None = None,
        threads: int = 1,
    ) -> None:
        self.ontology = ontology
        self.multi = multi
        self.system = retriever(spec, threads=threads)
        self.indexes = (index,) if isinstance(index, TermIndex) else tuple(index or ())
        self.strategy = strategy
        self.expression = strategy_of(strategy, weights)
        self._progress = progress
        for each in self.indexes:
            each.require(ontology, multi)

    def __repr__(self) -> str:
        how = f"multi-vector, {self.strategy}" if self.multi else "single-vector"
        return f"<TermSystem {self.card.spec} over {self.ontology.title}: {how}>"

    @property
    def card(self) -> Card:
        """The card of the model or the lexical system."""
        return self.system.card

    @property
    def fingerprint(self) -> str:
        """Equal only where the scores are equal for any query."""
        how = f"multi {self.expression!r}" if self.multi else "single"
        return fingerprint_of("terms 2", self.system.fingerprint, self.ontology.fingerprint, how)

    @cached_property
    def components(self) -> Components:
        """The texts that are compared with a query."""
        return self.indexes[0].components if self.indexes else components(self.ontology, self.multi)

    @cached_property
    def fitted(self) -> Fitted:
        """The system after it has read the components, or taken their vectors from the index."""
        return fitted_system(self.system, self.components, self.indexes, self._progress)

    def with_strategy(self, strategy: str, weights: Weights | None = None) -> TermSystem:
        """The same system with another aggregation; nothing is embedded or fitted again."""
        assert self.fitted is not None
        other = copy(self)
        other.strategy, other.expression = strategy, strategy_of(strategy, weights)
        other.__dict__.pop("_columns_of", None)
        return other

    def component_blocks(self, queries: Iterable[str], block_bytes: int = _BLOCK_BYTES) -> TermBlocks:
        """The scores of all components for a few queries at a time, from which any strategy can aggregate.

        The next block may reuse the array.
        """
        return self._blocks(require_texts(queries, "queries"), block_bytes, len(self.components))

    def score_blocks(self, queries: Iterable[str], block_bytes: int = _BLOCK_BYTES) -> TermBlocks:
        """The scores of all terms for a few queries at a time: a slice of queries and (queries, terms)."""
        needed = columns_needed(self.components, self.expression)
        for rows, scores in self._blocks(require_texts(queries, "queries"), block_bytes, needed):
            yield rows, aggregate(scores, self.components, self.expression)

    def search(self, queries: Iterable[str], k: int) -> Found:
        """The best k terms of every query."""
        texts = require_texts(queries, "queries")
        self.require_depth(k)
        shape = (len(texts), k)
        terms, component = np.empty(shape, dtype=np.int64), np.empty(shape, dtype=np.int64)
        best: Points = np.empty(shape)
        for rows, found in self._leading_blocks(texts, k):
            terms[rows], best[rows], component[rows] = found
        return Found(terms, best, component)

    def agreeing(self, scores: Points, terms: Ints) -> Ints:
        """For each query and found term, the column with the largest score among those the strategy reads."""
        columns, starts = self._columns_of
        count = starts[terms + 1] - starts[terms]
        # A term with fewer components than the widest repeats its last one.
        step = np.minimum(np.arange(count.max(initial=1)), count[..., None] - 1)
        own = columns[starts[terms][..., None] + step]
        best = scores[np.arange(len(scores))[:, None, None], own].argmax(axis=-1)
        chosen: Ints = np.take_along_axis(own, best[..., None], axis=-1)[..., 0]
        return chosen

    def require_depth(self, k: int) -> None:
        """Refuse to find more terms than there are, or none."""
        if not 1 <= k <= self.components.terms:
            raise ParameterError(
                f"k is {k} and there are {self.components.terms:,} terms",
                hint=f"k is 1 to {self.components.terms}",
            )

    def _leading_blocks(self, texts: list[str], k: int) -> Iterator[tuple[slice, Leading]]:
        """The best k terms of a few queries at a time, by way of a screen where there is one that pays."""
        fitted, needed = self.fitted, columns_needed(self.components, self.expression)
        screen = None
        if isinstance(fitted, HeldVectors):
            screen = screen_for(fitted, self.components, self.expression, len(texts))
        if screen is None:
            for rows, scores in self._blocks(texts, _BLOCK_BYTES, needed):
                yield rows, self._leading(scores, k)
            return
        vectors = screen.fitted.query_vectors(texts)
        for start in range(0, len(texts), QUERIES_AT_ONCE):
            part = vectors[start : start + QUERIES_AT_ONCE]
            found = screen.leading(part, k)
            if found is None:
                ((_, scores),) = screen.fitted.vector_blocks(part, len(part), needed)
                found = self._leading(scores, k)
            yield slice(start, start + len(part)), found

    def _leading(self, scores: Points, k: int) -> Leading:
        terms, best = leading_columns(aggregate(scores, self.components, self.expression), k)
        return terms, best, self.agreeing(scores, terms)

    def _blocks(self, queries: list[str], block_bytes: int, columns: int) -> TermBlocks:
        fitted = self.fitted
        rows = max(1, block_bytes // (fitted.bytes_a_score * len(self.components)))
        if isinstance(fitted, HeldVectors):
            return fitted.leading_blocks(queries, rows, columns)
        return fitted.row_blocks(queries, rows)

    @cached_property
    def _columns_of(self) -> tuple[Ints, Ints]:
        """The columns that the strategy reads, sorted by term, and where each term's begin."""
        kinds = [_KINDS[part] for part in self.expression.parts] if self.multi else [Kind.WHOLE]
        read = np.isin(self.components.kind, kinds)
        # As in ``aggregate``, the label stands for a term that has none of the parts.
        bare = np.bincount(self.components.term[read], minlength=self.components.terms) == 0
        read |= bare[self.components.term] & (self.components.kind == Kind.LABEL)
        columns = np.flatnonzero(read)
        term = self.components.term[columns]
        starts = np.concatenate([[0], np.cumsum(np.bincount(term, minlength=self.components.terms))])
        return columns[np.argsort(term, kind="stable")], starts.astype(np.int64)


_KINDS = {"label": Kind.LABEL, "synonyms": Kind.SYNONYM, "definition": Kind.DEFINITION}
