"""Rankings from two matrices of vectors: full-depth ranks, block by block."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.errors import InputError, ShapeError
from equipoise.evidence.base import as_ids
from equipoise.evidence.counting import above_and_tied
from equipoise.evidence.placement import starts_of
from equipoise.evidence.ranking import Ranking
from equipoise.evidence.rows import gains_of, id_rows

if TYPE_CHECKING:
    from equipoise.geometry import Geometry


def ranking_from_embeddings(
    queries: Any,
    corpus: Any,
    relevant: Any,
    *,
    geometry: str | Geometry = "cosine",
    exclude: Any = None,
    gains: Any = None,
    unit_ids: Any = None,
    block_bytes: int = 64 << 20,
) -> Ranking:
    """See ``Ranking.from_embeddings``."""
    from equipoise.geometry.search import score_blocks

    queries, corpus = np.asarray(queries), np.asarray(corpus)
    rows = id_rows(_one_a_query(relevant), "relevant rows")
    if len(rows.cells) != len(queries):
        raise ShapeError(
            f"there are relevant rows for {len(rows.cells)} of {len(queries)} queries", hint="one a query"
        )
    kept = rows.inside & (gains_of(gains, rows) > 0)
    flat, counts = rows.cells[kept], kept.sum(axis=1)
    if flat.size and (flat.min() < 0 or flat.max() >= len(corpus)):
        raise InputError(
            f"relevant row {flat.max()} is not in the corpus", hint=f"rows are 0 to {len(corpus) - 1}"
        )
    hidden = _hidden(exclude, len(queries), len(corpus))
    hit = np.repeat(hidden, counts) == flat
    if hit.any():
        unit = int(np.repeat(np.arange(len(counts)), counts)[hit][0])
        raise InputError(
            f"the relevant row of query {unit} is excluded as well", hint="a unit is no candidate of its own"
        )
    starts = starts_of(counts)
    above, tied, before = (np.zeros(len(flat), dtype=np.int64) for _ in range(3))
    for part, scores in score_blocks(queries, corpus, geometry=geometry, block_bytes=block_bytes):
        own = counts[part]
        items = slice(starts[part.start], starts[part.start] + int(own.sum()))
        masked = np.flatnonzero(hidden[part] >= 0)
        scores[masked, hidden[part][masked]] = np.nan
        row = np.repeat(np.arange(len(own)), own)
        limit = scores[row, flat[items]]
        above[items], tied[items] = above_and_tied(scores, limit, own)
        for item in np.flatnonzero(tied[items] > 0):
            names = np.flatnonzero(scores[row[item]] == limit[item]).astype(str)
            before[items.start + item] = int((names > str(flat[items][item])).sum())
    pool = len(corpus) - (hidden >= 0)
    return Ranking.of_items(
        as_ids(unit_ids, len(queries)),
        counts,
        gain=gains_of(gains, rows)[kept],
        above=above,
        tied=tied,
        before=before,
        depth=pool,
        candidates=pool,
    )


def _one_a_query(relevant: Any) -> Any:
    """A flat array or list of row numbers is one relevant row a query."""
    flat = np.ndim(relevant) == 1 if isinstance(relevant, np.ndarray) else all(map(np.isscalar, relevant))
    return np.asarray(relevant)[:, None] if flat else relevant


def _hidden(exclude: Any, units: int, corpus: int) -> Any:
    hidden = np.full(units, -1, dtype=np.int64) if exclude is None else np.asarray(exclude, dtype=np.int64)
    if hidden.shape != (units,):
        raise ShapeError(
            f"exclude has shape {hidden.shape}; one corpus row a query is needed", hint="-1 for none"
        )
    if hidden.max(initial=-1) >= corpus:
        raise InputError(
            f"row {hidden.max()} cannot be excluded: the corpus has {corpus}", hint="-1 for none"
        )
    return hidden
