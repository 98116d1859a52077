"""A run and its truth, seen under any conventions; what was made once is kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from equipoise.checks.like import run_rules, truth_rules
from equipoise.checks.like.conventions import Conventions
from equipoise.checks.like.run_rules import ORDERS, Run
from equipoise.checks.like.torch_order import PICK, SORT
from equipoise.checks.like.truth_rules import Truth
from equipoise.errors import InputError
from equipoise.evidence.placement import NEVER
from equipoise.evidence.ranking import Ranking
from equipoise.types import Bools

T = TypeVar("T")

KEPT = 8
"""So many rankings are kept: neighbours in a walk over conventions share most of what they are made of."""


@dataclass(frozen=True)
class Material:
    """Scores by query and document, judgements by query and document."""

    run: Run
    truth: Truth
    corpus_size: int | None = None
    unjudged: tuple[str, ...] = ()
    """Queries of the run that the truth does not know; they are in no list."""
    _made: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, run: Any, qrels: Any, *, corpus_size: int | None = None) -> Material:
        """From dicts of dicts or paths; a run and a truth that share no query are refused."""
        from equipoise.data.runs import read_qrels, read_run

        scores = run if isinstance(run, Mapping) else read_run(run)
        truth = qrels if isinstance(qrels, Mapping) else read_qrels(qrels)
        if not truth:
            raise InputError("the judgements hold no query at all", hint="check the qrels")
        if not scores.keys() & truth.keys():
            raise InputError(
                f"the run and the truth have no query in common: {next(iter(scores), 'none')} in the one, "
                f"{next(iter(truth))} in the other",
                hint="check that they belong together and spell the query ids alike",
            )
        Ranking.from_runs(truth, scores)  # scores and gains that are no numbers are refused here, and named
        known = {query: scores[query] for query in scores if query in truth}
        return cls(known, truth, corpus_size, tuple(str(query) for query in scores if query not in truth))

    @cached_property
    def units(self) -> list[str]:
        """All judged queries."""
        return list(self.truth)

    @cached_property
    def answered(self) -> Bools:
        """Which of the units the run has a list for."""
        return np.array([unit in self.run for unit in self.units])

    def order(self, conventions: Conventions) -> str | None:
        """The name of the rule that puts equals into one order; None where none does.

        A run whose queries are not those of the truth must be made comparable for ranx, which sorts again.
        """
        if conventions.ties == "quicksort" and (self.unjudged or not self.answered.all()):
            return "quicksort twice"
        return conventions.ties if conventions.ties in (*ORDERS, SORT, PICK) else None

    def seen(self, conventions: Conventions) -> Run:
        """The lists with the scores that are compared, all items in them."""
        return self._once(
            ("seen", conventions.own_id, conventions.scores),
            lambda: _seen(self.run, conventions),
        )

    def ranked(self, conventions: Conventions, k: int | None = None) -> Run:
        """The lists as they are ranked: what is lost is gone, and equals stand in order where a rule says.

        Where the best are picked, ``k`` says how many: it changes which of equals are.
        """
        says = (conventions.own_id, conventions.scores, conventions.nonpositive, conventions.ties)
        return self._once(
            ("ranked", *says, k if conventions.ties == PICK else None),
            lambda: _ranked(self.seen(conventions), conventions, self.order(conventions), k),
        )

    def judged(self, conventions: Conventions) -> Truth:
        """The judgements as they count."""
        return self._once(
            ("judged", conventions.grades, conventions.unretrieved, conventions.own_id),
            lambda: _judged(self.truth, self.seen(conventions), conventions),
        )

    def ranking(self, conventions: Conventions, k: int | None = None) -> Ranking:
        """Where the relevant items landed; ``k`` is the cutoff of the metric that asks."""
        key = tuple(conventions[name] for name in conventions if name not in _NOT_IN_RANKING)
        picked = k if conventions.ties == PICK else None
        return self._once(("ranking", key, picked), lambda: self._ranking(conventions, k))

    def _ranking(self, conventions: Conventions, k: int | None) -> Ranking:
        truth, run = self.judged(conventions), self.ranked(conventions, k)
        ranking = Ranking.from_runs(truth, run, corpus_size=self.corpus_size)
        if conventions.ties in ("optimistic", "pessimistic"):
            ranking = ranking.ordered(conventions.ties)
        return ranking if conventions.depth is None else cut(ranking, conventions.depth)

    def _once(self, key: Any, make: Callable[[], T]) -> T:
        """What the key stands for; of each kind the oldest is forgotten when there are many."""
        if key not in self._made:
            alike = [each for each in self._made if each[0] == key[0]]
            if len(alike) >= KEPT:
                del self._made[alike[0]]
            self._made[key] = make()
        made: T = self._made[key]
        return made


_NOT_IN_RANKING = ("missing", "empty", "norm", "gain", "fewest", "digits")
"""Conventions that change what is made of a ranking, and not the ranking."""


def cut(ranking: Ranking, depth: int) -> Ranking:
    """The ranking of lists that end after ``depth`` items.

    >>> cut(Ranking.from_lists([[1, 2, 3]], [[1, 3]]), 2).ranks
    array([ 1., inf])
    """
    return replace(
        ranking,
        above=np.where(ranking.above >= depth, NEVER, ranking.above),
        tied=np.where(ranking.above >= depth, 0, ranking.tied),
        depth=np.minimum(ranking.depth, depth),
    )


def _seen(run: Run, conventions: Conventions) -> Run:
    if conventions.own_id == "dropped":
        run = run_rules.without_own_id(run)
    return run_rules.in_float32(run) if conventions.scores == "float32" else run


def _ranked(run: Run, conventions: Conventions, order: str | None, k: int | None) -> Run:
    ranked = run if order is None else run_rules.in_one_order(run, order, k)
    if conventions.nonpositive == "kept":
        return ranked
    # What has no score above 0 stands behind all else, so that its leaving moves nothing.
    kept = run_rules.above_zero(run)
    return {query: {item: ranked[query][item] for item in scores} for query, scores in kept.items()}


def _judged(truth: Truth, run: Run, conventions: Conventions) -> Truth:
    if conventions.grades != "kept":
        truth = truth_rules.whole(truth) if conventions.grades == "whole" else truth_rules.binary(truth)
    return truth_rules.only_retrieved(truth, run) if conventions.unretrieved == "unseen" else truth
