"""The choice: the best configuration as people would pick it, and what such picking is worth."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from math import isnan, nan
from typing import Any

import numpy as np

from equipoise.data.split import Fold, folds
from equipoise.errors import InputError, ParameterError
from equipoise.recipes.fair.chunking import Chunking
from equipoise.recipes.fair.engine import Observed
from equipoise.recipes.fair.material import Material
from equipoise.recipes.fair.result import ACCURACY, METRIC
from equipoise.recipes.fair.settings import Settings
from equipoise.stats.interval import Interval
from equipoise.stats.numbers import count, figure
from equipoise.stats.redrawn import DRAWS
from equipoise.stats.result import Result
from equipoise.stats.tabled import result_of_values
from equipoise.stats.terms import BUDGET, DATA, FOLDS, GRID, MATCHER, SPENT, TOKENIZER, TRIALS
from equipoise.tune.budget import best_within, frontier
from equipoise.tune.nested import Nested, best_trial, nested_choice
from equipoise.tune.record import FoldChoice, Trial, Tuning
from equipoise.tune.redraw import choice_errors, nested_interval
from equipoise.types import Bools, Floats, Ints

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

    ``best`` is what to deploy; ``choosable`` are the chunkings that could have been; ``scored_by`` is what
    each question was scored by, chosen without it.
    """

    tuning: Tuning
    result: Result
    best: Chunking
    choosable: tuple[Chunking, ...]
    scored_by: tuple[Point, ...]
    configurations: int


@dataclass(frozen=True)
class _Score:
    """The figure that is reported: a value and a trial a question, and how sure it is.

    Without folds, nothing is known of the interval but what the values say.
    """

    values: Floats
    trial_of: Ints
    choices: tuple[FoldChoice, ...] = ()
    errors: Floats | None = None
    interval: Interval | None = None


def answer_folds(material: Material, settings: Settings) -> tuple[list[Fold], str]:
    """The folds, the same for every model, and a note where there are fewer than were asked for.

    Questions of one answer, or nearly one, stay together; the categories are spread evenly. There are none
    where nothing is to be nested.
    """
    if not settings.nested:
        return [], ""
    answers, total = len(set(material.groups)), len(material.questions)
    if answers < 2:
        subject = "the only question has" if total == 1 else f"all {total} questions have"
        raise InputError(
            f"{subject} one answer, so none is left to judge a choice that was made without it",
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
    costs = _costs(trials, settings)
    best = best_trial(values, costs=costs, allowed=allowed)
    score = (
        _nested(values, parts, trials, costs, allowed, material, settings)
        if parts
        else _Score(values[best], np.full(len(material.ids), best))
    )
    edge = _frontier(observed, settings)
    tuning = Tuning(
        metric=METRIC if parts else ACCURACY,
        trials=trials,
        best=best,
        baseline=points.index(settings.baseline),
        optimistic=trials[best].value,
        nested=float(score.values.mean()) if parts else nan,
        folds=score.choices,
        frontier=edge,
        cost_unit=TOKENS,
        budget=settings.budget,
        within_budget=None if settings.budget is None else best_within(edge, settings.budget),
        tried=configurations,
    )
    return Tuned(
        tuning,
        _result(system, score, tuning, material, settings),
        points[best][0],
        tuple(dict.fromkeys(points[place][0] for place in np.flatnonzero(allowed).tolist())),
        tuple(points[place] for place in score.trial_of.tolist()),
        configurations,
    )


def _trial(observed: Mapping[Chunking, Observed], chunking: Chunking, k: int, settings: Settings) -> Trial:
    seen = observed[chunking]
    chance = float(seen.chance[k - 1])
    return Trial(
        params=settings.params(chunking, k),
        value=float(seen.hits[k - 1].mean()),
        chance=None if isnan(chance) else chance,
        cost=float(seen.tokens[k - 1]),
        reachable=None if settings.joins else seen.search.reachable,
    )


def _frontier(observed: Mapping[Chunking, Observed], settings: Settings) -> tuple[Trial, ...]:
    """The best accuracy for every price, at every top_k up to the largest."""
    return frontier(
        [
            _trial(observed, chunking, k, settings)
            for chunking in settings.chunkings
            for k in range(1, max(settings.top_ks) + 1)
        ]
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


def _costs(trials: tuple[Trial, ...], settings: Settings) -> Floats | None:
    """What decides between equal accuracies: fewer tokens; with the source's rule, the order of the grid."""
    if settings.joins:
        return None
    return np.array([trial.cost for trial in trials], dtype=np.float64)


def _nested(
    values: Floats,
    parts: list[Fold],
    trials: tuple[Trial, ...],
    costs: Floats | None,
    allowed: Bools,
    material: Material,
    settings: Settings,
) -> _Score:
    """Every question scored by what was chosen without it, and how far off that is when all is redrawn."""
    chosen = nested_choice(values, parts, costs=costs, allowed=allowed)
    # The same questions are drawn for every model, so that their errors pair.
    errors = choice_errors(
        values,
        parts,
        costs=costs,
        allowed=allowed,
        clusters=material.groups,
        resamples=REDRAWS,
        rng=np.random.default_rng([settings.seed, _REDRAWN]),
    )
    trial_of = np.empty(len(material.ids), dtype=np.int64)
    for place, (_, test) in zip(chosen.chosen.tolist(), parts, strict=True):
        trial_of[test] = place
    choices = _choices(chosen, trials, parts)
    return _Score(chosen.values, trial_of, choices, errors, nested_interval(chosen, errors))


def _choices(chosen: Nested, trials: tuple[Trial, ...], parts: list[Fold]) -> tuple[FoldChoice, ...]:
    return tuple(
        FoldChoice(trials[place].params, float(inner), float(outer), len(test))
        for place, inner, outer, (_, test) in zip(
            chosen.chosen.tolist(), chosen.inner, chosen.outer, parts, strict=True
        )
    )


def _result(system: str, score: _Score, tuning: Tuning, material: Material, settings: Settings) -> Result:
    """The result; its chance level is that of the configurations that scored it."""
    luck = [tuning.trials[place].chance for place in score.trial_of.tolist()]
    return result_of_values(
        system,
        material.ids,
        {settings.metric: score.values},
        chance={settings.metric: float(np.mean([nan if each is None else each for each in luck]))},
        intervals=None if score.interval is None else {settings.metric: score.interval},
        errors=None if score.errors is None else {settings.metric: score.errors},
        seed=settings.seed,
        settings=_terms(tuning, material, settings)
        | ({} if score.errors is None else {DRAWS: _draws(material, settings, len(tuning.folds))}),
    )


def _terms(tuning: Tuning, material: Material, settings: Settings) -> dict[str, Any]:
    """On what terms the model was tuned and measured, so that no other is compared with it unawares."""
    return {
        MATCHER: settings.matcher,
        TOKENIZER: settings.tokenizer_name,
        FOLDS: max(1, len(tuning.folds)),
        TRIALS: len(tuning.grid),
        GRID: {name: list(values) for name, values in settings.axes.items()},
        SPENT: tuning.trials[tuning.best].cost,
        DATA: material.identity,
        **({} if settings.budget is None else {BUDGET: settings.budget}),
    }


def _draws(material: Material, settings: Settings, parts: int) -> str:
    """Names what was drawn anew: the same for every model on the same questions, folds, seed and number."""
    drawn = "\0".join(
        [str(REDRAWS), str(settings.seed), str(parts), *material.ids, *map(str, material.groups)]
    )
    return hashlib.sha256(drawn.encode()).hexdigest()[:16]
