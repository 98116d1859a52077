"""Things that take long to make: made once, in the background, and kept while they are asked for."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from threading import Lock, Thread
from typing import Generic, TypeVar

Made = TypeVar("Made")


class Kept(Generic[Made]):
    """The last things that were made, by what they were made of; a failure is kept like any other outcome.

    >>> kept = Kept[int](size=2)
    >>> kept.ask("six", lambda: 6).result(), kept.ask("six", lambda: 7).result()
    (6, 6)
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._lock = Lock()
        self._futures: OrderedDict[str, Future[Made]] = OrderedDict()

    def ask(self, key: str, make: Callable[[], Made]) -> Future[Made]:
        """What has this key; it is begun now unless it was before."""
        with self._lock:
            future = self._futures.get(key)
            if future is None:
                future = self._futures[key] = in_background(make)
            self._futures.move_to_end(key)
            while len(self._futures) > self._size:
                self._futures.popitem(last=False)
        return future


def in_background(make: Callable[[], Made]) -> Future[Made]:
    """Do it in a thread that does not keep the program from ending.

    >>> in_background(lambda: 2 + 2).result()
    4
    """
    future: Future[Made] = Future()

    def work() -> None:
        try:
            future.set_result(make())
        except BaseException as error:
            future.set_exception(error)

    Thread(target=work, daemon=True).start()
    return future
