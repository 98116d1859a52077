"""Documents from files and folders. The suffix selects the reader (text, HTML, PDF, DOCX) and is checked."""

from __future__ import annotations

import codecs
import io
import logging
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import sha256
from html.parser import HTMLParser
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from equipoise.errors import DuplicateError, EquipoiseError, FormatError, InputError, MissingExtraError, ParameterError
from equipoise.io.atomic import write_text
from equipoise.io.pdf_layout import join_pages, restore_spaces, without_running_heads
from equipoise.io.text import STDIN, PathLike, check_archive, display_path, read_bytes, read_error, read_text
from equipoise.progress import portion, report_share
from equipoise.types import install_command, require_extra

# The characters of an HTML page, by the encoding that it declares.

_LOOKED_AT = 4096
_DECLARED = re.compile(
    rb"""<meta\b[^>]*?\bcharset\s*=\s*["']?\s*([\w.:-]+)|^\s*<\?xml\b[^>]*?\bencoding\s*=\s*["']([\w.:-]+)""",
    re.IGNORECASE,
)
_NO_PAGES = frozenset({"idna", "punycode", "raw-unicode-escape", "undefined", "unicode-escape", "utf-7"})
"""Codecs of Python that are not encodings of pages: they decode escapes, domain names or nothing."""
# Browsers read these labels as Windows-1252, which differs only where Latin-1 has control characters.
_WESTERN = frozenset({"iso8859-1", "ascii"})


def read_html(path: PathLike) -> str:
    """The characters of a page: by its byte order mark, its ``meta`` or XML declaration, else UTF-8."""
    data = read_bytes(path)
    codec = _codec(path, data)
    if codec == "utf-8":
        return read_text(path)
    try:
        text = data.decode(codec)
    except UnicodeError as error:
        source = (
            f": the byte 0x{data[error.start]:02x} at offset {error.start}"
            if isinstance(error, UnicodeDecodeError) and error.start < len(data)
            else ""
        )
        raise FormatError(
            f"{display_path(path)} declares the encoding {codec}, which is wrong{source}",
            hint="correct the charset that it declares, or save it as UTF-8",
        ) from error
    if "\0" in text:
        raise FormatError(f"{display_path(path)} is not a text file: it holds NUL characters")
    return text


