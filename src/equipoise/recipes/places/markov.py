"""A small model that gives probabilities: first-order moves, smoothed by what is known more surely."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from equipoise.evidence.placement import spans
from equipoise.recipes.places.history import Cases, History
from equipoise.recipes.places.tally import Tally, moves, moves_by_user, user_and_place, visits_by_user
from equipoise.types import Floats, Ints


@dataclass(frozen=True, eq=False)
class MarkovModel:
    """The next place by user and the place before.

    Four sources from the broadest to the most telling: everybody's visits (each place counted once more, so
    that none is impossible), everybody's moves from the place before, the user's visits, the user's moves
    from the place before. Each leaves a share to the one before it: with n visits to d different places,
    d/(n + d) of the probability (Witten and Bell, IEEE Transactions on Information Theory 1991).

    >>> model = MarkovModel(History.of(["ann"] * 6, [0, 1, 0, 1, 0, 2]))
    >>> ann = np.array(["ann"], dtype=object)
    >>> model.probabilities(Cases(ann, ann, np.array([0]), np.array([1]))).round(3)
    array([[0.157, 0.56 , 0.283]])
    """

    history: History

    def logits(self, cases: Cases) -> NDArray[np.float32]:
        """The logarithm of the probability of every place, a row a case."""
        return np.log(self.probabilities(cases)).astype(np.float32)

    def probabilities(self, cases: Cases) -> Floats:
        """The probability of every place, a row a case; each row adds up to 1."""
        history = self.history
        users = history.codes_of(cases.users)
        likely = np.tile((history.counts + 1.0) / (len(history) + history.classes), (len(cases), 1))
        both = user_and_place(users, cases.previous, history.classes)
        for tally, contexts in zip(self._tallies, (cases.previous, users, both), strict=True):
            _mixed(likely, tally, tally.rows(contexts))
        return likely

    @cached_property
    def _tallies(self) -> tuple[Tally, Tally, Tally]:
        return moves(self.history), visits_by_user(self.history), moves_by_user(self.history)


def _mixed(likely: Floats, tally: Tally, rows: Ints) -> None:
    """Let these counts speak, in place; where there are none, nothing changes."""
    different, visits = tally.lengths(rows), tally.totals(rows)
    heard = rows >= 0
    whole = np.where(heard, visits + different, 1)
    likely *= np.where(heard, different / whole, 1.0)[:, None]
    items = spans(tally.starts[rows], different)
    unit = np.repeat(np.arange(len(rows)), different)
    likely[unit, tally.places[items]] += tally.counts[items] / whole[unit]
