"""The background cache: results are computed once, and the least recently used are evicted."""

from __future__ import annotations

from threading import Barrier, Event, Thread

import pytest

from equipoise.errors import StoreError
from equipoise.view.app import BackgroundCache


def test_concurrent_requests_share_one_computation() -> None:
    cache: BackgroundCache[object] = BackgroundCache(4)
    start, computed, barrier = Event(), [], Barrier(3)

    def compute() -> object:
        start.wait()
        computed.append(object())
        return computed[-1]

    results: list[object] = []

    def request() -> None:
        future = cache.get_or_start("key", compute)
        barrier.wait()
        results.append(future.result())

    threads = [Thread(target=request) for _ in range(2)]
    for thread in threads:
        thread.start()
    barrier.wait()
    start.set()
    for thread in threads:
        thread.join()
    assert len(computed) == 1
    assert results == [computed[0], computed[0]]


def test_the_least_recently_used_entry_is_evicted() -> None:
    cache: BackgroundCache[int] = BackgroundCache(2)
    for key, value in (("a", 1), ("b", 2), ("a", 0), ("c", 3)):
        cache.get_or_start(key, lambda value=value: value).result()
    assert cache.get_or_start("a", lambda: 9).result() == 1
    assert cache.get_or_start("b", lambda: 9).result() == 9


def test_errors_are_cached_and_raised_each_time() -> None:
    cache: BackgroundCache[int] = BackgroundCache(1)

    def fail() -> int:
        raise StoreError("no")

    for compute in (fail, lambda: 1):
        with pytest.raises(StoreError):
            cache.get_or_start("key", compute).result()
