"""Grid search of one model: evidence for every configuration, and selection by nested cross-validation."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isnan, nan
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from equipoise.domains.fair.chunk_index import (
    AnswerRanking,
    ChunkedDocuments,
    ChunkingParams,
    IndexedChunks,
    rank_answers,
)
from equipoise.domains.fair.config import ACCURACY, METRIC
from equipoise.errors import InputError, ParameterError
from equipoise.io.splits import Fold, kfold_splits
from equipoise.metrics.ranking import hit_rate
from equipoise.models.dense import Truncation, dense_models, worst_truncation
from equipoise.models.encoder import Role
from equipoise.models.rerank import FittedRerankedRetriever, RerankedRetriever, Reranker
from equipoise.progress import report_share
from equipoise.stats.estimate import result_from_values
from equipoise.stats.formatting import format_count, format_value
from equipoise.stats.result import BUDGET, DATA, FOLDS, GRID, MATCHER, SPENT, TOKENIZER, TRIALS
from equipoise.stats.tuning_uncertainty import ERROR_DF, RESAMPLE_ID
from equipoise.tuning.grid import FoldSelection, Trial, TuningRecord, best_within_budget, pareto_frontier
from equipoise.tuning.nested_cv import (
    RESAMPLED_SPLITS,
    NestedResult,
    nested_interval,
    repeated_nested_cv,
    select_best,
    selection_errors,
)
from equipoise.types import Bools, Floats, Ints

if TYPE_CHECKING:
    from equipoise.domains.fair.config import FairConfig
    from equipoise.domains.fair.plan import QADataset
    from equipoise.models.embedder import EmbedStats
    from equipoise.models.retriever import FittedRetriever, Retriever
    from equipoise.models.worker_pool import ExecutorMap
    from equipoise.stats.intervals import Interval
    from equipoise.stats.result import Result

Progress = Callable[[str], None]
"""Called at the start of each step with a description."""


class Search(NamedTuple):
    """One order of the chunks: a chunking, and how many of the first chunks are reranked; None without a reranker."""

    chunking: ChunkingParams
    rerank_depth: int | None = None


class Configuration(NamedTuple):
    """A search and the number of retrieved chunks."""

    search: Search
    top_k: int


@dataclass(frozen=True)
class GridEvidence:
    """The evidence of one search for every top_k from 1 to the depth.

    ``hits`` has shape (top_k, questions); ``chance`` and ``tokens`` have one value per top_k, the mean over
    the questions.
    """

    chunked: ChunkedDocuments
    search: AnswerRanking
    hits: Floats
    chance: Floats
    tokens: Floats
    truncation: Truncation | None
    """The truncation by the model that truncates most; None if nothing is embedded."""
    seconds: float = 0.0
    """The time of the search for all questions."""


def run_grid(
    system: Retriever,
    indexed_chunks: dict[ChunkingParams, IndexedChunks],
    dataset: QADataset,
    depth: int,
    *,
    reranker: Reranker | None = None,
    rerank_depths: Sequence[int] = (),
) -> dict[Search, GridEvidence]:
    """Search all questions in all chunkings, at every top_k up to the depth, reranked at every rerank depth.

    The system and the reranker should be memoised, so that no text is read twice.
    """
    observed = {}
    for number, (chunking, indexed) in enumerate(indexed_chunks.items()):
        report_share(number, len(indexed_chunks))
        fitted = system.fit(indexed.chunked.texts)
        truncation = worst_truncation(system, indexed.chunked.texts)
        if reranker is None:
            observed[Search(chunking)] = _observe(fitted, indexed, dataset, depth, truncation)
            continue
        # The largest depth first: a memoised reranker then has the scores of all smaller ones.
        for rerank_depth in sorted(rerank_depths, reverse=True):
            reranked = RerankedRetriever(system, reranker, depth=rerank_depth)
            order = FittedRerankedRetriever(reranked, fitted, indexed.chunked.texts)
            observed[Search(chunking, rerank_depth)] = _observe(order, indexed, dataset, depth, truncation)
    return observed


def embed_all(
    system: Retriever,
    indexed_chunks: Mapping[ChunkingParams, IndexedChunks],
    dataset: QADataset,
    map_function: ExecutorMap | None = None,
) -> dict[str, EmbedStats]:
    """Embed all texts in one call per model and role, so that texts of similar length share a batch.

    ``map_function`` embeds on an executor. Returns the report of the chunks, by the fingerprint of the model.
    """
    chunks = list(dict.fromkeys(text for indexed in indexed_chunks.values() for text in indexed.chunked.texts))
    reports = {}
    for model in dense_models(system):
        reports[model.fingerprint] = model.embed_report(chunks, Role.DOCUMENT, map_function=map_function).report
        model.embed_report(dataset.texts, Role.QUERY, map_function=map_function)
    return reports


def _observe(
    fitted: FittedRetriever,
    indexed: IndexedChunks,
    dataset: QADataset,
    depth: int,
    truncation: Truncation | None,
) -> GridEvidence:
    chunked, start = indexed.chunked, perf_counter()
    search = rank_answers(fitted, dataset.questions, chunked.chunks, indexed.locations, depth)
    seconds = perf_counter() - start
    retrieved = search.order.shape[1]
    hits = np.array([hit_rate(search.ranking, k) for k in range(1, retrieved + 1)])
    tokens = search.tokens.mean(axis=0)
    return GridEvidence(
        chunked,
        search,
        _extend_to_depth(hits, depth),
        _extend_to_depth(search.chance, depth),
        _extend_to_depth(tokens, depth),
        truncation,
        seconds,
    )


def _extend_to_depth(rows: Floats, depth: int) -> Floats:
    """Repeat the last row up to the depth: a document with fewer chunks than top_k is retrieved completely."""
    n_missing = depth - len(rows)
    return rows if not n_missing else np.concatenate([rows, np.repeat(rows[-1:], n_missing, axis=0)])


Split = list[Fold]

TOKENS = "tokens"
_BOOTSTRAP_STREAM = 1
"""The random stream of the bootstrap; the folds use another one."""


@dataclass(frozen=True)
class GridSearchResult:
    """The record of a tuning and the result on held-out questions.

    ``best`` is the search to deploy; ``held_out_configurations`` is the configuration that scored each question
    in most splits.
    """

    tuning: TuningRecord
    result: Result
    best: Search
    held_out_configurations: tuple[Configuration, ...]
    configurations: int
    tied_questions: int
    """The number of questions with a fractional hit in any split."""


@dataclass(frozen=True)
class _HeldOutScore:
    """The reported score: one value and one trial per question, with bootstrap errors and interval.

    ``trial_of`` has one row per split. Without folds there are no errors and no interval.
    """

    values: Floats
    trial_of: Ints
    usual_trial: Ints
    split_sd: float | None = None
    choices: tuple[FoldSelection, ...] = ()
    errors: Floats | None = None
    interval: Interval | None = None


class SplitCounts(NamedTuple):
    """The number of splits, the number of folds of each, and a note if there are fewer folds than requested."""

    splits: int
    folds: int
    note: str = ""


def split_counts(dataset: QADataset, settings: FairConfig) -> SplitCounts:
    """The numbers of splits of the questions, and of folds per split.

    There are no splits without nested cross-validation, and one if every answer is a fold, because all splits
    are equal.
    """
    if not settings.nested:
        return SplitCounts(0, 1)
    answers, total = len(set(dataset.groups)), len(dataset.questions)
    if answers < 2:
        reason = "there is only one question" if total == 1 else f"all {total} questions have the same answer"
        raise InputError(
            f"{reason}, so no question can be held out",
            hint="add questions with other answers",
        )
    n_folds = min(settings.folds, answers)
    note = (
        ""
        if n_folds == settings.folds
        else f"{n_folds} folds instead of {settings.folds}: there are {answers} different answers"
    )
    return SplitCounts(1 if n_folds == answers else settings.repeats, n_folds, note)


def answer_splits(dataset: QADataset, settings: FairConfig) -> list[Split]:
    """Random splits into folds, the same for every model.

    Questions with near-duplicate answers stay in one fold; folds are stratified by category.
    """
    counts = split_counts(dataset, settings)
    rng = np.random.default_rng(settings.seed)
    categories = [question.category for question in dataset.questions]
    return [
        kfold_splits(dataset.ids, counts.folds, stratify=categories, groups=dataset.groups, rng=rng)
        for _ in range(counts.splits)
    ]


def select_configuration(
    system: str,
    observed: Mapping[Search, GridEvidence],
    dataset: QADataset,
    settings: FairConfig,
    splits: list[Split],
    rerank_depths: Sequence[int | None] = (None,),
) -> GridSearchResult:
    """Select on all questions, and in each split once per fold on the questions outside the fold."""
    searches = [Search(chunking, depth) for chunking in settings.chunkings for depth in rerank_depths]
    points = [Configuration(search, k) for search in searches for k in settings.top_k_axis]
    configurations = len(points)
    baseline = Configuration(Search(settings.baseline[0], rerank_depths[0]), settings.baseline[1])
    if baseline not in points and baseline.search in observed:
        points.append(baseline)
    trials = tuple(_trial(observed, search, k, settings) for search, k in points)
    values = np.array([observed[search].hits[k - 1] for search, k in points])
    allowed = _eligible_trials(trials, configurations, settings)
    costs = _costs(trials, settings)
    best = select_best(values, costs=costs, allowed=allowed)
    score = (
        _nested_scores(values, splits, trials, costs, allowed, dataset, settings)
        if splits
        else _HeldOutScore(values[best], np.full((1, len(dataset.ids)), best), np.full(len(dataset.ids), best))
    )
    top_ks = range(1, settings.max_top_k + 1)
    frontier = pareto_frontier([_trial(observed, search, k, settings) for search in searches for k in top_ks])
    hits = values[score.trial_of, np.arange(values.shape[1])]
    n_tied = int(np.count_nonzero(~np.isin(hits, (0.0, 1.0)).all(axis=0)))
    tuning = TuningRecord(
        metric=METRIC if splits else ACCURACY,
        trials=trials,
        best=best,
        baseline=points.index(baseline) if baseline in points else None,
        optimistic=trials[best].value,
        nested=float(score.values.mean()) if splits else nan,
        folds=score.choices,
        frontier=frontier,
        cost_unit=TOKENS,
        budget=settings.budget,
        within_budget=None if settings.budget is None else best_within_budget(frontier, settings.budget),
        tried=configurations,
        splits=max(1, len(splits)),
        split_sd=score.split_sd,
    )
    return GridSearchResult(
        tuning,
        _result(system, score, tuning, dataset, settings, len(rerank_depths)),
        points[best].search,
        tuple(points[index] for index in score.usual_trial.tolist()),
        configurations,
        n_tied,
    )


def _trial(observed: Mapping[Search, GridEvidence], search: Search, k: int, settings: FairConfig) -> Trial:
    evidence = observed[search]
    chance = float(evidence.chance[k - 1])
    return Trial(
        params=settings.params(search.chunking, k, search.rerank_depth),
        value=float(evidence.hits[k - 1].mean()),
        chance=None if isnan(chance) else chance,
        cost=float(evidence.tokens[k - 1]),
        reachable=None if settings.joins else evidence.search.reachable,
    )


def _eligible_trials(trials: tuple[Trial, ...], configurations: int, settings: FairConfig) -> Bools:
    """The eligible trials: those of the grid within the budget. A baseline outside the grid is not eligible."""
    in_grid = np.arange(len(trials)) < configurations
    if settings.budget is None:
        return in_grid
    costs = np.array([trial.cost for trial in trials], dtype=np.float64)
    affordable = in_grid & (costs <= settings.budget)
    if not affordable.any():
        raise ParameterError(
            f"no configuration retrieves {format_value(settings.budget, 0)} tokens or fewer: the cheapest one "
            f"retrieves {format_count(round(costs[in_grid].min()))} on average",
            hint="raise the budget, or add smaller chunks to the grid",
        )
    return np.asarray(affordable)


def _costs(trials: tuple[Trial, ...], settings: FairConfig) -> Floats | None:
    """The tie-breaker between equal accuracies: fewer tokens; for embedding-eval's matcher, the order of the grid."""
    if settings.joins:
        return None
    return np.array([trial.cost for trial in trials], dtype=np.float64)


