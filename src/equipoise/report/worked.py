"""Small bodies of evidence to explain a metric with; the figures are computed when they are shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from equipoise.errors import EquipoiseError
from equipoise.evidence.base import Evidence
from equipoise.metrics.base import Metric
from equipoise.stats.numbers import figure

PLACES = 4


@dataclass(frozen=True)
class Example:
    """Evidence, and what it says in one line."""

    text: str
    evidence: Evidence


def examples(kind: str) -> list[Example]:
    """Evidence of this kind, small enough to check by hand."""
    makers = {
        "ranking": _ranking,
        "labels": _labels,
        "sets": _sets,
        "pairs": _pairs,
        "space": _space,
    }
    return makers[kind]() if kind in makers else []


def worked(metric: Metric[Any]) -> list[str]:
    """Lines such as ``relevant at ranks 1, 4, 5 of 5: 0.7``; none where an example lacks what it needs."""
    lines = []
    for example in examples(metric.evidence.kind):
        try:
            value = metric.measure(example.evidence).value
        except EquipoiseError:
            continue
        lines.append(f"{example.text}: {metric.name} = {figure(value, PLACES, reason='undefined')}")
    return lines


def _ranking() -> list[Example]:
    from equipoise.evidence.ranking import Ranking

    scores = {"a": 0.9, "b": 0.8, "c": 0.7, "d": 0.6, "e": 0.5}
    truth = {"q": {"a": 1, "d": 1, "e": 1}}
    return [
        Example("ranked a* b c d* e*, the starred ones relevant", Ranking.from_runs(truth, {"q": scores})),
        Example(
            "the same with c and d* at equal scores", Ranking.from_runs(truth, {"q": scores | {"c": 0.6}})
        ),
        Example("one relevant item, at rank 3 of 100", Ranking.from_ranks([3], candidates=100)),
    ]


def _labels() -> list[Example]:
    from equipoise.evidence.labels import Labels

    return [Example("true a a b b, predicted a a a b", _labels_of(Labels, "aabb", "aaab"))]


def _labels_of(kind: Any, true: Sequence[str], predicted: Sequence[str]) -> Evidence:
    made: Evidence = kind.of(list(true), list(predicted))
    return made


def _sets() -> list[Example]:
    from equipoise.evidence.sets import Sets

    return [
        Example("gold {a, b}, predicted {b, c, d}", Sets.of({"doc": ["a", "b"]}, {"doc": ["b", "c", "d"]}))
    ]


def _pairs() -> list[Example]:
    from equipoise.evidence.pairs import Pairs

    return [
        Example(
            "predicted .9 .4 .6 .1 where 1.0 .5 .3 .2 were expected",
            Pairs.of([0.9, 0.4, 0.6, 0.1], [1.0, 0.5, 0.3, 0.2]),
        )
    ]


def _space() -> list[Example]:
    from equipoise.evidence.space import Space

    points = [[0.1, 0.0], [0.2, 0.1], [0.0, 0.5], [0.1, 0.9]]
    evidence = Space.of(points, labels=["a", "a", "b", "b"], depth=[0, 1, 1, 2])
    return [Example("points (.1, 0) (.2, .1) of class a and (0, .5) (.1, .9) of class b", evidence)]
