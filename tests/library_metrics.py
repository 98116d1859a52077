"""Metric values of other libraries for a run: one function per library, with its documented API."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

Run = Mapping[str, Mapping[str, float]]
Qrels = Mapping[str, Mapping[str, int]]
MetricFunction = Callable[[Run, Qrels, str, int], float]


def trec_eval(run: Run, qrels: Qrels, metric_form: str, k: int) -> float:
    """The mean over what pytrec_eval returns; ``-M k`` is a run truncated in the order of trec_eval."""
    pytrec_eval = pytest.importorskip("pytrec_eval")
    names = {
        "nDCG@k": (f"ndcg_cut.{k}", f"ndcg_cut_{k}"),
        "nDCG": ("ndcg", "ndcg"),
        "MAP@k": (f"map_cut.{k}", f"map_cut_{k}"),
        "MAP": ("map", "map"),
        "MRR": ("recip_rank", "recip_rank"),
        "MRR@k": ("recip_rank", "recip_rank"),
        "HR@k": (f"success.{k}", f"success_{k}"),
        "P@k": (f"P.{k}", f"P_{k}"),
        "R@k": (f"recall.{k}", f"recall_{k}"),
    }
    measure, name = names[metric_form]
    if metric_form == "MRR@k":
        run = {
            query: dict(sorted(scores.items(), key=lambda pair: (np.float32(pair[1]), pair[0]), reverse=True)[:k])
            for query, scores in run.items()
        }
    values_by_query = pytrec_eval.RelevanceEvaluator(qrels, {measure}).evaluate(run)
    return float(np.mean([values[name] for values in values_by_query.values()]))


def ranx(run: Run, qrels: Qrels, metric_form: str, k: int) -> float:
    """``evaluate`` on a ``Qrels`` and a ``Run``; a run with other queries needs ``make_comparable``."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        library = pytest.importorskip("ranx")
        names = {
            "nDCG": "ndcg",
            "MAP": "map",
            "MRR": "mrr",
            "HR": "hit_rate",
            "P": "precision",
            "R": "recall",
        }
        symbol, _, cutoff = metric_form.partition("@")
        metric = f"{names[symbol]}@{k}" if cutoff else names[symbol]
        return float(
            library.evaluate(
                library.Qrels(copy.deepcopy(qrels)),
                library.Run(copy.deepcopy(run)),
                metric,
                **({} if run.keys() == qrels.keys() else {"make_comparable": True}),
            )
        )


def mteb(run: Run, qrels: Qrels, metric_form: str, k: int) -> float:
    """``calculate_retrieval_scores`` on the queries of the qrels; it raises an error for any other."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip("mteb")
        from mteb._evaluators.retrieval_metrics import calculate_retrieval_scores, make_score_dict

        known = {query: dict(scores) for query, scores in run.items() if query in qrels}
        results = calculate_retrieval_scores(known, copy.deepcopy(qrels), sorted({1, k}))
        values = make_score_dict(
            ndcg=results.ndcg,
            _map=results.map,
            recall=results.recall,
            precision=results.precision,
            mrr=results.mrr,
            naucs={},
            naucs_mrr={},
            hit_rate=results.hit_rate,
            task_scores={},
        )
    names = {"nDCG": "ndcg", "MAP": "map", "MRR": "mrr", "HR": "hit_rate", "P": "precision", "R": "recall"}
    return float(values[f"{names[metric_form.partition('@')[0]]}_at_{k}"])


def beir(run: Run, qrels: Qrels, metric_form: str, k: int) -> float:
    """``EvaluateRetrieval``; its custom metrics raise an error for queries outside the qrels."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip("beir")
        from beir.retrieval.evaluation import EvaluateRetrieval

        custom_metrics = {"MRR@k": ("mrr", f"MRR@{k}"), "HR@k": ("top_k_accuracy", f"Accuracy@{k}")}
        custom_metrics["R(capped)@k"] = ("recall_cap", f"R_cap@{k}")
        results = {query: dict(scores) for query, scores in run.items()}
        if metric_form in custom_metrics:
            known = {query: scores for query, scores in results.items() if query in qrels}
            metric, name = custom_metrics[metric_form]
            return float(EvaluateRetrieval.evaluate_custom(qrels, known, [k], metric)[name])
        names = ("nDCG@k", "MAP@k", "R@k", "P@k")
        metric_groups = EvaluateRetrieval.evaluate(qrels, results, [k])
    return float(next(iter(metric_groups[names.index(metric_form)].values())))