def _nested_scores(
    values: Floats,
    splits: list[Split],
    trials: tuple[Trial, ...],
    costs: Floats | None,
    allowed: Bools,
    dataset: QADataset,
    settings: FairConfig,
) -> _HeldOutScore:
    """Held-out scores of every question, and bootstrap errors of the whole procedure."""
    nested = repeated_nested_cv(values, splits, costs=costs, allowed=allowed)
    # The same resamples are used for every model, so the errors are paired.
    errors = selection_errors(
        values,
        splits[0],
        splits=min(RESAMPLED_SPLITS, len(splits)),
        costs=costs,
        allowed=allowed,
        clusters=dataset.groups,
        n_resamples=settings.stats.n_resamples,
        rng=np.random.default_rng([settings.seed, _BOOTSTRAP_STREAM]),
    )
    return _HeldOutScore(
        nested.values,
        nested.trial_of,
        nested.usual_trial,
        None if isnan(nested.split_sd) else nested.split_sd,
        _choices(nested, trials, splits),
        errors,
        nested_interval(nested, errors, confidence_level=settings.stats.confidence_level),
    )


def _choices(nested: NestedResult, trials: tuple[Trial, ...], splits: list[Split]) -> tuple[FoldSelection, ...]:
    """The selection of each fold; with several splits, the distinct selections, the most frequent first."""
    sizes = np.array([len(test) for parts in splits for _, test in parts])
    folds_of: dict[int, list[int]] = {}
    for fold, trial in enumerate(nested.chosen.tolist()):
        folds_of.setdefault(trial if len(splits) > 1 else fold, []).append(fold)
    return tuple(
        FoldSelection(
            trials[nested.chosen[folds[0]]].params,
            float(np.mean(nested.inner[folds])),
            float(np.average(nested.outer[folds], weights=sizes[folds])),
            int(sizes[folds].sum()),
            len(folds),
        )
        for folds in sorted(folds_of.values(), key=len, reverse=True)
    )


