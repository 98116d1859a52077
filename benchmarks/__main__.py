"""Run every measurement of this folder, print its table, keep it in README.md.

python -m benchmarks                 all of it
python -m benchmarks --quick         small sizes, a look only
python -m benchmarks logits start    only these, the other sections of README.md stay
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from time import perf_counter

from benchmarks.machine import described
from benchmarks.row import HEAD, Row

HERE = Path(__file__).parent
PAGE = HERE / "README.md"
OPENS, CLOSES = "<!-- table: written by python -m benchmarks -->", "<!-- end of table -->"


def main() -> None:
    """Measure and print; what was measured at full size replaces its section of the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="modules of this folder; all when none is named")
    parser.add_argument("--quick", action="store_true", help="small sizes; README.md stays as it is")
    chosen = parser.parse_args()
    for name in chosen.names or measuring():
        text = section(name, chosen.quick)
        print(text)
        if not chosen.quick:
            page = PAGE.read_text(encoding="utf-8")
            PAGE.write_text(replaced(page, name, text), encoding="utf-8")


def section(name: str, quick: bool) -> str:
    """What one module measured, with the machine and the versions it was measured on."""
    module = import_module(f"benchmarks.{name}")
    rows = measured(name, quick)
    tables = [markdown([HEAD, *(row.cells for row in rows)]) if rows else ""]
    if hasattr(module, "curve"):
        tables.append(markdown(module.curve(quick)))
    return "\n\n".join([f"### {name}: {module.__doc__.splitlines()[0]}", described(), *filter(None, tables)])


def measuring() -> list[str]:
    """The modules that have ``rows``; one that cannot be imported is named and left out."""
    rows = []
    for name in (module.name for module in iter_modules([str(HERE)]) if not module.name.startswith("_")):
        try:
            module = import_module(f"benchmarks.{name}")
            if hasattr(module, "rows") or hasattr(module, "curve"):
                rows.append(name)
        except ImportError as error:
            print(f"{name} is left out: {error}", file=sys.stderr)
    return rows


def measured(name: str, quick: bool) -> list[Row]:
    """The lines of one module; they also go to stderr as soon as they are there."""
    start = perf_counter()
    module = import_module(f"benchmarks.{name}")
    rows: list[Row] = module.rows(quick) if hasattr(module, "rows") else []
    print(f"{name}: {len(rows)} lines in {perf_counter() - start:.0f} s", file=sys.stderr)
    for row in rows:
        print("  " + " | ".join(row.cells), file=sys.stderr)
    return rows


def markdown(lines: Sequence[Sequence[str]]) -> str:
    """A table whose first line is its head, columns aligned for those who read it as text."""
    if not lines:
        return ""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    table = ["| " + " | ".join(map(str.ljust, line, widths)) + " |" for line in lines]
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([table[0], rule, *table[1:]])


def replaced(page: str, name: str, text: str) -> str:
    """The page with another section of that name between its marks, the sections in order of name."""
    before, _, rest = page.partition(OPENS)
    inside, _, after = rest.partition(CLOSES)
    parts = re.split(r"^(?=### )", inside, flags=re.MULTILINE)
    sections = {part[4:].partition(":")[0]: part.strip() for part in parts if part.startswith("### ")}
    sections[name] = text
    body = "\n\n".join(sections[title] for title in sorted(sections))
    return f"{before}{OPENS}\n\n{body}\n\n{CLOSES}{after}"


if __name__ == "__main__":
    main()
