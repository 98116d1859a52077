"""Progress within a step: code that takes long reports it here, and the progress bar of the command listens.

There is no listener in a library call, in a worker process and in other threads; a report is then ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar

Listener = Callable[[float | None, str | None], None]
"""Called with the finished share of a step, or with a text that says what it does; the other one is None."""

_listener: ContextVar[Listener | None] = ContextVar("equipoise_progress", default=None)


@contextmanager
def listen(listener: Listener | None) -> Iterator[None]:
    """Pass the reports of the block to a listener; with None they are ignored."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def report_share(done: float, total: float) -> None:
    """Report that ``done`` of ``total`` parts of the current step are finished.

    >>> with listen(lambda share, text: print(share)):
    ...     report_share(1, 4)
    0.25
    """
    listener = _listener.get()
    if listener is not None and total > 0:
        listener(min(done / total, 1.0), None)


@contextmanager
def activity(text: str) -> Iterator[None]:
    """Say what the block does, for work that cannot report its share, such as loading a model."""
    listener = _listener.get()
    if listener is None:
        yield
        return
    listener(None, text)
    try:
        yield
    finally:
        listener(None, "")


@contextmanager
def redirect_shares(function: Callable[[float], None]) -> Iterator[None]:
    """Call a function with the shares that the block reports; what the function reports goes to the outer listener."""
    outer = _listener.get()

    def inner(share: float | None, text: str | None) -> None:
        if share is None:
            if outer is not None:
                outer(None, text)
            return
        with listen(outer):
            function(share)

    with listen(inner):
        yield


@contextmanager
def portion(start: float, end: float) -> Iterator[None]:
    """The block is this part of the current step: its shares from 0 to 1 are reported as ``start`` to ``end``.

    >>> with listen(lambda share, text: print(share)), portion(0.5, 1.0):
    ...     report_share(1, 2)
    0.75
    1.0
    """
    with redirect_shares(lambda share: report_share(start + share * (end - start), 1.0)):
        yield
    report_share(end, 1.0)


def ignore_shares() -> AbstractContextManager[None]:
    """The shares of the block are not those of the current step; what it says it does is still shown."""
    return redirect_shares(lambda share: None)