def _result(
    system: str,
    score: _HeldOutScore,
    tuning: TuningRecord,
    dataset: QADataset,
    settings: FairConfig,
    n_rerank_depths: int,
) -> Result:
    """The result; its chance level is the mean over the held-out configurations."""
    chance = np.array([nan if trial.chance is None else trial.chance for trial in tuning.trials])
    return result_from_values(
        system,
        dataset.ids,
        {settings.metric: score.values},
        chance={settings.metric: float(chance[score.trial_of].mean())},
        intervals=None if score.interval is None else {settings.metric: score.interval},
        errors=None if score.errors is None else {settings.metric: score.errors},
        config=settings.stats,
        settings=_comparability_settings(tuning, dataset, settings, n_rerank_depths)
        | ({} if score.errors is None else _error_settings(tuning, dataset, settings)),
    )


def _comparability_settings(
    tuning: TuningRecord, dataset: QADataset, settings: FairConfig, n_rerank_depths: int
) -> dict[str, Any]:
    """The settings that must agree with those of another result to be comparable.

    The rerank depth is a parameter that only reranked models have, so it is not part of the grid that all share.
    """
    axes: dict[str, Any] = {name: list(values) for name, values in settings.axes.items()}
    if settings.budget is not None:
        axes["top_k"] = f"1 to {settings.max_top_k}"
    return {
        MATCHER: settings.matcher,
        TOKENIZER: settings.tokenizer_name,
        FOLDS: max(1, tuning.fold_count),
        "repeats": max(1, tuning.splits),
        TRIALS: len(tuning.grid) // n_rerank_depths,
        GRID: axes,
        SPENT: tuning.trials[tuning.best].cost,
        DATA: dataset.identity,
        **({} if settings.budget is None else {BUDGET: settings.budget}),
    }


def _error_settings(tuning: TuningRecord, dataset: QADataset, settings: FairConfig) -> dict[str, Any]:
    """The id of the resamples, equal for all models with the same questions, folds, seed and number."""
    numbers = (settings.stats.n_resamples, settings.seed, tuning.fold_count, min(RESAMPLED_SPLITS, tuning.splits))
    identity = "\0".join([*map(str, numbers), *dataset.ids, *map(str, dataset.groups)])
    return {
        RESAMPLE_ID: hashlib.sha256(identity.encode()).hexdigest()[:16],
        ERROR_DF: max(1, len(set(dataset.groups)) - 1),
    }
