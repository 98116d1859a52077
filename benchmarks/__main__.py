"""Run the benchmarks of this folder, print their tables, and store them in README.md.

python -m benchmarks                 all benchmarks
python -m benchmarks --quick         small sizes; README.md does not change
python -m benchmarks logits start    only these; the other sections of README.md do not change
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from time import perf_counter

from benchmarks.machine import machine_description
from benchmarks.row import HEAD, Row

HERE = Path(__file__).parent
PAGE = HERE / "README.md"
TABLE_START, TABLE_END = "<!-- table: written by python -m benchmarks -->", "<!-- end of table -->"
SHARED_MACHINE = "Unless a section has its own line: "
"""Before the machine of most sections."""


def main() -> None:
    """Measure and print; results at full size replace their section of README.md."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="modules of this folder; default: all")
    parser.add_argument("--quick", action="store_true", help="small sizes; README.md does not change")
    options = parser.parse_args()
    for name in options.names or benchmark_names():
        text = section(name, options.quick)
        print(text)
        if not options.quick:
            page = PAGE.read_text(encoding="utf-8")
            PAGE.write_text(replace_section(page, name, text), encoding="utf-8")


def section(name: str, quick: bool) -> str:
    """The results of one module, with the machine and the versions of the packages."""
    module = import_module(f"benchmarks.{name}")
    rows = run_benchmark(name, quick)
    tables = [markdown([HEAD, *(row.cells for row in rows)]) if rows else ""]
    if hasattr(module, "curve"):
        tables.append(markdown(module.curve(quick)))
    return "\n\n".join([f"### {name}: {module.__doc__.splitlines()[0]}", machine_description(), *filter(None, tables)])


def benchmark_names() -> list[str]:
    """The modules with ``rows`` or ``curve``; modules that cannot be imported are reported and skipped."""
    names = []
    for name in (module.name for module in iter_modules([str(HERE)]) if not module.name.startswith("_")):
        try:
            module = import_module(f"benchmarks.{name}")
            if hasattr(module, "rows") or hasattr(module, "curve"):
                names.append(name)
        except ImportError as error:
            print(f"{name} is left out: {error}", file=sys.stderr)
    return names


def run_benchmark(name: str, quick: bool) -> list[Row]:
    """The rows of one module, which are also printed to stderr."""
    start = perf_counter()
    module = import_module(f"benchmarks.{name}")
    rows: list[Row] = module.rows(quick) if hasattr(module, "rows") else []
    print(f"{name}: {len(rows)} lines in {perf_counter() - start:.0f} s", file=sys.stderr)
    for row in rows:
        print("  " + " | ".join(row.cells), file=sys.stderr)
    return rows


def markdown(lines: Sequence[Sequence[str]]) -> str:
    """A Markdown table with aligned columns; the first line is the header."""
    if not lines:
        return ""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    table = ["| " + " | ".join(map(str.ljust, line, widths)) + " |" for line in lines]
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([table[0], rule, *table[1:]])


def replace_section(page: str, name: str, text: str) -> str:
    """The page with this section replaced between the markers, and the sections sorted by name.

    The machine of most sections is stated once, before them.
    """
    head, _, rest = page.partition(TABLE_START)
    table_text, _, tail = rest.partition(TABLE_END)
    first, *chunks = re.split(r"^(?=### )", table_text, flags=re.MULTILINE)
    shared = first.strip().removeprefix(SHARED_MACHINE)
    sections = [StoredSection.parse(chunk, shared) for chunk in (*chunks, text)]
    by_name = {section.name: section for section in sections}
    machine, _ = Counter(section.machine for section in by_name.values()).most_common(1)[0]
    texts = "\n\n".join(by_name[key].without(machine) for key in sorted(by_name))
    return f"{head}{TABLE_START}\n\n{SHARED_MACHINE}{machine}\n\n{texts}\n\n{TABLE_END}{tail}"


@dataclass(frozen=True)
class StoredSection:
    """A section of the page: its title, machine and tables."""

    title: str
    machine: str
    tables: str

    @classmethod
    def parse(cls, text: str, shared_machine: str) -> StoredSection:
        """A section with its own machine, or with the shared one."""
        title, _, body = text.strip().partition("\n\n")
        if body.startswith("|"):
            return cls(title, shared_machine, body)
        machine, _, tables = body.partition("\n\n")
        return cls(title, machine, tables)

    @property
    def name(self) -> str:
        """The name of the module."""
        return self.title.removeprefix("### ").partition(":")[0]

    def without(self, machine: str) -> str:
        """The text, without the machine if it is this one."""
        return "\n\n".join([self.title, *([] if self.machine == machine else [self.machine]), self.tables])


if __name__ == "__main__":
    main()
