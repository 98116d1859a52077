"""The figures of next-location work: their metrics here, and their names there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from equipoise.metrics.base import Metric
from equipoise.metrics.labels import ClassF1
from equipoise.metrics.ranking import DiscountedGain, HitRate, ReciprocalRank

CUTOFFS = (1, 3, 5, 10)
NDCG_AT = 10


def default_cutoffs(limit: int) -> tuple[int, ...]:
    """The default cutoffs of the accuracy up to ``limit``: beyond the number of classes Acc@k is always 1.

    >>> default_cutoffs(7)
    (1, 3, 5)
    """
    return tuple(k for k in CUTOFFS if k <= limit)


def omitted_cutoffs_note(limit: int, what: str) -> tuple[str, ...]:
    """A note on the default cutoffs that ``default_cutoffs`` leaves out, or nothing.

    >>> omitted_cutoffs_note(7, "there are 7 classes")
    ('Acc@10 was left out: there are 7 classes',)
    """
    omitted = [f"Acc@{k}" for k in CUTOFFS if k > limit]
    verb = "was" if len(omitted) == 1 else "were"
    return (f"{', '.join(omitted)} {verb} left out: {what}",) if omitted else ()


def ranking_figures(ks: Sequence[int]) -> dict[str, Metric[Any]]:
    """What is measured on ranks, by the names of the field.

    >>> [metric.name for metric in ranking_figures([1, 5]).values()]
    ['HR@1', 'HR@5', 'MRR', 'nDCG@10']
    """
    hits: dict[str, Metric[Any]] = {f"acc@{k}": HitRate(k) for k in ks}
    return hits | {"mrr": ReciprocalRank(), "ndcg": DiscountedGain(NDCG_AT)}


def label_figures() -> dict[str, Metric[Any]]:
    """What is measured on the top-1 class; f1 alone is the weighted one, as the field has it."""
    return {"f1": ClassF1("weighted"), "f1_macro": ClassF1("macro"), "f1_micro": ClassF1("micro")}


def percent_view(fractions: Mapping[str, float]) -> dict[str, float]:
    """The same figures in percent, for people.

    >>> percent_view({"acc@1": 0.25})
    {'acc@1': 25.0}
    """
    return {name: 100.0 * value for name, value in fractions.items()}
