"""Read a concept set: find its parts in files of a folder or lists of a file, by name or by key."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.resources import as_file, files
from math import inf
from pathlib import Path
from typing import Any

from equipoise.domains.concepts.concept_set import ConceptSet, ConceptSetIssue, IssueKind
from equipoise.domains.concepts.concept_set_sections import (
    TEXTS,
    SectionRows,
    label_keys,
    parse_clusters,
    parse_concepts,
    parse_pairs,
    parse_relations,
    parse_sentences,
)
from equipoise.errors import DuplicateError, FormatError, InputError, ParameterError, did_you_mean
from equipoise.io.json import parse_json, parse_lines
from equipoise.io.tables import FORMATS, parse_table, read_parquet, table_format
from equipoise.io.text import PathLike, display_path, open_text, read_error

SECTION_OF_NAME = {
    "pairs": "pairs",
    "clusters": "clusters",
    "entities": "sentences",
    "sentences": "sentences",
    "relations": "relations",
    "triples": "relations",
    "concepts": "concepts",
}
"""The part that a file, or a list in a file, of this name is."""
_OWN_KEYS = ("theme", "cluster_id", "text", "subject")
"""An object with one of these is an entry, not a file of lists."""


def section_files(folder: Path) -> tuple[dict[str, Path], tuple[str, ...]]:
    """The file of each part, and the names of other data files, which are not read."""
    try:
        names = sorted(path.name for path in folder.iterdir())
    except OSError as error:
        raise read_error(folder, error) from error
    data = [name for name in names if table_format(name) is not None]
    files: dict[str, Path] = {}
    for name in data:
        part = SECTION_OF_NAME.get(name.partition(".")[0].casefold())
        if part is None:
            continue
        if part in files:
            raise DuplicateError(
                f"{display_path(folder)} holds its {part} twice, in {files[part].name} and in {name}",
                hint="keep one of them",
            )
        files[part] = folder / name
    if not files:
        raise InputError(f"{display_path(folder)} contains no part of a concept set", hint=_hint(names))
    return files, tuple(name for name in data if folder / name not in files.values())


def _hint(names: list[str]) -> str:
    expected = [f"{part}.json" for part in ("pairs", "clusters", "entities", "relations", "concepts")]
    near = [f"{name}: {guess}" for name in names if (guess := did_you_mean(name, expected))]
    return next(iter(near), f"name its files {', '.join(expected)}; any of them will do")


def read_sections(path: Path, part: str | None = None) -> Iterator[tuple[str, SectionRows]]:
    """The sections of a file: the one named by its folder or file name, or those of its keys."""
    form = table_format(path)
    if form is None:
        raise FormatError(
            f"{display_path(path)} cannot be read as part of a concept set: its file extension is not that of a table",
            hint=f"use one of {', '.join(FORMATS)}",
        )
    section = part or SECTION_OF_NAME.get(path.name.partition(".")[0].casefold())
    if form == "json":
        yield from _from_json(path, section)
        return
    if form == "jsonl":
        file = open_text(path)
        numbered = parse_lines(file)
        values, lines = [value for _, value in numbered], [line for line, _ in numbered]
        entries = SectionRows(file.name, values, lines, file)
    else:
        table = read_parquet(path) if form == "parquet" else parse_table(open_text(path), form)
        entries = SectionRows(table.name, table.rows, table.line_numbers, table.file)
    yield from _sections(entries, section)


def _from_json(path: Path, section: str | None) -> Iterator[tuple[str, SectionRows]]:
    file = open_text(path)
    value = parse_json(file)
    lists = _lists(value)
    if lists:
        for key, rows in lists.items():
            if section in (None, SECTION_OF_NAME[key]) or len(lists) > 1:
                name = f"{file.name} {key}" if len(lists) > 1 else file.name
                yield from _sections(SectionRows(name, rows), SECTION_OF_NAME[key])
            else:
                raise FormatError(f"{file.name} has {key}, but its name is {section}", hint="rename the file")
        return
    if isinstance(value, Mapping) and any(key in value for key in _OWN_KEYS):
        value = [value]
    if not isinstance(value, list):
        raise FormatError(
            f"{file.name} is JSON, but not a list of entries", hint='write [{...}, ...] or {"relations": [...]}'
        )
    yield from _sections(SectionRows(file.name, value), section)


def _lists(value: Any) -> dict[str, list[Any]]:
    """The lists of an object with parts of a concept set, by their key."""
    if not isinstance(value, Mapping) or any(key in value for key in _OWN_KEYS):
        return {}
    return {key: rows for key, rows in value.items() if key in SECTION_OF_NAME and isinstance(rows, list)}


def _sections(entries: SectionRows, section: str | None) -> Iterator[tuple[str, SectionRows]]:
    """The entries with their section; texts with entities and relations are two, unless the file name decides.

    Each entry may be an object with a list of relations, such as those of one text. A relation that several texts
    state is one relation.
    """
    texts = [entry for entry in entries.values if isinstance(entry, Mapping) and "relations" in entry]
    has_relations = bool(texts) and len(texts) == len(entries)
    has_entities = any("entities" in text for text in texts)
    if section not in (None, "relations") or not has_relations or (section is None and has_entities):
        yield section or guess_section(entries), entries
    if has_relations and section in (None, "relations"):
        yield "relations", _join_relations(entries, texts)


def _join_relations(entries: SectionRows, texts: Sequence[Mapping[str, Any]]) -> SectionRows:
    """The relations of all texts."""
    values, positions = [], []
    stated: set[str] = set()
    for row, text in enumerate(texts):
        relations = text["relations"] if isinstance(text["relations"], list) else [text["relations"]]
        other_relations = [relation for relation in relations if repr(relation) not in stated]
        stated.update(map(repr, relations))
        values += other_relations
        positions += [row + 1 if entries.lines is None else entries.lines[row]] * len(other_relations)
    return SectionRows(entries.name, values, positions if len(texts) > 1 else None, entries.file)


def guess_section(entries: SectionRows) -> str:
    """The section that matches the keys of the first entry."""
    if not len(entries):
        raise FormatError(f"{entries.name} is empty", hint="write its entries, or leave the file out")
    first = entries.values[0]
    if isinstance(first, str):
        return "concepts"
    keys = first if isinstance(first, Mapping) else {}
    if any(key in keys for pair in TEXTS for key in pair):
        return "pairs"
    for key, part in (("concepts", "clusters"), ("entities", "sentences"), ("subject", "relations")):
        if key in keys:
            return part
    if label_keys(keys) is not None:
        return "clusters"
    if "concept" in keys:
        return "concepts"
    raise FormatError(
        f"{entries.name} is not part of a concept set: its first entry has "
        f"{'the keys ' + ', '.join(map(str, keys)) if keys else 'no keys'}",
        hint="pairs have concept_1 and concept_2, clusters concepts, sentences entities, relations a subject",
    )


SAMPLE = "philosophy"
"""The included concept set."""

_READERS: dict[str, Callable[[SectionRows], Any]] = {
    "clusters": parse_clusters,
    "sentences": parse_sentences,
    "relations": parse_relations,
    "concepts": parse_concepts,
}


def read_concept_set(path: PathLike | None = None, *, scale: float | None = None) -> ConceptSet:
    """Read a concept set.

    The first entry that cannot be used is an error; ``eq concepts check`` lists all of them.

    Parameters
    ----------
    path
        A folder or a file; None for the included concept set. A folder holds any of ``pairs``, ``clusters``,
        ``entities``, ``relations`` and ``concepts`` as .json, .jsonl, .csv, .tsv or .parquet. STS-style tables (two
        texts and a score) are pairs, classification tables (a text and a label) are clusters.
    scale
        The maximum of the expected similarities if it is not 1.

    Returns
    -------
    ConceptSet
        Pairs, clusters, sentences with entities, relations and concepts.

    Examples
    --------
    >>> read_concept_set()
    <ConceptSet philosophy: 240 pairs, 10 clusters, 56 sentences, 151 relations, 16 concepts>
    """
    concept_set = read_with_issues(path, scale=scale)
    fatal = [problem for problem in concept_set.problems if problem.fatal]
    if fatal:
        raise fatal[0].error(more=len(fatal) - 1, location=display_path(path or ""))
    return concept_set


def read_with_issues(path: PathLike | None = None, *, scale: float | None = None) -> ConceptSet:
    """``read_concept_set`` that continues after invalid entries and keeps all problems."""
    if scale is not None and not 0 < scale < inf:
        raise ParameterError(f"the scale of the similarities is {scale}", hint="give a number above 0")
    if path is None:
        with as_file(files("equipoise.io") / "samples" / SAMPLE) as folder:
            return replace(read_with_issues(folder), name=SAMPLE)
    location = Path(path)
    if not location.exists():
        raise read_error(location, FileNotFoundError())
    if location.is_dir():
        parts, unread = section_files(location)
        return replace(_read([(file, part) for part, file in parts.items()], location, scale), unread=unread)
    return _read([(location, None)], location, scale)


def _read(sources: Iterable[tuple[Path, str | None]], location: Path, scale: float | None) -> ConceptSet:
    sections: dict[str, Any] = {}
    problems: list[ConceptSetIssue] = []
    for file, section in sources:
        try:
            for part, entries in read_sections(file, section):
                if part in sections:
                    raise DuplicateError(f"{display_path(file)} holds its {part} twice", hint="keep one of them")
                read = _READERS.get(part)
                sections[part] = parse_pairs(entries, scale) if read is None else read(entries)
                problems += entries.problems
        except InputError as error:
            problem = ConceptSetIssue(
                IssueKind.ENTRY, display_path(file), error.message, error.hint, error.excerpt, type(error)
            )
            problems.append(problem)
    return ConceptSet(location.resolve().name.partition(".")[0], **sections, problems=tuple(problems))
