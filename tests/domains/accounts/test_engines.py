"""Embeddings made on an engine: kept as they are finished, the same figures whatever comes first."""

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


class Backwards(Executor):
    """An engine elsewhere that finishes the last piece first; it may lose one, or die after so many."""

    name = "backwards"

    def __init__(self, *, loses: int | None = None, lives: int = 100) -> None:
        self.loses, self.lives = loses, lives
        self.jobs: list[Any] = []

    def map(self, function: Any, items: Any, shared: Any, **options: Any) -> Iterator[Completed[Any]]:
        self.jobs = [job.inputs for job, _ in items]
        for index in reversed(range(len(items))):
            if len(items) - index > self.lives:
                raise KeyboardInterrupt
            (completed,) = LocalExecutor().map(function, [items[index]], shared, **options)
            lost = PartialError("its worker died 5 times")
            yield Completed(index, lost if index == self.loses else completed.outcome)

    @property
    def trained(self) -> int:
        """How many pieces came without vectors."""
        return sum(job.vectors is None for job in self.jobs)


@pytest.mark.slow
def test_the_order_in_which_pieces_are_finished_changes_nothing(chart: Tree, tmp_path: Path) -> None:
    here = evaluate_tree(chart, "lorentz", [2], output=tmp_path / "here", **QUICK)
    there = evaluate_tree(chart, "lorentz", [2], output=tmp_path / "there", engine=Backwards(), **QUICK)
    assert here.to_dict() == there.to_dict()
    assert stored(tmp_path / "here") == stored(tmp_path / "there")
    assert there["lorentz-2"].seed_summaries["MR"].seeds == 2


@pytest.mark.slow
def test_a_killed_driver_loses_no_seed_that_was_finished(chart: Tree, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        evaluate_tree(chart, "lorentz", [2], output=tmp_path, engine=Backwards(lives=3), **QUICK)
    engine = Backwards()
    found = evaluate_tree(chart, "lorentz", [2], output=tmp_path, engine=engine, **QUICK)
    assert (len(engine.jobs), engine.trained) == (8, 5)
    assert found.resumed == ("random-2",)
    whole = evaluate_tree(chart, "lorentz", [2], **QUICK)
    assert {**found.to_dict(), "resumed": []} == whole.to_dict()
    again = Backwards()
    assert len(evaluate_tree(chart, "lorentz", [2], output=tmp_path, engine=again, **QUICK).resumed) == 4
    assert again.trained == 0


def test_seeds_of_other_settings_are_trained_anew_and_leave_no_files(chart: Tree, tmp_path: Path) -> None:
    evaluate_tree(chart, [], [2], output=tmp_path, **QUICK)
    kept = {path.name for path in (tmp_path / "vectors" / "seeds").iterdir()}
    engine = Backwards()
    evaluate_tree(chart, [], [2], output=tmp_path, engine=engine, **{**QUICK, "training": {"epochs": 2}})
    assert engine.trained == 2
    now = {path.name for path in (tmp_path / "vectors" / "seeds").iterdir()}
    assert len(now) == len(kept) == 3
    assert len(now & kept) == 2


def test_a_lost_job_does_not_lose_the_others(chart: Tree, tmp_path: Path) -> None:
    found = evaluate_tree(chart, "lorentz", [2], output=tmp_path, engine=Backwards(loses=6), **QUICK)
    assert [each.system for each in found.evaluations] == ["lorentz-2", "combinatorial-2", "euclidean-2"]
    assert list(found.failures) == ["random-2"]
    assert isinstance(found.failures["random-2"], PartialError)
    engine = Backwards()
    evaluate_tree(chart, "lorentz", [2], output=tmp_path, engine=engine, **QUICK)
    assert engine.trained == 1


@pytest.mark.engines("torch")
def test_a_device_trains_what_is_hyperbolic_and_ranks_all(chart: Tree, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    training = {**QUICK, "seeds": [4], "training": {"epochs": 30}}
    found = evaluate_tree(chart, ["lorentz", "poincare"], [3], output=tmp_path, device="cpu", **training)
    on_device = [each.system for each in found.evaluations if each.result.settings.get("device") == "cpu"]
    assert on_device == ["lorentz-3", "poincare-3", "euclidean-3", "random-3"]
    assert found["lorentz-3"].vectors.settings["device"] == "cpu"
    assert "device" not in found["euclidean-3"].vectors.settings
    assert len(found["poincare-3"].vectors.history) == 30
    # Two pictures of one space.
    assert found["lorentz-3"].mean_rank.value == pytest.approx(found["poincare-3"].mean_rank.value)
    assert found["lorentz-3"].mean_rank.value < 0.3 * found["random-3"].mean_rank.value
    plain = evaluate_tree(chart, ["lorentz", "poincare"], [3], output=tmp_path, **training)
    assert plain.resumed == ("combinatorial-3", "euclidean-3", "random-3"), (
        "vectors of a device are not those of the processor"
    )
    for name in plain.resumed:
        assert np.isclose(plain[name].mean_rank.value, found[name].mean_rank.value)


def test_a_device_stays_with_its_machine(chart: Tree) -> None:
    with pytest.raises(ParameterError):
        evaluate_tree(chart, [], [2], device="cpu", engine=Backwards(), **QUICK)


def test_what_only_the_processor_knows_is_refused(chart: Tree) -> None:
    with pytest.raises(ParameterError, match="n_negatives"):
        evaluate_tree(chart, [], [2], device="cpu", training={"n_negatives": 2})
