"""From files and folders to documents: the suffix says how a file is read, its first bytes must agree."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from equipoise.data.documents.document import Document
from equipoise.data.documents.docx import docx_text
from equipoise.data.documents.html import html_text
from equipoise.data.documents.pdf import pdf_text
from equipoise.data.documents.signature import refuse_disguise
from equipoise.data.text import STDIN, PathLike, explain_unreadable, read_bytes, read_text, shown
from equipoise.errors import DuplicateError, FormatError, InputError, ParameterError


def read_document(path: PathLike) -> str:
    """The text of one file, as its suffix says; ``-`` is plain text from standard input.

    Line ends become line feeds. A file that holds no text is an error.
    """
    if os.fspath(path) == STDIN:
        return _plain_text(path)
    suffix = _suffix(Path(path))
    if suffix not in _READERS:
        _refuse_suffix(path, suffix)
    refuse_disguise(path, read_bytes(path), suffix)
    text = _READERS[suffix](path)
    if not text.strip():
        raise InputError(f"{shown(path)} holds no text", hint="is it the right file?")
    return text


def read_documents(*paths: PathLike) -> list[Document]:
    """The documents of these files and folders, in this order.

    A folder is walked with all below it, in the order of the names; files of other kinds and hidden ones are
    left out, and a folder without any document is an error. A file that is met twice is an error as well.
    """
    if not paths:
        raise ParameterError("no document was named", hint="name at least one file or folder")
    found = [(Path(path), name) for path in paths for path, name in _files(path)]
    first_of: dict[Path, Path] = {}
    for path, _ in found:
        first = first_of.setdefault(path.resolve(), path)
        if first is not path:
            raise DuplicateError(
                f"{shown(path)} is read twice: {shown(first)} is the same file",
                hint="name it once, or only its folder",
            )
    names = [name for _, name in found]
    return [
        Document(name if names.count(name) == 1 else path.as_posix(), read_document(path))
        for path, name in found
    ]


def _plain_text(path: PathLike) -> str:
    return read_text(path).replace("\r\n", "\n").replace("\r", "\n")


_READERS: dict[str, Callable[[PathLike], str]] = {
    ".txt": _plain_text,
    ".md": _plain_text,
    ".markdown": _plain_text,
    ".rst": _plain_text,
    ".html": html_text,
    ".htm": html_text,
    ".pdf": pdf_text,
    ".docx": docx_text,
}

SUFFIXES = tuple(_READERS)
"""The suffixes of the formats that can be read."""

_CONVERTED_BY_OFFICE = frozenset({".doc", ".odt", ".rtf", ".wpd", ".pages"})


def _suffix(path: Path) -> str:
    """The suffix that names the format, beneath a .gz if there is one."""
    return Path(path.name.casefold().removesuffix(".gz")).suffix


def _refuse_suffix(path: PathLike, suffix: str) -> None:
    if Path(path).is_dir() or not Path(path).exists():
        read_bytes(path)  # says that it is a folder, or that there is none and what resembles it
    hint = f"documents end in {', '.join(SUFFIXES)}"
    if suffix in _CONVERTED_BY_OFFICE:
        hint = f"soffice --headless --convert-to docx {shown(path)}"
    fact = f"{suffix} is" if suffix else "no suffix is"
    raise FormatError(f"{shown(path)} cannot be read as a document: {fact} none of those known", hint=hint)


def _files(path: PathLike) -> Iterator[tuple[Path, str]]:
    """The files that a path stands for, and what each is called."""
    place = Path(path)
    if os.fspath(path) == STDIN or not place.is_dir():
        yield place, place.name
        return
    found = _below(place)
    if not found:
        raise InputError(
            f"the folder {shown(path)} holds no document", hint=f"documents end in {', '.join(SUFFIXES)}"
        )
    for file in found:
        yield file, file.relative_to(place).as_posix()


def _below(folder: Path) -> list[Path]:
    """The documents below a folder, sorted by their paths; links to folders are not followed."""

    def refuse(error: OSError) -> None:
        raise explain_unreadable(error.filename, error) from error

    found: list[Path] = []
    for here, folders, files in os.walk(folder, onerror=refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]
        # An office program keeps ~$name.docx beside a document that is open.
        kept = (name for name in files if not name.startswith((".", "~$")))
        found += [Path(here, name) for name in kept if _suffix(Path(name)) in _READERS]
    return sorted(found, key=lambda path: path.relative_to(folder).parts)
