"""Retries: waits, attempts, errors and secrets."""

from __future__ import annotations

import threading
from email.utils import formatdate

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.models.backends.hosted import run_concurrently
from equipoise.models.backends.hosted_retry import (
    STOPPED,
    RequestFailedError,
    RequestFailure,
    RetryPolicy,
    call_with_retries,
    classify_error,
    environment_secrets,
    retry_after_seconds,
    without_secrets,
)
from equipoise.redaction import HIDDEN

TEMPORARY_FAILURE = RequestFailure("busy", again=True)


class Clock:
    """A clock that advances only in ``sleep``."""

    def __init__(self) -> None:
        self.now = 0.0
        self.waits: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds


def retry_policy(clock: Clock, **options: float) -> RetryPolicy:
    rng = np.random.default_rng(1)
    return RetryPolicy(rng=rng, sleep=clock.sleep, clock=lambda: clock.now, **options)  # type: ignore[arg-type]


def failing_call(times: int, failure: RequestFailure = TEMPORARY_FAILURE):
    """A call that fails a number of times and then succeeds."""
    remaining = [times]

    def call() -> str:
        if remaining[0]:
            remaining[0] -= 1
            raise RequestFailedError(failure)
        return "done"

    return call


def test_successful_calls_do_not_wait() -> None:
    clock = Clock()
    assert call_with_retries(failing_call(0), retry_policy(clock)) == "done"
    assert clock.waits == []


def test_waits_are_uniform_below_a_doubling_limit() -> None:
    clock = Clock()
    policy = retry_policy(clock, first_seconds=1.0, longest_seconds=8.0)
    sampled_waits = np.array([[policy.wait_seconds(n, TEMPORARY_FAILURE) for n in range(1, 7)] for _ in range(4000)])
    limits = np.array([1, 2, 4, 8, 8, 8])
    assert (sampled_waits < limits).all()
    assert (sampled_waits >= 0).all()
    np.testing.assert_allclose(sampled_waits.mean(axis=0), limits / 2, rtol=0.05)
    np.testing.assert_allclose(sampled_waits.std(axis=0), limits / 12**0.5, rtol=0.05)


def test_attempts_and_time_are_bounded() -> None:
    clock = Clock()
    with pytest.raises(RequestFailedError, match="after 5 attempts"):
        call_with_retries(failing_call(99), retry_policy(clock, attempts=5))
    assert len(clock.waits) == 4
    clock = Clock()
    long_wait = RequestFailure("busy", again=True, wait_seconds=40.0)
    with pytest.raises(RequestFailedError, match="40 s"):
        call_with_retries(failing_call(99, long_wait), retry_policy(clock, attempts=50, total_seconds=100.0))
    assert clock.waits == [40.0, 40.0]


def test_permanent_failures_are_not_retried() -> None:
    clock = Clock()
    with pytest.raises(RequestFailedError):
        call_with_retries(failing_call(1, RequestFailure("no such model")), retry_policy(clock))
    assert clock.waits == []


def test_request_errors_have_no_cause() -> None:
    with pytest.raises(RequestFailedError) as error:
        call_with_retries(failing_call(99), retry_policy(Clock(), attempts=2))
    assert error.value.__cause__ is None
    assert error.value.__context__ is None


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "0"}, 0.0),
        ({"retry-after": "1.5", "x-ratelimit-reset-tokens": "9s"}, 1.5),
        ({"Retry-After": formatdate(1_700_000_030, usegmt=True)}, 30.0),
        ({"Retry-After": formatdate(1_600_000_000, usegmt=True)}, 0.0),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "-5"}, None),
        ({"x-ratelimit-reset-requests": "1h2m3s4ms"}, 3723.004),
        ({"x-ratelimit-remaining-requests": "7", "x-ratelimit-reset-requests": "1h"}, None),
        ({"x-ratelimit-reset": "1700000012"}, 12.0),
        ({"ratelimit-reset": "20", "ratelimit-remaining": "0"}, 20.0),
        ({"x-ratelimit-reset": "whenever"}, None),
        ({"x-ratelimit-reset-requests": "1s", "x-ratelimit-reset-tokens": "5s"}, 5.0),
    ],
)
def test_retry_headers_are_parsed(headers, seconds) -> None:
    assert retry_after_seconds(headers, now=1_700_000_000) == (None if seconds is None else pytest.approx(seconds))


@given(st.dictionaries(st.sampled_from(["retry-after", "retry-after-ms", "x-ratelimit-reset"]), st.text()))
def test_any_headers_give_a_wait_or_none(headers: dict[str, str]) -> None:
    seconds = retry_after_seconds(headers, now=0.0)
    assert seconds is None or 0 <= seconds < float("inf")


def test_unknown_errors_are_not_retried() -> None:
    failure = classify_error(KeyError("oops"))
    assert not failure.again
    assert "KeyError" in failure.reason


# -- secrets -------------------------------------------------------------------------------------------


WORD = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=6, max_size=40)


@given(WORD, st.text(), st.text())
def test_secrets_of_the_environment_are_removed(secret: str, before: str, after: str) -> None:
    secrets = environment_secrets({"SOME_API_KEY": secret, "PATH": "/usr/bin"})
    assert secrets == [secret]
    redacted = without_secrets(f"{before} {secret} {after}", secrets)
    if secret not in HIDDEN:
        assert secret not in redacted.replace(HIDDEN, "")


@pytest.mark.parametrize(
    "text",
    [
        "Authorization: Bearer abcdefghijklmnop",
        '{"api-key": "abcdefghijklmnop"}',
        "Incorrect key sk-proj-abcdefghijklmnop given",
        "api_key=abcdefghijklmnop",
    ],
)
def test_texts_that_look_like_keys_are_removed(text: str) -> None:
    assert "abcdefghijklmnop" not in without_secrets(text, [])


def test_other_texts_are_kept() -> None:
    text = "the maximum context length is 8192 tokens (your key is fine)"
    assert without_secrets(text, []) == text


# -- concurrency ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 3])
def test_no_jobs_are_started_after_an_error(workers: int) -> None:
    started: list[int] = []

    def job(number: int):
        def run(stop: threading.Event) -> int:
            started.append(number)
            if number == 2:
                raise RequestFailedError(TEMPORARY_FAILURE)
            if number > 2:
                stop.wait(5)
            return number * 10

        return run

    outcomes = run_concurrently([job(number) for number in range(50)], workers)
    assert [outcome.value for outcome in outcomes[:2]] == [0, 10]
    assert isinstance(outcomes[2].error, RequestFailedError)
    assert len(started) <= 2 + workers
    assert all(outcome.value is None for outcome in outcomes[10:])


def test_waits_end_after_another_request_failed() -> None:
    stop = threading.Event()
    stop.set()
    with pytest.raises(RequestFailedError) as error:
        call_with_retries(
            failing_call(1, RequestFailure("busy", again=True, wait_seconds=60.0)), RetryPolicy().until(stop)
        )
    assert error.value.failure is STOPPED
