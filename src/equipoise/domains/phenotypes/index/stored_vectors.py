"""Exact scores and top-k terms of stored vectors, with two prefilters for speed.

Both prefilters bound the scores, drop a component only if k terms are certainly better, and score the remaining ones
with the full vectors: the result is exact. If too many components remain, they return None.

The int8 prefilter is for batches: inner products of int8-quantised vectors have a bounded error and take about half of
the time. The projection is for single queries, whose product with all float32 vectors is bound by memory bandwidth.
The vectors are rotated so that their first dimensions have most of their length; the rest of an inner product is at
most the product of the remaining lengths (Cauchy-Schwarz). On 42,546 labels and synonyms with 512 dimensions, 128
dimensions leave 40 components in the median, and the product takes about a tenth of the time.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from equipoise.domains.phenotypes.index.aggregation import component_slices, n_columns_read, parse_strategy
from equipoise.domains.phenotypes.index.lexicon import average_with_translation
from equipoise.geometry.base import PointArray, PreparedCorpus, row_blocks
from equipoise.geometry.search import DuplicateRows, find_duplicate_rows
from equipoise.geometry.topk import top_columns
from equipoise.models.encoder import Role
from equipoise.models.fusion import FittedFusion, SumFusion
from equipoise.models.lexical import FittedTfidf
from equipoise.models.retriever import Blocks, FittedRetriever
from equipoise.types import Floats, Ints

if TYPE_CHECKING:
    from equipoise.domains.phenotypes.index.aggregation import WeightedSum
    from equipoise.domains.phenotypes.index.files import TermTexts
    from equipoise.models.dense import DenseRetriever
    from equipoise.models.encoder import Vectors


class CaseMatcher:
    """Gives a query the upper and lower case of the ontology's texts."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._known: dict[str, str] = {}
        for text in texts:
            self._known.setdefault(text.casefold(), text)
        starts = [text[0] for text in texts if text and text[0].lower() != text[0].upper()]
        self._capital = 2 * sum(start.isupper() for start in starts) > len(starts)

    def __call__(self, query: str) -> str:
        case = self._known.get(query.strip().casefold())
        if case is not None:
            return case
        return query[:1].upper() + query[1:] if self._capital else query

    def all(self, queries: Iterable[str]) -> list[str]:
        return [self(query) for query in queries]


class StoredVectorScorer(FittedRetriever):
    """Scores queries against the vectors of all components, which are prepared once; equal vectors score equal.

    ``first`` is, for each vector, the index of the first equal vector; it is computed unless it is given.
    ``texts`` are the texts of the vectors: queries are embedded in their upper and lower case.
    """

    bytes_per_score = 4

    def __init__(
        self,
        system: DenseRetriever,
        vectors: Vectors,
        first: Ints | None = None,
        *,
        texts: Sequence[str] = (),
    ) -> None:
        self.documents = len(vectors)
        self._texts = texts
        self.vectors = vectors
        self.system = system
        if first is None:
            system.geometry.check(vectors).require_usable("the vectors of the terms")
        self._space = system.geometry.fitted(vectors)
        self._corpus = self._space.prepare_corpus(vectors)
        self._duplicate_rows = find_duplicate_rows(vectors) if first is None else DuplicateRows(first)
        self._copies = self._duplicate_rows.copies

    def row_blocks(self, queries: Sequence[str], rows: int) -> Blocks:
        return self.leading_blocks(queries, rows, self.documents)

    def leading_blocks(self, queries: Sequence[str], rows: int, columns: int) -> Blocks:
        """The scores of the first ``columns`` documents only."""
        return self.vector_blocks(self.query_vectors(queries), rows, columns)

    def query_vectors(self, queries: Sequence[str]) -> Vectors:
        vectors = self.system.embedder.embed(self._casing.all(queries), role=Role.QUERY)
        self._space.check(vectors).require_usable("the vectors of the queries")
        return vectors

    @cached_property
    def _casing(self) -> CaseMatcher:
        return CaseMatcher(self._texts)

    @property
    def dims(self) -> int:
        """The dimension of the prepared rows, which may exceed that of the vectors."""
        return int(self._corpus.rows.shape[1])

    @cached_property
    def int8_rows(self) -> Int8Rows:
        """The documents quantised to int8; needs a quarter of the memory of float32."""
        return Int8Rows.of(self._corpus.rows, self._corpus.scale)

    def prepared(self, vectors: Vectors) -> PointArray:
        """Queries as the left factor of the product."""
        return self._space.prepare_queries(vectors)

    def of_prepared(self, query: PointArray, columns: Ints) -> PointArray:
        """The scores of some documents for one prepared query, one by one, so that equal rows get equal scores."""
        scores: PointArray = np.einsum("ij,j->i", self._corpus.rows[columns], query)
        return scores if self._corpus.scale is None else scores * self._corpus.scale[columns]

    def prepared_rows(self, columns: int) -> PointArray:
        """The first documents as rows whose inner product with a prepared query is the score."""
        corpus = self._corpus[:columns]
        return np.asarray(corpus.rows) if corpus.scale is None else corpus.rows * corpus.scale[:, None]

    def of_columns(self, query: Vectors, columns: Ints) -> PointArray:
        """The scores of some documents for one query vector."""
        scale = None if self._corpus.scale is None else self._corpus.scale[columns]
        subset = PreparedCorpus(self._corpus.rows[columns], scale)
        return self._space.similarity(self._space.prepare_queries(query[None]), subset)

    def vector_blocks(self, vectors: Vectors, rows: int, columns: int) -> Blocks:
        """The same for query vectors."""
        prepared = self._space.prepare_queries(vectors)
        copies = self._copies[: np.searchsorted(self._copies, columns)]
        buffer = np.empty((min(rows, len(prepared)), columns), dtype=prepared.dtype)
        for start in range(0, len(prepared), rows):
            part = slice(start, min(start + rows, len(prepared)))
            scores = buffer[: part.stop - start]
            self._space.similarity(prepared[part], self._corpus[:columns], out=scores)
            if len(copies):
                scores[:, copies] = scores[:, self._duplicate_rows.first[copies]]
            yield part, scores


