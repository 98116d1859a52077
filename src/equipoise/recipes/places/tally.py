"""How often each place was visited in a context: sparse counts, one row a context."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from equipoise.evidence.placement import starts_of
from equipoise.recipes.places.history import NOWHERE, History
from equipoise.types import Bools, Ints


@dataclass(frozen=True, eq=False)
class Tally:
    """For each context the places seen in it and how often, laid end to end, a row's places ascending.

    ``keys`` are the contexts, ascending; row ``r`` has the entries ``starts[r]:starts[r + 1]``.

    >>> tally = Tally.of(np.array([7, 7, 7, 3]), np.array([1, 0, 1, 2]), 3)
    >>> rows = tally.rows(np.array([7, 5]))
    >>> rows.tolist(), tally.seen(rows, np.array([1, 1])).tolist()
    ([1, -1], [2, 0])
    """

    keys: Ints
    starts: Ints
    places: Ints
    counts: Ints
    classes: int

    @classmethod
    def of(cls, contexts: Ints, places: Ints, classes: int) -> Tally:
        """Count the places of each context."""
        keys, rows = np.unique(contexts, return_inverse=True)
        pairs, counts = np.unique(rows.reshape(-1) * classes + places, return_counts=True)
        lengths = np.bincount(pairs // classes, minlength=len(keys))
        return cls(keys, starts_of(lengths), pairs % classes, counts.astype(np.int64), classes)

    @cached_property
    def row_of(self) -> Ints:
        """The row of each entry."""
        return np.repeat(np.arange(len(self.keys)), np.diff(self.starts))

    @cached_property
    def _pairs(self) -> Ints:
        """Row and place of each entry as one number; these ascend."""
        return self.row_of * self.classes + self.places

    @cached_property
    def _sums(self) -> Ints:
        return np.concatenate([[0], np.cumsum(self.counts)])

    @property
    def most(self) -> int:
        """The largest count."""
        return int(self.counts.max(initial=0))

    def rows(self, contexts: Ints) -> Ints:
        """The row of each context; -1 for one that was never seen."""
        at, here = look_up(self.keys, contexts)
        return np.where(here, at, -1)

    def entries(self, rows: Ints, places: Ints) -> tuple[Ints, Bools]:
        """Where the entry of each row and place stands, and whether there is one."""
        return look_up(self._pairs, np.where(rows < 0, -1, rows * self.classes + places))

    def seen(self, rows: Ints, places: Ints) -> Ints:
        """How often each place was seen in each row."""
        at, here = self.entries(rows, places)
        return np.where(here, self.counts[at], 0) if len(self.counts) else np.zeros(len(rows), np.int64)

    def lengths(self, rows: Ints) -> Ints:
        """How many places each row has; none where there is no row."""
        return np.where(rows < 0, 0, self.starts[rows + 1] - self.starts[rows])

    def totals(self, rows: Ints) -> Ints:
        """How many visits each row has."""
        return np.where(rows < 0, 0, self._sums[self.starts[rows + 1]] - self._sums[self.starts[rows]])


def look_up(known: Ints, wanted: Ints) -> tuple[Ints, Bools]:
    """Where each wanted number stands among the known ones, which ascend, and whether it is there."""
    if not len(known):
        return np.zeros(len(wanted), dtype=np.int64), np.zeros(len(wanted), dtype=bool)
    at = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    return at, known[at] == wanted


def visits_by_user(history: History) -> Tally:
    """Where each user was, whatever came before."""
    return Tally.of(history.user_codes, history.places, history.classes)


def moves(history: History) -> Tally:
    """Where anybody went next, by the place before."""
    moved = history.previous != NOWHERE
    return Tally.of(history.previous[moved], history.places[moved], history.classes)


def moves_by_user(history: History) -> Tally:
    """Where each user went next, by user and the place before: see ``user_and_place``."""
    moved = history.previous != NOWHERE
    keys = user_and_place(history.user_codes, history.previous, history.classes)
    return Tally.of(keys[moved], history.places[moved], history.classes)


def user_and_place(users: Ints, places: Ints, classes: int) -> Ints:
    """One number for a user and a place; -1 where either is unknown."""
    return np.where((users < 0) | (places < 0), -1, users * classes + places)
