"""Tuning by nested cross-validation over documents: every model gets the same trials and the same folds."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import nan
from pathlib import Path
from typing import Any

import numpy as np

from equipoise.checks.catalogue import examine
from equipoise.checks.tuning import TunedSystem
from equipoise.data.split import Fold
from equipoise.data.split import folds as dealt
from equipoise.errors import InputError, ParameterError
from equipoise.evidence.sets import Sets
from equipoise.metrics.base import Measurement
from equipoise.metrics.sets import SetF1
from equipoise.ontology.ontology import Ontology
from equipoise.recipes.fair.models import named_models
from equipoise.recipes.phenotypes.extraction.gold import Gold
from equipoise.recipes.phenotypes.extraction.grid import DEEPEST, axes, trial_settings
from equipoise.recipes.phenotypes.extraction.run import Source, read_gold
from equipoise.recipes.phenotypes.extraction.score import terms_of
from equipoise.recipes.phenotypes.extraction.settings import ExtractionSettings, settings_of
from equipoise.recipes.phenotypes.extraction.system import term_system
from equipoise.recipes.phenotypes.extraction.trials import Trials, nested_sets, trials_of
from equipoise.recipes.phenotypes.extraction.tuning import ExtractionTuning, TunedModel
from equipoise.recipes.phenotypes.settings import DEFAULT_MODEL
from equipoise.recipes.phenotypes.store import refuse_unwritable
from equipoise.run.evaluate import compare
from equipoise.run.progress import Step, reported
from equipoise.stats.redrawn import DRAWS
from equipoise.stats.result import Result
from equipoise.stats.tabled import result_of_values
from equipoise.stats.terms import FOLDS, GRID, TRIALS
from equipoise.tasks.extract import Settings as Pipeline
from equipoise.tasks.extract import candidates
from equipoise.tune.nested import best_trial, nested_choice
from equipoise.tune.record import NESTED, FoldChoice, Trial, Tuning
from equipoise.tune.redraw import choice_errors, nested_interval

BUDGET, PARTS = 40, 5
REDRAWS = 10_000
_REDRAWN = 1
"""The stream of randomness of the redrawn choices; the folds have their own."""


def tune_extraction(
    source: Source = "notes",
    models: Sequence[Any] | str = DEFAULT_MODEL,
    ontology: Ontology | str = "hpo",
    *,
    budget: int = BUDGET,
    folds: int = PARTS,
    dataset: str | None = None,
    output: str | Path | None = None,
    progress: Step | None = None,
    command: Sequence[str] = (),
    **settings: Any,
) -> ExtractionTuning:
    """Try ``budget`` configurations of every model, and say what the best is worth on unseen documents.

    Chosen is by the mean F1 of documents, in the mode of the settings. ``folds`` of 1 nests nothing: the
    figure is then that of the best trial on the documents that chose it, and a finding says so (EQ201).
    Documents are embedded once a model; the trials use the stored candidates.
    """
    chosen = settings_of({**settings, "averaging": "macro"})
    folder = None if output is None else Path(output)
    if folder is not None:
        refuse_unwritable(folder)
    named = named_models(models)
    gold = read_gold(source, ontology, dataset)
    parts = document_folds(gold, folds, chosen.seed)
    tried: list[TunedModel] = []
    with reported(folder, "extraction tuning", len(named) + 1, command=command, step=progress) as step:
        for name, model in named.items():
            step(f"{name}: finding terms")
            tried.append(_tuned(name, model, gold, parts, budget, chosen))
        step("comparing")
        found = _gathered(tried, gold, chosen, command)
        if folder is not None:
            found.write(folder)
    return found


def document_folds(gold: Gold, parts: int, seed: int) -> list[Fold]:
    """The folds, the same for every model; equal texts stay together, languages and datasets are spread."""
    if parts < 1:
        raise ParameterError(f"{parts} folds cannot be made", hint="5 is usual; 1 nests nothing")
    if parts == 1:
        return []
    documents = gold.annotated.documents
    if len({each.text for each in documents}) < parts:
        raise InputError(
            f"{len(documents)} documents cannot be dealt to {parts} folds",
            hint="give more documents, or fewer folds",
        )
    return dealt(
        [each.id for each in documents],
        parts,
        stratify=[f"{each.dataset} {each.language}" for each in documents],
        groups=[each.text for each in documents],
        rng=np.random.default_rng(seed),
    )


def _tuned(
    name: str, model: Any, gold: Gold, parts: list[Fold], budget: int, settings: ExtractionSettings
) -> TunedModel:
    with term_system(model, gold.ontology, settings) as system:
        depth = min(DEEPEST, len(gold.ontology))
        found = candidates(gold.documents, system, chunkers=settings.chunkers, num_results=depth)
    grid = trial_settings(found, budget, settings.seed)
    usual = Pipeline(num_results=min(Pipeline().num_results, depth))
    trials = trials_of(found, gold, (*grid, usual), settings.mode)
    allowed = np.arange(len(grid) + 1) < len(grid)
    best = best_trial(trials.f1, allowed=allowed)
    choice = _Choice.of(trials, parts, allowed, best, gold, settings)
    metric = SetF1("macro", settings.mode).name
    tuning = Tuning(
        metric=f"{NESTED}{metric}" if parts else metric,
        trials=tuple(
            Trial(_params(each), Measurement.mean(row).value)
            for each, row in zip(trials.settings, trials.f1, strict=True)
        ),
        best=best,
        baseline=len(grid),
        optimistic=Measurement.mean(trials.f1[best]).value,
        nested=Measurement.mean(choice.values).value if parts else nan,
        folds=choice.folds,
        tried=len(grid),
    )
    evidence = nested_sets(found, gold, trials, choice.trial_of)
    result = _result(name, tuning, choice, evidence, gold, settings)
    result = replace(result, findings=examine(TunedSystem.of(name, tuning)))
    return TunedModel(name, tuning, trials, result, evidence)


@dataclass(frozen=True)
class _Choice:
    """What was chosen for every document, what it scores there, and how far off that may be."""

    values: Any
    trial_of: list[int]
    folds: tuple[FoldChoice, ...] = ()
    errors: Any = None
    interval: Any = None

    @classmethod
    def of(
        cls,
        trials: Trials,
        parts: list[Fold],
        allowed: Any,
        best: int,
        gold: Gold,
        settings: ExtractionSettings,
    ) -> _Choice:
        if not parts:
            return cls(trials.f1[best], [best] * trials.f1.shape[1])
        nested = nested_choice(trials.f1, parts, allowed=allowed)
        # The same documents are drawn for every model, so that their errors pair.
        errors = choice_errors(
            trials.f1,
            parts,
            allowed=allowed,
            clusters=[each.text for each in gold.documents],
            resamples=REDRAWS if settings.bootstrap else 1,
            rng=np.random.default_rng([settings.seed, _REDRAWN]),
        )
        trial_of = np.empty(trials.f1.shape[1], dtype=np.int64)
        for place, (_, test) in zip(nested.chosen.tolist(), parts, strict=True):
            trial_of[test] = place
        folds = tuple(
            FoldChoice(_params(trials.settings[place]), float(inner), float(outer), len(test))
            for place, inner, outer, (_, test) in zip(
                nested.chosen.tolist(), nested.inner, nested.outer, parts, strict=True
            )
        )
        return cls(
            nested.values,
            trial_of.tolist(),
            folds,
            errors,
            nested_interval(nested, errors, bounds=(0.0, 1.0)),
        )


def _params(settings: Pipeline) -> dict[str, Any]:
    return {name: value for name, value in settings.record().items() if name != "assertions"}


def _result(
    name: str, tuning: Tuning, choice: _Choice, sets: Sets, gold: Gold, settings: ExtractionSettings
) -> Result:
    """A value a document, of what was chosen without it; chance deals the sets to documents at random."""
    metric = SetF1("macro", settings.mode)
    nested = bool(choice.folds)
    drawn = [str(settings.seed), str(len(choice.folds)), gold.annotated.fingerprint]
    return result_of_values(
        name,
        sets.unit_ids.tolist(),
        {tuning.metric: choice.values},
        chance={tuning.metric: metric.chance(sets, np.random.default_rng(settings.seed))},
        intervals={tuning.metric: choice.interval} if nested else None,
        errors={tuning.metric: choice.errors} if nested else None,
        level=settings.level,
        resamples=settings.resamples,
        seed=settings.seed,
        settings={
            **terms_of(gold, settings),
            FOLDS: max(1, len(choice.folds)),
            TRIALS: len(tuning.grid),
            GRID: axes(),
            **({DRAWS: hashlib.sha256("\0".join(drawn).encode()).hexdigest()[:16]} if nested else {}),
        },
    )


def _gathered(
    tried: list[TunedModel], gold: Gold, settings: ExtractionSettings, command: Sequence[str]
) -> ExtractionTuning:
    comparison = None
    if len(tried) > 1:
        comparison = compare([each.result for each in tried], level=settings.level, seed=settings.seed)
    found = (
        comparison.findings if comparison else tuple(each for one in tried for each in one.result.findings)
    )
    return ExtractionTuning(
        models=tuple(tried),
        gold=gold,
        settings=settings,
        comparison=comparison,
        findings=found,
        command=tuple(command),
    )
