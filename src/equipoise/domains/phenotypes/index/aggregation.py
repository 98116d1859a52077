"""From the scores of components to one score a term.

Every strategy is an expression, so there is one way to compute them all; those with a name are listed in
``STRATEGIES``. What a term does not have is never counted as 0:

- ``max``, ``min`` and ``mean`` are taken over what the term has.
- In a sum of weighted parts, the weights of absent parts go to those that are present, in proportion. Where
  a weight is negative there is no such proportion: what is absent then adds nothing.
- A term that has none of the named parts is scored by its label, which every term has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from equipoise.domains.phenotypes.index.expression import (
    PARTS,
    ComponentScore,
    PooledTerm,
    WeightedSum,
    parse_expression,
)
from equipoise.errors import ParameterError, ShapeError, UnknownNameError
from equipoise.geometry.base import PointArray

if TYPE_CHECKING:
    from equipoise.domains.phenotypes.index.term_texts import TermTexts
    from equipoise.types import Bools, Floats, Ints

# The maximum, the minimum or the mean of a term's components, by passes over contiguous columns.

Scaled = tuple[float, float, str]
"""A factor, a constant and the part whose scores they change."""

Pass = tuple[slice, PointArray]
"""Neighbouring arranged terms, and one value for each of them and each query."""

_START = {"max": -np.inf, "min": np.inf, "mean": 0.0}
_STEP = {"max": np.maximum, "min": np.minimum, "mean": np.add}


@dataclass(frozen=True, slots=True)
class PooledScores:
    """A value for each query and arranged term; meaningless for the terms that are not ``present``."""

    values: PointArray
    present: Bools

    def passes(self) -> list[Pass]:
        """The values of the terms that are present."""
        return [(run, self.values[:, run]) for run in _runs(np.flatnonzero(self.present))]


def pool_components(
    how: str,
    components: TermTexts,
    scores: PointArray,
    parts: Sequence[Scaled],
    others: Sequence[PooledScores],
) -> PooledScores:
    """Fold scaled parts of the scores, and values that are worked out already, term by term."""
    passes = _passes(components, scores, parts, others)
    step = _STEP[how]
    values: PointArray | None = None
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
    return PooledScores(values, present)


def _begun(how: str, terms: int, columns: slice, some: PointArray) -> PointArray:
    """The first pass as it is, where it covers all terms; else set into what changes nothing."""
    if some.shape[1] == terms:
        return some.copy()
    values = np.full((len(some), terms), _START[how], dtype=some.dtype)
    values[:, columns] = some
    return values


def component_slices(components: TermTexts, scores: PointArray, name: str) -> list[Pass]:
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
    components: TermTexts, scores: PointArray, parts: Sequence[Scaled], others: Sequence[PooledScores]
) -> Iterator[Pass]:
    for factor, constant, name in parts:
        for columns, some in component_slices(components, scores, name):
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


DEFAULT_STRATEGY = "label_synonyms_max"
DEFAULT_WEIGHTS = {"label": 0.5, "synonyms": 0.3, "definition": 0.2}

STRATEGIES: dict[str, str] = {
    "label_only": "label",
    "label_synonyms_min": "min(label, synonyms)",
    "label_synonyms_max": "max(label, synonyms)",
    "all_max": "max(label, synonyms, definition)",
    "all_min": "min(label, synonyms, definition)",
    "all_weighted": "{label}*label + {synonyms}*max(synonyms) + {definition}*definition",
}

_ROWS_AT_ONCE = 16
"""Queries that are reduced together: few, so that their scores stay in the cache from pass to pass."""

Weights = Mapping[str, float] | Sequence[float]


def parse_strategy(strategy: str = DEFAULT_STRATEGY, weights: Weights | None = None) -> WeightedSum:
    """The expression that a strategy's name, or an expression itself, stands for.

    ``weights`` are those of ``all_weighted``, by part or in the order label, synonyms, definition.

    >>> parse_strategy("all_max") == parse_strategy("max(label, synonyms, definition)")
    True
    """
    name = strategy.strip().casefold()
    if name == "all_weighted":
        return parse_expression(STRATEGIES[name].format(**_weights(weights)))
    if weights is not None:
        raise ParameterError(f"{strategy!r} takes no weights", hint="weights are for all_weighted")
    if name in STRATEGIES:
        return parse_expression(STRATEGIES[name])
    # A single word can only be a misspelled name: the parts that are words are expressions themselves.
    if name.isidentifier() and name not in PARTS:
        raise UnknownNameError.of(
            "aggregation strategy",
            strategy,
            STRATEGIES,
            more=f"there are {', '.join(STRATEGIES)}, and expressions: 0.6*label + 0.4*max(synonyms)",
        )
    return parse_expression(strategy)


def aggregate_scores(
    scores: PointArray,
    components: TermTexts,
    strategy: str | WeightedSum = DEFAULT_STRATEGY,
    weights: Weights | None = None,
) -> PointArray:
    """The scores of all terms, (queries, terms) in the order of the ontology, from those of all components.

    In a single-vector index a term has one text, and its score is the term's: no strategy changes it.
    Columns of ``scores`` behind the synonyms may be left out where the strategy reads no definitions.

    >>> from equipoise.domains.phenotypes.index.term_texts import component_texts
    >>> found = component_texts(["Seizure", "Fever"], [["Fits"], ["Pyrexia", "Hot"]], ["", ""])
    >>> found.texts
    ('Fever', 'Seizure', 'Pyrexia', 'Fits', 'Hot')
    >>> aggregate_scores(np.array([[0.1, 0.2, 0.3, 0.4, 0.5]]), found, "0.5*label + 0.5*max(synonyms)").tolist()
    [[0.30000000000000004, 0.3]]
    """
    how = strategy if isinstance(strategy, WeightedSum) else parse_strategy(strategy, weights)
    needed = n_columns_read(components, how)
    if scores.ndim != 2 or not needed <= scores.shape[1] <= len(components):
        raise ShapeError(
            f"scores of shape {scores.shape} were given for {len(components):,} components",
            hint="give a column for every component",
        )
    back = np.empty(components.terms, dtype=np.int64)
    back[components.order] = np.arange(components.terms)
    result = np.empty((len(scores), components.terms), dtype=scores.dtype)
    for start in range(0, len(scores), _ROWS_AT_ONCE):
        block = scores[start : start + _ROWS_AT_ONCE]
        arranged = _evaluated(how, block, components) if components.multi else block
        np.take(arranged, back, axis=1, out=result[start : start + _ROWS_AT_ONCE], mode="clip")
    return result


def n_columns_read(components: TermTexts, how: WeightedSum) -> int:
    """How many of the leading components a strategy reads."""
    if not components.multi or "definition" in how.parts:
        return len(components)
    return components.without_definitions if "synonyms" in how.parts else components.terms


def _evaluated(how: WeightedSum, scores: PointArray, components: TermTexts) -> PointArray:
    """The terms' scores as the components arrange the terms."""
    found = _sum(how, scores, components)
    absent = np.flatnonzero(~found.present)
    if len(absent):
        found.values[:, absent] = scores[:, absent]
    return found.values


