"""From the scores of components to one score a term.

Every strategy is an expression, so there is one way to compute them all; those with a name are listed in
``STRATEGIES``. What a term does not have is never counted as 0:

- ``max``, ``min`` and ``mean`` are taken over what the term has.
- In a sum of weighted parts, the weights of absent parts go to those that are present, in proportion. Where
  a weight is negative there is no such proportion: what is absent then adds nothing.
- A term that has none of the named parts is scored by its label, which every term has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from equipoise.errors import ParameterError, ShapeError, UnknownNameError
from equipoise.geometry import Points
from equipoise.ontology.index.components import Components
from equipoise.ontology.index.expression import PARTS, Part, Pool, Sum, parse_expression
from equipoise.ontology.index.fold import Folded, fold, part_passes
from equipoise.types import Bools

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


def strategy_of(strategy: str = DEFAULT_STRATEGY, weights: Weights | None = None) -> Sum:
    """The expression that a strategy's name, or an expression itself, stands for.

    ``weights`` are those of ``all_weighted``, by part or in the order label, synonyms, definition.

    >>> strategy_of("all_max") == strategy_of("max(label, synonyms, definition)")
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


def aggregate(
    scores: Points,
    components: Components,
    strategy: str | Sum = DEFAULT_STRATEGY,
    weights: Weights | None = None,
) -> Points:
    """The scores of all terms, (queries, terms) in the order of the ontology, from those of all components.

    In a single-vector index a term has one text, and its score is the term's: no strategy changes it.
    Columns of ``scores`` behind the synonyms may be left out where the strategy reads no definitions.

    >>> from equipoise.ontology.index.components import by_part
    >>> found = by_part(["Seizure", "Fever"], [["Fits"], ["Pyrexia", "Hot"]], ["", ""])
    >>> found.texts
    ('Fever', 'Seizure', 'Pyrexia', 'Fits', 'Hot')
    >>> aggregate(np.array([[0.1, 0.2, 0.3, 0.4, 0.5]]), found, "0.5*label + 0.5*max(synonyms)").tolist()
    [[0.30000000000000004, 0.3]]
    """
    how = strategy if isinstance(strategy, Sum) else strategy_of(strategy, weights)
    needed = columns_needed(components, how)
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


def columns_needed(components: Components, how: Sum) -> int:
    """How many of the leading components a strategy reads."""
    if not components.multi or "definition" in how.parts:
        return len(components)
    return components.without_definitions if "synonyms" in how.parts else components.terms


def _evaluated(how: Sum, scores: Points, components: Components) -> Points:
    """The terms' scores as the components arrange the terms."""
    found = _sum(how, scores, components)
    absent = np.flatnonzero(~found.present)
    if len(absent):
        found.values[:, absent] = scores[:, absent]
    return found.values


def _sum(how: Sum, scores: Points, components: Components) -> Folded:
    if len(how.addends) == 1 and how.addends[0][0] == 1.0 and not how.constant:
        return _atom(how.addends[0][1], scores, components)
    addends = [(weight, atom) for weight, atom in how.addends if weight]
    if not addends:
        return _constant(how.constant, scores, components)
    passes = [
        part_passes(components, scores, atom.name)
        if isinstance(atom, Part)
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
    return Folded(total, present)


def _atom(atom: Part | Pool, scores: Points, components: Components) -> Folded:
    if isinstance(atom, Pool):
        return _pool(atom, scores, components)
    return fold("max", components, scores, [(1.0, 0.0, atom.name)], [])


def _pool(pool: Pool, scores: Points, components: Components) -> Folded:
    """Plain parts are folded where they stand; sums of several are worked out before."""
    plain, worked = [], []
    for each in pool.sums:
        if len(each.addends) == 1 and isinstance(part := each.addends[0][1], Part):
            plain.append((each.addends[0][0], each.constant, part.name))
        elif each.addends:
            worked.append(_sum(each, scores, components))
        else:
            worked.append(_constant(each.constant, scores, components))
    return fold(pool.how, components, scores, plain, worked)


def _constant(value: float, scores: Points, components: Components) -> Folded:
    shape = (len(scores), components.terms)
    return Folded(np.full(shape, value, dtype=scores.dtype), np.ones(components.terms, dtype=np.bool_))


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
