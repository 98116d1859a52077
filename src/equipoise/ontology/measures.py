"""The measures of similarity, each declared once: name, formula, bounds, citation, arithmetic.

Every one of them is a function of what the best common ancestor is worth (``meet``) and of a value of
either term (``a`` and ``b``: its information content, or its depth). Terms without a common ancestor
have ``meet`` at minus infinity, and a similarity of 0.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from equipoise.ontology.meeting import Meeting
from equipoise.ontology.ontology import Ontology
from equipoise.types import Floats


@dataclass(frozen=True)
class Measure(ABC):
    """How alike two terms are. ``bounded``: between 0 and 1, and 1 for equal terms only."""

    name: ClassVar[str]
    title: ClassVar[str]
    formula: ClassVar[str]
    citation: ClassVar[str] = ""
    bounded: ClassVar[bool] = True

    def values(self, ontology: Ontology, information: Floats) -> Floats:
        """The value of each term on its own."""
        return information

    def meeting(self, ontology: Ontology, values: Floats) -> Meeting:
        """Which common ancestor is the best one."""
        return Meeting.at_largest(ontology.lineage, values)

    @abstractmethod
    def of_distinct(self, meet: Floats, a: Floats, b: Floats, largest: float) -> Floats:
        """The similarity of two terms that are not the same; ``largest`` is the largest value of any term."""

    def of_equal(self, values: Floats, largest: float) -> Floats:
        """The similarity of a term with itself."""
        return np.ones_like(values)


class Lin(Measure):
    """Twice what the common ancestor says, as a share of what both terms say."""

    name = "lin"
    title = "Lin"
    formula = "2 IC(c) / (IC(a) + IC(b)), c the most informative common ancestor"
    citation = "Lin 1998"

    def of_distinct(self, meet: Floats, a: Floats, b: Floats, largest: float) -> Floats:
        """0 where neither term says anything."""
        both = a + b
        return np.divide(2.0 * meet, both, out=np.zeros_like(both), where=both > 0)


class Resnik(Measure):
    """What the common ancestor says, in nats; a term with itself scores its own information content."""

    name = "resnik"
    title = "Resnik"
    formula = "IC(c), c the most informative common ancestor"
    citation = "Resnik 1995"
    bounded = False

    def of_distinct(self, meet: Floats, a: Floats, b: Floats, largest: float) -> Floats:
        """The information content itself."""
        return meet

    def of_equal(self, values: Floats, largest: float) -> Floats:
        """A general term is not much like itself here: that is the measure."""
        return values


class NormalisedResnik(Resnik):
    """Resnik as a share of the most that any term of the ontology says."""

    name = "resnik-normalised"
    title = "Resnik, normalised"
    formula = "IC(c) / the largest IC of any term"
    bounded = True

    def of_distinct(self, meet: Floats, a: Floats, b: Floats, largest: float) -> Floats:
        """Between 0 and 1; below 1, since a common ancestor says less than the terms."""
        return meet / largest if largest > 0 else np.zeros_like(meet)

    def of_equal(self, values: Floats, largest: float) -> Floats:
        """1 for the terms that say most."""
        return values / largest if largest > 0 else np.ones_like(values)


class JiangConrath(Measure):
    """One over one plus what the terms say beyond their common ancestor."""

    name = "jiang-conrath"
    title = "Jiang-Conrath"
    formula = "1 / (1 + IC(a) + IC(b) - 2 IC(c))"
    citation = "Jiang and Conrath 1997"

    def of_distinct(self, meet: Floats, a: Floats, b: Floats, largest: float) -> Floats:
        """The distance turned into a similarity."""
        return 1.0 / (1.0 + np.maximum(a + b - 2.0 * meet, 0.0))


class Edge(Measure):
    """One over one plus the edges of the shortest way up to a common ancestor and down again."""

    name = "edge"
    title = "edge-based"
    formula = "1 / (1 + edges from a up to a common ancestor and down to b)"
    citation = "Rada et al. 1989"

    def meeting(self, ontology: Ontology, values: Floats) -> Meeting:
        """The nearest common ancestor, whatever it says."""
        return Meeting.at_nearest(ontology.lineage)

    def of_distinct(self, meet: Floats, a: Floats, b: Floats, largest: float) -> Floats:
        """A parent and its child score a half."""
        return 1.0 / (1.0 - meet)


@dataclass(frozen=True)
class Hybrid(Measure):
    """Depth of the deepest common ancestor, weighed 0.7, and nearness by depths, weighed 0.3.

    Depths are shortest paths from a root, so a term can be as deep as its own descendant, and the path p
    between distinct terms come out as 0 or less. Such terms are one edge apart here; with ``parity`` they
    are alike (1.0), as where the formula comes from, which holds for thousands of distinct pairs.
    """

    parity: bool = False

    name = "hybrid"
    title = "hybrid of depth and path"
    formula = (
        "0.7 d(c)/D + 0.3 (1 - p/(d(a) + d(b))), p = d(a) + d(b) - 2 d(c), c the deepest common ancestor"
    )

    def values(self, ontology: Ontology, information: Floats) -> Floats:
        """The depth of each term."""
        return ontology.depth.astype(np.float64)

    def of_distinct(self, meet: Floats, a: Floats, b: Floats, largest: float) -> Floats:
        """D is the largest depth of the ontology."""
        both = a + b
        path = both - 2.0 * meet
        near = 1.0 - np.maximum(path, 1.0) / np.maximum(both, 1.0)
        score = 0.7 * meet / max(largest, 1.0) + 0.3 * near
        return np.where(path <= 0, 1.0, score) if self.parity else score


MEASURES: dict[str, type[Measure]] = {
    each.name: each for each in (Lin, Resnik, NormalisedResnik, JiangConrath, Edge, Hybrid)
}
