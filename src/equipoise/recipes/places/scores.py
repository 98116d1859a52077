"""What scoring one system of next locations found, and how it is shown and kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from equipoise.report.places import Part, PlacesEdition, percent_of
from equipoise.run.details import Detail
from equipoise.stats.result import Result
from equipoise.stats.slices import Slice
from equipoise.tasks.classify import Classified
from equipoise.types import Finding, Ids


@dataclass(frozen=True, slots=True)
class TieReport:
    """How many scores are equal, and between which ends a metric lies depending on their order."""

    targets: int
    tops: int
    metric: str
    low: float
    high: float


@dataclass(frozen=True)
class PlaceScores:
    """The figures of all units and of the answerable ones, the baselines beside them, users and slices.

    ``answerable`` is None where nobody told what was seen in training, or no target was.
    """

    classified: Classified = field(repr=False)
    all: Result
    answerable: Result | None
    baselines: Mapping[str, Mapping[str, float]]
    answerable_baselines: Mapping[str, Mapping[str, float]]
    by_user: Result | None
    slices: tuple[Slice, ...]
    columns: Mapping[str, Ids] = field(repr=False)
    ties: TieReport
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def system(self) -> str:
        """The name of the system."""
        return self.all.system

    @property
    def partly_answerable(self) -> bool:
        """Whether some units are answerable and some are not."""
        return self.answerable is not None and self.answerable is not self.all

    @property
    def percent(self) -> dict[str, float]:
        """The figures of all units in percent."""
        return percent_of({name: each.value for name, each in self.all.estimates.items()})

    @cached_property
    def edition(self) -> PlacesEdition:
        """What the report shows."""
        parts = [Part("all units", self.all, self.baselines)]
        if self.answerable is not None and self.partly_answerable:
            parts.append(Part("answerable units", self.answerable, self.answerable_baselines))
        ties = self.ties
        return PlacesEdition(
            system=self.system,
            classes=self.classified.classes,
            parts=tuple(parts),
            by_user=self.by_user,
            slices=self.slices,
            tied=ties.targets,
            tied_top=ties.tops,
            tie_range=(ties.low, ties.high),
            tie_metric=ties.metric,
            notes=(*self.notes, *self._about_answers()),
            findings=self.findings,
        )

    def _about_answers(self) -> tuple[str, ...]:
        if self.partly_answerable:
            lost = int(np.count_nonzero(~self.classified.answerable))
            return (f"{lost:,} of {len(self.classified):,} targets were not seen in training",)
        if self.answerable is not None:
            return ("All targets were seen in training, so all units are answerable",)
        if not self.classified.answerable.any():
            return ("No target was seen in training, so no unit is answerable",)
        return ("Nobody told what was seen in training (train counts or unseen classes)",)

    def details(self) -> dict[str | int, Detail]:
        """What people see of each unit: what was expected and what came first, and its slices."""
        labels = self.classified.labels
        rows = zip(*(column.tolist() for column in self.columns.values()), strict=True)
        slices = list(rows) if self.columns else [()] * len(labels)
        names = labels.classes
        return {
            unit: Detail(
                f"predicted {names[predicted]}",
                (str(names[true]),),
                dict(zip(self.columns, slices[row], strict=True)),
            )
            for row, (unit, true, predicted) in enumerate(
                zip(labels.unit_ids.tolist(), labels.true.tolist(), labels.predicted.tolist(), strict=True)
            )
        }

    def to_dict(self) -> dict[str, Any]:
        """Plain values: fractions, each with its unit, and the percent view beside them."""
        return {
            "system": self.system,
            "classes": self.classified.classes,
            "percent": self.percent,
            "all": self.all.to_dict(),
            "answerable": None if self.answerable is None else self.answerable.to_dict(),
            "baselines": {name: dict(each) for name, each in self.baselines.items()},
            "answerable_baselines": {name: dict(each) for name, each in self.answerable_baselines.items()},
            "by_user": None if self.by_user is None else self.by_user.to_dict(),
            "slices": [
                {"name": each.name, "value": each.value, **each.estimate.to_dict()} for each in self.slices
            ],
            "ties": {
                "targets": self.ties.targets,
                "tops": self.ties.tops,
                "metric": self.ties.metric,
                "pessimistic": self.ties.low,
                "optimistic": self.ties.high,
            },
            "notes": list(self.edition.notes),
        }
