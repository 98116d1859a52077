"""Connections to PostgreSQL: opened with the extension ready, failures as sentences, no password shown."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote

from equipoise.errors import ParameterError, StoreError
from equipoise.redaction import note_secret
from equipoise.types import need

_CATALOGUE = """
    CREATE TABLE IF NOT EXISTS equipoise_collections
    (name text PRIMARY KEY, number serial NOT NULL,
     dims integer NOT NULL, geometry text NOT NULL, approximate text NOT NULL)
"""


def connected(url: str) -> Any:
    """A connection to a database that has the extension and the catalogue of collections."""
    place, password = without_password(url)
    for secret in (password, os.environ.get("PGPASSWORD")):
        note_secret(secret)
    psycopg = need("psycopg", extra="pgvector")
    vectors = need("pgvector.psycopg", extra="pgvector")
    try:
        connection = psycopg.connect(url, connect_timeout=10)
    except (psycopg.OperationalError, psycopg.ProgrammingError, UnicodeError) as error:
        # The driver's last lines may be a question of its own; the refusal stands before it.
        said = [line.strip() for line in str(error).splitlines() if line.strip()]
        reason = next((line for line in reversed(said) if not line.endswith("?")), "no answer")
        raise StoreError(
            f"the PostgreSQL server at {place} cannot be reached: {reason}",
            hint="check that it runs, and the host, port, database, user and password of the URL",
        ) from None
    try:
        with connection.transaction():
            connection.execute("SET client_min_messages = warning")
            # Two programs that start at once must not both create the same things.
            connection.execute("SELECT pg_advisory_xact_lock(7201930)")
            connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
            connection.execute(_CATALOGUE)
        vectors.register_vector(connection)
        connection.commit()
    except psycopg.Error as error:
        connection.close()
        raise StoreError(
            f"the database at {place} cannot be prepared: {str(error).splitlines()[0]}",
            hint="install the extension vector (pgvector) there, and let this user create tables",
        ) from None
    return connection


@contextmanager
def explained(connection: Any, place: str) -> Iterator[None]:
    """A transaction; what the server says becomes a sentence."""
    psycopg = need("psycopg", extra="pgvector")
    try:
        with connection.transaction():
            yield
    except psycopg.Error as error:
        said = (str(error).strip().splitlines() or [type(error).__name__])[0]
        if connection.closed:
            raise StoreError(
                f"the PostgreSQL server at {place} has gone away: {said}",
                hint="nothing of this call was stored; open the store again when the server is back",
            ) from None
        raise StoreError(
            f"PostgreSQL at {place} refused: {said}", hint="nothing of this call was stored"
        ) from None


def without_password(url: str) -> tuple[str, str]:
    """The URL as it may be shown, and the password that was in it."""
    if not url.startswith(("postgresql://", "postgres://")):
        raise ParameterError(
            "the address of a PostgreSQL server begins with postgresql://",
            hint="write pgvector:postgresql://user@host/database; PGPASSWORD may hold the password",
        )
    scheme, _, rest = url.partition("://")
    before, slash, path = rest.partition("/")
    user, at, host = before.rpartition("@")
    name, _, password = user.partition(":")
    if set(password) & set("@?#") or (not at and ":" in before and "@" in path.partition("?")[0]):
        # The driver would take a part of it for a host, and say so.
        raise ParameterError(
            "the password in the address of a PostgreSQL server holds a sign that ends it",
            hint="write %40 for @, %2F for /, %3F for ? and %23 for #, or keep it in PGPASSWORD",
        )
    return f"{scheme}://{name}{at}{host}{slash}{path.partition('?')[0]}", unquote(password)
