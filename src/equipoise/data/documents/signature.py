"""What the first bytes of a file say it is, where its suffix says otherwise."""

from __future__ import annotations

from equipoise.data.text import PathLike, shown
from equipoise.errors import FormatError

_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_SIGNATURES = (
    (b"%PDF-", "a PDF", (".pdf",), "name it .pdf"),
    (b"PK\x03\x04", "a zip archive (Word, Excel or another)", (".docx",), "if Word wrote it, name it .docx"),
    (_OLE, "an old Office file or an encrypted one", (), "save it as .docx without a password"),
    (b"{\\rtf", "rich text (RTF)", (), "save it as .docx or .txt"),
    (b"\x89PNG", "a picture (PNG)", (), "a picture holds no text; run it through OCR first"),
    (b"\xff\xd8\xff", "a picture (JPEG)", (), "a picture holds no text; run it through OCR first"),
)
_PDF_HEADER_WITHIN = 1024
"""PDF readers accept some bytes before the header."""


def refuse_disguise(path: PathLike, data: bytes, suffix: str) -> None:
    """Refuse a file whose first bytes belong to another format than its suffix."""
    for signature, kind, suffixes, hint in _SIGNATURES:
        if data.startswith(signature) and suffix not in suffixes:
            raise FormatError(f"{shown(path)} is {kind} by its first bytes, and not {suffix}", hint=hint)
    missing = {
        ".pdf": b"%PDF-" not in data[:_PDF_HEADER_WITHIN],
        ".docx": not data.startswith(b"PK"),
    }
    if data and missing.get(suffix, False):
        raise FormatError(
            f"{shown(path)} does not begin like a {suffix} file", hint="was it renamed, or cut while copying?"
        )
