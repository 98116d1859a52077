"""Tests without a cluster: an engine that is not connected, and checks of a worker before a job."""

from __future__ import annotations

import pickle

import pytest

from cluster_cells import square
from equipoise.errors import MissingExtraError, ParameterError
from equipoise.runs.executors.ray import RayExecutor
from equipoise.runs.executors.ray_worker import WorkerEnvironment, run_item

SHARED = pickle.dumps(0)


def test_an_engine_that_is_not_connected_is_an_error() -> None:
    with pytest.raises(ParameterError) as error:
        next(RayExecutor().map(square, [1], 0))
    assert error.value.code == "E310"


def test_a_worker_of_another_version_is_an_error() -> None:
    completed = run_item(pickle.dumps((square, 1)), SHARED, pickle.dumps(WorkerEnvironment(version="0.0.1")))
    assert isinstance(completed.outcome, MissingExtraError)
    assert "the caller has 0.0.1" in completed.outcome.message
    assert completed.outcome.exit_code == 4
    assert completed.unfit


def test_a_worker_without_the_package_of_a_job_is_an_error() -> None:
    completed = run_item(b"cno_such_package\nmodel\n.", SHARED, pickle.dumps(WorkerEnvironment()))
    assert isinstance(completed.outcome, MissingExtraError)
    assert "No module named 'no_such_package'" in completed.outcome.message
