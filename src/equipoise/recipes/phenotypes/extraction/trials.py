"""Every configuration of a model scored from the same candidates: nothing is embedded again."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from equipoise.evidence.sets import Sets
from equipoise.metrics.base import Measurement
from equipoise.metrics.overlap import Mode
from equipoise.metrics.sets import SetF1, SetPrecision, SetRecall
from equipoise.recipes.phenotypes.extraction.gold import Gold
from equipoise.recipes.phenotypes.extraction.score import sets_of
from equipoise.tasks.extract import Candidates, Settings, predict
from equipoise.types import Floats


@dataclass(frozen=True, eq=False)
class Trials:
    """F1 of every document (column) by every configuration (row), and the mean precision and recall."""

    settings: tuple[Settings, ...]
    f1: Floats
    precision: Floats
    recall: Floats


def trials_of(found: Candidates, gold: Gold, settings: tuple[Settings, ...], mode: Mode) -> Trials:
    """Predict and score with every configuration."""
    rows = [_scored(sets_of(gold, predict(found, **each.record())), mode) for each in settings]
    f1, precision, recall = zip(*rows, strict=True)
    return Trials(settings, np.array(f1), np.array(precision), np.array(recall))


def nested_sets(found: Candidates, gold: Gold, trials: Trials, chosen: list[int]) -> Sets:
    """What each document holds by the configuration that was chosen without it."""
    by_trial = {place: predict(found, **trials.settings[place].record()).sets() for place in set(chosen)}
    names = [document.id for document in gold.documents]
    answers = {name: by_trial[place][name] for name, place in zip(names, chosen, strict=True)}
    return Sets.of(gold.sets(), answers)


def _scored(sets: Sets, mode: Mode) -> tuple[Floats, float, float]:
    values = SetF1("macro", mode).per_unit(sets)
    precision, recall = (
        Measurement.mean(kind("macro", mode).per_unit(sets)).value for kind in (SetPrecision, SetRecall)
    )
    return values, precision, recall
