"""The outcome: what every model scored on a field, and what may be said of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.checks.registry import run_checks
from equipoise.domains.concepts.checks import ConceptSpace, ScoreComponent, ZeroVectors
from equipoise.domains.concepts.comparison import (
    compare_on_composite,
    compare_on_score,
    recommend,
    weight_sensitivity,
)
from equipoise.domains.concepts.report import (
    ConceptReportData,
    ScoreComparison,
    WeightSensitivity,
    concepts_report,
)
from equipoise.domains.concepts.scores import COMPOSITE, CONCEPT_SCORES, interpret_score
from equipoise.errors import EquipoiseError, UnknownNameError
from equipoise.report.terminal import render_text

if TYPE_CHECKING:
    from equipoise.domains.concepts.concept_set import ConceptSet
    from equipoise.domains.concepts.uncertainty import TaskScore
    from equipoise.stats.contrasts import Contrast
    from equipoise.stats.result import Estimate
    from equipoise.types import Finding


@dataclass(frozen=True)
class ModelScores:
    """One model: what it scored on every task, and what it is."""

    model: str
    tasks: Mapping[str, TaskScore]
    dims: int
    fingerprint: str = ""
    texts: int = 0
    """How many texts its scores rest on."""
    zeros: tuple[str, ...] = ()
    """Those of them that it gave a vector of zeros."""


@dataclass(frozen=True)
class ConceptEvaluation:
    """Models on a field, best read through ``summary``, ``compare_on_composite`` and ``recommendations``.

    ``found[model]`` gives the scores of a model by the names of the source; ``weights`` are those of the
    composite, by task.
    """

    field: ConceptSet
    scores: Mapping[str, ModelScores]
    weights: Mapping[str, float]
    failures: Mapping[str, EquipoiseError]
    absent: Mapping[str, str]
    seed: int = 0
    confidence_level: float = 0.95
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
    def standings(self) -> tuple[ScoreComparison, ...]:
        """All models on every score."""
        return tuple(
            compare_on_score(
                {name: own.tasks[task] for name, own in self.scores.items()}, confidence_level=self.confidence_level
            )
            for task in self.tasks
        )

    @cached_property
    def composite(self) -> ScoreComparison | None:
        """All models on the composite; None where a score that it needs was not measured."""
        if not self.weights or not set(self.weights) <= set(self.tasks):
            return None
        by_model = {name: own.tasks for name, own in self.scores.items()}
        return compare_on_composite(by_model, self.weights, confidence_level=self.confidence_level)

    @cached_property
    def winning(self) -> tuple[WeightSensitivity, ...]:
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
        plain = weight_sensitivity(scores, seed=self.seed)
        redrawn = plain if errors is None else weight_sensitivity(scores, errors, seed=self.seed)
        return tuple(
            WeightSensitivity(name, float(one), float(other))
            for name, one, other in zip(self.scores, plain, redrawn, strict=True)
        )

    @property
    def recommendations(self) -> dict[str, str]:
        """For each use, the model to take, or those that the data do not separate."""
        return {each.use: each.text for each in self.edition.advice}

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """What is wrong with the field, the spaces and the blends."""
        found = list(run_checks(self.field))
        for name, own in self.scores.items():
            found += run_checks(ZeroVectors(name, own.zeros, own.texts))
            for task, what in _SPACES.items():
                space = own.tasks[task].observed.space if task in own.tasks else None
                found += [] if space is None else run_checks(ConceptSpace(name, space, what))
        for task in self.tasks:
            found += self._findings_of_parts(task)
        return tuple(dict.fromkeys(found))

    def _findings_of_parts(self, task: str) -> list[Finding]:
        blend = CONCEPT_SCORES[task]
        found: list[Finding] = []
        for term in blend.terms:
            values = {
                name: term.entering(own.tasks[task].observed.parts[term.part].value)
                for name, own in self.scores.items()
            }
            part = ScoreComponent(blend.name, term.entry, term.weight, term.better, values, term.fixed)
            found += run_checks(part)
        return found

    @cached_property
    def edition(self) -> ConceptReportData:
        """All that a report shows."""
        every = self.standings if self.composite is None else (*self.standings, self.composite)
        return ConceptReportData(
            name=self.field.name,
            models=tuple(self.scores),
            standings=self.standings,
            composite=self.composite,
            advice=recommend(every),
            winning=self.winning,
            readings={
                each.score: {name: interpret_score(own.value, own.interval) for name, own in each.estimates.items()}
                for each in every
            },
            findings=self.findings,
            notes=self.notes,
            failures={name: error.message for name, error in self.failures.items()},
            settings={"seed": self.seed, "confidence_level": self.confidence_level, "weights": dict(self.weights)},
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What was not measured, and why."""
        notes = [f"{CONCEPT_SCORES[task].name} was not measured: {reason}" for task, reason in self.absent.items()]
        chosen = self.weights != dict.fromkeys(CONCEPT_SCORES, 1.0)
        unmeasured = [task for task in self.weights if task not in self.tasks]
        lacking = [CONCEPT_SCORES[task].name for task in unmeasured if chosen or task in self.absent]
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
        return render_text(*concepts_report(self.edition))

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values."""

        return evaluation_dict(self)

    def write(self, folder: str | Path) -> Path:
        """The figures, and a run directory a model and kind of evidence, into a folder."""
        from equipoise.domains.concepts.store import write_evaluation

        return write_evaluation(Path(folder), self)

    def draw(self, folder: str | Path) -> list[Path]:
        """Every chart as PNG and SVG; none where nothing is installed to draw them."""
        from equipoise.domains.concepts.charts import write_charts

        return write_charts(Path(folder), self)

    def __repr__(self) -> str:
        claims = "; ".join(f"{use}: {who}" for use, who in self.recommendations.items())
        failed = f" ({', '.join(self.failures)} failed)" if self.failures else ""
        return f"<ConceptEvaluation of {', '.join(self.scores)}{failed} on {self.field.name}: {claims}>"

    def _repr_html_(self) -> str:
        from html import escape

        return f"<pre>{escape(self.summary)}</pre>"


_SPACES = {"clustering": "the concepts of the clusters", "quality": "the standard concepts"}
"""The tasks whose points are looked at for a collapse."""


# An evaluation as plain values, for JSON.


def evaluation_dict(found: ConceptEvaluation) -> dict[str, Any]:
    """Scores by the names of the source, their parts, the claims, and all that decided them."""
    edition = found.edition
    return {
        "schema": 1,
        "field": {"name": found.field.name, "fingerprint": found.field.fingerprint},
        "models": {
            name: {
                "dims": own.dims,
                "scores": {score: each.value for score, each in found[name].items()},
                "fingerprint": own.fingerprint,
            }
            for name, own in found.scores.items()
        },
        "scores": [_standing(each, edition.readings[each.score]) for each in edition.all_standings],
        "recommendations": [
            {
                "use": each.use,
                "score": each.score,
                "models": list(each.models),
                "message": each.message,
                "caution": each.caution,
            }
            for each in edition.advice
        ],
        "weight_sensitivity": [asdict(each) for each in edition.winning],
        "findings": [asdict(each) for each in found.findings],
        "notes": list(found.notes),
        "failures": {
            name: {"code": error.code, "message": error.message, "hint": error.hint}
            for name, error in found.failures.items()
        },
        "settings": {**edition.settings, "command": list(found.command)},
    }


def _standing(standing: ScoreComparison, readings: Any) -> dict[str, Any]:
    return {
        "score": standing.score,
        "formula": standing.formula,
        "resampled": standing.drawn,
        "chance_of": standing.luck,
        "method": standing.method,
        "readings": list(standing.readings),
        "correction": standing.family,
        "order": list(standing.order),
        "models": {
            name: {
                **each.to_dict(),
                "band": list(standing.letters[name]),
                "reading": readings[name],
                "parts": {part: own[name].to_dict() for part, own in standing.parts.items()},
                "beside": {
                    figure: {**own[name].to_dict(), **_shuffled(standing, figure, name)}
                    for figure, own in standing.beside.items()
                    if name in own
                },
            }
            for name, each in standing.estimates.items()
        },
        "comparisons": [_contrast(each) for each in standing.contrasts],
    }


def _shuffled(standing: ScoreComparison, figure: str, model: str) -> dict[str, float]:
    """The p of "no better than shuffled", corrected over the models, where shuffles were made."""
    return {"chance_p": standing.chance_p[figure][model]} if figure in standing.chance_p else {}


def _contrast(contrast: Contrast) -> dict[str, Any]:
    reach = contrast.interval
    return {
        "a": contrast.a,
        "b": contrast.b,
        "difference": contrast.difference,
        "interval": {"low": reach.low, "high": reach.high, "confidence_level": reach.confidence_level},
        "p": contrast.p,
        "adjusted_p": contrast.adjusted,
        "reason": contrast.reason,
    }