def _codec(path: PathLike, data: bytes) -> str:
    if data.startswith((codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-8" if data.startswith(codecs.BOM_UTF8) else "utf-16"
    declared = _DECLARED.search(data[:_LOOKED_AT])
    if declared is None:
        return "utf-8"
    label = (declared[1] or declared[2]).decode("ascii", "replace")
    try:
        name = codecs.lookup(label).name
        "".encode(name)
        if name in _NO_PAGES:
            raise LookupError(name)
    except (LookupError, UnicodeError) as error:
        raise FormatError(
            f"{display_path(path)} declares the charset {label!r}, which is unknown", hint="save it as UTF-8"
        ) from error
    # A declaration that can be read byte by byte is not UTF-16, even if it declares UTF-16.
    if name.startswith("utf-16") or name.startswith("utf-32"):
        return "utf-8"
    return "cp1252" if name in _WESTERN else name


_SILENT = frozenset({"script", "style", "template", "title", "noscript", "svg", "iframe", "object", "select"})
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_SECTIONS = {"address", "article", "aside", "body", "footer", "header", "html", "main", "nav", "section"}
_LISTS = {"dd", "dl", "dt", "li", "menu", "ol", "ul"}
_TABLES = {"caption", "table", "tbody", "tfoot", "thead", "tr"}
_PARAGRAPHS = {"blockquote", "center", "div", "figcaption", "figure", "hr", "p", "pre"}
_FORMS = {"details", "dialog", "fieldset", "form", "legend", "summary"}
_BLOCKS = _SECTIONS | _LISTS | _TABLES | _PARAGRAPHS | _FORMS | set(_HEADINGS)
_CELLS = frozenset({"td", "th"})
_BREAK = "\n"
_SPACE = re.compile(r"[ \t\n\r\f\v]+")


def html_text(path: PathLike) -> str:
    """The text of an HTML file."""
    return text_of_html(read_html(path))


def text_of_html(page: str) -> str:
    r"""The text of a page.

    Block elements separate paragraphs, ``h1`` to ``h6`` become ``#`` to ``######``, list items begin with ``-``,
    the cells of a table row are separated by ``|``, and preformatted text is in code fences.
    """
    parser = _Reader()
    parser.feed(page)
    parser.close()
    parser.end_block()
    return "\n".join(parser.lines).strip("\n")


class _Reader(HTMLParser):
    """Collects lines; a blank line separates blocks, but not between the rows of a table."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.lines: list[str] = []
        self._pieces: list[str] = []
        self._silent: list[str] = []
        self._mark = ""
        self._preformatted = False
        self._rows: list[int] = []
        """For each open table: the number of cells of its open row, -1 between rows."""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self._silent or tag in _SILENT:
            if tag in _SILENT:
                self._silent.append(tag)
        elif tag == "br":
            self._pieces.append(" " if self._in_cell else _BREAK)
        elif tag in _CELLS:
            self._begin_cell()
        elif tag in _BLOCKS:
            self._begin_block(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in _SILENT:  # <script/> in XHTML has no content that could be skipped
            self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        if self._silent:
            if tag in self._silent:
                del self._silent[self._silent.index(tag) :]
        elif tag in _BLOCKS:
            self._end(tag)

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self._pieces.append(data if self._preformatted else _SPACE.sub(" ", data))

    @property
    def _in_cell(self) -> bool:
        return bool(self._rows) and self._rows[-1] > 0

    def _begin_cell(self) -> None:
        if self._rows:
            if self._rows[-1] > 0:
                self._pieces.append(" | ")
            self._rows[-1] = max(self._rows[-1], 0) + 1

    def _begin_block(self, tag: str) -> None:
        if tag == "table":
            self.end_block()
            self._rows.append(-1)
        elif not self._stays_in_table(tag):
            self.end_block()
            self._preformatted = tag == "pre"
            if tag in _HEADINGS or tag == "li":  # the list mark precedes the text of the paragraph inside the item
                self._mark = f"{'#' * _HEADINGS[tag]} " if tag in _HEADINGS else "- "

    def _end(self, tag: str) -> None:
        if tag == "table" and self._rows:
            self._end_row()
            self._rows.pop()
            self._part()
        elif not self._stays_in_table(tag):
            self.end_block()
            self._mark = ""

    def _stays_in_table(self, tag: str) -> bool:
        """Whether the tag only separates rows of a table, or words of a cell."""
        if tag == "tr" and self._rows:
            self._end_row()
            return True
        if self._in_cell and tag not in _HEADINGS:
            self._pieces.append(" ")
            return True
        return False

    def _end_row(self) -> None:
        row = self._collapsed().replace(_BREAK, " ").strip()
        if row.replace("|", "").strip():
            self.lines.append(row)
        self._rows[-1] = -1

    def end_block(self) -> None:
        """End the open paragraph, if it has text."""
        if self._preformatted:
            self._end_preformatted()
            return
        text = self._collapsed()
        if self._in_cell:
            text = text.strip(" |")
        if text:
            self._part()
            single = text.replace(_BREAK, " ") if self._mark.startswith("#") else text
            self.lines += [*f"{self._mark}{single}".split(_BREAK), ""]
            self._mark = ""

    def _end_preformatted(self) -> None:
        code = "".join(self._pieces).strip("\n").rstrip()
        self._pieces.clear()
        self._preformatted = False
        if code:
            fence = "```"
            while fence in code:
                fence += "`"
            self._part()
            self.lines += [fence, *code.split("\n"), fence, ""]

    def _part(self) -> None:
        if self.lines and self.lines[-1]:
            self.lines.append("")

    def _collapsed(self) -> str:
        text = "".join(self._pieces)
        self._pieces.clear()
        return _BREAK.join(filter(None, (_SPACE.sub(" ", line).strip() for line in text.split(_BREAK))))


# The text layer of PDF files, by pypdf.

_PDF_TEXT_VERSION = 2
"""Stored texts of other versions are not used."""


def pdf_to_text(path: PathLike) -> str:
    """The text of all pages, a blank line between two; words hyphenated at line ends are left alone.

    Page numbers and running heads, which would interrupt sentences, are left out.
    A file that only its owner's password protects is read. One that needs a password to be opened, and one
    whose pages are images, are errors.
    """
    data, name = read_bytes(path), display_path(path)
    engine = require_extra("pypdf", extra="documents", needed_by=name)
    with _suppress_warnings("pypdf"):
        try:
            reader = engine.PdfReader(io.BytesIO(data))
            if reader.is_encrypted and not reader.decrypt(""):
                raise _encrypted_error(name)
            pages = []
            for page in reader.pages:
                pages.append(_page_text(page))
                report_share(len(pages), len(reader.pages))
        except EquipoiseError:
            raise
        except engine.errors.DependencyError as error:  # as late as at the first page, for some ciphers
            raise MissingExtraError(
                f"{name} cannot be read without a further package: {error}",
                hint=f"{install_command('documents')} installs what opens encrypted files",
            ) from error
        except Exception as error:  # a damaged file fails in the parser with any exception
            reason = str(error) or type(error).__name__
            raise FormatError(
                f"{name} is a PDF that cannot be read: {reason}",
                hint=f"qpdf --check {name} shows the damage; printing it to a new PDF often repairs it",
            ) from error
    if not any(pages):
        count = f"{len(pages)} page{'' if len(pages) == 1 else 's'}"
        raise InputError(
            f"{name} has {count} and no text: it is a scan or a set of images",
            hint=f"ocrmypdf {name} with-text.pdf adds the text",
        )
    return join_pages(without_running_heads(pages))


def _page_text(page: Any) -> str:
    """The text in the order of the file, with the spaces of extraction by position."""
    plain = _whole_characters(page.extract_text())
    layout = ""
    with suppress(Exception):  # extraction by position fails for some fonts and operators
        layout = _whole_characters(page.extract_text(extraction_mode="layout"))
    return restore_spaces(plain, layout).strip()


def _encrypted_error(name: str) -> InputError:
    """The error for a file that the empty password does not open."""
    return InputError(
        f"{name} is encrypted and needs a password",
        hint=f"qpdf --decrypt --password=... {name} open.pdf writes a copy without one",
    )


def _whole_characters(text: str) -> str:
    """Join pairs of surrogates, and replace lone ones, which fonts may yield."""
    text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text.replace("\0", "").replace("\r\n", "\n").replace("\r", "\n")


@contextmanager
def _suppress_warnings(name: str) -> Iterator[None]:
    """Suppress the warnings of a library on the terminal; configured log handlers still receive them."""
    logger, handler = logging.getLogger(name), logging.NullHandler()
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


# Word documents as text, by python-docx: headings as Markdown, tables row by row, all in their order.

_HEADING = re.compile(r"heading (\d)", re.IGNORECASE)
_DEEPEST = 6
_BREAKS = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}
_UNSEEN = frozenset({"del", "moveFrom", "Fallback", "pPr", "rPr"})
"""Deleted text, and the second copy of a text box for old programs."""


def docx_to_text(path: PathLike) -> str:
    """The text of the body: paragraphs separated by blank lines, headings as ``#``, the cells of a row by ``|``.

    Inserted text and text boxes are included, deleted text is not. Headers, footers, notes and comments are left
    out.
    """
    data, name = read_bytes(path), display_path(path)
    engine = require_extra("docx", extra="documents", needed_by=name)
    try:
        with ZipFile(io.BytesIO(data)) as archive:
            check_archive(name, archive, len(data))
        document = engine.Document(io.BytesIO(data))
        return "\n\n".join(_blocks(document.element.body, _heading_levels(document)))
    except EquipoiseError:
        raise
    except Exception as error:  # a damaged archive fails in zip, XML or the package's parts
        raise FormatError(
            f"{name} is not a readable Word document: {error or type(error).__name__}",
            hint="open it in a word processor and save it again as .docx",
        ) from error


def _heading_levels(document: Any) -> dict[str, int]:
    """The heading level of each paragraph style that is one, or is based on one; by style id."""
    levels: dict[str, int] = {}
    for style in document.styles:
        base, visited = style, set()
        while base is not None and base.style_id not in visited:
            visited.add(base.style_id)
            name = base.name or ""
            match = _HEADING.match(name)
            if match or name == "Title":
                levels[style.style_id] = min(int(match[1]) if match else 1, _DEEPEST)
                break
            base = getattr(base, "base_style", None)
    return levels


def _blocks(parent: Any, levels: dict[str, int]) -> Iterator[str]:
    """The paragraphs and tables of a body; content controls are searched for them."""
    for child in parent:
        kind = _tag(child)
        if kind == "p":
            text = "".join(_inline(child)).strip()
            level = levels.get(_paragraph_style(child), 0)
            if text:
                yield f"{'#' * level} {' '.join(text.split())}" if level else text
        elif kind == "tbl":
            rows = [row for row in _rows(child) if row.replace("|", "").strip()]
            if rows:
                yield "\n".join(rows)
        elif kind not in _UNSEEN:
            yield from _blocks(child, levels)


def _rows(table: Any) -> Iterator[str]:
    for row in _nearest(table, "tr"):
        cells = ["".join(_cell(cell)).split() for cell in _nearest(row, "tc")]
        yield " | ".join(" ".join(words) for words in cells)


def _cell(cell: Any) -> Iterator[str]:
    """All text of a cell, that of tables within it too."""
    for paragraph in _nearest(cell, "p"):
        yield from _inline(paragraph)
        yield " "


def _nearest(parent: Any, kind: str) -> Iterator[Any]:
    """The elements of a kind below another, without those inside one of them."""
    for child in parent:
        if _tag(child) == kind:
            yield child
        elif _tag(child) not in _UNSEEN:
            yield from _nearest(child, kind)


def _inline(parent: Any) -> Iterator[str]:
    """The text of a paragraph, run by run."""
    for child in parent:
        kind = _tag(child)
        if kind == "t":
            yield child.text or ""
        elif kind in _BREAKS:
            yield _BREAKS[kind]
        elif kind == "txbxContent":
            yield "\n"
            for paragraph in _nearest(child, "p"):
                yield from _inline(paragraph)
                yield "\n"
        elif kind not in _UNSEEN:
            yield from _inline(child)


def _paragraph_style(paragraph: Any) -> str:
    style = paragraph.style  # the style id; None where the paragraph names no style
    return style or ""


def _tag(element: Any) -> str:
    """The name of an element without its namespace; empty for comments."""
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""


# A document: its name and its text.


@dataclass(frozen=True, slots=True)
class TextDocument:
    """A text and its name: that of the file, or its path in the folder that was read.

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


def read_document(path: PathLike, *, cache: Path | None = None) -> str:
    """The text of one file, read according to its suffix; ``-`` is plain text from standard input.

    Line ends become line feeds. A file that holds no text is an error. ``cache`` is a folder for the texts of PDF
    files: extracting one takes longer than all other work of a cached comparison.
    """
    if os.fspath(path) == STDIN:
        return _plain_text(path)
    suffix = _suffix(Path(path))
    if suffix not in _READERS:
        _unknown_suffix_error(path, suffix)
    data = read_bytes(path)
    check_signature(path, data, suffix)
    if cache is not None and suffix == ".pdf":
        return _cached_pdf(path, data, cache)
    text = _READERS[suffix](path)
    if not text.strip():
        raise InputError(f"{display_path(path)} holds no text", hint="is it the right file?")
    return text


def _cached_pdf(path: PathLike, data: bytes, cache: Path) -> str:
    """The text of a PDF, stored by its bytes and the versions of pypdf and of ours, which decide what is extracted."""
    try:
        engine = version("pypdf")
    except PackageNotFoundError:
        return pdf_to_text(path)
    stored = cache / f"{sha256(f'{_PDF_TEXT_VERSION} {engine}'.encode() + data).hexdigest()[:32]}.txt"
    with suppress(OSError, ValueError):
        return stored.read_text(encoding="utf-8")
    text = pdf_to_text(path)
    with suppress(OSError, EquipoiseError):
        stored.parent.mkdir(parents=True, exist_ok=True)
        write_text(stored, text)
    return text


def read_documents(*paths: PathLike, cache: Path | None = None) -> list[TextDocument]:
    """The documents of these files and folders, in this order; ``cache`` as in ``read_document``.

    A folder is read with its subfolders, in the order of the names; files of other kinds and hidden ones are
    left out, and a folder without any document is an error. A file that is named twice is an error as well.
    """
    if not paths:
        raise ParameterError("no document was given", hint="give at least one file or folder")
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
    documents = []
    for number, (path, name) in enumerate(files):
        with portion(number / len(files), (number + 1) / len(files)):
            text = read_document(path, cache=cache)
        documents.append(TextDocument(name if names.count(name) == 1 else path.as_posix(), text))
    return documents


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
    """The suffix of the format, before a .gz if there is one."""
    return Path(path.name.casefold().removesuffix(".gz")).suffix


def _unknown_suffix_error(path: PathLike, suffix: str) -> None:
    if Path(path).is_dir() or not Path(path).exists():
        read_bytes(path)  # raises: it is a folder, or does not exist (with similar names)
    hint = f"documents end in {', '.join(SUFFIXES)}"
    if suffix in _CONVERTED_BY_OFFICE:
        hint = f"soffice --headless --convert-to docx {display_path(path)}"
    fact = f"the file type {suffix} is not supported" if suffix else "its name has no suffix"
    raise FormatError(f"{display_path(path)} cannot be read as a document: {fact}", hint=hint)


def _files(path: PathLike) -> Iterator[tuple[Path, str]]:
    """The files of a path, and their names."""
    location = Path(path)
    if os.fspath(path) == STDIN or not location.is_dir():
        yield location, location.name
        return
    files = _below(location)
    if not files:
        raise InputError(
            f"the folder {display_path(path)} contains no documents",
            hint=f"documents end in {', '.join(SUFFIXES)}",
        )
    for file in files:
        yield file, file.relative_to(location).as_posix()


def _below(folder: Path) -> list[Path]:
    """The documents below a folder, sorted by their paths; links to folders are not followed."""

    def refuse(error: OSError) -> None:
        raise read_error(error.filename, error) from error

    paths: list[Path] = []
    for parent, folders, files in os.walk(folder, onerror=refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]
        # Office programs create ~$name.docx next to an open document.
        visible = (name for name in files if not name.startswith((".", "~$")))
        paths += [Path(parent, name) for name in visible if _suffix(Path(name)) in _READERS]
    return sorted(paths, key=lambda path: path.relative_to(folder).parts)
