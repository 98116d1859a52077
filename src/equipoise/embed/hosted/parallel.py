"""Several requests at once: the first failure stops the rest, and what was done is kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from threading import Event
from typing import Generic, TypeVar

T = TypeVar("T")

Job = Callable[[Event], T]
"""Work that ends early, by an exception of its own, when the event is set."""


@dataclass(frozen=True, slots=True)
class Outcome(Generic[T]):
    """What became of a job: a value, an error, or neither when it was not begun."""

    value: T | None = None
    error: Exception | None = None


def run_all(jobs: Sequence[Job[T]], workers: int) -> list[Outcome[T]]:
    """Run the jobs in order, so many at a time; after an error none is begun.

    >>> [outcome.value for outcome in run_all([lambda stop: 1, lambda stop: 2], workers=2)]
    [1, 2]
    """
    stop = Event()
    outcomes: list[Outcome[T]] = [Outcome() for _ in jobs]

    def run(number: int) -> None:
        if stop.is_set():
            return
        try:
            outcomes[number] = Outcome(jobs[number](stop))
        except Exception as error:
            stop.set()
            outcomes[number] = Outcome(error=error)

    if min(workers, len(jobs)) < 2:
        for number in range(len(jobs)):
            run(number)
        return outcomes
    with ThreadPoolExecutor(min(workers, len(jobs))) as pool:
        try:
            wait([pool.submit(run, number) for number in range(len(jobs))])
        finally:
            stop.set()
    return outcomes
