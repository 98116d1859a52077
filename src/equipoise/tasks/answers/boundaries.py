"""Where a word or a number ends, so that an answer is not found inside another one."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

# Scripts that write no spaces between words, and Korean, whose particles follow a noun without one.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3130-\u318f\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff]"
)
_RUN = re.compile(r"\d+(?:[.,]\d+)*")
_ONE_NUMBER = re.compile(r"\d+[.,]\d+|\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d{1,3}(?:\.\d{3})+(?:,\d+)?")


def stands_alone(text: str, start: int, end: int) -> bool:
    """Whether ``text[start:end]`` cuts no word and no number of the text in two.

    A border lies inside a word when it has a letter, a digit, an underscore or a combining mark on both
    sides, unless one of the two belongs to a script that writes no spaces. It lies inside a number when the
    digits go on beyond a decimal point or a separator of thousands. A sign in front of digits that follows a
    word is the dash of a range. Punctuation at the ends of the stretch itself needs no border.

    >>> [stands_alone(text, text.find("65%"), text.find("65%") + 3) for text in ("by 65%.", "165%", "1.65%")]
    [True, False, False]
    """
    return not (
        (start > 0 and _joined(text[start - 1], text[start]))
        or (end < len(text) and _joined(text[end - 1], text[end]))
        or _cuts_number(text, start)
        or _cuts_number(text, end)
        or _is_range(text, start)
    )


def _joined(left: str, right: str) -> bool:
    return _is_spaced_word(left) and _is_spaced_word(right)


@lru_cache(maxsize=4096)
def _is_spaced_word(character: str) -> bool:
    """Whether a character is part of a word in a script that parts words by spaces."""
    if not (character.isalnum() or character == "_" or unicodedata.category(character).startswith("M")):
        return False
    return not _UNSPACED.match(character)


def _cuts_number(text: str, border: int) -> bool:
    """Whether a border stands right before or right after the separator inside one number.

    ``1.5`` and ``1,000`` are one number each; ``12.05.2024`` and ``1,2,3`` are several.
    """
    for separator in (border - 1, border):
        if not 0 < separator < len(text) - 1 or text[separator] not in ".,":
            continue
        if text[separator - 1].isdecimal() and text[separator + 1].isdecimal():
            first = separator
            while first > 0 and (text[first - 1].isdecimal() or _separates(text, first - 1)):
                first -= 1
            run = _RUN.match(text, first)
            return run is not None and _ONE_NUMBER.fullmatch(run.group()) is not None
    return False


def _separates(text: str, place: int) -> bool:
    return text[place] in ".," and place > 0 and text[place - 1].isdecimal()


def _is_range(text: str, start: int) -> bool:
    """Whether a stretch that begins with a signed number follows a word, so that the sign is a dash."""
    signed = text[start] in "+-" and text[start + 1 : start + 2].isdecimal()
    return signed and start > 0 and (text[start - 1].isalnum() or text[start - 1] == "_")
