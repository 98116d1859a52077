"""The choice: the best configuration as people would pick it, and its score on held-out questions."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isnan, nan
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.config import StatsConfig
from equipoise.domains.fair.answer_evidence import AnswerRanking, rank_answers
from equipoise.domains.fair.chunk_index import ChunkedDocuments, ChunkingParams, IndexedChunks
from equipoise.domains.fair.model_result import ACCURACY, METRIC
from equipoise.errors import InputError, ParameterError
from equipoise.io.splits import Fold, kfold_splits
from equipoise.metrics.ranking_functions import hit_rate
from equipoise.models.memory_cache import Truncation, dense_models, measure_truncation
from equipoise.stats.alignment import BUDGET, DATA, FOLDS, GRID, MATCHER, SPENT, TOKENIZER, TRIALS
from equipoise.stats.estimate import result_from_values
from equipoise.stats.formatting import format_count, format_value
from equipoise.stats.resampled_contrasts import ERROR_DF, RESAMPLE_ID
from equipoise.tuning.grid import FoldSelection, Trial, TuningRecord, best_within_budget, pareto_frontier
from equipoise.tuning.nested_cv import (
    RESAMPLED_SPLITS,
    NestedResult,
    nested_interval,
    repeated_choice,
    select_best,
    selection_errors,
)
from equipoise.types import Bools, Floats, Ints, Role

if TYPE_CHECKING:
    from equipoise.domains.fair.answer_matching import AnswerMatcher
    from equipoise.domains.fair.config import FairConfig
    from equipoise.domains.fair.dataset import QADataset
    from equipoise.models.retriever import Retriever
    from equipoise.models.worker_pool import ExecutorMap
    from equipoise.stats.intervals import Interval
    from equipoise.stats.result import Result

# One model over the whole grid: every chunk embedded once, one search a chunking, every top_k from it.

Progress = Callable[[str], None]
"""Called at the start of a step with what is being done."""


@dataclass(frozen=True)
class GridEvidence:
    """What one chunking showed: for every top_k from 1 to the depth, who was answered and at what price.

    ``hits`` has a row a top_k and a column a question; ``chance`` and ``tokens`` a number a top_k, the mean
    over the questions.
    """

    cut: ChunkedDocuments
    search: AnswerRanking
    hits: Floats
    chance: Floats
    tokens: Floats
    truncation: Truncation | None
    """Of the model that reads least; None where nothing is embedded."""


def run_grid(
    system: Retriever,
    shelved: dict[ChunkingParams, IndexedChunks],
    material: QADataset,
    depth: int,
    matcher: AnswerMatcher,
    step: Progress,
    over: ExecutorMap | None = None,
) -> dict[ChunkingParams, GridEvidence]:
    """Let one system answer all questions from all chunkings, each at every top_k up to the depth.

    The system should be a remembering one, so that no text is embedded twice. ``over`` embeds elsewhere.
    """
    _embed_all(system, [each.cut for each in shelved.values()], material, over)
    observed = {}
    for chunking, shelf in shelved.items():
        step(f"{system.card.name}: {chunking.chunker} {chunking.chunk_size}/{chunking.overlap}")
        observed[chunking] = _observe(system, shelf, material, depth, matcher)
    return observed


def _embed_all(
    system: Retriever, cuts: Sequence[ChunkedDocuments], material: QADataset, over: ExecutorMap | None
) -> None:
    """All texts in one call a model and role, so that texts of like length share a batch."""
    chunks = list(dict.fromkeys(text for found in cuts for text in found.texts))
    for model in dense_models(system):
        model.embed_report(chunks, Role.DOCUMENT, over=over)
        model.embed_report(material.texts, Role.QUERY, over=over)


def _observe(
    system: Retriever, shelf: IndexedChunks, material: QADataset, depth: int, matcher: AnswerMatcher
) -> GridEvidence:
    found = shelf.cut
    fitted = system.fit(found.texts)
    search = rank_answers(fitted, material.questions, found.chunks, matcher, depth, held=shelf.held)
    reached = search.order.shape[1]
    hits = np.array([hit_rate(search.ranking, k) for k in range(1, reached + 1)])
    tokens = search.tokens.mean(axis=0)
    read = [measure_truncation(model, found.texts) for model in dense_models(system)]
    return GridEvidence(
        found,
        search,
        _deepened(hits, depth),
        _deepened(search.chance, depth),
        _deepened(tokens, depth),
        max(read, key=_unread, default=None),
    )


def _deepened(rows: Floats, depth: int) -> Floats:
    """A document with fewer chunks than top_k is retrieved whole: nothing changes beyond its last chunk."""
    lacking = depth - len(rows)
    return rows if not lacking else np.concatenate([rows, np.repeat(rows[-1:], lacking, axis=0)])


def _unread(seen: Truncation) -> float:
    """How much is left out; what is unknown counts more than nothing, and less than something."""
    return 0.0 if seen.share is None else seen.share or -1.0


Configuration = tuple[ChunkingParams, int]
"""A way of cutting, and how many chunks are retrieved."""

Split = list[Fold]

TOKENS = "tokens"
REDRAWS = 4000
"""The standard error of a difference is then known to within 1 %, and p below 0.05 to within a tenth."""
_REDRAWN = 1
"""The stream of randomness of the bootstrap; the folds have their own."""


@dataclass(frozen=True)
class GridSearchResult:
    """The record of a tuning and the result on held-out questions.

    ``best`` is what to deploy; ``choosable`` are the chunkings that could have been; ``scored_by`` is what
    each question was scored by in most splits, chosen without it.
    """

    tuning: TuningRecord
    result: Result
    best: ChunkingParams
    choosable: tuple[ChunkingParams, ...]
    scored_by: tuple[Configuration, ...]
    configurations: int
    tied_questions: int
    """How many questions were scored by a fractional hit, in any split."""


@dataclass(frozen=True)
class _HeldOutScore:
    """The score that is reported: a value and a trial a question, and how sure it is.

    ``trial_of`` has a row a split. Without folds, nothing is known of the interval but what the values say.
    """

    values: Floats
    trial_of: Ints
    usual_trial: Ints
    split_sd: float | None = None
    choices: tuple[FoldSelection, ...] = ()
    errors: Floats | None = None
    interval: Interval | None = None


def answer_splits(material: QADataset, settings: FairConfig) -> tuple[list[Split], str]:
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
        kfold_splits(
            material.ids,
            parts,
            stratify=[question.category for question in material.questions],
            groups=material.groups,
            rng=rng,
        )
        for _ in range(1 if parts == answers else settings.repeats)
    ]
    return made, note


def select_configuration(
    system: str,
    observed: Mapping[ChunkingParams, GridEvidence],
    material: QADataset,
    settings: FairConfig,
    splits: list[Split],
) -> GridSearchResult:
    """Choose on all questions, and in each split fold by fold without those of the fold."""
    points = [(chunking, k) for chunking in settings.chunkings for k in settings.tried_ks]
    configurations = len(points)
    if settings.baseline not in points:
        points.append(settings.baseline)
    trials = tuple(_trial(observed, chunking, k, settings) for chunking, k in points)
    values = np.array([observed[chunking].hits[k - 1] for chunking, k in points])
    allowed = _allowed(trials, configurations, settings)
    costs = _costs(trials, settings)
    best = select_best(values, costs=costs, allowed=allowed)
    score = (
        _nested(values, splits, trials, costs, allowed, material, settings)
        if splits
        else _HeldOutScore(values[best], np.full((1, len(material.ids)), best), np.full(len(material.ids), best))
    )
    edge = _frontier(observed, settings)
    tuning = TuningRecord(
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
        within_budget=None if settings.budget is None else best_within_budget(edge, settings.budget),
        tried=configurations,
        splits=max(1, len(splits)),
        split_sd=score.split_sd,
    )
    return GridSearchResult(
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


def _trial(
    observed: Mapping[ChunkingParams, GridEvidence], chunking: ChunkingParams, k: int, settings: FairConfig
) -> Trial:
    seen = observed[chunking]
    chance = float(seen.chance[k - 1])
    return Trial(
        params=settings.params(chunking, k),
        value=float(seen.hits[k - 1].mean()),
        chance=None if isnan(chance) else chance,
        cost=float(seen.tokens[k - 1]),
        reachable=None if settings.joins else seen.search.reachable,
    )


def _frontier(observed: Mapping[ChunkingParams, GridEvidence], settings: FairConfig) -> tuple[Trial, ...]:
    """The best accuracy for every price, at every top_k up to the largest."""
    return pareto_frontier(
        [
            _trial(observed, chunking, k, settings)
            for chunking in settings.chunkings
            for k in range(1, max(settings.top_ks) + 1)
        ]
    )


def _allowed(trials: tuple[Trial, ...], configurations: int, settings: FairConfig) -> Bools:
    """What may be chosen: the grid, as far as the budget goes. A baseline outside the grid is no choice."""
    inside = np.arange(len(trials)) < configurations
    if settings.budget is None:
        return inside
    costs = np.array([trial.cost for trial in trials], dtype=np.float64)
    affordable = inside & (costs <= settings.budget)
    if not affordable.any():
        raise ParameterError(
            f"no configuration retrieves {format_value(settings.budget, 0)} tokens or fewer: the cheapest takes "
            f"{format_count(round(costs[inside].min()))} in the mean",
            hint="raise the budget, or add smaller chunks to the grid",
        )
    return np.asarray(affordable)


def _costs(trials: tuple[Trial, ...], settings: FairConfig) -> Floats | None:
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
    material: QADataset,
    settings: FairConfig,
) -> _HeldOutScore:
    """Every question scored by what was chosen without it, and bootstrap errors of the whole procedure."""
    nested = repeated_choice(values, splits, costs=costs, allowed=allowed)
    # The same questions are drawn for every model, so that their errors pair.
    errors = selection_errors(
        values,
        splits[0],
        splits=min(RESAMPLED_SPLITS, len(splits)),
        costs=costs,
        allowed=allowed,
        clusters=material.groups,
        n_resamples=REDRAWS,
        rng=np.random.default_rng([settings.seed, _REDRAWN]),
    )
    return _HeldOutScore(
        nested.values,
        nested.trial_of,
        nested.usual_trial,
        None if isnan(nested.split_sd) else nested.split_sd,
        _choices(nested, trials, splits),
        errors,
        nested_interval(nested, errors),
    )


def _choices(nested: NestedResult, trials: tuple[Trial, ...], splits: list[Split]) -> tuple[FoldSelection, ...]:
    """What each fold of a single split chose; of several splits, what was chosen, the most frequent first."""
    sizes = np.array([len(test) for parts in splits for _, test in parts])
    folds_of: dict[int, list[int]] = {}
    for fold, place in enumerate(nested.chosen.tolist()):
        folds_of.setdefault(place if len(splits) > 1 else fold, []).append(fold)
    return tuple(
        FoldSelection(
            trials[nested.chosen[those[0]]].params,
            float(np.mean(nested.inner[those])),
            float(np.average(nested.outer[those], weights=sizes[those])),
            int(sizes[those].sum()),
            len(those),
        )
        for those in sorted(folds_of.values(), key=len, reverse=True)
    )


def _result(
    system: str, score: _HeldOutScore, tuning: TuningRecord, material: QADataset, settings: FairConfig
) -> Result:
    """The result; its chance level is that of the configurations that scored it."""
    chance = np.array([nan if trial.chance is None else trial.chance for trial in tuning.trials])
    return result_from_values(
        system,
        material.ids,
        {settings.metric: score.values},
        chance={settings.metric: float(chance[score.trial_of].mean())},
        intervals=None if score.interval is None else {settings.metric: score.interval},
        errors=None if score.errors is None else {settings.metric: score.errors},
        config=StatsConfig(seed=settings.seed),
        settings=_terms(tuning, material, settings)
        | ({} if score.errors is None else _error_terms(tuning, material, settings)),
    )


def _terms(tuning: TuningRecord, material: QADataset, settings: FairConfig) -> dict[str, Any]:
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


def _error_terms(tuning: TuningRecord, material: QADataset, settings: FairConfig) -> dict[str, Any]:
    """Names the resamples, which are equal for every model on the same questions, folds, seed and number."""
    numbers = (REDRAWS, settings.seed, tuning.fold_count, min(RESAMPLED_SPLITS, tuning.splits))
    drawn = "\0".join([*map(str, numbers), *material.ids, *map(str, material.groups)])
    return {
        RESAMPLE_ID: hashlib.sha256(drawn.encode()).hexdigest()[:16],
        ERROR_DF: max(1, len(set(material.groups)) - 1),
    }
