"""Standard output without what Ray's own threads print there: it is for results."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import current_thread
from typing import Any, TextIO, cast

RAYS = "ray_"
"""How the names of its threads begin."""


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
    """Keep Ray from standard output: when a node dies, it prints the node's log, whatever it was told."""
    stream = sys.stdout
    sys.stdout = cast(TextIO, _Hushed(stream))
    try:
        yield
    finally:
        sys.stdout = stream
