"""The functions that next-location projects call for each batch, by the names they have there.

Logits may be numpy or torch, on any device. All of them return sums over the batch, so that batches can be
added up; percent appears only in ``get_performance_dict``. Without equal scores the sums are those that
sorting gives. With equal scores they are the expectation over all orders of these (``ties="expected"``), so
that neither the order of the classes nor the library decides; other rules have names.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from equipoise.errors import InputError, ParameterError, ShapeError
from equipoise.evidence.columns import host
from equipoise.evidence.labels import Labels
from equipoise.evidence.ranking import Ranking
from equipoise.metrics import functions
from equipoise.metrics.labels import ClassF1
from equipoise.recipes.places.figures import CUTOFFS, NDCG_AT
from equipoise.run.scoring import tie_policy
from equipoise.tasks.classify import Landed, landed
from equipoise.types import Floats, Ints, Ties

COUNTS = (*(f"correct@{k}" for k in CUTOFFS), "rr", "ndcg", "total")
"""The names of the sums that ``calculate_correct_total_prediction`` returns, in their order."""

MOST_PLACES = 1 << 14
"""Classes up to which it is remembered what a target earns at each place: less than a megabyte."""


def calculate_correct_total_prediction(
    logits: Any, true_y: Any, *, ties: Ties | str = Ties.EXPECTED, compiled: bool | None = None
) -> tuple[Floats, Ints, Ints]:
    """All that a batch adds: the sums, the true labels and the top-1 predictions.

    The sums are correct@1, correct@3, correct@5, correct@10, the sum of reciprocal ranks, the sum of nDCG@10
    and the number of rows. With fewer classes than a cutoff every row is correct at it, as clipping the
    cutoff gives. Labels and predictions are for F1. ``compiled`` is that of ``classify``.

    >>> sums, true, top1 = calculate_correct_total_prediction(np.eye(12)[[3, 4]], [3, 5])
    >>> sums[[0, 6]].tolist(), true.tolist(), top1.tolist()
    ([1.0, 2.0], [3, 5], [3, 4])
    """
    found = landed(logits, true_y, compiled=compiled)
    sums = _sums(found, tie_policy(ties))
    return np.array([*sums.tolist(), float(len(found.true))]), found.true, found.predicted


def top_k_accuracy(logits: Any, targets: Any, k: int, *, ties: Ties | str = Ties.EXPECTED) -> float:
    """How many rows have their target among the k best classes: a count, not a share.

    >>> top_k_accuracy([[0.4, 0.3, 0.2], [0.5, 0.3, 0.1]], [1, 0], 2)
    2.0
    """
    return _hits(landed(logits, targets, ks=(k,)).ranking().ordered(tie_policy(ties)), k)


def get_mrr(prediction: Any, targets: Any, *, ties: Ties | str = Ties.EXPECTED) -> float:
    """The sum of the reciprocal ranks of the targets.

    >>> get_mrr([[0.4, 0.3, 0.2], [0.5, 0.3, 0.1]], [1, 0])
    1.5
    """
    return _reciprocals(landed(prediction, targets).ranking().ordered(tie_policy(ties)))


def get_ndcg(prediction: Any, targets: Any, k: int = 10, *, ties: Ties | str = Ties.EXPECTED) -> float:
    """The sum of 1/log2(rank + 1) over the targets that rank within k.

    >>> get_ndcg([[0.4, 0.3, 0.2], [0.5, 0.3, 0.1]], [2, 0], k=3)
    1.5
    """
    if k < 1:
        raise ParameterError(f"k = {k} is no cutoff", hint="cutoffs are whole numbers from 1 on")
    return _gains(landed(prediction, targets).ranking().ordered(tie_policy(ties)), k)


def get_performance_dict(
    counts: Any, true_labels: Any = None, top1_predictions: Any = None, *, f1: float | None = None
) -> dict[str, float]:
    """The sums of one batch or of many, added up, and what people quote of them, in percent.

    ``counts`` are the seven sums in their order, or a mapping by their names. acc@1, acc@3, acc@5, acc@10,
    mrr, ndcg and f1 are percent, all of them; f1 is the weighted F1 of the labels, or a fraction that is
    known already, and is left out where neither is given.

    >>> told = get_performance_dict([1, 2, 2, 2, 1.5, 1.63, 2], [0, 1], [0, 2])
    >>> told["acc@1"], told["mrr"], told["f1"], told["correct@1"]
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
        lacking = [name for name in COUNTS if name not in counts]
        if lacking:
            raise InputError(f"the sums lack {', '.join(lacking)}", hint=f"they are {', '.join(COUNTS)}")
        known = counts.get("f1")
        return {name: float(counts[name]) for name in COUNTS}, None if known is None else float(known)
    column = host(counts)
    if column.shape != (len(COUNTS),):
        raise ShapeError(
            f"the sums have shape {column.shape}; there are {len(COUNTS)}", hint=f"give {', '.join(COUNTS)}"
        )
    return dict(zip(COUNTS, column.astype(float).tolist(), strict=True)), None


def _percent(share: float, what: str) -> float:
    """A share in percent; anything beyond 1 is no share."""
    if not -1e-9 <= share <= 1 + 1e-9:
        raise InputError(
            f"{what} would be {share:g} of the rows, which is no share",
            hint="the sums belong to fewer rows than total says, or f1 is percent already",
        )
    return 100.0 * share


def _sums(found: Landed, ties: Ties) -> Floats:
    """All sums but the number of rows, from how many targets landed at each place.

    Where scores are equal a place is not all there is to know, and each unit is asked what it earns.
    """
    if found.placed.has_ties or found.classes > MOST_PLACES:
        return _earned(found.ranking().ordered(ties)).sum(axis=1)
    times = np.bincount(found.placed.above)
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
    figures = [functions.hit(ranking, k) for k in CUTOFFS]
    return np.array(
        [*figures, functions.reciprocal_rank(ranking), functions.discounted_gain(ranking, NDCG_AT)]
    )


def _hits(ranking: Ranking, k: int) -> float:
    return float(functions.hit(ranking, k).sum())


def _reciprocals(ranking: Ranking) -> float:
    return float(functions.reciprocal_rank(ranking).sum())


def _gains(ranking: Ranking, k: int) -> float:
    return float(functions.discounted_gain(ranking, k).sum())
