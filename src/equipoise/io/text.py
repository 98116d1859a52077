"""Reading text files and numbers, compressed or not; errors name the file and the line and give a hint."""

from __future__ import annotations

import io
import os
import re
import stat
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import import_module
from math import isfinite
from numbers import Integral, Real
from pathlib import Path
from typing import Any, BinaryIO
from zipfile import ZipFile

from equipoise.errors import ExpansionError, FormatError, InputError, ParameterError, did_you_mean

# Decompression with a limit: a small file may expand to more than the memory holds. A file may expand to ``RATIO``
# times its size, at least to ``FLOOR`` and at most to ``CEILING`` bytes. Text and tables compress to a third up to a
# thirtieth; deflate reaches 1,032. The environment variable ``EQUIPOISE_MAX_DECOMPRESSED_GB`` replaces the limit.

VARIABLE = "EQUIPOISE_MAX_DECOMPRESSED_GB"
RATIO = 50
FLOOR = 100 * 10**6
ARRAYS_FLOOR = 10**9
"""Arrays of zeros or of one value compress by 1,000, so that they may expand further."""
CEILING = 8 * 10**9
_GB = 10**9
_BLOCK = 1 << 20


def expansion_limit(compressed: int, floor: int = FLOOR) -> int:
    """The number of bytes to which a file of ``compressed`` bytes may expand."""
    setting = os.environ.get(VARIABLE, "")
    if setting:
        return _parse_limit(setting)
    return max(floor, min(CEILING, RATIO * compressed))


COMPRESSED_SUFFIXES = (".gz", ".bz2", ".xz")
_COMPRESSIONS = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\xfd7zXZ\0": "lzma"}
"""The modules of the compressions that are read, by the first bytes."""
PREFIX_BYTES = 6


def without_compression(name: str) -> str:
    """The file name in lower case, without the suffix of a compression.

    >>> without_compression("Corpus.jsonl.gz"), without_compression("qrels.tsv")
    ('corpus.jsonl', 'qrels.tsv')
    """
    name = name.casefold()
    return next((name.removesuffix(suffix) for suffix in COMPRESSED_SUFFIXES if name.endswith(suffix)), name)


def open_compressed(name: str, stream: BinaryIO, compressed: int, start: bytes) -> BinaryIO | None:
    """The content of a gzip, bz2 or xz stream of ``compressed`` bytes; None if ``start`` is that of another file."""
    for magic, module in _COMPRESSIONS.items():
        if start.startswith(magic):
            content = import_module(module).open(stream)
            return io.BufferedReader(_Decompressed(name, module, content, compressed), _BLOCK)
    return None


class _Decompressed(io.RawIOBase):
    """A compressed stream that ends in an error where its content exceeds the limit."""

    def __init__(self, name: str, form: str, content: Any, compressed: int) -> None:
        self._name, self._form, self._compressed = name, {"lzma": "xz"}.get(form, form), compressed
        self._left = expansion_limit(compressed)
        self._content = content

    def readable(self) -> bool:
        """Always true."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer with the next decompressed bytes."""
        import lzma
        import zlib

        try:
            count = int(self._content.readinto(buffer))
        except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
            tool = {"bz2": "bzip2"}.get(self._form, self._form)
            raise InputError(
                f"{self._name} is a damaged {self._form} file: {error}",
                hint=f"{tool} -t {self._name} tests it; fetch or write it again",
            ) from error
        self._left -= count
        if self._left < 0:
            raise _too_large(self._name, self._compressed)
        return count


def check_archive(name: str, archive: ZipFile, compressed: int, floor: int = FLOOR) -> None:
    """Raise an error for a zip archive that would expand beyond the limit.

    The sizes are those that the archive states; ``zipfile`` reads no more of a member than is stated.
    """
    if sum(member.file_size for member in archive.infolist()) > expansion_limit(compressed, floor):
        raise _too_large(name, compressed, floor)


def check_size(name: str, expanded: int, compressed: int) -> None:
    """Raise an error for a file of another format that states an expanded size beyond the limit."""
    if expanded > expansion_limit(compressed, ARRAYS_FLOOR):
        raise _too_large(name, compressed, ARRAYS_FLOOR)


def _too_large(name: str, compressed: int, floor: int = FLOOR) -> ExpansionError:
    limit = expansion_limit(compressed, floor)
    return ExpansionError(
        f"{name} has {compressed:,} bytes and expands to more than {limit:,} bytes, the limit for its size",
        hint=f"if you trust the file, set {VARIABLE} to a limit in gigabytes, for example {VARIABLE}=20",
    )


def _parse_limit(text: str) -> int:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not (isfinite(value) and value > 0):
        raise ParameterError(f"{VARIABLE} is {text!r}, which is not a number of gigabytes", hint="for example 20")
    return int(value * _GB)


PathLike = str | os.PathLike[str]

