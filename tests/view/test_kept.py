"""What was made is kept, what was long not asked for is let go."""

from __future__ import annotations

from threading import Barrier, Event, Thread

import pytest

from equipoise.errors import StoreError
from equipoise.view.app import BackgroundCache


def test_two_who_ask_at_once_get_one_thing() -> None:
    kept: BackgroundCache[object] = BackgroundCache(4)
    go, made, together = Event(), [], Barrier(3)

    def make() -> object:
        go.wait()
        made.append(object())
        return made[-1]

    got: list[object] = []

    def ask() -> None:
        future = kept.get_or_start("key", make)
        together.wait()
        got.append(future.result())

    threads = [Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    together.wait()
    go.set()
    for thread in threads:
        thread.join()
    assert len(made) == 1
    assert got == [made[0], made[0]]


def test_the_one_not_asked_for_longest_is_made_again() -> None:
    kept: BackgroundCache[int] = BackgroundCache(2)
    for key, value in (("a", 1), ("b", 2), ("a", 0), ("c", 3)):
        kept.get_or_start(key, lambda value=value: value).result()
    assert kept.get_or_start("a", lambda: 9).result() == 1
    assert kept.get_or_start("b", lambda: 9).result() == 9


def test_a_refusal_is_kept_and_raised_each_time() -> None:
    kept: BackgroundCache[int] = BackgroundCache(1)

    def refuse() -> int:
        raise StoreError("no")

    for make in (refuse, lambda: 1):
        with pytest.raises(StoreError):
            kept.get_or_start("key", make).result()
