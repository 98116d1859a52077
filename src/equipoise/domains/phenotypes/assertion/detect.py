"""Every cue in a text, and the stretch of the text that it speaks of."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from equipoise.domains.phenotypes.assertion import english, german
from equipoise.domains.phenotypes.assertion.rules import Assertion, AssertionRules, CueDirection, CueGroup
from equipoise.errors import InputError, UnknownNameError
from equipoise.models.chunking import sentence_starts

# Which bracket closes, and which one opened, what a place of a text lies in; read once a text.

_BRACKET = re.compile(r"[()\[\]]")


class BracketIndex:
    """The brackets of a text, round and square alike.

    >>> text = "(no [obvious] fever) cough"
    >>> brackets = BracketIndex(text)
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


Span = tuple[int, int]

_BULLET = re.compile(r"\n[^\S\n]*+(?=[-*•]|\d{1,2}[.)]\s|[A-ZÄÖÜ][\w /-]{0,40}:)")
_HEADING = re.compile(r"\n[^\S\n]*+(?:\n|(?=[A-ZÄÖÜ][\w /-]{0,40}:))")
_SHORT_LINE = 50
_FARTHEST = 1000
"""Characters that a cue reaches at most, however long the sentence; a section has no such bound."""
_DOUBTED = (Assertion.NEGATED, Assertion.UNCERTAIN)
_TAIL = 24
"""Characters before a cue, or a sentence, in which a comma, a list word or a line break would stand."""


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
        return min(self.start, *(start for start, _ in self.scopes)), max(self.end, *(end for _, end in self.scopes))

    def reaches(self, place: int) -> bool:
        """Whether a character lies in a scope."""
        return any(start <= place < end for start, end in self.scopes)


class CueTable:
    """All cues of a text with their scopes; of cues that share words only the longest counts."""

    def __init__(self, text: str, rules: AssertionRules) -> None:
        cues = _ScopeFinder(text, rules).cues()
        # A section reaches far, and among the others it would keep all that stand behind it near.
        shelves: tuple[list[Cue], list[Cue]] = ([], [])
        for cue in cues:
            shelves[cue.extent[1] - cue.extent[0] > 2 * _FARTHEST].append(cue)
        self._shelves = [_IntervalIndex(each) for each in shelves]

    def near(self, span: Span) -> list[Cue]:
        """The cues that can speak of a span, or lie in it, in the order of the text."""
        return sorted((cue for shelf in self._shelves for cue in shelf.near(span)), key=lambda cue: cue.start)


class _IntervalIndex:
    """Cues by where they begin to reach."""

    def __init__(self, cues: list[Cue]) -> None:
        self._cues = sorted(cues, key=lambda cue: cue.extent)
        self._starts = [cue.extent[0] for cue in self._cues]
        self._reach = list(accumulate((cue.extent[1] for cue in self._cues), max))

    def near(self, span: Span) -> list[Cue]:
        # Cues before the first end before the span, and those from the last on begin behind it.
        return self._cues[bisect_right(self._reach, span[0]) : bisect_left(self._starts, span[1])]


def cue_spans(text: str, rules: AssertionRules) -> list[Span]:
    """The stretches of a text that speak about findings: cues, words that end their scopes, *is present*."""
    cues = [(match.start, match.end) for match in _longest(text, rules) if _is_about(match)]
    patterns = (rules.end_patterns[Assertion.NEGATED], rules.said_pattern)
    others = [match.span() for pattern in patterns for match in pattern.finditer(text)]
    return sorted({*cues, *others})


@dataclass(frozen=True, slots=True)
class _Match:
    start: int
    end: int
    cues: CueGroup | None
    """None for a pseudo cue."""

    @property
    def looks_back(self) -> bool:
        return self.cues is not None and self.cues.reach is CueDirection.BACKWARD


