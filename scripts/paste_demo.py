"""Put what `eq demo` prints first into README.md, so that every number there comes from a run.

python scripts/paste_demo.py            rewrites the first text block of README.md
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"
OPENS, CLOSES = "```text\n", "```\n"
BEYOND = "Optimistic, in percent"
"""The heading with which the part begins that the README leaves out."""


def printed() -> str:
    """The demo as a terminal of 100 columns shows it, without colours."""
    environment = os.environ | {"COLUMNS": "100", "NO_COLOR": "1", "PYTHONIOENCODING": "utf-8"}
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "equipoise", "demo", "-o", folder]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, encoding="utf-8", env=environment)
    return "\n".join(line.rstrip() for line in done.stdout.strip().splitlines())


def honest(text: str) -> str:
    """The part of the demo that may be quoted: the honest table, how it was made, and the verdict."""
    return text.partition(BEYOND)[0].rstrip()


def main() -> None:
    """Replace the block."""
    before, opens, rest = README.read_text(encoding="utf-8").partition(OPENS)
    _, closes, after = rest.partition(CLOSES)
    README.write_text(f"{before}{opens}{honest(printed())}\n{closes}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
