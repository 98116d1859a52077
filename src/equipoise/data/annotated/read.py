"""Annotated documents from a folder, a JSON or a JSONL file; what cannot be read is listed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from equipoise.data.annotated.document import AnnotatedDocument
from equipoise.data.annotated.record import document_of
from equipoise.data.jsontext import parse_json, parse_line
from equipoise.data.tables import format_of
from equipoise.data.text import PathLike, open_text, shown
from equipoise.errors import FormatError, InputError, UnknownNameError

SAMPLE = "notes"
"""The short notes that come with the program."""
FOLDER = "annotations"
_LISTS = ("documents", "data")


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that does not fit, and where; ``lost`` says whether a whole document is missing for it.

    ``hint`` is what to do about it, where that is known.
    """

    where: str
    sentence: str
    lost: bool
    hint: str = ""

    def __str__(self) -> str:
        return f"{self.where} {self.sentence}" if self.lost else f"{self.where}: {self.sentence}"


@dataclass(frozen=True)
class Annotated:
    """Documents with gold, in the order of their files, and everything that did not fit."""

    documents: tuple[AnnotatedDocument, ...]
    problems: tuple[Problem, ...] = ()
    source: str = ""

    def __len__(self) -> int:
        return len(self.documents)

    @property
    def lost(self) -> tuple[Problem, ...]:
        """The documents that could not be read."""
        return tuple(each for each in self.problems if each.lost)

    @property
    def without_gold(self) -> tuple[str, ...]:
        """The documents in which people found nothing: recall is not defined there."""
        return tuple(each.id for each in self.documents if not each.annotations)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of texts and gold: equal content, equal fingerprint."""
        content = [asdict(document) for document in self.documents]
        return hashlib.sha256(json.dumps(content, ensure_ascii=False).encode("utf-8")).hexdigest()


def read_annotated(source: PathLike, dataset: str | None = None) -> Annotated:
    """The documents of a folder, of a JSON or JSONL file, or the sample called ``notes``.

    A folder holds ``annotations/*.json``, a document a file, or several datasets that do; ``dataset`` picks
    one. A flat file holds a list of such documents, or an object with it under ``documents``; JSONL one a
    line; there ``dataset`` picks the documents that name it under that key. Spans are compared with the text
    and ids are normalised. A document that cannot be read is a lost one among the problems; only when none
    is left is that an error.

    >>> notes = read_annotated("notes", dataset="german")
    >>> len(notes) > 9, notes.problems, notes.documents[0].language
    (True, (), 'de')
    """
    if str(source) == SAMPLE and not Path(SAMPLE).exists():
        with as_file(files("equipoise.data") / "samples" / SAMPLE) as folder:
            return _annotated(Path(folder), dataset, SAMPLE)
    return _annotated(Path(source), dataset, shown(source))


def _annotated(path: Path, dataset: str | None, source: str) -> Annotated:
    documents: dict[str, AnnotatedDocument] = {}
    problems: list[Problem] = []
    first_error: InputError | None = None
    found = _of_folder(path, dataset) if path.is_dir() else _of_one_file(path, dataset)
    for where, name, of, value in found:
        try:
            if isinstance(value, InputError):
                raise value
            document, told = document_of(value, name=name, dataset=of)
            if document.id in documents:
                raise FormatError(f"has the id {document.id}, as a document before it", hint="rename one")
        except InputError as error:
            first_error = first_error or error
            sentence = error.sentence.removeprefix(where).strip()
            problems.append(Problem(where, sentence, lost=True, hint=error.hint))
            continue
        documents[document.id] = document
        problems += [Problem(where, each, lost=False) for each in told]
    if not documents:
        of = "" if dataset is None else f"the dataset {dataset} of "
        fact = str(problems[0]) if problems else f"{of}{source} holds no document"
        hint = first_error.hint if first_error else f"give a folder with {FOLDER}/*.json, or a JSON file"
        raise InputError(f"no document can be read: {fact}", hint=hint)
    return Annotated(tuple(documents.values()), tuple(problems), source)


Found = tuple[str, str, str, Any]
"""Where a value stands, the name to use where it has none, its dataset, and the value or its error."""


def _of_folder(folder: Path, dataset: str | None) -> Iterator[Found]:
    """The documents of every dataset, or of one, in the order of their names."""
    datasets = _datasets(folder)
    if dataset is not None:
        if dataset not in datasets:
            raise UnknownNameError.of(
                "dataset", dataset, datasets, more=f"{shown(folder)} has {', '.join(datasets) or 'none'}"
            )
        datasets = {dataset: datasets[dataset]}
    for name, place in datasets.items():
        for file in sorted(place.iterdir()):
            if format_of(file) in ("json", "jsonl"):
                yield from _of_file(file, name)


def _of_one_file(path: Path, dataset: str | None) -> Iterator[Found]:
    """The documents of a flat file, or those that say of themselves that they are of a dataset."""
    found = list(_of_file(path, "", alone=True))
    if dataset is None:
        yield from found
        return
    told = [value.get("dataset") if isinstance(value, dict) else None for _, _, _, value in found]
    known = sorted({each for each in told if isinstance(each, str)})
    if dataset not in known:
        more = f"the documents of {shown(path)} are of {', '.join(known)}"
        raise UnknownNameError.of(
            "dataset", dataset, known, more=more if known else f"no document of {shown(path)} names a dataset"
        )
    for each, of in zip(found, told, strict=True):
        if of == dataset or isinstance(each[-1], InputError):
            yield each


def _datasets(folder: Path) -> dict[str, Path]:
    """The folders that hold documents, by the names of their datasets."""
    if (folder / FOLDER).is_dir():
        return {folder.name: folder / FOLDER}
    below = {each.name: each / FOLDER for each in sorted(folder.iterdir()) if (each / FOLDER).is_dir()}
    return below or {folder.parent.name if folder.name == FOLDER else folder.name: folder}


def _of_file(path: Path, dataset: str, *, alone: bool = False) -> Iterator[Found]:
    """The values of a file; a file that cannot be read is one error, unless there is no other."""
    where, form = shown(path), format_of(path)
    if alone and form not in ("json", "jsonl"):
        open_text(path)
        raise FormatError(f"{where} has a suffix that names no JSON", hint="name it .json or .jsonl")
    try:
        file = open_text(path)
        if form == "jsonl":
            for number, line in enumerate(file.lines, start=1):
                if line.strip():
                    at = f"{where} line {number}"
                    try:
                        value = parse_line(file, number, line)
                    except InputError as error:
                        value = error
                    yield at, f"d{number}", dataset, value
            return
        content = parse_json(file)
    except InputError as error:
        if alone:
            raise
        yield where, path.stem, dataset, error
        return
    listed = _list_in(content)
    if listed is None:
        yield where, path.stem, dataset, content
        return
    for number, value in enumerate(listed, start=1):
        yield f"{where} document {number}", f"d{number}", dataset, value


def _list_in(content: Any) -> list[Any] | None:
    """The list of documents that a JSON value is or holds; None where it is one document itself."""
    if isinstance(content, list):
        return content
    if isinstance(content, dict):
        return next((content[key] for key in _LISTS if isinstance(content.get(key), list)), None)
    return None
