"""A store as people name it, without a password."""

from __future__ import annotations

import re

_PASSWORD = re.compile(r"://([^/:@]*):[^/]*@")
_SECRET = re.compile(r"[^=]*(password|secret|token|api)", re.IGNORECASE)


def without_secrets(spec: str) -> str:
    """The spec as it may be shown: no password, and none of the settings behind a question mark.

    >>> without_secrets("pgvector:postgresql://me:secret@host/db?sslmode=require")
    'pgvector:postgresql://me@host/db'
    """
    return without_password(spec).partition("?")[0]


def without_password(spec: str) -> str:
    """The spec to be typed again: whatever it says besides a secret.

    >>> without_password("pgvector:postgresql://me:secret@host/db?sslmode=require&password=secret")
    'pgvector:postgresql://me@host/db?sslmode=require'
    """
    place, _, settings = _PASSWORD.sub(r"://\1@", spec).partition("?")
    kept = "&".join(each for each in settings.split("&") if not _SECRET.match(each))
    return f"{place}?{kept}" if kept else place
