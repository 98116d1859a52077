"""Entry point of ``eq``, ``equipoise`` and ``python -m equipoise``.

It imports almost nothing, so that an interrupt during the first imports is caught as well.
"""

import sys

INTERRUPTED = 130


def main() -> None:
    """Run the command line."""
    try:
        from equipoise.cli.main import main as run

        run()
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
