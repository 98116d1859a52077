"""Hosted models: batches of bounded size, split when too large, concurrent, with retries and usage counts.

A failure is never replaced by a vector. It ends the call with an error that has the vectors finished before it.
"""

from __future__ import annotations

import base64
import threading
from abc import abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from functools import partial
from threading import Event, Lock
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from urllib.parse import urlsplit

import numpy as np

from equipoise.errors import MissingExtraError, ParameterError, PartialError, StoppedError, TextTooLongError
from equipoise.models.backends.hosted_retry import (
    STOPPED,
    RequestFailedError,
    RequestFailure,
    RetryPolicy,
    call_with_retries,
    classify_error,
)
from equipoise.models.encode_texts import split_by_size
from equipoise.models.encoder import Encoder, ModelCard, Vectors
from equipoise.models.registry import ModelSpec, number_option
from equipoise.redaction import redact

if TYPE_CHECKING:
    from equipoise.models.encoder import Role
    from equipoise.types import Ints

# Validate a response: one vector per text in order, of one length, all finite.

_FLOAT = np.dtype("<f4")


@dataclass(frozen=True, slots=True)
class EmbeddingResponse:
    """The vectors of one request, and the billed tokens if the server reports them."""

    vectors: Vectors
    tokens: int | None


def parse_response(items: Any, texts: int, dims: int | None, tokens: int | None) -> EmbeddingResponse:
    """The rows of a response in the order of the texts; raises ``RequestFailedError`` if the response is invalid.

    Each item has an ``embedding``, a list of numbers or base64 of little-endian float32, and an ``index``;
    where no item has one, they are in order.
    """
    if not isinstance(items, list | tuple):
        raise _invalid_response("something that is not a list of vectors")
    if len(items) != texts:
        raise _invalid_response(f"{len(items)} vectors for {texts} texts")
    rows = [_row(_field(item, "embedding")) for item in items]
    order = _order([_field(item, "index") for item in items])
    lengths = {len(row) for row in rows} | ({dims} if dims is not None else set())
    if len(lengths) != 1 or lengths == {0}:
        lengths_text = " and ".join(str(length) for length in sorted(lengths))
        raise _invalid_response(f"vectors of {lengths_text} dimensions, which must be equal")
    vectors = np.empty((texts, len(rows[0])), dtype=np.float32)
    for index, row in zip(order, rows, strict=True):
        vectors[index] = row
    if not np.isfinite(vectors).all():
        raise _invalid_response("a vector with NaN or infinity")
    if not vectors.any(axis=1).all():
        raise _invalid_response("a vector of zeros")
    return EmbeddingResponse(vectors, tokens if type(tokens) is int and tokens >= 0 else None)


def _order(indexes: Sequence[Any]) -> list[int]:
    """The row of each item: every number from 0 once. ``True`` is an int in Python, but no index."""
    if all(index is None for index in indexes):
        return list(range(len(indexes)))
    if not all(type(index) is int for index in indexes) or sorted(indexes) != list(range(len(indexes))):
        raise _invalid_response(f"the indexes {', '.join(map(repr, indexes[:5]))}..., which do not number the texts")
    return list(indexes)


def _row(embedding: Any) -> Vectors:
    try:
        if isinstance(embedding, str):
            return np.frombuffer(base64.b64decode(embedding, validate=True), dtype=_FLOAT)
        # No dtype here, to detect the sent type: with one, "1" and true would become 1.0.
        row = np.asarray(embedding)
        if row.ndim != 1 or row.dtype.kind not in "iuf" or _has_bool(embedding):
            raise _invalid_response("something that is not a vector")
        with np.errstate(over="ignore"):
            return row.astype(np.float32)
    except (TypeError, ValueError, OverflowError):
        raise _invalid_response("something that is not a vector") from None


def _has_bool(embedding: Any) -> bool:
    """Whether a boolean is among numbers, where numpy takes it for 0 or 1."""
    return not isinstance(embedding, np.ndarray) and any(isinstance(value, bool) for value in embedding)


def _field(item: Any, name: str) -> Any:
    return item.get(name) if isinstance(item, dict) else getattr(item, name, None)


def _invalid_response(problem: str) -> RequestFailedError:
    return RequestFailedError(RequestFailure(f"the server answered with {problem}", invalid_response=True))


# Concurrent requests: the first failure stops the rest, and finished results are kept.

T = TypeVar("T")

Job = Callable[[Event], T]
"""Work that stops early, with a special exception, when the event is set."""


@dataclass(frozen=True, slots=True)
class RequestOutcome(Generic[T]):
    """The outcome of a job: a value, an error, or neither if it was not started."""

    value: T | None = None
    error: Exception | None = None


