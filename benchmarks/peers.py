"""The 21 metrics of ``retrieval.METRICS`` with pytrec_eval and ranx, as arrays in the same order."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.retrieval import CUTOFFS, METRICS, Dicts
from equipoise.evidence.ranking import Ranking
from equipoise.metrics.parser import parse_metrics

TREC_NAMES = ("success", "ndcg_cut", "recall", "P", "map_cut")
RANX_NAMES = ("hit_rate", "ndcg", "recall", "precision", "map")
METRIC_OBJECTS = parse_metrics(METRICS)
RANX_METRICS = ["mrr"] + [f"{name}@{k}" for name in RANX_NAMES for k in CUTOFFS]

Floats = NDArray[np.float64]
Table = dict[str, dict[str, float]]


def by_equipoise(ranking: Ranking) -> list[Floats]:
    """The values of this package, one number per query and metric."""
    return [metric.per_unit(ranking) for metric in METRIC_OBJECTS]


def by_pytrec_eval(qrels: Dicts, run: Dicts) -> Table:
    """The values of pytrec_eval in its output format."""
    import pytrec_eval

    cutoffs = ",".join(map(str, CUTOFFS))
    measures = {"recip_rank", *(f"{name}.{cutoffs}" for name in TREC_NAMES)}
    return pytrec_eval.RelevanceEvaluator(qrels, measures).evaluate(run)


def by_ranx(qrels: Dicts, run: Dicts) -> dict[str, Floats]:
    """The values of ranx as in its documentation, with one thread because CPU times are compared."""
    from ranx import Qrels, Run, evaluate

    return evaluate(Qrels(qrels), Run(run), RANX_METRICS, return_mean=False, threads=1)


def by_ranx_from_arrays(qrels: Floats, run: Floats) -> dict[str, Floats]:
    """The values of ranx from arrays of (id, gain) and (id, score)."""
    from ranx import evaluate

    return evaluate(qrels, run, RANX_METRICS, return_mean=False, threads=1)


def matrix_of_equipoise(values: list[Floats]) -> Floats:
    """One row per metric, one column per query."""
    return np.array(values)


def matrix_of_pytrec_eval(table: Table) -> Floats:
    """The same matrix from the dicts of pytrec_eval."""
    names = ["recip_rank"] + [f"{name}_{k}" for name in TREC_NAMES for k in CUTOFFS]
    return np.array([[values[name] for values in table.values()] for name in names])


def matrix_of_ranx(table: dict[str, Any]) -> Floats:
    """The same matrix from the arrays of ranx."""
    return np.array([table[name] for name in RANX_METRICS])


def check_equal(our_values: Floats, peer_values: Floats, peer: str) -> None:
    """Exit if the values differ: times are comparable only for equal values."""
    difference = float(np.abs(our_values - peer_values).max())
    if not difference <= 1e-12:
        raise SystemExit(f"values differ from {peer} by {difference:g}")
