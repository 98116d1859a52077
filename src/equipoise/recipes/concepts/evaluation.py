"""The outcome: what every model scored on a field, and what may be said of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from equipoise.checks.catalogue import examine
from equipoise.checks.concepts import BlendPart, ConceptSpace, Vectorless
from equipoise.data.field import Field
from equipoise.errors import EquipoiseError, UnknownNameError
from equipoise.recipes.concepts.advice import advise
from equipoise.recipes.concepts.blends import BLENDS, COMPOSITE
from equipoise.recipes.concepts.measured import Measured
from equipoise.recipes.concepts.readings import reading
from equipoise.recipes.concepts.standings import composite, standing
from equipoise.recipes.concepts.weighing import winning_shares
from equipoise.report.concepts import concepts_report
from equipoise.report.concepts_edition import ConceptEdition, Standing, Winning
from equipoise.report.text import plain_text
from equipoise.stats.result import Estimate
from equipoise.types import Finding


@dataclass(frozen=True)
class ModelScores:
    """One model: what it scored on every task, and what it is."""

    model: str
    tasks: Mapping[str, Measured]
    dims: int
    fingerprint: str = ""
    texts: int = 0
    """How many texts its scores rest on."""
    zeros: tuple[str, ...] = ()
    """Those of them that it gave a vector of zeros."""


@dataclass(frozen=True)
class ConceptEvaluation:
    """Models on a field, best read through ``summary``, ``composite`` and ``recommendations``.

    ``found[model]`` gives the scores of a model by the names of the source; ``weights`` are those of the
    composite, by task.
    """

    field: Field
    scores: Mapping[str, ModelScores]
    weights: Mapping[str, float]
    failures: Mapping[str, EquipoiseError]
    absent: Mapping[str, str]
    seed: int = 0
    level: float = 0.95
    command: tuple[str, ...] = ()

    def __getitem__(self, model: str) -> dict[str, Estimate]:
        """The scores of a model, the composite among them where there is one; a failed one raises."""
        if model in self.failures:
            raise self.failures[model]
        if model not in self.scores:
            raise UnknownNameError.of("model", model, self.scores, more=f"there are {', '.join(self.scores)}")
        return {each.score: each.estimates[model] for each in self.edition.all_standings}

    def __iter__(self) -> Iterator[str]:
        return iter(self.scores)

    def __len__(self) -> int:
        return len(self.scores)

    @property
    def tasks(self) -> tuple[str, ...]:
        """The tasks that were measured."""
        return tuple(next(iter(self.scores.values())).tasks)

    @cached_property
    def standings(self) -> tuple[Standing, ...]:
        """All models on every score."""
        return tuple(
            standing({name: own.tasks[task] for name, own in self.scores.items()}, level=self.level)
            for task in self.tasks
        )

    @cached_property
    def composite(self) -> Standing | None:
        """All models on the composite; None where a score that it needs was not measured."""
        if not self.weights or not set(self.weights) <= set(self.tasks):
            return None
        by_model = {name: own.tasks for name, own in self.scores.items()}
        return composite(by_model, self.weights, level=self.level)

    @cached_property
    def winning(self) -> tuple[Winning, ...]:
        """In what share of all weightings of the composite each model comes first."""
        if self.composite is None or len(self.scores) < 2:
            return ()
        tasks = list(self.weights)
        scores = np.array([[own.tasks[task].value for task in tasks] for own in self.scores.values()])
        spreads = [[own.tasks[task].spread for task in tasks] for own in self.scores.values()]
        if np.isnan(scores).any():
            return ()
        known = not any(each.reason for row in spreads for each in row)
        errors = np.array([[each.errors for each in row] for row in spreads]) if known else None
        plain = winning_shares(scores, seed=self.seed)
        redrawn = plain if errors is None else winning_shares(scores, errors, seed=self.seed)
        return tuple(
            Winning(name, float(one), float(other))
            for name, one, other in zip(self.scores, plain, redrawn, strict=True)
        )

    @property
    def recommendations(self) -> dict[str, str]:
        """For each use, the model to take, or those that the data do not separate."""
        return {each.use: each.text for each in self.edition.advice}

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """What is wrong with the field, the spaces and the blends."""
        found = list(examine(self.field))
        for name, own in self.scores.items():
            found += examine(Vectorless(name, own.zeros, own.texts))
            for task, what in _SPACES.items():
                space = own.tasks[task].observed.space if task in own.tasks else None
                found += [] if space is None else examine(ConceptSpace(name, space, what))
        for task in self.tasks:
            found += self._findings_of_parts(task)
        return tuple(dict.fromkeys(found))

    def _findings_of_parts(self, task: str) -> list[Finding]:
        blend = BLENDS[task]
        found: list[Finding] = []
        for term in blend.terms:
            values = {
                name: term.entering(own.tasks[task].observed.parts[term.part].value)
                for name, own in self.scores.items()
            }
            part = BlendPart(blend.name, term.entry, term.weight, term.better, values, term.fixed)
            found += examine(part)
        return found

    @cached_property
    def edition(self) -> ConceptEdition:
        """All that a report shows."""
        every = self.standings if self.composite is None else (*self.standings, self.composite)
        return ConceptEdition(
            name=self.field.name,
            models=tuple(self.scores),
            standings=self.standings,
            composite=self.composite,
            advice=advise(every),
            winning=self.winning,
            readings={
                each.score: {name: reading(own.value, own.interval) for name, own in each.estimates.items()}
                for each in every
            },
            findings=self.findings,
            notes=self.notes,
            failures={name: error.sentence for name, error in self.failures.items()},
            settings={"seed": self.seed, "level": self.level, "weights": dict(self.weights)},
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What was not measured, and why."""
        notes = [f"{BLENDS[task].name} was not measured: {reason}" for task, reason in self.absent.items()]
        chosen = self.weights != dict.fromkeys(BLENDS, 1.0)
        unmeasured = [task for task in self.weights if task not in self.tasks]
        lacking = [BLENDS[task].name for task in unmeasured if chosen or task in self.absent]
        if lacking:
            notes.append(f"{COMPOSITE} is undefined without {' and '.join(lacking)}")
        notes += [
            f"{blend.name} of {name} is undefined, as {why}"
            for name, own in self.scores.items()
            for blend, why in ((each.blend, each.lacking) for each in own.tasks.values())
            if why
        ]
        if self.composite is not None and chosen:
            notes.append(f"{COMPOSITE} here is {self.composite.formula}")
        return tuple(notes)

    @property
    def summary(self) -> str:
        """The report for people, as text."""
        return plain_text(*concepts_report(self.edition))

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values."""
        from equipoise.recipes.concepts.plain import evaluation_dict

        return evaluation_dict(self)

    def write(self, folder: str | Path) -> Path:
        """The figures, and a run directory a model and kind of evidence, into a folder."""
        from equipoise.recipes.concepts.store import write_evaluation

        return write_evaluation(Path(folder), self)

    def draw(self, folder: str | Path) -> list[Path]:
        """Every chart as PNG and SVG; none where nothing is installed to draw them."""
        from equipoise.recipes.concepts.pictures import draw

        return draw(Path(folder), self)

    def __repr__(self) -> str:
        claims = "; ".join(f"{use}: {who}" for use, who in self.recommendations.items())
        failed = f" ({', '.join(self.failures)} failed)" if self.failures else ""
        return f"<ConceptEvaluation of {', '.join(self.scores)}{failed} on {self.field.name}: {claims}>"

    def _repr_html_(self) -> str:
        from html import escape

        return f"<pre>{escape(self.summary)}</pre>"


_SPACES = {"clustering": "the concepts of the clusters", "quality": "the standard concepts"}
"""The tasks whose points are looked at for a collapse."""
