"""Models behind an API: requests of bounded size, split when refused, repeated when that may help.

A failure never becomes a vector. It ends the call with an error that carries what was finished before it.
"""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from threading import Event

import numpy as np

from equipoise.embed.card import Card
from equipoise.embed.encoder import Encoder, Vectors
from equipoise.embed.hosted.answer import Answer
from equipoise.embed.hosted.parallel import run_all
from equipoise.embed.hosted.retry import STOPPED, Patience, Refusal, Refused, persist
from equipoise.errors import MissingExtraError, PartialError, StoppedError, TooLongError
from equipoise.types import Ints, Role

REQUEST_CHARACTERS = 400_000
SHORTEST_CUT = 16
_SHOWN = 40
_AGAIN = "run the same command again: what is in the cache is not asked for twice"
_WRONG_ANSWER = "the server is at fault: check its address, the name of the model and its dimensions"


@dataclass(frozen=True, slots=True)
class Finished:
    """The texts that have a vector: their indexes among those of the call, and one row for each."""

    places: Ints
    vectors: Vectors


NOTHING = Finished(np.empty(0, dtype=np.int64), np.empty((0, 0), dtype=np.float32))


@dataclass(frozen=True, slots=True)
class Usage:
    """What a service was asked for: tokens as it counted them, cost where a price was given."""

    requests: int = 0
    refused: int = 0
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
class Limits:
    """How much goes into one request, how many run at once, and whether long texts may be cut."""

    texts: int = 256
    parallel: int = 4
    cut: bool = False


@dataclass(frozen=True, slots=True)
class _Part:
    """Vectors of some texts; ``whole`` when no text was cut for them."""

    vectors: Vectors
    whole: bool = True


Ask = Callable[[Sequence[str]], Vectors]
"""One request with all its attempts."""


class HostedEncoder(Encoder):
    """What the services share; an adapter adds ``ask``."""

    symmetric = True

    def __init__(self, card: Card, identity: str, *, limits: Limits, patience: Patience, price: float | None):
        self.card = card
        self.identity = identity
        self.usage = Usage(price=price)
        self._limits = limits
        self._patience = patience
        self._most = limits.texts
        # Enough for one call to keep all requests busy.
        self.block_texts = limits.texts * limits.parallel
        self._dims = card.dims
        self._lock = threading.Lock()

    @abstractmethod
    def ask(self, texts: Sequence[str], role: Role, dims: int | None) -> Answer:
        """One request; raises ``Refused``, and nothing else."""

    def encode(self, texts: Sequence[str], role: Role) -> Vectors:
        """One row a text, in order; raises ``PartialError`` with what was finished."""
        parts = list(_requests(texts, self._most))
        jobs = [partial(self._job, [texts[place] for place in part], role) for part in parts]
        outcomes = run_all(jobs, self._limits.parallel)
        done: dict[int, Vectors] = {}
        for part, outcome in zip(parts, outcomes, strict=True):
            if outcome.value is not None:
                done.update(zip(part, outcome.value, strict=True))
        errors = [outcome.error for outcome in outcomes if outcome.error is not None]
        if errors:
            # The one that failed first is the reason; others only stopped because of it.
            reason = [each for each in errors if not (isinstance(each, Refused) and each.refusal is STOPPED)]
            raise self._told((reason or errors)[0], texts, done)
        return np.stack([done[place] for place in range(len(texts))]) if texts else NOTHING.vectors

    def _job(self, texts: Sequence[str], role: Role, stop: Event) -> Vectors:
        """One request of several, which gives up when another has failed."""
        patience = self._patience.until(stop)

        def ask(some: Sequence[str]) -> Vectors:
            return persist(lambda: self._counted(some, role), patience)

        return self._halved(texts, ask).vectors

    def _halved(self, texts: Sequence[str], ask: Ask) -> _Part:
        """The vectors of a request, halved as often as the service demands."""
        try:
            return _Part(ask(texts))
        except Refused as error:
            refusal = error.refusal
        if not refusal.too_large:
            raise Refused(refusal)
        if len(texts) == 1:
            return _Part(self._cut(texts[0], ask, refusal), whole=False)
        half = (len(texts) + 1) // 2
        first, second = self._halved(texts[:half], ask), self._halved(texts[half:], ask)
        whole = first.whole and second.whole
        if whole:
            # Every text passed as it is, so it was their number that was too much, and will be again.
            with self._lock:
                self._most = min(self._most, half)
        return _Part(np.concatenate([first.vectors, second.vectors]), whole)

    def _cut(self, text: str, ask: Ask, refusal: Refusal) -> Vectors:
        """A text that is too long by itself: cut by quarters, if that was asked for."""
        rest = text
        while self._limits.cut and refusal.too_large and len(rest) * 3 // 4 >= SHORTEST_CUT:
            rest = rest[: len(rest) * 3 // 4]
            try:
                vectors = ask([rest])
            except Refused as error:
                refusal = error.refusal
                continue
            self._note(cut=1)
            return vectors
        raise Refused(replace(refusal, reason=f"{_named(text)} is too long: {refusal.reason}"))

    def _counted(self, texts: Sequence[str], role: Role) -> Vectors:
        try:
            answer = self.ask(texts, role, self._dims)
        except Refused:
            self._note(requests=1, refused=1)
            raise
        self._note(requests=1, tokens=answer.tokens or 0)
        found = answer.vectors.shape[1]
        with self._lock:
            known = self._dims = self._dims or found
            self.card = replace(self.card, dims=known)
        if found != known:
            raise Refused(
                Refusal(f"the server answered with {found} dimensions, and before with {known}", wrong=True)
            )
        return answer.vectors

    def _note(self, **more: int) -> None:
        with self._lock:
            self.usage = replace(
                self.usage, **{name: getattr(self.usage, name) + count for name, count in more.items()}
            )

    def _told(self, trouble: Exception, texts: Sequence[str], done: dict[int, Vectors]) -> Exception:
        """The error for people; exceptions that are no refusals pass as they are."""
        if not isinstance(trouble, Refused):
            return trouble
        refusal = trouble.refusal
        if refusal.status == 401:
            return MissingExtraError(
                f"{self.card.name} refused the key: {refusal.reason}",
                hint="check the variable that holds it; eq ls models names it",
            )
        if refusal.too_large:
            error: PartialError = TooLongError(
                f"{self.card.name}: {refusal.reason}",
                hint="split such texts into chunks, or add truncate=true to the model to cut them",
            )
        else:
            hint = _WRONG_ANSWER if refusal.wrong else _AGAIN
            error = StoppedError(self.card.name, refusal.reason, len(done), len(texts), hint=hint)
        places = sorted(done)
        if places:
            error.finished = Finished(np.array(places, dtype=np.int64), np.stack([done[at] for at in places]))
        return error


def _requests(texts: Sequence[str], most: int) -> Iterator[list[int]]:
    """Indexes that go into one request: at most so many, and not too much text."""
    part: list[int] = []
    characters = 0
    for place, text in enumerate(texts):
        if part and (len(part) == most or characters + len(text) > REQUEST_CHARACTERS):
            yield part
            part, characters = [], 0
        part.append(place)
        characters += len(text)
    if part:
        yield part


def _named(text: str) -> str:
    """A text as an error names it."""
    begins = " ".join(text[:_SHOWN].split())
    return f"the text of {len(text):,} characters that begins {begins!r}"
