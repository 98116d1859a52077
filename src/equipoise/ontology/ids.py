"""What an id means today: a live term, another term's alternative id, or an obsolete term's successor."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from equipoise.errors import UnknownNameError, did_you_mean

How = Literal["live", "alternative", "replaced"]

_NUMBERED = re.compile(r"([A-Za-z]+)[:_ ]?(\d+)")


@dataclass(frozen=True, slots=True)
class Resolved:
    """An id as it was given, the place of the term that it means, and how it was found."""

    id: str
    term: int
    how: How


@dataclass(frozen=True, slots=True)
class Resolutions:
    """How many ids were given, and which of them were not the ids of live terms."""

    total: int
    moved: tuple[Resolved, ...] = ()

    def count(self, how: How) -> int:
        """How many ids were found this way."""
        if how == "live":
            return self.total - len(self.moved)
        return sum(each.how == how for each in self.moved)

    def __str__(self) -> str:
        counts = Counter(each.how for each in self.moved)
        parts = [f"{counts[how]} {how}" for how in ("alternative", "replaced") if counts[how]]
        return f"{self.total} {'id' if self.total == 1 else 'ids'}" + (
            f", of them {' and '.join(parts)}" if parts else ""
        )


@dataclass(frozen=True, slots=True)
class Obsolete:
    """A term that is no longer used: its label, what replaces it, and what to consider instead."""

    label: str
    replaced_by: tuple[str, ...] = ()
    consider: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class IdBook:
    """Every id that an ontology knows, and what it leads to."""

    ontology: str
    places: Mapping[str, int]
    alternatives: Mapping[str, int]
    obsolete: Mapping[str, Obsolete]
    labels: tuple[str, ...]

    def resolve(self, given: str) -> Resolved:
        """The live term behind an id; an id that leads nowhere is an error that says what to use."""
        found = self._live(given)
        if found is not None:
            return found
        successor = self._successor(given)
        if successor is not None:
            return Resolved(given, successor, "replaced")
        raise self._gone(given) if given in self.obsolete else self._unknown(given)

    def unknown(self, given: Iterable[str]) -> dict[str, UnknownNameError]:
        """The ids that lead nowhere, each with its error, in the order given."""
        errors: dict[str, UnknownNameError] = {}
        for each in given:
            try:
                self.resolve(each)
            except UnknownNameError as error:
                errors[each] = error
        return errors

    def _live(self, given: str) -> Resolved | None:
        if given in self.places:
            return Resolved(given, self.places[given], "live")
        if given in self.alternatives:
            return Resolved(given, self.alternatives[given], "alternative")
        return None

    def _successor(self, given: str) -> int | None:
        """The one live term at the end of the chain of replacements."""
        seen: set[str] = set()
        while given in self.obsolete and given not in seen:
            seen.add(given)
            successors = self.obsolete[given].replaced_by
            if len(successors) != 1:
                return None
            given = successors[0]
            if (found := self._live(given)) is not None:
                return found.term
        return None

    def _gone(self, given: str) -> UnknownNameError:
        old = self.obsolete[given]
        use = [self._shown(each) for each in (*old.replaced_by, *old.consider)]
        label = f" ({old.label.removeprefix('obsolete ')})" if old.label else ""
        return UnknownNameError(
            f"{given}{label} is obsolete in {self.ontology}, and no single term replaces it",
            hint=f"consider {' or '.join(use)}" if use else "choose another term",
        )

    def _unknown(self, given: str) -> UnknownNameError:
        return UnknownNameError(f"{self.ontology} has no term {given!r}", hint=self._hint(given))

    def _hint(self, given: str) -> str:
        """The same number written otherwise, the id of a label, or the nearest label."""
        number = _numbered(given)
        if number is not None:
            same = [each for each in (*self.places, *self.alternatives) if _numbered(each) == number]
            return f"did you mean {self._shown(same[0])}?" if same else "is it from another release?"
        folded = given.casefold()
        for label, name in zip(self.labels, self.places, strict=True):
            if label.casefold() == folded:
                return f"{label} is the label of {name}; give the id"
        return did_you_mean(given, self.labels) or "an id looks like " + next(iter(self.places))

    def _shown(self, name: str) -> str:
        found = self._live(name)
        return f"{name} ({self.labels[found.term]})" if found else name


def _numbered(name: str) -> tuple[str, str] | None:
    match = _NUMBERED.fullmatch(name.strip())
    return (match[1].upper(), match[2].lstrip("0") or "0") if match else None
