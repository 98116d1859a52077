"""Align results by unit id: the same units, in the same order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.errors import DuplicateError, PairingError, ParameterError

if TYPE_CHECKING:
    from equipoise.evidence.base import Evidence
    from equipoise.stats.result import Result
    from equipoise.types import Floats, Ids, Ints

SHOWN = 5


@dataclass(frozen=True)
class AlignedResults:
    """Results of several systems on the same units; ``orders`` sorts each into the order of the first."""

    results: tuple[Result, ...]
    orders: tuple[Ints, ...]
    clusters: Ids | None
    systems: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.results[0].unit_ids)

    def has_parts(self, metric: str) -> bool:
        """Whether every system has per-unit values of the metric."""
        return all(metric in result.per_unit for result in self.results)

    def per_unit(self, metric: str) -> Floats:
        """Per-unit values of all systems: shape (units, systems)."""
        return np.column_stack(
            [
                np.asarray(result.per_unit[metric], dtype=np.float64)[order]
                for result, order in zip(self.results, self.orders, strict=True)
            ]
        )

    def weights(self, metric: str) -> Floats | None:
        """How much each unit counts; the systems must agree, or a difference of means has no pairs."""
        weighted = [metric in result.weights for result in self.results]
        if not any(weighted):
            return None
        if all(weighted):
            columns = [
                np.asarray(result.weights[metric], dtype=np.float64)[order]
                for result, order in zip(self.results, self.orders, strict=True)
            ]
            if all(np.allclose(columns[0], column, equal_nan=True) for column in columns[1:]):
                return columns[0]
        raise PairingError(
            f"the units count differently for {metric} in the systems {_list_values(self.systems)}",
            hint="score every system on the same truth, so that the units have the same weights",
        )

    def evidence(self) -> list[Evidence] | None:
        """The evidence of every system with its units lined up; None where one has none."""
        lined_up = []
        for result, order in zip(self.results, self.orders, strict=True):
            if result.evidence is None or len(result.evidence) != len(self):
                return None
            lined_up.append(result.evidence.take(order))
        return lined_up


def align_results(results: Sequence[Result]) -> AlignedResults:
    """Align results by unit id; unequal sets of units are an error that lists the difference.

    Two results with the same units in another order are put in order, never joined on what they share.
    """
    if len(results) < 2:
        raise ParameterError(
            f"a comparison needs at least two systems; {len(results)} was given", hint="add another run"
        )
    names = [result.system for result in results]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise DuplicateError(f"two results are called {twice[0]!r}", hint="give each system a different name")
    first = results[0]
    positions = _positions(first)
    orders = [np.arange(len(positions))]
    for other in results[1:]:
        other_positions = _positions(other)
        if positions.keys() != other_positions.keys():
            raise _unequal(first, other, positions, other_positions)
        orders.append(np.fromiter((other_positions[unit] for unit in positions), np.int64, len(positions)))
    return AlignedResults(tuple(results), tuple(orders), _shared_clusters(results, orders), tuple(names))


def _positions(result: Result) -> dict[object, int]:
    """The index of each unit; keys are Python values, so that 1 and numpy's 1 are the same unit."""
    units = result.unit_ids.tolist()
    positions = {unit: position for position, unit in enumerate(units)}
    if len(positions) < len(units):
        repeated = next(unit for position, unit in enumerate(units) if positions[unit] != position)
        raise DuplicateError(f"{result.system} has the unit {repeated!r} more than once")
    return positions


def _unequal(
    first: Result, other: Result, positions: dict[object, int], other_positions: dict[object, int]
) -> PairingError:
    missing = [unit for unit in positions if unit not in other_positions]
    extra = [unit for unit in other_positions if unit not in positions]
    sides = ((missing, first.system), (extra, other.system))
    return PairingError(
        f"{first.system} and {other.system} were not measured on the same units: "
        + ", ".join(f"{len(units)} only in {name}" for units, name in sides),
        hint="score every system on all units; a unit that a run misses scores 0 (eq explain EQ204)",
        excerpt="\n".join(f"only in {name}: {_list_values(units)}" for units, name in sides if units),
    )