class _ScopeFinder:
    """One text, with its sentences and the words that end scopes."""

    def __init__(self, text: str, rules: AssertionRules) -> None:
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
        self._anew = [match.start for match in self._matches if self._begins_anew(match)]
        self._said = sorted(self._statements(taken))
        self._brackets = BracketIndex(text)
        sections = (match for match in self._matches if match.cues and match.cues.reach is CueDirection.SECTION)
        self._headings = [match.start for match in sections]
        self._back = [match for match in self._matches if match.looks_back]
        self._back_starts = [match.start for match in self._back]

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
        if reach is CueDirection.SECTION:
            yield match.end, min([self._section(match), *_first_from(self._headings, match.end)])
            return
        sentence = bisect_right(self._borders, match.start) - 1
        if reach in (CueDirection.FORWARD, CueDirection.BOTH):
            yield match.end, self._forward(match, min(self._borders[sentence + 1], match.end + _FARTHEST))
        if reach in (CueDirection.BACKWARD, CueDirection.BOTH):
            yield self._backward(match, max(self._borders[sentence], match.start - _FARTHEST)), match.start

    def _forward(self, match: _Match, limit: int) -> int:
        """Where a scope to the right ends: end word, semicolon, closing bracket, or a new statement."""
        assert match.cues is not None
        ends = self._ends[match.cues.assertion]
        place = bisect_left(ends, (match.end, 0))
        stops = [limit, *(start for start, _ in ends[place : place + 1])]
        semicolon, closing = self._text.find(";", match.end, limit), self._brackets.closing(match.end)
        stops += [] if semicolon < 0 else [semicolon]
        stops += [] if closing is None else [closing]
        stops += _first_from(self._anew, match.end)
        if match.cues.assertion in _DOUBTED:
            stops += _first_from(self._said, match.end)
        return min(stops)

    def _section(self, match: _Match) -> int:
        """Where what stands below a heading ends.

        A heading with a sentence behind it and more on the same line is a part of running text, and speaks of
        that sentence. Else the section goes on to the next heading or empty line, or to a sentence about the
        patient.
        """
        at = bisect_right(self._borders, match.end)
        first = self._borders[at] if at < len(self._borders) else len(self._text)
        tail = self._text[max(match.end, first - _TAIL) : first]
        if "\n" not in tail[len(tail.rstrip()) :]:
            return first
        after = _HEADING.search(self._text, match.end)
        limit = after.start() if after else len(self._text)
        later = (self._borders[place] for place in range(at, len(self._borders)))
        return next((place for place in later if place >= limit or self._of_patient(place)), limit)

    def _of_patient(self, place: int) -> bool:
        return bool(self._rules.patient_pattern.match(self._text, place))

    def _statements(self, taken: bytearray) -> Iterator[int]:
        """Where a comma begins a statement of its own: *no ataxia, tremor is present*."""
        for match in self._rules.said_pattern.finditer(self._text):
            if any(taken[slice(*match.span())]):
                continue
            sentence = self._borders[bisect_right(self._borders, match.start()) - 1]
            comma = self._text.rfind(",", max(sentence, match.start() - _SHORT_LINE), match.start())
            between = self._text[comma + 1 : match.start()]
            # In *no ataxia, tremor or fits were seen* the verb belongs to the whole list.
            if comma >= 0 and between.strip() and not self._rules.joint_pattern.search(between):
                yield comma

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
        stops = [limit, *ends[-1:]]
        before = bisect_left(self._back_starts, match.start)
        stops += [each.end for each in self._back[max(0, before - 1) : before]]
        stops += [self._text.rfind(mark, limit, match.start) + 1 for mark in ";:"]
        stops.append(self._brackets.opening(match.start) or limit)
        start = max(stops)
        comma = self._text.rfind(",", start, match.start)
        if comma < 0:
            return start
        listed = match.looks_back and self._rules.joint_pattern.search(self._text, comma, match.start)
        return start if listed else comma + 1


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


def _matches(text: str, rules: AssertionRules) -> Iterator[_Match]:
    for cues in rules.cues:
        yield from (_Match(found.start(), found.end(), cues) for found in cues.pattern.finditer(text))
    yield from (_Match(found.start(), found.end(), None) for found in rules.pseudo_pattern.finditer(text))


def _is_about(match: _Match) -> bool:
    return match.cues is not None and not match.cues.part_of_term


def _longest(text: str, rules: AssertionRules) -> list[_Match]:
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


def _first_from(places: list[int], start: int) -> list[int]:
    """The first of some places that is not before ``start``; none where all are."""
    at = bisect_left(places, start)
    return places[at : at + 1]


# Which of the languages with rules a text is written in, told by its small words.

LANGUAGES = ("en", "de")

_SMALL = {
    "en": (
        "a an the of and or in on at to for from with without by as is are was were be been being has have "
        "had he she it they his her their its this that these those there which who not no but both some any "
        "one also other such than then into during after before since up"
    ),
    "de": (
        "der die das den dem des ein eine einen einem einer eines und oder in im am an auf aus bei beim mit "
        "ohne von vom zu zum zur für nach seit ist sind war waren wird wurde wurden werden hat haben hatte "
        "er sie es ihr ihre sein seine nicht kein keine keinen aber auch als wie dass sich noch nur so sowie "
        "bis über unter vor durch"
    ),
}
FUNCTION_WORDS = {name: frozenset(words.split()) for name, words in _SMALL.items()}
"""Words that carry no finding, by language."""

