"""Retries of API requests: classify errors, wait with exponential backoff, and keep keys out of messages."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from email.utils import parsedate_to_datetime
from threading import Event
from typing import TypeVar

import numpy as np

from equipoise.errors import MissingExtraError
from equipoise.redaction import HIDDEN, note_secret, redact

# Exponential backoff with full jitter, with limits on attempts and total time.

T = TypeVar("T")

RETRYABLE_STATUS = frozenset({408, 409, 425, 429})


@dataclass(frozen=True, slots=True)
class RequestFailure:
    """Why a request failed: a message without secrets, and whether a retry may help.

    ``wait_seconds`` is the wait requested by the server. With ``too_large`` a smaller batch may succeed; after an
    ``invalid_response`` a retry would not help. ``disconnected`` if there was no response at all.
    """

    reason: str
    again: bool = False
    wait_seconds: float | None = None
    too_large: bool = False
    status: int | None = None
    invalid_response: bool = False
    disconnected: bool = False


STOPPED = RequestFailure("another request failed")


class RequestFailedError(Exception):
    """A failed request. It is raised outside of any handler, so that it chains to no
    exception of an engine, which may hold headers and keys."""

    def __init__(self, failure: RequestFailure) -> None:
        super().__init__(failure.reason)
        self.failure = failure


@dataclass(frozen=True)
class RetryPolicy:
    """The number and total time of attempts, and the waits between them."""

    attempts: int = 6
    total_seconds: float = 300.0
    first_seconds: float = 0.5
    longest_seconds: float = 60.0
    rng: np.random.Generator = field(default_factory=np.random.default_rng, repr=False)
    sleep: Callable[[float], None] = field(default=time.sleep, repr=False)
    clock: Callable[[], float] = field(default=time.monotonic, repr=False)

    def until(self, stop: Event) -> RetryPolicy:
        """The same policy, but waiting ends when the event is set, and there are no further attempts."""

        def sleep(seconds: float) -> None:
            if stop.is_set() or (self.sleep is time.sleep and stop.wait(seconds)):
                raise RequestFailedError(STOPPED)
            if self.sleep is not time.sleep:
                self.sleep(seconds)

        return replace(self, sleep=sleep)

    def wait_seconds(self, attempt: int, failure: RequestFailure) -> float:
        """How long to wait after this attempt, counted from 1."""
        if failure.wait_seconds is not None:
            return max(0.0, failure.wait_seconds)
        ceiling = min(self.longest_seconds, self.first_seconds * 2.0 ** (attempt - 1))
        return float(self.rng.uniform(0.0, ceiling))


def call_with_retries(call: Callable[[], T], retry_policy: RetryPolicy) -> T:
    """Call until it succeeds; raises ``RequestFailedError`` when trying again is useless or takes too long."""
    deadline = retry_policy.clock() + retry_policy.total_seconds
    attempt = 0
    while True:
        attempt += 1
        try:
            return call()
        except RequestFailedError as error:
            failure = error.failure
        if not failure.again:
            raise RequestFailedError(failure)
        wait = retry_policy.wait_seconds(attempt, failure)
        if attempt >= retry_policy.attempts:
            raise RequestFailedError(_with_attempts(failure, f"{attempt} attempts"))
        if retry_policy.clock() + wait > deadline:
            reason = f"it asks to wait {wait:.0f} s" if failure.wait_seconds else "the time is up"
            raise RequestFailedError(
                _with_attempts(failure, f"{attempt} attempt{'s' if attempt > 1 else ''}; {reason}")
            )
        retry_policy.sleep(wait)


def _with_attempts(failure: RequestFailure, attempts: str) -> RequestFailure:
    return RequestFailure(
        f"{failure.reason} (after {attempts})", status=failure.status, disconnected=failure.disconnected
    )


# Keys are read from the environment, are sent to the server only, and are redacted in messages.

MAX_MESSAGE_LENGTH = 300
_READ = 20_000

_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL", re.IGNORECASE)
_BEARER = re.compile(r"(?i)(bearer\s+|(?:authorization|api[-_]?key)\W{1,5}(?:bearer\s+)?)[\w.~+/=-]{8,}")
_KEY_SHAPE = re.compile(r"\b(?:sk|pk|rk|pa|co)-[A-Za-z0-9_-]{8,}")
_MIN_SECRET_LENGTH = 6


def environment_secrets(environment: Mapping[str, str] | None = None) -> list[str]:
    """The values in the environment whose names indicate a secret, longest first."""
    source = os.environ if environment is None else environment
    values = {
        part
        for name, value in source.items()
        if _SECRET_NAME.search(name)
        for part in (value, value.strip())
        if len(part) >= _MIN_SECRET_LENGTH
    }
    return sorted(values, key=len, reverse=True)


def without_secrets(text: str, secrets: Iterable[str] | None = None) -> str:
    """A message of a server, on one line and shortened, without keys and similar strings.

    Hidden are the secrets that were used, in every form, and those of the environment.

    >>> without_secrets("401: Incorrect API key provided: sk-abcdefgh1234", [])
    '401: Incorrect API key provided: [hidden]'
    """
    cut = len(text) > _READ
    text = redact(redact(text[:_READ]), list(environment_secrets() if secrets is None else secrets))
    text = _KEY_SHAPE.sub(HIDDEN, text)
    text = _BEARER.sub(rf"\1{HIDDEN}", text)
    line = " ".join(text.split())
    # The truncation may have split a key, and a part of it may be too short to be recognised.
    line = line[:-8] if cut else line
    return line if len(line) <= MAX_MESSAGE_LENGTH else f"{line[: MAX_MESSAGE_LENGTH - 3]}..."


def api_key_from_env(*names: str) -> str | None:
    """The first of these variables that holds something; nothing that is printed repeats it."""
    values = (os.environ.get(name, "").strip() for name in names)
    key = next((value for value in values if value), None)
    note_secret(key)
    return key


def missing_api_key_error(service: str, *names: str) -> MissingExtraError:
    """The error for a service whose key is not in the environment."""
    return MissingExtraError(
        f"{service} needs a key, and {' or '.join(names)} is not set",
        hint=f"export {names[0]}=... (keys are read from the environment only)",
    )


_TOO_LARGE = re.compile(
    r"context.?length|too (?:long|large|many|big)|(?:maximum|max)\b.{0,60}?(?:token|length|batch|input|size)"
    r"|exceed|less than \d+ tokens|batch size|must have less",
    re.IGNORECASE,
)
_SPENT = re.compile(r"insufficient_quota|exceeded your current quota|billing", re.IGNORECASE)
_LASTING = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_EPOCH = 1_000_000_000
_TIMEOUTS = ("Timeout",)
_CONNECTIONS = ("Connection", "Network", "Protocol", "ReadError", "WriteError", "ServiceUnavailable")
_MALFORMED = (json.JSONDecodeError,)


def classify_error(error: Exception) -> RequestFailure:
    """Classify an exception of an engine; the exception itself is not kept."""
    status = _status(error)
    headers = _headers(error)
    message = without_secrets(_message(error))
    if status is None:
        return _without_answer(error, message)
    reason = f"the server answered {status}: {message}" if message else f"the server answered {status}"
    if status == 413 or (status in (400, 422) and _TOO_LARGE.search(message)):
        return RequestFailure(reason, too_large=True, status=status)
    if status == 429 and _SPENT.search(message):
        return RequestFailure(reason, status=status)
    again = status in RETRYABLE_STATUS or status >= 500
    if status >= 500 and re.search(r"input length exceeds|context length", message, re.IGNORECASE):
        return RequestFailure(reason, too_large=True, status=status)
    wait = retry_after_seconds(headers, time.time()) if again else None
    return RequestFailure(reason, again=again, wait_seconds=wait, status=status)


def retry_after_seconds(headers: Mapping[str, str], now: float) -> float | None:
    """The wait in seconds that a server requests; None if there is none.

    ``Retry-After`` is seconds or a date; the reset of a limit is used if the limit is reached.

    >>> retry_after_seconds({"retry-after": "2.5"}, now=0), retry_after_seconds({}, now=0)
    (2.5, None)
    >>> retry_after_seconds({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "1m2s"}, now=0)
    62.0
    """
    folded = {name.casefold(): value for name, value in headers.items()}
    milliseconds = _number(folded.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    if "retry-after" in folded:
        after = _number(folded["retry-after"])
        return after if after is not None else _seconds_until(folded["retry-after"], now)
    resets = [
        _parse_duration(value, now)
        for name, value in folded.items()
        if "ratelimit-reset" in name and folded.get(name.replace("reset", "remaining"), "0").strip() == "0"
    ]
    waits = [seconds for seconds in resets if seconds is not None]
    return max(waits, default=None)


def _without_answer(error: Exception, message: str) -> RequestFailure:
    """No status: the connection failed, the response was truncated, or the engine failed."""
    names = [kind.__name__ for kind in type(error).__mro__]
    if any(part in name for name in names for part in _TIMEOUTS) or isinstance(error, TimeoutError):
        return RequestFailure("the server did not answer in time", again=True)
    if isinstance(error, _MALFORMED) or "APIResponseValidationError" in names:
        return RequestFailure("the response was truncated or is not JSON", again=True)
    if any(part in name for name in names for part in _CONNECTIONS) or isinstance(error, OSError):
        reason = f"the connection failed: {message.rstrip('.') or type(error).__name__}"
        return RequestFailure(reason, again=True, disconnected=True)
    return RequestFailure(f"{type(error).__name__}: {message}" if message else type(error).__name__)


def _status(error: Exception) -> int | None:
    response = getattr(error, "response", None)
    for holder in (error, response):
        status = getattr(holder, "status_code", None)
        if isinstance(status, int) and status >= 400:
            # litellm gives broken connections and timeouts an invented status.
            kinds = " ".join(kind.__name__ for kind in type(error).__mro__)
            return None if "Connection" in kinds or "Timeout" in kinds else status
    return None


def _headers(error: BaseException | None, depth: int = 5) -> Mapping[str, str]:
    """The headers of the response: on the error, in litellm's attribute, or on its cause."""
    if error is None or not depth:
        return {}
    response = getattr(error, "response", None)
    response_headers = getattr(error, "litellm_response_headers", None)
    for headers in (response_headers, getattr(response, "headers", None), getattr(error, "headers", None)):
        if headers:
            return {str(name): str(value) for name, value in dict(headers).items()}
    return _headers(error.__cause__ or error.__context__, depth - 1)


def _message(error: Exception) -> str:
    """The message of the server, without the text that the engine adds."""
    body = getattr(error, "body", None)
    if isinstance(body, Mapping):
        inner = body.get("error", body)
        message = inner.get("message") if isinstance(inner, Mapping) else inner
        if isinstance(message, str) and message:
            code = inner.get("code") if isinstance(inner, Mapping) else None
            return f"{message} ({code})" if isinstance(code, str) else message
    return str(getattr(error, "message", "") or error)


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if 0 <= number < float("inf") else None


def _seconds_until(date: str, now: float) -> float | None:
    try:
        return max(0.0, parsedate_to_datetime(date).timestamp() - now)
    except (TypeError, ValueError):
        return None


def _parse_duration(text: str, now: float) -> float | None:
    """``1m30s``, a number of seconds, or the second of the epoch when the limit is lifted."""
    number = _number(text)
    if number is not None:
        return max(0.0, number - now) if number > _EPOCH else number
    parts = _LASTING.findall(text)
    if not parts or "".join(f"{amount}{unit}" for amount, unit in parts) != text.strip():
        return None
    return sum(float(amount) * _SECONDS[unit] for amount, unit in parts)
