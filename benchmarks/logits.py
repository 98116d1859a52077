"""Accuracy, MRR and nDCG from a matrix of logits, compared with torch and scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.retrieval import CUTOFFS
from benchmarks.row import Row
from benchmarks.timing import fastest
from equipoise.evidence.ranking import Ranking
from equipoise.metrics.parser import parse_metrics

METRICS = parse_metrics(["Acc@{1,3,5,10}", "MRR", "nDCG@10"])
TORCH_TARGET, SKLEARN_TARGET = 4.0, 100.0


def rows(quick: bool) -> list[Row]:
    """The same metrics from the same 32-bit logits, with one thread per package."""
    units, classes = (2_000 if quick else 20_000), 1_000
    rng = np.random.default_rng(0)
    targets = rng.integers(0, classes, units)
    logits = rng.normal(size=(units, classes)).astype(np.float32)
    logits[np.arange(units), targets] += rng.normal(2.0, 1.0, units).astype(np.float32)

    our_seconds, values = fastest(lambda: by_ours(logits, targets), times=9)
    sort_seconds, sort_values = fastest(by_torch(logits, targets, full=True), times=3)
    topk_seconds, topk_values = fastest(by_torch(logits, targets, full=False), times=5)
    sklearn_seconds, accuracies = fastest(lambda: by_sklearn(logits, targets), times=1)
    assert np.abs(values - sort_values).max() <= 1e-6  # torch's means are in 32 bits
    assert np.abs(values[[0, 1, 2, 3, 5]] - topk_values[[0, 1, 2, 3, 5]]).max() <= 1e-6
    assert np.abs(values[:4] - accuracies).max() <= 1e-12

    task = f"Acc@{{1,3,5,10}}, MRR, nDCG@10 from logits, {units // 1000}k x {classes}"
    return [
        Row(task, our_seconds, "torch: topk for Acc, argsort for MRR and nDCG", sort_seconds, TORCH_TARGET),
        Row(task, our_seconds, "torch: topk alone, MRR cut at 10", topk_seconds, TORCH_TARGET),
        Row(task, our_seconds, "scikit-learn, top_k_accuracy_score four times", sklearn_seconds, SKLEARN_TARGET),
    ]


def by_ours(logits: NDArray[Any], targets: NDArray[Any]) -> NDArray[np.float64]:
    """All six metrics."""
    ranking = Ranking.from_scores(logits, targets)
    return np.array([metric.measure(ranking).value for metric in METRICS])


def by_torch(logits: NDArray[Any], targets: NDArray[Any], *, full: bool) -> Any:
    """The same metrics in torch: target ranks from a full sort, or from the top 10 only."""
    import torch

    torch.set_num_threads(1)
    scores, targets_column = torch.from_numpy(logits), torch.from_numpy(targets)[:, None]

    def work() -> NDArray[np.float64]:
        top_matches = torch.topk(scores, max(CUTOFFS), dim=1).indices == targets_column
        values = [top_matches[:, :k].any(dim=1).float().mean() for k in CUTOFFS]
        matches = torch.argsort(scores, dim=1, descending=True) == targets_column if full else top_matches
        rank = torch.where(matches.any(dim=1), matches.float().argmax(dim=1) + 1.0, torch.inf)
        values.append((1.0 / rank).mean())
        values.append(torch.where(rank <= 10, 1.0 / torch.log2(rank + 1.0), 0.0).mean())
        return np.array([float(value) for value in values])

    return work


def by_sklearn(logits: NDArray[Any], targets: NDArray[Any]) -> NDArray[np.float64]:
    """The four accuracies."""
    from sklearn.metrics import top_k_accuracy_score

    labels = np.arange(logits.shape[1])
    return np.array([top_k_accuracy_score(targets, logits, k=k, labels=labels) for k in CUTOFFS])
