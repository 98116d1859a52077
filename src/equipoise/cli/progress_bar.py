"""The progress bar of a command: steps or items, the share of the current step, and the remaining time."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Mapping
from datetime import timedelta
from time import monotonic
from types import TracebackType
from typing import Self

from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, Task, TextColumn, TimeElapsedColumn
from rich.text import Text

from equipoise.progress import listen
from equipoise.report.terminal import console

MIN_INTERVAL = 0.1
"""Seconds between two updates within a step: reports may come in quick succession."""

WINDOW_SECONDS = 15.0
"""The remaining time follows from the rate in this many seconds."""

START_SECONDS = 0.25
"""What is finished so early was stored by an earlier command, or is in a cache; it says nothing on the rate."""

MIN_SECONDS = 0.5
"""A rate over a shorter time is not shown."""


class RemainingTime:
    """The remaining time, from the rate of progress; time without known progress, such as loading, does not count.

    >>> times = iter([0.0, 10.0, 12.0])
    >>> remaining_time = RemainingTime(clock=lambda: next(times))
    >>> remaining_time.record(0.25)
    >>> remaining_time.remaining(1.0)
    28.0
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._paused_at: float | None = None
        self._start = clock()
        self._samples: deque[tuple[float, float]] = deque([(self._start, 0.0)])

    def record(self, position: float) -> None:
        """Note a new position; one that is not greater than the last one is ignored."""
        now = self._clock()
        if position <= self._samples[-1][1]:
            return
        if now < self._start + START_SECONDS:
            self._samples.clear()
        self._samples.append((now, position))
        while len(self._samples) > 2 and self._samples[1][0] < now - WINDOW_SECONDS:
            self._samples.popleft()

    def pause(self, paused: bool) -> None:
        """Stop and start the time."""
        now = self._clock()
        if paused and self._paused_at is None:
            self._paused_at = now
        elif not paused and self._paused_at is not None:
            pause, self._paused_at = now - self._paused_at, None
            self._start += pause
            self._samples = deque((at + pause, position) for at, position in self._samples)

    def remaining(self, total: float | None) -> float | None:
        """Seconds from now until the total; None if it is unknown, or if the last estimate has passed."""
        (start, first), (end, last) = self._samples[0], self._samples[-1]
        if not total or last <= first or end - start < MIN_SECONDS:
            return None
        now = self._clock() if self._paused_at is None else self._paused_at
        seconds = (total - last) * (end - start) / (last - first) - (now - end)
        return seconds if seconds > 0 else None


class ProgressBar:
    """One line on standard error: what runs, how much is done, the elapsed and the remaining time.

    With ``follows_shares``, the shares that running code reports move the bar within a step; otherwise it has items.
    A bar without a total shows a spinner until the first of these reports. ``weights`` are the expected relative times
    of steps by their texts; that of other steps is 1.
    """

    def __init__(
        self,
        description: str,
        total: int | None,
        *,
        follows_shares: bool = True,
        weights: Mapping[str, float] | None = None,
    ) -> None:
        self._follows_shares, self._weights = follows_shares, weights or {}
        self._text, self._activity = description, ""
        self._done, self._total = 0, total
        self._finished, self._weight, self._share = 0.0, 1.0, 0.0
        self._updated = 0.0
        self._estimate = RemainingTime()
        columns = (
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            _BarOfTotal(),
            TextColumn("{task.fields[count]}", style="progress.download", markup=False),
            TimeElapsedColumn(),
            _Remaining(self._estimate),
        )
        self._progress = Progress(*columns, console=console(sys.stderr), transient=True)
        self._task = self._progress.add_task(description, total=None, count="")
        self._show(now=True)

    def __enter__(self) -> Self:
        self._progress.__enter__()
        self._listening = listen(self._listen)
        self._listening.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listening.__exit__(kind, error, trace)
        self._progress.__exit__(kind, error, trace)

    def update(self, done: int, text: str, total: int | None) -> None:
        """Start the step after ``done`` of ``total`` steps, or show the number of finished items."""
        if self._follows_shares:
            self._finished += self._weight * (done - self._done)
            self._weight = self._weights.get(text, 1.0)
        else:
            self._finished = done
        self._done, self._text = done, text
        if total or not self._follows_shares:  # steps whose number is unknown are parts of one
            self._total, self._share = total, 0.0
        self._show(now=self._follows_shares or done == total)

    def _listen(self, share: float | None, text: str | None) -> None:
        if text is not None:
            self._activity = text
            self._estimate.pause(bool(text))
            self._show(now=True)
        elif self._follows_shares and share is not None and share > self._share:
            self._share = share
            self._total = self._total or 1
            self._show()

    def _show(self, *, now: bool = False) -> None:
        time = monotonic()
        if not now and time < self._updated + MIN_INTERVAL:
            return
        self._updated = time
        position, total = self._finished + self._share * self._weight, None
        if self._total:
            total = sum(self._weights.values()) + max(0, self._total - len(self._weights))
        self._estimate.record(position)
        self._progress.update(
            self._task,
            description=self._description(),
            completed=position,
            total=total,
            count=self._count(),
        )

    def _description(self) -> str:
        """What the step is, and what it does; "loading" is written once."""
        is_same = self._text.split(" ")[0] == self._activity.split(" ")[0]
        return self._activity if is_same else ": ".join(filter(None, (self._text, self._activity)))

    def _count(self) -> str:
        """Finished steps or items and their total; the percentage of a single step."""
        if not self._total:
            return ""
        if self._total == 1 and self._follows_shares:
            return f"{self._share:.0%}" if self._done == 0 else "100%"
        return f"{self._done}/{self._total}"


class _BarOfTotal(BarColumn):
    """The bar, if the total is known."""

    def render(self, task: Task) -> Text:  # type: ignore[override]
        return super().render(task) if task.total else Text()  # type: ignore[return-value]


class _Remaining(ProgressColumn):
    """The remaining time, as soon as it can be estimated."""

    max_refresh = 0.5

    def __init__(self, estimate: RemainingTime) -> None:
        super().__init__()
        self._estimate = estimate

    def render(self, task: Task) -> Text:
        seconds = self._estimate.remaining(task.total)
        if seconds is None:
            return Text()
        return Text(f"{timedelta(seconds=max(1, round(seconds)))} remaining", style="progress.remaining")
