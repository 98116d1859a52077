"""Waiting and asking again: how long, how often, and what is worth it."""

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

PASSING = RequestFailure("busy", again=True)


class Clock:
    """Time that passes only while someone sleeps."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def patience(clock: Clock, **options: float) -> RetryPolicy:
    rng = np.random.default_rng(1)
    return RetryPolicy(rng=rng, sleep=clock.sleep, clock=lambda: clock.now, **options)  # type: ignore[arg-type]


def failing(times: int, refusal: RequestFailure = PASSING):
    """A call that is refused so often, and then answers."""
    left = [times]

    def call() -> str:
        if left[0]:
            left[0] -= 1
            raise RequestFailedError(refusal)
        return "done"

    return call


def test_a_call_that_succeeds_waits_for_nothing() -> None:
    clock = Clock()
    assert call_with_retries(failing(0), patience(clock)) == "done"
    assert clock.slept == []


def test_waits_are_spread_evenly_below_a_ceiling_that_doubles() -> None:
    clock = Clock()
    waits = patience(clock, first_seconds=1.0, longest_seconds=8.0)
    drawn = np.array([[waits.wait_seconds(n, PASSING) for n in range(1, 7)] for _ in range(4000)])
    ceilings = np.array([1, 2, 4, 8, 8, 8])
    assert (drawn < ceilings).all()
    assert (drawn >= 0).all()
    np.testing.assert_allclose(drawn.mean(axis=0), ceilings / 2, rtol=0.05)
    np.testing.assert_allclose(drawn.std(axis=0), ceilings / 12**0.5, rtol=0.05)


def test_attempts_and_time_are_bounded() -> None:
    clock = Clock()
    with pytest.raises(RequestFailedError, match="after 5 attempts"):
        call_with_retries(failing(99), patience(clock, attempts=5))
    assert len(clock.slept) == 4
    clock = Clock()
    slow = RequestFailure("busy", again=True, wait_seconds=40.0)
    with pytest.raises(RequestFailedError, match="40 s"):
        call_with_retries(failing(99, slow), patience(clock, attempts=50, total_seconds=100.0))
    assert clock.slept == [40.0, 40.0]


def test_what_cannot_pass_is_not_tried_again() -> None:
    clock = Clock()
    with pytest.raises(RequestFailedError):
        call_with_retries(failing(1, RequestFailure("no such model")), patience(clock))
    assert clock.slept == []


def test_a_refusal_chains_to_nothing() -> None:
    with pytest.raises(RequestFailedError) as caught:
        call_with_retries(failing(99), patience(Clock(), attempts=2))
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


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
def test_what_servers_say_about_waiting_is_read(headers, seconds) -> None:
    assert retry_after_seconds(headers, now=1_700_000_000) == (None if seconds is None else pytest.approx(seconds))


@given(st.dictionaries(st.sampled_from(["retry-after", "retry-after-ms", "x-ratelimit-reset"]), st.text()))
def test_no_header_breaks_the_reading(headers: dict[str, str]) -> None:
    seconds = retry_after_seconds(headers, now=0.0)
    assert seconds is None or 0 <= seconds < float("inf")


def test_an_error_of_no_known_kind_is_not_tried_again() -> None:
    refusal = classify_error(KeyError("oops"))
    assert not refusal.again
    assert "KeyError" in refusal.reason


# -- secrets -------------------------------------------------------------------------------------------


WORD = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=6, max_size=40)


@given(WORD, st.text(), st.text())
def test_a_secret_of_the_environment_is_never_said(secret: str, before: str, after: str) -> None:
    secrets = environment_secrets({"SOME_API_KEY": secret, "PATH": "/usr/bin"})
    assert secrets == [secret]
    said = without_secrets(f"{before} {secret} {after}", secrets)
    if secret not in HIDDEN:
        assert secret not in said.replace(HIDDEN, "")


@pytest.mark.parametrize(
    "text",
    [
        "Authorization: Bearer abcdefghijklmnop",
        '{"api-key": "abcdefghijklmnop"}',
        "Incorrect key sk-proj-abcdefghijklmnop given",
        "api_key=abcdefghijklmnop",
    ],
)
def test_what_looks_like_a_key_is_not_said_either(text: str) -> None:
    assert "abcdefghijklmnop" not in without_secrets(text, [])


def test_ordinary_words_stay() -> None:
    text = "the maximum context length is 8192 tokens (your key is fine)"
    assert without_secrets(text, []) == text


# -- several at once -----------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 3])
def test_after_an_error_nothing_new_is_begun(workers: int) -> None:
    begun: list[int] = []

    def job(number: int):
        def run(stop: threading.Event) -> int:
            begun.append(number)
            if number == 2:
                raise RequestFailedError(PASSING)
            if number > 2:
                stop.wait(5)
            return number * 10

        return run

    outcomes = run_concurrently([job(number) for number in range(50)], workers)
    assert [outcome.value for outcome in outcomes[:2]] == [0, 10]
    assert isinstance(outcomes[2].error, RequestFailedError)
    assert len(begun) <= 2 + workers
    assert all(outcome.value is None for outcome in outcomes[10:])


def test_a_wait_ends_when_another_request_has_failed() -> None:
    stop = threading.Event()
    stop.set()
    with pytest.raises(RequestFailedError) as caught:
        call_with_retries(failing(1, RequestFailure("busy", again=True, wait_seconds=60.0)), RetryPolicy().until(stop))
    assert caught.value.refusal is STOPPED
