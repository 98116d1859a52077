"""The result of a concept evaluation: scores per model, comparisons, findings, report data and JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from math import isnan, nan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.checks.base import run_checks
from equipoise.domains.concepts.checks import ConceptSpace, ScoreComponent, ZeroVectors
from equipoise.domains.concepts.comparison import (
    ScoreComparison,
    WeightSensitivity,
    chance_p_values,
    compare_on_composite,
    compare_on_score,
    weight_sensitivity,
)
from equipoise.domains.concepts.evidence import annotator_ceiling
from equipoise.domains.concepts.recommendation import Recommendation, join_with, recommend
from equipoise.domains.concepts.report import concepts_view
from equipoise.domains.concepts.scores import COMPOSITE, CONCEPT_SCORES, CONCEPT_STATS, interpret_score
from equipoise.errors import EquipoiseError, UnknownNameError
from equipoise.io.atomic import write_text
from equipoise.report.terminal import render_text
from equipoise.runs.experiment_folder import RUNS, VISUALIZATIONS, ExperimentFolder, failures_to_dict, folder_names
from equipoise.runs.manifest import Manifest, redact_secrets
from equipoise.runs.run_folder import save_run

if TYPE_CHECKING:
    from equipoise.config import StatsConfig
    from equipoise.domains.concepts.concept_set import ConceptSet
    from equipoise.domains.concepts.uncertainty import TaskScore
    from equipoise.report.charts.chart import Chart
    from equipoise.report.view import View
    from equipoise.stats.comparison import Contrast
    from equipoise.stats.result import Estimate, Result
    from equipoise.types import Finding


@dataclass(frozen=True)
class ModelScores:
    """The scores of one model on every task, and its properties."""

    model: str
    tasks: Mapping[str, TaskScore]
    dims: int
    fingerprint: str = ""
    texts: int = 0
    """The number of embedded texts."""
    zeros: tuple[str, ...] = ()
    """The texts with a zero vector."""

    @property
    def results(self) -> Iterator[tuple[str, str, Result]]:
        """The kind of evidence, the task and the result of every stored run."""
        for task, score in self.tasks.items():
            for evidence, result in score.observed.results.items():
                yield evidence, task, score.stored if evidence == score.observed.main else result


@dataclass(frozen=True)
class ConceptEvaluation:
    """Models on a concept set; see ``summary``, ``composite`` and ``recommendations``.

    ``evaluation[model]`` gives the scores of a model by name; ``weights`` are those of the composite, by task.
    """

    concept_set: ConceptSet
    scores: Mapping[str, ModelScores]
    weights: Mapping[str, float]
    failures: Mapping[str, EquipoiseError]
    skipped_tasks: Mapping[str, str]
    config: StatsConfig = CONCEPT_STATS
    command: tuple[str, ...] = ()
    resumed: tuple[str, ...] = ()
    """The models that were loaded from the output folder instead of computed."""

    def __getitem__(self, model: str) -> dict[str, Estimate]:
        """The scores of a model, with the composite if it is defined; a failed model raises its error."""
        if model in self.failures:
            raise self.failures[model]
        if model not in self.scores:
            raise UnknownNameError.of("model", model, self.scores, more=f"there are {', '.join(self.scores)}")
        return {comparison.score: comparison.estimates[model] for comparison in self.all_score_comparisons}

    def __iter__(self) -> Iterator[str]:
        return iter(self.scores)

    def __len__(self) -> int:
        return len(self.scores)

    @property
    def models(self) -> tuple[str, ...]:
        """The models that were scored."""
        return tuple(self.scores)

    @property
    def tasks(self) -> tuple[str, ...]:
        """The evaluated tasks."""
        return tuple(next(iter(self.scores.values())).tasks)

    @cached_property
    def chance_p(self) -> dict[str, dict[str, float]]:
        """By ground-truth metric and model, the adjusted p-value of the permutation test against chance."""
        by_model = {name: scores.tasks for name, scores in self.scores.items()}
        return chance_p_values(by_model, self.weights, config=self.config)

    @cached_property
    def score_comparisons(self) -> tuple[ScoreComparison, ...]:
        """The comparison of all models per score."""
        return tuple(
            compare_on_score(
                {name: model_scores.tasks[task] for name, model_scores in self.scores.items()},
                self.chance_p,
                config=self.config,
            )
            for task in self.tasks
        )

    @cached_property
    def composite(self) -> ScoreComparison | None:
        """The comparison on the composite; None if one of its scores is missing."""
        if not self.weights or not set(self.weights) <= set(self.tasks):
            return None
        by_model = {name: model_scores.tasks for name, model_scores in self.scores.items()}
        return compare_on_composite(by_model, self.weights, self.chance_p, config=self.config)

    @property
    def all_score_comparisons(self) -> tuple[ScoreComparison, ...]:
        """The scores and, where there is one, the composite after them."""
        return self.score_comparisons if self.composite is None else (*self.score_comparisons, self.composite)

    @cached_property
    def weight_sensitivities(self) -> tuple[WeightSensitivity, ...]:
        """The share of random weightings of the composite in which each model is first."""
        if self.composite is None or len(self.scores) < 2:
            return ()
        tasks = list(self.weights)
        scores = np.array([[model_scores.tasks[task].value for task in tasks] for model_scores in self.scores.values()])
        spreads = [[model_scores.tasks[task].spread for task in tasks] for model_scores in self.scores.values()]
        if np.isnan(scores).any():
            return ()
        known = not any(spread.reason for row in spreads for spread in row)
        errors = np.array([[spread.errors for spread in row] for row in spreads]) if known else None
        plain = weight_sensitivity(scores, seed=self.config.seed)
        resampled = plain if errors is None else weight_sensitivity(scores, errors, seed=self.config.seed)
        return tuple(
            WeightSensitivity(name, float(one), float(other))
            for name, one, other in zip(self.scores, plain, resampled, strict=True)
        )

    @property
    def recommendations(self) -> dict[str, str]:
        """For each use, the recommended model, or those that are not significantly different."""
        return {advice.use: advice.text for advice in self.advice}

    @property
    def collapsed(self) -> frozenset[str]:
        """The models whose vectors are collapsed."""
        return frozenset(finding.subject for finding in self.findings if finding.code == "EQ310")

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """The findings about the concept set, the vectors and the scores."""
        findings = list(run_checks(self.concept_set))
        for name, model_scores in self.scores.items():
            findings += run_checks(ZeroVectors(name, model_scores.zeros, model_scores.texts))
            for task in [task for task in _SPACES if task in self.tasks][:2]:
                space = model_scores.tasks[task].observed.space
                findings += [] if space is None else run_checks(ConceptSpace(name, space, _SPACES[task]))
        for task in self.tasks:
            findings += self._findings_of_parts(task)
        return tuple(dict.fromkeys(findings))

    def _findings_of_parts(self, task: str) -> list[Finding]:
        blend = CONCEPT_SCORES[task]
        findings: list[Finding] = []
        for term in blend.terms:
            values = {
                name: term.entering(model_scores.tasks[task].observed.parts[term.part].value)
                for name, model_scores in self.scores.items()
            }
            part = ScoreComponent(blend.name, term.entry, term.weight, term.better, values, term.fixed)
            findings += run_checks(part)
        return findings

    @cached_property
    def advice(self) -> tuple[Recommendation, ...]:
        """For each use, the recommended models with the reasons."""
        return recommend(self.all_score_comparisons, self.collapsed)

    @property
    def ceiling(self) -> float:
        """Mean correlation of an annotator with the others; NaN without several ratings."""
        return annotator_ceiling(self.concept_set.pairs or ()) if "similarity" in self.tasks else nan

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on skipped tasks and undefined scores."""
        notes = [
            f"{CONCEPT_SCORES[task].name} was not measured: {reason}" for task, reason in self.skipped_tasks.items()
        ]
        chosen = self.weights != dict.fromkeys(CONCEPT_SCORES, 1.0)
        unmeasured = [task for task in self.weights if task not in self.tasks]
        missing = [CONCEPT_SCORES[task].name for task in unmeasured if chosen or task in self.skipped_tasks]
        if missing:
            notes.append(f"{COMPOSITE} is undefined without {join_with(missing, 'and')}")
        notes += [
            f"{blend.name} of {name} is undefined, because {why}"
            for name, model_scores in self.scores.items()
            for blend, why in ((score.blend, score.undefined_part) for score in model_scores.tasks.values())
            if why
        ]
        if self.composite is not None and chosen:
            notes.append(f"{COMPOSITE} here is {self.composite.formula}")
        return tuple(notes)

    @property
    def summary(self) -> str:
        """The report as text."""
        return render_text(*concepts_view(self).parts())

    @cached_property
    def view(self) -> View:
        """The whole report: answer, tables and charts."""
        return concepts_view(self).with_charts(self.charts())

    def report(self, path: str | Path) -> Path:
        """Write the whole run as one HTML page: recommendations, every table, findings and charts.

        Parameters
        ----------
        path
            The HTML file.

        Returns
        -------
        Path
            The file.
        """
        from equipoise.report.html.render import render_views

        file = Path(path)
        write_text(file, render_views(f"Concepts: {self.concept_set.name}", [self.view]))
        return file

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values."""
        return evaluation_dict(self)

    def write(self, folder: str | Path) -> Path:
        """Write the results, and one run directory per model and kind of evidence, to a folder.

        The run directories are runs/EVIDENCE/MODEL. The weighted score of a task is in that of its main evidence.
        """
        target = ExperimentFolder(Path(folder))
        target.check_writable()
        names, runs = folder_names(self.scores), []
        for model, model_scores in self.scores.items():
            for evidence, task, result in model_scores.results:
                stored = replace(result, findings=self._stored_findings(model, result))
                run = target.path / RUNS / evidence / names[model]
                save_run(run, stored, manifest=self._manifest(model, task))
                runs.append((evidence != model_scores.tasks[task].observed.truth_result, run))
        # The ground-truth metrics decide, so their runs come first.
        self.view.write(folder, [run for _, run in sorted(runs, key=lambda item: item[0])])
        return target.write_results(self.to_dict())

    def _manifest(self, model: str, task: str) -> Manifest:
        score = self.scores[model].tasks[task]
        return Manifest(
            system=model,
            command=redact_secrets(self.command),
            seed=self.config.seed,
            datasets={f"{self.concept_set.name} {score.blend.needs}": self.concept_set.fingerprint},
            parameters={
                "model": model,
                "task": task,
                "formula": score.blend.formula,
                "resampling": score.observed.sampling.summary,
            },
            cost={"dims": self.scores[model].dims},
        )

    def _stored_findings(self, model: str, result: Result) -> tuple[Finding, ...]:
        """The findings of a run directory: those of its model, and those of all models together."""
        others = set(self.scores) - {model}
        shared = (finding for finding in self.findings if finding.subject not in others)
        return tuple(dict.fromkeys((*shared, *result.findings)))

    def draw(self, folder: str | Path) -> list[Path]:
        """Write every chart as PNG and SVG; nothing if charts cannot be drawn here."""
        from equipoise.report.charts.chart import write_charts

        return write_charts(self.charts(), Path(folder) / VISUALIZATIONS, required=False)

    def charts(self) -> tuple[Chart, ...]:
        """Every chart that the measured tasks allow."""
        from equipoise.domains.concepts.charts import concept_charts

        return concept_charts(self)

    def __repr__(self) -> str:
        claims = "; ".join(f"{use}: {models}" for use, models in self.recommendations.items())
        failed = f" ({', '.join(self.failures)} failed)" if self.failures else ""
        return f"<ConceptEvaluation of {', '.join(self.scores)}{failed} on {self.concept_set.name}: {claims}>"

    def _repr_html_(self) -> str:
        from html import escape

        return f"<pre>{escape(self.summary)}</pre>"


_SPACES = {
    "clustering": "the concepts of the clusters",
    "quality": "the standard concepts",
    "entities": "the entities",
    "relations": "the related entities",
    "similarity": "the texts of the pairs",
}
"""The tasks whose vectors are checked for collapse: the first two that were measured."""


def evaluation_dict(evaluation: ConceptEvaluation) -> dict[str, Any]:
    """Scores by name, their parts, the comparisons and the settings, as plain values."""
    return {
        "schema": 1,
        "concept_set": {"name": evaluation.concept_set.name, "fingerprint": evaluation.concept_set.fingerprint},
        "models": {
            name: {
                "dims": model_scores.dims,
                "scores": {score: estimate.value for score, estimate in evaluation[name].items()},
                "fingerprint": model_scores.fingerprint,
            }
            for name, model_scores in evaluation.scores.items()
        },
        "scores": [_comparison_dict(comparison) for comparison in evaluation.all_score_comparisons],
        "recommendations": [
            {
                "use": advice.use,
                "score": advice.score,
                "metric": advice.metric,
                "models": list(advice.models),
                "message": advice.text,
                "formula": advice.formula,
                "excluded": dict(advice.excluded),
            }
            for advice in evaluation.advice
        ],
        "annotator_ceiling": None if isnan(evaluation.ceiling) else evaluation.ceiling,
        "weight_sensitivity": [asdict(sensitivity) for sensitivity in evaluation.weight_sensitivities],
        "findings": [asdict(finding) for finding in evaluation.findings],
        "notes": list(evaluation.notes),
        "failures": failures_to_dict(evaluation.failures),
        "settings": {
            "seed": evaluation.config.seed,
            "confidence_level": evaluation.config.confidence_level,
            "weights": dict(evaluation.weights),
            "command": list(evaluation.command),
        },
    }


def _comparison_dict(score_comparison: ScoreComparison) -> dict[str, Any]:
    return {
        "score": score_comparison.score,
        "formula": score_comparison.formula,
        "resampled": score_comparison.resampling,
        "chance_of": score_comparison.chance_baseline,
        "method": score_comparison.method,
        "definitions": list(score_comparison.definitions),
        "correction": score_comparison.correction,
        "order": list(score_comparison.order),
        "models": {
            name: {
                **estimate.to_dict(),
                "band": list(score_comparison.letters[name]),
                "rating": interpret_score(estimate.value, estimate.interval),
                "parts": {part: model_scores[name].to_dict() for part, model_scores in score_comparison.parts.items()},
                "reference_metrics": {
                    metric: model_scores[name].to_dict()
                    for metric, model_scores in score_comparison.reference_metrics.items()
                    if name in model_scores
                },
                "chance_p": score_comparison.chance_p.get(name),
            }
            for name, estimate in score_comparison.estimates.items()
        },
        "comparisons": [_contrast(contrast) for contrast in score_comparison.contrasts],
        "ground_truth": score_comparison.truth,
        "ground_truth_comparisons": [_contrast(contrast) for contrast in score_comparison.truth_contrasts],
        "categories": {
            category: {name: estimate.to_dict() for name, estimate in by_model.items()}
            for category, by_model in score_comparison.slices.items()
        },
    }


def _contrast(contrast: Contrast) -> dict[str, Any]:
    interval = contrast.interval
    return {
        "a": contrast.a,
        "b": contrast.b,
        "difference": contrast.difference,
        "interval": {"low": interval.low, "high": interval.high, "confidence_level": interval.confidence_level},
        "p": contrast.p,
        "adjusted_p": contrast.adjusted,
        "reason": contrast.reason,
    }