_LANGUAGE_WORD = re.compile(r"[^\W\d_]+")


def guess_language(text: str) -> str:
    """``en`` or ``de``, whichever has more of its small words in the text; English where none is known.

    >>> guess_language("Kein Fieber, aber Husten."), guess_language("No fever.")
    ('de', 'en')
    """
    words = [word.casefold() for word in _LANGUAGE_WORD.findall(text)]
    counts = {name: sum(word in FUNCTION_WORDS[name] for word in words) for name in LANGUAGES}
    # Umlauts are all but absent from English, and a note of nouns may have no small word at all.
    counts["de"] += len(re.findall("[äöüÄÖÜß]", text))
    return max(LANGUAGES, key=lambda name: counts[name])


def validate_language(name: str) -> str:
    """The language of a code such as ``de`` or ``en-GB``; one without rules is refused.

    >>> validate_language("en-GB")
    'en'
    """
    found = name.strip().casefold().replace("_", "-").partition("-")[0]
    if found not in LANGUAGES:
        raise UnknownNameError.of("language with rules", name, LANGUAGES, more="there are rules for en and de")
    return found


# The rules of each language.

RULES: dict[str, AssertionRules] = {"en": english.ENGLISH_RULES, "de": german.GERMAN_RULES}


# What a text says of its spans: affirmed, negated, uncertain, of a relative, or not yet so.

_WORD = re.compile(r"\w+")
_OUTRANKING = (Assertion.HYPOTHETICAL, Assertion.FAMILY_HISTORY)


@dataclass(frozen=True, slots=True)
class DetectedAssertion:
    """What is said of a span, and the words that say so."""

    assertion: Assertion
    cues: tuple[Span, ...] = ()


def detect_assertions(text: str, spans: Sequence[Span], language: str = "en") -> list[Assertion]:
    """For each span what the text says of it.

    >>> text = "No fever or rash, but cough. His mother has asthma."
    >>> places = [(text.index(word), text.index(word) + len(word)) for word in ("rash", "cough", "asthma")]
    >>> [str(found) for found in detect_assertions(text, places)]
    ['negated', 'affirmed', 'family_history']
    """
    return [judgement.assertion for judgement in detect_assertions_with_cues(text, spans, language)]


def detect_assertions_with_cues(text: str, spans: Sequence[Span], language: str = "en") -> list[DetectedAssertion]:
    """The same with the cues that decided.

    A cue speaks of a span when more than half of the span's words lie in its scope: small words and words of
    cues do not count. Where several speak of it, what is hypothetical or said of a relative goes before
    negation and doubt, and of these the earlier one wins, as it governs the later: *possibly no fever* is
    uncertain, *no sign of suspected fever* is negated.
    """
    code = validate_language(language)
    for start, end in spans:
        if not 0 <= start <= end <= len(text):
            raise InputError(
                f"the span {start} to {end} does not lie in a text of {len(text)} characters",
                hint="spans count characters from 0, and the end is exclusive",
            )
    table = CueTable(text, RULES[code])
    return [_judged(text, span, table.near(span), FUNCTION_WORDS[code]) for span in spans]


def _judged(text: str, span: Span, cues: Sequence[Cue], small: frozenset[str]) -> DetectedAssertion:
    start, end = span
    telling = [cue for cue in cues if not (cue.part_of_term and start <= cue.start and cue.end <= end)]
    words = _content(text, span, telling, small)
    speaking: dict[Assertion, list[Cue]] = {}
    for kind in Assertion:
        own = [cue for cue in telling if cue.assertion is kind]
        reached = [[cue for cue in own if cue.reaches(word)] for word in words]
        if 2 * sum(map(bool, reached)) > len(words):
            speaking[kind] = [cue for each in reached for cue in each]
    if not speaking:
        return DetectedAssertion(Assertion.AFFIRMED)
    first = next((kind for kind in _OUTRANKING if kind in speaking), None)
    kind = first or min(speaking, key=lambda each: min(cue.start for cue in speaking[each]))
    return DetectedAssertion(kind, tuple(sorted({(cue.start, cue.end) for cue in speaking[kind]})))


def _content(text: str, span: Span, cues: Sequence[Cue], small: frozenset[str]) -> list[int]:
    """Where the words of a span begin that can be a finding; all words, where it has no such."""
    inside = [cue for cue in cues if cue.start < span[1] and span[0] < cue.end]
    every = [
        match.start()
        for match in _WORD.finditer(text, *span)
        if not any(cue.start <= match.start() < cue.end for cue in inside)
    ]
    telling = [word for word in every if _WORD.match(text, word)[0].casefold() not in small]  # type: ignore[index]
    return telling or every
