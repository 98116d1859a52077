"""A small example from end to end: made-up visits, a Markov model trained on most of them, and its scores."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.data.atomic import write_bytes
from equipoise.metrics.ranking import HitRate
from equipoise.recipes.places.baselines import guess_majority, guess_per_user
from equipoise.recipes.places.history import Cases, History
from equipoise.recipes.places.markov import MarkovModel
from equipoise.recipes.places.mobility import simulate_mobility
from equipoise.recipes.places.profiles import accuracy_curve, confusion, rank_classes
from equipoise.recipes.places.reliability import Reliability, reliability
from equipoise.recipes.places.score import score_places
from equipoise.recipes.places.scores import PlaceScores
from equipoise.report.charts.chart import Chart
from equipoise.report.charts.places import accuracy_chart, confusion_chart, ranks_chart
from equipoise.report.charts.reliability import Dot, reliability_chart
from equipoise.tasks.classify import Classified, classify
from equipoise.types import Ids

MODEL = "markov-model"
DAY = ((11, "00-10"), (16, "11-15"), (20, "16-19"), (24, "20-23"))
"""Parts of the day: the hour at which each ends, and its name."""


@dataclass(frozen=True)
class Demonstration:
    """What was learned from, what was asked, and what the model said."""

    learned: History
    cases: Cases
    logits: NDArray[np.float32]
    seed: int = 0

    @classmethod
    def of(cls, users: int = 60, days: int = 28, places: int = 300, *, seed: int = 0) -> Demonstration:
        """Simulate visits, hold back the last fifth of each user's, and train on the rest."""
        learned, cases = simulate_mobility(users, days, places, seed=seed).split()
        return cls(learned, cases, MarkovModel(learned).logits(cases), seed)

    @cached_property
    def scores(self) -> PlaceScores:
        """The model beside random, majority, each user's habits and plain moves."""
        hours = self.cases.hours
        return score_places(
            self.logits,
            self.cases.targets,
            users=self.cases.users,
            unit_ids=self.cases.unit_ids,
            history=self.learned,
            previous=self.cases.previous,
            slices=None if hours is None else {"hour": part_of_day(hours)},
            system=MODEL,
            seed=self.seed,
        )

    @cached_property
    def classified(self) -> Classified:
        """Where the right places landed, with the model's probabilities."""
        return classify(self.logits, self.cases.targets, probabilities=True)

    @cached_property
    def reliability(self) -> Reliability:
        """How far the model can be taken at its word."""
        right = HitRate(1).per_unit(self.classified.ranking)
        return reliability(self.classified.confidence, right, clusters=self.cases.users, seed=self.seed)

    def charts(self) -> tuple[Chart, ...]:
        """Accuracy over k, the ranks, the reliability diagram, and the confusion of frequent places."""
        asked: dict[str, Any] = {"unit_ids": self.cases.unit_ids}
        targets = self.cases.targets
        rankings = {
            MODEL: self.classified.ranking,
            "most frequent per user": guess_per_user(
                self.learned, self.cases.users, targets, **asked
            ).ranking,
            "majority": guess_majority(self.learned.counts, targets, **asked).ranking,
        }
        luck = accuracy_curve(self.classified.ranking.uninformed()).tolist()
        curves = {name: accuracy_curve(each).tolist() for name, each in rankings.items()}
        ranks = {name: rank_classes(each) for name, each in rankings.items()}
        mixed, sure = confusion(self.classified.labels), self.reliability
        return (
            accuracy_chart(curves, luck),
            ranks_chart(ranks[MODEL].names, {name: each.shares.tolist() for name, each in ranks.items()}),
            reliability_chart(MODEL, dots_of(sure), sure.ece, sure.calibrated),
            confusion_chart(MODEL, mixed.classes, mixed.counts.tolist()),
        )

    def write(self, folder: Path) -> list[Path]:
        """The files that ``eq places score`` takes: logits, targets, users, the places before, the visits."""
        folder.mkdir(parents=True, exist_ok=True)
        arrays: dict[str, NDArray[Any]] = {
            "logits.npy": self.logits,
            "targets.npy": self.cases.targets,
            "user.npy": self.cases.users.astype(str),
            "previous.npy": self.cases.previous,
            "hour.npy": np.array([]) if self.cases.hours is None else self.cases.hours,
        }
        for name, array in arrays.items():
            np.save(folder / name, array, allow_pickle=False)
        visits = zip(self.learned.users.tolist(), self.learned.places.tolist(), strict=True)
        lines = ["user,place", *(f"{user},{place}" for user, place in visits)]
        write_bytes(folder / "visits.csv", ("\n".join(lines) + "\n").encode())
        return [folder / name for name in (*arrays, "visits.csv")]


def part_of_day(hours: NDArray[Any]) -> Ids:
    """The part of the day that an hour belongs to.

    >>> part_of_day(np.array([7, 12, 23])).tolist()
    ['00-10', '11-15', '20-23']
    """
    ends = np.array([end for end, _ in DAY])
    names = np.array([name for _, name in DAY], dtype=object)
    return names[np.searchsorted(ends, hours, side="right")]


def dots_of(found: Reliability) -> list[Dot]:
    """The bins as the diagram draws them."""
    return [
        Dot(
            each.low,
            each.high,
            each.confidence,
            each.accuracy,
            each.interval.low if each.interval.known else None,
            each.interval.high if each.interval.known else None,
            each.n,
        )
        for each in found.bins
    ]