STDIN = "-"
BOM = b"\xef\xbb\xbf"
EXCERPT_WIDTH = 100
_NOT_BLANK, _LINE_END = re.compile(rb"\S"), re.compile(rb"[\r\n]")
_ZIP_MAGIC = b"PK\x03\x04"
_ZIP_HINT = "unzip it and name the file inside; save a sheet of a workbook as CSV UTF-8"
_LZ4_MAGIC = b"\x04\x22\x4d\x18"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True, slots=True)
class TextFile:
    """The content of a text file that is known to be UTF-8, without byte order mark, and not empty."""

    name: str
    data: bytes = field(repr=False)

    @property
    def text(self) -> str:
        """All of it, decoded."""
        return self.data.decode("utf-8")

    @property
    def first_line(self) -> str:
        """The first line that is not blank, without its white space."""
        start = _NOT_BLANK.search(self.data)
        if start is None:
            return ""
        end = _LINE_END.search(self.data, start.start())
        return self.data[start.start() : end.start() if end else None].decode("utf-8").strip()

    @property
    def lines(self) -> list[bytes]:
        """The lines, ended by LF, CRLF or CR; ``lines[0]`` is line 1."""
        return self.data.splitlines()

    def excerpt(self, *numbers: int) -> str:
        """The lines of these numbers as an error shows them: ``3 | q1 Q0 d1 1 0.9``."""
        lines = self.lines
        width = len(str(max(numbers)))
        return "\n".join(f"{number:>{width}} | {_printable(lines[number - 1])}" for number in numbers)

    def error(self, kind: type[InputError], line: int, fact: str, *, hint: str = "") -> InputError:
        """``runs/a.trec line 3 has 5 fields`` with the line itself as the excerpt."""
        return kind(f"{self.name} line {line} {fact}", hint=hint, excerpt=self.excerpt(line))


def open_text(path: PathLike) -> TextFile:
    """Read a UTF-8 text, plain or compressed by gzip, bz2 or xz, or say why it cannot be read; ``-`` is standard input.

    A byte order mark is dropped. Line ends are left as they are.
    """
    return text_file(display_path(path), read_bytes(path))


def text_file(name: str, data: bytes) -> TextFile:
    """The text file of these bytes; an error unless they are UTF-8, without NUL and not empty."""
    for mark in _UTF16_MARKS:
        if data.startswith(mark):
            raise InputError(f"{name} is UTF-16, not UTF-8", hint=f"iconv -f UTF-16 -t UTF-8 {name}")
    if data.startswith(_ZIP_MAGIC):
        raise FormatError(f"{name} is a zip archive or a workbook", hint=_ZIP_HINT)
    data = data.removeprefix(BOM)
    if not data or data.isspace():
        raise InputError(f"{name} is empty", hint="check that the step that writes it has finished")
    _check_encoding(name, data)
    return TextFile(name, data)


def read_text(path: PathLike) -> str:
    """The text of a UTF-8 file, plain or compressed; ``-`` is standard input."""
    return open_text(path).text


def read_bytes(path: PathLike) -> bytes:
    """The bytes of a file or of standard input, decompressed if necessary."""
    data = _stdin_bytes() if os.fspath(path) == STDIN else _file_bytes(path)
    stream = open_compressed(display_path(path), io.BytesIO(data), len(data), data[:PREFIX_BYTES])
    return data if stream is None else b"".join(iter(lambda: stream.read(_BLOCK), b""))


def display_path(path: PathLike) -> str:
    """A path for messages."""
    return (
        "standard input"
        if os.fspath(path) == STDIN
        else _printable(os.fspath(path).encode("utf-8", "replace"), width=None)
    )


def read_error(path: PathLike, error: OSError | ValueError) -> InputError:
    """The error for a path that the operating system cannot open."""
    name = display_path(path)
    if isinstance(error, FileNotFoundError):
        return _missing(Path(path), name)
    if isinstance(error, IsADirectoryError):
        return InputError(f"{name} is a folder, where a file should be", hint=_inside(Path(path)))
    if isinstance(error, PermissionError):
        return InputError(f"{name} cannot be read: permission denied", hint=f"ls -l {name} shows its owner and mode")
    reason = error.strerror if isinstance(error, OSError) else str(error)
    return InputError(f"{name} cannot be read: {reason}")


def line_at(data: bytes, offset: int) -> int:
    """The number of the line that holds the byte at this offset."""
    return len((data[:offset] + b".").splitlines())


def _file_bytes(path: PathLike) -> bytes:
    try:
        with open(path, "rb") as stream:
            return stream.read()
    except (OSError, ValueError) as error:
        raise read_error(path, error) from error


def _stdin_bytes() -> bytes:
    try:
        return sys.stdin.buffer.read()
    except (OSError, ValueError, AttributeError) as error:
        raise InputError("standard input is closed", hint="pipe a file into the command, or name one") from error


