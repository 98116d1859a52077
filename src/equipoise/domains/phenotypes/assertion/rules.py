"""ConText rules of a language: assertions, cues with a direction, pseudo cues and terminators.

The rules are in ``cues_en.txt`` and ``cues_de.txt``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, cached_property
from importlib.resources import files

from equipoise.domains.phenotypes.language import validate_language


class Assertion(StrEnum):
    """The assertion status of a finding, with its experiencer."""

    AFFIRMED = "affirmed"
    """The patient has or had the finding."""
    NEGATED = "negated"
    """The patient does not have the finding."""
    UNCERTAIN = "uncertain"
    """The patient may have the finding."""
    FAMILY_HISTORY = "family_history"
    """The experiencer is a relative."""
    HYPOTHETICAL = "hypothetical"
    """The finding is possible in the future, screened for, or to be prevented."""


ASSERTIONS: tuple[Assertion, ...] = tuple(Assertion)
"""All assertions, ``affirmed`` first."""

Span = tuple[int, int]


class CueDirection(StrEnum):
    """The direction of a cue's scope."""

    FORWARD = "forward"
    BACKWARD = "backward"
    BOTH = "both"
    ITEM = "item"
    """Forward, up to the next comma or conjunction."""
    SECTION = "section"
    """A heading: the scope is its sentence if the line continues, otherwise the text up to the next heading."""


@dataclass(frozen=True)
class CueGroup:
    """Cue phrases with the same assertion and direction; each is a regular expression of whole words."""

    assertion: Assertion
    direction: CueDirection
    phrases: tuple[str, ...]
    part_of_term: bool = False
    """Whether labels have these words, as in *absence of the thumb*: the cue does not apply to a span that has it."""
    ends_at_comma: bool = False
    """Whether a comma ends the scope, unless a conjunction follows: *rhinitis without fever, cough*."""
    starts_phrase: bool = False
    """Whether the cue ends the scope of an earlier negation or uncertainty: *possible pneumonia without effusion*."""


@dataclass(frozen=True)
class AssertionRules:
    """The ConText rules of one language."""

    cues: tuple[CueGroup, ...]
    pseudo: tuple[str, ...]
    terminators: tuple[str, ...]
    terminators_by_assertion: Mapping[Assertion, tuple[str, ...]]
    conjunctions: tuple[str, ...]
    affirmed: tuple[str, ...]
    patient: tuple[str, ...]
    bare_results: tuple[str, ...]

    @cached_property
    def _index(self) -> PhraseIndex:
        by_assertion = self.terminators_by_assertion.values()
        return PhraseIndex(
            [self.pseudo, self.terminators, self.affirmed, *(group.phrases for group in self.cues), *by_assertion]
        )

    def find_phrases(self, text: str) -> FoundPhrases:
        pseudo, terminators, affirmed, *others = self._index.spans(text)
        cues, by_assertion = others[: len(self.cues)], others[len(self.cues) :]
        return FoundPhrases(
            [*zip(self.cues, cues, strict=True)],
            pseudo,
            terminators,
            affirmed,
            dict(zip(self.terminators_by_assertion, by_assertion, strict=True)),
        )

    @cached_property
    def patient_pattern(self) -> re.Pattern[str]:
        """Any word for the patient; a sentence that starts with one is not about a relative."""
        return _phrase_pattern(self.patient)

    @cached_property
    def bare_result_pattern(self) -> re.Pattern[str]:
        """Any result that names no finding if it is alone, as after a heading."""
        return _phrase_pattern(self.bare_results)

    @cached_property
    def conjunction_pattern(self) -> re.Pattern[str]:
        """Any word that joins the items of a list."""
        return _phrase_pattern(self.conjunctions)

    @cached_property
    def separator_pattern(self) -> re.Pattern[str]:
        """A comma or a conjunction."""
        return re.compile(rf",|\b(?:{'|'.join(self.conjunctions)})(?!\w)", re.IGNORECASE)

    @cached_property
    def list_pattern(self) -> re.Pattern[str]:
        """A comma or a conjunction at the end of a text."""
        return re.compile(rf"(?:,|\b(?:{'|'.join(self.conjunctions)}))\s*\Z", re.IGNORECASE)


