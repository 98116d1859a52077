"""Fusion weights and rerank depths that are selected by nested cross-validation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from equipoise import EquipoiseError, bench, load_run
from equipoise.config import StatsConfig
from equipoise.domains.bench import experiment
from equipoise.domains.bench.results import DataComparison
from equipoise.io.splits import kfold_splits

pytestmark = pytest.mark.slow  # whole benchmarks

FAST = StatsConfig(n_resamples=200, n_permutations=200)
FUSION = "sum:hash,dim=16+tfidf:"


def retrieval_rows(count: int = 40) -> list[dict[str, Any]]:
    """Queries whose rarest word is in one passage; hashed words collide in 16 dimensions."""
    rng = np.random.default_rng(0)
    words = [f"word{number}" for number in range(60)]
    return [
        {
            "query": f"{word} topic{row % 25}",
            "positive": f"{word} topic{row % 25} {row} {' '.join(rng.choice(words, 5))}",
        }
        for row, word in enumerate(rng.choice(words, count))
    ]


def run(models: list[str], **options: Any) -> DataComparison:
    data = bench.Retrieval(retrieval_rows(), name="r")
    return bench.compare(models, data, **{"config": FAST, "cache": False, "baselines": False, **options}).datasets[0]


def test_equal_weights_give_the_scores_of_the_plain_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experiment, "WEIGHTS", (0.5,))
    dataset = run([FUSION], tune=["fusion"])
    plain, tuned = (dataset.result(name).per_unit["nDCG@10"] for name in (FUSION, f"{FUSION} (tuned)"))
    assert tuned == pytest.approx(plain)


def test_a_query_is_scored_with_weights_selected_on_other_queries() -> None:
    tuned_system = run([FUSION], tune=["fusion"]).system(f"{FUSION} (tuned)")
    by_weight = {}
    for weight in experiment.WEIGHTS:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(experiment, "WEIGHTS", (weight,))
            by_weight[weight] = run([FUSION], tune=["fusion"]).result(f"{FUSION} (tuned)").per_unit["nDCG@10"]
    table = np.array(list(by_weight.values()))
    ids, rng = tuned_system.result.unit_ids.tolist(), FAST.rng(29)
    expected = np.zeros(table.shape[1])
    for _ in range(experiment.SPLITS):
        for train, test in kfold_splits(ids, experiment.FOLDS, rng=rng):
            best = max(range(len(table)), key=lambda trial: (round(table[trial, train].mean(), 12), -trial))
            expected[test] += table[best, test] / experiment.SPLITS
    assert tuned_system.result.per_unit["nDCG@10"] == pytest.approx(expected)
    assert tuned_system.tuning is not None
    assert tuned_system.tuning.optimistic == pytest.approx(table.mean(axis=1).max())
    assert tuned_system.tuning.nested == pytest.approx(expected.mean())


def test_depth_and_weight_are_tuned_together_and_stored(tmp_path: Path) -> None:
    options: dict[str, Any] = {"rerankers": ["fusion:bm25:+tfidf:"], "tune": ["fusion", "depth"], "output": tmp_path}
    name = f"{FUSION} > fusion:bm25:+tfidf: (tuned)"
    first, repeated = run([FUSION], **options), run([FUSION], **options)
    record = first.system(name).tuning
    assert {(trial.params["weight"], trial.params["depth"]) for trial in record.trials} == {
        (weight, depth) for weight in experiment.WEIGHTS for depth in (10, 20)
    }
    assert repeated.system(name).resumed
    assert repeated.system(name).tuning == record
    stored = [load_run(path) for path in (tmp_path / "runs" / "r").iterdir()]
    best = record.trials[record.best].params
    assert [run.manifest.parameters["weight"] for run in stored if run.manifest.system == name] == [best["weight"]]


@pytest.mark.parametrize(
    ("models", "tune"), [(["hash"], ["fusion"]), ([FUSION], ["depth"]), ([FUSION], ["temperature"])]
)
def test_a_parameter_that_no_system_has_is_an_error(models: list[str], tune: list[str]) -> None:
    with pytest.raises(EquipoiseError) as error:
        run(models, tune=tune)
    assert error.value.code == "E310"
