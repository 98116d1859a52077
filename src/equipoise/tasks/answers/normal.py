"""The one form in which answers and texts are compared."""

from __future__ import annotations

import re
import unicodedata

_SINGLE_QUOTES = "‘’‚‛′‵´`ʹʼˈ΄‹›"
_DOUBLE_QUOTES = "“”„‟″‶«»〝〞〟"
_DASHES = "‐‑‒–—―−⁃─"
# NFKC would turn a trade mark into the letters TM and glue them to the word before it.
_DROPPED = "™℠®"
_PLAIN = str.maketrans(
    {
        **dict.fromkeys(_SINGLE_QUOTES, "'"),
        **dict.fromkeys(_DOUBLE_QUOTES, '"'),
        **dict.fromkeys(_DASHES, "-"),
        **dict.fromkeys(_DROPPED, None),
    }
)
_INVISIBLE = re.compile(
    "[\0\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e0fff]"
)
"""NUL, soft hyphens, joiners, zero-width spaces, marks of writing direction, variation selectors."""


def normalised(text: str, *, fold_case: bool = True, collapse_spaces: bool = True) -> str:
    """The text in Unicode NFKC, case folded, with plain quotes and dashes and single spaces.

    Invisible characters and trade marks are dropped. ``fold_case=False`` keeps capitals, and
    ``collapse_spaces=False`` keeps white space as it stands.

    >>> normalised("The  “Ｃａｆé’s”\\nstock—½ litre")
    'the "café\\'s" stock-1⁄2 litre'
    """
    if not text.isascii():
        text = unicodedata.normalize("NFKC", _INVISIBLE.sub("", text).translate(_PLAIN))
    if fold_case:
        text = unicodedata.normalize("NFKC", text.casefold())
    text = text.translate(_PLAIN).replace("\0", "")
    return " ".join(text.split()) if collapse_spaces else text
