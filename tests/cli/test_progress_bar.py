"""The progress bar: what it shows, when, and that it is silent where nobody looks."""

from __future__ import annotations

import io
import time
from contextlib import redirect_stderr

import pytest

from equipoise.cli.output import Output
from equipoise.cli.progress_bar import ProgressBar, RemainingTime
from equipoise.progress import activity, report_share


class Clock:
    """A clock that is set."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def estimate(clock: Clock) -> RemainingTime:
    return RemainingTime(clock)


def test_the_remaining_time_follows_from_the_rate_and_counts_down(estimate: RemainingTime, clock: Clock) -> None:
    assert estimate.remaining(1.0) is None
    clock.now = 2.0
    estimate.record(0.2)
    assert estimate.remaining(1.0) == pytest.approx(8.0)
    clock.now = 5.0
    assert estimate.remaining(1.0) == pytest.approx(5.0)
    clock.now = 11.0
    assert estimate.remaining(1.0) is None


def test_loading_does_not_count(estimate: RemainingTime, clock: Clock) -> None:
    estimate.pause(True)
    clock.now = 30.0
    estimate.pause(False)
    clock.now = 32.0
    estimate.record(0.5)
    assert estimate.remaining(1.0) == pytest.approx(2.0)


def test_stored_results_do_not_count(estimate: RemainingTime, clock: Clock) -> None:
    clock.now = 0.1
    estimate.record(8.0)
    clock.now = 5.1
    estimate.record(9.0)
    assert estimate.remaining(10.0) == pytest.approx(5.0)


def test_a_short_time_gives_no_estimate(estimate: RemainingTime, clock: Clock) -> None:
    clock.now = 0.3
    estimate.record(0.001)
    assert estimate.remaining(1.0) is None


class Terminal(io.StringIO):
    """A stream that is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    stream = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    return stream


def test_a_single_step_shows_what_it_does_and_its_percentage(terminal: Terminal) -> None:
    with redirect_stderr(terminal), Output().working("embedding"):
        with activity("loading minilm"):
            time.sleep(0.15)
        time.sleep(0.15)
        report_share(1, 4)
        time.sleep(0.15)
    shown = terminal.getvalue()
    assert "embedding: loading minilm" in shown
    assert "25%" in shown
    assert "--:--" not in shown


def test_the_share_of_a_step_moves_the_bar_by_its_weight(terminal: Terminal) -> None:
    with redirect_stderr(terminal), ProgressBar("starting", 2, weights={"slow": 3.0, "fast": 1.0}) as bar:
        bar.update(0, "slow", 2)
        time.sleep(0.15)
        report_share(1, 2)
        (task,) = bar._progress.tasks
        assert (task.completed, task.total) == (1.5, 4.0)
        bar.update(1, "fast", 2)
        assert (task.completed, task.total) == (3.0, 4.0)


def test_items_are_not_moved_by_shares(terminal: Terminal) -> None:
    with redirect_stderr(terminal), Output().count("reading", 10) as count:
        count(2)
        report_share(9, 10)
        time.sleep(0.15)
        count(3)
        time.sleep(0.15)
    assert "3/10" in terminal.getvalue()
    assert "9/10" not in terminal.getvalue()


def test_reports_in_quick_succession_are_not_all_drawn(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    updates = []
    with redirect_stderr(terminal), ProgressBar("training", None) as bar:
        monkeypatch.setattr(bar._progress, "update", lambda *arguments, **fields: updates.append(fields))
        start = time.monotonic()
        for number in range(20_000):
            report_share(number, 20_000)
        assert len(updates) <= (time.monotonic() - start) / 0.1 + 1


@pytest.mark.parametrize(("output", "is_terminal"), [(Output(quiet=True), True), (Output(json=True), False)])
def test_nothing_is_shown_with_quiet_or_without_a_terminal(
    output: Output, is_terminal: bool, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Terminal, "isatty", lambda self: is_terminal)
    with redirect_stderr(terminal), output.progress(2) as step, activity("loading minilm"):
        step("first")
        report_share(1, 2)
    assert terminal.getvalue() == ""
