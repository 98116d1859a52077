"""How alike terms are, for pairs of them and for whole tables."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from equipoise.errors import ParameterError, ShapeError, UnknownNameError
from equipoise.ontology.information import DESCENDANTS, information_content
from equipoise.ontology.measures import MEASURES, Hybrid, Measure
from equipoise.ontology.meeting import Meeting
from equipoise.ontology.ontology import Ontology
from equipoise.types import Floats, Ints


@dataclass(frozen=True, eq=False, repr=False)
class Similarity:
    """A measure bound to an ontology; terms are given by their places.

    ``values`` is what the measure takes of each term on its own, such as its information content.
    """

    ontology: Ontology
    measure: Measure
    values: Floats
    meeting: Meeting

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


def similarity(
    ontology: Ontology,
    measure: str | Measure = "lin",
    *,
    information: str | Floats = DESCENDANTS,
    parity: bool = False,
) -> Similarity:
    """A measure of similarity on this ontology: lin, resnik, resnik-normalised, jiang-conrath, edge, hybrid.

    ``information`` is the kind of information content that the graph gives (see ``information_content``), or
    the content of each term, such as ``annotated_information`` gives it. ``parity`` computes the hybrid
    exactly as its source does, which gives 1.0 to distinct terms too.
    """
    chosen = measure if isinstance(measure, Measure) else _named(measure, parity=parity)
    if isinstance(information, str):
        information = information_content(ontology, information)
    elif information.shape != (len(ontology),):
        raise ShapeError(
            f"{information.shape} figures of information were given for {len(ontology)} terms",
            hint="give one a term, in the order of ontology.ids",
        )
    values = chosen.values(ontology, information)
    return Similarity(ontology, chosen, values, chosen.meeting(ontology, values))


def path_lengths(ontology: Ontology, a: Ints, b: Ints) -> Floats:
    """Edges from ``a[i]`` up to the nearest common ancestor and down to ``b[i]``; infinity without one."""
    return -Meeting.at_nearest(ontology.lineage).pairs(a, b)


def common_ancestor(similarity: Similarity, a: int, b: int) -> int | None:
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


def _named(name: str, *, parity: bool) -> Measure:
    if name not in MEASURES:
        raise UnknownNameError.of("similarity", name, MEASURES, more=f"there are: {', '.join(MEASURES)}")
    if parity and name != Hybrid.name:
        raise ParameterError(f"parity is a matter of the hybrid; {name} has only one form")
    return Hybrid(parity=True) if parity else MEASURES[name]()
