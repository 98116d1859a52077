"""All models on one score: every pair compared on the same redraws, and the bands that this allows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from math import isnan
from typing import Any

import numpy as np

from equipoise.recipes.concepts.blends import COMPOSITE, Blend, Term
from equipoise.recipes.concepts.measured import Measured
from equipoise.recipes.concepts.spread import Spread, combined
from equipoise.recipes.concepts.truth import CORRECTION, chance_p, truth_contrasts
from equipoise.report.concepts_edition import Standing
from equipoise.stats.bands import tie_bands
from equipoise.stats.contrast import Contrast
from equipoise.stats.family import CORRECTIONS, adjust
from equipoise.stats.interval import Interval
from equipoise.stats.numbers import between
from equipoise.stats.result import Estimate
from equipoise.types import Direction


def standing(measured: Mapping[str, Measured], *, level: float = 0.95) -> Standing:
    """The models on the score of one task."""
    first = next(iter(measured.values()))
    blend, sampling = first.blend, first.observed.sampling
    return Standing(
        score=blend.name,
        title=blend.title,
        formula=blend.formula,
        units=f"{sampling.count:,} {sampling.unit}",
        drawn=sampling.told,
        luck=blend.luck,
        method=_method(measured),
        readings=blend.readings,
        chance_p=chance_p(measured),
        truth=blend.truth,
        truth_contrasts=truth_contrasts(measured, level=level),
        terms={
            str(term): {
                name: _entering(term, each.observed.parts[term.part]) for name, each in measured.items()
            }
            for term in blend.terms
        },
        parts=_by_name({name: each.observed.parts for name, each in measured.items()}),
        beside=_by_name({name: each.observed.beside for name, each in measured.items()}),
        **_claims(
            {name: each.estimate for name, each in measured.items()},
            {name: each.spread for name, each in measured.items()},
            level,
        ),
    )


def _method(measured: Mapping[str, Measured]) -> str:
    """How the score was made, and how much it would move with another seed."""
    method = next(iter(measured.values())).observed.method
    ends = [
        f"{name} {between(min(known), max(known))}"
        for name, each in measured.items()
        if (known := [value for value in each.observed.others if not isnan(value)])
    ]
    seeds = len(next(iter(measured.values())).observed.others)
    return f"{method}; with {seeds} other seeds the score is: {', '.join(ends)}" if ends else method


def composite(
    scores: Mapping[str, Mapping[str, Measured]], weights: Mapping[str, float], *, level: float = 0.95
) -> Standing:
    """The weighted mean of the scores of each model; ``scores`` are by model and task."""
    total = sum(weights.values())
    shares = {task: weight / total for task, weight in weights.items()}
    spreads = {
        name: combined([own[task].spread for task in shares], list(shares.values()))
        for name, own in scores.items()
    }
    blends = [own.blend for own in next(iter(scores.values())).values() if own.blend.task in shares]
    bounds = _weighed(blends, shares, 0), _weighed(blends, shares, 1)
    estimates = {}
    for name, own in scores.items():
        value = sum(share * own[task].value for task, share in shares.items())
        estimates[name] = Estimate(
            metric=COMPOSITE,
            value=value,
            interval=_composite_reach(own, spreads[name], value, level).clipped(bounds),
            n=sum(own[task].estimate.n for task in shares),
            undefined=0,
            chance=sum(share * own[task].estimate.chance for task, share in shares.items()),
            better=Direction.UP,
            unit="blend",
        )
    return Standing(
        score=COMPOSITE,
        title="Composite",
        formula=_formula(blends, shares),
        drawn="the units of every score, each score by itself",
        **_claims(estimates, spreads, level),
    )


def _composite_reach(own: Mapping[str, Measured], spread: Spread, value: float, level: float) -> Interval:
    lost = [each.blend.name for each in own.values() if isnan(each.value)]
    return Interval.unknown(f"{lost[0]} is undefined", level=level) if lost else spread.interval(value, level)


def _entering(term: Term, part: Estimate) -> Estimate:
    """A part as it enters the blend; an interval that is taken from 1 changes its ends."""
    ends = sorted((term.entering(part.interval.low), term.entering(part.interval.high)))
    return replace(
        part,
        value=term.entering(part.value),
        interval=replace(part.interval, low=ends[0], high=ends[1]) if part.interval.known else part.interval,
        chance=term.entering(part.chance),
        better=term.better,
    )


def _weighed(blends: Sequence[Blend], shares: Mapping[str, float], end: int) -> float:
    """One end of what the composite can be."""
    return sum(shares[each.task] * each.bounds[end] for each in blends)


def _formula(blends: Sequence[Blend], shares: Mapping[str, float]) -> str:
    if len(set(shares.values())) == 1:
        return f"({' + '.join(each.name for each in blends)}) / {len(blends)}"
    return " + ".join(f"{shares[each.task]:.3g} x {each.name}" for each in blends)


def _by_name(figures: Mapping[str, Mapping[str, Estimate]]) -> dict[str, dict[str, Estimate]]:
    names = dict.fromkeys(name for own in figures.values() for name in own)
    return {name: {model: own[name] for model, own in figures.items() if name in own} for name in names}


def _claims(estimates: Mapping[str, Estimate], spreads: Mapping[str, Spread], level: float) -> dict[str, Any]:
    """What the errors allow to say of every pair, and of the order."""
    models = list(estimates)
    contrasts = [
        _contrast(estimates[a], estimates[b], a, b, spreads[a].minus(spreads[b]), level)
        for a, b in combinations(models, 2)
    ]
    adjusted = adjust([each.p for each in contrasts], CORRECTION)
    contrasts = [replace(each, adjusted=float(p)) for each, p in zip(contrasts, adjusted, strict=True)]
    place = {name: at for at, name in enumerate(models)}
    matrix = np.full((len(models), len(models)), np.nan)
    for each in contrasts:
        matrix[place[each.a], place[each.b]] = each.adjusted
    scores = [estimates[name].value for name in models]
    bands = tie_bands(scores, matrix, better=Direction.UP, alpha=round(1 - level, 12))
    tested = sum(not np.isnan(each.p) for each in contrasts)
    title = CORRECTIONS[CORRECTION][1]
    return {
        "estimates": dict(estimates),
        "contrasts": tuple(contrasts),
        "letters": dict(zip(models, bands.letters, strict=True)),
        "order": tuple(models[at] for at in bands.order),
        "family": f"{title} over the {tested} pairs" if tested > 1 else "",
    }


def _contrast(one: Estimate, other: Estimate, a: str, b: str, spread: Spread, level: float) -> Contrast:
    difference = one.value - other.value
    interval = spread.interval(difference, level)
    return Contrast(
        metric=one.metric,
        a=a,
        b=b,
        better=Direction.UP,
        difference=difference,
        interval=interval,
        p=spread.p(difference),
        adjusted=float("nan"),
        n=min(one.n, other.n),
        undefined=0,
        reason=interval.reason,
    )
