"""At how many places of a text an answer stands, by the rule of a matcher."""

from __future__ import annotations

from collections.abc import Iterator

from equipoise.tasks.answers.matcher import Matcher


def places(answer: str, text: str, matcher: Matcher) -> int:
    """How often the answer stands in the text where the matcher accepts what surrounds it.

    Both are compared letter by letter, so normalise them first. Places that overlap count once.

    >>> from equipoise.tasks.answers.matcher import matcher
    >>> places("65%", "65% of 165%, then 65%.", matcher("words"))
    2
    """
    accepted: dict[str, bool] = {}
    count = reached = 0
    for start, surroundings in occurrences(answer, text):
        if start < reached:
            continue
        if surroundings not in accepted:
            accepted[surroundings] = matcher.holds(answer, surroundings)
        if accepted[surroundings]:
            count, reached = count + 1, start + len(answer)
    return count


def occurrences(answer: str, text: str) -> Iterator[tuple[int, str]]:
    """Where the answer begins, each time, and the whole words that it begins and ends in.

    >>> list(occurrences("5 m", "15 metres, 5 m"))
    [(1, '15 metres,'), (11, '5 m')]
    """
    start = text.find(answer) if answer else -1
    while start >= 0:
        left, right = start, start + len(answer)
        while left > 0 and not text[left - 1].isspace():
            left -= 1
        while right < len(text) and not text[right].isspace():
            right += 1
        yield start, text[left:right]
        start = text.find(answer, start + 1)
