"""The order of lines in the input changes no score, interval, p value or verdict at the same seed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from equipoise.config import StatsConfig
from equipoise.evidence.labels import Labels
from equipoise.evidence.ranking import Ranking
from equipoise.runs.compare import compare
from equipoise.runs.evaluate import evaluate

METRICS = ["MRR", "nDCG@5", "HR@1", "MR", "MedianRank"]


def qrels_and_run_lines(seed: int) -> tuple[list[str], list[list[str]]]:
    """A qrels file of 40 queries and two runs, as lines."""
    rng = np.random.default_rng(seed)
    qrels, runs = [], [[], []]
    for query in range(40):
        for document in rng.choice(12, 1 + query % 3, replace=False):
            qrels.append(f"q{query} 0 d{document} 1")
        for run, strength in zip(runs, (0.3, 0.1), strict=True):
            for document in range(12):
                hit = f"q{query} 0 d{document} 1" in qrels
                run.append(f"q{query} Q0 d{document} 1 {rng.random() + strength * hit:.6f} x")
    return qrels, runs


def rankings(folder: Path, shuffle: int | None) -> dict[str, Ranking]:
    qrels, runs = qrels_and_run_lines(3)
    folder.mkdir()
    systems = {}
    for name, run in zip("ab", runs, strict=True):
        for path, content in (("truth.qrels", qrels), (f"{name}.trec", run)):
            rows = content if shuffle is None else np.random.default_rng(shuffle).permutation(content).tolist()
            (folder / path).write_text("\n".join(rows) + "\n")
        systems[name] = Ranking.from_runs(folder / "truth.qrels", folder / f"{name}.trec", corpus_size=12)
    return systems


@pytest.mark.parametrize("clustered", [False, True])
def test_shuffled_qrels_and_run_lines_give_the_same_comparison(tmp_path: Path, clustered: bool) -> None:
    comparisons = []
    for number, shuffle in enumerate((None, 1, 2)):
        systems = rankings(tmp_path / str(number), shuffle)
        units = systems["a"].unit_ids.tolist()
        clusters = [int(unit[1:]) // 4 for unit in units] if clustered else None
        comparisons.append(
            compare(systems, METRICS, config=StatsConfig(clusters=clusters, n_resamples=300, n_permutations=300))
        )
    first = comparisons[0]
    for other in comparisons[1:]:
        assert other.verdict() == first.verdict()
        assert other.ranks == first.ranks
        for first_estimate, other_estimate in zip(first.contrasts, other.contrasts, strict=True):
            assert (first_estimate.p, first_estimate.adjusted) == pytest.approx(
                (other_estimate.p, other_estimate.adjusted), rel=1e-12
            )
            assert (first_estimate.interval.low, first_estimate.interval.high) == pytest.approx(
                (other_estimate.interval.low, other_estimate.interval.high), rel=1e-12
            )
        for system in "ab":
            for metric in METRICS:
                first_estimate, other_estimate = first.estimates[system][metric], other.estimates[system][metric]
                assert (
                    first_estimate.value,
                    first_estimate.chance,
                    first_estimate.interval.low,
                    first_estimate.interval.high,
                ) == pytest.approx(
                    (
                        other_estimate.value,
                        other_estimate.chance,
                        other_estimate.interval.low,
                        other_estimate.interval.high,
                    ),
                    rel=1e-12,
                )


def test_shuffled_units_give_the_same_scores_of_classes() -> None:
    rng = np.random.default_rng(0)
    ids = np.array([f"visit{number}" for number in range(80)])
    true, predicted = rng.integers(0, 4, (2, 80))
    predicted = np.where(rng.random(80) < 0.6, true, predicted)
    results = [
        evaluate(
            Labels(ids[order], true[order], predicted[order], np.arange(4)),
            ["F1", "ARI"],
            config=StatsConfig(n_resamples=200),
        )
        for order in (np.arange(80), rng.permutation(80))
    ]
    for metric in results[0].names:
        first, second = (result[metric] for result in results)
        assert (first.value, first.chance, first.interval.low, first.interval.high) == pytest.approx(
            (second.value, second.chance, second.interval.low, second.interval.high), rel=1e-12, nan_ok=True
        )
