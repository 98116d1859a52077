"""Rankings from judgements and runs: dicts of dicts, or files that hold them."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from equipoise.errors import InputError, NotFiniteError
from equipoise.evidence.counting import above_and_tied
from equipoise.evidence.from_lists import ranking_from_lists
from equipoise.evidence.placement import NEVER, pool_of
from equipoise.evidence.ranking import Ranking
from equipoise.types import Floats, Ints

Judgements = Mapping[str, Mapping[str, float]]
Scores = Mapping[str, Mapping[str, float]]

_NAMED = (Mapping, str, Path)
_BLOCK_SCORES = 1 << 16
_BLOCK_UNITS = 256
"""Units looked at together: as many as fill the one, or this many if their lists are long."""
_MOST_SCORES = 1 << 20
_STREAM_SCORES, _STREAM_UNITS = 1 << 15, 1 << 12
"""Scores and units of a streamed run that are in memory at a time."""

Counted = tuple[Ints, Floats, Ints, Ints, Ints]
"""Counts of a few units, and gains, above, tied and before of their relevant items."""


def ranking_from_runs(qrels: Any, run: Any, *, corpus_size: int | None = None) -> Ranking:
    """See ``Ranking.from_runs``."""
    if not isinstance(qrels, _NAMED) and not isinstance(run, _NAMED):
        return ranking_from_lists(run, qrels, corpus_size=corpus_size)
    judgements = _judgements(qrels)
    units = list(judgements)
    if not units:
        raise InputError("the judgements hold no unit at all", hint="check the qrels")
    if isinstance(run, str | Path):
        ranking = streamed_ranking(judgements, run, corpus_size=corpus_size)
        if ranking is not None:
            return ranking
    scores = _scores(run)
    empty: Mapping[str, float] = {}
    lists = [scores.get(unit, empty) for unit in units]
    try:
        depth = np.fromiter(map(len, lists), np.int64, len(lists))
    except TypeError as error:
        raise _explained(units, [], lists) from error
    parts = [
        _count(units[part], [judgements[unit] for unit in units[part]], lists[part], depth[part])
        for part in _blocks(depth)
    ]
    unknown = tuple(sorted(str(unit) for unit in scores.keys() - judgements.keys()))
    return _joined(units, depth, parts, corpus_size, unknown)


def streamed_ranking(
    judgements: Judgements, path: str | Path, *, tag: str | None = None, corpus_size: int | None = None
) -> Ranking | None:
    """The ranking of a TREC run file in memory that its size does not change, or None.

    Only a block of lists is in memory at a time, beside the judgements and the counts. None where the lines
    of a query are not contiguous, the file has another format, or anything in it is wrong: then the whole
    file has to be read. The ranking is the same.
    """
    from equipoise.data.blocks import NotStreamableError
    from equipoise.data.runs import stream_run

    stream = _Stream(judgements)
    try:
        for unit, scores in stream_run(path, tag=tag):
            if not stream.add(unit, scores):
                return None
        return stream.ranking(corpus_size)
    except (NotStreamableError, InputError):
        return None


class _Stream:
    """Lists that come one at a time, counted block by block."""

    def __init__(self, judgements: Judgements) -> None:
        self.judgements = judgements
        self.place_of = {unit: place for place, unit in enumerate(judgements)}
        self.places = array("q")
        """The position of each unit of the run among the judgements, in the order of the run."""
        self.seen = np.zeros(len(judgements), dtype=bool)
        self.unknown: set[str] = set()
        self.depth = array("q")
        self.parts: list[Counted] = []
        self.units: list[str] = []
        self.lists: list[Mapping[str, float]] = []
        self.widest = 0

    def add(self, unit: str, scores: Mapping[str, float]) -> bool:
        """Take one more list; False if there was one of this unit before."""
        place = self.place_of.get(unit)
        if place is None:
            if unit in self.unknown:
                return False
            self.unknown.add(unit)
            return True
        if self.seen[place]:
            return False
        self.seen[place] = True
        self._put(unit, place, scores)
        return True

    def ranking(self, corpus_size: int | None) -> Ranking:
        """The ranking of all judged units, in the order of the judgements."""
        units = list(self.judgements)
        for place in np.flatnonzero(~self.seen).tolist():
            self._put(units[place], place, {})
        self._count()
        places, depth = np.array(self.places), np.array(self.depth)
        in_run_order = [units[place] for place in self.places]
        ranking = _joined(in_run_order, depth, self.parts, corpus_size, tuple(sorted(self.unknown)))
        same_order = bool((places[1:] > places[:-1]).all())
        return ranking if same_order else ranking.take(np.argsort(places))

    def _put(self, unit: str, place: int, scores: Mapping[str, float]) -> None:
        widest = max(self.widest, len(scores))
        if widest * (len(self.units) + 1) > _STREAM_SCORES or len(self.units) == _STREAM_UNITS:
            self._count()
            widest = len(scores)
        self.widest = widest
        self.places.append(place)
        self.depth.append(len(scores))
        self.units.append(unit)
        self.lists.append(scores)

    def _count(self) -> None:
        if self.units:
            judged = [self.judgements[unit] for unit in self.units]
            depth = np.array(self.depth[-len(self.units) :], dtype=np.int64)
            self.parts.append(_count(self.units, judged, self.lists, depth))
        self.units, self.lists, self.widest = [], [], 0


def _joined(
    units: list[str],
    depth: Ints,
    parts: list[Counted],
    corpus_size: int | None,
    unknown_units: tuple[str, ...],
) -> Ranking:
    counts, gain, above, tied, before = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Ranking.of_items(
        np.array(units, dtype=object),
        counts,
        gain=gain,
        above=above,
        tied=tied,
        before=before,
        depth=depth,
        candidates=None if corpus_size is None else pool_of(corpus_size, depth),
        unknown_units=unknown_units,
    )


def _judgements(qrels: Any) -> Judgements:
    if isinstance(qrels, str | Path):
        from equipoise.data.runs import read_qrels

        return read_qrels(qrels)
    return _mapping(qrels, "judgements", "{unit: {item: gain}}")


def _scores(run: Any) -> Scores:
    if isinstance(run, str | Path):
        from equipoise.data.runs import read_run

        return read_run(run)
    return _mapping(run, "run", "{unit: {item: score}}")


def _mapping(value: Any, what: str, form: str) -> Mapping[str, Mapping[str, float]]:
    if not isinstance(value, Mapping):
        raise InputError(
            f"the {what}: a {type(value).__name__} is no dict of dicts",
            hint=f"give {form}, a path, or use Ranking.from_lists for arrays",
        )
    return value


def _blocks(depth: Ints) -> Iterator[slice]:
    """Runs of units whose padded matrix of scores stays within the block size."""
    start, widest = 0, 0
    for unit, width in enumerate(depth.tolist()):
        widest = max(widest, width)
        units = unit + 1 - start
        full = _BLOCK_SCORES if units > _BLOCK_UNITS else _MOST_SCORES
        if widest * units > full and units > 1:
            yield slice(start, unit)
            start, widest = unit, width
    yield slice(start, len(depth))


def _count(
    units: list[str], judged: list[Mapping[str, float]], lists: list[Mapping[str, float]], depth: Ints
) -> Counted:
    """Counts, gains, above, tied and before of the relevant items of a few units."""
    try:
        matrix, found, gains = _gather(judged, lists, depth)
    except (TypeError, ValueError, AttributeError, OverflowError, struct.error) as error:
        raise _explained(units, judged, lists) from error
    sizes = np.fromiter(map(len, judged), np.int64, len(judged))
    if np.isnan(gains).any() or np.count_nonzero(np.isnan(matrix)) > matrix.size - depth.sum():
        raise _explained(units, judged, lists)
    relevant = gains > 0
    counts = sizes
    if not relevant.all():
        found, gains = found[relevant], gains[relevant]
        unit = np.repeat(np.arange(len(judged)), sizes)
        counts = np.bincount(unit[relevant], minlength=len(judged)).astype(np.int64)
    above, tied = above_and_tied(matrix, found, counts)
    above[np.isnan(found)] = NEVER
    return counts, gains, above, tied, _before(judged, lists, counts, found, tied)


def _gather(
    judged: list[Mapping[str, float]], lists: list[Mapping[str, float]], depth: Ints
) -> tuple[Floats, Floats, Floats]:
    """The lists as rows of a matrix (NaN where one has ended), the judged items' scores, the gains.

    Reading floats out of dicts is what all the time goes into: ``struct`` does it fastest, and
    looking up the judged items right after finds the dict still in the cache.
    """
    widest = int(depth.max(initial=0))
    matrix = np.full((len(lists), widest), np.nan)
    found: list[float | None] = []
    gains: list[float] = []
    writers = {width: struct.Struct(f"{width}d").pack_into for width in set(depth.tolist())}
    buffer, offset = matrix.data, 0
    for items, row, width in zip(judged, lists, depth.tolist(), strict=True):
        writers[width](buffer, offset, *row.values())
        found.extend(map(row.get, items))
        gains.extend(items.values())
        offset += widest * matrix.itemsize
    # None, for an item that was not retrieved, becomes NaN.
    return matrix, np.array(found, dtype=np.float64), np.array(gains, dtype=np.float64)


def _before(
    judged: list[Mapping[str, float]],
    lists: list[Mapping[str, float]],
    counts: Ints,
    thresholds: Floats,
    tied: Ints,
) -> Ints:
    """For each tied item, the equals whose id sorts after its own: trec_eval puts those first."""
    before = np.zeros_like(tied)
    if not tied.any():
        return before
    first = np.cumsum(counts) - counts
    unit_of = np.repeat(np.arange(len(counts)), counts)
    for unit in np.unique(unit_of[tied > 0]):
        own = [item for item, gain in judged[unit].items() if gain > 0]
        places: dict[float, dict[str, int]] = {}
        for index in np.flatnonzero(tied[first[unit] : first[unit] + counts[unit]]) + first[unit]:
            score = float(thresholds[index])
            if score not in places:
                equals = sorted(
                    (item for item, s in lists[unit].items() if s == score), key=str, reverse=True
                )
                places[score] = {item: place for place, item in enumerate(equals)}
            before[index] = places[score][own[index - first[unit]]]
    return before


def _explained(units: list[str], judged: list[Any], lists: list[Any]) -> InputError:
    """The error for the first row that is no dict, or the first score or gain that is no number."""
    for what, rows in (("score", lists), ("gain", judged)):
        for unit, row in zip(units, rows, strict=False):
            if not isinstance(row, Mapping):
                return InputError(
                    f"the {what}s of unit {unit!r} are a {type(row).__name__}, not a dict",
                    hint=f"give {{unit: {{item: {what}}}}}",
                )
            for item, value in row.items():
                if not _is_number(value):
                    return NotFiniteError(
                        f"the {what} of item {item!r} for unit {unit!r} is {value!r}, which is no number",
                        hint=f"every {what} must be a number; leave out items that have none",
                    )
    return InputError("a score or a gain is no number", hint="scores and gains are floats")


def _is_number(value: Any) -> bool:
    try:
        return not isinstance(value, str) and not np.isnan(float(value))
    except (TypeError, ValueError, OverflowError):
        return False
