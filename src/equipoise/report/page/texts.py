"""Texts that each stand once, as long as there is room for them."""

from __future__ import annotations

from collections.abc import Iterable

ELLIPSIS = "…"
LENGTHS = (4000, 2000, 1000, 600, 400, 300, 200, 160)
"""Where texts may be cut, longest first."""


class TextTable:
    """Every text once, cut after ``length`` characters; the first is empty.

    >>> table = TextTable(5)
    >>> table.place("rye and wheat"), table.place(""), table.place("rye and wheat"), table.texts
    (1, 0, 1, ['', 'rye a…'])
    """

    def __init__(self, length: int) -> None:
        self.length = length
        self.texts = [""]
        self._places = {"": 0}

    def place(self, text: str) -> int:
        """Where the text stands."""
        found = self._places.get(text)
        if found is None:
            found = self._places[text] = len(self.texts)
            self.texts.append(cut(text, self.length))
        return found


def cut(text: str, length: int) -> str:
    """The beginning of a text, and a sign that it goes on."""
    return text if len(text) <= length else text[:length].rstrip() + ELLIPSIS


def longest_that_fits(texts: Iterable[str], room: int) -> int | None:
    """After how many characters texts must be cut to take at most ``room`` bytes; None if no cut helps.

    >>> longest_that_fits(["a" * 5000, "b" * 100], 2500), longest_that_fits(["a" * 500] * 9, 1000)
    (2000, None)
    """
    sizes = [(len(text), len(text.encode("utf-8", "replace"))) for text in texts]
    for length in LENGTHS:
        taken = sum(size if long <= length else size * length // long for long, size in sizes)
        if taken <= room:
            return length
    return None
