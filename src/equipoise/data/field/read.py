"""Reading a field: a folder of files, one file, or the one that comes with the program."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from importlib.resources import as_file, files
from math import inf
from pathlib import Path
from typing import Any

from equipoise.data.field.clusters import clusters_in
from equipoise.data.field.entries import Entries
from equipoise.data.field.pairs import pairs_in
from equipoise.data.field.problem import Problem, Rule
from equipoise.data.field.records import Field
from equipoise.data.field.relations import concepts_in, relations_in
from equipoise.data.field.sentences import sentences_in
from equipoise.data.field.source import entries_of, files_in
from equipoise.data.text import PathLike, explain_unreadable, shown
from equipoise.errors import DuplicateError, InputError, ParameterError

SAMPLE = "philosophy"
"""The field that comes with the program."""

_READERS: dict[str, Callable[[Entries], Any]] = {
    "clusters": clusters_in,
    "sentences": sentences_in,
    "relations": relations_in,
    "concepts": concepts_in,
}


def read_field(path: PathLike | None = None, *, scale: float | None = None) -> Field:
    """A field from a folder, from a single file, or, without a path, the one that comes with the program.

    A folder holds any of ``pairs``, ``clusters``, ``entities``, ``relations`` and ``concepts`` as .json,
    .jsonl, .csv, .tsv or .parquet. STS-style tables (two texts and a score) are pairs, classification tables
    (a text and a label) are clusters. ``scale`` is the largest score where they do not end at 1. The first
    entry that cannot be used is an error; ``inspect_field`` collects them all.

    >>> read_field()
    <Field philosophy: 144 pairs, 10 clusters, 56 sentences, 105 relations, 16 concepts>
    """
    found = inspect_field(path, scale=scale)
    fatal = [problem for problem in found.problems if problem.fatal]
    if fatal:
        raise fatal[0].error(more=len(fatal) - 1, where=shown(path or ""))
    return found


def inspect_field(path: PathLike | None = None, *, scale: float | None = None) -> Field:
    """``read_field`` that goes on after an entry that cannot be used: the field keeps all problems."""
    if scale is not None and not 0 < scale < inf:
        raise ParameterError(f"the scale of the similarities is {scale}", hint="it is a number above 0")
    if path is None:
        with as_file(files("equipoise.data") / "samples" / SAMPLE) as folder:
            return replace(inspect_field(folder), name=SAMPLE)
    place = Path(path)
    if not place.exists():
        raise explain_unreadable(place, FileNotFoundError())
    if place.is_dir():
        parts, unread = files_in(place)
        return replace(_read([(file, part) for part, file in parts.items()], place, scale), unread=unread)
    return _read([(place, None)], place, scale)


def _read(sources: Iterable[tuple[Path, str | None]], place: Path, scale: float | None) -> Field:
    found: dict[str, Any] = {}
    problems: list[Problem] = []
    for file, named in sources:
        try:
            for part, entries in entries_of(file, named):
                if part in found:
                    raise DuplicateError(f"{shown(file)} holds its {part} twice", hint="keep one of them")
                read = _READERS.get(part)
                found[part] = pairs_in(entries, scale) if read is None else read(entries)
                problems += entries.problems
        except InputError as error:
            problem = Problem(Rule.ENTRY, shown(file), error.sentence, error.hint, error.excerpt, type(error))
            problems.append(problem)
    return Field(place.resolve().name.partition(".")[0], **found, problems=tuple(problems))
