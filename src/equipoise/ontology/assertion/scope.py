"""Every cue in a text, and the stretch of the text that it speaks of."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate

from equipoise.embed.chunk.sentences import sentence_starts
from equipoise.ontology.assertion.kinds import Assertion
from equipoise.ontology.assertion.rules import Cues, Reach, Rules

Span = tuple[int, int]

_BULLET = re.compile(r"\n[^\S\n]*+(?=[-*•]|\d{1,2}[.)]\s|[A-ZÄÖÜ][\w /-]{0,40}:)")
_HEADING = re.compile(r"\n[^\S\n]*+(?:\n|(?=[A-ZÄÖÜ][\w /-]{0,40}:))")
_SHORT_LINE = 50
_FARTHEST = 1000
"""Characters that a cue reaches at most, however long the sentence; a section has no such bound."""
_TAIL = 24
"""Characters before a cue in which a comma or a list word would stand."""


@dataclass(frozen=True, slots=True)
class Cue:
    """A cue where it stands, with the stretches that it reaches."""

    assertion: Assertion
    start: int
    end: int
    scopes: tuple[Span, ...]
    part_of_term: bool = False

    @property
    def extent(self) -> Span:
        """From the first to the last character that is its own or in a scope."""
        return min(self.start, *(start for start, _ in self.scopes)), max(
            self.end, *(end for _, end in self.scopes)
        )

    def reaches(self, place: int) -> bool:
        """Whether a character lies in a scope."""
        return any(start <= place < end for start, end in self.scopes)


class CueTable:
    """All cues of a text with their scopes; of cues that share words only the longest counts."""

    def __init__(self, text: str, rules: Rules) -> None:
        self._cues = sorted(_Reader(text, rules).cues(), key=lambda cue: cue.extent)
        self._starts = [cue.extent[0] for cue in self._cues]
        self._reach = list(accumulate((cue.extent[1] for cue in self._cues), max))

    def near(self, span: Span) -> list[Cue]:
        """The cues that can speak of a span, or lie in it, in the order of the text."""
        # Cues before the first end before the span, and those from the last on begin behind it.
        first, last = bisect_right(self._reach, span[0]), bisect_left(self._starts, span[1])
        return sorted(self._cues[first:last], key=lambda cue: cue.start)


def words_about(text: str, rules: Rules) -> list[Span]:
    """The stretches of a text that speak about findings: cues, and words that end their scopes."""
    cues = [(match.start, match.end) for match in _longest(text, rules) if _is_about(match)]
    ends = [match.span() for match in rules.end_patterns[Assertion.NEGATED].finditer(text)]
    return sorted({*cues, *ends})


@dataclass(frozen=True, slots=True)
class _Match:
    start: int
    end: int
    cues: Cues | None
    """None for a pseudo cue."""

    @property
    def looks_back(self) -> bool:
        return self.cues is not None and self.cues.reach is Reach.BACKWARD


class _Reader:
    """One text, with its sentences and the words that end scopes."""

    def __init__(self, text: str, rules: Rules) -> None:
        self._text, self._rules = text, rules
        self._matches = [match for match in _longest(text, rules) if match.cues]
        # The full stop of a cue, as in *V.a.*, ends no sentence.
        within = {_behind(text, match.end) for match in self._matches if text[match.end - 1] == "."}
        self._borders = [*(start for start in statement_starts(text) if start not in within), len(text)]
        taken = bytearray(len(text))
        for match in self._matches:
            taken[match.start : match.end] = b"\1" * (match.end - match.start)
        self._ends = {
            kind: [match.span() for match in pattern.finditer(text) if not any(taken[slice(*match.span())])]
            for kind, pattern in rules.end_patterns.items()
        }
        self._starts = [match.start for match in self._matches]
        self._anew = [match.start for match in self._matches if self._begins_anew(match)]

    def cues(self) -> list[Cue]:
        return [
            Cue(
                match.cues.assertion,
                match.start,
                match.end,
                tuple(self._scopes(match)),
                match.cues.part_of_term,
            )
            for match in self._matches
            if match.cues is not None
        ]

    def _scopes(self, match: _Match) -> Iterator[Span]:
        assert match.cues is not None
        reach = match.cues.reach
        if reach is Reach.SECTION:
            after = _HEADING.search(self._text, match.end)
            yield match.end, after.start() if after else len(self._text)
            return
        sentence = bisect_right(self._borders, match.start) - 1
        if reach in (Reach.FORWARD, Reach.BOTH):
            yield match.end, self._forward(match, min(self._borders[sentence + 1], match.end + _FARTHEST))
        if reach in (Reach.BACKWARD, Reach.BOTH):
            yield self._backward(match, max(self._borders[sentence], match.start - _FARTHEST)), match.start

    def _forward(self, match: _Match, limit: int) -> int:
        """Where a scope to the right ends: end word, semicolon, closing bracket, or a new statement."""
        assert match.cues is not None
        ends = self._ends[match.cues.assertion]
        place = bisect_left(ends, (match.end, 0))
        stops = [limit, *(start for start, _ in ends[place : place + 1])]
        stops += [self._text.find(";", match.end, limit), _closing(self._text, match.end, limit)]
        anew = bisect_left(self._anew, match.end)
        stops += self._anew[anew : anew + 1]
        return min(stop for stop in stops if stop >= 0)

    def _within(self, start: int, end: int) -> list[_Match]:
        """The cues that begin between two places."""
        return self._matches[bisect_left(self._starts, start) : bisect_left(self._starts, end)]

    def _begins_anew(self, match: _Match) -> bool:
        """Whether a cue stands behind a comma or a list word: *no fever, possible cough*."""
        tail = max(0, match.start - _TAIL)
        return not match.looks_back and bool(self._rules.list_pattern.search(self._text, tail, match.start))

    def _backward(self, match: _Match, limit: int) -> int:
        """Where a scope to the left begins; a comma ends it, unless it is in a list that a verb closes."""
        assert match.cues is not None
        every = self._ends[match.cues.assertion]
        first, last = bisect_left(every, (limit, 0)), bisect_left(every, (match.start, 0))
        ends = [end for _, end in every[first:last]]
        before = [each.end for each in self._within(limit, match.start) if each.looks_back]
        stops = [limit, *ends[-1:], *before[-1:]]
        stops += [self._text.rfind(mark, limit, match.start) + 1 for mark in ";:"]
        stops.append(_opening(self._text, limit, match.start))
        start = max(stops)
        comma = self._text.rfind(",", start, match.start)
        listed = match.looks_back and self._rules.joint_pattern.search(self._text, comma, match.start)
        if comma >= 0 and not listed:
            start = comma + 1
        return start


def statement_starts(text: str) -> list[int]:
    """Where sentences begin; items of a list and lines that were not wrapped count as sentences.

    >>> statement_starts("No fever\\nCough. Tall")
    [0, 9, 16]
    """
    starts = {*sentence_starts(text), *(match.end() for match in _BULLET.finditer(text))}
    line = 0
    for end in (match.start() for match in re.finditer("\n", text)):
        if end - line < _SHORT_LINE and not text[line:end].rstrip().endswith(","):
            starts.add(end + 1)
        line = end + 1
    return sorted(start for start in starts if start < len(text)) or [0]


def _matches(text: str, rules: Rules) -> Iterator[_Match]:
    for cues in rules.cues:
        yield from (_Match(found.start(), found.end(), cues) for found in cues.pattern.finditer(text))
    yield from (_Match(found.start(), found.end(), None) for found in rules.pseudo_pattern.finditer(text))


def _is_about(match: _Match) -> bool:
    return match.cues is not None and not match.cues.part_of_term


def _longest(text: str, rules: Rules) -> list[_Match]:
    """Of matches that share characters the longest, in the order of the text."""
    kept: list[_Match] = []
    taken = bytearray(len(text))
    for match in sorted(_matches(text, rules), key=lambda each: (each.start - each.end, each.start)):
        if not any(taken[match.start : match.end]):
            kept.append(match)
            taken[match.start : match.end] = b"\1" * (match.end - match.start)
    return sorted(kept, key=lambda each: each.start)


def _behind(text: str, place: int) -> int:
    """The first character that is no white space, from a place on."""
    while place < len(text) and text[place].isspace():
        place += 1
    return place


def _closing(text: str, start: int, limit: int) -> int:
    """The bracket that closes what was open before ``start``; -1 where there is none."""
    depth = 0
    for place in range(start, limit):
        depth += (text[place] in "([") - (text[place] in ")]")
        if depth < 0:
            return place
    return -1


def _opening(text: str, limit: int, end: int) -> int:
    """Behind the bracket that is open at ``end``; ``limit`` where there is none."""
    depth = 0
    for place in range(end - 1, limit - 1, -1):
        depth += (text[place] in ")]") - (text[place] in "([")
        if depth < 0:
            return place + 1
    return limit
