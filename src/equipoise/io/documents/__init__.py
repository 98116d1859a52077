"""From files and folders to documents: the suffix selects the reader, the first bytes must agree."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from equipoise.errors import DuplicateError, FormatError, InputError, ParameterError
from equipoise.io.documents.formats import docx_to_text, html_text, pdf_to_text
from equipoise.io.text import STDIN, PathLike, display_path, read_bytes, read_error, read_text

# A document: its name and its text.


@dataclass(frozen=True, slots=True)
class TextDocument:
    """A text and what to call it: a file's name, or its path below the folder that was read.

    Lines end with a line feed. Headings that the format marks become Markdown headings.
    """

    name: str
    text: str = field(repr=False)


# Formats recognised by their first bytes, to detect wrong suffixes.

_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_SIGNATURES = (
    (b"%PDF-", "a PDF", (".pdf",), "name it .pdf"),
    (b"PK\x03\x04", "a zip archive (Word, Excel or another)", (".docx",), "if Word wrote it, name it .docx"),
    (_OLE, "an old Office file or an encrypted one", (), "save it as .docx without a password"),
    (b"{\\rtf", "rich text (RTF)", (), "save it as .docx or .txt"),
    (b"\x89PNG", "an image (PNG)", (), "an image contains no text; run it through OCR first"),
    (b"\xff\xd8\xff", "an image (JPEG)", (), "an image contains no text; run it through OCR first"),
)
_PDF_HEADER_WITHIN = 1024
"""PDF readers accept some bytes before the header."""


def check_signature(path: PathLike, data: bytes, suffix: str) -> None:
    """Reject a file whose first bytes belong to another format than its suffix."""
    for signature, kind, suffixes, hint in _SIGNATURES:
        if data.startswith(signature) and suffix not in suffixes:
            raise FormatError(f"{display_path(path)} is {kind} by its first bytes, and not {suffix}", hint=hint)
    missing = {
        ".pdf": b"%PDF-" not in data[:_PDF_HEADER_WITHIN],
        ".docx": not data.startswith(b"PK"),
    }
    if data and missing.get(suffix, False):
        raise FormatError(
            f"{display_path(path)} does not begin like a {suffix} file",
            hint="was it renamed, or truncated while copying?",
        )


def read_document(path: PathLike) -> str:
    """The text of one file, read according to its suffix; ``-`` is plain text from standard input.

    Line ends become line feeds. A file that holds no text is an error.
    """
    if os.fspath(path) == STDIN:
        return _plain_text(path)
    suffix = _suffix(Path(path))
    if suffix not in _READERS:
        _unknown_suffix_error(path, suffix)
    check_signature(path, read_bytes(path), suffix)
    text = _READERS[suffix](path)
    if not text.strip():
        raise InputError(f"{display_path(path)} holds no text", hint="is it the right file?")
    return text


def read_documents(*paths: PathLike) -> list[TextDocument]:
    """The documents of these files and folders, in this order.

    A folder is walked with all below it, in the order of the names; files of other kinds and hidden ones are
    left out, and a folder without any document is an error. A file that is named twice is an error as well.
    """
    if not paths:
        raise ParameterError("no document was named", hint="name at least one file or folder")
    files = [(Path(path), name) for path in paths for path, name in _files(path)]
    first_of: dict[Path, Path] = {}
    for path, _ in files:
        first = first_of.setdefault(path.resolve(), path)
        if first is not path:
            raise DuplicateError(
                f"{display_path(path)} is read twice: {display_path(first)} is the same file",
                hint="name it once, or only its folder",
            )
    names = [name for _, name in files]
    return [
        TextDocument(name if names.count(name) == 1 else path.as_posix(), read_document(path)) for path, name in files
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
    ".pdf": pdf_to_text,
    ".docx": docx_to_text,
}

SUFFIXES = tuple(_READERS)
"""The suffixes of the formats that can be read."""

_CONVERTED_BY_OFFICE = frozenset({".doc", ".odt", ".rtf", ".wpd", ".pages"})


def _suffix(path: Path) -> str:
    """The suffix that names the format, beneath a .gz if there is one."""
    return Path(path.name.casefold().removesuffix(".gz")).suffix


def _unknown_suffix_error(path: PathLike, suffix: str) -> None:
    if Path(path).is_dir() or not Path(path).exists():
        read_bytes(path)  # raises: it is a folder, or does not exist (with similar names)
    hint = f"documents end in {', '.join(SUFFIXES)}"
    if suffix in _CONVERTED_BY_OFFICE:
        hint = f"soffice --headless --convert-to docx {display_path(path)}"
    fact = f"{suffix} is" if suffix else "no suffix is"
    raise FormatError(f"{display_path(path)} cannot be read as a document: {fact} none of those known", hint=hint)


def _files(path: PathLike) -> Iterator[tuple[Path, str]]:
    """The files of a path, and their names."""
    location = Path(path)
    if os.fspath(path) == STDIN or not location.is_dir():
        yield location, location.name
        return
    files = _below(location)
    if not files:
        raise InputError(
            f"the folder {display_path(path)} holds no document",
            hint=f"documents end in {', '.join(SUFFIXES)}",
        )
    for file in files:
        yield file, file.relative_to(location).as_posix()


def _below(folder: Path) -> list[Path]:
    """The documents below a folder, sorted by their paths; links to folders are not followed."""

    def refuse(error: OSError) -> None:
        raise read_error(error.filename, error) from error

    paths: list[Path] = []
    for here, folders, files in os.walk(folder, onerror=refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]
        # Office programs create ~$name.docx next to an open document.
        visible = (name for name in files if not name.startswith((".", "~$")))
        paths += [Path(here, name) for name in visible if _suffix(Path(name)) in _READERS]
    return sorted(paths, key=lambda path: path.relative_to(folder).parts)


__all__ = ["SUFFIXES", "TextDocument", "read_document", "read_documents"]
