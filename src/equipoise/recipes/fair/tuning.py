"""The choice: the best configuration as people would pick it, and its score on held-out questions."""

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
from equipoise.stats.redrawn import DEGREES, DRAWS
from equipoise.stats.result import Result
from equipoise.stats.tabled import result_of_values
from equipoise.stats.terms import BUDGET, DATA, FOLDS, GRID, MATCHER, SPENT, TOKENIZER, TRIALS
from equipoise.tune.budget import best_within, frontier
from equipoise.tune.nested import Nested, best_trial, repeated_choice
from equipoise.tune.record import FoldChoice, Trial, Tuning
from equipoise.tune.redraw import RESAMPLED_SPLITS, choice_errors, nested_interval
from equipoise.types import Bools, Floats, Ints

Point = tuple[Chunking, int]
"""A way of cutting, and how many chunks are retrieved."""

Split = list[Fold]

TOKENS = "tokens"
REDRAWS = 4000
"""The standard error of a difference is then known to within 1 %, and p below 0.05 to within a tenth."""
_REDRAWN = 1
"""The stream of randomness of the bootstrap; the folds have their own."""


@dataclass(frozen=True)
class Tuned:
    """The record of a tuning and the result on held-out questions.

    ``best`` is what to deploy; ``choosable`` are the chunkings that could have been; ``scored_by`` is what
    each question was scored by in most splits, chosen without it.
    """

    tuning: Tuning
    result: Result
    best: Chunking
    choosable: tuple[Chunking, ...]
    scored_by: tuple[Point, ...]
    configurations: int
    tied_questions: int
    """How many questions were scored by a fractional hit, in any split."""


@dataclass(frozen=True)
class _Score:
    """The score that is reported: a value and a trial a question, and how sure it is.

    ``trial_of`` has a row a split. Without folds, nothing is known of the interval but what the values say.
    """

    values: Floats
    trial_of: Ints
    usual_trial: Ints
    split_sd: float | None = None
    choices: tuple[FoldChoice, ...] = ()
    errors: Floats | None = None
    interval: Interval | None = None


