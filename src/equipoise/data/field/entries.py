"""The entries of one file of a field, each knowing where it stands, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from equipoise.data.field.problem import Problem, Rule
from equipoise.data.number import NotANumber, NotFinite, number
from equipoise.data.text import TextFile
from equipoise.errors import did_you_mean

_NOUNS = ("concept_", "sentence", "sentence_", "text", "text_")
OWN_KEYS = frozenset(
    {"expected_similarity", "theme", "cluster_id", "concepts", "text", "entities", "label"}
    | {"subject", "predicate", "object"}
    | {f"{noun}{number}" for noun in _NOUNS for number in "12"}
)
"""Keys that stand for something in a field."""


@dataclass(frozen=True)
class Entries:
    """Values in the order of their file, and the problems that readers report as they go."""

    name: str
    values: Sequence[Any] = field(repr=False)
    lines: Sequence[int] | None = None
    file: TextFile | None = None
    problems: list[Problem] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.values)

    def report(self, rule: Rule, places: Sequence[int], fact: str, hint: str = "") -> None:
        """Note that something is wrong with these entries."""
        numbers = [place + 1 if self.lines is None else self.lines[place] for place in places]
        unit = ("entry", "entries") if self.lines is None else ("line", "lines")
        where = f" {unit[len(numbers) > 1]} {' and '.join(map(str, numbers))}" if numbers else ""
        excerpt = self.file.excerpt(*numbers) if numbers and self.file and self.lines is not None else ""
        self.problems.append(Problem(rule, self.name, f"{self.name}{where} {fact}", hint, excerpt))

    def record(self, place: int, example: str) -> Mapping[str, Any] | None:
        """The entry as a mapping, or a report that it is none."""
        value = self.values[place]
        if isinstance(value, Mapping):
            return value
        self.report(Rule.ENTRY, [place], f"is {shown(value)}, not an object", f"write {example}")
        return None

    def text(self, place: int, value: Mapping[str, Any], key: str, what: str = "") -> str | None:
        """The text under a key without the white space around it, or a report of what is there instead."""
        name = what or key
        if key not in value:
            self.missing(place, value, key, what)
            return None
        found = value[key]
        if not isinstance(found, str):
            self.report(Rule.ENTRY, [place], f"has {shown(found)} as its {name}", "write a text")
            return None
        if not found.strip():
            self.report(Rule.ENTRY, [place], f"has an empty {name}", "write it, or leave the entry out")
            return None
        return found.strip()

    def number(self, place: int, value: Mapping[str, Any], key: str) -> float | None:
        """The finite number under a key, or a report."""
        if key not in value:
            self.missing(place, value, key)
            return None
        try:
            return float(number(value[key]))
        except (NotANumber, NotFinite):
            self.report(Rule.ENTRY, [place], f"has {shown(value[key])} as its {key}", "write a number")
            return None

    def missing(self, place: int, value: Mapping[str, Any], key: str, what: str = "") -> None:
        """Report a key that is not there, with the nearest that is."""
        known = [str(each) for each in value]
        # A key that has a meaning of its own is no misspelling of another.
        near = did_you_mean(key, [each for each in known if each not in OWN_KEYS])
        hint = near or (f"it has {', '.join(known)}" if known else "it has no key")
        self.report(Rule.ENTRY, [place], f"has no {what or key}", hint)

    def too_few(self, least: int, noun: str, found: int, why: str, *, nouns: str = "") -> None:
        """Report that there is less than any figure needs; ``nouns`` is the plural where it is not in s."""
        if found < least:
            count = f"{found or 'no'} {noun if found == 1 else nouns or f'{noun}s'}"
            self.report(Rule.TOO_FEW, [], f"has {count}, and at least {least} are needed", why)


def shown(value: Any) -> str:
    """A value as an error quotes it, cut where it is long."""
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
