"""The local engine, and the selection of engines."""

from __future__ import annotations

import sys

import pytest

from cluster_cells import fail_as_named, square
from equipoise.errors import InputError, MissingExtraError, ParameterError, UnknownNameError
from equipoise.runs.executors import LocalExecutor, executor
from equipoise.types import install_command


def test_every_item_is_returned_with_its_index_and_its_steps_are_reported() -> None:
    steps: list[str] = []
    completed = list(LocalExecutor().map(square, [3, 5], 1, progress=steps.append))
    assert [(item.index, item.value()) for item in completed] == [(0, 10), (1, 26)]
    assert steps == ["square 3", "square 5"]


def test_a_failing_item_does_not_stop_the_others() -> None:
    first, second, third = LocalExecutor().map(fail_as_named, ["input-error", "key-error", "fine"], "")
    with pytest.raises(InputError) as error:
        first.value()
    assert error.value.code == "E200"
    with pytest.raises(KeyError, match="lost"):
        second.value()
    assert third.value() == "fine"


def test_items_start_after_the_previous_outcome_was_consumed() -> None:
    """So that the caller has stored an outcome before the next item can fail."""
    started: list[int] = []
    next(LocalExecutor().map(lambda item, shared, progress: started.append(item), [1, 2, 3], None))
    assert started == [1]


def test_a_mistyped_engine_gets_a_suggestion() -> None:
    with pytest.raises(UnknownNameError) as error:
        executor("rya")
    assert error.value.hint == "did you mean ray?"


def test_an_address_with_the_local_engine_is_an_error() -> None:
    with pytest.raises(ParameterError) as error:
        executor("local", "head:6379")
    assert error.value.code == "E310"


def test_a_missing_extra_is_an_error_with_the_install_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError) as error, executor("ray"):
        pass
    assert error.value.hint == install_command("ray")
