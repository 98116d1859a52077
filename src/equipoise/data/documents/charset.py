"""The characters of an HTML page: what it declares about its encoding is honoured."""

from __future__ import annotations

import codecs
import re

from equipoise.data.text import PathLike, read_bytes, read_text, shown
from equipoise.errors import FormatError

_LOOKED_AT = 4096
_DECLARED = re.compile(
    rb"""<meta\b[^>]*?\bcharset\s*=\s*["']?\s*([\w.:-]+)|^\s*<\?xml\b[^>]*?\bencoding\s*=\s*["']([\w.:-]+)""",
    re.IGNORECASE,
)
_NO_PAGES = frozenset({"idna", "punycode", "raw-unicode-escape", "undefined", "unicode-escape", "utf-7"})
"""Codecs of Python in which no page is written: they decode escapes, domain names or nothing."""
# Browsers read these labels as Windows-1252, which differs only where Latin-1 has control characters.
_WESTERN = frozenset({"iso8859-1", "ascii"})


def read_page(path: PathLike) -> str:
    """The characters of a page: by its byte order mark, its ``meta`` or XML declaration, else UTF-8."""
    data = read_bytes(path)
    codec = _codec(path, data)
    if codec == "utf-8":
        return read_text(path)
    try:
        text = data.decode(codec)
    except UnicodeError as error:
        where = (
            f": the byte 0x{data[error.start]:02x} at offset {error.start}"
            if isinstance(error, UnicodeDecodeError) and error.start < len(data)
            else ""
        )
        raise FormatError(
            f"{shown(path)} declares itself {codec} and is not{where}",
            hint="correct the charset that it declares, or save it as UTF-8",
        ) from error
    if "\0" in text:
        raise FormatError(f"{shown(path)} is not a text file: it holds NUL characters")
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
            f"{shown(path)} declares the charset {label!r}, which is unknown", hint="save it as UTF-8"
        ) from error
    # A declaration that can be read byte by byte is not UTF-16, whatever it says.
    if name.startswith("utf-16") or name.startswith("utf-32"):
        return "utf-8"
    return "cp1252" if name in _WESTERN else name
