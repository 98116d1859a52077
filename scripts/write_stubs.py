"""Write the ``.pyi`` file of every lazy module, so that type checkers and editors know its names.

Usage::

    python scripts/write_stubs.py            # after a change of a table PUBLIC_NAMES
    python scripts/write_stubs.py --check    # exit with status 1 if a file is out of date
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "equipoise"
MODULES = ("", "accounts", "bench", "concepts", "fair", "phenotypes", "places", "shards")
MAX_LINE = 120
HEADER = "# Written by scripts/write_stubs.py from PUBLIC_NAMES. Do not edit.\n\n"


def stub_text(module: str) -> str:
    """The text of the stub: one explicit re-export per public name, sorted by the module that defines it."""
    package = f"equipoise.{module}".rstrip(".")
    names = import_module(package).PUBLIC_NAMES
    sources = {name: package if names[name] == f"{package}.{name}" else names[name] for name in names}
    lines = [_reexport(sources[name], name) for name in sorted(names, key=lambda name: (sources[name], name))]
    version = "" if module else "\n__version__: str\n"
    return HEADER + "\n".join(lines) + "\n" + version


def _reexport(source: str, name: str) -> str:
    line = f"from {source} import {name} as {name}"
    return line if len(line) <= MAX_LINE else f"from {source} import (\n    {name} as {name},\n)"


def main(arguments: list[str]) -> int:
    """Write or check all stubs; the exit status."""
    out_of_date = []
    for module in MODULES:
        file = SOURCE / f"{module or '__init__'}.pyi"
        text = stub_text(module)
        if not file.is_file() or file.read_text("utf-8") != text:
            out_of_date.append(file)
            if "--check" not in arguments:
                file.write_text(text, "utf-8")
    for file in out_of_date:
        print(file)
    return 1 if out_of_date and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
