"""Files of ``-o FILE``: their extension fits the format, and a file that has other content is not replaced."""

from __future__ import annotations

import re
from pathlib import Path, PurePath

from equipoise.errors import ParameterError, StoreError
from equipoise.io.atomic import write_text

SUFFIXES = {
    "md": (".md",),
    "latex": (".tex",),
    "csv": (".csv",),
    "json": (".json",),
    "card": (".yaml", ".yml", ".md"),
    "bibtex": (".bib",),
    "trec": (".trec", ".run"),
}
"""The file extensions of every format; the first one is suggested."""
OTHER_SUFFIXES = (".html", ".jsonl", ".parquet", ".pdf", ".png", ".svg", ".tsv", ".xlsx")
"""File extensions of formats that ``--to`` does not write."""

_OPENINGS = {
    "md": re.compile(r"^\|\W*(\w+)", re.MULTILINE),
    "latex": re.compile(r"\\begin\{(tab)"),
    "csv": re.compile(r"\A\W*(\w+)"),
    "json": re.compile(r'\A[\[{]\s*\{?\s*"(\w+)"'),
    "card": re.compile(r"^(model-index):", re.MULTILINE),
    "bibtex": re.compile(r"\A(@)"),
    "trec": re.compile(r"\A.*?(\S+)$", re.MULTILINE),
}
"""What earlier output has in common with new output: the first heading of a table, the tag of a run."""
_PAGE = re.compile(r'<meta name="generator" content="equipoise')
_OPENING_LENGTH = 20_000


def check_suffix(path: str, to: str) -> None:
    """Raise ``ParameterError`` if the file extension is that of another format than ``to``."""
    suffix = PurePath(path).suffix.casefold()
    known = {*OTHER_SUFFIXES, *(one for suffixes in SUFFIXES.values() for one in suffixes)}
    if suffix in known and suffix not in SUFFIXES[to]:
        fitting = next((name for name, suffixes in SUFFIXES.items() if suffix in suffixes), None)
        raise ParameterError(
            f"{path} does not have the file extension of --to {to}",
            hint=f"write -o {PurePath(path).with_suffix(SUFFIXES[to][0])}{f', or --to {fitting}' if fitting else ''}",
        )


def write_output(path: str, text: str, to: str) -> None:
    """Write output of a format; an existing file is replaced only if it is earlier output of this kind."""
    opening = _OPENINGS[to]
    earlier = _start_of(path)
    if earlier and _found(opening, earlier) != _found(opening, text):
        raise _other_content(path, "was not written by this command")
    write_text(path, text)


def check_is_page(path: str) -> bool:
    """Whether a page is replaced; raise ``StoreError`` if the file is no page of this package."""
    earlier = _start_of(path)
    if earlier and not _PAGE.search(earlier):
        raise _other_content(path, "is not a report")
    return bool(earlier)


def _other_content(path: str, reason: str) -> StoreError:
    return StoreError(f"{path} exists and {reason}", hint="choose another name with -o, or remove the file")


def _start_of(path: str) -> str:
    """The beginning of an existing file; empty if there is none."""
    if not Path(path).is_file():
        return ""
    with Path(path).open(encoding="utf-8", errors="replace") as file:
        return file.read(_OPENING_LENGTH)


def _found(opening: re.Pattern[str], text: str) -> str | None:
    match = opening.search(text)
    return match.group(1) if match else None
