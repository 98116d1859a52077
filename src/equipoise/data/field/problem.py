"""What is wrong with an entry of a field: found all at once, told one by one."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from equipoise.errors import DuplicateError, FormatError, InputError


class Rule(StrEnum):
    """Which demand on a field is not met."""

    ENTRY = "entry"
    """An entry lacks a key, or holds something else than it should."""
    REPEATED = "repeated"
    """The same thing stands twice."""
    TOO_FEW = "too few"
    """There is less than any figure needs."""
    RANGE = "range"
    """An expected similarity lies outside 0 to 1."""
    OFFSETS = "offsets"
    """An entity does not stand where it is said to stand."""


_ERRORS: dict[Rule, type[InputError]] = {
    Rule.ENTRY: FormatError,
    Rule.REPEATED: DuplicateError,
    Rule.TOO_FEW: InputError,
    Rule.RANGE: InputError,
    Rule.OFFSETS: InputError,
}


@dataclass(frozen=True, slots=True)
class Problem:
    """One sentence about a file of a field, and how to mend it.

    Only wrong offsets leave the entry of use: the tasks embed the entity's own words.
    """

    rule: Rule
    file: str
    sentence: str
    hint: str = ""
    excerpt: str = ""
    kind: type[InputError] | None = None
    """The error that it was, where a whole file could not be read."""

    @property
    def fatal(self) -> bool:
        """Whether the entry cannot be used."""
        return self.rule is not Rule.OFFSETS

    def error(self, *, more: int = 0, where: str = "") -> InputError:
        """The problem as an error; ``more`` others are pointed at by the command that lists them all."""
        hint = self.hint
        if more:
            rest = "1 more problem" if more == 1 else f"{more} more problems"
            hint = f"{hint}; " * bool(hint) + f"eq concepts check {where} lists it and {rest}"
        kind = self.kind or _ERRORS[self.rule]
        return kind(self.sentence, hint=hint, excerpt=self.excerpt)