def sentence_transformers(run: Run, qrels: Qrels, metric_form: str, k: int) -> float:
    """``compute_metrics`` of the evaluator on the lists of the run, for all judged queries."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip("sentence_transformers")
        from sentence_transformers.sentence_transformer.evaluation import InformationRetrievalEvaluator

        relevant = {query: {item for item, gain in gains.items() if gain > 0} for query, gains in qrels.items()}
        evaluator = InformationRetrievalEvaluator(
            queries={query: query for query in qrels},
            corpus={"none": "none"},
            relevant_docs=relevant,
            mrr_at_k=[k],
            ndcg_at_k=[k],
            accuracy_at_k=[k],
            precision_recall_at_k=[k],
            map_at_k=[k],
        )
        lists = [
            [{"corpus_id": item, "score": score} for item, score in run.get(query, {}).items()]
            for query in evaluator.queries_ids
        ]
        values = evaluator.compute_metrics(lists)
    names = {"nDCG": "ndcg", "MAP": "map", "MRR": "mrr", "HR": "accuracy", "P": "precision", "R": "recall"}
    return float(values[f"{names[metric_form.partition('@')[0]]}@k"][k])


def torchmetrics(run: Run, qrels: Qrels, metric_form: str, k: int) -> float:
    """The class of the metric, updated with the retrieved items of all judged queries."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip("torchmetrics")
        import torch
        from torchmetrics import retrieval

        names = {"nDCG": "NormalizedDCG", "MAP": "MAP", "MRR": "MRR", "HR": "HitRate"}
        symbol, _, cutoff = metric_form.partition("@")
        name = names.get(symbol, {"P": "Precision", "R": "Recall"}.get(symbol))
        metric = getattr(retrieval, f"Retrieval{name}")(top_k=k if cutoff else None)
        rows = [
            (number, score, max(qrels[query].get(item, 0), 0))
            for number, query in enumerate(query for query in run if query in qrels)
            for item, score in run[query].items()
        ]
        numbers, scores, gains = zip(*rows, strict=True)
        target = torch.tensor(gains) if symbol == "nDCG" else torch.tensor(gains) > 0
        metric.update(torch.tensor(scores), target, indexes=torch.tensor(numbers))
        return float(metric.compute())


def sklearn(run: Run, qrels: Qrels, metric_form: str, k: int) -> float:
    """The mean of ``ndcg_score`` or ``average_precision_score`` over the retrieved items of each query."""
    metrics = pytest.importorskip("sklearn.metrics")
    values = []
    for query, scores in run.items():
        if query not in qrels:
            continue
        gains = [max(qrels[query].get(item, 0), 0) for item in scores]
        predicted = list(scores.values())
        if metric_form != "MAP" and len(gains) < 2:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if metric_form == "MAP":
                values.append(metrics.average_precision_score([gain > 0 for gain in gains], predicted))
            else:
                cutoff = k if metric_form.endswith("@k") else None
                values.append(metrics.ndcg_score([gains], [predicted], k=cutoff))
    return float(np.mean(values)) if values else float("nan")


LIBRARIES: Mapping[str, MetricFunction] = {
    "trec_eval": trec_eval,
    "ranx": ranx,
    "mteb": mteb,
    "beir": beir,
    "sentence-transformers": sentence_transformers,
    "torchmetrics": torchmetrics,
    "sklearn": sklearn,
}
REAL = {
    "ranx": pytest.mark.engines("ranx"),
    "mteb": pytest.mark.engines("mteb"),
    "beir": pytest.mark.engines("beir"),
    "sentence-transformers": pytest.mark.engines("sentence_transformers"),
    "torchmetrics": pytest.mark.engines("torchmetrics"),
}
"""Markers of tests per library; the other libraries are required by all tests."""


@st.composite
def runs_and_qrels(draw: Any, *, tied: bool = True, empty: bool = True) -> tuple[Run, Qrels]:
    """A run with ties, scores that are equal in float32, scores below 0, missing and extra queries.

    The judgements are graded and, with ``empty``, some queries have no relevant item. Everything is generated from
    a seed: twelve queries with many items reveal a wrong convention sooner than a minimal case.
    """
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    queries = [f"q{number}" for number in range(12)]
    judged_queries = [query for query in queries if rng.random() < 0.8] or queries[:1]
    retrieved_queries = [query for query in queries if rng.random() < 0.8]
    run = {
        query: _retrieved_list(rng, query, tied=tied)
        for query in dict.fromkeys([*retrieved_queries, judged_queries[0], "extra"])
    }
    qrels = {query: _judgements(rng, query, empty=empty and rng.random() < 0.2) for query in judged_queries}
    qrels[judged_queries[0]]["d1"] = 1
    return run, qrels


def _retrieved_list(rng: np.random.Generator, query: str, *, tied: bool) -> dict[str, float]:
    documents = [*(f"d{number}" for number in range(9)), query]
    items = rng.permutation(documents)[: 1 if rng.random() < 0.1 else int(rng.integers(3, 11))]
    if tied:
        scores = rng.choice([-0.5, 0.0, 0.25, 0.5, 0.5 + 1e-12, 0.75], len(items))
    else:
        scores = rng.permutation(len(items)) / 4.0 - rng.choice([0.5, -0.25])
    return {str(item): float(score) for item, score in zip(items, scores, strict=True)}


def _judgements(rng: np.random.Generator, query: str, *, empty: bool) -> dict[str, int]:
    documents = [*(f"d{number}" for number in range(12)), query]
    items = rng.permutation(documents)[: int(rng.integers(1, 9))]
    gains = {str(item): 0 if empty else int(rng.choice([0, 1, 1, 2, 3])) for item in items}
    return gains if empty else gains | {str(items[0]): 1}
