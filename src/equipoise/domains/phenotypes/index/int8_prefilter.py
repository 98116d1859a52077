"""Exact top-k terms with an int8 prefilter.

Inner products of int8-quantised vectors have a bounded error, so a component is dropped only if k terms are
certainly better. The remaining few dozen components are scored with the float32 vectors. The result is exact
and takes about half of the time. If too many components remain, the prefilter returns None.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from equipoise.domains.phenotypes.index.aggregation import component_slices, n_columns_read, parse_strategy
from equipoise.geometry.base import PointArray, row_blocks
from equipoise.geometry.topk import top_columns
from equipoise.types import Floats, Ints

if TYPE_CHECKING:
    from equipoise.domains.phenotypes.index.expression import WeightedSum
    from equipoise.domains.phenotypes.index.stored_vectors import StoredVectorScorer
    from equipoise.domains.phenotypes.index.term_texts import TermTexts
    from equipoise.models.encoder import Vectors

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
        ranked = [self._ranked(query, candidates, k) for query, candidates in zip(queries, columns, strict=True)]
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

    def _ranked(self, query: PointArray, columns: Ints, k: int) -> TopTerms:
        """The best k terms of one query, from the remaining components."""
        scores, terms = self.fitted.of_prepared(query, columns), self.components.term[columns]
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