_DEFINITIONS = {
    "statement_start": r"(?:(?<=[.;:\n]\x20)|(?<=\n)|(?<=\A))",
    "item_start": r"(?:(?<=\A)|(?<=[\s,;:(/]))",
    "item_end": r"(?=\s*(?:[.,;)\n]|\Z))",
    "measurement": r"\d+(?:[.,]\d+)?\s?(?:cm|mm|kg|%)",
}
"""Regular expressions that the files of all languages use."""


def rules_for(language: str) -> AssertionRules:
    """The rules of a language, such as ``de`` or ``en-GB``; an error for a language without rules."""
    return _read_rules(validate_language(language))


@cache
def _read_rules(language: str) -> AssertionRules:
    content = (files(__package__) / f"cues_{language}.txt").read_text(encoding="utf-8")
    definitions = dict(_DEFINITIONS)
    sections: list[tuple[list[str], list[str]]] = []
    for line in content.replace("\n    ", "").splitlines():
        if not line or line.startswith("#"):
            continue
        if header := re.fullmatch(r"\[([a-z_ ]+)\]", line):
            sections.append((header[1].split(), []))
            continue
        phrase = re.sub(r"\{([a-z_]+)\}", lambda name: definitions[name[1]], line)
        if sections:
            sections[-1][1].append(phrase)
        else:
            name, _, value = phrase.partition(" = ")
            definitions[name] = value
    cues: list[CueGroup] = []
    lists: dict[str, tuple[str, ...]] = {}
    by_assertion: dict[Assertion, tuple[str, ...]] = {}
    for (kind, *words), phrases in sections:
        if not words:
            lists[kind] = tuple(phrases)
        elif kind == "terminators":
            by_assertion |= dict.fromkeys(map(Assertion, words), tuple(phrases))
        else:
            direction, *flags = words
            cues.append(
                CueGroup(Assertion(kind), CueDirection(direction), tuple(phrases), **dict.fromkeys(flags, True))
            )
    by_assertion[Assertion.FAMILY_HISTORY] = (*lists["patient"], *by_assertion[Assertion.FAMILY_HISTORY])
    return AssertionRules(cues=tuple(cues), terminators_by_assertion=by_assertion, **lists)


def _phrase_pattern(phrases: Iterable[str]) -> re.Pattern[str]:
    """A pattern that matches any of the phrases as whole words; a space matches any white space."""
    body = "|".join(phrase.replace(" ", _SPACE) for phrase in sorted(phrases, key=len, reverse=True))
    return re.compile(rf"(?:(?<!\w)|(?=\W))(?:{body}){_WORD_END}", re.IGNORECASE)


_SPACE = r"\s+"
_WORD_END = r"(?:(?!\w)|(?<=\W))"


@dataclass(frozen=True, slots=True)
class FoundPhrases:
    """The spans of the phrases of some rules in a text. Spans of different phrases may overlap."""

    cues: list[tuple[CueGroup, list[Span]]]
    pseudo: list[Span]
    terminators: list[Span]
    affirmed: list[Span]
    terminators_by_assertion: dict[Assertion, list[Span]]