def _shared_clusters(results: Sequence[Result], orders: Sequence[Ints]) -> Ids | None:
    """The cluster labels that the results carry; those that carry some must agree."""
    carried = [
        (result.system, np.asarray(result.clusters)[order])
        for result, order in zip(results, orders, strict=True)
        if result.clusters is not None
    ]
    for name, labels in carried[1:]:
        if labels.tolist() != carried[0][1].tolist():
            raise PairingError(
                f"{carried[0][0]} and {name} put the same units in different clusters",
                hint="use one cluster key for all systems",
            )
    return carried[0][1] if carried else None


def _list_values(values: Sequence[object]) -> str:
    text = ", ".join(str(value) for value in values[:SHOWN])
    return text + (f" and {len(values) - SHOWN} more" if len(values) > SHOWN else "")


# Equal terms: what results say of how they were measured, and when that forbids to compare them.

DATA = "data"
"""What was measured on: the SHA-256 of each part, by its name."""

MATCHER = "matcher"
"""The rule by which a unit counts as right."""

TRIALS = "configurations"
"""How many configurations were tried before one was reported."""

GRID = "grid"
"""Over which values each parameter was tuned."""

BUDGET = "budget"
"""What a configuration might cost at most in order to be chosen; None where any might be."""

SPENT = "retrieved_tokens"
"""What the configuration that was chosen costs a unit."""

FOLDS = "folds"
"""The number of folds of the nested cross-validation; 1 means none."""

TOKENIZER = "tokenizer"
"""What a token is, in sizes, costs and budgets."""

SPEC = "model"
"""The spec of the model that was measured."""

WINDOW = "window"
"""How many tokens the model reads of a text, how many texts it was given, and how many it truncated."""

NOTES = "notes"
"""What to know about how the measurement was made, in sentences."""

_DIGITS = 12


def check_same_protocol(results: Sequence[Result]) -> None:
    """Refuse results of one unit's name that are not of one unit: other data, or another rule.

    >>> from equipoise.stats.estimate import result_from_values
    >>> one, other = (result_from_values(name, ["q1", "q2"], {"HR": [1, 0]}, settings={"matcher": rule})
    ...               for name, rule in (("a", "words"), ("b", "source")))
    >>> check_same_protocol([one, other])
    Traceback (most recent call last):
    equipoise.errors.PairingError: a was measured with the matcher words and b with source
    """
    first, rule = _first_known(results, MATCHER)
    for other in results:
        matcher = other.settings.get(MATCHER)
        if first is not None and matcher is not None and matcher != rule:
            raise PairingError(
                f"{first.system} was measured with the matcher {rule} and {other.system} with {matcher}",
                hint="measure both with one rule, and compare those runs",
            )
    for part in dict.fromkeys(part for result in results for part in _data(result)):
        digests = [(result, _data(result)[part]) for result in results if part in _data(result)]
        for other, digest in digests[1:]:
            if digest != digests[0][1]:
                raise _other_data(part, digests[0], (other, digest))


def _first_known(results: Sequence[Result], name: str) -> tuple[Result | None, Any]:
    for result in results:
        if result.settings.get(name) is not None:
            return result, result.settings[name]
    return None, None


def _data(result: Result) -> Mapping[str, Any]:
    data = result.settings.get(DATA)
    return data if isinstance(data, Mapping) else {}


def _other_data(part: str, one: tuple[Result, Any], other: tuple[Result, Any]) -> PairingError:
    excerpt = "\n".join(f"{part} of {result.system}: {str(digest)[:_DIGITS]}" for result, digest in (one, other))
    return PairingError(
        f"{one[0].system} and {other[0].system} were not measured on the same {part}, "
        "though their units have the same names",
        hint="run both on the same data, and compare those runs",
        excerpt=excerpt,
    )
