"""Assertion detection (ConText): find cues, find their scopes, decide the assertion of each span."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from equipoise.domains.phenotypes.assertion.rules import (
    Assertion,
    AssertionRules,
    CueDirection,
    CueGroup,
    FoundPhrases,
    Span,
    rules_for,
)
from equipoise.domains.phenotypes.language import FUNCTION_WORDS, validate_language
from equipoise.errors import InputError
from equipoise.models.chunking import sentence_starts

_BRACKET = re.compile(r"[()\[\]]")


_BULLET = re.compile(r"\n[^\S\n]*+(?=[-*•]|\d{1,2}[.)]\s|[A-ZÄÖÜ][\w /-]{0,40}:)")
_HEADING = re.compile(r"\n[^\S\n]*+(?:\n|(?=[A-ZÄÖÜ][\w /-]{0,40}:))")
_SHORT_LINE = 50
_MAX_SCOPE = 1000
"""Maximum number of characters of a scope; sections have no maximum."""
_NEGATED_OR_UNCERTAIN = (Assertion.NEGATED, Assertion.UNCERTAIN)
_CONTEXT_CHARACTERS = 24
"""Characters before a cue or sentence that are searched for a comma, a conjunction or a line break."""


@dataclass(frozen=True, slots=True)
class Cue:
    """A cue in a text, with its scopes."""

    assertion: Assertion
    start: int
    end: int
    scopes: tuple[Span, ...]
    part_of_term: bool = False

    @property
    def extent(self) -> Span:
        """The interval that contains the cue and all its scopes."""
        return min(self.start, *(start for start, _ in self.scopes)), max(self.end, *(end for _, end in self.scopes))

    def covers(self, position: int) -> bool:
        return any(start <= position < end for start, end in self.scopes)


class CueTable:
    """All cues of a text with their scopes; of overlapping cues only the longest counts."""

    def __init__(self, text: str, rules: AssertionRules) -> None:
        cues = _ScopeFinder(text, rules).cues()
        # Sections have long scopes. A separate index keeps lookups of the other cues short.
        groups: tuple[list[Cue], list[Cue]] = ([], [])
        for cue in cues:
            groups[cue.extent[1] - cue.extent[0] > 2 * _MAX_SCOPE].append(cue)
        self._indexes = [_IntervalIndex(group) for group in groups]

    def covering(self, span: Span) -> list[Cue]:
        """The cues whose extent overlaps a span, in text order."""
        return sorted((cue for index in self._indexes for cue in index.covering(span)), key=lambda cue: cue.start)


class _IntervalIndex:
    """Cues sorted by the start of their extent."""

    def __init__(self, cues: list[Cue]) -> None:
        self._cues = sorted(cues, key=lambda cue: cue.extent)
        self._starts = [cue.extent[0] for cue in self._cues]
        self._max_ends = list(accumulate((cue.extent[1] for cue in self._cues), max))

    def covering(self, span: Span) -> list[Cue]:
        # Cues before this slice end before the span, and cues after it start after the span.
        return self._cues[bisect_right(self._max_ends, span[0]) : bisect_left(self._starts, span[1])]


def cue_spans(text: str, rules: AssertionRules) -> list[Span]:
    """The spans of cues, terminators and affirming phrases such as *is present*."""
    phrases = rules.find_phrases(text)
    matches = _longest_matches(text, phrases)
    cues = [(match.start, match.end) for match in matches if match.cues and not match.cues.part_of_term]
    terminators = phrases.terminators_by_assertion[Assertion.NEGATED]
    return sorted({*cues, *phrases.terminators, *terminators, *phrases.affirmed})


@dataclass(frozen=True, slots=True)
class _Match:
    start: int
    end: int
    cues: CueGroup | None
    """None for a pseudo cue."""

    @property
    def is_backward(self) -> bool:
        return self.cues is not None and self.cues.direction is CueDirection.BACKWARD


class _ScopeFinder:
    """Finds the scopes of all cues of one text."""

    def __init__(self, text: str, rules: AssertionRules) -> None:
        self._text, self._rules = text, rules
        self._phrases = rules.find_phrases(text)
        self._matches = [match for match in _longest_matches(text, self._phrases) if match.cues]
        # The full stop of a cue such as *V.a.* does not end a sentence, nor does a question mark before a word.
        after = [match.end for match in self._matches if text[match.end - 1] in ".?"]
        tails = [(end, text[end : end + _CONTEXT_CHARACTERS]) for end in after]
        within = {end + len(tail) - len(tail.lstrip()) for end, tail in tails}
        covered = bytearray(len(text))
        for match in self._matches:
            covered[match.start : match.end] = b"\1" * (match.end - match.start)
        inside = {at for match in self._matches for at in range(match.start + 1, match.end)}
        starts = (start for start in statement_starts(text) if start not in within and start not in inside)
        self._borders = [*starts, len(text)]
        self._match_starts = [match.start for match in self._matches]
        self._ends = self._terminators(covered)
        self._statement_cues = [match.start for match in self._matches if self._starts_statement(match)]
        self._phrase_cues = [match.start for match in self._matches if match.cues and match.cues.starts_phrase]
        self._affirmed = sorted(span for span in self._phrases.affirmed if not any(covered[slice(*span)]))
        self._affirmed_starts = sorted(self._statements())
        sections = (match for match in self._matches if match.cues and match.cues.direction is CueDirection.SECTION)
        self._headings = [match.start for match in sections]
        self._back = [match for match in self._matches if match.is_backward]
        self._back_starts = [match.start for match in self._back]

    def _terminators(self, covered: bytearray) -> dict[Assertion, list[Span]]:
        """The terminators outside of cues, by assertion."""

        def outside(spans: Iterable[Span]) -> list[Span]:
            return [span for span in spans if not any(covered[slice(*span)])]

        common = outside(self._phrases.terminators)
        by_assertion = {kind: outside(spans) for kind, spans in self._phrases.terminators_by_assertion.items()}
        ends = {kind: sorted({*common, *by_assertion.get(kind, ())}) for kind in Assertion}
        # *The brother has no seizures, but ataxia*: only a mention of the patient ends the scope of a relative.
        ends[Assertion.FAMILY_HISTORY] = sorted(by_assertion[Assertion.FAMILY_HISTORY])
        return ends

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
        direction = match.cues.direction
        if direction is CueDirection.SECTION:
            yield match.end, min([self._section(match), *_first_from(self._headings, match.end)])
            return
        sentence = bisect_right(self._borders, match.start) - 1
        if direction is CueDirection.ITEM:
            limit = self._forward(match, sentence)
            separator = self._rules.separator_pattern.search(self._text, match.end, limit)
            yield match.end, separator.start() if separator else limit
        if direction in (CueDirection.FORWARD, CueDirection.BOTH):
            yield match.end, self._forward(match, sentence)
        if direction in (CueDirection.BACKWARD, CueDirection.BOTH):
            yield self._backward(match, sentence), match.start

    def _forward(self, match: _Match, sentence: int) -> int:
        """The end of a forward scope: terminator, semicolon, closing bracket, or a new statement."""
        assert match.cues is not None
        limit = min(self._borders[sentence + 1], match.end + _MAX_SCOPE)
        ends = self._ends[match.cues.assertion]
        index = bisect_left(ends, (match.end, 0))
        stops = [limit, *(start for start, _ in ends[index : index + 1])]
        stops += [at for at in (self._text.find(";", match.end, limit), self._closing(match.end, limit)) if at >= 0]
        stops += _first_from(self._statement_cues, match.end)
        if match.cues.assertion in _NEGATED_OR_UNCERTAIN:
            stops += _first_from(self._affirmed_starts, match.end)
            stops += _first_from(self._phrase_cues, match.end)
        comma = self._text.find(",", match.end, min(stops))
        if comma >= 0:
            is_list = self._rules.conjunction_pattern.search(self._text, comma, min(stops))
            if self._repeats_cue(match) or (match.cues.ends_at_comma and not is_list):
                stops.append(comma)
        return min(stops)

    def _repeats_cue(self, match: _Match) -> bool:
        """Whether each item of a list has its own negation, as in *no rash, no edema, cough*: the last one has none."""
        assert match.cues is not None
        at = bisect_left(self._match_starts, match.start)
        previous = self._matches[at - 1] if at else None
        return (
            previous is not None
            and previous.cues is match.cues
            and match.cues.assertion is Assertion.NEGATED
            and self._starts_statement(match)
            and match.start < self._borders[bisect_right(self._borders, previous.start)]
        )

    def _section(self, match: _Match) -> int:
        """The end of the section of a heading.

        If a sentence and more text follow the heading on the same line, the scope is that sentence. Otherwise the
        section ends at the next heading, at an empty line, or at a sentence about the patient.
        """
        at = bisect_right(self._borders, match.end)
        first = self._borders[at] if at < len(self._borders) else len(self._text)
        tail = self._text[max(match.end, first - _CONTEXT_CHARACTERS) : first]
        if "\n" not in tail[len(tail.rstrip()) :]:
            return first
        after = _HEADING.search(self._text, match.end)
        limit = after.start() if after else len(self._text)
        later = (self._borders[number] for number in range(at, len(self._borders)))
        about_patient = self._rules.patient_pattern.match
        return next((start for start in later if start >= limit or about_patient(self._text, start)), limit)

    def _statements(self) -> Iterator[int]:
        """Commas that start a new affirmative statement: *no ataxia, tremor is present*."""
        for start, _ in self._affirmed:
            sentence = self._borders[bisect_right(self._borders, start) - 1]
            comma = self._text.rfind(",", max(sentence, start - _SHORT_LINE), start)
            between = self._text[comma + 1 : start]
            # In *no ataxia, tremor or fits were seen* the verb belongs to the whole list.
            if comma >= 0 and between.strip() and not self._rules.conjunction_pattern.search(between):
                yield comma

    def _starts_statement(self, match: _Match) -> bool:
        """Whether a cue follows a comma or a conjunction: *no fever, possible cough*."""
        tail = max(0, match.start - _CONTEXT_CHARACTERS)
        return not match.is_backward and bool(self._rules.list_pattern.search(self._text, tail, match.start))

    def _closing(self, start: int, limit: int) -> int:
        """The bracket that closes an earlier one; -1 if there is none."""
        depth = 0
        for bracket in _BRACKET.finditer(self._text, start, limit):
            depth += 1 if bracket[0] in "([" else -1
            if depth < 0:
                return bracket.start()
        return -1

    def _opening(self, limit: int, end: int) -> int:
        """The position after the bracket that a later one closes; ``limit`` if there is none."""
        depth = 0
        for bracket in reversed([*_BRACKET.finditer(self._text, limit, end)]):
            depth += 1 if bracket[0] in ")]" else -1
            if depth < 0:
                return bracket.end()
        return limit

    def _backward(self, match: _Match, sentence: int) -> int:
        """The start of a backward scope; a comma ends it, unless it is in a list that a verb closes."""
        assert match.cues is not None
        limit = max(self._borders[sentence], match.start - _MAX_SCOPE)
        terminators = self._ends[match.cues.assertion]
        first, last = bisect_left(terminators, (limit, 0)), bisect_left(terminators, (match.start, 0))
        ends = [end for _, end in terminators[first:last]]
        stops = [limit, *ends[-1:]]
        before = bisect_left(self._back_starts, match.start)
        stops += [previous.end for previous in self._back[max(0, before - 1) : before]]
        if match.cues.assertion in _NEGATED_OR_UNCERTAIN:
            # In *tremor was present, and chorea was absent* the first item has a verb of its own.
            affirmed = bisect_left(self._affirmed, (match.start, 0))
            ends = [end for _, end in self._affirmed[max(0, affirmed - 1) : affirmed]]
            stops += [end for end in ends if self._rules.separator_pattern.search(self._text, end, match.start)]
        stops += [self._text.rfind(mark, limit, match.start) + 1 for mark in ";:"]
        stops.append(self._opening(limit, match.start))
        start = max(stops)
        comma = self._text.rfind(",", start, match.start)
        if comma < 0:
            return start
        listed = match.is_backward and self._rules.conjunction_pattern.search(self._text, comma, match.start)
        return start if listed else comma + 1


def statement_starts(text: str) -> list[int]:
    """Start positions of sentences; list items and short unwrapped lines count as sentences.

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