def run_concurrently(jobs: Sequence[Job[T]], workers: int) -> list[RequestOutcome[T]]:
    """Run the jobs in order, ``workers`` at a time; after an error no further job is started.

    >>> [outcome.value for outcome in run_concurrently([lambda stop: 1, lambda stop: 2], workers=2)]
    [1, 2]
    """
    stop, lock = Event(), Lock()
    outcomes: list[RequestOutcome[T]] = [RequestOutcome() for _ in jobs]
    numbers = iter(range(len(jobs)))

    def work() -> None:
        while True:
            with lock:  # a job that was taken is run, even if a later one fails before it starts
                number = None if stop.is_set() else next(numbers, None)
            if number is None:
                return
            try:
                outcomes[number] = RequestOutcome(jobs[number](stop))
            except Exception as error:
                stop.set()
                outcomes[number] = RequestOutcome(error=error)

    threads = min(workers, len(jobs))
    if threads < 2:
        work()
        return outcomes
    with ThreadPoolExecutor(threads) as pool:
        try:
            wait([pool.submit(work) for _ in range(threads)])
        finally:
            stop.set()
    return outcomes


PARALLEL_REQUESTS = 4
REQUEST_CHARACTERS = 400_000
SHORTEST_CUT = 16
_SHOWN = 40
_AGAIN = "run the same command again: cached texts are not requested again"
_WRONG_ANSWER = "the server is at fault: check its address, the name of the model and its dimensions"


@dataclass(frozen=True, slots=True)
class PartialEmbeddings:
    """The texts that have a vector: their indexes among those of the call, and one row for each."""

    positions: Ints
    vectors: Vectors


NOTHING = PartialEmbeddings(np.empty(0, dtype=np.int64), np.empty((0, 0), dtype=np.float32))


@dataclass(frozen=True, slots=True)
class ApiUsage:
    """The usage of a service: billed tokens, and cost if a price was given."""

    requests: int = 0
    failed: int = 0
    tokens: int = 0
    cut: int = 0
    """Texts that were shortened because they were too long."""
    price: float | None = None
    """For a million tokens."""

    @property
    def cost(self) -> float | None:
        """Tokens times price."""
        return None if self.price is None else self.tokens / 1e6 * self.price


@dataclass(frozen=True, slots=True)
class _Part:
    """Vectors of some texts; ``complete`` if no text was truncated."""

    vectors: Vectors
    complete: bool = True


RequestFunction = Callable[[Sequence[str]], Vectors]
"""One request with all its attempts."""


