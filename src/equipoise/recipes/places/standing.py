"""Where the right place stands for a person: by the person's own counts, then in the order that all share.

A person has been to few places, so only those are looked at one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from equipoise.evidence.placement import spans
from equipoise.recipes.places.order import SharedOrder, Standing
from equipoise.recipes.places.tally import Tally
from equipoise.types import Bools, Ints

BLOCK = 1 << 20
"""Places of all units of a block together: bounds the memory, some 200 bytes each."""


class Level(NamedTuple):
    """Counts that decide, and the context of each unit in them."""

    tally: Tally
    contexts: Ints


class Found(NamedTuple):
    """For each unit: places above the target, beside it, and of those the ones that come first by id.

    ``first`` is the place at the top, that of the lowest code where ``first_tied``.
    """

    above: Ints
    tied: Ints
    before: Ints
    first: Ints
    first_tied: Bools


def stand(own: Sequence[Level], shared: Level | None, counts: Ints, targets: Ints, kept: Bools) -> Found:
    """The standing of each unit's target among the ``kept`` classes.

    ``own`` are the person's counts, the most telling first; the places of each are among those of the next.
    What they leave equal the ``shared`` counts decide, and at last those of everybody.
    """
    order = SharedOrder(counts, kept, None if shared is None else shared.tally)
    rows = [level.tally.rows(level.contexts) for level in own]
    rows.append(np.full(len(targets), -1) if shared is None else shared.tally.rows(shared.contexts))
    # Units of the same context and target stand alike.
    asked, unit = np.unique(np.stack([*rows, targets], axis=1), axis=0, return_inverse=True)
    tallies = [level.tally for level in own]
    parts = [_block(tallies, order, *_columns(asked[part])) for part in _blocks(tallies, asked)]
    return Found(*(np.concatenate(column)[unit.reshape(-1)] for column in zip(*parts, strict=True)))


def _columns(asked: Ints) -> tuple[list[Ints], Ints, Ints]:
    """The rows of the own counts, those of the shared ones, and the targets."""
    *own, shared, targets = asked.T
    return own, shared, targets


def _blocks(tallies: Sequence[Tally], asked: Ints) -> Iterator[slice]:
    """Slices of what is asked, each with a bounded number of places to look at."""
    sizes = (
        tallies[-1].lengths(asked[:, len(tallies) - 1]) if tallies else np.zeros(len(asked), dtype=np.int64)
    )
    ends = np.flatnonzero(np.diff(np.cumsum(sizes) // BLOCK)) + 1
    for start, end in zip([0, *ends.tolist()], [*ends.tolist(), len(asked)], strict=True):
        yield slice(start, end)


def _block(
    tallies: Sequence[Tally], order: SharedOrder, own: Sequence[Ints], shared: Ints, targets: Ints
) -> Found:
    standing, (first, first_tied) = order.standing(shared, targets), order.firsts(shared)
    if not tallies:
        return Found(*standing, first, first_tied)
    unit, place = _visited(tallies[-1], own[-1], order.kept)
    personal = _personal(tallies, [rows[unit] for rows in own], place)
    common = order.keys(shared[unit], place)
    target = _personal(tallies, own, targets)
    known = Keys(personal, common, order.named[place])
    asked = Keys(target[unit], order.keys(shared, targets)[unit], order.named[targets][unit])
    among, outside = _within(known, asked, unit, len(targets)), _taken_out(known, asked, unit, standing)
    # A target that the person never visited stands below all that the person did visit.
    above, tied, before = (
        np.where(target > 0, one, other) for one, other in zip(among, outside, strict=True)
    )
    return Found(above, tied, before, *_tops(unit, place, personal, common, first, first_tied))


class Keys(NamedTuple):
    """What decides between places: the person's counts, the order that all share, and the name."""

    personal: Ints
    common: Ints
    named: Ints


def _within(known: Keys, asked: Keys, unit: Ints, units: int) -> Standing:
    """Where a place that the person knows stands among those."""
    level = known.personal == asked.personal
    equal = level & (known.common == asked.common)
    higher = (known.personal > asked.personal) | (level & (known.common > asked.common))
    return Standing(
        _sums(higher, unit, units),
        _sums(equal, unit, units) - 1,
        _sums(equal & (known.named > asked.named), unit, units),
    )


def _taken_out(known: Keys, asked: Keys, unit: Ints, standing: Standing) -> Standing:
    """Where another place stands: below all known ones, in the order that all share without these."""
    units = len(standing.above)
    alike = known.common == asked.common
    return Standing(
        standing.above + np.bincount(unit, minlength=units) - _sums(known.common > asked.common, unit, units),
        standing.tied - _sums(alike, unit, units),
        standing.before - _sums(alike & (known.named > asked.named), unit, units),
    )


def _visited(tally: Tally, rows: Ints, kept: Bools) -> tuple[Ints, Ints]:
    """Every place that the person of each unit was at, with the unit it is for."""
    lengths = tally.lengths(rows)
    unit = np.repeat(np.arange(len(rows)), lengths)
    place = tally.places[spans(tally.starts[rows], lengths)]
    return unit[kept[place]], place[kept[place]]


def _personal(tallies: Sequence[Tally], rows: Sequence[Ints], places: Ints) -> Ints:
    """One number that grows with the person's counts, the most telling first; 0 for a place never visited."""
    key = np.zeros(len(places), dtype=np.int64)
    for tally, row in zip(tallies, rows, strict=True):
        key = key * (tally.most + 1) + tally.seen(row, places)
    return key


def _sums(mask: Bools, unit: Ints, units: int) -> Ints:
    return np.bincount(unit[mask], minlength=units)


def _tops(
    unit: Ints, place: Ints, personal: Ints, common: Ints, first: Ints, first_tied: Bools
) -> tuple[Ints, Bools]:
    """The first choice of each unit: a place that the person knows, or else the one that all share."""
    order = np.lexsort((place, -common, -personal, unit))
    lead = np.flatnonzero(np.r_[True, unit[order][1:] != unit[order][:-1]]) if len(order) else order
    best = order[lead]
    second = order[np.minimum(lead + 1, max(len(order) - 1, 0))] if len(order) else order
    shared = (
        (second != best)
        & (unit[second] == unit[best])
        & (personal[second] == personal[best])
        & (common[second] == common[best])
    )
    first, first_tied = first.copy(), first_tied.copy()
    first[unit[best]], first_tied[unit[best]] = place[best], shared
    return first, first_tied
