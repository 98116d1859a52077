"""Which bracket closes, and which one opened, what a place of a text lies in; read once a text."""

from __future__ import annotations

import re
from bisect import bisect_left
from itertools import accumulate

_BRACKET = re.compile(r"[()\[\]]")


class Brackets:
    """The brackets of a text, round and square alike.

    >>> text = "(no [obvious] fever) cough"
    >>> brackets = Brackets(text)
    >>> brackets.closing(text.index("no")), brackets.opening(text.index("fever"))
    (19, 1)
    >>> brackets.closing(text.index("cough")) is None
    True
    """

    def __init__(self, text: str) -> None:
        found = list(_BRACKET.finditer(text))
        self._places = [match.start() for match in found]
        # The depth between brackets: a bracket closes what is open where the depth first falls below.
        depths = list(accumulate((1 if match[0] in "([" else -1 for match in found), initial=0))
        self._later = _next_below(depths)
        last = len(depths) - 1
        self._earlier = [None if at is None else last - at for at in _next_below(depths[::-1])][::-1]

    def closing(self, place: int) -> int | None:
        """The bracket that closes what is open before a place."""
        at = self._later[bisect_left(self._places, place)]
        return None if at is None else self._places[at - 1]

    def opening(self, place: int) -> int | None:
        """Behind the bracket that is open at a place."""
        at = self._earlier[bisect_left(self._places, place)]
        return None if at is None else self._places[at] + 1


def _next_below(depths: list[int]) -> list[int | None]:
    """For each number where the next smaller one stands."""
    found: list[int | None] = [None] * len(depths)
    waiting: list[int] = []
    for at, depth in enumerate(depths):
        while waiting and depths[waiting[-1]] > depth:
            found[waiting.pop()] = at
        waiting.append(at)
    return found
