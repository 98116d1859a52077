"""Reading what an engine raised or a server answered: may it pass, how long to wait, was it too much."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

from equipoise.embed.hosted.redact import redacted
from equipoise.embed.hosted.retry import AGAIN, Refusal

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


def refusal_of(error: Exception, *, now: float | None = None) -> Refusal:
    """What an exception of an engine means; nothing of the exception itself is kept."""
    status = _status(error)
    headers = _headers(error)
    said = redacted(_message(error))
    if status is None:
        return _without_answer(error, said)
    reason = f"the server answered {status}: {said}" if said else f"the server answered {status}"
    if status == 413 or (status in (400, 422) and _TOO_LARGE.search(said)):
        return Refusal(reason, too_large=True, status=status)
    if status == 429 and _SPENT.search(said):
        return Refusal(reason, status=status)
    again = status in AGAIN or status >= 500
    if status >= 500 and re.search(r"input length exceeds|context length", said, re.IGNORECASE):
        return Refusal(reason, too_large=True, status=status)
    wait = wait_asked_for(headers, time.time() if now is None else now) if again else None
    return Refusal(reason, again=again, wait_seconds=wait, status=status)


def wait_asked_for(headers: Mapping[str, str], now: float) -> float | None:
    """The seconds that a server asks to wait; None where it does not say.

    ``Retry-After`` is seconds or a date; the reset of a limit counts where nothing remains of it.

    >>> wait_asked_for({"retry-after": "2.5"}, now=0), wait_asked_for({}, now=0)
    (2.5, None)
    >>> wait_asked_for({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "1m2s"}, now=0)
    62.0
    """
    folded = {name.casefold(): value for name, value in headers.items()}
    milliseconds = _number(folded.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    if "retry-after" in folded:
        after = _number(folded["retry-after"])
        return after if after is not None else _until(folded["retry-after"], now)
    resets = [
        _lasting(value, now)
        for name, value in folded.items()
        if "ratelimit-reset" in name and folded.get(name.replace("reset", "remaining"), "0").strip() == "0"
    ]
    known = [seconds for seconds in resets if seconds is not None]
    return max(known, default=None)


def _without_answer(error: Exception, said: str) -> Refusal:
    """No status: the connection failed, the answer was cut off, or the engine itself broke."""
    names = [kind.__name__ for kind in type(error).__mro__]
    if any(part in name for name in names for part in _TIMEOUTS) or isinstance(error, TimeoutError):
        return Refusal("the server did not answer in time", again=True)
    if isinstance(error, _MALFORMED) or "APIResponseValidationError" in names:
        return Refusal("the answer was cut off or is not JSON", again=True)
    if any(part in name for name in names for part in _CONNECTIONS) or isinstance(error, OSError):
        return Refusal(f"the connection failed: {said or type(error).__name__}", again=True)
    return Refusal(f"{type(error).__name__}: {said}" if said else type(error).__name__)


def _status(error: Exception) -> int | None:
    response = getattr(error, "response", None)
    for holder in (error, response):
        status = getattr(holder, "status_code", None)
        if isinstance(status, int) and status >= 400:
            connection = any("Connection" in kind.__name__ for kind in type(error).__mro__)
            # litellm gives broken connections and timeouts a status of its own making.
            return None if connection or _is_timeout(error) else status
    return None


def _is_timeout(error: Exception) -> bool:
    return any("Timeout" in kind.__name__ for kind in type(error).__mro__)


def _headers(error: BaseException | None, depth: int = 5) -> Mapping[str, str]:
    """The headers of the answer: on the error, kept apart by litellm, or on the error that led to it."""
    if error is None or not depth:
        return {}
    response = getattr(error, "response", None)
    kept = getattr(error, "litellm_response_headers", None)
    for headers in (kept, getattr(response, "headers", None), getattr(error, "headers", None)):
        if headers:
            return {str(name): str(value) for name, value in dict(headers).items()}
    return _headers(error.__cause__ or error.__context__, depth - 1)


def _message(error: Exception) -> str:
    """What the server said, without the frame that the engine puts around it."""
    body = getattr(error, "body", None)
    if isinstance(body, Mapping):
        inner = body.get("error", body)
        said = inner.get("message") if isinstance(inner, Mapping) else inner
        if isinstance(said, str) and said:
            code = inner.get("code") if isinstance(inner, Mapping) else None
            return f"{said} ({code})" if isinstance(code, str) else said
    return str(getattr(error, "message", "") or error)


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if 0 <= number < float("inf") else None


def _until(date: str, now: float) -> float | None:
    try:
        return max(0.0, parsedate_to_datetime(date).timestamp() - now)
    except (TypeError, ValueError):
        return None


def _lasting(text: str, now: float) -> float | None:
    """``1m30s``, a number of seconds, or the second of the epoch when the limit is lifted."""
    number = _number(text)
    if number is not None:
        return max(0.0, number - now) if number > _EPOCH else number
    parts = _LASTING.findall(text)
    if not parts or "".join(f"{amount}{unit}" for amount, unit in parts) != text.strip():
        return None
    return sum(float(amount) * _SECONDS[unit] for amount, unit in parts)
