"""Servers for folders of runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from equipoise.runs.manifest import Status
from marked import marked
from serving import Served, Store, serving, store


@pytest.fixture(scope="module")
@marked(pytest.mark.slow)
def serve() -> Iterator[Callable[[Path], Served]]:
    """Start servers for folders; they stop after the last test of a module."""
    with ExitStack() as stack:
        yield lambda root: stack.enter_context(serving(root))


@pytest.fixture(name="store", scope="session")
def store_fixture() -> Store:
    """Writes a run directory."""
    return store


@pytest.fixture(scope="session")
@marked(pytest.mark.slow)
def viewer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server for an unchanged folder: three runs on the same units, one on other units, one partial."""
    root = tmp_path_factory.mktemp("results")
    store(root / "deep" / "minilm", day=3, details=True)
    store(root / "bm25", worse=3, day=2)
    store(root / "old" / "bm25", worse=2, day=1)
    store(root / "other", units=[f"x{index}" for index in range(30)], day=4)
    store(root / "half", status=Status.PARTIAL, day=5)
    with serving(root) as served:
        yield served
