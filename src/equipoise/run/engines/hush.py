"""Both outputs without what Ray's own threads print there: one is for results, the other for our words."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from threading import ExceptHookArgs, current_thread
from traceback import walk_tb
from typing import Any, TextIO, cast

RAYS = "ray_"
"""How the names of its threads begin."""
_THEIRS = ("grpc", "ray")
"""Packages whose threads may die of a connection that is lost."""


class _Hushed:
    """A stream that takes nothing from Ray's threads, and everything from all others."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return len(text) if current_thread().name.startswith(RAYS) else self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def hushed() -> Iterator[None]:
    """Keep Ray from both: when a node dies, it prints the node's log, and when a head does, tracebacks."""
    stream, hook = sys.stdout, threading.excepthook

    def unless_theirs(args: ExceptHookArgs, /) -> None:
        modules = (str(frame.f_globals.get("__name__")) for frame, _ in walk_tb(args.exc_traceback))
        if not any(module.partition(".")[0] in _THEIRS for module in modules):
            hook(args)

    sys.stdout, threading.excepthook = cast(TextIO, _Hushed(stream)), unless_theirs
    try:
        yield
    finally:
        sys.stdout, threading.excepthook = stream, hook
