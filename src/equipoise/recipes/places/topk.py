"""Predictions that were cut at the k best classes, classified like whole logits."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Any

import numpy as np

from equipoise.data.topk import TopK
from equipoise.errors import InputError, ParameterError
from equipoise.evidence.labels import Labels
from equipoise.evidence.ranking import Ranking
from equipoise.tasks.classify import Classified

BEYOND = "MRR and nDCG count a target beyond the predicted classes as 0"


def classified_from_top_k(
    top: TopK, *, classes: int | None = None, unseen: Any = None, ks: Iterable[int] = ()
) -> Classified:
    """Where each target stands in its list; a target that is not in the list has no rank and scores 0.

    ``classes`` is how many there are; without it only those that occur are known. A cutoff deeper than the
    shortest list is refused: nobody knows what would have come there.

    >>> found = classified_from_top_k(TopK("t", [2, 5], [[2, 1], [1, 0]]), classes=9)
    >>> found.ranking.ranks.tolist(), found.labels.predicted.tolist()
    ([1.0, inf], [2, 1])
    """
    for k in ks:
        if k > top.depth:
            raise ParameterError(
                f"Acc@{k} is unknown: {top.name} has a row with {top.depth} predicted classes only",
                hint=f"ask for cutoffs up to {top.depth}, or write more classes",
            )
    size = _class_count(top, classes)
    true = np.array(top.targets, dtype=np.int64)
    ranking = Ranking.from_lists(
        top.predictions,
        [[target] for target in top.targets],
        scores=top.scores,
        unit_ids=top.unit_ids,
        corpus_size=size if classes is not None else None,
    )
    predicted, tied = _firsts(top)
    labels = Labels(ranking.unit_ids, true, predicted, np.arange(size), tied)
    answerable = np.ones(len(true), dtype=bool) if unseen is None else ~np.isin(true, unseen)
    return Classified(ranking, labels, answerable, size)


def _class_count(top: TopK, classes: int | None) -> int:
    codes = [*top.targets, *chain.from_iterable(top.predictions)]
    smallest, largest = min(codes), max(codes)
    if smallest < 0 or (classes is not None and largest >= classes):
        wrong = smallest if smallest < 0 else largest
        raise InputError(
            f"{top.name} names the class {wrong}, which is none of {classes or largest + 1}",
            hint="classes are numbered from 0",
        )
    return classes or largest + 1


def _firsts(top: TopK) -> tuple[Any, Any]:
    """The first class of each list and whether it shares its score; the lowest code of those that do."""
    if top.scores is None:
        return np.array([row[0] for row in top.predictions], dtype=np.int64), None
    best = [max(scores) for scores in top.scores]
    leaders = [
        [code for code, score in zip(row, scores, strict=True) if score == most]
        for row, scores, most in zip(top.predictions, top.scores, best, strict=True)
    ]
    firsts = np.array([min(codes) for codes in leaders], dtype=np.int64)
    return firsts, np.array([len(codes) > 1 for codes in leaders])
