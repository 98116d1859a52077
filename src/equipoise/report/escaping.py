"""Escape control characters in names and texts before they are shown in a terminal, a table or a page.

A name may hold an escape sequence that rewrites a terminal, or a bidirectional control character that makes
one name look like another. Both are shown as escapes.
"""

from __future__ import annotations

import re

_UNSAFE = re.compile(
    "\r(?!\n)|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"  # control characters but tabs and line ends
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # bidirectional controls
    "\ufff9-\ufffb\U000e0001\U000e0020-\U000e007f]"  # annotations and tags
)
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def inert(text: str) -> str:
    r"""The text with control characters and bidirectional controls as visible escapes.

    Tabs and line ends stay.

    >>> inert("a\x1b[31mb\u202ec")
    'a\\x1b[31mb\\u202ec'
    """
    return _UNSAFE.sub(_escape, text) if _UNSAFE.search(text) else text


def inert_cell(text: str) -> str:
    """The text as a cell that a spreadsheet does not run: what looks like a formula gets an apostrophe.

    >>> inert_cell("=1+1"), inert_cell("-0.5"), inert_cell("+1.2e-3")
    ("'=1+1", '-0.5', '+1.2e-3')
    """
    return f"'{text}" if text.startswith(_FORMULA) and not _is_number(text) else text


def _is_number(text: str) -> bool:
    from equipoise.io.text import parse_number

    try:
        parse_number(text)
    except ValueError:
        return False
    return "\t" not in text


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
