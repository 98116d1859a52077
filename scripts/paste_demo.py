"""Copy the output of `eq demo` into README.md, so that every number there comes from a run.

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
LAST_LINE = "Details: "
MAX_LINES = 25


def printed() -> str:
    """The output of the demo in a terminal of 100 columns, without colours."""
    environment = os.environ | {"COLUMNS": "100", "NO_COLOR": "1", "PYTHONIOENCODING": "utf-8"}
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "equipoise", "demo"]
        completed = subprocess.run(
            command, check=True, stdout=subprocess.PIPE, encoding="utf-8", env=environment, cwd=folder
        )
    return "\n".join(line.rstrip() for line in completed.stdout.strip().splitlines())


def answer(text: str) -> str:
    """The part that the README shows: the answer, up to the line that names the report."""
    lines = text.splitlines()
    last_line_number = next((number for number, line in enumerate(lines, 1) if line.startswith(LAST_LINE)), MAX_LINES)
    return "\n".join(lines[:last_line_number]).rstrip()


def main() -> None:
    """Replace the block."""
    before, opens, rest = README.read_text(encoding="utf-8").partition(OPENS)
    _, closes, after = rest.partition(CLOSES)
    README.write_text(f"{before}{opens}{answer(printed())}\n{closes}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
