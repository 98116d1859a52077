"""What needs no cluster: an engine that was not entered, and what a worker says before it begins."""

from __future__ import annotations

import pickle

import pytest

from cluster_cells import square
from equipoise.errors import MissingExtraError, ParameterError
from equipoise.runs.executors.ray import RayExecutor
from equipoise.runs.executors.ray_worker import WorkerEnvironment, run_item

HELD = pickle.dumps(0)


def test_an_engine_that_was_not_entered_is_refused() -> None:
    with pytest.raises(ParameterError, match="is not connected"):
        next(RayExecutor().map(square, [1], 0))


def test_a_worker_of_another_version_says_so() -> None:
    found = run_item(pickle.dumps((square, 1)), HELD, pickle.dumps(WorkerEnvironment(version="0.0.1")))
    assert isinstance(found.outcome, MissingExtraError)
    assert "the caller has 0.0.1" in found.outcome.message
    assert found.outcome.exit_code == 4
    assert found.unfit


def test_a_worker_without_what_a_cell_is_made_of_says_so() -> None:
    found = run_item(b"cno_such_package\nmodel\n.", HELD, pickle.dumps(WorkerEnvironment()))
    assert isinstance(found.outcome, MissingExtraError)
    assert "No module named 'no_such_package'" in found.outcome.message
