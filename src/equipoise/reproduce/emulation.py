"""Metric values of a run under the conventions of another library; intermediate rankings are memoised."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import comb
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from equipoise.errors import InputError
from equipoise.evidence.ranking import Ranking
from equipoise.evidence.segments import NOT_RETRIEVED, relevant_tie_groups, segment_sums
from equipoise.metrics.ranking import NDCG, AveragePrecision, average_precision, harmonic_numbers, n_relevant_within
from equipoise.reproduce import tie_orders
from equipoise.reproduce.tie_orders import ORDERS, PICK, SORT, Run, Truth

if TYPE_CHECKING:
    from equipoise.metrics.base import Metric
    from equipoise.reproduce.presets import Conventions
    from equipoise.types import Bools, Floats

T = TypeVar("T")

KEPT = 8
"""The number of memoised rankings; neighbouring sets of conventions share most intermediate results."""


@dataclass(frozen=True)
class RunAndQrels:
    """A run and its qrels: scores and gains by query and document."""

    run: Run
    truth: Truth
    corpus_size: int | None = None
    unjudged: tuple[str, ...] = ()
    """Queries of the run that are not in the ground truth; they are in no list."""
    _cache: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, run: Any, qrels: Any, *, corpus_size: int | None = None) -> RunAndQrels:
        """From dicts of dicts or paths. A run and a ground truth without common queries are an error."""
        from equipoise.io.run_files import read_qrels, read_run

        scores = run if isinstance(run, Mapping) else read_run(run)
        truth = qrels if isinstance(qrels, Mapping) else read_qrels(qrels)
        if not truth:
            raise InputError("the qrels have no query", hint="check the qrels")
        if not scores.keys() & truth.keys():
            raise InputError(
                f"the run and the ground truth have no query in common: {next(iter(scores), 'none')} in the one, "
                f"{next(iter(truth))} in the other",
                hint="check that they belong together and use the same query ids",
            )
        Ranking.from_runs(truth, scores)  # checks that scores and gains are numbers
        answered = {query: scores[query] for query in scores if query in truth}
        return cls(answered, truth, corpus_size, tuple(str(query) for query in scores if query not in truth))

    @cached_property
    def units(self) -> list[str]:
        """All queries of the qrels."""
        return list(self.truth)

    @property
    def gains(self) -> Iterator[float]:
        """The gains of all documents of all queries."""
        return (gain for gains in self.truth.values() for gain in gains.values())

    @cached_property
    def answered(self) -> Bools:
        """Which of the units the run has a list for."""
        return np.array([unit in self.run for unit in self.units])

    def order(self, conventions: Conventions) -> str | None:
        """The name of the rule that orders ties; None if there is none.

        ranx first makes a run with other queries than the ground truth comparable, which sorts it again.
        """
        if conventions.ties == "quicksort" and (self.unjudged or not self.answered.all()):
            return "quicksort twice"
        return conventions.ties if conventions.ties in (*ORDERS, SORT, PICK) else None

    def compared(self, conventions: Conventions) -> Run:
        """The lists with the scores that are compared, all items in them."""
        return self._memoised(
            ("compared", conventions.own_id, conventions.scores),
            lambda: _convert_scores(self.run, conventions),
        )

    def ranked(self, conventions: Conventions, k: int | None = None) -> Run:
        """The lists as ranked: dropped items are removed, and ties are ordered if there is a rule.

        With top-k selection, ``k`` is the number of items: it changes the order of ties.
        """
        settings = (conventions.own_id, conventions.scores, conventions.nonpositive, conventions.ties)
        return self._memoised(
            ("ranked", *settings, k if conventions.ties == PICK else None),
            lambda: _order_run(self.compared(conventions), conventions, self.order(conventions), k),
        )

    def qrels(self, conventions: Conventions) -> Truth:
        """The qrels after applying the conventions."""
        return self._memoised(
            ("qrels", conventions.grades, conventions.min_grade, conventions.unretrieved, conventions.own_id),
            lambda: _convert_qrels(self.truth, self.compared(conventions), conventions),
        )

    def ranking(self, conventions: Conventions, k: int | None = None) -> Ranking:
        """The ranks of the relevant items; ``k`` is the cutoff of the metric."""
        key = tuple(conventions[name] for name in conventions if name not in _NOT_IN_RANKING)
        selection_size = k if conventions.ties == PICK else None

        def make() -> Ranking:
            truth, run = self.qrels(conventions), self.ranked(conventions, k)
            ranking = Ranking.from_runs(truth, run, corpus_size=self.corpus_size)
            return ranking.ordered(conventions.ties) if conventions.ties in ("optimistic", "pessimistic") else ranking

        ranking = self._memoised(("ranking", key, selection_size), make)
        return ranking if conventions.depth is None else truncate_ranking(ranking, conventions.depth)

    def _memoised(self, key: Any, make: Callable[[], T]) -> T:
        """The memoised value of a key; of each kind the oldest is dropped above a limit."""
        if key not in self._cache:
            same_kind = [entry for entry in self._cache if entry[0] == key[0]]
            if len(same_kind) >= KEPT:
                del self._cache[same_kind[0]]
            self._cache[key] = make()
        result: T = self._cache[key]
        return result


_NOT_IN_RANKING = ("missing", "empty", "norm", "gain", "depth", "fewest", "digits")
"""Conventions that do not change the ranking; the depth truncates it afterwards."""


def truncate_ranking(ranking: Ranking, depth: int) -> Ranking:
    """The ranking of lists that end after ``depth`` items.

    >>> truncate_ranking(Ranking.from_lists([[1, 2, 3]], [[1, 3]]), 2).ranks
    array([ 1., inf])
    """
    return replace(
        ranking,
        above=np.where(ranking.above >= depth, NOT_RETRIEVED, ranking.above),
        tied=np.where(ranking.above >= depth, 0, ranking.tied),
        depth=np.minimum(ranking.depth, depth),
    )


def _convert_scores(run: Run, conventions: Conventions) -> Run:
    if conventions.own_id == "dropped":
        run = tie_orders.drop_self_matches(run)
    return tie_orders.to_float32(run) if conventions.scores == "float32" else run


def _order_run(run: Run, conventions: Conventions, order: str | None, k: int | None) -> Run:
    ranked = run if order is None else tie_orders.without_ties(run, order, k)
    if conventions.nonpositive == "kept":
        return ranked
    # Items without a score above 0 come last, so that dropping them changes no other rank.
    positive = tie_orders.drop_nonpositive(run)
    return {query: {item: ranked[query][item] for item in scores} for query, scores in positive.items()}


def _convert_qrels(truth: Truth, run: Run, conventions: Conventions) -> Truth:
    if conventions.min_grade > 1:
        truth = tie_orders.drop_lower_grades(truth, conventions.min_grade)
    if conventions.grades != "kept":
        truth = tie_orders.truncate_gains(truth) if conventions.grades == "whole" else tie_orders.binarize_gains(truth)
    return tie_orders.retrieved_only(truth, run) if conventions.unretrieved == "unseen" else truth


# Average precision over the hits, or with tied scores as one threshold, as in some libraries.


def average_precision_of_hits(ranking: Ranking, k: int | None) -> Floats:
    """Precision at each relevant rank within ``k``, averaged over those alone; 0 where there is none.

    With ties it is the expectation over the orders of equal scores: the group that reaches over the cutoff
    contains a random number of hits, so the ratio is averaged over that number.

    >>> ranking = Ranking.from_lists([[1, 2, 3, 4]], [[1, 4, 9]])
    >>> average_precision_of_hits(ranking, 4)
    array([0.75])
    """
    last = int(ranking.depth.max(initial=1)) if k is None else k
    total = average_precision(ranking, k, capped=False) * np.maximum(ranking.counts, 1)
    hits = n_relevant_within(ranking, max(last, 1))
    values = np.divide(total, hits, out=np.where(np.isnan(total), np.nan, 0.0), where=hits > 0)
    if ranking.has_ties:
        for unit in _cut_within_ties(ranking, last):
            values[unit] = _over_hits(ranking, unit, last)
    return values


def _cut_within_ties(ranking: Ranking, k: int) -> list[int]:
    """Units with a relevant item in a group of equals that reaches over the cutoff."""
    reaches = (ranking.above < k) & (ranking.tied > 0) & (ranking.above + np.minimum(ranking.tied, k) >= k)
    return np.unique(ranking.unit_of[reaches]).tolist()


def _over_hits(ranking: Ranking, unit: int, k: int) -> float:
    """The expectation of one unit, summed over the number of hits in the truncated group."""
    span = slice(int(ranking.starts[unit]), int(ranking.starts[unit + 1]))
    above, size = ranking.above[span], ranking.tied[span] + 1
    cut = (above < k) & (above + np.minimum(size, k + 1) > k)
    start, members, relevant = int(above[cut][0]), int(size[cut][0]), int(cut.sum())
    before = int((above < start).sum())
    unit_ranking = ranking.take(np.array([unit]))
    before_cut = float(average_precision(unit_ranking, max(start, 1), capped=False)[0]) * len(above)
    before_cut = before_cut if start else 0.0
    n_free = k - start
    harmonic = harmonic_numbers(k)
    harmonic_sum = harmonic[k] - harmonic[start]
    expected = 0.0
    for hits in range(max(0, relevant - (members - n_free)), min(relevant, n_free) + 1):
        chance = comb(n_free, hits) * comb(members - n_free, relevant - hits) / comb(members, relevant)
        slope = (hits - 1) / max(n_free - 1, 1)
        gained = hits * ((before + 1) * harmonic_sum + slope * (n_free - (start + 1) * harmonic_sum)) / n_free
        expected += chance * (before_cut + gained) / (before + hits) if before + hits else 0.0
    return expected


def average_precision_at_thresholds(ranking: Ranking, *, over_hits: bool) -> Floats:
    """Precision at the end of each relevant item's group of equals, averaged over R or over those retrieved."""
    before, relevant = relevant_tie_groups(ranking)
    retrieved = ranking.retrieved
    ends = np.where(retrieved, ranking.above, 0) + ranking.tied + 1.0
    total = segment_sums(np.where(retrieved, (before + relevant) / ends, 0.0), ranking.starts)
    hits = segment_sums(retrieved.astype(np.float64), ranking.starts)
    return total / np.maximum(hits if over_hits else ranking.counts, 1)