# Int8 quantisation. Products of int8 rows are exact in int32 and four times as fast as float32 products.

Int8 = NDArray[np.int8]
Int32 = NDArray[Any]
"""int32 arrays; typed loosely so that functions over score arrays accept them."""
Product = Callable[[Int8, Int8], Int32]
"""The inner products of the rows of two matrices; the next call may reuse the array."""

_MAX_INT8 = 127
_MAX_DIMS = (1 << 31) // _MAX_INT8**2
"""Largest dimension whose products fit into int32."""


def int8_product(dims: int) -> Product | None:
    """Torch's int8 matrix product for rows of this dimension; None if it is unavailable or not accelerated.

    Importing torch takes longer than answering a few thousand queries, so it is used only if another module,
    such as a model, has imported it.
    """
    torch = sys.modules.get("torch")
    supported = getattr(getattr(torch, "cpu", None), "_is_vnni_supported", None)
    if dims > _MAX_DIMS or supported is None or not supported() or not hasattr(torch, "_int_mm"):
        return None
    assert torch is not None
    buffer = torch.empty((0, 0), dtype=torch.int32)

    def product(left: Int8, right: Int8) -> Int32:
        nonlocal buffer
        if buffer.shape != (len(left), len(right)):
            buffer = torch.empty((len(left), len(right)), dtype=torch.int32)
        torch._int_mm(torch.from_numpy(left), torch.from_numpy(right).T, out=buffer)
        products: Int32 = buffer.numpy()
        return products

    return product


@dataclass(frozen=True, slots=True)
class Int8Rows:
    """Rows as multiples of a unit; ``lengths`` are those of the rows, ``quantization_errors`` of what rounding took."""

    values: Int8
    scale: Floats
    lengths: Floats
    quantization_errors: Floats

    def __getitem__(self, part: slice) -> Int8Rows:
        return Int8Rows(self.values[part], self.scale[part], self.lengths[part], self.quantization_errors[part])

    @classmethod
    def of(cls, rows: PointArray, row_scale: PointArray | None = None, *, scale_per_row: bool = False) -> Int8Rows:
        """Round rows, each multiplied by its scale, in one unit for all of them or in one for each."""
        scale = np.empty(len(rows))
        factor = np.ones(len(rows)) if row_scale is None else row_scale.astype(np.float64)
        for part in row_blocks(len(rows)):
            scale[part] = np.abs(rows[part]).max(axis=1, initial=0.0) * factor[part] / _MAX_INT8
        if not scale_per_row:
            scale[:] = scale.max(initial=0.0)
        scale[scale == 0.0] = 1.0
        quantized = cls(np.empty(rows.shape, dtype=np.int8), scale, np.empty(len(rows)), np.empty(len(rows)))
        for part in row_blocks(len(rows)):
            exact = rows[part] * factor[part, None]
            quantized.values[part] = np.rint(exact / scale[part, None])
            quantized.lengths[part] = np.linalg.norm(exact, axis=1)
            quantized.quantization_errors[part] = np.linalg.norm(
                exact - quantized.values[part] * scale[part, None], axis=1
            )
        return quantized


def ordering_error_bound(queries: Int8Rows, corpus: Int8Rows) -> Ints:
    """For each query, the largest difference of two int8 products whose order can differ from that of the scores.

    If one product exceeds another by more than this, its score is larger, float32 rounding included.
    """
    longest, worst = corpus.lengths.max(initial=0.0), corpus.quantization_errors.max(initial=0.0)
    rounding = queries.quantization_errors * longest + (queries.lengths + queries.quantization_errors) * worst
    adding = queries.values.shape[1] * np.finfo(np.float32).eps * queries.lengths * longest
    products: Ints = np.ceil(2.0 * (rounding + adding) / (queries.scale * corpus.scale[0])).astype(np.int64)
    return products


