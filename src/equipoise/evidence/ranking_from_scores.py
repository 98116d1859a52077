"""Rankings from a matrix of scores or logits, in one call or in batches (``RankingStream``)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from equipoise.errors import DuplicateError, InputError, ShapeError
from equipoise.evidence.base import as_host_array, unique_ids
from equipoise.evidence.kernels.dispatch import (
    candidate_columns,
    check_score_matrix,
    check_targets,
    rank_targets,
    score_error,
    take_rows,
)
from equipoise.evidence.kernels.threshold_counts import InvalidScoreError, count_above_and_tied
from equipoise.evidence.ranking import Ranking
from equipoise.evidence.ranking_from_lists import as_ragged_ids
from equipoise.io.arrays import segment_offsets

if TYPE_CHECKING:
    from equipoise.types import Ints

_BLOCK_BYTES = 16 << 20
"""Bytes of scores per block, so that a file larger than memory is read in blocks."""


def ranking_from_scores(scores: Any, targets: Any, *, exclude: Any = None, unit_ids: Any = None) -> Ranking:
    """See ``Ranking.from_scores``."""
    scores = check_score_matrix(scores)
    units, width = int(scores.shape[0]), int(scores.shape[1])
    flat, counts = _targets(targets, units, width)
    columns = candidate_columns(exclude, width)
    check_targets(flat, len(flat), width, columns)
    count = _count_many_targets if isinstance(scores, np.ndarray) and counts.max(initial=0) > 1 else _count_in_turn
    above, tied, before = count(scores, flat, counts, np.setdiff1d(np.arange(width), columns.codes))
    pool = np.full(units, len(columns.codes), dtype=np.int64)
    return Ranking.of_items(
        unique_ids(unit_ids, units),
        counts,
        gain=np.ones(len(flat)),
        above=above,
        tied=tied,
        before=before,
        depth=pool,
        candidates=pool,
    )


def _targets(targets: Any, units: int, width: int) -> tuple[Ints, Ints]:
    """The target columns of all units concatenated, and the number of targets of each unit."""
    array = _as_numpy(targets)
    if array is not None and array.ndim == 1 and array.dtype.kind in "iu":
        flat, counts = array.astype(np.int64), np.ones(len(array), dtype=np.int64)
    else:
        rows = as_ragged_ids(targets if array is None or array.ndim != 2 else array, "targets")
        if rows.cells.dtype.kind not in "iu":
            raise InputError("targets must be column numbers", hint="for example [3, 0, 7]")
        flat, counts = rows.cells[rows.inside], rows.lengths
    if len(counts) != units:
        raise ShapeError(f"there are {len(counts)} targets for {units} rows of scores", hint="one per row")
    bad = (flat < 0) | (flat >= width)
    if bad.any():
        row = int(np.repeat(np.arange(units), counts)[bad][0])
        raise InputError(
            f"target {flat[bad][0]} of row {row} is not one of the {width} classes ({int(bad.sum())} such targets)",
            hint=f"classes are columns of the scores, 0 to {width - 1}",
        )
    return flat, counts


def _as_numpy(values: Any) -> NDArray[Any] | None:
    """The values as an array; None if they are rows of unequal length."""
    if hasattr(values, "detach"):
        values = values.detach().cpu()
    try:
        return np.asarray(values)
    except ValueError:
        return None


def _count_many_targets(scores: NDArray[Any], flat: Ints, counts: Ints, dropped: Ints) -> tuple[Ints, Ints, Ints]:
    """Above, tied and before of each target: all targets of a block of rows are compared while it is in the cache."""
    above, tied = np.empty_like(flat), np.empty_like(flat)
    before = np.zeros_like(flat)
    starts = segment_offsets(counts)
    width, real = scores.shape[1], scores.dtype.kind == "f"
    step = max(1, _BLOCK_BYTES // (width * scores.itemsize))
    for start in range(0, len(scores), step):
        part = slice(start, min(start + step, len(scores)))
        block, n_relevant = scores[part], counts[part]
        items = slice(starts[part.start], starts[part.stop])
        row = np.repeat(np.arange(len(block)), n_relevant)
        limit = block[row, flat[items]]
        try:
            above[items], tied[items] = count_above_and_tied(block, limit, n_relevant, check_nan=real)
        except InvalidScoreError as error:
            raise score_error(part.start + error.row) from None
        if dropped.size:
            others = block[:, dropped][row]
            above[items] -= (others > limit[:, None]).sum(axis=1)
            tied[items] -= (others == limit[:, None]).sum(axis=1)
        for item in np.flatnonzero(tied[items] > 0):
            equal = block[row[item]] == limit[item]
            equal[dropped] = False
            target = str(flat[items][item])  # ids are compared as strings
            before[items.start + item] = sum(str(column) > target for column in np.flatnonzero(equal).tolist())
    return above, tied, before


def _count_in_turn(scores: Any, flat: Ints, counts: Ints, dropped: Ints) -> tuple[Ints, Ints, Ints]:
    """The same for the first target of each row, then the second, on the device of the array."""
    above, tied, before = np.zeros((3, len(flat)), dtype=np.int64)
    starts = segment_offsets(counts)
    for position in range(int(counts.max(initial=0))):
        rows = np.flatnonzero(counts > position)
        items = starts[rows] + position
        part = scores if len(rows) == len(counts) else take_rows(scores, rows)
        ranks = rank_targets(part, flat[items], padding=dropped).counts
        above[items], tied[items], before[items] = ranks.above, ranks.tied, ranks.before
    return above, tied, before


@dataclass
class RankingStream:
    """Collects rankings batch by batch; any split into batches and any order of merging give the same result.

    Only counts are stored, not the scores. Units are numbered in their order unless they have ids. Streams that
    will be merged need ids; ``compute`` sorts the units by id.

    >>> stream = RankingStream()
    >>> stream.update(np.array([[0.1, 0.9], [0.8, 0.2]]), np.array([1, 1]))
    >>> stream.compute().ranks
    array([1., 2.])
    """

    exclude: Any = None
    parts: list[Ranking] = field(default_factory=list)

    def update(self, scores: ArrayLike, targets: ArrayLike, *, unit_ids: ArrayLike | None = None) -> None:
        """Add a batch of scores (units x candidates) with the target column of each unit."""
        batch = as_host_array(scores)
        if len(batch) == 0:
            return
        if unit_ids is None:
            unit_ids = np.arange(len(self), len(self) + len(batch))
        self.parts.append(Ranking.from_scores(batch, targets, exclude=self.exclude, unit_ids=unit_ids))

    def merge(self, other: RankingStream) -> None:
        """Add all batches of another stream."""
        self.parts.extend(other.parts)

    def __len__(self) -> int:
        return sum(len(part) for part in self.parts)

    def compute(self) -> Ranking:
        """The ranking of all units so far, sorted by unit id."""
        if not self.parts:
            raise InputError("the stream has no units yet", hint="call update first")
        kinds = {part.unit_ids.dtype.kind for part in self.parts}
        if len(kinds) > 1:
            raise InputError(
                "some batches have names as unit ids and some have integers or none",
                hint="give unit_ids of one kind to every update",
            )
        ranking = Ranking.concatenated(self.parts)
        order = np.argsort(ranking.unit_ids, kind="stable")
        ids = ranking.unit_ids[order]
        repeated = np.flatnonzero(ids[1:] == ids[:-1])
        if len(repeated):
            raise DuplicateError(
                f"unit {ids[repeated[0]]} was added twice", hint="give unit_ids to update when streams are merged"
            )
        return ranking.take(order)
