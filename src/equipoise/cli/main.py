"""Entry point of the commands ``eq`` and ``equipoise``.

It imports almost nothing, so that an interrupt during the first imports is caught as well.
"""

from __future__ import annotations

import sys
from typing import Any

INTERRUPTED = 130


def main() -> None:
    """Run the command line."""
    try:
        from equipoise.cli.app import cli

        cli.main()
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        sys.exit(INTERRUPTED)


def __getattr__(name: str) -> Any:
    """``cli`` and ``COMMANDS``, loaded on first use."""
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from equipoise.cli import app

    return getattr(app, name)
