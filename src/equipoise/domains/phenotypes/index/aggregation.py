"""Aggregation of component scores to one score per term.

Every strategy is an expression such as ``0.6*label + 0.4*max(synonyms)``; named strategies are in ``STRATEGIES``. An
expression is a weighted sum of the scores ``label`` and ``definition``, and of ``max``, ``min`` or ``mean`` over such
sums and over ``synonyms``. Numbers multiply and divide; two scores are never multiplied, so that every result stays on
the scale of the scores. A missing component never counts as 0:

- ``max``, ``min`` and ``mean`` are taken over the components that the term has.
- In a weighted sum, the weights of missing components are redistributed in proportion to the others. If a
  weight is negative, missing components add nothing.
- A term without any of the named components is scored by its label, which every term has.
"""

from __future__ import annotations

import ast
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from equipoise.errors import ParameterError, ShapeError, UnknownNameError, did_you_mean
from equipoise.geometry.base import PointArray

if TYPE_CHECKING:
    from equipoise.domains.phenotypes.index.files import TermTexts
    from equipoise.types import Bools, Floats, Ints

PARTS = ("label", "synonyms", "definition")
POOLS = ("max", "min", "mean")
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

Weights = Mapping[str, float] | Sequence[float]

_MAX_LENGTH = 1000
_MAX_NESTING = 50


@dataclass(frozen=True, slots=True)
class ComponentScore:
    """The score of a term's label or definition, or those of its synonyms."""

    name: str


@dataclass(frozen=True, slots=True)
class PooledTerm:
    """The maximum, minimum or mean over several sums, of those that a term has."""

    pooling: str
    sums: tuple[WeightedSum, ...]


@dataclass(frozen=True, slots=True)
class WeightedSum:
    """A weighted sum of scores plus a constant; ``addends`` are pairs of weight and score."""

    addends: tuple[tuple[float, ComponentScore | PooledTerm], ...] = ()
    constant: float = 0.0

    @property
    def parts(self) -> frozenset[str]:
        """The components that the result depends on."""
        names: set[str] = set()
        for _, atom in self.addends:
            names |= (
                {atom.name} if isinstance(atom, ComponentScore) else set().union(*(part.parts for part in atom.sums))
            )
        return frozenset(names)

    def scaled(self, factor: float) -> WeightedSum:
        return WeightedSum(tuple((weight * factor, atom) for weight, atom in self.addends), self.constant * factor)


def parse_strategy(strategy: str = DEFAULT_STRATEGY, weights: Weights | None = None) -> WeightedSum:
    """Parse the name of a strategy, or an expression.

    ``weights`` are those of ``all_weighted``, by component or in the order label, synonyms, definition.
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


def parse_expression(text: str) -> WeightedSum:
    """Parse an expression by Python's grammar; nothing is evaluated as Python, and an error points at the position."""
    if not text.strip():
        raise ParameterError(
            "the aggregation strategy is empty", hint="write label_synonyms_max, or max(label, synonyms)"
        )
    if len(text) > _MAX_LENGTH:
        raise ParameterError(f"the expression has {len(text):,} characters", hint=f"at most {_MAX_LENGTH:,} are read")
    parser = _ExpressionParser(" ".join(text.split()))
    expression = parser.sum(parser.tree())
    if not expression.addends:
        raise ParameterError(f"{text!r} names no score", hint=f"the scores are {', '.join(PARTS)}")
    return expression