def answer_splits(material: Material, settings: Settings) -> tuple[list[Split], str]:
    """Random splits into folds, the same for every model, and a note where there are fewer folds than asked.

    Questions of one answer, or nearly one, stay together; the categories are spread evenly. There are none
    where nothing is to be nested, and one where every answer is a fold of its own: all splits are then equal.
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
    rng = np.random.default_rng(settings.seed)
    made = [
        folds(
            material.ids,
            parts,
            stratify=[question.category for question in material.questions],
            groups=material.groups,
            rng=rng,
        )
        for _ in range(1 if parts == answers else settings.repeats)
    ]
    return made, note


def tune(
    system: str,
    observed: Mapping[Chunking, Observed],
    material: Material,
    settings: Settings,
    splits: list[Split],
) -> Tuned:
    """Choose on all questions, and in each split fold by fold without those of the fold."""
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
        _nested(values, splits, trials, costs, allowed, material, settings)
        if splits
        else _Score(values[best], np.full((1, len(material.ids)), best), np.full(len(material.ids), best))
    )
    edge = _frontier(observed, settings)
    tuning = Tuning(
        metric=METRIC if splits else ACCURACY,
        trials=trials,
        best=best,
        baseline=points.index(settings.baseline),
        optimistic=trials[best].value,
        nested=float(score.values.mean()) if splits else nan,
        folds=score.choices,
        frontier=edge,
        cost_unit=TOKENS,
        budget=settings.budget,
        within_budget=None if settings.budget is None else best_within(edge, settings.budget),
        tried=configurations,
        splits=max(1, len(splits)),
        split_sd=score.split_sd,
    )
    return Tuned(
        tuning,
        _result(system, score, tuning, material, settings),
        points[best][0],
        tuple(dict.fromkeys(points[place][0] for place in np.flatnonzero(allowed).tolist())),
        tuple(points[place] for place in score.usual_trial.tolist()),
        configurations,
        _tied_questions(values, score.trial_of),
    )


def _tied_questions(values: Floats, trial_of: Ints) -> int:
    """How many questions are neither hit nor missed in some split: tied scores leave their rank open."""
    scores = values[trial_of, np.arange(values.shape[1])]
    return int(np.count_nonzero(~np.isin(scores, (0.0, 1.0)).all(axis=0)))


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
    splits: list[Split],
    trials: tuple[Trial, ...],
    costs: Floats | None,
    allowed: Bools,
    material: Material,
    settings: Settings,
) -> _Score:
    """Every question scored by what was chosen without it, and bootstrap errors of the whole procedure."""
    nested = repeated_choice(values, splits, costs=costs, allowed=allowed)
    # The same questions are drawn for every model, so that their errors pair.
    errors = choice_errors(
        values,
        splits[0],
        splits=min(RESAMPLED_SPLITS, len(splits)),
        costs=costs,
        allowed=allowed,
        clusters=material.groups,
        resamples=REDRAWS,
        rng=np.random.default_rng([settings.seed, _REDRAWN]),
    )
    return _Score(
        nested.values,
        nested.trial_of,
        nested.usual_trial,
        None if isnan(nested.split_sd) else nested.split_sd,
        _choices(nested, trials, splits),
        errors,
        nested_interval(nested, errors),
    )


def _choices(nested: Nested, trials: tuple[Trial, ...], splits: list[Split]) -> tuple[FoldChoice, ...]:
    """What each fold of a single split chose; of several splits, what was chosen, the most frequent first."""
    sizes = np.array([len(test) for parts in splits for _, test in parts])
    folds_of: dict[int, list[int]] = {}
    for fold, place in enumerate(nested.chosen.tolist()):
        folds_of.setdefault(place if len(splits) > 1 else fold, []).append(fold)
    return tuple(
        FoldChoice(
            trials[nested.chosen[those[0]]].params,
            float(np.mean(nested.inner[those])),
            float(np.average(nested.outer[those], weights=sizes[those])),
            int(sizes[those].sum()),
            len(those),
        )
        for those in sorted(folds_of.values(), key=len, reverse=True)
    )


def _result(system: str, score: _Score, tuning: Tuning, material: Material, settings: Settings) -> Result:
    """The result; its chance level is that of the configurations that scored it."""
    chance = np.array([nan if trial.chance is None else trial.chance for trial in tuning.trials])
    return result_of_values(
        system,
        material.ids,
        {settings.metric: score.values},
        chance={settings.metric: float(chance[score.trial_of].mean())},
        intervals=None if score.interval is None else {settings.metric: score.interval},
        errors=None if score.errors is None else {settings.metric: score.errors},
        seed=settings.seed,
        settings=_terms(tuning, material, settings)
        | ({} if score.errors is None else _error_terms(tuning, material, settings)),
    )


def _terms(tuning: Tuning, material: Material, settings: Settings) -> dict[str, Any]:
    """On what terms the model was tuned and measured, so that no other is compared with it unawares."""
    return {
        MATCHER: settings.matcher,
        TOKENIZER: settings.tokenizer_name,
        FOLDS: max(1, tuning.fold_count),
        TRIALS: len(tuning.grid),
        GRID: {name: list(values) for name, values in settings.axes.items()},
        SPENT: tuning.trials[tuning.best].cost,
        DATA: material.identity,
        **({} if settings.budget is None else {BUDGET: settings.budget}),
    }


def _error_terms(tuning: Tuning, material: Material, settings: Settings) -> dict[str, Any]:
    """Names the resamples, which are equal for every model on the same questions, folds, seed and number."""
    numbers = (REDRAWS, settings.seed, tuning.fold_count, min(RESAMPLED_SPLITS, tuning.splits))
    drawn = "\0".join([*map(str, numbers), *material.ids, *map(str, material.groups)])
    return {
        DRAWS: hashlib.sha256(drawn.encode()).hexdigest()[:16],
        DEGREES: max(1, len(set(material.groups)) - 1),
    }
