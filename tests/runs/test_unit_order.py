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


def lines(seed: int) -> tuple[list[str], list[list[str]]]:
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
    qrels, runs = lines(3)
    folder.mkdir()
    found = {}
    for name, run in zip("ab", runs, strict=True):
        for path, content in (("truth.qrels", qrels), (f"{name}.trec", run)):
            rows = content if shuffle is None else np.random.default_rng(shuffle).permutation(content).tolist()
            (folder / path).write_text("\n".join(rows) + "\n")
        found[name] = Ranking.from_runs(folder / "truth.qrels", folder / f"{name}.trec", corpus_size=12)
    return found


@pytest.mark.parametrize("clustered", [False, True])
def test_shuffled_qrels_and_run_lines_give_the_same_comparison(tmp_path: Path, clustered: bool) -> None:
    found = []
    for at, shuffle in enumerate((None, 1, 2)):
        systems = rankings(tmp_path / str(at), shuffle)
        units = systems["a"].unit_ids.tolist()
        clusters = [int(unit[1:]) // 4 for unit in units] if clustered else None
        found.append(
            compare(systems, METRICS, config=StatsConfig(clusters=clusters, n_resamples=300, n_permutations=300))
        )
    first = found[0]
    for other in found[1:]:
        assert other.verdict() == first.verdict()
        assert other.ranks == first.ranks
        for one, two in zip(first.contrasts, other.contrasts, strict=True):
            assert (one.p, one.adjusted) == pytest.approx((two.p, two.adjusted), rel=1e-12)
            assert (one.interval.low, one.interval.high) == pytest.approx(
                (two.interval.low, two.interval.high), rel=1e-12
            )
        for system in "ab":
            for metric in METRICS:
                one, two = first.estimates[system][metric], other.estimates[system][metric]
                assert (one.value, one.chance, one.interval.low, one.interval.high) == pytest.approx(
                    (two.value, two.chance, two.interval.low, two.interval.high), rel=1e-12
                )


def test_shuffled_units_give_the_same_scores_of_classes() -> None:
    rng = np.random.default_rng(0)
    ids = np.array([f"visit{at}" for at in range(80)])
    true, predicted = rng.integers(0, 4, (2, 80))
    predicted = np.where(rng.random(80) < 0.6, true, predicted)
    found = [
        evaluate(
            Labels(ids[order], true[order], predicted[order], np.arange(4)),
            ["F1", "ARI"],
            config=StatsConfig(n_resamples=200),
        )
        for order in (np.arange(80), rng.permutation(80))
    ]
    for metric in found[0].names:
        one, two = (result[metric] for result in found)
        assert (one.value, one.chance, one.interval.low, one.interval.high) == pytest.approx(
            (two.value, two.chance, two.interval.low, two.interval.high), rel=1e-12, nan_ok=True
        )
