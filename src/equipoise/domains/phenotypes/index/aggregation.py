"""Aggregation of component scores to one score per term.

Every strategy is an expression; named strategies are in ``STRATEGIES``. A missing component never counts as 0:

- ``max``, ``min`` and ``mean`` are taken over the components that the term has.
- In a weighted sum, the weights of missing components are redistributed in proportion to the others. If a
  weight is negative, missing components add nothing.
- A term without any of the named components is scored by its label, which every term has.
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
    from equipoise.domains.phenotypes.index.files import TermTexts
    from equipoise.types import Bools, Floats, Ints

ScaledComponent = tuple[float, float, str]
"""A factor, a constant and the component whose scores are scaled: factor * score + constant."""

ColumnPass = tuple[slice, PointArray]
"""A run of sorted terms, and one value per query and term."""

_IDENTITY = {"max": -np.inf, "min": np.inf, "mean": 0.0}
_REDUCE = {"max": np.maximum, "min": np.minimum, "mean": np.add}


@dataclass(frozen=True, slots=True)
class PooledScores:
    """One value per query and sorted term; undefined for terms that are not ``present``."""

    values: PointArray
    present: Bools

    def passes(self) -> list[ColumnPass]:
        """The values of the terms that are present."""
        return [(run, self.values[:, run]) for run in _consecutive_runs(np.flatnonzero(self.present))]


def pool_components(
    pooling: str,
    components: TermTexts,
    scores: PointArray,
    parts: Sequence[ScaledComponent],
    others: Sequence[PooledScores],
) -> PooledScores:
    """Pool scaled components and precomputed values term by term: max, min or mean."""
    passes = _passes(components, scores, parts, others)
    step = _REDUCE[pooling]
    values: PointArray | None = None
    counts: Floats = np.zeros(components.terms)
    for columns, part_scores in passes:
        if values is None:
            values = _first_pass(pooling, components.terms, columns, part_scores)
        else:
            step(values[:, columns], part_scores, out=values[:, columns])
        counts[columns] += 1.0
    if values is None:
        values = np.zeros((len(scores), components.terms), dtype=scores.dtype)
    present = counts > 0.0
    if pooling == "mean":
        values /= np.where(present, counts, 1.0).astype(values.dtype)
    return PooledScores(values, present)


def _first_pass(pooling: str, terms: int, columns: slice, part_scores: PointArray) -> PointArray:
    """The first pass if it covers all terms; otherwise written into an array of the identity element."""
    if part_scores.shape[1] == terms:
        return part_scores.copy()
    values = np.full((len(part_scores), terms), _IDENTITY[pooling], dtype=part_scores.dtype)
    values[:, columns] = part_scores
    return values


def component_slices(components: TermTexts, scores: PointArray, name: str) -> list[ColumnPass]:
    """Views of the scores of labels, synonyms or definitions; a term may be in several synonym runs."""
    if name == "label":
        return [(slice(0, components.terms), scores[:, : components.terms])]
    if name == "synonyms":
        runs, at = [slice(0, size) for size in components.synonym_runs], components.terms
    else:
        positions = (
            components.definition_positions
            if components.definition_positions is not None
            else np.empty(0, dtype=np.int64)
        )
        runs, at = _consecutive_runs(positions), components.without_definitions
    starts = at + np.cumsum([0, *(run.stop - run.start for run in runs)])
    return [(run, scores[:, first:last]) for run, first, last in zip(runs, starts, starts[1:], strict=False)]


def _passes(
    components: TermTexts, scores: PointArray, parts: Sequence[ScaledComponent], others: Sequence[PooledScores]
) -> Iterator[ColumnPass]:
    for factor, constant, name in parts:
        for columns, part_scores in component_slices(components, scores, name):
            yield columns, part_scores if (factor, constant) == (1.0, 0.0) else part_scores * factor + constant
    for other in others:
        yield from other.passes()


def _consecutive_runs(positions: Ints) -> list[slice]:
    """Ascending positions as slices of consecutive values."""
    if not len(positions):
        return []
    ends = np.flatnonzero(np.diff(positions) != 1)
    firsts, lasts = positions[[0, *ends + 1]], positions[[*ends, -1]]
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

_BLOCK_ROWS = 16
"""Queries per block: few, so that their scores stay in the CPU cache between passes."""

Weights = Mapping[str, float] | Sequence[float]


def parse_strategy(strategy: str = DEFAULT_STRATEGY, weights: Weights | None = None) -> WeightedSum:
    """Parse the name of a strategy, or an expression.

    ``weights`` are those of ``all_weighted``, by component or in the order label, synonyms, definition.

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
    # A single word that is no component name can only be a misspelled strategy.
    if name.isidentifier() and name not in PARTS:
        raise UnknownNameError.of(
            "aggregation strategy",
            strategy,
            STRATEGIES,
            more=f"known: {', '.join(STRATEGIES)}, and expressions: 0.6*label + 0.4*max(synonyms)",
        )
    return parse_expression(strategy)