def _longest_matches(text: str, phrases: FoundPhrases) -> list[_Match]:
    """The longest of overlapping matches, in text order."""
    candidates = [_Match(*span, cues) for cues, spans in [*phrases.cues, (None, phrases.pseudo)] for span in spans]
    matches: list[_Match] = []
    covered = bytearray(len(text))
    for match in sorted(candidates, key=lambda match: (match.start - match.end, match.start)):
        if not any(covered[match.start : match.end]):
            matches.append(match)
            covered[match.start : match.end] = b"\1" * (match.end - match.start)
    return sorted(matches, key=lambda match: match.start)


def _first_from(positions: list[int], start: int) -> list[int]:
    """The first of the sorted positions that is not before ``start``, as a list of at most one."""
    at = bisect_left(positions, start)
    return positions[at : at + 1]


_WORD_CHARACTERS = re.compile(r"\w+")
_PRECEDENCE = (Assertion.HYPOTHETICAL, Assertion.FAMILY_HISTORY)


@dataclass(frozen=True, slots=True)
class DetectedAssertion:
    """The assertion of a span, and the spans of the cues that decided."""

    assertion: Assertion
    cues: tuple[Span, ...] = ()


def detect_assertions(
    text: str, spans: Sequence[Span], language: str = "en", *, names: Iterable[Span] = ()
) -> list[Assertion]:
    """Detect whether each span is affirmed, negated, uncertain, hypothetical or family history.

    Parameters
    ----------
    text
        The text.
    spans
        Start and end offsets in the text.
    language
        ``en`` or ``de``.
    names
        Spans that are exactly the name of a finding, such as *absent speech* or *no speech*: cues inside of them belong
        to the name.

    Returns
    -------
    list of Assertion
        One assertion per span.

    Examples
    --------
    >>> text = "No fever or rash, but cough. His mother has asthma."
    >>> spans = [(text.index(word), text.index(word) + len(word)) for word in ("rash", "cough", "asthma")]
    >>> [str(assertion) for assertion in detect_assertions(text, spans)]
    ['negated', 'affirmed', 'family_history']
    """
    return [detected.assertion for detected in detect_assertions_with_cues(text, spans, language, names=names)]


