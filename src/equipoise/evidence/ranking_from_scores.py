"""Rankings from a matrix of scores or logits, in one call or in batches (``RankingStream``)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import DuplicateError, InputError, NotFiniteError, ShapeError
from equipoise.evidence.base import unique_ids
from equipoise.evidence.kernels.threshold_counts import NanScoreError, count_above_and_tied
from equipoise.evidence.ranking import Ranking
from equipoise.evidence.ranking_from_lists import as_ragged_ids
from equipoise.io.arrays import segment_offsets

if TYPE_CHECKING:
    from equipoise.types import Ints

_HOST_BLOCK_BYTES = 16 << 20
"""Bytes of scores per block, so that a file larger than memory is read in blocks."""

_DEVICE_BLOCK_CELLS = 1 << 26
"""Scores per block on another device: bounds the memory of the comparison results."""


def ranking_from_scores(scores: Any, targets: Any, *, exclude: Any = None, unit_ids: Any = None) -> Ranking:
    """See ``Ranking.from_scores``."""
    scores = as_host_array(scores)
    if isinstance(scores, np.ndarray) and scores.dtype.kind not in "fiub":
        raise InputError(f"the scores are {scores.dtype}, not real numbers", hint="give a matrix of numbers")
    if len(scores.shape) != 2:
        raise ShapeError(f"the scores have {len(scores.shape)} dimension(s); 2 are needed", hint="units x candidates")
    units, width = int(scores.shape[0]), int(scores.shape[1])
    flat, counts = _targets(targets, units, width)
    dropped = _excluded_columns(exclude, width)
    if dropped.size and np.isin(flat, dropped).any():
        row = int(np.repeat(np.arange(units), counts)[np.isin(flat, dropped)][0])
        raise InputError(
            f"the target of unit {row} is an excluded column",
            hint="remove units whose target is not a candidate",
        )
    count = _count_on_host if isinstance(scores, np.ndarray) else _count_on_device
    above, tied, before = count(scores, flat, counts, dropped)
    pool = np.full(units, width - len(dropped), dtype=np.int64)
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


def as_host_array(array: Any) -> Any:
    """A numpy view of an array in host memory; an array on another device unchanged."""
    if isinstance(array, np.ndarray):
        return array
    if hasattr(array, "detach"):
        array = array.detach()
    if hasattr(array, "__dlpack__"):
        try:
            return np.from_dlpack(array)
        except (BufferError, TypeError, ValueError, RuntimeError):
            return array  # another device, or a dtype that numpy does not support
    return np.asarray(array)


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
    wrong = (flat < 0) | (flat >= width)
    if wrong.any():
        row = int(np.repeat(np.arange(units), counts)[wrong][0])
        raise InputError(
            f"target {flat[wrong][0]} of unit {row} is not a column of the scores",
            hint=f"columns are 0 to {width - 1}",
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


def _excluded_columns(exclude: Any, width: int) -> Ints:
    columns = np.unique(np.atleast_1d(np.asarray([] if exclude is None else exclude, dtype=np.int64)))
    if columns.size and (columns[0] < 0 or columns[-1] >= width):
        raise InputError(
            f"column {columns[0] if columns[0] < 0 else columns[-1]} cannot be excluded: there is none",
            hint=f"columns are 0 to {width - 1}",
        )
    return columns


def _blocks(units: int, step: int) -> Iterator[slice]:
    return (slice(start, min(start + step, units)) for start in range(0, units, step))


def _count_on_host(scores: NDArray[Any], flat: Ints, counts: Ints, dropped: Ints) -> tuple[Ints, Ints, Ints]:
    above, tied = np.empty_like(flat), np.empty_like(flat)
    before = np.zeros_like(flat)
    starts = segment_offsets(counts)
    width, real = scores.shape[1], scores.dtype.kind == "f"
    for part in _blocks(len(scores), max(1, _HOST_BLOCK_BYTES // max(1, width * scores.itemsize))):
        block, n_relevant = scores[part], counts[part]
        items = slice(starts[part.start], starts[part.stop])
        row = np.repeat(np.arange(len(block)), n_relevant)
        limit = block[row, flat[items]]
        try:
            above[items], tied[items] = count_above_and_tied(block, limit, n_relevant, check_nan=real)
        except NanScoreError as error:
            raise _nan_error(part.start + error.row) from None
        if dropped.size:
            others = block[:, dropped][row]
            above[items] -= (others > limit[:, None]).sum(axis=1)
            tied[items] -= (others == limit[:, None]).sum(axis=1)
        for item in np.flatnonzero(tied[items] > 0):
            equal = block[row[item]] == limit[item]
            equal[dropped] = False
            before[items.start + item] = _n_ties_before(np.flatnonzero(equal), int(flat[items][item]))
    return above, tied, before


def _count_on_device(scores: Any, flat: Ints, counts: Ints, dropped: Ints) -> tuple[Ints, Ints, Ints]:
    """The same counts on the device of the array; only counts are copied to the host."""
    from array_api_compat import array_namespace, device, to_device

    xp = array_namespace(scores)
    torch_device, width = device(scores), int(scores.shape[1])
    above, tied = np.empty_like(flat), np.empty_like(flat)
    before = np.zeros_like(flat)
    starts = segment_offsets(counts)
    keep = np.ones(width, dtype=bool)
    keep[dropped] = False
    candidates = xp.asarray(keep, device=torch_device)
    real = xp.isdtype(scores.dtype, "real floating")

    def host(array: Any) -> NDArray[Any]:
        return np.asarray(to_device(array, "cpu"))

    for part in _blocks(int(scores.shape[0]), max(1, _DEVICE_BLOCK_CELLS // max(1, width))):
        block = scores[part, :]
        if real and bool(xp.any(xp.isnan(block))):
            raise _nan_error(part.start + int(np.flatnonzero(host(xp.isnan(block)).any(axis=1))[0]))
        items = slice(starts[part.start], starts[part.stop])
        row = np.repeat(np.arange(part.stop - part.start), counts[part])
        cell = xp.asarray(row * width + flat[items], device=torch_device)
        limit = xp.reshape(xp.take(xp.reshape(block, (-1,)), cell, axis=0), (-1, 1))
        rows = block if len(row) == len(block) else xp.take(block, xp.asarray(row, device=torch_device), axis=0)
        above[items] = host(xp.count_nonzero((rows > limit) & candidates, axis=1))
        equal = (rows == limit) & candidates
        tied[items] = host(xp.count_nonzero(equal, axis=1)) - 1
        for item in np.flatnonzero(tied[items] > 0):
            before[items.start + item] = _n_ties_before(
                np.flatnonzero(host(equal[int(item), :])), int(flat[items][item])
            )
    return above, tied, before


def _n_ties_before(equals: Ints, target: int) -> int:
    """How many columns with the same score precede the target by id; ids are compared as strings."""
    return sum(str(column) > str(target) for column in equals.tolist())


def _nan_error(unit: int) -> NotFiniteError:
    return NotFiniteError(
        f"the scores of unit {unit} contain NaN",
        hint="mask columns that are not candidates with exclude= or with -inf",
    )


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

    def update(self, scores: Any, targets: Any, *, unit_ids: Any = None) -> None:
        """Add a batch of scores (units x candidates) with the target column of each unit."""
        if len(scores) == 0:
            return
        if unit_ids is None:
            unit_ids = np.arange(len(self), len(self) + len(scores))
        self.parts.append(Ranking.from_scores(scores, targets, exclude=self.exclude, unit_ids=unit_ids))

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
        twice = np.flatnonzero(ids[1:] == ids[:-1])
        if len(twice):
            raise DuplicateError(
                f"unit {ids[twice[0]]} was added twice", hint="give unit_ids to update when streams are merged"
            )
        return ranking.take(order)