def aggregate_scores(
    scores: PointArray,
    components: TermTexts,
    strategy: str | WeightedSum = DEFAULT_STRATEGY,
    weights: Weights | None = None,
) -> PointArray:
    """The scores of all terms, (queries, terms) in the order of the ontology, from those of all components.

    In a single-vector index a term has one text, whose score is the score of the term for every strategy.
    The definition columns of ``scores`` may be omitted if the strategy reads no definitions.

    >>> from equipoise.domains.phenotypes.index.files import component_texts
    >>> components = component_texts(["Seizure", "Fever"], [["Fits"], ["Pyrexia", "Hot"]], ["", ""])
    >>> components.texts
    ('Fever', 'Seizure', 'Pyrexia', 'Fits', 'Hot')
    >>> aggregate_scores(np.array([[0.1, 0.2, 0.3, 0.4, 0.5]]), components, "0.5*label + 0.5*max(synonyms)").tolist()
    [[0.30000000000000004, 0.3]]
    """
    expression = strategy if isinstance(strategy, WeightedSum) else parse_strategy(strategy, weights)
    needed = n_columns_read(components, expression)
    if scores.ndim != 2 or not needed <= scores.shape[1] <= len(components):
        raise ShapeError(
            f"scores of shape {scores.shape} were given for {len(components):,} components",
            hint="give one column per component",
        )
    back = np.empty(components.terms, dtype=np.int64)
    back[components.order] = np.arange(components.terms)
    result = np.empty((len(scores), components.terms), dtype=scores.dtype)
    for start in range(0, len(scores), _BLOCK_ROWS):
        block = scores[start : start + _BLOCK_ROWS]
        arranged = _term_scores(expression, block, components) if components.multi_vector else block
        np.take(arranged, back, axis=1, out=result[start : start + _BLOCK_ROWS], mode="clip")
    return result


def n_columns_read(components: TermTexts, expression: WeightedSum) -> int:
    """The number of leading columns that a strategy reads."""
    if not components.multi_vector or "definition" in expression.parts:
        return len(components)
    return components.without_definitions if "synonyms" in expression.parts else components.terms


def _term_scores(expression: WeightedSum, scores: PointArray, components: TermTexts) -> PointArray:
    """The scores of the terms, in the order of ``TermTexts.order``."""
    pooled = _sum(expression, scores, components)
    absent = np.flatnonzero(~pooled.present)
    if len(absent):
        pooled.values[:, absent] = scores[:, absent]
    return pooled.values


def _sum(expression: WeightedSum, scores: PointArray, components: TermTexts) -> PooledScores:
    if len(expression.addends) == 1 and expression.addends[0][0] == 1.0 and not expression.constant:
        return _atom(expression.addends[0][1], scores, components)
    addends = [(weight, atom) for weight, atom in expression.addends if weight]
    if not addends:
        return _constant(expression.constant, scores, components)
    passes = [
        component_slices(components, scores, atom.name)
        if isinstance(atom, ComponentScore)
        else _pool(atom, scores, components).passes()
        for _, atom in addends
    ]
    weights = np.array([weight for weight, _ in addends])
    has_component = np.zeros((len(addends), components.terms), dtype=np.bool_)
    for row, part_scores in zip(has_component, passes, strict=True):
        for columns, _ in part_scores:
            row[columns] = True
    present: Bools = np.logical_or.reduce(has_component)
    share = np.ones(components.terms)
    if weights.min() > 0.0 and not has_component.all():
        share[present] = weights.sum() / (weights @ has_component)[present]
    total = np.full((len(scores), components.terms), expression.constant, dtype=scores.dtype)
    for weight, part_scores in zip(weights, passes, strict=True):
        factors = (weight * share).astype(scores.dtype)
        for columns, values in part_scores:
            total[:, columns] += values * factors[columns]
    return PooledScores(total, present)


def _atom(atom: ComponentScore | PooledTerm, scores: PointArray, components: TermTexts) -> PooledScores:
    if isinstance(atom, PooledTerm):
        return _pool(atom, scores, components)
    return pool_components("max", components, scores, [(1.0, 0.0, atom.name)], [])


def _pool(pool: PooledTerm, scores: PointArray, components: TermTexts) -> PooledScores:
    """Single components are pooled in place; sums are computed first."""
    scaled, computed = [], []
    for summand in pool.sums:
        if len(summand.addends) == 1 and isinstance(part := summand.addends[0][1], ComponentScore):
            scaled.append((summand.addends[0][0], summand.constant, part.name))
        elif summand.addends:
            computed.append(_sum(summand, scores, components))
        else:
            computed.append(_constant(summand.constant, scores, components))
    return pool_components(pool.pooling, components, scores, scaled, computed)


def _constant(value: float, scores: PointArray, components: TermTexts) -> PooledScores:
    shape = (len(scores), components.terms)
    return PooledScores(np.full(shape, value, dtype=scores.dtype), np.ones(components.terms, dtype=np.bool_))


def _weights(weights: Weights | None) -> dict[str, float]:
    """One non-negative weight per component, not all 0."""
    if weights is None:
        return DEFAULT_WEIGHTS
    weight_of = dict(weights) if isinstance(weights, Mapping) else dict(zip(PARTS, weights, strict=False))
    if set(weight_of) != set(PARTS) or len(weights) != len(PARTS):
        raise ParameterError(
            f"the weights are {weights!r}",
            hint=f"give one for each of {', '.join(PARTS)}, such as 0.5, 0.3, 0.2",
        )
    for part, weight in weight_of.items():
        if not 0.0 <= weight < np.inf:
            raise ParameterError(f"the weight of {part} is {weight}", hint="weights are 0 or more")
    if not sum(weight_of.values()):
        raise ParameterError("all weights are 0", hint="give at least one component a positive weight")
    return {part: float(weight) for part, weight in weight_of.items()}
