"""An inverted index: for every term the documents that hold it, each with a number."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from equipoise.types import Floats, Ints

_INT64 = 2**63

_FREQUENT = 512
"""Documents of a term from which it is added by a call of its own; rarer terms are added many at a time."""

_RARE_AT_ONCE = 1024


@dataclass(frozen=True, slots=True)
class Postings:
    """The documents of term t stand at ``starts[t]`` to ``starts[t + 1]``, each with a value."""

    starts: Ints
    documents: NDArray[np.int32]
    values: Floats

    @property
    def spread(self) -> Ints:
        """In how many documents each term occurs."""
        return np.diff(self.starts)

    def with_values(self, values: Floats) -> Postings:
        """The same documents with other numbers."""
        return Postings(self.starts, self.documents, values)

    def through(self, parts: Postings, count: int) -> Postings:
        """Counts in wholes from counts in parts: for each term the sum over the parts that hold it.

        ``self`` has the parts of each term, ``parts`` the ``count`` wholes that each part occurs in. The
        documents of a term stand in no order.
        """
        from scipy.sparse import csr_array

        inner = len(parts.starts) - 1
        left = csr_array((self.values, self.documents, self.starts), shape=(len(self.starts) - 1, inner))
        right = csr_array((parts.values, parts.documents, parts.starts), shape=(inner, count))
        product = left @ right
        return Postings(product.indptr.astype(np.int64), product.indices, product.data)

    def add_to(self, scores: Floats, queries: Postings) -> None:
        """Add ``weight * value`` to the scores (queries, documents) of all that hold a query's terms.

        ``queries`` has the terms and weights of each query. The sums run in a fixed order of its terms, the
        frequent ones first, so equal documents have equal scores to the last bit.
        """
        owners = np.repeat(np.arange(len(scores)), queries.spread)
        sizes = self.spread[queries.documents]
        frequent = np.flatnonzero(sizes >= _FREQUENT)
        for owner, term, weight in zip(
            owners[frequent].tolist(),
            queries.documents[frequent].tolist(),
            queries.values[frequent].tolist(),
            strict=True,
        ):
            part = slice(self.starts[term], self.starts[term + 1])
            np.add.at(scores[owner], self.documents[part], weight * self.values[part])
        rare = np.flatnonzero(sizes < _FREQUENT)
        for some in np.split(rare, np.arange(_RARE_AT_ONCE, len(rare), _RARE_AT_ONCE)):
            size = sizes[some]
            start = self.starts[queries.documents[some]]
            places = np.repeat(start - np.cumsum(size) + size, size) + np.arange(int(size.sum()))
            columns = np.repeat(owners[some] * scores.shape[1], size) + self.documents[places]
            np.add.at(
                scores.reshape(-1), columns, np.repeat(queries.values[some], size) * self.values[places]
            )


@dataclass(frozen=True, slots=True)
class Tally:
    """How often each key occurs in each group, and which keys there are; ascending by key, then by group."""

    keys: Ints
    postings: Postings


def tally(keys: Ints, groups: Ints, count: int) -> Tally:
    """Count equal pairs of a key (0 or more) and a group (below ``count``): one sort, then run lengths.

    >>> counted = tally(np.array([7, 3, 7]), np.array([0, 1, 0]), 2)
    >>> counted.keys.tolist(), counted.postings.documents.tolist(), counted.postings.values.tolist()
    ([3, 7], [1, 0], [1.0, 2.0])
    """
    distinct: Ints | None = None
    if int(keys.max(initial=0)) >= _INT64 // count - 1:
        distinct, keys = np.unique(keys, return_inverse=True)
    pairs = keys * count
    pairs += groups
    pairs.sort()
    firsts = np.flatnonzero(np.diff(pairs, prepend=-1))
    repeats = np.diff(firsts, append=len(pairs)).astype(np.float64)
    found, documents = np.divmod(pairs[firsts], count)
    edges = np.flatnonzero(np.diff(found, prepend=-1))
    starts = np.append(edges, len(found))
    present = found[edges] if distinct is None else distinct
    return Tally(present, Postings(starts, documents.astype(np.int32), repeats))
