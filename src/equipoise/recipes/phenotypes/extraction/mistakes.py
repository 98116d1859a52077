"""Errors by kind: how what was found is related to what should have been."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from equipoise.ontology.ontology import Ontology


class Kind(StrEnum):
    """How an entry stands to the entries of the other side; of several the first holds."""

    RIGHT = "right"
    ASSERTION = "wrong assertion"
    PARENT = "parent"
    """A term directly above a gold term was found."""
    CHILD = "child"
    """A term directly below a gold term was found."""
    SIBLING = "sibling"
    """A term with a parent in common with a gold term was found."""
    OTHER = "other"


@dataclass(frozen=True)
class Mistakes:
    """How many predicted entries, and how many gold ones, are of each kind.

    A gold entry is of the kind of the nearest that was found in its document.
    """

    predicted: Mapping[Kind, int]
    gold: Mapping[Kind, int]

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        sides = {"predicted": self.predicted, "gold": self.gold}
        return {name: {str(kind): side[kind] for kind in Kind} for name, side in sides.items()}


def mistakes(
    gold: Mapping[str, Iterable[tuple[str, str]]],
    predicted: Mapping[str, Iterable[tuple[str, str]]],
    ontology: Ontology,
) -> Mistakes:
    """Sort every predicted and every gold entry by its relation to the other side of its document."""
    family = _Family(ontology)
    of_predicted: Counter[Kind] = Counter()
    of_gold: Counter[Kind] = Counter()
    for document, truth in gold.items():
        wanted, given = set(truth), set(predicted.get(document, ()))
        of_predicted.update(family.kind(each, wanted, found=True) for each in given)
        of_gold.update(family.kind(each, given, found=False) for each in wanted)
    return Mistakes(
        {kind: of_predicted[kind] for kind in Kind},
        {kind: of_gold[kind] for kind in Kind},
    )


class _Family:
    """Who is directly above whom; worked out once a term."""

    def __init__(self, ontology: Ontology) -> None:
        self._ontology = ontology
        self._parents: dict[str, frozenset[str]] = {}

    def parents(self, term: str) -> frozenset[str]:
        if term not in self._parents:
            places = self._ontology.parents[self._ontology.place(term)]
            self._parents[term] = frozenset(self._ontology.ids[place] for place in places.tolist())
        return self._parents[term]

    def kind(self, entry: tuple[str, str], others: set[tuple[str, str]], *, found: bool) -> Kind:
        """The kind of an entry, which was ``found``, or else is gold."""
        if entry in others:
            return Kind.RIGHT
        term, terms = entry[0], {other for other, _ in others}
        if term in terms:
            return Kind.ASSERTION
        above = bool(self.parents(term) & terms)
        below = any(term in self.parents(other) for other in terms)
        if below if found else above:
            return Kind.PARENT
        if above if found else below:
            return Kind.CHILD
        if any(self.parents(term) & self.parents(other) for other in terms):
            return Kind.SIBLING
        return Kind.OTHER
