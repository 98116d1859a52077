"""Rankings at full depth, block by block: from two matrices of vectors, or from blocks of scores."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import InputError, ShapeError
from equipoise.evidence.columns import host, unique_ids
from equipoise.evidence.counting import above_and_tied
from equipoise.evidence.placement import starts_of
from equipoise.evidence.ranking import Ranking
from equipoise.evidence.rows import gains_of, id_rows
from equipoise.types import Floats, Ints

if TYPE_CHECKING:
    from equipoise.geometry import Geometry


_BLOCK_BYTES = 64 << 20

Blocks = Iterable[tuple[slice, NDArray[Any]]]
"""Rows of queries, and their scores against the whole corpus; a block may be written over."""


def ranking_from_embeddings(
    queries: Any,
    corpus: Any,
    relevant: Any,
    *,
    geometry: str | Geometry = "cosine",
    exclude: Any = None,
    gains: Any = None,
    unit_ids: Any = None,
    block_bytes: int | None = None,
    device: Any = None,
) -> Ranking:
    """See ``Ranking.from_embeddings``."""
    from equipoise.geometry.search import score_blocks

    queries, corpus = host(queries), host(corpus)
    asked = Relevant.of(relevant, gains, exclude, units=len(queries), corpus=len(corpus))
    if device is None:
        blocks = score_blocks(queries, corpus, geometry=geometry, block_bytes=block_bytes or _BLOCK_BYTES)
        found = asked.ranked(blocks, unit_ids)
    else:
        found = asked.ranked_on(device, queries, corpus, geometry, block_bytes, unit_ids)
    return replace(found, invalid_points=_complaints(geometry, queries, corpus))


def ranking_from_blocks(
    blocks: Blocks,
    relevant: Any,
    *,
    units: int,
    corpus: int,
    exclude: Any = None,
    gains: Any = None,
    unit_ids: Any = None,
) -> Ranking:
    """See ``Ranking.from_blocks``."""
    return Relevant.of(relevant, gains, exclude, units=units, corpus=corpus).ranked(blocks, unit_ids)


def _complaints(geometry: str | Geometry, queries: NDArray[Any], corpus: NDArray[Any]) -> str:
    """What is wrong with points that could be ranked all the same, such as vectors without a direction."""
    from equipoise.geometry import geometry as named

    checked = {"queries": named(geometry).check(queries), "corpus": named(geometry).check(corpus)}
    return "; ".join(f"{what}: {validity}" for what, validity in checked.items() if not validity.ok)


@dataclass(frozen=True)
class Relevant:
    """Which rows of a corpus are relevant to each unit, and which one is no candidate (-1: none)."""

    rows: Ints
    counts: Ints
    gain: Floats
    hidden: Ints
    corpus: int

    @classmethod
    def of(cls, relevant: Any, gains: Any, exclude: Any, *, units: int, corpus: int) -> Relevant:
        """Checked rows, one list a query; gains of 0 and below are not relevant."""
        rows = id_rows(_one_a_query(relevant), "relevant rows")
        if len(rows.cells) != units:
            raise ShapeError(
                f"there are relevant rows for {len(rows.cells)} of {units} queries", hint="one a query"
            )
        gain = gains_of(gains, rows)
        kept = rows.inside & (gain > 0)
        flat, counts = rows.cells[kept], kept.sum(axis=1)
        if flat.dtype.kind not in "iu":
            raise InputError("relevant rows must be row numbers", hint="for example [[3, 7], [0]]")
        if flat.size and flat.max() >= corpus:
            raise InputError(
                f"relevant row {flat.max()} is not in the corpus", hint=f"rows are 0 to {corpus - 1}"
            )
        hidden = _hidden(exclude, units, corpus)
        both = np.repeat(hidden, counts) == flat
        if both.any():
            unit = int(np.repeat(np.arange(units), counts)[both][0])
            raise InputError(
                f"the relevant row of query {unit} is excluded as well",
                hint="a unit is no candidate of its own",
            )
        return cls(flat, counts, gain[kept], hidden, corpus)

    def ranked(self, blocks: Blocks, unit_ids: Any) -> Ranking:
        """Where the relevant rows stand among the scores of all rows, which come in blocks of units."""
        starts = starts_of(self.counts)
        above, tied, before = (np.zeros(len(self.rows), dtype=np.int64) for _ in range(3))
        for part, scores in blocks:
            own, hidden = self.counts[part], self.hidden[part]
            items = slice(starts[part.start], starts[part.start] + int(own.sum()))
            masked = np.flatnonzero(hidden >= 0)
            scores[masked, hidden[masked]] = np.nan
            row = np.repeat(np.arange(len(own)), own)
            limit = scores[row, self.rows[items]]
            above[items], tied[items] = above_and_tied(scores, limit, own)
            for item in np.flatnonzero(tied[items] > 0):
                names = np.flatnonzero(scores[row[item]] == limit[item]).astype(str)
                before[items.start + item] = int((names > str(self.rows[items][item])).sum())
        return self.counted(above, tied, before, unit_ids)

    def ranked_on(
        self,
        device: Any,
        queries: NDArray[Any],
        corpus: NDArray[Any],
        geometry: str | Geometry,
        block_bytes: int | None,
        unit_ids: Any,
    ) -> Ranking:
        """The same, with scores that are made and counted on a device."""
        from equipoise.evidence.from_device import device_counts
        from equipoise.geometry.device import DeviceSearch

        search, left = DeviceSearch.of(queries, corpus, geometry, device, "full")
        counts = device_counts(search, left, self.rows, self.counts, self.hidden, block_bytes)
        return self.counted(*counts, unit_ids)

    def counted(self, above: Ints, tied: Ints, before: Ints, unit_ids: Any) -> Ranking:
        """The evidence from counts that were made elsewhere, in the order of the rows."""
        pool = self.corpus - (self.hidden >= 0)
        return Ranking.of_items(
            unique_ids(unit_ids, len(self.counts)),
            self.counts,
            gain=self.gain,
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


def _hidden(exclude: Any, units: int, corpus: int) -> Ints:
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
