"""Asking again: exponential backoff with full jitter, at most so often and so long.

The wait before attempt n is uniform between 0 and ``first * 2**n`` seconds (capped); a server that says how
long to wait is obeyed instead. Only what may pass is tried again: 408, 409, 429, 5xx, timeouts and broken
connections.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from threading import Event
from typing import TypeVar

import numpy as np

T = TypeVar("T")

AGAIN = frozenset({408, 409, 425, 429})


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request came to nothing: a sentence without secrets, and what may help.

    ``wait_seconds`` is what the server asked for; ``too_large`` that a smaller batch may pass; ``wrong`` that
    an answer came which cannot be right, so that asking once more is of no use.
    """

    reason: str
    again: bool = False
    wait_seconds: float | None = None
    too_large: bool = False
    status: int | None = None
    wrong: bool = False


STOPPED = Refusal("another request failed")


class Refused(Exception):  # noqa: N818  (a signal; users meet the sentence made of it)
    """A request that came to nothing. It is raised outside of any handler, so that it chains to no
    exception of an engine, which may hold headers and keys."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.reason)
        self.refusal = refusal


@dataclass(frozen=True)
class Patience:
    """How often and how long to try, and how to wait."""

    attempts: int = 6
    total_seconds: float = 300.0
    first_seconds: float = 0.5
    longest_seconds: float = 60.0
    rng: np.random.Generator = field(default_factory=np.random.default_rng, repr=False)
    sleep: Callable[[float], None] = field(default=time.sleep, repr=False)
    clock: Callable[[], float] = field(default=time.monotonic, repr=False)

    def until(self, stop: Event) -> Patience:
        """The same, but real waiting ends when the event is set, and then nothing is tried again."""

        def sleep(seconds: float) -> None:
            if stop.is_set() or (self.sleep is time.sleep and stop.wait(seconds)):
                raise Refused(STOPPED)
            if self.sleep is not time.sleep:
                self.sleep(seconds)

        return replace(self, sleep=sleep)

    def wait_seconds(self, attempt: int, refusal: Refusal) -> float:
        """How long to wait after this attempt, counted from 1."""
        if refusal.wait_seconds is not None:
            return max(0.0, refusal.wait_seconds)
        ceiling = min(self.longest_seconds, self.first_seconds * 2.0 ** (attempt - 1))
        return float(self.rng.uniform(0.0, ceiling))


def persist(call: Callable[[], T], patience: Patience) -> T:
    """Call until it succeeds; raises ``Refused`` when trying again is useless or takes too long."""
    deadline = patience.clock() + patience.total_seconds
    attempt = 0
    while True:
        attempt += 1
        try:
            return call()
        except Refused as error:
            refusal = error.refusal
        if not refusal.again:
            raise Refused(refusal)
        wait = patience.wait_seconds(attempt, refusal)
        if attempt >= patience.attempts:
            raise Refused(_tried(refusal, f"{attempt} attempts"))
        if patience.clock() + wait > deadline:
            asked = f"it asks to wait {wait:.0f} s" if refusal.wait_seconds else "the time is up"
            raise Refused(_tried(refusal, f"{attempt} attempt{'s' if attempt > 1 else ''}; {asked}"))
        patience.sleep(wait)


def _tried(refusal: Refusal, how: str) -> Refusal:
    return Refusal(f"{refusal.reason} (after {how})", status=refusal.status)
