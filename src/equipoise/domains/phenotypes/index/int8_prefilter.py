"""A first look that overlooks no term: products of rounded vectors say which terms could be among the best.

What rounding can do to a score is bounded, so a term is left out only where k others are better for sure.
The few dozen that remain are scored from the vectors themselves. So the answer is the exact one, in half of
the time; where too many terms lie close together to be told apart, there is none.
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
from equipoise.geometry.topk import leading_columns_of
from equipoise.types import Floats, Ints

if TYPE_CHECKING:
    from equipoise.domains.phenotypes.index.expression import WeightedSum
    from equipoise.domains.phenotypes.index.retriever import StoredVectorScorer
    from equipoise.domains.phenotypes.index.term_texts import TermTexts
    from equipoise.models.encoder import Vectors

# Vectors in 8-bit whole numbers: their products are exact, four times as fast, and a known distance off.

Int8 = NDArray[np.int8]
Int32 = NDArray[Any]
"""32-bit whole numbers, typed so that what reads scores can read them too."""
Product = Callable[[Int8, Int8], Int32]
"""The inner products of the rows of two matrices; the next call may reuse the array."""

_LARGEST = 127
_LONGEST = (1 << 31) // _LARGEST**2
"""Coordinates whose products can be summed in 32 bits."""


def int8_product(dims: int) -> Product | None:
    """Torch's product of 8-bit rows of so many numbers; None where it is not at hand or would not be fast.

    Torch takes longer to import than a few thousand queries to answer, so it serves only where something
    else, such as a model that runs on it, has loaded it.
    """
    torch = sys.modules.get("torch")
    supported = getattr(getattr(torch, "cpu", None), "_is_vnni_supported", None)
    if dims > _LONGEST or supported is None or not supported() or not hasattr(torch, "_int_mm"):
        return None
    assert torch is not None
    held = torch.empty((0, 0), dtype=torch.int32)

    def product(left: Int8, right: Int8) -> Int32:
        nonlocal held
        if held.shape != (len(left), len(right)):
            held = torch.empty((len(left), len(right)), dtype=torch.int32)
        torch._int_mm(torch.from_numpy(left), torch.from_numpy(right).T, out=held)
        found: Int32 = held.numpy()
        return found

    return product


@dataclass(frozen=True, slots=True)
class Int8Rows:
    """Rows as multiples of a unit; ``lengths`` are those of the rows, ``errors`` of what rounding took."""

    values: Int8
    unit: Floats
    lengths: Floats
    errors: Floats

    def __getitem__(self, part: slice) -> Int8Rows:
        return Int8Rows(self.values[part], self.unit[part], self.lengths[part], self.errors[part])

    @classmethod
    def of(cls, rows: PointArray, scale: PointArray | None = None, *, unit_a_row: bool = False) -> Int8Rows:
        """Round rows, each multiplied by its scale, in one unit for all of them or in one for each."""
        unit = np.empty(len(rows))
        factor = np.ones(len(rows)) if scale is None else scale.astype(np.float64)
        for part in row_blocks(len(rows)):
            unit[part] = np.abs(rows[part]).max(axis=1, initial=0.0) * factor[part] / _LARGEST
        if not unit_a_row:
            unit[:] = unit.max(initial=0.0)
        unit[unit == 0.0] = 1.0
        found = cls(np.empty(rows.shape, dtype=np.int8), unit, np.empty(len(rows)), np.empty(len(rows)))
        for part in row_blocks(len(rows)):
            exact = rows[part] * factor[part, None]
            found.values[part] = np.rint(exact / unit[part, None])
            found.lengths[part] = np.linalg.norm(exact, axis=1)
            found.errors[part] = np.linalg.norm(exact - found.values[part] * unit[part, None], axis=1)
        return found


def ordering_error_bound(queries: Int8Rows, corpus: Int8Rows) -> Ints:
    """By how much, for each query, the order of two whole products can be wrong about the scores.

    Where one is larger than another by more than this, its score is, also as float32 would add it up.
    """
    longest, worst = corpus.lengths.max(initial=0.0), corpus.errors.max(initial=0.0)
    rounding = queries.errors * longest + (queries.lengths + queries.errors) * worst
    adding = queries.values.shape[1] * np.finfo(np.float32).eps * queries.lengths * longest
    whole: Ints = np.ceil(2.0 * (rounding + adding) / (queries.unit * corpus.unit[0])).astype(np.int64)
    return whole


QUERIES_AT_ONCE = 128
_ROWS_AT_ONCE = 16
_WORTH = 1 << 22
"""Scores below which the plain product takes a few hundredths of a second."""
_SHARE = 0.01
"""Of all components: where more remain, to score them one by one takes longer than the plain product."""

_MAXIMA = {parse_strategy(name) for name in ("label_only", "label_synonyms_max", "all_max")}

Leading = tuple[Ints, PointArray, Ints]
"""For each query its best terms, their scores and the components that agree most."""


@dataclass(frozen=True, slots=True)
class Int8Prefilter:
    """Terms by the largest score of their labels and of ``others``, the parts that count beside it."""

    fitted: StoredVectorScorer
    components: TermTexts
    others: Sequence[str]
    corpus: Int8Rows
    product: Product
    share: float = _SHARE

    def leading(self, vectors: Vectors, k: int) -> Leading | None:
        """The best k terms of a few queries; None where too many could be."""
        queries = self.fitted.prepared(vectors)
        rounded = Int8Rows.of(queries, unit_a_row=True)
        whole = self.product(rounded.values, self.corpus.values)
        # What lies below this is not the best component of any of the best k terms.
        limits = leading_columns_of(self._largest(whole), k)[1][:, -1] - ordering_error_bound(rounded, self.corpus)
        columns = [np.flatnonzero(row >= limit) for row, limit in zip(whole, limits.tolist(), strict=True)]
        if sum(map(len, columns)) > self.share * whole.size:
            return None
        found = [self._ranked(query, some, k) for query, some in zip(queries, columns, strict=True)]
        terms, scores, component = (np.array(each) for each in zip(*found, strict=True))
        return terms, scores, component

    def _largest(self, whole: Int32) -> Int32:
        """For each query the largest product of every term, as the components arrange the terms."""
        largest = whole[:, : self.components.terms].copy()
        for start in range(0, len(whole), _ROWS_AT_ONCE):
            rows = slice(start, start + _ROWS_AT_ONCE)
            for part in self.others:
                for run, values in component_slices(self.components, whole[rows], part):
                    np.maximum(largest[rows, run], values, out=largest[rows, run])
        return largest

    def _ranked(self, query: PointArray, columns: Ints, k: int) -> Leading:
        """The best k terms of one query, by those of their components that could be the best."""
        scores, terms = self.fitted.of_prepared(query, columns), self.components.term[columns]
        order = np.lexsort((terms, -scores))
        _, places = np.unique(terms[order], return_index=True)
        chosen = order[np.sort(places)[:k]]
        return terms[chosen], scores[chosen], columns[chosen]


def make_prefilter(
    fitted: StoredVectorScorer, components: TermTexts, how: WeightedSum, queries: int
) -> Int8Prefilter | None:
    """The screen of a strategy that takes the maximum; None where there is none or it would not pay."""
    width = n_columns_read(components, how)
    if queries * width < _WORTH or (components.multi and how not in _MAXIMA):
        return None
    product = int8_product(fitted.dims)
    if product is None:
        return None
    others = sorted(how.parts - {"label"}) if components.multi else []
    return Int8Prefilter(fitted, components, others, fitted.rounded[:width], product)
