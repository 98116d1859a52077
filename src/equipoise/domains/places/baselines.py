"""Baselines: random, most visited places, and first-order Markov.

All are scored like any model: for each unit, the number of places above the target and the number tied with it. Ties
are not ordered: metrics take the expectation over all tie orders.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from equipoise.domains.places.visits import (
    ContextCounts,
    VisitHistory,
    as_class_codes,
    context_key,
    transition_counts,
    user_transition_counts,
    user_visit_counts,
)
from equipoise.errors import InputError, ParameterError, ShapeError
from equipoise.evidence.base import to_numpy, unique_ids
from equipoise.evidence.labels import Labels
from equipoise.evidence.ranking import Ranking
from equipoise.io.arrays import segment_indices
from equipoise.metrics.labels import ClassF1
from equipoise.metrics.ranking import NDCG, HitRate, ReciprocalRank, harmonic_numbers
from equipoise.tasks.classification import ClassificationOutput

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from equipoise.types import Bools, Ids, Ints

KS = (1, 3, 5, 10)
NDCG_AT = 10


def random_chance(classes: int, ks: Sequence[int] = KS) -> dict[str, float]:
    """Compute the exact expected scores of a random order of the classes.

    The correct class has every rank from 1 to n with equal probability: Acc@k is min(k, n)/n, MRR is H_n/n, and nDCG@10
    is the mean of its discounts.

    Parameters
    ----------
    classes
        Number of classes.
    ks
        Cutoffs of the accuracy.

    Returns
    -------
    dict
        Expected values by metric name; Acc@1 is called HR@1.

    Examples
    --------
    >>> level = random_chance(1187, ks=[1])
    >>> {name: round(value, 5) for name, value in level.items()}
    {'HR@1': 0.00084, 'MRR': 0.00645, 'nDCG@10': 0.00383}
    """
    if classes < 1:
        raise ParameterError(f"there are {classes} classes", hint="give at least 1")
    for k in ks:
        if k < 1:
            raise ParameterError(f"the cutoff {k} is below 1", hint="ranks start at 1")
    discounts = 1.0 / np.log2(np.arange(2, min(NDCG_AT, classes) + 2))
    hits = {HitRate(k).name: min(k, classes) / classes for k in ks}
    return hits | {
        ReciprocalRank().name: float(harmonic_numbers(classes)[-1]) / classes,
        NDCG(NDCG_AT).name: float(discounts.sum()) / classes,
    }


def majority(
    train_counts: ArrayLike, targets: ArrayLike, *, exclude: ArrayLike | None = None, unit_ids: ArrayLike | None = None
) -> Ranking:
    """Rank places by their frequency in training, in the same order for every user.

    Parameters
    ----------
    train_counts
        Number of visits in training per class.
    targets
        The true class of each unit.
    exclude
        Classes that are not places, such as padding.
    unit_ids
        Ids of the units.

    Returns
    -------
    Ranking
        Ranks of the targets.

    Examples
    --------
    >>> majority([5, 2, 2, 9], [3, 0, 2]).ranks.tolist()
    [1.0, 2.0, 3.5]
    """
    return guess_majority(train_counts, targets, exclude=exclude, unit_ids=unit_ids).ranking


def most_frequent_per_user(
    history: VisitHistory,
    users: ArrayLike,
    targets: ArrayLike,
    *,
    exclude: ArrayLike | None = None,
    unit_ids: ArrayLike | None = None,
) -> Ranking:
    """Rank the places of each user by the number of that user's visits; ties by the visits of all users.

    A user without history gets the order of ``majority``.

    Parameters
    ----------
    history
        Visits in training.
    users
        The user of each unit.
    targets
        The true class of each unit.
    exclude
        Classes that are not places, such as padding.
    unit_ids
        Ids of the units.

    Returns
    -------
    Ranking
        Ranks of the targets.

    Examples
    --------
    >>> history = VisitHistory.of(["ann", "ann", "bob", "bob", "bob"], [0, 0, 1, 1, 1])
    >>> most_frequent_per_user(history, ["ann", "bob", "eve"], [0, 0, 0]).ranks.tolist()
    [1.0, 2.0, 2.0]
    """
    return guess_per_user(history, users, targets, exclude=exclude, unit_ids=unit_ids).ranking


def markov(
    history: VisitHistory,
    users: ArrayLike,
    previous: ArrayLike,
    targets: ArrayLike,
    *,
    exclude: ArrayLike | None = None,
    unit_ids: ArrayLike | None = None,
) -> Ranking:
    """Rank places by a first-order Markov chain: how often the user went there from the previous place.

    Ties are ordered by the user's visits, then by the transitions of all users, then by the visits of all users.

    Parameters
    ----------
    history
        Visits in training.
    users
        The user of each unit.
    previous
        The previous place of each unit, -1 if there is none.
    targets
        The true class of each unit.
    exclude
        Classes that are not places, such as padding.
    unit_ids
        Ids of the units.

    Returns
    -------
    Ranking
        Ranks of the targets.

    Examples
    --------
    >>> history = VisitHistory.of(["ann"] * 5, [0, 1, 0, 2, 0])
    >>> markov(history, ["ann", "ann"], [1, 0], [0, 2]).ranks.tolist()
    [1.0, 1.5]
    """
    return guess_markov(history, users, previous, targets, exclude=exclude, unit_ids=unit_ids).ranking


def guess_majority(
    train_counts: ArrayLike, targets: ArrayLike, *, exclude: ArrayLike | None = None, unit_ids: ArrayLike | None = None
) -> ClassificationOutput:
    """See ``majority``; with the first choices."""
    counts = to_numpy(train_counts)
    if counts.ndim != 1 or not len(counts):
        raise ShapeError(f"the training counts have shape {counts.shape}", hint="give one count per class")
    if counts.dtype.kind not in "iu" or (counts < 0).any():
        raise InputError(
            "the training counts are not all non-negative integers",
            hint="count the targets of the training data: numpy.bincount(y_train, minlength=classes)",
        )
    return _guess([], counts.astype(np.int64), targets, exclude, unit_ids)


def guess_per_user(
    history: VisitHistory,
    users: ArrayLike,
    targets: ArrayLike,
    *,
    exclude: ArrayLike | None = None,
    unit_ids: ArrayLike | None = None,
) -> ClassificationOutput:
    """See ``most_frequent_per_user``; with the first choices."""
    levels = [CountLevel(user_visit_counts(history), _users(history, users, targets))]
    return _guess(levels, history.counts, targets, exclude, unit_ids)


def guess_markov(
    history: VisitHistory,
    users: ArrayLike,
    previous: ArrayLike,
    targets: ArrayLike,
    *,
    exclude: ArrayLike | None = None,
    unit_ids: ArrayLike | None = None,
) -> ClassificationOutput:
    """See ``markov``; with the first choices."""
    user_codes = _users(history, users, targets)
    before = as_class_codes(previous, "previous places")
    if len(before) != len(user_codes):
        raise ShapeError(
            f"there are {len(before)} previous places for {len(user_codes)} visits", hint="give one per visit"
        )
    levels = [
        CountLevel(user_transition_counts(history), context_key(user_codes, before, history.classes)),
        CountLevel(user_visit_counts(history), user_codes),
    ]
    shared = CountLevel(transition_counts(history), before)
    return _guess(levels, history.counts, targets, exclude, unit_ids, shared)


def _users(history: VisitHistory, users: Any, targets: Any) -> Ints:
    names = to_numpy(users)
    if names.shape != to_numpy(targets).shape:
        raise ShapeError(
            f"there are {len(names)} users for {len(to_numpy(targets))} targets", hint="give one per visit"
        )
    if names.dtype.kind not in "iu":
        names = np.array([str(name) for name in names], dtype=object)
    return history.codes_of(names)


def _guess(
    levels: Sequence[CountLevel],
    counts: Ints,
    targets: Any,
    exclude: Any,
    unit_ids: Any,
    shared: CountLevel | None = None,
) -> ClassificationOutput:
    """The order by the user's counts, then by counts in a context that all users share, then by all visits.

    Where several places share the first rank, the one of the lowest code is chosen and the tie is marked.
    """
    predictable = _predictable_classes(exclude, len(counts))
    codes = _targets(targets, predictable)
    ids: Ids = unique_ids(unit_ids, len(codes))
    ranked = rank_targets(levels, shared, SharedOrder(counts, predictable, shared and shared.tally), codes)
    pool = np.full(len(codes), int(predictable.sum()), dtype=np.int64)
    ranking = Ranking.of_items(
        ids,
        np.ones(len(codes), dtype=np.int64),
        gain=np.ones(len(codes)),
        above=ranked.above,
        tied=ranked.tied,
        before=ranked.before,
        depth=pool,
        candidates=pool,
    )
    labels = Labels(ids, codes, ranked.first, np.arange(len(counts)), ranked.first_tied)
    return ClassificationOutput(ranking, labels, np.ones(len(codes), dtype=bool), int(predictable.sum()))


def _predictable_classes(exclude: Any, classes: int) -> Bools:
    """Which classes are places."""
    predictable = np.ones(classes, dtype=bool)
    for code in np.atleast_1d(np.asarray([] if exclude is None else exclude, dtype=np.int64)).tolist():
        if not 0 <= code < classes:
            raise ParameterError(
                f"class {code} cannot be excluded: there is none", hint=f"classes are 0 to {classes - 1}"
            )
        predictable[code] = False
    if not predictable.any():
        raise ParameterError("all classes are excluded", hint="leave at least one place to predict")
    return predictable


def _targets(targets: Any, predictable: Bools) -> Ints:
    codes = as_class_codes(targets, "targets")
    invalid = (codes < 0) | (codes >= len(predictable))
    if invalid.any():
        unit = int(np.argmax(invalid))
        raise InputError(
            f"target {codes[unit]} of visit {unit} is not a class", hint=f"classes are 0 to {len(predictable) - 1}"
        )
    masked = ~predictable[codes]
    if masked.any():
        raise InputError(
            f"the target of visit {int(np.argmax(masked))} is an excluded class ({int(masked.sum())} such)",
            hint="leave out visits whose target is not a place",
        )
    return codes


# Ranks of the targets: a context has counts of few places; all others follow in the order of all visits.

BLOCK = 1 << 20
"""Counted places of all queries of a block together: bounds the memory, some 200 bytes each."""


class CountLevel(NamedTuple):
    """Counts that decide, and the context of each unit in them."""

    tally: ContextCounts
    contexts: Ints


class BaselineRanks(NamedTuple):
    """For each unit: places above the target, tied with it, and tied ones that precede it by name.

    ``first`` is the first place, the lowest code if ``first_tied``.
    """

    above: Ints
    tied: Ints
    before: Ints
    first: Ints
    first_tied: Bools


class RowOrder:
    """Places of many rows, each with a value: how many places of a row have a larger or the same value.

    Row, value and name are one number, so that two searches in the sorted numbers count the places of a query.
    """

    def __init__(self, rows: Ints, values: Ints, names: Ints, n_values: int, n_names: int) -> None:
        self.n_values, self.n_names = n_values, n_names
        self.ordered = np.sort(rows * self.n_values + values)
        self.named = np.sort((rows * self.n_values + values) * self.n_names + names)

    def counts(self, rows: Ints, values: Ints, names: Ints) -> tuple[Ints, Ints, Ints]:
        """For each query: places of the row with a larger value, with the same, and of these those of a larger name."""
        keys = rows * self.n_values + values
        left, right = np.searchsorted(self.ordered, keys), np.searchsorted(self.ordered, keys, side="right")
        end = np.searchsorted(self.ordered, (rows + 1) * self.n_values)
        later = right - np.searchsorted(self.named, keys * self.n_names + names, side="right")
        return end - right, right - left, later


class SharedOrder:
    """Places by the counts of a row of a tally, if there is one, then by the number of all visits."""

    def __init__(self, counts: Ints, predictable: Bools, tally: ContextCounts | None = None) -> None:
        self.predictable, self.tally = predictable, tally
        places, n_classes = np.flatnonzero(predictable), len(counts)
        _, level = np.unique(counts, return_inverse=True)
        self.level: Ints = level.reshape(-1)
        # An order by id puts larger names first, as trec_eval does.
        self.name_ranks = np.empty(n_classes, dtype=np.int64)
        self.name_ranks[np.argsort(np.arange(n_classes).astype(str), kind="stable")] = np.arange(n_classes)
        zeros = np.zeros_like(places)
        self.common = RowOrder(zeros, self.level[places], self.name_ranks[places], n_classes, n_classes)
        # The first place of each row; the last entry is for row -1.
        self.firsts = _first_places(zeros, places, [self.level[places]], places[:1], np.zeros(1, dtype=bool))
        if tally is not None:
            rows = np.repeat(np.arange(len(tally.keys)), np.diff(tally.starts))
            rows, counted = rows[predictable[tally.places]], tally.places[predictable[tally.places]]
            keys, names = self.keys(rows, counted), self.name_ranks[counted]
            self.row_keys = np.unique(keys)  # numbered, so that a row, a key and a name fit into one integer
            # The same places twice: by their counts in the row, and by all visits.
            self.in_row = RowOrder(rows, np.searchsorted(self.row_keys, keys), names, len(self.row_keys) + 1, n_classes)
            self.by_visits = RowOrder(rows, self.level[counted], names, n_classes, n_classes)
            self.sizes = np.bincount(rows, minlength=len(tally.keys) + 1)  # the last one is for row -1
            first, is_tied = self.firsts
            n_rows = len(tally.keys) + 1
            self.firsts = _first_places(rows, counted, [keys], np.repeat(first, n_rows), np.repeat(is_tied, n_rows))

    def keys(self, rows: Ints, places: Ints) -> Ints:
        """A sort key for each place within its row."""
        if self.tally is None:
            return self.level[places]
        return self.tally.visit_counts(rows, places) * len(self.level) + self.level[places]

    def ranks(self, rows: Ints, places: Ints) -> BaselineRanks:
        """The rank counts of each place among all predictable ones, and the first place of each row."""
        names = self.name_ranks[places]
        above, equal, later = self.common.counts(np.zeros_like(places), self.level[places], names)
        first, is_tied = self.firsts
        if self.tally is None:
            return BaselineRanks(above, equal - 1, later, first[rows], is_tied[rows])
        inside = self.in_row.counts(rows, np.searchsorted(self.row_keys, self.keys(rows, places)), names)
        removed = self.by_visits.counts(rows, self.level[places], names)
        outside = self.sizes[rows] + above - removed[0], equal - removed[1], later - removed[2]
        is_inside = self.tally.visit_counts(rows, places) > 0
        above, equal, later = (np.where(is_inside, one, other) for one, other in zip(inside, outside, strict=True))
        return BaselineRanks(above, equal - 1, later, first[rows], is_tied[rows])


def rank_targets(
    levels: Sequence[CountLevel], shared: CountLevel | None, order: SharedOrder, targets: Ints
) -> BaselineRanks:
    """The rank counts of each unit's target among the predictable classes."""
    tallies = [level.tally for level in levels]
    rows = [level.tally.rows(level.contexts) for level in levels]
    rows.append(np.full(len(targets), -1) if shared is None else shared.tally.rows(shared.contexts))
    # Units of the same context and target have equal ranks.
    queries, unit = np.unique(np.stack([*rows, targets], axis=1), axis=0, return_inverse=True)
    parts = [_rank_block(tallies, order, *queries[part].T) for part in _blocks(tallies, queries)]
    return BaselineRanks(*(np.concatenate(column)[unit.reshape(-1)] for column in zip(*parts, strict=True)))


