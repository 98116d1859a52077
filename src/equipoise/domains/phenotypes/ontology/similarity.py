"""The measures of similarity, each declared once: name, formula, bounds, citation, arithmetic.

Every one of them is a function of what the best common ancestor is worth (``meet``) and of a value of
either term (``a`` and ``b``: its information content, or its depth). Terms without a common ancestor
have ``meet`` at minus infinity, and a similarity of 0.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from equipoise.errors import NotFiniteError, ParameterError, ShapeError, UnknownNameError
from equipoise.io.dag import segment_offsets

if TYPE_CHECKING:
    from equipoise.domains.phenotypes.ontology.ontology import Ontology
    from equipoise.io.dag import AncestorTable
    from equipoise.types import Floats, Ints

# Where two terms meet: the best of their common ancestors, for pairs and for whole tables.

BLOCK_BYTES = 64 << 20
_PAIRS_IN_BLOCK = 1 << 17


@dataclass(frozen=True, eq=False)
class CommonAncestors:
    """The largest worth of a common ancestor; minus infinity where there is none.

    ``worth`` stands beside ``lineage.rows.values``: one side of what that ancestor is worth to that term.
    """

    lineage: AncestorTable
    worth: Floats

    @classmethod
    def at_largest(cls, lineage: AncestorTable, value: Floats) -> CommonAncestors:
        """At the common ancestor of the largest value; halves add up to it exactly."""
        return cls(lineage, value[lineage.rows.values] / 2.0)

    @classmethod
    def at_nearest(cls, lineage: AncestorTable) -> CommonAncestors:
        """At the common ancestor that is fewest steps away from both together; worth minus the steps."""
        return cls(lineage, -lineage.steps.astype(np.float64))

    def pairs(self, a: Ints, b: Ints) -> Floats:
        """The worth of the best common ancestor of ``a[i]`` and ``b[i]``."""
        best = np.empty(len(a))
        for start in range(0, len(a), _PAIRS_IN_BLOCK):
            block = slice(start, start + _PAIRS_IN_BLOCK)
            best[block] = self._paired(a[block], b[block])
        return best

    def between(self, a: Ints, b: Ints) -> Floats:
        """The same for every term of ``a`` (rows) with every one of ``b`` (columns)."""
        if len(a) > len(b):
            return np.ascontiguousarray(self.between(b, a).T)
        best = np.empty((len(a), len(b)))
        slots = self.lineage.rows.slots(b)
        rows_in_block = max(1, BLOCK_BYTES // (8 * (len(slots) + len(self.lineage.rows))))
        for start in range(0, len(a), rows_in_block):
            block = slice(start, start + rows_in_block)
            self._tabled(a[block], b, slots, best[block])
        return best

    def _paired(self, a: Ints, b: Ints) -> Floats:
        """Both sides laid out in ascending order of pair and ancestor, and merged."""
        left, right = self.lineage.rows.slots(a), self.lineage.rows.slots(b)
        key, other = self._keys(a, left), self._keys(b, right)
        place = np.minimum(np.searchsorted(other, key), len(other) - 1)
        common = other[place] == key
        worth = self.worth[left[common]] + self.worth[right[place[common]]]
        pair = key[common] // len(self.lineage.rows)
        best = np.full(len(a), -np.inf)
        first = np.flatnonzero(np.r_[True, pair[1:] != pair[:-1]]) if len(pair) else pair
        if len(first):
            best[pair[first]] = np.maximum.reduceat(worth, first)
        return best

    def _keys(self, terms: Ints, slots: Ints) -> Ints:
        rows = self.lineage.rows
        pair = np.repeat(np.arange(len(terms)), rows.starts[terms + 1] - rows.starts[terms])
        return pair * len(rows) + rows.values[slots]

    def _tabled(self, a: Ints, b: Ints, slots: Ints, best: Floats) -> None:
        """One side spread out over all terms, so that the other side only looks up its ancestors."""
        rows = self.lineage.rows
        spread = np.full((len(a), len(rows)), -np.inf)
        own = rows.slots(a)
        counts = rows.starts[a + 1] - rows.starts[a]
        spread[np.repeat(np.arange(len(a)), counts), rows.values[own]] = self.worth[own]
        ancestors = rows.values[slots]
        starts = segment_offsets(rows.starts[b + 1] - rows.starts[b])[:-1]
        worth = self.worth[slots]
        for row, out in zip(spread, best, strict=True):
            np.maximum.reduceat(row[ancestors] + worth, starts, out=out)


@dataclass(frozen=True)
class SimilarityMeasure(ABC):
    """How alike two terms are. ``bounded``: between 0 and 1, and 1 for equal terms only."""

    name: ClassVar[str]
    title: ClassVar[str]
    formula: ClassVar[str]
    citation: ClassVar[str] = ""
    bounded: ClassVar[bool] = True

    def values(self, ontology: Ontology, information: Floats) -> Floats:
        """The value of each term on its own."""
        return information

    def meeting(self, ontology: Ontology, values: Floats) -> CommonAncestors:
        """Which common ancestor is the best one."""
        return CommonAncestors.at_largest(ontology.lineage, values)

    @abstractmethod
    def of_distinct(self, meet: Floats, a: Floats, b: Floats, largest: float) -> Floats:
        """The similarity of two terms that are not the same; ``largest`` is the largest value of any term."""

    def of_equal(self, values: Floats, largest: float) -> Floats:
        """The similarity of a term with itself."""
        return np.ones_like(values)


class Lin(SimilarityMeasure):
    """Twice what the common ancestor says, as a share of what both terms say."""

    name = "lin"
    title = "Lin"
    formula = "2 IC(c) / (IC(a) + IC(b)), c the most informative common ancestor"
    citation = "Lin 1998"

    def of_distinct(self, meet: Floats, a: Floats, b: Floats, largest: float) -> Floats:
        """0 where neither term says anything."""
        both = a + b
        return np.divide(2.0 * meet, both, out=np.zeros_like(both), where=both > 0)


class Resnik(SimilarityMeasure):
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


class JiangConrath(SimilarityMeasure):
    """One over one plus what the terms say beyond their common ancestor."""

    name = "jiang-conrath"
    title = "Jiang-Conrath"
    formula = "1 / (1 + IC(a) + IC(b) - 2 IC(c))"
    citation = "Jiang and Conrath 1997"

    def of_distinct(self, meet: Floats, a: Floats, b: Floats, largest: float) -> Floats:
        """The distance turned into a similarity."""
        return 1.0 / (1.0 + np.maximum(a + b - 2.0 * meet, 0.0))


class Edge(SimilarityMeasure):
    """One over one plus the edges of the shortest way up to a common ancestor and down again."""

    name = "edge"
    title = "edge-based"
    formula = "1 / (1 + edges from a up to a common ancestor and down to b)"
    citation = "Rada et al. 1989"

    def meeting(self, ontology: Ontology, values: Floats) -> CommonAncestors:
        """The nearest common ancestor, whatever it says."""
        return CommonAncestors.at_nearest(ontology.lineage)

    def of_distinct(self, meet: Floats, a: Floats, b: Floats, largest: float) -> Floats:
        """A parent and its child score a half."""
        return 1.0 / (1.0 - meet)


@dataclass(frozen=True)
class Hybrid(SimilarityMeasure):
    """Depth of the deepest common ancestor, weighed 0.7, and nearness by depths, weighed 0.3.

    Depths are shortest paths from a root, so a term can be as deep as its own descendant, and the path p
    between distinct terms come out as 0 or less. Such terms are one edge apart here; with ``parity`` they
    are alike (1.0), as where the formula comes from, which holds for thousands of distinct pairs.
    """

    parity: bool = False

    name = "hybrid"
    title = "hybrid of depth and path"
    formula = "0.7 d(c)/D + 0.3 (1 - p/(d(a) + d(b))), p = d(a) + d(b) - 2 d(c), c the deepest common ancestor"

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


MEASURES: dict[str, type[SimilarityMeasure]] = {
    each.name: each for each in (Lin, Resnik, NormalisedResnik, JiangConrath, Edge, Hybrid)
}


# How much a term says: its information content, from the graph alone or from counts of use.

DESCENDANTS = "descendants"
SANCHEZ = "sanchez"
INFORMATION_CONTENT_KINDS = {
    DESCENDANTS: "minus the logarithm of the share of terms at or below the term (Seco et al. 2004)",
    SANCHEZ: "from the leaves below and the ancestors above the term (Sanchez et al. 2011)",
}


def information_content(ontology: Ontology, kind: str = DESCENDANTS) -> Floats:
    """The information content of every term in nats, from the graph alone; 0 for the only root.

    ``descendants``: -ln(terms at or below it / all terms). Divided by ln(all terms) this is the intrinsic
    content of Seco, Veale and Hayes (2004). ``sanchez``: -ln((leaves below / ancestors + 1) / (all leaves
    + 1)), of Sanchez, Batet and Isern (2011); a term counts as its own ancestor, a leaf has none below.
    """
    lineage = ontology.lineage
    if kind == DESCENDANTS:
        return _negative_log(lineage.below / len(ontology))
    if kind != SANCHEZ:
        raise UnknownNameError.of(
            "information content",
            kind,
            INFORMATION_CONTENT_KINDS,
            more=f"there are: {', '.join(INFORMATION_CONTENT_KINDS)}",
        )
    leaf = np.ones(len(ontology), dtype=bool)
    leaf[ontology.parents.values] = False
    rows = lineage.rows
    leaves = np.bincount(rows.values, weights=leaf[rows.owner], minlength=len(ontology)) - leaf
    return _negative_log((leaves / rows.counts + 1.0) / (leaf.sum() + 1.0))


def annotation_information_content(
    ontology: Ontology, counts: Mapping[str, float] | Floats, *, prior: float = 1.0
) -> Floats:
    """The information content from how often each term is used: -ln of the share of uses at or below it.

    ``counts`` are uses of the term itself, by id or one a place. Each term is counted ``prior`` times more
    than it was used: what was never used is then rare and not impossible, and an ancestor is always more
    frequent than what lies below it, so that no two terms are taken for the same.
    """
    own = _uses(ontology, counts)
    if not prior > 0:
        raise ParameterError(f"the prior is {prior}, and must be above 0", hint="1 counts each term once more")
    rows = ontology.lineage.rows
    used = np.bincount(rows.values, weights=own[rows.owner] + prior, minlength=len(ontology))
    return _negative_log(used / (own.sum() + prior * len(ontology)))


def _uses(ontology: Ontology, counts: Mapping[str, float] | Floats) -> Floats:
    if isinstance(counts, Mapping):
        own = np.zeros(len(ontology))
        places, _ = ontology.resolve_all(counts)
        np.add.at(own, places, np.array(list(counts.values()), dtype=np.float64))
    else:
        own = np.asarray(counts, dtype=np.float64)
    if own.shape != (len(ontology),):
        raise ShapeError(f"{own.shape} counts were given for {len(ontology)} terms", hint="one a term")
    if not (np.isfinite(own).all() and (own >= 0).all()):
        raise NotFiniteError("a count of uses is negative or no number")
    return own


def _negative_log(share: Floats) -> Floats:
    return np.maximum(-np.log(share), 0.0)


# How alike terms are, for pairs of them and for whole tables.


@dataclass(frozen=True, eq=False, repr=False)
class TermSimilarity:
    """A measure bound to an ontology; terms are given by their places.

    ``values`` is what the measure takes of each term on its own, such as its information content.
    """

    ontology: Ontology
    measure: SimilarityMeasure
    values: Floats
    meeting: CommonAncestors

    def pairs(self, a: Ints, b: Ints) -> Floats:
        """The similarity of ``a[i]`` and ``b[i]``."""
        a, b = np.asarray(a, dtype=np.int64), np.asarray(b, dtype=np.int64)
        if a.shape != b.shape or a.ndim != 1:
            raise ShapeError(f"terms of shape {a.shape} cannot be paired with terms of shape {b.shape}")
        return self._scores(self.meeting.pairs(a, b), a, b)

    def between(self, a: Ints, b: Ints) -> Floats:
        """The similarity of every term of ``a`` (rows) with every term of ``b`` (columns)."""
        a, b = np.asarray(a, dtype=np.int64), np.asarray(b, dtype=np.int64)
        return self._scores(self.meeting.between(a, b), a[:, None], b[None, :])

    def _scores(self, meet: Floats, a: Ints, b: Ints) -> Floats:
        largest = float(self.values.max())
        apart = np.isneginf(meet)
        meet[apart] = 0.0
        scores = self.measure.of_distinct(meet, self.values[a], self.values[b], largest)
        scores[apart] = 0.0
        equal = np.broadcast_to(a == b, scores.shape)
        terms = np.broadcast_to(a, scores.shape)[equal]
        scores[equal] = self.measure.of_equal(self.values[terms], largest)
        return scores

    def __repr__(self) -> str:
        return f"<Similarity {self.measure.name} on {self.ontology.title}>"


def term_similarity(
    ontology: Ontology,
    measure: str | SimilarityMeasure = "lin",
    *,
    information: str | Floats = DESCENDANTS,
    parity: bool = False,
) -> TermSimilarity:
    """A measure of similarity on this ontology: lin, resnik, resnik-normalised, jiang-conrath, edge, hybrid.

    ``information`` is the kind of information content that the graph gives (see ``information_content``), or
    the content of each term, such as ``annotated_information`` gives it. ``parity`` computes the hybrid
    exactly as its source does, which gives 1.0 to distinct terms too.
    """
    chosen = measure if isinstance(measure, SimilarityMeasure) else _named(measure, parity=parity)
    if isinstance(information, str):
        information = information_content(ontology, information)
    elif information.shape != (len(ontology),):
        raise ShapeError(
            f"{information.shape} figures of information were given for {len(ontology)} terms",
            hint="give one a term, in the order of ontology.ids",
        )
    values = chosen.values(ontology, information)
    return TermSimilarity(ontology, chosen, values, chosen.meeting(ontology, values))


def path_lengths(ontology: Ontology, a: Ints, b: Ints) -> Floats:
    """Edges from ``a[i]`` up to the nearest common ancestor and down to ``b[i]``; infinity without one."""
    return -CommonAncestors.at_nearest(ontology.lineage).pairs(a, b)


def common_ancestor(similarity: TermSimilarity, a: int, b: int) -> int | None:
    """The common ancestor that a similarity of two terms rests on; the first of equals, None without one."""
    lineage = similarity.meeting.lineage
    left, right = lineage.rows.slots(np.array([a])), lineage.rows.slots(np.array([b]))
    shared, here, there = np.intersect1d(
        lineage.rows.values[left], lineage.rows.values[right], assume_unique=True, return_indices=True
    )
    if not len(shared):
        return None
    worth = similarity.meeting.worth
    return int(shared[np.argmax(worth[left[here]] + worth[right[there]])])


def _named(name: str, *, parity: bool) -> SimilarityMeasure:
    if name not in MEASURES:
        raise UnknownNameError.of("similarity", name, MEASURES, more=f"there are: {', '.join(MEASURES)}")
    if parity and name != Hybrid.name:
        raise ParameterError(f"parity is a matter of the hybrid; {name} has only one form")
    return Hybrid(parity=True) if parity else MEASURES[name]()
