"""A first look that overlooks no term: products of rounded vectors say which terms could be among the best.

What rounding can do to a score is bounded, so a term is left out only where k others are better for sure.
The few dozen that remain are scored from the vectors themselves. So the answer is the exact one, in half of
the time; where too many terms lie close together to be told apart, there is none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from equipoise.embed.encoder import Vectors
from equipoise.embed.lexical.leading import leading_columns
from equipoise.geometry import Points
from equipoise.ontology.index.aggregate import columns_needed, strategy_of
from equipoise.ontology.index.components import Components
from equipoise.ontology.index.expression import Sum
from equipoise.ontology.index.fold import part_passes
from equipoise.ontology.index.held import HeldVectors
from equipoise.ontology.index.rounded import Product, Rounded, Wholes, product_of_bytes, slack
from equipoise.types import Ints

QUERIES_AT_ONCE = 128
_ROWS_AT_ONCE = 16
_WORTH = 1 << 22
"""Scores below which the plain product takes a few hundredths of a second."""
_SHARE = 0.01
"""Of all components: where more remain, to score them one by one takes longer than the plain product."""

_MAXIMA = {strategy_of(name) for name in ("label_only", "label_synonyms_max", "all_max")}

Leading = tuple[Ints, Points, Ints]
"""For each query its best terms, their scores and the components that agree most."""


@dataclass(frozen=True, slots=True)
class Screen:
    """Terms by the largest score of their labels and of ``others``, the parts that count beside it."""

    fitted: HeldVectors
    components: Components
    others: Sequence[str]
    corpus: Rounded
    product: Product
    share: float = _SHARE

    def leading(self, vectors: Vectors, k: int) -> Leading | None:
        """The best k terms of a few queries; None where too many could be."""
        queries = self.fitted.prepared(vectors)
        rounded = Rounded.of(queries, unit_a_row=True)
        whole = self.product(rounded.values, self.corpus.values)
        # What lies below this is not the best component of any of the best k terms.
        limits = leading_columns(self._largest(whole), k)[1][:, -1] - slack(rounded, self.corpus)
        columns = [np.flatnonzero(row >= limit) for row, limit in zip(whole, limits.tolist(), strict=True)]
        if sum(map(len, columns)) > self.share * whole.size:
            return None
        found = [self._ranked(query, some, k) for query, some in zip(queries, columns, strict=True)]
        terms, scores, component = (np.array(each) for each in zip(*found, strict=True))
        return terms, scores, component

    def _largest(self, whole: Wholes) -> Wholes:
        """For each query the largest product of every term, as the components arrange the terms."""
        largest = whole[:, : self.components.terms].copy()
        for start in range(0, len(whole), _ROWS_AT_ONCE):
            rows = slice(start, start + _ROWS_AT_ONCE)
            for part in self.others:
                for run, values in part_passes(self.components, whole[rows], part):
                    np.maximum(largest[rows, run], values, out=largest[rows, run])
        return largest

    def _ranked(self, query: Points, columns: Ints, k: int) -> Leading:
        """The best k terms of one query, by those of their components that could be the best."""
        scores, terms = self.fitted.of_prepared(query, columns), self.components.term[columns]
        order = np.lexsort((terms, -scores))
        _, places = np.unique(terms[order], return_index=True)
        chosen = order[np.sort(places)[:k]]
        return terms[chosen], scores[chosen], columns[chosen]


def screen_for(fitted: HeldVectors, components: Components, how: Sum, queries: int) -> Screen | None:
    """The screen of a strategy that takes the maximum; None where there is none or it would not pay."""
    width = columns_needed(components, how)
    if queries * width < _WORTH or (components.multi and how not in _MAXIMA):
        return None
    product = product_of_bytes(fitted.dims)
    if product is None:
        return None
    others = sorted(how.parts - {"label"}) if components.multi else []
    return Screen(fitted, components, others, fitted.rounded[:width], product)
