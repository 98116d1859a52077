"""Run every measurement of this folder, print one table, keep it in README.md.

python -m benchmarks                 all of it, and rewrites README.md
python -m benchmarks --quick         small sizes, a look only
python -m benchmarks logits start    only these
"""

from __future__ import annotations

import argparse
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
    """Measure, print, and where everything was measured at full size, write it down."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="modules of this folder; all when none is named")
    parser.add_argument("--quick", action="store_true", help="small sizes; README.md stays as it is")
    chosen = parser.parse_args()
    names = chosen.names or measuring()
    rows = [row for name in names for row in measured(name, chosen.quick)]
    curve = [] if chosen.names else import_module("benchmarks.growth").curve(chosen.quick)
    tables = [markdown([HEAD, *(row.cells for row in rows)]), markdown(curve)]
    text = "\n\n".join(filter(None, [described(), *tables]))
    print(text)
    if not chosen.quick and not chosen.names:
        PAGE.write_text(replaced(PAGE.read_text(encoding="utf-8"), text), encoding="utf-8")


def measuring() -> list[str]:
    """The modules that have ``rows``; one that cannot be imported is named and left out."""
    found = []
    for name in (module.name for module in iter_modules([str(HERE)]) if not module.name.startswith("_")):
        try:
            if hasattr(import_module(f"benchmarks.{name}"), "rows"):
                found.append(name)
        except ImportError as error:
            print(f"{name} is left out: {error}", file=sys.stderr)
    return found


def measured(name: str, quick: bool) -> list[Row]:
    """The lines of one module; they also go to stderr as soon as they are there."""
    start = perf_counter()
    rows: list[Row] = import_module(f"benchmarks.{name}").rows(quick)
    print(f"{name}: {len(rows)} lines in {perf_counter() - start:.0f} s", file=sys.stderr)
    for row in rows:
        print("  " + " | ".join(row.cells), file=sys.stderr)
    return rows


def markdown(lines: Sequence[Sequence[str]]) -> str:
    """A table whose first line is its head, columns aligned for those who read it as text."""
    if not lines:
        return ""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    drawn = ["| " + " | ".join(map(str.ljust, line, widths)) + " |" for line in lines]
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([drawn[0], rule, *drawn[1:]])


def replaced(page: str, table: str) -> str:
    """The page with another table between its marks."""
    before, _, rest = page.partition(OPENS)
    _, _, after = rest.partition(CLOSES)
    return f"{before}{OPENS}\n\n{table}\n\n{CLOSES}{after}"


if __name__ == "__main__":
    main()
