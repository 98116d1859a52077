"""Tuning by nested cross-validation over documents, with the same grid, trials and folds for every model."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import floor, nan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.checks.base import run_checks
from equipoise.checks.models import TunedSystem
from equipoise.domains.phenotypes.config import ExtractionConfig, make_config
from equipoise.domains.phenotypes.defaults import DEFAULT_EXTRACTOR
from equipoise.domains.phenotypes.extraction.candidates import (
    DEFAULT_CHUNKERS,
    SCORE_DECIMALS,
    SPLITTER_CHAIN,
    Candidates,
    SelectionSettings,
)
from equipoise.domains.phenotypes.extraction.experiment import ExtractionContext, Source, read_gold_annotations
from equipoise.domains.phenotypes.extraction.extractor import (
    DICTIONARY,
    TermExtractor,
    open_term_extractor,
    resolve_extraction_models,
)
from equipoise.domains.phenotypes.extraction.predict import Predictions, predict, prediction_key
from equipoise.domains.phenotypes.extraction.scoring import comparability_settings, prediction_sets
from equipoise.domains.phenotypes.extraction.tuning_results import ExtractionTuning, TunedModel
from equipoise.errors import InputError, ParameterError
from equipoise.evidence.sets import Sets
from equipoise.io.splits import Fold
from equipoise.io.splits import kfold_splits as dealt
from equipoise.metrics.base import MetricValue
from equipoise.metrics.sets import Mode, SetF1, SetPrecision, SetRecall
from equipoise.runs.compare import compare
from equipoise.runs.experiment_folder import ArtifactStore, ExperimentFolder
from equipoise.runs.progress_file import ProgressCallback, report_progress
from equipoise.runs.runner import Job, JobContext, JobOutput, resume_key, run_jobs
from equipoise.stats.estimate import result_from_values
from equipoise.stats.result import FOLDS, GRID, TRIALS
from equipoise.stats.tuning_uncertainty import RESAMPLE_ID
from equipoise.stats.verdict import UNIT_NOUN
from equipoise.tuning.grid import NESTED, FoldSelection, Params, Trial, TuningRecord, parameter_grid
from equipoise.tuning.nested_cv import nested_cv, nested_interval, select_best, selection_errors

if TYPE_CHECKING:
    from equipoise.domains.phenotypes.extraction.annotated_corpus import GoldAnnotations
    from equipoise.domains.phenotypes.ontology import Ontology
    from equipoise.runs.executors import Executor
    from equipoise.stats.result import Result
    from equipoise.types import Floats


@dataclass(frozen=True)
class CandidateGenerator:
    """Where candidates come from: a choice of the tuning."""

    dictionary: bool
    chunkers: tuple[str, ...]
    branch: str | None


@dataclass(frozen=True)
class TrialSetting:
    """A generator of candidates, and how they are selected."""

    generator: CandidateGenerator
    selection: SelectionSettings

    @property
    def params(self) -> dict[str, Any]:
        selection = {name: value for name, value in self.selection.record().items() if name != "assertions"}
        generator = self.generator
        chunkers = ",".join(map(str, generator.chunkers))
        return {**selection, "dictionary": generator.dictionary, "chunkers": chunkers, "branch": generator.branch or ""}


def candidate_generators(
    settings: ExtractionConfig, ontology: Ontology, model: str, fixed: Collection[str]
) -> tuple[CandidateGenerator, ...]:
    """The generators to choose from, the default first; settings in ``fixed`` are not varied.

    They differ in fusion with the dictionary, in phrases or chunks for the model, and in the branch.
    """
    branch = settings.branch_in(ontology)
    dictionary = (settings.dictionary,) if "dictionary" in fixed or model == DICTIONARY else (True, False)
    chunkers = (
        (settings.chunkers,) if "chunkers" in fixed or model == DICTIONARY else (DEFAULT_CHUNKERS, SPLITTER_CHAIN)
    )
    branches = (branch,) if "branch" in fixed or branch is None else (branch, None)
    return tuple(CandidateGenerator(*choice) for choice in product(dictionary, chunkers, branches))


@dataclass(frozen=True, eq=False)
class TrialScores:
    """F1 of every document (column) by every configuration (row), and the mean precision and recall."""

    settings: tuple[TrialSetting, ...]
    f1: Floats
    precision: Floats
    recall: Floats


Generated = Mapping[CandidateGenerator, Candidates]
"""The candidates of every generator."""


def score_trials(
    generated: Generated, gold: GoldAnnotations, settings: tuple[TrialSetting, ...], mode: Mode
) -> TrialScores:
    predicted_sets = [prediction_sets(gold, _predict(generated, setting)) for setting in settings]
    f1, precision, recall = (
        np.array([metric("macro", mode).per_unit(sets) for sets in predicted_sets])
        for metric in (SetF1, SetPrecision, SetRecall)
    )
    return TrialScores(settings, f1, *(_means(values) for values in (precision, recall)))


def held_out_sets(generated: Generated, gold: GoldAnnotations, trials: TrialScores, chosen: list[int]) -> Sets:
    """The predictions of each document by the configuration that was chosen without it."""
    by_trial = {index: _predict(generated, trials.settings[index]).sets() for index in set(chosen)}
    names = [document.id for document in gold.documents]
    answers = {name: by_trial[index][name] for name, index in zip(names, chosen, strict=True)}
    return Sets.of(gold.sets(), answers)


def _predict(generated: Generated, setting: TrialSetting) -> Predictions:
    return predict(generated[setting.generator], **setting.selection.record())


def _means(values: Floats) -> Floats:
    """The mean of each row over the documents in which it is defined."""
    return np.array([MetricValue.mean(row).value for row in values])


NUM_RESULTS_GRID = (1, 2, 3, 5, 10)
THRESHOLD_QUANTILES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
CONFIDENCE_QUANTILES = (0.0, 0.5, 0.8, 0.95)
MAX_RESULTS = max(NUM_RESULTS_GRID)
_THRESHOLD_DECIMALS = 4


@dataclass(frozen=True)
class GridPoint:
    """A configuration with thresholds as quantiles, comparable between models.

    ``threshold`` and ``confidence`` are quantile levels of the distinct best scores of all chunks. Scores of one
    model are between .2 and .6 and those of another between .7 and .9, so a common threshold would favour one of
    them. Equal scores, as of perfect matches, count once; otherwise half of the quantiles would be that score. A
    level of 0 drops nothing. The scores are those of all documents; they do not depend on the gold.
    """

    num_results: int
    threshold: float
    confidence: float

    def configuration(self, scores: Candidates) -> SelectionSettings:
        """The configuration in the scores of a model."""
        best = np.unique(scores.scores[:, 0]) if len(scores) else np.zeros(1)
        best = best[np.isfinite(best)] if np.isfinite(best).any() else np.zeros(1)
        lowest = min(0.0, _floor_score(float(scores.scores[np.isfinite(scores.scores)].min(initial=0.0))))
        cut, confidence = (
            # Rounded down, so that a score equal to the quantile is kept.
            _floor_score(float(np.quantile(best, share))) if share else lowest
            for share in (self.threshold, self.confidence)
        )
        return SelectionSettings(
            min(self.num_results, scores.depth), cut, confidence, top_term_only=self.num_results == 1
        )


def is_effective(params: Params) -> bool:
    """The confidence is 0 or above the threshold: below it, it changes nothing."""
    confidence, threshold = params["confidence"], params["threshold"]
    return not confidence or float(confidence) > float(threshold or 0.0)


def grid_points(seed: int = 0) -> tuple[GridPoint, ...]:
    """All points of the grid in random order."""
    points = parameter_grid(
        valid=is_effective,
        num_results=NUM_RESULTS_GRID,
        threshold=THRESHOLD_QUANTILES,
        confidence=CONFIDENCE_QUANTILES,
    )
    order = np.random.default_rng([seed, len(points)]).permutation(len(points))
    return tuple(GridPoint(**points[index]) for index in order.tolist())


def trial_configurations(candidates: Candidates, budget: int, seed: int = 0) -> tuple[SelectionSettings, ...]:
    """``budget`` configurations, with different predictions as long as the grid has them.

    Every model takes them from the same points in the same order. A configuration with the predictions of an
    earlier one is used only if the grid has no other, so that all models get the same number of trials.
    """
    if budget < 1:
        raise ParameterError(f"a budget of {budget} trials is too small", hint="give 1 or more")
    keys: set[bytes] = set()
    fresh: list[SelectionSettings] = []
    repeated: list[SelectionSettings] = []
    for configuration in (point.configuration(candidates) for point in grid_points(seed)):
        if len(fresh) == budget:
            break
        key = prediction_key(candidates, configuration)
        (repeated if key in keys else fresh).append(configuration)
        keys.add(key)
    return (*fresh, *repeated[: budget - len(fresh)])


REFINED_SHARE = 1 / 3
"""The share of the trials that refine the grid around the best of the others."""
_REFINEMENTS = (-0.05, 0.05, -0.025, 0.025, -0.075, 0.075)
"""Steps from a threshold, in quantiles of the scores; those of the grid are 0.1 apart."""


def refined_configurations(candidates: Candidates, best: SelectionSettings) -> Iterator[SelectionSettings]:
    """Configurations with thresholds near that of a good one."""
    scores = np.unique(candidates.scores[:, 0]) if len(candidates) else np.zeros(0)
    scores = scores[np.isfinite(scores)]
    if not len(scores):
        return
    level = float(np.mean(scores < best.chunk_threshold))
    for step in _REFINEMENTS:
        threshold = _floor_score(float(np.quantile(scores, min(1.0, max(0.0, level + step)))))
        yield replace(best, chunk_threshold=threshold)


def _floor_score(score: float) -> float:
    """Rounded down; the scores have more decimals, and the last of them does not come from arithmetic."""
    return floor(round(score * 10**_THRESHOLD_DECIMALS, SCORE_DECIMALS - _THRESHOLD_DECIMALS)) / 10**_THRESHOLD_DECIMALS


DEFAULT_N_TRIALS, DEFAULT_N_FOLDS = 40, 5
N_SELECTION_RESAMPLES = 10_000
_SELECTION_STREAM = 1
"""The random stream of the selection bootstrap; the folds have another one."""


def tune_extraction(
    source: Source = "notes",
    models: Sequence[Any] | str = DEFAULT_EXTRACTOR,
    ontology: Ontology | str = "hpo",
    *,
    budget: int = DEFAULT_N_TRIALS,
    folds: int = DEFAULT_N_FOLDS,
    dataset: str | None = None,
    output: str | Path | None = None,
    progress: ProgressCallback | None = None,
    command: Sequence[str] = (),
    engine: Executor | None = None,
    **settings: Any,
) -> ExtractionTuning:
    """Try configurations of every model, and estimate the score of the best one on held-out documents.

    A configuration is a generator of candidates (fusion with the dictionary, phrases or chunks, branch) and a selection
    (terms per phrase, thresholds). Two thirds of the trials are from a grid, and the others refine it around the
    configurations that are best on the training documents of a fold. The criterion is the mean F1 over documents.
    Documents are embedded once per generator; the trials use the stored candidates.

    Parameters
    ----------
    source
        As in ``run_extraction``.
    models
        One model spec or several.
    ontology
        The ontology, its path, or ``hpo``.
    budget
        Number of trials per model.
    folds
        Folds of the cross-validation. With 1, the score is that of the best trial on the documents it was selected on,
        which is a finding (EQ201).
    dataset
        One dataset of the corpus.
    output
        Folder for the results; a repeated call loads finished models from it.
    progress
        Called with the progress over the trials.
    command
        The command line that is recorded in the manifest.
    engine
        Executor of the jobs, such as a Ray cluster; results do not depend on it.
    **settings
        Settings as in ``run_extraction``. ``chunkers``, ``dictionary`` and ``branch`` are not varied if they are given.

    Returns
    -------
    ExtractionTuning
        The parameters to deploy, held-out scores, and all trials.

    Examples
    --------
    >>> tune_extraction("notes", ["tfidf:", "bm25:"], budget=40)  # doctest: +SKIP
    """
    chosen = make_config({**settings, "averaging": "macro"})
    folder = ExperimentFolder.of(output)
    named = resolve_extraction_models(models)
    gold = read_gold_annotations(source, ontology, dataset)
    if folder is not None:
        folder.check_same_data(gold.fingerprints)
    fixed = tuple(sorted({"chunkers", "dictionary", "branch"} & set(settings)))
    context = TuningContext(gold, chosen, budget, document_folds(gold, folds, chosen.config.seed), fixed)
    with report_progress(output, "extraction tuning", len(named) + 1, command=command, step=progress) as report:
        results = run_jobs(
            tune_job,
            [Job(name, model) for name, model in named.items()],
            context,
            executor=engine,
            store=None if folder is None else ArtifactStore[TunedModel](folder.artifacts),
            progress=report,
            n_cores=chosen.threads,
        )
        results.raise_if_all_failed()
        report("comparing")
        tuning = _collect(list(results.outputs.values()), gold, chosen, command)
        tuning = replace(tuning, failures=results.failures, resumed=results.resumed)
        if folder is not None:
            tuning.write(folder.path)
    return tuning


VERSION = "extraction tuning 2"
"""Increased when the same inputs give other scores."""


@dataclass(frozen=True, eq=False)
class TuningContext(ExtractionContext):
    """The documents and the configuration with the number of trials and the folds, the same for every model."""

    budget: int
    folds: list[Fold]
    fixed: tuple[str, ...] = ()
    """Settings that are not varied."""


def tune_job(job: Job[Any], context: JobContext[TuningContext]) -> JobOutput[TunedModel]:
    """Tune one model, unless its stored result has the same key."""
    shared = context.shared
    context.progress(f"{job.name}: finding terms")
    with open_term_extractor(job.inputs, shared.gold.ontology, shared.settings) as extractor:
        key = resume_key(VERSION, shared.key(job.name, extractor), shared.budget, shared.folds, shared.fixed)
        if key == context.stored_key:
            return JobOutput(None, key)
        depth = min(MAX_RESULTS, len(shared.gold.ontology))
        generators = candidate_generators(shared.settings, shared.gold.ontology, job.name, shared.fixed)
        generated = {
            generator: TermExtractor(
                shared.gold.ontology,
                extractor.system,
                dictionary=generator.dictionary,
                branch=generator.branch,
                chunkers=generator.chunkers,
                translations=extractor.translations,
            ).candidates(shared.gold.documents, num_results=depth)
            for generator in generators
        }
    return JobOutput(_tune_model(job.name, generated, depth, shared), key)


def document_folds(gold: GoldAnnotations, parts: int, seed: int) -> list[Fold]:
    """The folds, the same for every model; equal texts stay together, languages and datasets are spread."""
    if parts < 1:
        raise ParameterError(f"{parts} folds cannot be made", hint="use 5; 1 means no nested cross-validation")
    if parts == 1:
        return []
    documents = gold.annotated.documents
    if len({document.text for document in documents}) < parts:
        raise InputError(
            f"{len(documents)} documents cannot be split into {parts} folds",
            hint="give more documents, or fewer folds",
        )
    return dealt(
        [document.id for document in documents],
        parts,
        stratify=[f"{document.dataset} {document.language}" for document in documents],
        groups=[document.text for document in documents],
        rng=np.random.default_rng(seed),
    )


def _trials(generated: Generated, context: TuningContext) -> tuple[TrialSetting, ...]:
    """The trials of the grid, alternating between generators, then those that refine it."""
    budget, seed = context.budget, context.settings.config.seed
    n_refined = int(budget * REFINED_SHARE)
    per_generator = -(-(budget - n_refined) // len(generated))
    rows = [
        [TrialSetting(generator, selection) for selection in trial_configurations(candidates, per_generator, seed)]
        for generator, candidates in generated.items()
    ]
    # Trials alternate between generators, so that a small budget includes all of them.
    grid = [trial for row in zip(*rows, strict=True) for trial in row][: budget - n_refined]
    scores = score_trials(generated, context.gold, tuple(grid), context.settings.mode).f1
    training = [train for train, _ in context.folds] or [np.arange(scores.shape[1])]
    means = [np.nan_to_num(np.nanmean(scores[:, train], axis=1)) for train in training]
    # The best of each fold's training documents, then the second best, and so on.
    ranked = [
        int(place)
        for places in zip(*(np.argsort(-mean, kind="stable") for mean in means), strict=True)
        for place in places
    ]
    keys = {(trial.generator, prediction_key(generated[trial.generator], trial.selection)) for trial in grid}
    refined: list[TrialSetting] = []
    for place in dict.fromkeys(ranked):
        generator = grid[place].generator
        for selection in refined_configurations(generated[generator], grid[place].selection):
            key = generator, prediction_key(generated[generator], selection)
            if len(refined) < n_refined and key not in keys:
                keys.add(key)
                refined.append(TrialSetting(generator, selection))
    # If there is nothing left to refine, trials are repeated, so that all models have the same number.
    return (*grid, *refined, *grid[: n_refined - len(refined)])


def _tune_model(name: str, generated: Generated, depth: int, context: TuningContext) -> TunedModel:
    gold, settings, parts = context.gold, context.settings, context.folds
    grid = _trials(generated, context)
    default = TrialSetting(next(iter(generated)), SelectionSettings(min(SelectionSettings.num_results, depth)))
    trials = score_trials(generated, gold, (*grid, default), settings.mode)
    allowed = np.arange(len(grid) + 1) < len(grid)
    best = select_best(trials.f1, allowed=allowed)
    choice = _NestedChoice.of(trials, parts, allowed, best, gold, settings)
    metric = SetF1("macro", settings.mode).name
    tuning = TuningRecord(
        metric=f"{NESTED}{metric}" if parts else metric,
        trials=tuple(
            Trial(setting.params, MetricValue.mean(row).value)
            for setting, row in zip(trials.settings, trials.f1, strict=True)
        ),
        best=best,
        baseline=len(grid),
        optimistic=MetricValue.mean(trials.f1[best]).value,
        nested=MetricValue.mean(choice.values).value if parts else nan,
        folds=choice.folds,
        tried=len(grid),
    )
    evidence = held_out_sets(generated, gold, trials, choice.trial_of)
    result = _result(name, tuning, choice, evidence, gold, settings)
    result = replace(result, findings=run_checks(TunedSystem.of(name, tuning)))
    return TunedModel(name, tuning, trials, result, evidence)


@dataclass(frozen=True)
class _NestedChoice:
    """The configuration chosen for every document, its score there, and the errors."""

    values: Any
    trial_of: list[int]
    folds: tuple[FoldSelection, ...] = ()
    errors: Any = None
    interval: Any = None

    @classmethod
    def of(
        cls,
        trials: TrialScores,
        parts: list[Fold],
        allowed: Any,
        best: int,
        gold: GoldAnnotations,
        settings: ExtractionConfig,
    ) -> _NestedChoice:
        if not parts:
            return cls(trials.f1[best], [best] * trials.f1.shape[1])
        nested = nested_cv(trials.f1, parts, allowed=allowed)
        # The same bootstrap resamples for every model, so that their errors are paired.
        errors = selection_errors(
            trials.f1,
            parts,
            allowed=allowed,
            clusters=[document.text for document in gold.documents],
            n_resamples=N_SELECTION_RESAMPLES if settings.bootstrap else 1,
            rng=settings.config.rng(_SELECTION_STREAM),
        )
        trial_of = np.empty(trials.f1.shape[1], dtype=np.int64)
        for trial, (_, test) in zip(nested.chosen.tolist(), parts, strict=True):
            trial_of[test] = trial
        folds = tuple(
            FoldSelection(trials.settings[trial].params, float(inner), float(outer), len(test))
            for trial, inner, outer, (_, test) in zip(
                nested.chosen.tolist(), nested.inner, nested.outer, parts, strict=True
            )
        )
        return cls(
            nested.values,
            trial_of.tolist(),
            folds,
            errors,
            nested_interval(nested, errors, bounds=(0.0, 1.0), confidence_level=settings.config.confidence_level),
        )


def _result(
    name: str,
    tuning: TuningRecord,
    choice: _NestedChoice,
    sets: Sets,
    gold: GoldAnnotations,
    settings: ExtractionConfig,
) -> Result:
    """One value per document, by the configuration chosen without it; chance permutes the sets over documents."""
    metric = SetF1("macro", settings.mode)
    nested = bool(choice.folds)
    resample_key = [str(settings.config.seed), str(len(choice.folds)), gold.annotated.fingerprint]
    return result_from_values(
        name,
        sets.unit_ids.tolist(),
        {tuning.metric: choice.values},
        chance={tuning.metric: metric.chance(sets, np.random.default_rng(settings.config.seed))},
        intervals={tuning.metric: choice.interval} if nested else None,
        errors={tuning.metric: choice.errors} if nested else None,
        config=settings.config,
        settings={
            **comparability_settings(gold, settings),
            UNIT_NOUN: "document",
            FOLDS: max(1, len(choice.folds)),
            TRIALS: len(tuning.grid),
            GRID: {
                "num_results": list(NUM_RESULTS_GRID),
                "threshold quantile": list(THRESHOLD_QUANTILES),
                "confidence quantile": list(CONFIDENCE_QUANTILES),
            },
            **({RESAMPLE_ID: hashlib.sha256("\0".join(resample_key).encode()).hexdigest()[:16]} if nested else {}),
        },
    )


def _collect(
    models: list[TunedModel], gold: GoldAnnotations, settings: ExtractionConfig, command: Sequence[str]
) -> ExtractionTuning:
    comparison = None
    if len(models) > 1:
        comparison = compare([model.result for model in models], config=settings.config)
    findings = (
        comparison.findings if comparison else tuple(finding for one in models for finding in one.result.findings)
    )
    return ExtractionTuning(
        models=tuple(models),
        gold=gold,
        settings=settings,
        comparison=comparison,
        findings=findings,
        command=tuple(command),
    )