def _blocks(tallies: Sequence[ContextCounts], queries: Ints) -> Iterator[slice]:
    """Slices of the queries with a bounded number of counted places each."""
    sizes = np.zeros(len(queries), dtype=np.int64)
    for column, tally in enumerate(tallies):
        sizes += tally.lengths(queries[:, column])
    ends = np.flatnonzero(np.diff(np.cumsum(sizes) // BLOCK)) + 1
    for start, end in zip([0, *ends.tolist()], [*ends.tolist(), len(queries)], strict=True):
        yield slice(start, end)


def _rank_block(tallies: Sequence[ContextCounts], order: SharedOrder, *columns: Ints) -> BaselineRanks:
    """The rank counts of queries: a row of each tally, the row of the shared counts, and the target."""
    *rows, shared_rows, targets = columns
    shared = order.ranks(shared_rows, targets)
    if not tallies:
        return shared
    query, place = _counted_places(tallies, rows, order.predictable)
    place_counts = [tally.visit_counts(row[query], place) for tally, row in zip(tallies, rows, strict=True)]
    target_counts = [tally.visit_counts(row, targets) for tally, row in zip(tallies, rows, strict=True)]
    is_counted = np.any(target_counts, axis=0)
    place_counts.append(order.keys(shared_rows[query], place))
    target_counts.append(order.keys(shared_rows, targets))
    higher, equal = np.zeros(len(place), dtype=bool), np.ones(len(place), dtype=bool)
    for column, limit in zip(place_counts, target_counts, strict=True):
        higher |= equal & (column > limit[query])
        equal &= column == limit[query]
    is_later = order.name_ranks[place] > order.name_ranks[targets][query]
    is_level = place_counts[-1] == target_counts[-1][query]

    def count(mask: Bools) -> Ints:
        return np.bincount(query[mask], minlength=len(targets))

    # A place that the user never visited is below all visited ones, and follows in the shared order without them.
    above = count(higher) + np.where(is_counted, 0, shared.above - count(place_counts[-1] > target_counts[-1][query]))
    tied = np.where(is_counted, count(equal) - 1, shared.tied - count(is_level))
    before = np.where(is_counted, count(equal & is_later), shared.before - count(is_level & is_later))
    first = _first_places(query, place, place_counts, shared.first, shared.first_tied)
    return BaselineRanks(above, tied, before, *first)


def _counted_places(tallies: Sequence[ContextCounts], rows: Sequence[Ints], predictable: Bools) -> tuple[Ints, Ints]:
    """The predictable places of each query in the last tally, which has those of the others."""
    lengths = tallies[-1].lengths(rows[-1])
    query = np.repeat(np.arange(len(lengths)), lengths)
    place = tallies[-1].places[segment_indices(tallies[-1].starts[rows[-1]], lengths)]
    return query[predictable[place]], place[predictable[place]]


def _first_places(query: Ints, place: Ints, keys: Sequence[Ints], first: Ints, first_tied: Bools) -> tuple[Ints, Bools]:
    """The first place of each query and whether it is tied; as given for a query without places."""
    first, first_tied = first.copy(), first_tied.copy()
    if len(query):
        order = np.lexsort((place, *(-column for column in reversed(keys)), query))
        starts = np.flatnonzero(np.r_[True, query[order][1:] != query[order][:-1]])
        best, second = order[starts], order[np.minimum(starts + 1, len(order) - 1)]
        is_tied = (second != best) & (query[second] == query[best])
        for column in keys:
            is_tied &= column[second] == column[best]
        first[query[best]], first_tied[query[best]] = place[best], is_tied
    return first, first_tied


# The baselines that the given data allow, for the same units as a system.


@dataclass(frozen=True)
class BaselineInputs:
    """The training data of the baselines, and the user and previous place of each unit."""

    padding: Any = None
    train_counts: Ints | None = None
    history: VisitHistory | None = None
    users: Ids | None = None
    previous: Any = None


def run_baselines(
    classified: ClassificationOutput, inputs: BaselineInputs, cutoffs: tuple[int, ...]
) -> dict[str, ClassificationOutput | Mapping[str, float]]:
    """The exact scores of the random baseline, and the predictions of the others."""
    # Micro F1 is the accuracy of the first class, so that of a guess is known too.
    guess = random_chance(classified.classes, cutoffs) | {ClassF1("micro").name: 1.0 / classified.classes}
    guesses: dict[str, ClassificationOutput | Mapping[str, float]] = {"random": guess}
    targets = classified.labels.true
    options = {"exclude": inputs.padding, "unit_ids": classified.ranking.unit_ids}
    if inputs.train_counts is not None:
        guesses["majority"] = guess_majority(inputs.train_counts, targets, **options)
    if inputs.history is None:
        if inputs.previous is not None:
            raise ParameterError(
                "previous places were given without a history", hint="add the training visits (--history)"
            )
        return guesses
    if inputs.users is None:
        raise ParameterError(
            "a history was given without the users of the rows", hint="give the user of each row (--user)"
        )
    guesses["user"] = guess_per_user(inputs.history, inputs.users, targets, **options)
    if inputs.previous is not None:
        guesses["markov"] = guess_markov(inputs.history, inputs.users, inputs.previous, targets, **options)
    return guesses