def detect_assertions_with_cues(
    text: str, spans: Sequence[Span], language: str = "en", *, names: Iterable[Span] = ()
) -> list[DetectedAssertion]:
    """The assertion of each span, with the cues that decided.

    A cue applies to a span if more than half of the words of the span are in its scope; function words and words
    of cues do not count. If several cues apply, hypothetical and family_history take precedence over negated and
    uncertain. Of these two, a negation after the span decides (*suspected sepsis was ruled out*), otherwise the earlier
    cue: *possibly no fever* is uncertain, *no sign of suspected fever* is negated.
    """
    code = validate_language(language)
    for start, end in spans:
        if not 0 <= start <= end <= len(text):
            raise InputError(
                f"the span {start} to {end} is not in a text of {len(text)} characters",
                hint="spans count characters from 0, and the end is exclusive",
            )
    table = CueTable(text, rules_for(code))
    exact = set(names)
    return [_detect_span(text, span, table.covering(span), FUNCTION_WORDS[code], span in exact) for span in spans]


def _detect_span(
    text: str, span: Span, cues: Sequence[Cue], function_words: frozenset[str], is_name: bool
) -> DetectedAssertion:
    start, end = span
    relevant = [cue for cue in cues if not ((cue.part_of_term or is_name) and start <= cue.start and cue.end <= end)]
    words = _content_words(text, span, relevant, function_words)
    applicable: dict[Assertion, list[Cue]] = {}
    for kind in Assertion:
        cues_of_kind = [cue for cue in relevant if cue.assertion is kind]
        covering = [[cue for cue in cues_of_kind if cue.covers(word)] for word in words]
        if 2 * sum(map(bool, covering)) > len(words):
            applicable[kind] = [cue for word_cues in covering for cue in word_cues]
    if not applicable:
        return DetectedAssertion(Assertion.AFFIRMED)
    kind = _deciding_assertion(applicable, end)
    return DetectedAssertion(kind, tuple(sorted({(cue.start, cue.end) for cue in applicable[kind]})))


def _deciding_assertion(applicable: Mapping[Assertion, Sequence[Cue]], end: int) -> Assertion:
    """The assertion that decides for a span with this end; see ``detect_assertions_with_cues``."""
    for kind in _PRECEDENCE:
        if kind in applicable:
            return kind
    if any(cue.start >= end for cue in applicable.get(Assertion.NEGATED, ())):
        return Assertion.NEGATED
    return min(applicable, key=lambda kind: min(cue.start for cue in applicable[kind]))


def _content_words(text: str, span: Span, cues: Sequence[Cue], function_words: frozenset[str]) -> list[int]:
    """Start positions of the content words of a span; of all words if it has no content words."""
    inside = [cue for cue in cues if cue.start < span[1] and span[0] < cue.end]
    words = [
        match.start()
        for match in _WORD_CHARACTERS.finditer(text, *span)
        if not any(cue.start <= match.start() < cue.end for cue in inside)
    ]
    content = [word for word in words if _WORD_CHARACTERS.match(text, word)[0].casefold() not in function_words]  # type: ignore[index]
    return content or words
