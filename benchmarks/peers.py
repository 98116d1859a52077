"""The same 21 metrics by pytrec_eval and by ranx, as arrays in the order of ``retrieval.METRICS``."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.retrieval import CUTOFFS, METRICS, Dicts
from equipoise.evidence.ranking import Ranking
from equipoise.metrics.parser import parse_metrics

TREC_NAMES = ("success", "ndcg_cut", "recall", "P", "map_cut")
RANX_NAMES = ("hit_rate", "ndcg", "recall", "precision", "map")
OURS = parse_metrics(METRICS)
RANX_METRICS = ["mrr"] + [f"{name}@{k}" for name in RANX_NAMES for k in CUTOFFS]

Floats = NDArray[np.float64]
Table = dict[str, dict[str, float]]


def ours(ranking: Ranking) -> list[Floats]:
    """Our values, a number a query and metric."""
    return [metric.per_unit(ranking) for metric in OURS]


def by_pytrec_eval(qrels: Dicts, run: Dicts) -> Table:
    """trec_eval's values in the form the package returns them."""
    import pytrec_eval

    cuts = ",".join(map(str, CUTOFFS))
    measures = {"recip_rank", *(f"{name}.{cuts}" for name in TREC_NAMES)}
    return pytrec_eval.RelevanceEvaluator(qrels, measures).evaluate(run)


def by_ranx(qrels: Dicts, run: Dicts) -> dict[str, Floats]:
    """ranx's values by the path its documentation shows; one thread, as CPU time is what is compared."""
    from ranx import Qrels, Run, evaluate

    return evaluate(Qrels(qrels), Run(run), RANX_METRICS, return_mean=False, threads=1)


def by_ranx_from_arrays(qrels: Floats, run: Floats) -> dict[str, Floats]:
    """ranx's values from arrays of (id, gain) and (id, score)."""
    from ranx import evaluate

    return evaluate(qrels, run, RANX_METRICS, return_mean=False, threads=1)


def matrix_of_ours(values: list[Floats]) -> Floats:
    """One row a metric, one column a query."""
    return np.array(values)


def matrix_of_pytrec_eval(table: Table) -> Floats:
    """The same from pytrec_eval's dicts."""
    names = ["recip_rank"] + [f"{name}_{k}" for name in TREC_NAMES for k in CUTOFFS]
    return np.array([[values[name] for values in table.values()] for name in names])


def matrix_of_ranx(table: dict[str, Any]) -> Floats:
    """The same from ranx's arrays."""
    return np.array([table[name] for name in RANX_METRICS])


def refuse_difference(ours: Floats, theirs: Floats, peer: str) -> None:
    """A speed is only worth telling where the values are the same."""
    gap = float(np.abs(ours - theirs).max())
    if not gap <= 1e-12:
        raise SystemExit(f"values differ from {peer} by {gap:g}")