@dataclass(frozen=True)
class EmulatedScore:
    """The printed mean, and one value per query of the qrels; NaN for excluded queries."""

    value: float
    per_unit: Floats

    @property
    def n(self) -> int:
        """The number of queries that count."""
        return int(np.count_nonzero(~np.isnan(self.per_unit)))


def score_under(inputs: RunAndQrels, metric: Metric[Any], conventions: Conventions) -> EmulatedScore:
    """The score that a program with these conventions prints."""
    ranking = inputs.ranking(conventions, getattr(metric, "k", None))
    values = per_query_under(ranking, metric, conventions)
    values[excluded_queries(inputs, conventions)] = np.nan
    counted = values[~np.isnan(values)]
    value = float(np.mean(counted)) if len(counted) else float("nan")
    return EmulatedScore(value if conventions.digits is None else round(value, conventions.digits), values)


def excluded_queries(inputs: RunAndQrels, conventions: Conventions) -> Bools:
    """The excluded queries: the run misses them or their list is too short."""
    out = np.zeros(len(inputs.units), dtype=np.bool_)
    if conventions.missing == "left_out":
        out |= ~inputs.answered
    if conventions.fewest:
        lengths = np.array([len(inputs.compared(conventions).get(unit, ())) for unit in inputs.units])
        out |= inputs.answered & (lengths < conventions.fewest)
    return out


def per_query_under(ranking: Ranking, metric: Metric[Any], conventions: Conventions) -> Floats:
    """One value per unit; NaN or 0 for a unit without relevant items."""
    values = np.array(_measure(ranking, metric, conventions), dtype=np.float64)
    if conventions.empty == "zero":
        values[ranking.counts == 0] = 0.0
    return values


def _measure(ranking: Ranking, metric: Metric[Any], conventions: Conventions) -> Floats:
    if isinstance(metric, AveragePrecision):
        if conventions.ties == "threshold":
            return average_precision_at_thresholds(ranking, over_hits=conventions.norm == "hits")
        if conventions.norm == "hits":
            return average_precision_of_hits(ranking, metric.k)
        metric = replace(metric, norm=conventions.norm)
    elif isinstance(metric, NDCG):
        metric = replace(metric, gain=conventions.gain)
    values = metric.measure(ranking).per_unit
    return np.zeros(0) if values is None else values
