"""Shapley attribution of a score difference between two libraries to their conventions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import factorial, isnan
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.errors import ParameterError, UndefinedError
from equipoise.evidence.ranking import Ranking
from equipoise.metrics.parser import parse_metrics
from equipoise.reproduce.difference import (
    ConventionEffect,
    ConventionPair,
    LibraryScore,
    NoEffect,
    ScoreDifference,
    UnitChange,
    WorkedExample,
    worked_example,
)
from equipoise.reproduce.emulation import EmulatedScore, RunAndQrels, score_under
from equipoise.reproduce.presets import CONVENTIONS, EQUIPOISE, Conventions, Preset, Value, affects, get_preset
from equipoise.reproduce.score import limitation_notes
from equipoise.reproduce.tie_orders import is_tied, to_float32

if TYPE_CHECKING:
    from equipoise.metrics.base import Metric
    from equipoise.types import Bools

# Scores between two sets of conventions, each computed once.

NO_DIFFERENCE = 1e-12


@dataclass(frozen=True)
class ConventionPath:
    """The score with the conventions in ``changed`` from the other program, and the others from the first."""

    inputs: RunAndQrels
    metric: Metric[Any]
    one: Conventions
    other: Conventions
    _known: dict[frozenset[str], EmulatedScore] = field(default_factory=dict, repr=False)

    def figure(self, changed: frozenset[str]) -> EmulatedScore:
        """The score after these conventions have been changed."""
        if changed not in self._known:
            conventions = self.one.with_values({name: self.other[name] for name in changed})
            self._known[changed] = score_under(self.inputs, self.metric, conventions)
        return self._known[changed]

    def score_of(self, changed: frozenset[str]) -> float:
        """Its value; halfway a mean over no query at all counts as 0, so that the shares still add up."""
        value = self.figure(changed).value
        return 0.0 if isnan(value) else value

    def alone(self, name: str) -> float:
        """The effect of one change on the first score."""
        return self.score_of(frozenset({name})) - self.score_of(frozenset())

    def changed_units(self, name: str, active: Sequence[str]) -> Bools:
        """Units whose value changes, with the change applied first or last."""
        all_active = frozenset(active)
        first = differing_units(self.figure(frozenset()), self.figure(frozenset({name})))
        last = differing_units(self.figure(all_active - {name}), self.figure(all_active))
        return first | last


def differing_units(one: EmulatedScore, other: EmulatedScore) -> Bools:
    """Units with another value, or with one on one side only."""
    undefined_in_one = np.isnan(one.per_unit) != np.isnan(other.per_unit)
    is_different = np.abs(np.nan_to_num(one.per_unit) - np.nan_to_num(other.per_unit)) > NO_DIFFERENCE
    differs: Bools = undefined_in_one | is_different
    return differs


def largest_changes(one: EmulatedScore, other: EmulatedScore) -> list[int]:
    """Units that differ, those first that move the mean most."""
    parts = np.nan_to_num(other.per_unit) / other.n - np.nan_to_num(one.per_unit) / one.n
    differs = differing_units(one, other)
    return [int(at) for at in np.argsort(-np.abs(parts), kind="stable") if differs[at]]


# Shapley values over the orders in which conventions can be changed.

MAX_EXACT_PLAYERS = 8
"""Up to this number all subsets are evaluated; above it, this many orders are sampled."""
N_SAMPLED_ORDERS = 60

ValueFunction = Callable[[frozenset[str]], float]


def shapley_values(names: Sequence[str], value_of: ValueFunction, *, seed: int = 0) -> dict[str, float]:
    """The Shapley values of the names: their contribution to ``value_of``, averaged over all orders.

    The shares sum to ``value_of`` of all names minus ``value_of`` of none, and a name that never changes anything
    has 0. Up to ``MAX_EXACT_PLAYERS`` names the average is over all orders, beyond that over sampled orders.
    """
    if is_exact(names):
        return {name: _exact(name, names, value_of) for name in names}
    rng = np.random.default_rng(seed)
    total = dict.fromkeys(names, 0.0)
    for _ in range(N_SAMPLED_ORDERS):
        order = [names[index] for index in rng.permutation(len(names))]
        for index, name in enumerate(order):
            before = frozenset(order[:index])
            total[name] += value_of(before | {name}) - value_of(before)
    return {name: value / N_SAMPLED_ORDERS for name, value in total.items()}


def is_exact(names: Sequence[str]) -> bool:
    """Whether so few names are averaged over all their orders."""
    return len(names) <= MAX_EXACT_PLAYERS


def _exact(name: str, names: Sequence[str], value_of: ValueFunction) -> float:
    others = [other for other in names if other != name]
    n_orders = factorial(len(names))
    share = 0.0
    for before in (frozenset(part) for size in range(len(names)) for part in combinations(others, size)):
        orders = factorial(len(before)) * factorial(len(others) - len(before))
        share += orders / n_orders * (value_of(before | {name}) - value_of(before))
    return share


# Conventions that cannot change a score on this data, and need not be evaluated.


def no_effect_reason(name: str, values: tuple[Value, Value], inputs: RunAndQrels, metric: Metric[Any]) -> str:
    """Why a change of a convention has no effect here; empty if it may have one."""
    reason = getattr(_NoEffectReasons(values, inputs, metric), name, None)
    return reason() if reason else ""


@dataclass(frozen=True)
class _NoEffectReasons:
    """One method per convention: why a change between these values has no effect; empty if it may have one."""

    values: tuple[Value, Value]
    inputs: RunAndQrels
    metric: Metric[Any]

    @property
    def _gains(self) -> set[float]:
        """The distinct gains above 0."""
        return {gain for gain in self.inputs.gains if gain > 0}

    def ties(self) -> str:
        # Ties in 64 bits are ties in 32; checking 32 bits covers both.
        free = not any(map(is_tied, to_float32(self.inputs.run).values()))
        return "no two scores of a query are equal" if free else ""

    def scores(self) -> str:
        for scores in self.inputs.run.values():
            wide = np.array(list(scores.values()), dtype=np.float64)
            with np.errstate(over="ignore", under="ignore"):
                narrow = wide.astype(np.float32)
            if len(np.unique(narrow)) < len(np.unique(wide)) or ((narrow > 0) != (wide > 0)).any():
                return ""
        return "scores of a query that differ in 64 bits also differ in 32 bits"

    def missing(self) -> str:
        return "the run has every query of the qrels" if self.inputs.answered.all() else ""

    def empty(self) -> str:
        for query, gains in self.inputs.truth.items():
            listed = self.inputs.run.get(query, {})
            if not any(gain >= 1 and item in listed and item != query for item, gain in gains.items()):
                return ""
        return "every query has a relevant item in its list"

    def own_id(self) -> str:
        has_own_id = any(query in scores for query, scores in self.inputs.run.items())
        return "" if has_own_id else "no document has the id of its query"

    def unretrieved(self) -> str:
        for query, gains in self.inputs.truth.items():
            listed = self.inputs.run.get(query, {})
            if any(gain > 0 and (item not in listed or item == query) for item, gain in gains.items()):
                return ""
        return "every relevant item was retrieved"

    def nonpositive(self) -> str:
        lowest = min((score for scores in to_float32(self.inputs.run).values() for score in scores.values()), default=1)
        return "all scores are above 0" if lowest > 0 else ""

    def grades(self) -> str:
        if self._gains <= {1}:
            return "all gains are 0 or 1"
        if self.metric.symbol != "nDCG" and min(self._gains) >= 1:
            return "the metric ignores grades, and all grades above 0 are at least 1"
        if set(self.values) == {"kept", "whole"} and all(gain == int(gain) for gain in self._gains):
            return "all gains are integers"
        return ""

    def min_grade(self) -> str:
        low, high = sorted(max(int(value or 1), 1) for value in self.values)
        between = any((low == 1 or gain >= low) and gain < high for gain in self._gains)
        return "" if between else "no grade is between the two"

    def gain(self) -> str:
        return "all gains are 0 or 1" if self._gains <= {1} else ""

    def norm(self) -> str:
        if set(self.values) != {"min", "R"}:
            return ""
        cutoff = getattr(self.metric, "k", None)
        if cutoff is None:
            return "without a cutoff min(k, R) is R"
        most = max(sum(gain > 0 for gain in gains.values()) for gains in self.inputs.truth.values())
        return "no query has more than k relevant items" if most <= cutoff else ""

    def depth(self) -> str:
        cutoff = getattr(self.metric, "k", None)
        if cutoff is not None and all(value is None or value >= cutoff for value in self.values):
            return "the metric looks no deeper than its cutoff"
        longest = max(map(len, self.inputs.run.values()))
        deep = all(value is None or value >= longest for value in self.values)  # type: ignore[operator]
        return "no list is longer" if deep else ""

    def fewest(self) -> str:
        # A document named like its query may be dropped.
        shortest = min(len(scores) - (query in scores) for query, scores in self.inputs.run.items())
        return "no list is that short" if all(shortest >= value for value in self.values) else ""  # type: ignore[operator]


MAX_LISTED_UNITS = 20


def explain_difference(
    run: Any,
    qrels: Any,
    metric: str | Metric[Any] = "nDCG@10",
    *,
    one: str | Preset,
    other: str | Preset = EQUIPOISE,
    seed: int = 0,
) -> ScoreDifference:
    """The conventions that make two libraries print different scores for one run, and the units affected.

    ``one`` and ``other`` are presets; ``run`` and ``qrels`` are dicts of dicts or paths. With up to eight
    conventions that could matter, the share of each is its average effect over all orders in which they can
    be changed (Shapley); the shares add up to the difference.
    """
    inputs = RunAndQrels.of(run, qrels)
    return attribute_difference(inputs, parse_single_metric(metric), get_preset(one), get_preset(other), seed=seed)


def parse_single_metric(metric: str | Metric[Any]) -> Metric[Any]:
    """One metric of ranked lists."""
    metrics = parse_metrics(metric, evidence=Ranking)
    if len(metrics) > 1:
        raise ParameterError(f"{metric} names {len(metrics)} metrics", hint=f"name one: {metrics[0].name}")
    return metrics[0]


def attribute_difference(
    inputs: RunAndQrels, metric: Metric[Any], one: Preset, other: Preset, *, seed: int = 0
) -> ScoreDifference:
    """``explain_difference`` on what has been read."""
    path = ConventionPath(inputs, metric, one.rules(metric), other.rules(metric))
    active, idle = _split_conventions(path)
    ends = path.figure(frozenset()), path.figure(frozenset(path.one))
    sides = [_side(preset, path, figure) for preset, figure in zip((one, other), ends, strict=True)]
    parts = shapley_values(active, path.score_of, seed=seed)
    changed = {name: path.changed_units(name, active) for name in active}
    changes = [
        ConventionEffect(
            ConventionPair.of(name, path.one, path.other),
            parts[name],
            path.alone(name),
            int(changed[name].sum()),
        )
        for name in active
    ]
    unit_indices = largest_changes(*ends)
    units = [
        UnitChange(
            str(inputs.units[at]),
            float(ends[0].per_unit[at]),
            float(ends[1].per_unit[at]),
            tuple(CONVENTIONS[name].title for name in active if changed[name][at]),
        )
        for at in unit_indices[:MAX_LISTED_UNITS]
    ]
    return ScoreDifference(
        metric=metric.name,
        one=sides[0],
        other=sides[1],
        changes=tuple(sorted(changes, key=lambda change: -abs(change.share))),
        idle=tuple(idle),
        units=tuple(units),
        changed_units=len(unit_indices),
        example=_example(path, units),
        method=_method(active),
    )


def _split_conventions(path: ConventionPath) -> tuple[list[str], list[NoEffect]]:
    """The conventions that differ: those that may matter here, and those that cannot."""
    active, idle = [], []
    for name in path.one:
        values = path.one[name], path.other[name]
        if values[0] == values[1] or not affects(name, path.metric):
            continue
        reason = no_effect_reason(name, values, path.inputs, path.metric)
        if reason:
            idle.append(NoEffect(ConventionPair.of(name, path.one, path.other), reason))
        else:
            active.append(name)
    return active, idle


def _side(preset: Preset, path: ConventionPath, figure: EmulatedScore) -> LibraryScore:
    if isnan(figure.value):
        raise UndefinedError(
            f"as {preset.name} scores, no query is left for {path.metric.name}",
            hint=_no_query_reason(path.inputs, preset.rules(path.metric)),
        )
    notes = tuple(limitation_notes(preset, [path.metric], path.inputs))
    called = preset.call(path.metric)
    return LibraryScore(preset.name, preset.title, called, preset.entry, figure.value, figure.n, notes)


def _no_query_reason(inputs: RunAndQrels, rules: Conventions) -> str:
    """Why no query is left."""
    longest = max((len(scores) for scores in inputs.compared(rules).values()), default=0)
    if longest < rules.fewest:
        return f"it needs lists of {rules.fewest} items at least, and the longest here has {longest}"
    return "check that the run and the ground truth belong together"


def _example(path: ConventionPath, units: Sequence[UnitChange]) -> WorkedExample | None:
    """The unit that differs most and is scored on both sides; else one that is left out."""
    both = [row for row in units if not isnan(row.one + row.other)]
    chosen = next(iter(both or units), None)
    if chosen is None:
        return None
    unit = next(candidate for candidate in path.inputs.units if str(candidate) == chosen.unit)
    values, sides = (chosen.one, chosen.other), (path.one, path.other)
    return worked_example(path.inputs, unit, path.metric, values, sides)


def _method(active: Sequence[str]) -> str:
    if len(active) < 2:
        return "one convention changed"
    if is_exact(active):
        return "the Shapley value, the mean effect over all orders of changing the conventions one at a time"
    return f"the mean effect over {N_SAMPLED_ORDERS} random orders of changing the conventions one at a time"