def _check_encoding(name: str, data: bytes) -> None:
    """Raise an error for other encodings than UTF-8 and for NUL, which is in binary files and lost in numpy strings."""
    if data.startswith(_LZ4_MAGIC):
        raise FormatError(
            f"{name} is an LZ4 file, which is not read",
            hint=f"write it as JSON; a run of ranx with Run.from_file({name!r}).save('run.json')",
        )
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        line, offset = line_at(data, error.start), error.start
        raise FormatError(
            f"{name} is not UTF-8: line {line} holds the byte 0x{data[offset]:02x} at offset {offset}",
            hint=f"if it is Latin-1: iconv -f LATIN1 -t UTF-8{'' if name == display_path(STDIN) else f' {name}'}",
        ) from error
    offset = data.find(b"\0")
    if offset >= 0:
        raise FormatError(
            f"{name} is not a text file: line {line_at(data, offset)} holds a NUL byte at offset {offset}",
            hint="is it a binary file, or UTF-16?",
        )


def _missing(path: Path, name: str) -> InputError:
    folder = path.parent
    if not folder.is_dir():
        return InputError(f"there is no file {name}, nor a folder {folder}", hint=_near(folder))
    return InputError(f"there is no file {name}", hint=_near(path))


def _near(path: Path) -> str:
    """The names in the same folder that resemble the requested name."""
    try:
        names = sorted(os.listdir(path.parent))
    except OSError:
        return "check the path"
    return did_you_mean(path.name, names) or "check the path"


def _inside(folder: Path) -> str:
    names = sorted(os.listdir(folder)) if os.access(folder, os.R_OK) else []
    return f"it holds {', '.join(names[:3])}{', ...' if len(names) > 3 else ''}" if names else "it is empty"


def _printable(line: bytes, width: int | None = EXCERPT_WIDTH) -> str:
    """A line that is safe to print: control characters are replaced, long lines are truncated."""
    text = line.decode("utf-8", "replace")
    text = "".join(
        character if character.isprintable() or character == "\t" else "\N{REPLACEMENT CHARACTER}" for character in text
    )
    return text if width is None or len(text) <= width else f"{text[: width - 3]}..."


# Parsing one number: stricter than Python's ``float``.

LONGEST_INTEGER = 310
"""Maximum length in characters; every finite float is shorter, and Python rejects very long integers."""
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[+-]?(?:nan|inf|infinity)", re.IGNORECASE)


class NumberRangeError(ValueError):
    """The value is NaN, infinite, or too large for a float."""


def parse_number(value: object) -> int | float:
    """A finite number from a field of a file: an int if it is written as one, else a float.

    Anything else is a ``ValueError``: underscores, digits of other scripts and truth values are not numbers. NaN,
    infinity and numbers too large for a float are a ``NumberRangeError``.
    """
    if isinstance(value, str):
        return _from_text(value.strip(" \t"))
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ValueError("not a number")
    return _finite(value)


def _from_text(text: str) -> int | float:
    if _NOT_FINITE.fullmatch(text):
        raise NumberRangeError
    if not _DECIMAL.fullmatch(text):
        raise ValueError("not a number")
    approximate = _finite(float(text))  # type: ignore[arg-type]
    is_integer = len(text) <= LONGEST_INTEGER and not set(text) & set(".eE")
    return int(text) if is_integer else approximate


def _finite(value: Real) -> int | float:
    try:
        finite = isfinite(value)
    except OverflowError:
        finite = False
    if not finite:
        raise NumberRangeError
    return int(value) if isinstance(value, Integral) else float(value)


# Text files read in blocks of complete lines, in constant memory.

BLOCK_BYTES = 1 << 18
LONGEST_LINE = 1 << 20


class NotStreamableError(Exception):
    """A file cannot be read in blocks; reading it at once works, or reports the error and its position."""


def line_blocks(path: PathLike) -> Iterator[bytes]:
    """Whole lines of a UTF-8 file, plain or compressed, about ``BLOCK_BYTES`` at a time.

    A byte order mark is dropped. Only regular files are opened, since a pipe could not be read once more.
    Unusual files raise ``NotStreamableError``: a file that cannot be opened, another encoding, a NUL
    byte, a very long line.
    """
    try:
        if os.fspath(path) == STDIN or not stat.S_ISREG(os.stat(path).st_mode):
            raise NotStreamableError(f"{path} is not a regular file")
        with open(path, "rb") as file:
            start = file.read(PREFIX_BYTES)
            file.seek(0)
            yield from _blocks(open_compressed(str(path), file, os.fstat(file.fileno()).st_size, start) or file)
    except (OSError, ValueError) as error:
        raise NotStreamableError(str(error)) from error


def _blocks(stream: BinaryIO) -> Iterator[bytes]:
    remainder, start = b"", True
    while block := stream.read(BLOCK_BYTES):
        end = block.rfind(b"\n") + 1
        if not end:
            remainder += block
            if len(remainder) > LONGEST_LINE:
                raise NotStreamableError(f"a line has more than {LONGEST_LINE} bytes")
            continue
        yield _check_block(remainder + block[:end], start)
        remainder, start = block[end:], False
    if remainder:
        yield _check_block(remainder, start)


def _check_block(block: bytes, start: bool) -> bytes:
    if start:
        block = block.removeprefix(BOM)
    if not block.isascii():
        block.decode("utf-8")  # blocks end at line ends, so no character is split
    if b"\0" in block:
        raise NotStreamableError("there is a NUL byte")
    return block
