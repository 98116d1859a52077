"""Why two programs disagree: their conventions changed one at a time, and what each change brings."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from typing import Any

from equipoise.checks.like.conventions import CONVENTIONS, Conventions, applies
from equipoise.checks.like.difference import Apart, Change, Difference, Idle, Side, UnitChange
from equipoise.checks.like.example import Example, worked_unit
from equipoise.checks.like.inert import why_inert
from equipoise.checks.like.material import Material
from equipoise.checks.like.measure import Figure
from equipoise.checks.like.notes import notes
from equipoise.checks.like.presets import OWN, Preset, preset_named
from equipoise.checks.like.shares import DRAWN_ORDERS, is_exact, shares
from equipoise.checks.like.walk import Walk, moved
from equipoise.errors import ParameterError, UndefinedError
from equipoise.evidence.ranking import Ranking
from equipoise.metrics.base import Metric
from equipoise.metrics.parse import parse

KEPT_UNITS = 20


def explain_difference(
    run: Any,
    qrels: Any,
    metric: str | Metric[Any] = "nDCG@10",
    *,
    one: str | Preset,
    other: str | Preset = OWN,
    seed: int = 0,
) -> Difference:
    """Which conventions make two programs print different figures for the same run, and on which units.

    ``one`` and ``other`` are presets; ``run`` and ``qrels`` are dicts of dicts or paths. With up to eight
    conventions that could matter, the share of each is its average effect over all orders in which they can
    be changed (Shapley); the shares add up to the difference.

    >>> run = {"q": {"a": 0.5, "b": 0.5}}
    >>> explain_difference(run, {"q": {"a": 1}}, "MRR", one="trec_eval", other="equipoise")
    <Difference MRR: trec_eval 0.5, equipoise 0.75; ties +0.25>
    """
    material = Material.of(run, qrels)
    return difference(material, single(metric), preset_named(one), preset_named(other), seed=seed)


def single(metric: str | Metric[Any]) -> Metric[Any]:
    """One metric of ranked lists."""
    found = parse(metric, evidence=Ranking)
    if len(found) > 1:
        raise ParameterError(f"{metric} names {len(found)} metrics", hint=f"ask for one: {found[0].name}")
    return found[0]


def difference(
    material: Material, metric: Metric[Any], one: Preset, other: Preset, *, seed: int = 0
) -> Difference:
    """``explain_difference`` on what has been read."""
    walk = Walk(material, metric, one.rules(metric), other.rules(metric))
    active, idle = _sorted_out(walk)
    ends = walk.figure(frozenset()), walk.figure(frozenset(walk.one))
    sides = [_side(preset, walk, figure) for preset, figure in zip((one, other), ends, strict=True)]
    parts = shares(active, walk.worth, seed=seed)
    touched = {name: walk.touched(name, active) for name in active}
    changes = [
        Change(Apart.of(name, walk.one, walk.other), parts[name], walk.alone(name), int(touched[name].sum()))
        for name in active
    ]
    places = moved(*ends)
    units = [
        UnitChange(
            str(material.units[at]),
            float(ends[0].per_unit[at]),
            float(ends[1].per_unit[at]),
            tuple(CONVENTIONS[name].title for name in active if touched[name][at]),
        )
        for at in places[:KEPT_UNITS]
    ]
    return Difference(
        metric=metric.name,
        one=sides[0],
        other=sides[1],
        changes=tuple(sorted(changes, key=lambda change: -abs(change.share))),
        idle=tuple(idle),
        units=tuple(units),
        changed_units=len(places),
        example=_example(walk, units),
        method=_method(active),
    )


def _sorted_out(walk: Walk) -> tuple[list[str], list[Idle]]:
    """The conventions that differ: those that may matter here, and those that cannot."""
    active, idle = [], []
    for name in _differing(walk.one, walk.other, walk.metric):
        values = walk.one[name], walk.other[name]
        reason = why_inert(name, values, walk.material, walk.metric)
        if reason:
            idle.append(Idle(Apart.of(name, walk.one, walk.other), reason))
        else:
            active.append(name)
    return active, idle


def _differing(one: Conventions, other: Conventions, metric: Metric[Any]) -> list[str]:
    return [name for name in one if one[name] != other[name] and applies(name, metric)]


def _side(preset: Preset, walk: Walk, figure: Figure) -> Side:
    if isnan(figure.value):
        raise UndefinedError(
            f"as {preset.name} scores, no query is left for {walk.metric.name}",
            hint=_why_none(walk.material, preset.rules(walk.metric)),
        )
    said = tuple(notes(preset, [walk.metric], walk.material))
    called = preset.call(walk.metric)
    return Side(preset.name, preset.title, called, preset.entry, figure.value, figure.n, said)


def _why_none(material: Material, rules: Conventions) -> str:
    """Why no query is left."""
    longest = max((len(scores) for scores in material.seen(rules).values()), default=0)
    if longest < rules.fewest:
        return f"it needs lists of {rules.fewest} items at least, and the longest here has {longest}"
    return "see whether the run and the truth belong together"


def _example(walk: Walk, units: Sequence[UnitChange]) -> Example | None:
    """The unit that differs most and is scored on both sides; else one that is left out."""
    both = [each for each in units if not isnan(each.one + each.other)]
    chosen = next(iter(both or units), None)
    if chosen is None:
        return None
    unit = next(each for each in walk.material.units if str(each) == chosen.unit)
    values, sides = (chosen.one, chosen.other), (walk.one, walk.other)
    return worked_unit(walk.material, unit, walk.metric, values, sides)


def _method(active: Sequence[str]) -> str:
    if len(active) < 2:
        return "one convention changed"
    if is_exact(active):
        return "Shapley: the average over all orders in which the conventions can be changed one at a time"
    return f"the average over {DRAWN_ORDERS} drawn orders of changing the conventions one at a time"
