"""A meter for training loops: it sees batches, forgets the logits, and meters of several processes merge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from equipoise.config import Ties
from equipoise.domains.places.metrics import (
    CUTOFFS,
    NDCG_AT,
    default_cutoffs,
    label_metrics,
    omitted_cutoffs_note,
    ranking_metrics,
    to_percent,
    user_means,
)
from equipoise.errors import DuplicateError, InputError, ParameterError, ShapeError, UnknownNameError
from equipoise.evidence.base import as_ids, to_numpy
from equipoise.evidence.kernels.dispatch import TargetRanks, rank_targets
from equipoise.evidence.labels import Labels
from equipoise.evidence.ranking import Ranking
from equipoise.evidence.ranking_from_scores import as_host_array
from equipoise.metrics import ranking_functions
from equipoise.metrics.labels import ClassF1
from equipoise.tasks.classification import ClassificationOutput, classify
from equipoise.types import Floats, Ids, Ints

# The functions that next-location projects call for each batch, by the names they have there.

SUM_NAMES = (*(f"correct@{k}" for k in CUTOFFS), "rr", "ndcg", "total")
"""The names of the sums that ``calculate_correct_total_prediction`` returns, in their order."""

MAX_CACHED_CLASSES = 1 << 14
"""Classes up to which it is remembered what a target earns at each place: less than a megabyte."""


def calculate_correct_total_prediction(
    logits: Any, true_y: Any, *, ties: Ties | str = Ties.EXPECTED, compiled: bool | None = None
) -> tuple[Floats, Ints, Ints]:
    """Compute the sums, the true labels and the top-1 predictions of a batch.

    The sums are correct@1, correct@3, correct@5, correct@10, the sum of reciprocal ranks, the sum of nDCG@10 and the
    number of rows. With fewer classes than a cutoff, every row is correct at that cutoff.

    Parameters
    ----------
    logits
        One row per unit, one column per class.
    true_y
        The true class of each row.
    ties
        The order of equal scores.
    compiled
        Whether the compiled kernel is used (extra ``fast``); by default for very large matrices.

    Returns
    -------
    tuple of arrays
        The seven sums, the true labels and the top-1 predictions.

    Examples
    --------
    >>> sums, true, top1 = calculate_correct_total_prediction(np.eye(12)[[3, 4]], [3, 5])
    >>> sums[[0, 6]].tolist(), true.tolist(), top1.tolist()
    ([1.0, 2.0], [3, 5], [3, 4])
    """
    found = rank_targets(logits, true_y, compiled=compiled)
    sums = _sums(found, Ties.parse(ties))
    return np.array([*sums.tolist(), float(len(found.true))]), found.true, found.predicted


def top_k_accuracy(logits: Any, targets: Any, k: int, *, ties: Ties | str = Ties.EXPECTED) -> float:
    """Count the rows whose target is among the k best classes: a count, not a proportion.

    Parameters
    ----------
    logits
        One row per unit, one column per class.
    targets
        The true class of each row.
    k
        The cutoff.
    ties
        The order of equal scores. By default, a tie at the cutoff counts by its expected value.

    Returns
    -------
    float
        The number of correct rows.

    Examples
    --------
    >>> top_k_accuracy([[0.4, 0.3, 0.2], [0.5, 0.3, 0.1]], [1, 0], 2)
    2.0
    """
    return _hits(rank_targets(logits, targets, ks=(k,)).ranking().ordered(Ties.parse(ties)), k)


def get_mrr(prediction: Any, targets: Any, *, ties: Ties | str = Ties.EXPECTED) -> float:
    """Compute the sum (not the mean) of the reciprocal ranks of the targets.

    Parameters
    ----------
    prediction
        Scores: one row per unit, one column per class.
    targets
        The true class of each row.
    ties
        The order of equal scores.

    Returns
    -------
    float
        The sum over the rows.

    Examples
    --------
    >>> get_mrr([[0.4, 0.3, 0.2], [0.5, 0.3, 0.1]], [1, 0])
    1.5
    """
    return _reciprocals(rank_targets(prediction, targets).ranking().ordered(Ties.parse(ties)))


def get_ndcg(prediction: Any, targets: Any, k: int = 10, *, ties: Ties | str = Ties.EXPECTED) -> float:
    """Compute the sum (not the mean) of 1/log2(rank + 1) over the targets that rank within k.

    Parameters
    ----------
    prediction
        Scores: one row per unit, one column per class.
    targets
        The true class of each row.
    k
        The cutoff.
    ties
        The order of equal scores.

    Returns
    -------
    float
        The sum over the rows.

    Examples
    --------
    >>> get_ndcg([[0.4, 0.3, 0.2], [0.5, 0.3, 0.1]], [2, 0], k=3)
    1.5
    """
    if k < 1:
        raise ParameterError(f"k = {k} is no cutoff", hint="cutoffs are whole numbers from 1 on")
    return _gains(rank_targets(prediction, targets).ranking().ordered(Ties.parse(ties)), k)


def get_performance_dict(
    counts: Any, true_labels: Any = None, top1_predictions: Any = None, *, f1: float | None = None
) -> dict[str, float]:
    """Compute metrics in percent from the sums of one batch or of several batches.

    Parameters
    ----------
    counts
        The seven sums of ``calculate_correct_total_prediction`` in their order, or a mapping by name.
    true_labels
        True classes, for F1.
    top1_predictions
        Predicted classes, for F1.
    f1
        A weighted F1, as a fraction, that was computed elsewhere.

    Returns
    -------
    dict
        The sums, and acc@1, acc@3, acc@5, acc@10, mrr, ndcg and f1, all in percent. ``f1`` is the weighted F1; it is
        left out if neither labels nor a value are given.

    Examples
    --------
    >>> metrics = get_performance_dict([1, 2, 2, 2, 1.5, 1.63, 2], [0, 1], [0, 2])
    >>> metrics["acc@1"], metrics["mrr"], metrics["f1"], metrics["correct@1"]
    (50.0, 75.0, 50.0, 1.0)
    """
    sums, known = _named_sums(counts)
    if not sums["total"] > 0:
        raise InputError("the sums count no row, so nothing can be a share of them", hint="add a batch first")
    told = dict(sums)
    told |= {f"acc@{k}": _percent(sums[f"correct@{k}"] / sums["total"], f"acc@{k}") for k in CUTOFFS}
    told |= {"mrr": _percent(sums["rr"] / sums["total"], "mrr")}
    told |= {"ndcg": _percent(sums["ndcg"] / sums["total"], "ndcg")}
    share = known if f1 is None else f1
    if true_labels is not None and top1_predictions is not None:
        share = ClassF1("weighted").measure(Labels.of(true_labels, top1_predictions)).value
    return told if share is None else told | {"f1": _percent(share, "f1")}


def _named_sums(counts: Any) -> tuple[dict[str, float], float | None]:
    """The sums by name, and an F1 that came with them."""
    if isinstance(counts, Mapping):
        lacking = [name for name in SUM_NAMES if name not in counts]
        if lacking:
            raise InputError(f"the sums lack {', '.join(lacking)}", hint=f"they are {', '.join(SUM_NAMES)}")
        known = counts.get("f1")
        return {name: float(counts[name]) for name in SUM_NAMES}, None if known is None else float(known)
    column = to_numpy(counts)
    if column.shape != (len(SUM_NAMES),):
        raise ShapeError(
            f"the sums have shape {column.shape}; there are {len(SUM_NAMES)}",
            hint=f"give {', '.join(SUM_NAMES)}",
        )
    return dict(zip(SUM_NAMES, column.astype(float).tolist(), strict=True)), None


def _percent(share: float, what: str) -> float:
    """A share in percent; anything beyond 1 is no share."""
    if not -1e-9 <= share <= 1 + 1e-9:
        raise InputError(
            f"{what} would be {share:g} of the rows, which is no share",
            hint="the sums belong to fewer rows than total says, or f1 is percent already",
        )
    return 100.0 * share


def _sums(found: TargetRanks, ties: Ties) -> Floats:
    """All sums but the number of rows, from how many targets landed at each place.

    Where scores are equal a place is not all there is to know, and each unit is asked what it earns.
    """
    if found.counts.has_ties or found.classes > MAX_CACHED_CLASSES:
        return _earned(found.ranking().ordered(ties)).sum(axis=1)
    times = np.bincount(found.counts.above)
    sums: Floats = (_earned_at(found.classes)[:, : len(times)] * times).sum(axis=1)
    return sums


@lru_cache(maxsize=4)
def _earned_at(classes: int) -> Floats:
    """What a target earns at each place among so many classes; it is the same for every batch."""
    places = np.arange(classes)
    none = np.zeros_like(places)
    return _earned(Ranking.of_targets(None, above=places, tied=none, before=none, candidates=classes))


def _earned(ranking: Ranking) -> Floats:
    """What each unit adds to each of the sums."""
    figures = [ranking_functions.hit_rate(ranking, k) for k in CUTOFFS]
    return np.array([*figures, ranking_functions.reciprocal_rank(ranking), ranking_functions.ndcg(ranking, NDCG_AT)])


def _hits(ranking: Ranking, k: int) -> float:
    return float(ranking_functions.hit_rate(ranking, k).sum())


def _reciprocals(ranking: Ranking) -> float:
    return float(ranking_functions.reciprocal_rank(ranking).sum())


def _gains(ranking: Ranking, k: int) -> float:
    return float(ranking_functions.ndcg(ranking, k).sum())


# What a meter says at the end of an epoch: every figure as a fraction, and in percent for people.


@dataclass(frozen=True)
class PlaceSummary:
    """The figures of all rows that a meter has seen.

    ``fractions`` is keyed by the names of the field (acc@1, mrr, ndcg, f1, f1_macro, f1_micro);
    ``answerable`` holds the same for the rows whose target was seen in training, ``by_user`` the means over
    users of each user's mean. ``tied`` counts rows whose target shares its score with another class,
    ``tied_top`` those where several classes share the largest one. ``notes`` name the default cutoffs that
    were left out because there are fewer classes.
    """

    n: int
    classes: int
    fractions: Mapping[str, float]
    answerable: Mapping[str, float] | None = None
    answerable_n: int = 0
    by_user: Mapping[str, float] | None = None
    users: int = 0
    tied: int = 0
    tied_top: int = 0
    ignored: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> float:
        """A figure as a fraction."""
        if name not in self.fractions:
            more = "; ".join((f"there are {', '.join(self)}", *self.notes))
            raise UnknownNameError.of("figure", name, self.fractions, more=more)
        return self.fractions[name]

    def __iter__(self) -> Any:
        return iter(self.fractions)

    @property
    def percent(self) -> dict[str, float]:
        """The figures in percent."""
        return to_percent(self.fractions)

    def __repr__(self) -> str:
        told = ", ".join(f"{name} {value:.2f} %" for name, value in self.percent.items())
        return f"<PlaceSummary: {self.n} rows, {self.classes} classes; {told}>"

    def to_dict(self) -> dict[str, Any]:
        """Plain values; the unit stands beside them."""
        return {
            "unit": "fraction",
            "n": self.n,
            "classes": self.classes,
            "fractions": dict(self.fractions),
            "answerable": None if self.answerable is None else dict(self.answerable),
            "answerable_n": self.answerable_n,
            "by_user": None if self.by_user is None else dict(self.by_user),
            "users": self.users,
            "tied": self.tied,
            "tied_top": self.tied_top,
            "ignored": self.ignored,
            "settings": dict(self.settings),
            "notes": list(self.notes),
        }


@dataclass(frozen=True)
class MeterBatch:
    """What is kept of a batch: a few numbers a row."""

    seen: ClassificationOutput
    users: Ids | None = None
    unit_ids: Ids | None = None


@dataclass
class PlaceMeter:
    """Collects batches of logits; any split of the rows and any order of merging give the same bytes.

    ``ks`` are the cutoffs of the accuracy. Without them they are 1, 3, 5 and 10, as far as there are so many
    classes; the summary's ``notes`` name those that were left out. A cutoff that was given and is above the
    number of classes is an error.
    ``padding`` names columns that are no classes, ``unseen`` classes that training never saw; rows whose
    target is ``ignore_index`` are counted and left out; ``compiled`` is that of ``classify``. Only counts are
    kept, never the logits, so a meter is small, pickles, and crosses to another process.

    >>> meter = PlaceMeter(ks=(1, 2))
    >>> meter.update(np.array([[0.1, 0.7, 0.2], [0.5, 0.3, 0.2]]), [1, 1])
    >>> told = meter.compute()
    >>> told["acc@1"], told.percent["mrr"]
    (0.5, 75.0)
    """

    ks: Sequence[int] | None = None
    padding: Any = None
    unseen: Any = None
    ties: str = "expected"
    ignore_index: int | None = None
    compiled: bool | None = None
    batches: list[MeterBatch] = field(default_factory=list, repr=False)
    ignored: int = 0

    def __post_init__(self) -> None:
        self.ks = None if self.ks is None else tuple(self.ks)
        self.ties = str(Ties.parse(self.ties))
        if self.ks is not None and not self.ks:
            raise ParameterError("the meter has no cutoff", hint="for example ks=(1, 3, 5, 10)")

    def __len__(self) -> int:
        return sum(len(batch.seen) for batch in self.batches)

    def update(self, logits: Any, targets: Any, *, users: Any = None, unit_ids: Any = None) -> None:
        """Add a batch: logits (rows x classes), the target of each row, and who it is.

        A batch without rows adds nothing. ``unit_ids`` are needed where systems will be compared row by row.
        """
        logits, columns = as_host_array(logits), {"users": users, "unit_ids": unit_ids}
        kept = {name: None if each is None else as_ids(to_numpy(each), 0) for name, each in columns.items()}
        for name, column in kept.items():
            if column is not None and len(column) != len(to_numpy(targets)):
                raise ShapeError(
                    f"there are {len(column)} {name} for {len(to_numpy(targets))} targets", hint="one a row"
                )
        if self.ignore_index is not None:
            logits, targets, kept = self._without_ignored(logits, targets, kept)
        if not len(logits):
            return
        seen = classify(
            logits,
            targets,
            padding=self.padding,
            unseen=self.unseen,
            ks=self.ks or (),
            compiled=self.compiled,
        )
        if self.batches:
            self._refuse_another_kind(seen, kept)
        self.batches.append(MeterBatch(seen, **kept))

    def merge(self, other: PlaceMeter) -> None:
        """Add all that another meter has seen."""
        if self._settings() != other._settings():
            raise ParameterError(
                f"the meters count differently: {self._settings()} and {other._settings()}",
                hint="make both with the same arguments",
            )
        if self.batches and other.batches:
            first = other.batches[0]
            self._refuse_another_kind(first.seen, {"users": first.users, "unit_ids": first.unit_ids})
        self.batches.extend(other.batches)
        self.ignored += other.ignored

    def reset(self) -> None:
        """Forget everything seen, for the next epoch."""
        self.batches, self.ignored = [], 0

    def compute(self) -> PlaceSummary:
        """The figures of all rows seen so far."""
        seen, users = self._whole()
        index = np.flatnonzero(seen.answerable)
        figures = self._figures(seen)
        return PlaceSummary(
            n=len(seen),
            classes=seen.classes,
            fractions=figures,
            answerable=None if self.unseen is None else self._figures(seen.take(index)),
            answerable_n=len(index),
            by_user=None if users is None else self._by_user(seen, users),
            users=0 if users is None else len(np.unique(users)),
            tied=int(np.count_nonzero(seen.ranking.tied)),
            tied_top=int(np.count_nonzero(seen.tied_top)),
            ignored=self.ignored,
            settings=self._settings() | {"ks": list(self._cutoffs(seen))},
            notes=omitted_cutoffs_note(seen.classes, f"there are {seen.classes} classes") if self.ks is None else (),
        )

    def classified(self) -> tuple[ClassificationOutput, Ids | None]:
        """All rows in the order of their ids, and their users: what ``score_classified`` takes."""
        if self.batches and self.batches[0].unit_ids is None:
            raise InputError(
                "the rows have no ids, so that nobody could tell which row of another system is the same",
                hint="give unit_ids to every update",
            )
        return self._whole()

    def _settings(self) -> dict[str, Any]:
        return {
            "ks": list(CUTOFFS if self.ks is None else self.ks),
            "padding": _plain(self.padding),
            "unseen": _plain(self.unseen),
            "ties": self.ties,
            "ignore_index": self.ignore_index,
        }

    def _cutoffs(self, seen: ClassificationOutput) -> Sequence[int]:
        return default_cutoffs(seen.classes) if self.ks is None else self.ks

    def _whole(self) -> tuple[ClassificationOutput, Ids | None]:
        """All rows in an order that does not depend on how they came."""
        if not self.batches:
            raise InputError(
                "the meter has seen no row yet"
                + (f"; {self.ignored} were left out by ignore_index" if self.ignored else ""),
                hint="call update first",
            )
        seen = ClassificationOutput.joined([batch.seen for batch in self.batches])
        users, ids = (
            None if not given else np.concatenate(given)
            for given in (
                [batch.users for batch in self.batches if batch.users is not None],
                [batch.unit_ids for batch in self.batches if batch.unit_ids is not None],
            )
        )
        order = _by_content(seen, users) if ids is None else _by_id(ids)
        seen = seen.take(order)
        seen = seen.with_ids(np.arange(len(seen)) if ids is None else ids[order])
        return seen, None if users is None else users[order]

    def _figures(self, seen: ClassificationOutput) -> dict[str, float]:
        ranking = seen.ranking.ordered(self.ties)
        metrics = ranking_metrics(self._cutoffs(seen))
        figures = {name: each.measure(ranking).value for name, each in metrics.items()}
        return figures | {name: each.measure(seen.labels).value for name, each in label_metrics().items()}

    def _by_user(self, seen: ClassificationOutput, users: Ids) -> dict[str, float]:
        ranking = seen.ranking.ordered(self.ties)
        metrics = ranking_metrics(self._cutoffs(seen))
        columns = {name: each.measure(ranking).per_unit for name, each in metrics.items()}
        _, means = user_means(columns, users)
        return {name: float(column.mean()) for name, column in means.items()}

    def _without_ignored(self, logits: Any, targets: Any, columns: dict[str, Any]) -> tuple[Any, Any, Any]:
        codes = to_numpy(targets)
        kept = np.flatnonzero(codes != self.ignore_index)
        if len(kept) == len(codes):
            return logits, targets, columns
        self.ignored += len(codes) - len(kept)
        return (
            _rows_of(logits, kept),
            codes[kept],
            {name: None if c is None else c[kept] for name, c in columns.items()},
        )

    def _refuse_another_kind(self, seen: ClassificationOutput, columns: dict[str, Any]) -> None:
        first = self.batches[0]
        widths = len(first.seen.labels.classes), len(seen.labels.classes)
        if widths[0] != widths[1]:
            raise ShapeError(
                f"one batch has {widths[0]} classes and another {widths[1]}", hint="score one model at a time"
            )
        for name, column in columns.items():
            if _kind(getattr(first, name)) != _kind(column):
                raise InputError(
                    f"the {name} of one batch are {_kind(getattr(first, name))}, of another {_kind(column)}",
                    hint="give every update the same kind",
                )


def _kind(ids: Ids | None) -> str:
    return "none" if ids is None else "names" if ids.dtype == object else "numbers"


def _plain(codes: Any) -> Any:
    return None if codes is None else np.atleast_1d(to_numpy(codes)).tolist()


def _rows_of(logits: Any, kept: Ints) -> Any:
    """Some rows of an array, where it lies."""
    if isinstance(logits, np.ndarray):
        return logits[kept]
    from array_api_compat import array_namespace, device

    xp = array_namespace(logits)
    return xp.take(logits, xp.asarray(kept, device=device(logits)), axis=0)


def _by_id(ids: Ids) -> Ints:
    order = np.argsort(ids, kind="stable")
    twice = np.flatnonzero(ids[order][1:] == ids[order][:-1])
    if len(twice):
        raise DuplicateError(f"unit {ids[order][twice[0]]} came twice", hint="every row needs an id of its own")
    return order


def _by_content(seen: ClassificationOutput, users: Ids | None) -> Ints:
    """An order of rows without names: rows that are equal in all that is kept may stand either way."""
    ranking, labels = seen.ranking, seen.labels
    keys = [seen.tied_top, ranking.before, ranking.tied, ranking.above, labels.predicted, labels.true]
    if users is not None:
        keys.append(np.unique(users, return_inverse=True)[1].reshape(-1))
    return np.lexsort(keys)