class _ExpressionParser:
    """Turns the syntax tree of an expression into weighted sums."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._depth = 0

    def tree(self) -> ast.expr:
        try:
            with warnings.catch_warnings(action="ignore"):
                return ast.parse(self._text, mode="eval").body
        except SyntaxError as error:
            at = error.offset - 1 if error.offset else len(self._text)
            raise self._error("a syntax error", at, "an example is 0.5*label") from error
        except (ValueError, RecursionError, MemoryError) as error:
            raise self._error("a syntax error", 0, "an example is 0.5*label") from error

    def sum(self, node: ast.expr) -> WeightedSum:
        """The sum of a node with one score per term: ``synonyms`` are several."""
        value = self._value(node)
        if any(isinstance(atom, ComponentScore) and atom.name == "synonyms" for _, atom in value.addends):
            hint = "write max(synonyms), min(synonyms) or mean(synonyms)"
            raise self._error("synonyms without max, min or mean", node.col_offset, hint)
        return value

    def _value(self, node: ast.expr) -> WeightedSum:
        self._depth += 1
        if self._depth > _MAX_NESTING:
            raise self._error("too many nested levels", node.col_offset, f"nest at most {_MAX_NESTING}")
        value = self._unnested(node)
        self._depth -= 1
        return value

    def _unnested(self, node: ast.expr) -> WeightedSum:
        match node:
            case ast.BinOp(left, ast.Add() | ast.Sub() as operator, right):
                first, second = self.sum(left), self.sum(right)
                second = second.scaled(-1.0) if isinstance(operator, ast.Sub) else second
                return WeightedSum(first.addends + second.addends, first.constant + second.constant)
            case ast.BinOp(left, ast.Mult() | ast.Div() as operator, right):
                return self._product(self._value(left), self._value(right), operator, right.col_offset)
            case ast.UnaryOp(ast.USub() | ast.UAdd() as operator, operand):
                return self._value(operand).scaled(-1.0 if isinstance(operator, ast.USub) else 1.0)
            case ast.Constant(int() | float() as number) if not isinstance(number, bool) and math.isfinite(number):
                return WeightedSum(constant=float(number))
            case ast.Call(ast.Name(name), arguments, []) if name in POOLS:
                sums = tuple(map(self._value, arguments))
                if not any(part.addends for part in sums):
                    raise self._error(f"{name} without a score", node.col_offset, f"write {name}(label, synonyms)")
                return WeightedSum(((1.0, PooledTerm(name, sums)),))
            case ast.Name(name) if name in PARTS:
                return WeightedSum(((1.0, ComponentScore(name)),))
            case ast.Name(name) | ast.Call(ast.Name(name)):
                names = (*PARTS, *POOLS)
                hint = did_you_mean(name, names) or f"the names are {', '.join(names)}"
                raise self._error(f"the unknown name {name!r}", node.col_offset, hint)
        unexpected = ast.get_source_segment(self._text, node)
        raise self._error(f"an unexpected {unexpected!r}", node.col_offset, "an example is 0.5*label")

    def _product(self, left: WeightedSum, right: WeightedSum, operator: ast.operator, at: int) -> WeightedSum:
        if isinstance(operator, ast.Div):
            if right.addends or right.constant == 0.0:
                raise self._error("a division by 0 or by a score", at, "divide by another number")
            return left.scaled(1.0 / right.constant)
        if left.addends and right.addends:
            raise self._error("a product of two scores", at, "one side of * is a number: 0.5*label")
        return left.scaled(right.constant) if left.addends else right.scaled(left.constant)

    def _error(self, fact: str, at: int, hint: str) -> ParameterError:
        return ParameterError(f"{self._text!r} has {fact}", hint=hint, excerpt=f"{self._text}\n{' ' * at}^")


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


ScaledComponent = tuple[float, float, str]
"""A factor, a constant and the component whose scores are scaled: factor * score + constant."""

ColumnPass = tuple[slice, PointArray]
"""A run of sorted terms, and one value per query and term."""

_BLOCK_ROWS = 16
"""Queries per block: few, so that their scores stay in the CPU cache between passes."""

_IDENTITY = {"max": -np.inf, "min": np.inf, "mean": 0.0}
_REDUCE = {"max": np.maximum, "min": np.minimum, "mean": np.add}


@dataclass(frozen=True, slots=True)
class PooledScores:
    """One value per query and sorted term; undefined for terms that are not ``present``."""

    values: PointArray
    present: Bools

    def passes(self) -> list[ColumnPass]:
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


def aggregate_scores(
    scores: PointArray,
    components: TermTexts,
    strategy: str | WeightedSum = DEFAULT_STRATEGY,
    weights: Weights | None = None,
) -> PointArray:
    """The scores of all terms, (queries, terms) in the order of the ontology, from those of all components.

    In a single-vector index a term has one text, whose score is the score of the term for every strategy.
    The definition columns of ``scores`` may be omitted if the strategy reads no definitions.
    """
    expression = strategy if isinstance(strategy, WeightedSum) else parse_strategy(strategy, weights)
    needed = n_columns_read(components, expression)
    if scores.ndim != 2 or not needed <= scores.shape[1] <= len(components):
        raise ShapeError(
            f"scores of shape {scores.shape} were given for {len(components):,} components",
            hint="give one column per component",
        )
    inverse = np.empty(components.terms, dtype=np.int64)
    inverse[components.order] = np.arange(components.terms)
    result = np.empty((len(scores), components.terms), dtype=scores.dtype)
    for start in range(0, len(scores), _BLOCK_ROWS):
        block = scores[start : start + _BLOCK_ROWS]
        arranged = _term_scores(expression, block, components) if components.multi_vector else block
        np.take(arranged, inverse, axis=1, out=result[start : start + _BLOCK_ROWS], mode="clip")
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
