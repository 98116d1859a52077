"""Rankings from judgements and runs: dicts of dicts, or files that hold them."""

from __future__ import annotations

import struct
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


def ranking_from_runs(qrels: Any, run: Any, *, corpus_size: int | None = None) -> Ranking:
    """See ``Ranking.from_runs``."""
    if not isinstance(qrels, _NAMED) and not isinstance(run, _NAMED):
        return ranking_from_lists(run, qrels, corpus_size=corpus_size)
    judgements, scores = _judgements(qrels), _scores(run)
    units = list(judgements)
    if not units:
        raise InputError("the judgements hold no unit at all", hint="check the qrels")
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
        unknown_units=tuple(sorted(str(unit) for unit in scores.keys() - judgements.keys())),
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
) -> tuple[Ints, Floats, Ints, Ints, Ints]:
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
