"""The choice: the best configuration as people would pick it, and what such picking is worth."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from equipoise.data.split import Fold, folds
from equipoise.errors import InputError, ParameterError
from equipoise.recipes.fair.chunking import Chunking
from equipoise.recipes.fair.engine import Observed
from equipoise.recipes.fair.material import Material
from equipoise.recipes.fair.result import METRIC
from equipoise.recipes.fair.settings import Settings
from equipoise.stats.numbers import count, figure
from equipoise.stats.redrawn import DRAWS
from equipoise.stats.result import Result
from equipoise.stats.tabled import result_of_values
from equipoise.tune.budget import best_within, frontier
from equipoise.tune.nested import Nested, nested_choice
from equipoise.tune.record import FoldChoice, Trial, Tuning
from equipoise.tune.redraw import choice_errors, nested_interval
from equipoise.types import Bools, Floats

Point = tuple[Chunking, int]
"""A way of cutting, and how many chunks are retrieved."""

TOKENS = "tokens"
REDRAWS = 10_000
"""As many as the test flips signs: the smallest p must survive a correction for many pairs."""
_REDRAWN = 1
"""The stream of randomness of the redrawn choices; the folds have their own."""


@dataclass(frozen=True)
class Tuned:
    """The record of a tuning and the result on questions that had no say.

    ``best`` is what to deploy; ``scored_by`` is what each question was scored by, chosen without it.
    """

    tuning: Tuning
    result: Result
    best: Chunking
    scored_by: tuple[Point, ...]
    configurations: int


def answer_folds(material: Material, settings: Settings) -> tuple[list[Fold], str]:
    """The folds, the same for every model, and a note where there are fewer than were asked for.

    Questions with one answer stay together; the categories are spread evenly.
    """
    answers = len(set(material.groups))
    if answers < 2:
        raise InputError(
            f"all {len(material.questions)} questions have one answer, so none is left to judge a choice "
            "that was made without it",
            hint="add questions with other answers",
        )
    parts = min(settings.folds, answers)
    note = (
        ""
        if parts == settings.folds
        else f"{parts} folds instead of {settings.folds}: there are {answers} different answers"
    )
    made = folds(
        material.ids,
        parts,
        stratify=[question.category for question in material.questions],
        groups=material.groups,
        rng=np.random.default_rng(settings.seed),
    )
    return made, note


def tune(
    system: str,
    observed: Mapping[Chunking, Observed],
    material: Material,
    settings: Settings,
    parts: list[Fold],
) -> Tuned:
    """Choose on all questions, and fold by fold without those of the fold."""
    points = [(chunking, k) for chunking in settings.chunkings for k in settings.tried_ks]
    configurations = len(points)
    if settings.baseline not in points:
        points.append(settings.baseline)
    trials = tuple(_trial(observed, chunking, k, settings) for chunking, k in points)
    values = np.array([observed[chunking].hits[k - 1] for chunking, k in points])
    allowed = _allowed(trials, configurations, settings)
    chosen = nested_choice(values, parts, allowed=allowed)
    # The same questions are drawn for every model, so that their errors pair.
    errors = choice_errors(
        values,
        parts,
        allowed=allowed,
        clusters=material.groups,
        resamples=REDRAWS,
        rng=np.random.default_rng([settings.seed, _REDRAWN]),
    )
    every = [
        _trial(observed, chunking, k, settings)
        for chunking in settings.chunkings
        for k in range(1, max(settings.top_ks) + 1)
    ]
    edge = frontier(every)
    tuning = Tuning(
        metric=METRIC,
        trials=trials,
        best=chosen.best,
        baseline=points.index(settings.baseline),
        optimistic=trials[chosen.best].value,
        nested=chosen.value,
        folds=_choices(chosen, trials, parts),
        frontier=edge,
        cost_unit=TOKENS,
        budget=settings.budget,
        within_budget=None if settings.budget is None else best_within(edge, settings.budget),
    )
    result = _result(system, chosen, errors, tuning, material, settings)
    scored_by = {
        unit: points[place]
        for place, (_, test) in zip(chosen.chosen.tolist(), parts, strict=True)
        for unit in test.tolist()
    }
    return Tuned(
        tuning,
        result,
        points[chosen.best][0],
        tuple(scored_by[unit] for unit in range(len(material.ids))),
        configurations,
    )


def _trial(observed: Mapping[Chunking, Observed], chunking: Chunking, k: int, settings: Settings) -> Trial:
    seen = observed[chunking]
    return Trial(
        params=settings.params(chunking, k),
        value=float(seen.hits[k - 1].mean()),
        chance=float(seen.chance[k - 1]),
        cost=float(seen.tokens[k - 1]),
        reachable=seen.search.reachable,
    )


def _allowed(trials: tuple[Trial, ...], configurations: int, settings: Settings) -> Bools:
    """What may be chosen: the grid, as far as the budget goes. A baseline outside the grid is no choice."""
    inside = np.arange(len(trials)) < configurations
    if settings.budget is None:
        return inside
    costs = np.array([trial.cost for trial in trials], dtype=np.float64)
    affordable = inside & (costs <= settings.budget)
    if not affordable.any():
        raise ParameterError(
            f"no configuration retrieves {figure(settings.budget, 0)} tokens or fewer: the cheapest takes "
            f"{count(round(costs[inside].min()))} in the mean",
            hint="raise the budget, or add smaller chunks to the grid",
        )
    return np.asarray(affordable)


def _choices(chosen: Nested, trials: tuple[Trial, ...], parts: list[Fold]) -> tuple[FoldChoice, ...]:
    return tuple(
        FoldChoice(trials[place].params, float(inner), float(outer), len(test))
        for place, inner, outer, (_, test) in zip(
            chosen.chosen.tolist(), chosen.inner, chosen.outer, parts, strict=True
        )
    )


def _result(
    system: str,
    chosen: Nested,
    errors: Floats,
    tuning: Tuning,
    material: Material,
    settings: Settings,
) -> Result:
    """The honest result; its chance level is that of the configurations that scored it."""
    sizes = [choice.n for choice in tuning.folds]
    luck = [tuning.trials[place].chance or 0.0 for place in chosen.chosen.tolist()]
    return result_of_values(
        system,
        material.ids,
        {METRIC: chosen.values},
        chance={METRIC: float(np.average(luck, weights=sizes))},
        intervals={METRIC: nested_interval(chosen, errors)},
        errors={METRIC: errors},
        seed=settings.seed,
        settings={
            "matcher": settings.matcher,
            "folds": len(sizes),
            "configurations": len(tuning.trials),
            DRAWS: _draws(material, settings, len(sizes)),
            **({} if settings.budget is None else {"budget": settings.budget}),
        },
    )


def _draws(material: Material, settings: Settings, parts: int) -> str:
    """Names what was drawn anew: the same for every model on the same questions, folds and seed."""
    drawn = "\0".join([str(settings.seed), str(parts), *material.ids, *map(str, material.groups)])
    return hashlib.sha256(drawn.encode()).hexdigest()[:16]
