"""Embeddings trained on an engine: stored when they finish, with the same scores in any order."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from equipoise.config import StatsConfig
from equipoise.domains.accounts.experiment import evaluate_tree
from equipoise.domains.accounts.trees.tree import Tree
from equipoise.errors import ParameterError, PartialError
from equipoise.runs.executors import Completed, Executor, LocalExecutor
from stored_folders import stored

QUICK: dict[str, Any] = {
    "learning_rates": [0.3],
    "training": {"epochs": 3},
    "config": StatsConfig(n_resamples=30),
    "seeds": [4, 5],
}


class ReverseExecutor(Executor):
    """A remote engine that finishes the last job first; it may lose one job, or stop after a number of jobs."""

    name = "reverse"

    def __init__(self, *, lost_job: int | None = None, max_jobs: int = 100) -> None:
        self.lost_job, self.max_jobs = lost_job, max_jobs
        self.jobs: list[Any] = []

    def map(self, function: Any, items: Any, shared: Any, **options: Any) -> Iterator[Completed[Any]]:
        self.jobs = [job.inputs for job, _ in items]
        for index in reversed(range(len(items))):
            if len(items) - index > self.max_jobs:
                raise KeyboardInterrupt
            (completed,) = LocalExecutor().map(function, [items[index]], shared, **options)
            error = PartialError("its worker died 5 times")
            yield Completed(index, error if index == self.lost_job else completed.outcome)

    @property
    def n_trained(self) -> int:
        """The number of jobs without vectors."""
        return sum(job.vectors is None for job in self.jobs)


@pytest.mark.slow
def test_the_order_of_finished_jobs_does_not_change_the_results(chart: Tree, tmp_path: Path) -> None:
    local = evaluate_tree(chart, "lorentz", [2], output=tmp_path / "here", **QUICK)
    remote = evaluate_tree(chart, "lorentz", [2], output=tmp_path / "there", engine=ReverseExecutor(), **QUICK)
    assert local.to_dict() == remote.to_dict()
    assert stored(tmp_path / "here") == stored(tmp_path / "there")
    assert remote["lorentz-2"].seed_summaries["MR"].seeds == 2


@pytest.mark.slow
def test_a_stopped_run_keeps_every_finished_seed(chart: Tree, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        evaluate_tree(chart, "lorentz", [2], output=tmp_path, engine=ReverseExecutor(max_jobs=3), **QUICK)
    engine = ReverseExecutor()
    evaluation = evaluate_tree(chart, "lorentz", [2], output=tmp_path, engine=engine, **QUICK)
    assert (len(engine.jobs), engine.n_trained) == (8, 5)
    assert evaluation.resumed == ("random-2",)
    uninterrupted = evaluate_tree(chart, "lorentz", [2], **QUICK)
    assert {**evaluation.to_dict(), "resumed": []} == uninterrupted.to_dict()
    second_engine = ReverseExecutor()
    assert len(evaluate_tree(chart, "lorentz", [2], output=tmp_path, engine=second_engine, **QUICK).resumed) == 4
    assert second_engine.n_trained == 0


def test_seeds_of_other_settings_are_trained_again_and_leave_no_files(chart: Tree, tmp_path: Path) -> None:
    evaluate_tree(chart, [], [2], output=tmp_path, **QUICK)
    files_before = {path.name for path in (tmp_path / "vectors" / "seeds").iterdir()}
    engine = ReverseExecutor()
    evaluate_tree(chart, [], [2], output=tmp_path, engine=engine, **{**QUICK, "training": {"epochs": 2}})
    assert engine.n_trained == 2
    files_after = {path.name for path in (tmp_path / "vectors" / "seeds").iterdir()}
    assert len(files_after) == len(files_before) == 3
    assert len(files_after & files_before) == 2


def test_a_lost_job_does_not_affect_the_others(chart: Tree, tmp_path: Path) -> None:
    evaluation = evaluate_tree(chart, "lorentz", [2], output=tmp_path, engine=ReverseExecutor(lost_job=6), **QUICK)
    assert [item.system for item in evaluation.evaluations] == ["lorentz-2", "combinatorial-2", "euclidean-2"]
    assert list(evaluation.failures) == ["random-2"]
    assert isinstance(evaluation.failures["random-2"], PartialError)
    engine = ReverseExecutor()
    evaluate_tree(chart, "lorentz", [2], output=tmp_path, engine=engine, **QUICK)
    assert engine.n_trained == 1


@pytest.mark.engines("torch")
def test_hyperbolic_embedders_are_trained_on_the_device_and_all_are_ranked_there(chart: Tree, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    training = {**QUICK, "seeds": [4], "training": {"epochs": 30}}
    evaluation = evaluate_tree(chart, ["lorentz", "poincare"], [3], output=tmp_path, device="cpu", **training)
    on_device = [item.system for item in evaluation.evaluations if item.result.settings.get("device") == "cpu"]
    assert on_device == ["lorentz-3", "poincare-3", "euclidean-3", "random-3"]
    assert evaluation["lorentz-3"].vectors.settings["device"] == "cpu"
    assert "device" not in evaluation["euclidean-3"].vectors.settings
    assert len(evaluation["poincare-3"].vectors.history) == 30
    # Two models of one space.
    assert evaluation["lorentz-3"].mean_rank.value == pytest.approx(evaluation["poincare-3"].mean_rank.value)
    assert evaluation["lorentz-3"].mean_rank.value < 0.3 * evaluation["random-3"].mean_rank.value
    cpu_evaluation = evaluate_tree(chart, ["lorentz", "poincare"], [3], output=tmp_path, **training)
    assert cpu_evaluation.resumed == ("combinatorial-3", "euclidean-3", "random-3"), (
        "vectors of a device are not those of the CPU"
    )
    for name in cpu_evaluation.resumed:
        assert np.isclose(cpu_evaluation[name].mean_rank.value, evaluation[name].mean_rank.value)


def test_a_device_and_a_remote_engine_are_an_error(chart: Tree) -> None:
    with pytest.raises(ParameterError):
        evaluate_tree(chart, [], [2], device="cpu", engine=ReverseExecutor(), **QUICK)


def test_options_of_the_cpu_training_are_an_error_on_a_device(chart: Tree) -> None:
    with pytest.raises(ParameterError, match="n_negatives"):
        evaluate_tree(chart, [], [2], device="cpu", training={"n_negatives": 2})
