"""The engine of this process, and the choice of engines."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_cells import complain, square
from equipoise.errors import InputError, MissingExtraError, ParameterError, UnknownNameError
from equipoise.extras import install_command
from equipoise.runs.executors import MAX_CONSECUTIVE_FAILURES, Completed, Executor, LocalExecutor, executor


class Backwards(Executor):
    """An engine whose last cell is finished first."""

    name = "backwards"

    def map(
        self, function: Callable[..., Any], cells: Sequence[Any], shared: Any, **options: Any
    ) -> Iterator[Completed[Any]]:
        for place in reversed(range(len(cells))):
            yield Completed(place, function(cells[place], shared, print))


def test_every_cell_is_handed_back_with_its_place_and_its_steps_are_told() -> None:
    told: list[str] = []
    found = list(LocalExecutor().map(square, [3, 5], 1, step=told.append))
    assert [(each.place, each.value()) for each in found] == [(0, 10), (1, 26)]
    assert told == ["square 3", "square 5"]


def test_a_cell_that_fails_leaves_the_others_alone() -> None:
    first, second, third = LocalExecutor().map(complain, ["ours", "theirs", "fine"], "")
    with pytest.raises(InputError, match="the cell is bad"):
        first.value()
    with pytest.raises(KeyError, match="lost"):
        second.value()
    assert third.value() == "fine"


def test_nothing_is_begun_before_the_one_before_was_taken() -> None:
    """So that whoever maps has written a cell down before the next one can take it with it."""
    begun: list[int] = []
    found = LocalExecutor().map(lambda cell, shared, step: begun.append(cell), [1, 2, 3], None)
    next(found)
    assert begun == [1]


@given(st.lists(st.integers(), max_size=8))
def test_in_order_is_map_whatever_is_finished_first(items: list[int]) -> None:
    for each in (LocalExecutor(), Backwards()):
        assert list(each.in_order(str, items)) == list(map(str, items))


def test_in_order_raises_the_error_of_the_first_cell_that_failed() -> None:
    values = LocalExecutor().in_order(lambda number: 1 // number, [1, 0, 2])
    assert next(values) == 1
    with pytest.raises(ZeroDivisionError):
        next(values)


@given(st.lists(st.integers(), max_size=8))
def test_answers_as_they_are_finished_know_their_places(items: list[int]) -> None:
    for each in (LocalExecutor(), Backwards()):
        found = list(each.as_finished(str, items))
        assert sorted(found) == list(enumerate(map(str, items)))
    assert [place for place, _ in found] == list(reversed(range(len(items))))


def test_a_failure_is_raised_when_all_others_are_there() -> None:
    values = LocalExecutor().as_finished(lambda number: 6 // number, [1, 0, 2, 3])
    assert [next(values) for _ in range(3)] == [(0, 6), (2, 3), (3, 2)]
    with pytest.raises(ZeroDivisionError):
        next(values)


def test_nothing_but_failures_ends_it() -> None:
    begun: list[int] = []

    def fails(number: int) -> int:
        begun.append(number)
        raise KeyError(number)

    with pytest.raises(KeyError, match="0"):
        list(LocalExecutor().as_finished(fails, range(1000)))
    assert len(begun) == MAX_CONSECUTIVE_FAILURES


def test_a_mistyped_engine_gets_a_did_you_mean() -> None:
    with pytest.raises(UnknownNameError) as caught:
        executor("rya")
    assert caught.value.hint == "did you mean ray?"


def test_an_address_is_no_use_in_this_process() -> None:
    with pytest.raises(ParameterError, match="of no use to the engine local"):
        executor("local", "head:6379")


def test_without_the_extra_the_install_line_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError) as caught, executor("ray"):
        pass
    assert caught.value.hint == install_command("ray")
