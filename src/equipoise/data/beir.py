"""Folders in BEIR's layout: corpus.jsonl, queries.jsonl, qrels/<split>.tsv."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from equipoise.data.runs import read_qrels
from equipoise.data.tables import read_table
from equipoise.data.text import PathLike, explain_unreadable, shown
from equipoise.data.trec import Qrels
from equipoise.errors import DuplicateError, FormatError, InputError, UnknownNameError


def read_beir(folder: PathLike, *, split: str | None = None, name: str | None = None) -> dict[str, Any]:
    """The parts of a dataset: name, items, units, truth and splits; units are the judged queries."""
    root = Path(folder)
    files = _qrels_files(root)
    if split is not None:
        if split not in files:
            raise UnknownNameError.of(
                f"split of {shown(root)}", split, files, more=f"there are: {', '.join(files)}"
            )
        files = {split: files[split]}
    qrels = {each: read_qrels(path) for each, path in files.items()}
    truth = _joined(qrels)
    queries = _texts(_named(root, "queries.jsonl"))
    return {
        "name": name or root.resolve().name,
        "items": _texts(_named(root, "corpus.jsonl")),
        "units": {query: text for query, text in queries.items() if query in truth},
        "truth": truth,
        "splits": {each: tuple(judged) for each, judged in qrels.items()},
    }


def _qrels_files(root: Path) -> dict[str, Path]:
    folder = root / "qrels"
    try:
        names = sorted(os.listdir(folder))
    except (OSError, ValueError) as error:
        raise explain_unreadable(folder, error) from error
    files = {each.split(".")[0]: folder / each for each in names if each.endswith((".tsv", ".tsv.gz"))}
    if not files:
        raise InputError(
            f"{shown(folder)} holds no .tsv file", hint="BEIR keeps judgements in qrels/test.tsv"
        )
    return files


def _named(root: Path, name: str) -> Path:
    packed = root / f"{name}.gz"
    return packed if packed.exists() else root / name


def _joined(qrels: dict[str, Qrels]) -> Qrels:
    """All splits in one; a query that two splits judge would leak from one into the other."""
    truth: Qrels = {}
    home: dict[str, str] = {}
    for split, judged in qrels.items():
        for query, gains in judged.items():
            if query in home:
                raise DuplicateError(
                    f"query {query} is judged in the splits {home[query]} and {split}",
                    hint=f"read one of them: split={split!r}",
                )
            home[query] = split
            truth[query] = gains
    return truth


def _texts(path: Path) -> dict[str, str]:
    """Title and text by ``_id``."""
    table = read_table(path).require("_id", "text")
    texts: dict[str, str] = {}
    index_of: dict[str, int] = {}
    for index, row in enumerate(table.rows):
        name, title, text = row["_id"], row.get("title") or "", row["text"]
        if not isinstance(name, str) or not name or not isinstance(title, str) or not isinstance(text, str):
            raise table.error(FormatError, [index], "needs strings as _id, title and text")
        first = index_of.setdefault(name, index)
        if first != index:
            raise table.error(DuplicateError, [first, index], f"both have the _id {name}", hint="keep one")
        texts[name] = titled(title, text)
    return texts


def titled(title: str, text: str) -> str:
    """A document as it is embedded: its title, where it has one, before its text.

    >>> titled("Foxes", "They are red."), titled("", "No title.")
    ('Foxes They are red.', 'No title.')
    """
    return f"{title} {text}" if title else text
