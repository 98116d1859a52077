"""Where a library itself would have stumbled over the data: said beside the figure, never passed over."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from equipoise.checks.like.conventions import Conventions
from equipoise.checks.like.material import Material
from equipoise.checks.like.measure import figure_under
from equipoise.checks.like.presets import (
    EMPTY,
    FRACTIONS,
    NEGATIVE,
    OTHER_QUERIES,
    TIES,
    UNJUDGED,
    Preset,
    form_of,
)
from equipoise.checks.like.run_rules import is_tied
from equipoise.checks.like.torch_order import PICK, SORT
from equipoise.metrics.base import Metric
from equipoise.stats.numbers import figure

PLACES = 4


def notes(preset: Preset, metrics: Sequence[Metric[Any]], material: Material) -> list[str]:
    """One sentence for everything in the data that the library does not take as we do."""
    said = []
    for what, stumble in preset.stumbles.items():
        felt = [each for each in metrics if not stumble.forms or form_of(each) in stumble.forms]
        if what == TIES:
            said += [_unruled(stumble.sentence, material, each, preset.rules(each)) for each in felt]
        elif felt and _PRESENT[what](material):
            said.append(stumble.sentence)
    return [sentence for sentence in said if sentence]


def _unruled(sentence: str, material: Material, metric: Metric[Any], rules: Conventions) -> str:
    """That nothing decides the order of equal scores, and how far it moves the figure."""
    if rules.ties not in ("input", SORT, PICK) or not any(map(is_tied, material.seen(rules).values())):
        return ""
    # Fewer hits can raise a mean over hits, so the best order is then no upper bound.
    if rules.norm == "hits" and metric.symbol == "MAP" and getattr(metric, "k", None) is not None:
        return f"{metric.name}: {sentence}"
    low, high = (
        figure_under(material, metric, replace(rules, ties=ties)).value
        for ties in ("pessimistic", "optimistic")
    )
    if not low < high:
        return ""
    return (
        f"{metric.name}: {sentence}; any order gives between {figure(low, PLACES)} and {figure(high, PLACES)}"
    )


def _unjudged(material: Material) -> bool:
    return bool(material.unjudged)


def _fractions(material: Material) -> bool:
    return any(gain != int(gain) for gains in material.truth.values() for gain in gains.values())


def _negative(material: Material) -> bool:
    return any(gain < 0 for gains in material.truth.values() for gain in gains.values())


def _empty(material: Material) -> bool:
    return any(not any(gain > 0 for gain in gains.values()) for gains in material.truth.values())


def _other_queries(material: Material) -> bool:
    return bool(material.unjudged) or not material.answered.all()


_PRESENT: Mapping[str, Callable[[Material], bool]] = {
    UNJUDGED: _unjudged,
    FRACTIONS: _fractions,
    NEGATIVE: _negative,
    EMPTY: _empty,
    OTHER_QUERIES: _other_queries,
}