QUERY_BLOCK = 128
_BLOCK_ROWS = 16
_MIN_SCORES = 1 << 22
"""Below this number of scores the float32 product takes a few hundredths of a second."""
_MAX_CANDIDATE_SHARE = 0.01
"""If a larger share of the components remains, scoring them one by one is slower than the full product."""

MAX_STRATEGIES = {parse_strategy(name) for name in ("label_only", "label_synonyms_max", "all_max")}

TopTerms = tuple[Ints, PointArray, Ints]
"""For each query the best terms, their scores and their best components."""


@dataclass(frozen=True, slots=True)
class Int8Prefilter:
    """Top-k search by the maximum over the labels and ``others``, the other components that the strategy reads."""

    fitted: StoredVectorScorer
    components: TermTexts
    others: Sequence[str]
    corpus: Int8Rows
    product: Product
    share: float = _MAX_CANDIDATE_SHARE

    def top_k(self, vectors: Vectors, k: int) -> TopTerms | None:
        """The best k terms of a block of queries; None if too many components remain."""
        queries = self.fitted.prepared(vectors)
        quantized = Int8Rows.of(queries, scale_per_row=True)
        products = self.product(quantized.values, self.corpus.values)
        # A component below this limit is not the best component of any of the best k terms.
        limits = top_columns(self._largest(products), k)[1][:, -1] - ordering_error_bound(quantized, self.corpus)
        columns = [np.flatnonzero(row >= limit) for row, limit in zip(products, limits.tolist(), strict=True)]
        if sum(map(len, columns)) > self.share * products.size:
            return None
        ranked = [
            _best_terms(self.fitted.of_prepared(query, candidates), self.components.term[candidates], candidates, k)
            for query, candidates in zip(queries, columns, strict=True)
        ]
        terms, scores, component = (np.array(column) for column in zip(*ranked, strict=True))
        return terms, scores, component

    def _largest(self, products: Int32) -> Int32:
        """For each query the largest product of every term, in the order of ``TermTexts.order``."""
        largest = products[:, : self.components.terms].copy()
        for start in range(0, len(products), _BLOCK_ROWS):
            rows = slice(start, start + _BLOCK_ROWS)
            for part in self.others:
                for run, values in component_slices(self.components, products[rows], part):
                    np.maximum(largest[rows, run], values, out=largest[rows, run])
        return largest


def _best_terms(scores: PointArray, terms: Ints, columns: Ints, k: int) -> TopTerms:
    """The best k terms of one query, from its remaining components in ascending columns; equal scores by term."""
    order = np.lexsort((terms, -scores))
    _, first_rows = np.unique(terms[order], return_index=True)
    chosen = order[np.sort(first_rows)[:k]]
    return terms[chosen], scores[chosen], columns[chosen]


def make_prefilter(
    fitted: StoredVectorScorer, components: TermTexts, expression: WeightedSum, queries: int
) -> Int8Prefilter | None:
    """The prefilter for a strategy that takes a maximum; None if it does not apply or would not be faster."""
    width = n_columns_read(components, expression)
    if queries * width < _MIN_SCORES or (components.multi_vector and expression not in MAX_STRATEGIES):
        return None
    product = int8_product(fitted.dims)
    if product is None:
        return None
    others = sorted(expression.parts - {"label"}) if components.multi_vector else []
    return Int8Prefilter(fitted, components, others, fitted.int8_rows[:width], product)


N_LEADING = 128
"""Dimensions of the projection."""
_SAMPLE_ROWS = 4096
"""Rows that the rotation is computed from; the bound holds for any rotation."""
_MAX_PROJECTED_SHARE = 0.2
_FIRST_CANDIDATES = 16
"""Components per requested term that are scored first, for a lower bound of the k-th score."""