class ApiEncoder(Encoder):
    """What the services share; an adapter adds ``request``. ``words`` name the service and the model."""

    symmetric = True
    batch_texts = 256
    """Texts per request, unless the spec says otherwise."""

    def __init__(self, spec: ModelSpec, card: ModelCard, *words: str, retry_policy: RetryPolicy | None = None) -> None:
        self.card = replace(card, note="the server may change the model behind a name")
        self._truncates = spec.flag("truncate", False)
        dimensions = f"dimensions={spec.count('dimensions') or ''}"
        self.identity = " ".join([*words, dimensions]) + (" cut" if self._truncates else "")
        self.usage = ApiUsage(price=positive_option(spec, "price"))
        self._retry_policy = retry_policy or retry_policy_from(spec)
        self._most = spec.count("batch") or self.batch_texts
        self._parallel = spec.count("parallel") or PARALLEL_REQUESTS
        # Enough for one call to keep all requests busy.
        self.block_texts = self._most * self._parallel
        self._dims = card.dims
        self._lock = threading.Lock()

    @property
    def price(self) -> float | None:
        """US dollars per million tokens, if the spec states it."""
        return self.usage.price

    @abstractmethod
    def request(self, texts: Sequence[str], role: Role) -> Any:
        """The response of the service: ``data`` with the vectors and ``usage``, as attributes or as members."""

    def request_vectors(self, texts: Sequence[str], role: Role, dims: int | None) -> EmbeddingResponse:
        """One request, checked; raises ``RequestFailedError``, and nothing else."""
        failure: RequestFailure
        try:
            answer = self.request(texts, role)
        except Exception as error:  # the exception may contain the key, so it is not chained
            failure = classify_error(error)
        else:
            usage = _field(answer, "usage")
            tokens = _field(usage, "total_tokens") or _field(usage, "prompt_tokens")
            return parse_response(_field(answer, "data"), len(texts), dims, tokens)
        raise RequestFailedError(failure)

    def encode(self, texts: Sequence[str], role: Role) -> Vectors:
        """One row per text, in order; raises ``PartialError`` with the finished rows."""
        parts = list(split_by_size(range(len(texts)), lambda index: len(texts[index]), self._most, REQUEST_CHARACTERS))
        jobs = [partial(self._job, [texts[index] for index in part], role) for part in parts]
        outcomes = run_concurrently(jobs, self._parallel)
        done: dict[int, Vectors] = {}
        for part, outcome in zip(parts, outcomes, strict=True):
            if outcome.value is not None:
                done.update(zip(part, outcome.value, strict=True))
        errors = [outcome.error for outcome in outcomes if outcome.error is not None]
        if errors:
            # The first failure is the reason; the other requests stopped because of it.
            reason = [
                error for error in errors if not (isinstance(error, RequestFailedError) and error.failure is STOPPED)
            ]
            raise self._error_to_raise((reason or errors)[0], texts, done)
        return np.stack([done[index] for index in range(len(texts))]) if texts else NOTHING.vectors

    def _job(self, texts: Sequence[str], role: Role, stop: Event) -> Vectors:
        """One of several requests; it stops when another one has failed."""
        retry_policy = self._retry_policy.until(stop)

        def request(batch: Sequence[str]) -> Vectors:
            return call_with_retries(lambda: self._counted(batch, role), retry_policy)

        return self._halved(texts, request).vectors

    def _halved(self, texts: Sequence[str], request: RequestFunction) -> _Part:
        """The vectors of a request; if it is too large, it is halved repeatedly."""
        try:
            return _Part(request(texts))
        except RequestFailedError as error:
            failure = error.failure
        if not failure.too_large:
            raise RequestFailedError(failure)
        if len(texts) == 1:
            return _Part(self._cut(texts[0], request, failure), complete=False)
        half = (len(texts) + 1) // 2
        first, second = self._halved(texts[:half], request), self._halved(texts[half:], request)
        complete = first.complete and second.complete
        if complete:
            # No text was too long, so the number of texts was too large, as it will be in later requests.
            with self._lock:
                self._most = min(self._most, half)
        return _Part(np.concatenate([first.vectors, second.vectors]), complete)

    def _cut(self, text: str, request: RequestFunction, failure: RequestFailure) -> Vectors:
        """The vector of a text that is too long: if requested, it is truncated by quarters."""
        rest = text
        while self._truncates and failure.too_large and len(rest) * 3 // 4 >= SHORTEST_CUT:
            rest = rest[: len(rest) * 3 // 4]
            try:
                vectors = request([rest])
            except RequestFailedError as error:
                failure = error.failure
                continue
            self._note(cut=1)
            return vectors
        raise RequestFailedError(replace(failure, reason=f"{_quote_text(text)} is too long: {failure.reason}"))

    def _counted(self, texts: Sequence[str], role: Role) -> Vectors:
        try:
            answer = self.request_vectors(texts, role, self._dims)
        except RequestFailedError:
            self._note(requests=1, failed=1)
            raise
        self._note(requests=1, tokens=answer.tokens or 0)
        dims = answer.vectors.shape[1]
        with self._lock:
            expected = self._dims = self._dims or dims
            self.card = replace(self.card, dims=expected)
        if dims != expected:
            raise RequestFailedError(
                RequestFailure(
                    f"the server answered with {dims} dimensions, and before with {expected}", invalid_response=True
                )
            )
        return answer.vectors

    def _note(self, **more: int) -> None:
        with self._lock:
            self.usage = replace(
                self.usage, **{name: getattr(self.usage, name) + count for name, count in more.items()}
            )

    def _error_to_raise(self, cause: Exception, texts: Sequence[str], done: dict[int, Vectors]) -> Exception:
        """The error to raise; exceptions that are not failed requests are unchanged."""
        if not isinstance(cause, RequestFailedError):
            return cause
        failure = cause.failure
        if failure.status == 401:
            return MissingExtraError(
                f"{self.card.name} rejected the key: {failure.reason}",
                hint="check the variable that holds it; eq ls models names it",
            )
        if failure.too_large:
            error: PartialError = TextTooLongError(
                f"{self.card.name}: {failure.reason}",
                hint="split such texts into chunks, or add truncate=true to the model to truncate them",
            )
        else:
            hint = _WRONG_ANSWER if failure.invalid_response else _AGAIN
            if failure.disconnected and self.card.origin:
                hint = f"check that {self.card.origin} can be reached, and repeat the command"
            error = StoppedError(self.card.name, failure.reason, len(done), len(texts), hint=hint)
        positions = sorted(done)
        if positions:
            error.finished = PartialEmbeddings(
                np.array(positions, dtype=np.int64), np.stack([done[at] for at in positions])
            )
        return error


def _quote_text(text: str) -> str:
    """A text as an error names it."""
    begins = " ".join(text[:_SHOWN].split())
    return f"the text of {len(text):,} characters that begins {begins!r}"


# Options of all hosted models: batch, parallel, timeout, attempts, truncate, price.

SERVICE_OPTIONS = ("batch", "parallel", "timeout", "attempts", "truncate", "price")


def retry_policy_from(spec: ModelSpec) -> RetryPolicy:
    """The retry policy of a spec."""
    attempts = spec.count("attempts")
    return RetryPolicy() if attempts is None else RetryPolicy(attempts=attempts)


def positive_option(spec: ModelSpec, option: str) -> float | None:
    """A number above 0; None where the option was not given."""
    if option not in spec.options:
        return None
    number = number_option(spec, option, 0.0)
    if number <= 0:
        raise ParameterError(f"{option} is {spec.options[option]!r} in {spec}", hint=f"{option} must be above 0")
    return number


def checked_url(url: str) -> str:
    """Check the address of a server; it must not contain a secret, since addresses are printed and stored."""
    try:
        parts = urlsplit(url)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        valid = False
    if not valid:
        raise ParameterError(
            "base_url is not the address of a server", hint="for example base_url=http://localhost:11434/v1"
        )
    if parts.username or parts.password or parts.query or redact(url) != url:
        raise ParameterError(
            "base_url holds a name, a password, a key or a query",
            hint="keys are read from the environment only: OPENAI_API_KEY, or key_env=NAME",
        )
    return url
