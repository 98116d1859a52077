"""Entry point of ``eq``, ``equipoise`` and ``python -m equipoise``.

It imports almost nothing, so that an interrupt during the first imports is caught as well.
"""

import os
import sys

INTERRUPTED = 130

THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")
SMALL_PRODUCTS = ("fair", "demo")
"""Commands with small matrix products: idle threads of OpenBLAS would double their CPU time and save none."""


def main() -> None:
    """Run the command line."""
    # OpenBLAS reads the variable when numpy is imported.
    if sys.argv[1:2] and sys.argv[1] in SMALL_PRODUCTS and not any(name in os.environ for name in THREADS):
        os.environ[THREADS[0]] = "1"
    try:
        from equipoise.cli.main import main as run

        run()
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