class PhraseIndex:
    """Finds several groups of phrases as whole words in one pass over the words and marks of a text.

    A phrase is tried only where the text has one of the letters or marks that a match can start with. This takes a
    fifth of the time of a search for each phrase.
    """

    def __init__(self, groups: Sequence[Iterable[str]]) -> None:
        self._n_groups = len(groups)
        self._by_start: dict[str, list[tuple[int, re.Pattern[str]]]] = {}
        for group, phrases in enumerate(groups):
            for phrase in phrases:
                pattern = re.compile(f"(?:{phrase.replace(' ', _SPACE)}){_WORD_END}", re.IGNORECASE)
                for start in leading_letters(phrase):
                    self._by_start.setdefault(start, []).append((group, pattern))

    def spans(self, text: str) -> list[list[Span]]:
        """The spans of the phrases of each group, in text order."""
        group_spans: list[list[Span]] = [[] for _ in range(self._n_groups)]
        lowered = text.lower() if len(text.lower()) == len(text) else text
        for word in _STARTS.finditer(text):
            position = word.start()
            start = lowered[position : position + _MAX_LEADING]
            for length in range(1, len(start) + 1):
                for group, pattern in self._by_start.get(start[:length], ()):
                    match = pattern.match(text, position)
                    if match is not None:
                        group_spans[group].append(match.span())
        return group_spans


_MAX_LEADING = 3
_STARTS = re.compile(r"(?<!\w)\w|[^\w\s]")


def leading_letters(phrase: str) -> frozenset[str]:
    """Up to three letters, or a digit or mark, with which the matches of a regular expression start, in lower case."""
    starts, may_be_empty = _starts(phrase)
    if may_be_empty or not starts:
        raise ValueError(f"the start of {phrase!r} is not known")
    return frozenset(starts)


def _starts(phrase: str) -> tuple[set[str], bool]:
    """The starts of the matches, and whether a match may be empty; raises ValueError if they are not known."""
    alternatives = _split_alternatives(phrase)
    if len(alternatives) > 1:
        parts = [_starts(alternative) for alternative in alternatives]
        return set[str]().union(*(starts for starts, _ in parts)), any(empty for _, empty in parts)
    starts: set[str] = set()
    position = 0
    while position < len(phrase):
        end = _end_of_atom(phrase, position)
        is_optional = phrase[end : end + 1] in ("?", "*") and end < len(phrase)
        atom_starts, may_be_empty = _atom_starts(phrase[position:end])
        if phrase[position:end].isalpha() and not is_optional:
            last = end
            while last - position < _MAX_LEADING and _is_required_letter(phrase, last):
                last += 1
            atom_starts = {phrase[position:last].lower()}
        starts |= atom_starts
        if not (is_optional or may_be_empty):
            return starts, False
        position = end + is_optional
    return starts, True


def _is_required_letter(phrase: str, position: int) -> bool:
    return phrase[position : position + 1].isalpha() and phrase[position + 1 : position + 2] not in ("?", "*", "{")


def _atom_starts(atom: str) -> tuple[set[str], bool]:
    """The starts of one character, escape, class or group, and whether it may match nothing."""
    if atom.startswith(("(?=", "(?!", "(?<")) or atom in (r"\b", r"\A", r"\Z"):
        return set(), True
    if atom.startswith("(?:"):
        return _starts(atom[3:-1])
    if atom == r"\d":
        return set("0123456789"), False
    if atom.startswith("[") and atom[1] != "^" and "\\" not in atom:
        return set(atom[1:-1].lower()), False
    if atom.startswith("\\") and not atom[1].isalnum():
        return {atom[1]}, False
    if len(atom) == 1 and atom not in ".^$":
        return {atom.lower()}, False
    raise ValueError(f"the start of {atom!r} is not known")


def _end_of_atom(phrase: str, position: int) -> int:
    """The end of the character, escape, character class or group that starts at a position."""
    if phrase[position] == "\\":
        return position + 2
    if phrase[position] == "[":
        return phrase.index("]", position + 2) + 1
    if phrase[position] != "(":
        return position + 1
    position += 1
    while phrase[position] != ")":
        position = _end_of_atom(phrase, position)
    return position + 1


def _split_alternatives(phrase: str) -> list[str]:
    """The alternatives of a regular expression, outside of groups and classes."""
    parts, start, position = [], 0, 0
    while position < len(phrase):
        if phrase[position] == "|":
            parts.append(phrase[start:position])
            start = position + 1
        position = _end_of_atom(phrase, position)
    return [*parts, phrase[start:]]
