"""Jobs: resuming, storing, failures, and the map functions built on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.errors import InputError, MissingExtraError, PartialError, StoreError
from equipoise.runs.executors import Completed, Executor, LocalExecutor
from equipoise.runs.progress_file import RESUME_NOTE
from equipoise.runs.runner import (
    MAX_CONSECUTIVE_FAILURES,
    Job,
    JobContext,
    JobOutput,
    StoredOutput,
    executor_map,
    iter_jobs,
    resumable_map,
    resume_key,
    run_jobs,
)


class ReversedExecutor(Executor):
    """A remote executor that completes the last item first."""

    name = "reversed"

    def map(
        self, function: Callable[..., Any], items: Sequence[Any], shared: Any, **options: Any
    ) -> Iterator[Completed[Any]]:
        for index in reversed(range(len(items))):
            (completed,) = LocalExecutor().map(function, [items[index]], shared, **options)
            yield replace(completed, index=index)


EXECUTORS = [LocalExecutor(), ReversedExecutor()]


@dataclass
class MemoryStore:
    """Outputs in memory, with the order in which they were saved."""

    outputs: dict[str, StoredOutput[Any]] = field(default_factory=dict)
    writable: bool = True

    def check_writable(self) -> None:
        if not self.writable:
            raise StoreError("the folder cannot be written")

    def load(self, job: Job[Any]) -> StoredOutput[Any] | None:
        return self.outputs.get(job.name)

    def save(self, job: Job[Any], value: Any, *, key: str, seconds: float) -> None:
        assert seconds >= 0
        self.outputs[job.name] = StoredOutput(key, value)


executed: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    executed.clear()


def divide(job: Job[int], context: JobContext[int]) -> JobOutput[float]:
    """Divide the shared number by the input; the key is computed by the worker."""
    context.progress(job.name)
    key = f"{context.shared} / {job.inputs}"
    if key == context.stored_key:
        return JobOutput(None, key)
    executed.append(job.name)
    return JobOutput(context.shared / job.inputs, key)


def number_jobs(*inputs: int) -> list[Job[int]]:
    return [Job(f"job {number}", number) for number in inputs]


@pytest.mark.parametrize("executor", EXECUTORS)
def test_results_have_the_order_of_the_jobs(executor: Executor) -> None:
    steps: list[str] = []
    results = run_jobs(divide, number_jobs(1, 2, 3), 12, executor=executor, progress=steps.append)
    assert list(results.outputs.items()) == [("job 1", 12.0), ("job 2", 6.0), ("job 3", 4.0)]
    assert sorted(steps) == ["job 1", "job 2", "job 3"]
    assert results.resumed == ()


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_key_that_the_worker_computes_decides_what_is_loaded(executor: Executor) -> None:
    store = MemoryStore()
    first = run_jobs(divide, number_jobs(1, 2), 12, executor=executor, store=store)
    executed.clear()
    second = run_jobs(divide, number_jobs(1, 2, 3), 12, executor=executor, store=store)
    assert executed == ["job 3"]
    assert second.resumed == ("job 1", "job 2")
    assert first.outputs.items() <= second.outputs.items()
    assert run_jobs(divide, number_jobs(1, 2), 24, executor=executor, store=store).resumed == ()


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_known_key_is_compared_before_the_job_is_sent(executor: Executor) -> None:
    store, jobs = MemoryStore(), [Job("a", 3, key="three"), Job("b", 4, key="four")]

    def negate(job: Job[int], context: JobContext[None]) -> JobOutput[int]:
        executed.append(job.name)
        return JobOutput(-job.inputs)

    run_jobs(negate, jobs, None, executor=executor, store=store)
    executed.clear()
    changed = [jobs[0], Job("b", 5, key="five")]
    results = run_jobs(negate, changed, None, executor=executor, store=store)
    assert (executed, results.resumed, results.outputs) == (["b"], ("a",), {"a": -3, "b": -5})


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_failing_job_does_not_lose_the_others(executor: Executor) -> None:
    store = MemoryStore()
    results = run_jobs(divide, number_jobs(1, 0, 3), 12, executor=executor, store=store)
    assert results.outputs == {"job 1": 12.0, "job 3": 4.0}
    (error,) = results.failures.values()
    assert isinstance(error, PartialError)
    assert isinstance(error.__cause__, ZeroDivisionError)
    assert set(store.outputs) == {"job 1", "job 3"}


@pytest.mark.parametrize("executor", EXECUTORS)
def test_finish_completes_the_others_and_raises_the_first_failure(executor: Executor) -> None:
    store = MemoryStore()
    with pytest.raises(ZeroDivisionError):
        run_jobs(divide, number_jobs(1, 0, 3), 12, executor=executor, store=store, on_failure="finish")
    assert set(store.outputs) == {"job 1", "job 3"}


def test_if_all_jobs_fail_the_first_error_is_raised() -> None:
    def fail(job: Job[int], context: JobContext[None]) -> JobOutput[int]:
        raise InputError(job.name)

    with pytest.raises(InputError, match="job 1"):
        run_jobs(fail, number_jobs(1, 2), None).raise_if_all_failed()
    run_jobs(divide, number_jobs(0, 2), 12).raise_if_all_failed()


def test_finish_ends_after_consecutive_failures() -> None:
    with pytest.raises(ZeroDivisionError):
        run_jobs(divide, number_jobs(*[0] * 100), 12, on_failure="finish")
    assert len(executed) == MAX_CONSECUTIVE_FAILURES


def test_each_output_is_stored_before_the_next_job_starts() -> None:
    store = MemoryStore()
    for n_completed, _ in enumerate(iter_jobs(divide, number_jobs(1, 2, 3), 12, store=store), 1):
        assert len(store.outputs) == len(executed) == n_completed


def test_an_interrupt_of_stored_jobs_says_how_to_resume() -> None:
    def interrupted(job: Job[int], context: JobContext[int]) -> JobOutput[float]:
        raise KeyboardInterrupt

    for store, notes in ((None, []), (MemoryStore(), [RESUME_NOTE])):
        with pytest.raises(KeyboardInterrupt) as raised:
            run_jobs(interrupted, number_jobs(1), 12, store=store)
        assert getattr(raised.value, "__notes__", []) == notes


def test_an_interrupt_loses_no_completed_job() -> None:
    def interrupted(job: Job[int], context: JobContext[int]) -> JobOutput[float]:
        if job.inputs == 3:
            raise KeyboardInterrupt
        return divide(job, context)

    store = MemoryStore()
    with pytest.raises(KeyboardInterrupt):
        run_jobs(interrupted, number_jobs(1, 2, 3, 4), 12, store=store)
    assert run_jobs(divide, number_jobs(1, 2, 3, 4), 12, store=store).resumed == ("job 1", "job 2")


def test_an_output_that_cannot_be_written_is_an_error_before_any_job() -> None:
    with pytest.raises(StoreError):
        run_jobs(divide, number_jobs(1), 12, store=MemoryStore(writable=False))
    assert executed == []


def test_a_single_divisible_job_runs_here_and_gets_the_remote_executor() -> None:
    executor = ReversedExecutor()

    def distribute(job: Job[list[int]], context: JobContext[None]) -> JobOutput[list[int]]:
        assert context.executor is executor
        values = dict(executor_map(context.executor)(abs, job.inputs))
        return JobOutput([values[index] for index in range(len(job.inputs))])

    jobs = [Job("alone", [-1, -2])]
    assert run_jobs(distribute, jobs, None, executor=executor, divisible=True).outputs == {"alone": [1, 2]}


def test_an_interrupted_divisible_job_restores_the_label_of_the_executor() -> None:
    def interrupt(job: Job[int], context: JobContext) -> JobOutput[int]:
        assert context.executor is executor
        assert executor.item_label == "a block of texts"
        raise KeyboardInterrupt

    executor = ReversedExecutor()
    with pytest.raises(KeyboardInterrupt):
        run_jobs(interrupt, number_jobs(1), None, executor=executor, divisible=True)
    assert executor.item_label == Executor.item_label


def test_a_divisible_job_is_sent_if_a_package_is_missing_here() -> None:
    def needs_package(job: Job[int], context: JobContext[None]) -> JobOutput[str]:
        if context.executor is not None:
            raise MissingExtraError("the package is missing")
        return JobOutput("sent")

    results = run_jobs(needs_package, number_jobs(1), None, executor=ReversedExecutor(), divisible=True)
    assert results.outputs == {"job 1": "sent"}


@given(st.lists(st.integers(), max_size=8))
def test_map_functions_are_map_for_any_order_of_completion(items: list[int]) -> None:
    for executor in EXECUTORS:
        assert list(resumable_map(executor)(str, items)) == list(map(str, items))  # type: ignore[arg-type]
        assert sorted(executor_map(executor)(str, items)) == list(enumerate(map(str, items)))


def test_a_map_function_raises_a_failure_after_all_other_values() -> None:
    values = executor_map(LocalExecutor())(lambda number: 6 // number, [1, 0, 2, 3])
    assert [next(values) for _ in range(3)] == [(0, 6), (2, 3), (3, 2)]
    with pytest.raises(ZeroDivisionError):
        next(values)


def test_a_map_function_may_return_none() -> None:
    assert list(executor_map(LocalExecutor())({1: "a"}.get, [1, 2])) == [(0, "a"), (1, None)]


def test_stored_values_of_a_map_function_are_not_computed_again(tmp_path: Path) -> None:
    def mean(rows: Any) -> float:
        executed.append("mean")
        return float(np.mean(rows))

    blocks = [np.arange(3.0), np.arange(4.0)]
    for _ in range(2):
        assert list(resumable_map(LocalExecutor(), tmp_path)(mean, blocks)) == [1.0, 1.5]  # type: ignore[arg-type]
    assert len(executed) == 2


@pytest.mark.parametrize(
    "other", [3.0, "3", (3,), [3], {"a": 3}, None, np.array([3]), np.array([3.0]), np.array(["3"], dtype=object), abs]
)
def test_keys_differ_by_type_and_value(other: Any) -> None:
    assert resume_key(3) != resume_key(other)
    assert resume_key(other) == resume_key(other)


def test_keys_do_not_depend_on_the_order_of_a_mapping() -> None:
    assert resume_key({"a": 1, "b": 2}) == resume_key({"b": 2, "a": 1})
    assert resume_key(["a", "b"], ["c"]) != resume_key(["a"], ["b", "c"])


def test_stored_outputs_count_as_progress() -> None:
    def double(job: Job[int], context: JobContext[None]) -> JobOutput[int]:
        context.progress(job.name)
        return JobOutput(2 * job.inputs)

    store, steps = MemoryStore(), []
    run_jobs(double, [Job("one", 1, "1")], None, store=store)
    run_jobs(double, [Job("one", 1, "1"), Job("two", 2, "2")], None, store=store, progress=steps.append)
    assert steps == ["one", "two"]
