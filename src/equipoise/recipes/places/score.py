"""One system scored: all units and the answerable ones, beside baselines, with users and slices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from equipoise.data.topk import TopK
from equipoise.errors import InputError, ShapeError
from equipoise.evidence.base import as_ids
from equipoise.evidence.columns import host
from equipoise.recipes.places.beside import Beside, baselines_of
from equipoise.recipes.places.figures import (
    default_cutoffs,
    label_figures,
    omitted_cutoffs_note,
    ranking_figures,
)
from equipoise.recipes.places.frequency import frequency_slices, never_seen
from equipoise.recipes.places.history import History
from equipoise.recipes.places.scores import PlaceScores, TieReport
from equipoise.recipes.places.topk import BEYOND, classified_from_top_k
from equipoise.recipes.places.users import user_means
from equipoise.run.scoring import evaluate, tie_policy
from equipoise.stats.result import Result
from equipoise.stats.slices import Slice, sliced
from equipoise.stats.tabled import result_of_values
from equipoise.tasks.classify import Classified, classify
from equipoise.types import Finding, Floats, Ids, Ints, Severity, Ties

SEEN = "seen in training"
FREQUENCY = "visits in training"
USER = ("user", "user_id")
"""What a column of users is called in a table of predictions."""


@dataclass(frozen=True)
class Sure:
    """How sure is sure: ties, level, resampling and the seed."""

    ties: Ties | str = Ties.EXPECTED
    level: float = 0.95
    resamples: int = 2000
    seed: int = 0


def score_places(
    logits: Any,
    targets: Any,
    *,
    padding: Any = None,
    unseen: Any = None,
    train_counts: Any = None,
    users: Any = None,
    slices: Mapping[str, Any] | None = None,
    history: History | None = None,
    previous: Any = None,
    unit_ids: Any = None,
    ks: Iterable[int] | None = None,
    system: str = "system",
    ties: Ties | str = Ties.EXPECTED,
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> PlaceScores:
    """Score a matrix of logits against the right class of each row, beside what knows less.

    ``padding`` names columns that are no classes. Targets in ``unseen``, and those that ``train_counts`` (one
    count a class) has never seen, cannot be learned: scores are given for all units and for the answerable
    ones. ``users`` (one a row) are resampled whole, and counted alike in ``by_user``. ``slices`` are columns
    by name, such as the hour. Baselines: random always, majority with ``train_counts`` or a ``history``, the
    habits of each user with a ``history`` and ``users``, first-order moves with ``previous`` too. ``ks`` are
    the cutoffs of the accuracy: 1, 3, 5 and 10 by default, those above the number of classes left out with a
    note. A cutoff that was given and is above the number of classes is an error.

    >>> scores = score_places(np.eye(4)[[0, 1, 2, 2]], [0, 1, 2, 3], ks=(1, 3), train_counts=[5, 1, 1, 0])
    >>> scores.all["Acc@1"].value, scores.answerable["Acc@1"].value
    (0.75, 1.0)
    """
    cutoffs = None if ks is None else tuple(ks)
    counts = _counts(train_counts, history)
    shape = getattr(logits, "shape", (0, 0))
    if counts is not None and len(shape) == 2 and len(counts) != shape[1]:
        raise ShapeError(
            f"there are {len(counts)} training counts for {shape[1]} classes", hint="give one count a class"
        )
    hidden = None if unseen is None and counts is None else never_seen(unseen, counts)
    classified = classify(
        logits, targets, padding=padding, unseen=hidden, unit_ids=unit_ids, ks=cutoffs or ()
    )
    return score_classified(
        classified,
        train_counts=counts,
        padding=padding,
        users=users,
        slices=slices,
        history=history,
        previous=previous,
        split=hidden is not None,
        ks=cutoffs,
        system=system,
        sure=Sure(ties, level, resamples, seed),
    )


def score_top_k(
    top: TopK,
    *,
    classes: int | None = None,
    unseen: Any = None,
    train_counts: Any = None,
    history: History | None = None,
    ks: Iterable[int] | None = None,
    **others: Any,
) -> PlaceScores:
    """The same for predictions that were cut at the k best classes; see ``score_places`` for the rest.

    Default cutoffs beyond the shortest list are left out with a note.

    >>> top = TopK("t", [2, 1], [[2, 1, 0], [0, 1, 2]])
    >>> score_top_k(top, classes=9, ks=(1, 3)).all["Acc@1"].value
    0.5
    """
    cutoffs = (default_cutoffs(top.depth) or (1,)) if ks is None else tuple(ks)
    counts = _counts(train_counts, history)
    hidden = None if unseen is None and counts is None else never_seen(unseen, counts)
    if classes is None and counts is not None:
        classes = len(counts)
    found = classified_from_top_k(top, classes=classes, unseen=hidden, ks=cutoffs)
    if counts is not None and len(counts) != found.classes:
        raise ShapeError(
            f"there are {len(counts)} training counts for {found.classes} classes", hint="give one a class"
        )
    if others.get("users") is None:
        others["users"] = next((top.columns[name] for name in USER if name in top.columns), None)
    scores = score_classified(
        found,
        train_counts=counts,
        history=history,
        split=hidden is not None,
        ks=cutoffs,
        **others,
    )
    omitted = omitted_cutoffs_note(top.depth, f"the shortest list has {top.depth} classes")
    return replace(
        scores,
        notes=(*(() if found.ranking.complete else (BEYOND,)), *(omitted if ks is None else ())),
    )


def score_classified(
    classified: Classified,
    *,
    train_counts: Ints | None = None,
    padding: Any = None,
    users: Any = None,
    slices: Mapping[str, Any] | None = None,
    history: History | None = None,
    previous: Any = None,
    split: bool = True,
    ks: Iterable[int] | None = None,
    system: str = "system",
    sure: Sure | None = None,
) -> PlaceScores:
    """The same for units that were classified before; ``split`` says whether anyone told what was seen."""
    if not len(classified):
        raise InputError("there are no rows to score", hint="check the step that writes the logits")
    sure, classes = sure or Sure(), classified.classes
    cutoffs = default_cutoffs(classes) if ks is None else tuple(ks)
    who = None if users is None else _column(users, classified, "users")
    columns = {name: _column(column, classified, name) for name, column in (slices or {}).items()}
    if train_counts is not None:
        columns[FREQUENCY] = frequency_slices(train_counts[classified.labels.true])
    if split:
        columns[SEEN] = np.where(classified.answerable, "yes", "no")
    whole = _result(classified, cutoffs, who, system, sure)
    index = np.flatnonzero(classified.answerable)
    partly = split and 0 < len(index) < len(classified)
    beside = Beside(padding, train_counts, history, who, previous)
    baselines = baselines_of(classified, beside, cutoffs)
    return PlaceScores(
        classified=classified,
        all=whole,
        answerable=_result(classified.take(index), cutoffs, who if who is None else who[index], system, sure)
        if partly
        else (whole if split and len(index) else None),
        baselines={name: _measured(each, cutoffs, sure) for name, each in baselines.items()},
        answerable_baselines={
            name: _measured(each.take(index) if isinstance(each, Classified) else each, cutoffs, sure)
            for name, each in baselines.items()
            if partly
        },
        by_user=None if who is None else _by_user(whole, who, sure),
        slices=_slices(whole, columns, sure),
        columns=columns if who is None else {"user": who, **columns},
        ties=_tie_report(classified, cutoffs[0]),
        findings=whole.findings,
        notes=omitted_cutoffs_note(classes, f"there are {classes} classes") if ks is None else (),
    )


def _counts(train_counts: Any, history: History | None) -> Ints | None:
    """How often each class occurs in training."""
    if train_counts is None:
        return None if history is None else history.counts
    counts = host(train_counts)
    if counts.ndim != 1 or counts.dtype.kind not in "iu" or (counts < 0).any():
        raise InputError(
            "the training counts are not one whole number from 0 for each class",
            hint="count the targets of the training data: numpy.bincount(y_train, minlength=classes)",
        )
    return counts.astype(np.int64)


def _column(values: Any, classified: Classified, what: str) -> Ids:
    column = as_ids(host(values), 0)
    if column.shape != (len(classified),):
        raise ShapeError(
            f"there are {len(column)} {what} for {len(classified)} rows", hint="give one for each row"
        )
    return column


def _result(
    classified: Classified, cutoffs: tuple[int, ...], users: Ids | None, system: str, sure: Sure
) -> Result:
    """Figures of ranks and of first classes in one result; its evidence is the ranking."""
    options: dict[str, Any] = {
        "system": system,
        "clusters": users,
        "level": sure.level,
        "resamples": sure.resamples,
        "seed": sure.seed,
    }
    ranks = evaluate(classified.ranking, list(ranking_figures(cutoffs).values()), ties=sure.ties, **options)
    labels = evaluate(classified.labels, list(label_figures().values()), **options)
    findings = tuple(
        dict.fromkeys((*ranks.findings, *labels.findings, *_tied_tops(classified, ranks.system)))
    )
    return replace(ranks, estimates={**ranks.estimates, **labels.estimates}, findings=findings)


def _measured(
    found: Classified | Mapping[str, float], cutoffs: tuple[int, ...], sure: Sure
) -> dict[str, float]:
    """What a baseline scores, by metric."""
    if isinstance(found, Mapping):
        return dict(found)
    ranking = found.ranking.ordered(tie_policy(sure.ties))
    told = {each.name: each.measure(ranking).value for each in ranking_figures(cutoffs).values()}
    return told | {each.name: each.measure(found.labels).value for each in label_figures().values()}


def _by_user(result: Result, users: Ids, sure: Sure) -> Result:
    names, means = user_means(dict(result.per_unit), users)
    columns: dict[str, Floats] = {name: np.clip(column, 0.0, 1.0) for name, column in means.items()}
    return result_of_values(
        result.system, names, columns, level=sure.level, resamples=sure.resamples, seed=sure.seed
    )


def _slices(result: Result, columns: Mapping[str, Ids], sure: Sure) -> tuple[Slice, ...]:
    if not columns:
        return ()
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    known = {
        unit: dict(zip(columns, row, strict=True))
        for unit, row in zip(result.unit_ids.tolist(), rows, strict=True)
    }
    found = sliced(result, result.names[0], known, seed=sure.seed)
    order = {name: place for place, name in enumerate(columns)}
    return tuple(sorted(found, key=lambda each: (order[each.name], _natural(each.value))))


def _natural(value: str) -> tuple[int, float, str]:
    """Numbers by their size, before names."""
    try:
        return 0, float(value.split(maxsplit=1)[0]), value
    except (ValueError, IndexError):
        return 1, 0.0, value


def _tie_report(classified: Classified, k: int) -> TieReport:
    metric = ranking_figures([k])[f"acc@{k}"]
    ends = [
        metric.measure(classified.ranking.ordered(each)).value for each in (Ties.PESSIMISTIC, Ties.OPTIMISTIC)
    ]
    return TieReport(
        targets=int(np.count_nonzero(classified.ranking.tied)),
        tops=int(np.count_nonzero(classified.tied_top)),
        metric=metric.name,
        low=min(ends),
        high=max(ends),
    )


def _tied_tops(classified: Classified, system: str) -> tuple[Finding, ...]:
    """A class that is first only by its code decides F1: said under the code of tied scores."""
    tied = int(np.count_nonzero(classified.tied_top))
    if not tied:
        return ()
    return (
        Finding(
            code="EQ301",
            severity=Severity.TIP,
            subject=system,
            sentence=f"{tied:,} of {len(classified):,} units have several classes with the largest score; "
            "F1 takes the one of the lowest code",
            remedy="keep more digits of the scores (float32, no rounding), or break ties in the model itself",
            evidence=(f"first such unit: {classified.ranking.unit_ids[np.argmax(classified.tied_top)]}",),
        ),
    )
