"""A figure under conventions: the run and the truth as they say, our own metric with their parameters."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from equipoise.checks.like import precision
from equipoise.checks.like.conventions import Conventions
from equipoise.checks.like.material import Material
from equipoise.evidence.ranking import Ranking
from equipoise.metrics.base import Metric
from equipoise.metrics.ranking import AveragePrecision, DiscountedGain
from equipoise.types import Bools, Floats


@dataclass(frozen=True)
class Figure:
    """The mean that is printed, and one value a judged query; NaN for those that are left out."""

    value: float
    per_unit: Floats

    @property
    def n(self) -> int:
        """On how many queries it rests."""
        return int(np.count_nonzero(~np.isnan(self.per_unit)))


def figure_under(material: Material, metric: Metric[Any], conventions: Conventions) -> Figure:
    """What a program with these conventions would print.

    >>> material = Material.of({"q": {"a": 0.5, "b": 0.5}}, {"q": {"a": 1}})
    >>> from equipoise.metrics.parse import parse
    >>> mrr = parse("MRR")[0]
    >>> [figure_under(material, mrr, Conventions(ties=ties)).value for ties in ("expected", "id_down")]
    [0.75, 0.5]
    """
    ranking = material.ranking(conventions, getattr(metric, "k", None))
    values = units_under(ranking, metric, conventions)
    values[left_out(material, conventions)] = np.nan
    counted = values[~np.isnan(values)]
    value = float(np.mean(counted)) if len(counted) else float("nan")
    return Figure(value if conventions.digits is None else round(value, conventions.digits), values)


def left_out(material: Material, conventions: Conventions) -> Bools:
    """The queries that do not count, because the run misses them or has too short a list for them."""
    out = np.zeros(len(material.units), dtype=np.bool_)
    if conventions.missing == "left_out":
        out |= ~material.answered
    if conventions.fewest:
        lengths = np.array([len(material.seen(conventions).get(unit, ())) for unit in material.units])
        out |= material.answered & (lengths < conventions.fewest)
    return out


def units_under(ranking: Ranking, metric: Metric[Any], conventions: Conventions) -> Floats:
    """One value a unit; a unit without relevant items has none, or 0."""
    values = np.array(_measured(ranking, metric, conventions), dtype=np.float64)
    if conventions.empty == "zero":
        values[ranking.counts == 0] = 0.0
    return values


def _measured(ranking: Ranking, metric: Metric[Any], conventions: Conventions) -> Floats:
    if isinstance(metric, AveragePrecision):
        if conventions.ties == "threshold":
            return precision.average_precision_at_thresholds(ranking, over_hits=conventions.norm == "hits")
        if conventions.norm == "hits":
            return precision.average_precision_of_hits(ranking, metric.k)
        metric = replace(metric, norm=conventions.norm)
    elif isinstance(metric, DiscountedGain):
        metric = replace(metric, gain=conventions.gain)
    values = metric.measure(ranking).per_unit
    return np.zeros(0) if values is None else values
