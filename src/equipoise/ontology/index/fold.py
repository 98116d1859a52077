"""The maximum, the minimum or the mean of a term's components, by passes over contiguous columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from equipoise.geometry import Points
from equipoise.ontology.index.components import Components
from equipoise.types import Bools, Floats, Ints

Scaled = tuple[float, float, str]
"""A factor, a constant and the part whose scores they change."""

Pass = tuple[slice | Ints, Points]
"""Arranged terms, and one value for each of them and each query."""

_START = {"max": -np.inf, "min": np.inf, "mean": 0.0}
_STEP = {"max": np.maximum, "min": np.minimum, "mean": np.add}


@dataclass(frozen=True, slots=True)
class Folded:
    """A value for each query and arranged term; meaningless for the terms that are not ``present``."""

    values: Points
    present: Bools


def fold(
    how: str, components: Components, scores: Points, parts: Sequence[Scaled], others: Sequence[Folded]
) -> Folded:
    """Fold scaled parts of the scores, and values that are worked out already, term by term."""
    passes = _passes(components, scores, parts, others)
    step = _STEP[how]
    values: Points | None = None
    counts: Floats = np.zeros(components.terms)
    for columns, some in passes:
        if values is None:
            values = _begun(how, components.terms, columns, some)
        elif isinstance(columns, slice):
            step(values[:, columns], some, out=values[:, columns])
        else:
            values[:, columns] = step(values[:, columns], some)
        counts[columns] += 1.0
    if values is None:
        values = np.zeros((len(scores), components.terms), dtype=scores.dtype)
    present = counts > 0.0
    if how == "mean":
        values /= np.where(present, counts, 1.0).astype(values.dtype)
    return Folded(values, present)


def _begun(how: str, terms: int, columns: slice | Ints, some: Points) -> Points:
    """The first pass as it is, where it covers all terms; else set into what changes nothing."""
    if some.shape[1] == terms:
        return some.copy()
    values = np.full((len(some), terms), _START[how], dtype=some.dtype)
    values[:, columns] = some
    return values


def _passes(
    components: Components, scores: Points, parts: Sequence[Scaled], others: Sequence[Folded]
) -> Iterator[Pass]:
    for factor, constant, name in parts:
        for columns, some in _part(components, scores, name):
            yield columns, some if (factor, constant) == (1.0, 0.0) else some * factor + constant
    for other in others:
        if other.present.all():
            yield slice(0, components.terms), other.values
        else:
            places = np.flatnonzero(other.present)
            yield places, other.values[:, places]


def _part(components: Components, scores: Points, name: str) -> Iterator[Pass]:
    if name == "label":
        yield slice(0, components.terms), scores[:, : components.terms]
    elif name == "synonyms":
        at = components.terms
        for size in components.rounds:
            yield slice(0, size), scores[:, at : at + size]
            at += size
    elif components.defined is not None and len(components.defined):
        at = components.without_definitions
        for run in runs(components.defined):
            yield run, scores[:, at : at + run.stop - run.start]
            at += run.stop - run.start


def runs(places: Ints) -> Iterator[slice]:
    """Ascending places as slices of neighbours; there must be one at least."""
    ends = np.flatnonzero(np.diff(places) != 1)
    for first, last in zip([0, *ends + 1], [*ends, len(places) - 1], strict=True):
        yield slice(int(places[first]), int(places[last]) + 1)