def _sum(how: WeightedSum, scores: PointArray, components: TermTexts) -> PooledScores:
    if len(how.addends) == 1 and how.addends[0][0] == 1.0 and not how.constant:
        return _atom(how.addends[0][1], scores, components)
    addends = [(weight, atom) for weight, atom in how.addends if weight]
    if not addends:
        return _constant(how.constant, scores, components)
    passes = [
        component_slices(components, scores, atom.name)
        if isinstance(atom, ComponentScore)
        else _pool(atom, scores, components).passes()
        for _, atom in addends
    ]
    weights = np.array([weight for weight, _ in addends])
    held = np.zeros((len(addends), components.terms), dtype=np.bool_)
    for row, some in zip(held, passes, strict=True):
        for columns, _ in some:
            row[columns] = True
    present: Bools = np.logical_or.reduce(held)
    share = np.ones(components.terms)
    if weights.min() > 0.0 and not held.all():
        share[present] = weights.sum() / (weights @ held)[present]
    total = np.full((len(scores), components.terms), how.constant, dtype=scores.dtype)
    for weight, some in zip(weights, passes, strict=True):
        factors = (weight * share).astype(scores.dtype)
        for columns, values in some:
            total[:, columns] += values * factors[columns]
    return PooledScores(total, present)


def _atom(atom: ComponentScore | PooledTerm, scores: PointArray, components: TermTexts) -> PooledScores:
    if isinstance(atom, PooledTerm):
        return _pool(atom, scores, components)
    return pool_components("max", components, scores, [(1.0, 0.0, atom.name)], [])


def _pool(pool: PooledTerm, scores: PointArray, components: TermTexts) -> PooledScores:
    """Plain parts are folded where they stand; sums of several are worked out before."""
    plain, worked = [], []
    for each in pool.sums:
        if len(each.addends) == 1 and isinstance(part := each.addends[0][1], ComponentScore):
            plain.append((each.addends[0][0], each.constant, part.name))
        elif each.addends:
            worked.append(_sum(each, scores, components))
        else:
            worked.append(_constant(each.constant, scores, components))
    return pool_components(pool.how, components, scores, plain, worked)


def _constant(value: float, scores: PointArray, components: TermTexts) -> PooledScores:
    shape = (len(scores), components.terms)
    return PooledScores(np.full(shape, value, dtype=scores.dtype), np.ones(components.terms, dtype=np.bool_))


def _weights(given: Weights | None) -> dict[str, float]:
    """A weight for each part, which are not negative and not all 0."""
    if given is None:
        return DEFAULT_WEIGHTS
    named = dict(given) if isinstance(given, Mapping) else dict(zip(PARTS, given, strict=False))
    if set(named) != set(PARTS) or len(given) != len(PARTS):
        raise ParameterError(
            f"the weights are {given!r}",
            hint=f"give one for each of {', '.join(PARTS)}, such as 0.5, 0.3, 0.2",
        )
    for part, weight in named.items():
        if not 0.0 <= weight < np.inf:
            raise ParameterError(f"the weight of {part} is {weight}", hint="weights are 0 or more")
    if not sum(named.values()):
        raise ParameterError("all weights are 0", hint="give one part a weight above 0")
    return {part: float(weight) for part, weight in named.items()}
