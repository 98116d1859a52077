"""A meter for training loops: it sees batches, forgets the logits, and meters of several processes merge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from equipoise.errors import DuplicateError, InputError, ParameterError, ShapeError
from equipoise.evidence.base import as_ids
from equipoise.evidence.columns import host
from equipoise.evidence.from_scores import on_host
from equipoise.recipes.places.figures import (
    CUTOFFS,
    default_cutoffs,
    label_figures,
    omitted_cutoffs_note,
    ranking_figures,
)
from equipoise.recipes.places.summary import PlaceSummary
from equipoise.recipes.places.users import user_means
from equipoise.run.scoring import tie_policy
from equipoise.tasks.classify import Classified, classify
from equipoise.types import Ids, Ints


@dataclass(frozen=True)
class Batch:
    """What is kept of a batch: a few numbers a row."""

    seen: Classified
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
    batches: list[Batch] = field(default_factory=list, repr=False)
    ignored: int = 0

    def __post_init__(self) -> None:
        self.ks = None if self.ks is None else tuple(self.ks)
        self.ties = str(tie_policy(self.ties))
        if self.ks is not None and not self.ks:
            raise ParameterError("the meter has no cutoff", hint="for example ks=(1, 3, 5, 10)")

    def __len__(self) -> int:
        return sum(len(batch.seen) for batch in self.batches)

    def update(self, logits: Any, targets: Any, *, users: Any = None, unit_ids: Any = None) -> None:
        """Add a batch: logits (rows x classes), the target of each row, and who it is.

        A batch without rows adds nothing. ``unit_ids`` are needed where systems will be compared row by row.
        """
        logits, columns = on_host(logits), {"users": users, "unit_ids": unit_ids}
        kept = {name: None if each is None else as_ids(host(each), 0) for name, each in columns.items()}
        for name, column in kept.items():
            if column is not None and len(column) != len(host(targets)):
                raise ShapeError(
                    f"there are {len(column)} {name} for {len(host(targets))} targets", hint="one a row"
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
        self.batches.append(Batch(seen, **kept))

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
            notes=omitted_cutoffs_note(seen.classes, f"there are {seen.classes} classes")
            if self.ks is None
            else (),
        )

    def classified(self) -> tuple[Classified, Ids | None]:
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

    def _cutoffs(self, seen: Classified) -> Sequence[int]:
        return default_cutoffs(seen.classes) if self.ks is None else self.ks

    def _whole(self) -> tuple[Classified, Ids | None]:
        """All rows in an order that does not depend on how they came."""
        if not self.batches:
            raise InputError(
                "the meter has seen no row yet"
                + (f"; {self.ignored} were left out by ignore_index" if self.ignored else ""),
                hint="call update first",
            )
        seen = Classified.joined([batch.seen for batch in self.batches])
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

    def _figures(self, seen: Classified) -> dict[str, float]:
        ranking = seen.ranking.ordered(self.ties)
        metrics = ranking_figures(self._cutoffs(seen))
        figures = {name: each.measure(ranking).value for name, each in metrics.items()}
        return figures | {name: each.measure(seen.labels).value for name, each in label_figures().items()}

    def _by_user(self, seen: Classified, users: Ids) -> dict[str, float]:
        ranking = seen.ranking.ordered(self.ties)
        metrics = ranking_figures(self._cutoffs(seen))
        columns = {name: each.measure(ranking).per_unit for name, each in metrics.items()}
        _, means = user_means(columns, users)
        return {name: float(column.mean()) for name, column in means.items()}

    def _without_ignored(self, logits: Any, targets: Any, columns: dict[str, Any]) -> tuple[Any, Any, Any]:
        codes = host(targets)
        kept = np.flatnonzero(codes != self.ignore_index)
        if len(kept) == len(codes):
            return logits, targets, columns
        self.ignored += len(codes) - len(kept)
        return (
            _rows_of(logits, kept),
            codes[kept],
            {name: None if c is None else c[kept] for name, c in columns.items()},
        )

    def _refuse_another_kind(self, seen: Classified, columns: dict[str, Any]) -> None:
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
    return None if codes is None else np.atleast_1d(host(codes)).tolist()


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
        raise DuplicateError(
            f"unit {ids[order][twice[0]]} came twice", hint="every row needs an id of its own"
        )
    return order


def _by_content(seen: Classified, users: Ids | None) -> Ints:
    """An order of rows without names: rows that are equal in all that is kept may stand either way."""
    ranking, labels = seen.ranking, seen.labels
    keys = [seen.tied_top, ranking.before, ranking.tied, ranking.above, labels.predicted, labels.true]
    if users is not None:
        keys.append(np.unique(users, return_inverse=True)[1].reshape(-1))
    return np.lexsort(keys)
