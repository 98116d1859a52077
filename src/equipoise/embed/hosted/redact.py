"""Keys stay out of everything that is said: they come from the environment and go to the server only."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping

from equipoise.errors import MissingExtraError
from equipoise.redaction import HIDDEN, note_secret, redact

LONGEST = 300
_READ = 20_000

_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL", re.IGNORECASE)
_BEARER = re.compile(r"(?i)(bearer\s+|(?:authorization|api[-_]?key)\W{1,5}(?:bearer\s+)?)[\w.~+/=-]{8,}")
_KEY_SHAPE = re.compile(r"\b(?:sk|pk|rk|pa|co)-[A-Za-z0-9_-]{8,}")
_SHORTEST_SECRET = 6


def secrets_of(environment: Mapping[str, str] | None = None) -> list[str]:
    """The values in the environment whose names say that they are secret, longest first."""
    source = os.environ if environment is None else environment
    values = {
        part
        for name, value in source.items()
        if _SECRET_NAME.search(name)
        for part in (value, value.strip())
        if len(part) >= _SHORTEST_SECRET
    }
    return sorted(values, key=len, reverse=True)


def redacted(text: str, secrets: Iterable[str] | None = None) -> str:
    """A message of a server, on one line and shortened, without keys or what looks like one.

    Hidden are the secrets that were used, in every form, and those of the environment.

    >>> redacted("401: Incorrect API key provided: sk-abcdefgh1234", [])
    '401: Incorrect API key provided: [hidden]'
    """
    cut = len(text) > _READ
    text = redact(redact(text[:_READ]), list(secrets_of() if secrets is None else secrets))
    text = _KEY_SHAPE.sub(HIDDEN, text)
    text = _BEARER.sub(rf"\1{HIDDEN}", text)
    line = " ".join(text.split())
    # The cut may have gone through a key, of which the last characters are then too few to be known.
    line = line[:-8] if cut else line
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 3]}..."


def key_from(*names: str) -> str | None:
    """The first of these variables that holds something; nothing that is printed repeats it."""
    values = (os.environ.get(name, "").strip() for name in names)
    key = next((value for value in values if value), None)
    note_secret(key)
    return key


def missing_key(service: str, *names: str) -> MissingExtraError:
    """The error for a service whose key is not in the environment."""
    return MissingExtraError(
        f"{service} needs a key, and {' or '.join(names)} is not set",
        hint=f"export {names[0]}=... (keys are read from the environment only)",
    )