class ProjectionPrefilter:
    """Top-k search by the maximum over the components of ``columns``, for one query at a time."""

    def __init__(self, fitted: StoredVectorScorer, components: TermTexts, columns: int) -> None:
        rows = fitted.prepared_rows(columns)
        sample = rows[:: max(1, len(rows) // _SAMPLE_ROWS)]
        _, vectors = np.linalg.eigh((sample.T @ sample).astype(np.float64))
        self._rotation = np.ascontiguousarray(vectors[:, ::-1][:, :N_LEADING].astype(rows.dtype))
        self._leading = rows @ self._rotation
        lengths = np.linalg.norm(rows, axis=1)
        self._tails = _tail_lengths(lengths, np.linalg.norm(self._leading, axis=1), rows.dtype)
        # Rounding of both products, as a multiple of the length of the query.
        self._rounding = 4.0 * rows.shape[1] * np.finfo(rows.dtype).eps * float(lengths.max(initial=0.0))
        self._fitted, self._terms, self.columns = fitted, components.term[:columns], columns

    def top_k(self, query: PointArray, other_scores: Floats | None, k: int) -> TopTerms | None:
        """The best k terms of a prepared query; None if too many components remain.

        ``other_scores`` are added to those of the components, such as the scores of other systems of a fusion.
        """
        leading = self._rotation.T @ query
        length = float(np.linalg.norm(query))
        tail = _tail_lengths(np.array([length]), np.array([np.linalg.norm(leading)]), query.dtype)[0]
        bounds = self._leading @ leading
        bounds += self._tails * tail + self._rounding * length
        if other_scores is not None:
            bounds = bounds + other_scores
        n_first = min(_FIRST_CANDIDATES * k, self.columns)
        first = np.argpartition(bounds, -n_first)[-n_first:]
        scores = self._scores(query, other_scores, first)
        limit = _kth_term_score(scores, self._terms[first], k)
        columns = np.flatnonzero(bounds >= limit)
        if limit == -np.inf or len(columns) > _MAX_PROJECTED_SHARE * self.columns:
            return None
        exact = self._scores(query, other_scores, columns)
        terms, best, component = _best_terms(exact, self._terms[columns], columns, k)
        return terms[None], best[None], component[None]

    def _scores(self, query: PointArray, other_scores: Floats | None, columns: Ints) -> Floats:
        scores = self._fitted.of_prepared(query, columns).astype(np.float64)
        return scores if other_scores is None else scores + other_scores[columns]


def _tail_lengths(lengths: PointArray, leading: PointArray, dtype: np.dtype[np.floating]) -> PointArray:
    """The lengths of the dimensions that the projection leaves out, rounded up."""
    slack = 32.0 * np.finfo(dtype).eps
    return np.sqrt(np.maximum(lengths**2 - leading**2, 0.0) + slack * lengths**2)


def _kth_term_score(scores: Floats, terms: Ints, k: int) -> float:
    """The k-th largest of the terms' largest scores; minus infinity for fewer terms."""
    best: dict[int, float] = {}
    for term, score in zip(terms.tolist(), scores.tolist(), strict=True):
        if score > best.get(term, -np.inf):
            best[term] = score
    return sorted(best.values(), reverse=True)[k - 1] if len(best) >= k else -np.inf


@dataclass(frozen=True)
class SingleQuerySearch:
    """Top-k search of one query by a dense model, or by its sum with other systems."""

    fitted: FittedRetriever
    dense: StoredVectorScorer
    prefilter: ProjectionPrefilter
    parts: tuple[FittedRetriever, ...] = ()
    """The parts of a fusion, over the columns of the prefilter where that is possible."""

    def top_k(self, query: str, translation: str | None, k: int) -> TopTerms | None:
        """The best k terms of a query, which is also searched in translation if it has one; None if it is slow."""
        texts = [query] if translation is None else [query, translation]
        vectors = self.dense.prepared(self.dense.query_vectors(texts))
        return self.prefilter.top_k(_average(vectors), self._other_scores(texts), k)

    def _other_scores(self, texts: list[str]) -> Floats | None:
        """The scores of the other systems of a fusion; None if there are none."""
        if not isinstance(self.fitted, FittedFusion):
            return None
        total: Floats | None = None
        for number, part in enumerate(self.parts):
            if part is not self.dense:
                ((_, scores),) = part.row_blocks(texts, len(texts))
                contribution = self.fitted.fusion.contribution(number, scores)[:, : self.prefilter.columns]
                total = contribution if total is None else total + contribution
        return None if total is None else _average(total).astype(np.float64, copy=False)


def _average(rows: PointArray) -> PointArray:
    return rows[0] if len(rows) == 1 else average_with_translation(rows[0], rows[1])


def single_query_search(fitted: FittedRetriever, components: TermTexts, columns: int) -> SingleQuerySearch | None:
    """The search of single queries; None unless the system is one dense model, or a sum with exactly one."""
    if isinstance(fitted, StoredVectorScorer):
        return SingleQuerySearch(fitted, fitted, ProjectionPrefilter(fitted, components, columns))
    if not isinstance(fitted, FittedFusion) or not isinstance(fitted.fusion, SumFusion):
        return None
    dense = [part for part in fitted.parts if isinstance(part, StoredVectorScorer)]
    if len(dense) != 1:
        return None
    parts = tuple(part.leading(columns) if isinstance(part, FittedTfidf) else part for part in fitted.parts)
    return SingleQuerySearch(fitted, dense[0], ProjectionPrefilter(dense[0], components, columns), parts)
