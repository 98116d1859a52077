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

Pass = tuple[slice, Points]
"""Neighbouring arranged terms, and one value for each of them and each query."""

_START = {"max": -np.inf, "min": np.inf, "mean": 0.0}
_STEP = {"max": np.maximum, "min": np.minimum, "mean": np.add}


@dataclass(frozen=True, slots=True)
class Folded:
    """A value for each query and arranged term; meaningless for the terms that are not ``present``."""

    values: Points
    present: Bools

    def passes(self) -> list[Pass]:
        """The values of the terms that are present."""
        return [(run, self.values[:, run]) for run in _runs(np.flatnonzero(self.present))]


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
        else:
            step(values[:, columns], some, out=values[:, columns])
        counts[columns] += 1.0
    if values is None:
        values = np.zeros((len(scores), components.terms), dtype=scores.dtype)
    present = counts > 0.0
    if how == "mean":
        values /= np.where(present, counts, 1.0).astype(values.dtype)
    return Folded(values, present)


def _begun(how: str, terms: int, columns: slice, some: Points) -> Points:
    """The first pass as it is, where it covers all terms; else set into what changes nothing."""
    if some.shape[1] == terms:
        return some.copy()
    values = np.full((len(some), terms), _START[how], dtype=some.dtype)
    values[:, columns] = some
    return values


def part_passes(components: Components, scores: Points, name: str) -> list[Pass]:
    """The scores of labels, synonyms or definitions where they stand; synonyms cover a term several times."""
    if name == "label":
        return [(slice(0, components.terms), scores[:, : components.terms])]
    if name == "synonyms":
        runs, at = [slice(0, size) for size in components.rounds], components.terms
    else:
        places = components.defined if components.defined is not None else np.empty(0, dtype=np.int64)
        runs, at = _runs(places), components.without_definitions
    starts = at + np.cumsum([0, *(run.stop - run.start for run in runs)])
    return [(run, scores[:, first:last]) for run, first, last in zip(runs, starts, starts[1:], strict=False)]


def _passes(
    components: Components, scores: Points, parts: Sequence[Scaled], others: Sequence[Folded]
) -> Iterator[Pass]:
    for factor, constant, name in parts:
        for columns, some in part_passes(components, scores, name):
            yield columns, some if (factor, constant) == (1.0, 0.0) else some * factor + constant
    for other in others:
        yield from other.passes()


def _runs(places: Ints) -> list[slice]:
    """Ascending places as slices of neighbours."""
    if not len(places):
        return []
    ends = np.flatnonzero(np.diff(places) != 1)
    firsts, lasts = places[[0, *ends + 1]], places[[*ends, -1]]
    return [slice(first, last + 1) for first, last in zip(firsts.tolist(), lasts.tolist(), strict=True)]
