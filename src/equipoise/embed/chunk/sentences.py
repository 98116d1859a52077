"""Where sentences begin, in one pass over the text."""

from __future__ import annotations

import re

# Each alternative can only begin where a run of its characters begins, so that no run is read twice.
_END = re.compile(
    r"(?<![.!?…])[.!?…]++[\"'»”’)\]]*+\s++"
    r"|(?<![。！？｡])[。！？｡]++[」』”’）]*+\s*+"
    r"|(?<!\n)\n[^\S\n]*+\n\s*+"
)
_LAST_WORD = re.compile(r"(?:^|[\s(\[\"'„“«])([^\s(\[\"'„“«]{1,12})\Z")
_ABBREVIATIONS = frozenset(
    (
        *(
            "al",
            "approx",
            "cf",
            "co",
            "dr",
            "ed",
            "eds",
            "eq",
            "etc",
            "fig",
            "figs",
            "inc",
            "jr",
            "ltd",
            "mr",
        ),
        *("mrs", "ms", "mt", "no", "nos", "op", "pp", "prof", "sec", "sr", "st", "vol", "vs", "e.g", "i.e"),
        *("art", "bd", "bspw", "bzw", "ca", "evtl", "ggf", "hr", "inkl", "nr", "resp", "sog", "str", "tab"),
        *("u.a", "usw", "vgl", "z.b", "d.h"),
    )
)


def sentence_starts(text: str) -> list[int]:
    """The positions at which sentences begin; the first is 0.

    A sentence ends after a full stop, question or exclamation mark and the white space behind it, or at an
    empty line. Initials, small ordinals and common English and German abbreviations end none.

    >>> sentence_starts("Dr. No came. He left! (So did I.) Now?")
    [0, 13, 22, 34]
    """
    starts = [0]
    for end in _END.finditer(text):
        if end.end() < len(text) and not _is_abbreviation(text, end):
            starts.append(end.end())
    return starts


def _is_abbreviation(text: str, end: re.Match[str]) -> bool:
    if end.group().rstrip() != "." or "\n\n" in end.group():
        return False
    word = _LAST_WORD.search(text, max(0, end.start() - 16), end.start())
    if word is None:
        return False
    letters = word.group(1).casefold()
    if letters.isdigit():
        return len(letters) <= 2
    return letters in _ABBREVIATIONS or (len(letters) == 1 and letters.isalpha() and letters != "i")
