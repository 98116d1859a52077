"""The result of a fair comparison: one result per model, the comparison, its report and its files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from equipoise.domains.fair.model_outcome import FairModelResult, unrelated_runs, write_outcome
from equipoise.domains.fair.model_result import FailedModel, OptimizationResult
from equipoise.domains.fair.report import FairReportData, ModelSummary, fair_view
from equipoise.report.charts import write_run_charts
from equipoise.report.terminal import render_text
from equipoise.runs.experiment_folder import RESULTS, ExperimentFolder, failures_to_dict, is_json_file, write_json
from equipoise.runs.manifest import VIEW
from equipoise.runs.runner import resume_key
from equipoise.stats.result import NOTES

if TYPE_CHECKING:
    from equipoise.domains.fair.plan import Plan
    from equipoise.errors import EquipoiseError
    from equipoise.stats.comparison import Comparison
    from equipoise.stats.slices import Slice
    from equipoise.tuning.grid import Trial, TuningRecord
    from equipoise.types import Finding


@dataclass(frozen=True)
class FairComparison(Sequence[OptimizationResult | FailedModel]):
    """One result per model, in the order of the models, and the claims that they allow.

    A model that failed is a ``FailedModel`` at its position; reading a result field raises its error.
    ``failures`` holds these errors by model. ``comparison`` uses the held-out values, ``mcnemar`` binary hits
    with McNemar's exact test; both are None with fewer than two such models.
    """

    outcomes: tuple[FairModelResult, ...] = field(repr=False)
    comparison: Comparison | None
    mcnemar: Comparison | None = field(repr=False)
    slices: Mapping[str, tuple[Slice, ...]] = field(repr=False)
    findings: tuple[Finding, ...] = ()
    failures: Mapping[str, EquipoiseError] = field(default_factory=dict)
    plan: Plan = field(kw_only=True, repr=False)
    keys: Mapping[str, str] = field(default_factory=dict, kw_only=True, repr=False)
    command: tuple[str, ...] = field(default=(), kw_only=True, repr=False)

    @property
    def results(self) -> tuple[OptimizationResult | FailedModel, ...]:
        """The result or failure of each model, in input order."""
        finished = {outcome.profile.spec: outcome.optimization for outcome in self.outcomes}
        return tuple(
            finished[name] if name in finished else FailedModel(name, self.failures[name])
            for name in self.keys or finished
        )

    @overload
    def __getitem__(self, index: int) -> OptimizationResult | FailedModel: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[OptimizationResult | FailedModel]: ...
    def __getitem__(
        self, index: int | slice
    ) -> OptimizationResult | FailedModel | Sequence[OptimizationResult | FailedModel]:
        """The result at this position in the order of the models."""
        return self.results[index]

    def __len__(self) -> int:
        return len(self.results)

    @property
    def tunings(self) -> dict[str, TuningRecord]:
        """The tuning record of each model."""
        return {outcome.profile.spec: outcome.tuning for outcome in self.outcomes}

    @property
    def frontiers(self) -> dict[str, tuple[Trial, ...]]:
        """For each model, the Pareto frontier of accuracy and retrieved tokens."""
        return {name: tuning.frontier for name, tuning in self.tunings.items()}

    @property
    def resumed(self) -> tuple[str, ...]:
        """The models that were loaded from the output folder instead of computed."""
        return tuple(outcome.profile.spec for outcome in self.outcomes if outcome.stored is not None)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on the setup, which every result has."""
        return tuple(self.outcomes[0].result.settings.get(NOTES, ())) if self.outcomes else self.plan.notes

    @property
    def report_data(self) -> FairReportData:
        """The data of the report."""
        models = tuple(
            ModelSummary(
                name=outcome.profile.spec,
                estimate=outcome.result[self.plan.requested.metric],
                tuning=outcome.tuning,
                tokens=outcome.profile.retrieved_tokens,
                dimensions=outcome.profile.dimensions,
                tied_questions=outcome.profile.tied_questions,
                costs=outcome.profile.costs,
                slices=self.slices[outcome.profile.spec],
            )
            for outcome in self.outcomes
        )
        return FairReportData(
            models,
            self.comparison,
            self.mcnemar,
            self.findings,
            self.notes,
            {name: error.message for name, error in self.failures.items()},
            self.plan.requested.budget,
            self.plan.requested.tokenizer_name,
        )

    @property
    def cheapest(self) -> str | None:
        """The cheapest model that is not significantly worse than the best one; None if that is unknown."""
        return self.report_data.cheapest

    @property
    def summary(self) -> str:
        """The report as text."""
        return render_text(*fair_view(self.report_data).parts(verbose=True))

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values; the fields of embedding-eval are in percent, all others are fractions."""
        settings = self.plan.settings
        return {
            "schema": 1,
            "key": self.key,
            "models": [outcome.optimization.to_dict() for outcome in self.outcomes],
            "comparison": None if self.comparison is None else self.comparison.to_dict(),
            "cheapest": self.cheapest,
            "mcnemar": [] if self.mcnemar is None else self.mcnemar.to_dict()["contrasts"],
            "slices": {
                name: [{"slice": {part.name: part.value}, **part.estimate.to_dict()} for part in slices]
                for name, slices in self.slices.items()
            },
            "findings": [asdict(finding) for finding in self.findings],
            "failures": failures_to_dict(self.failures),
            "settings": {
                "chunkers": settings.chunkers,
                "chunk_sizes": settings.chunk_sizes,
                "overlaps": settings.overlaps,
                "top_ks": settings.top_ks,
                "baseline": settings.params(*settings.baseline),
                "matcher": settings.matcher,
                "budget": settings.budget,
                "tokenizer": settings.tokenizer_name,
                "units": dict.fromkeys(("chunk_size", "overlap", "budget", "tokens"), "tokens"),
                "metric": settings.metric,
                "folds": self.plan.split_counts.folds,
                "repeats": max(1, self.plan.split_counts.splits),
                "seed": settings.seed,
                "questions": len(self.plan.dataset.questions),
                "unanswerable": [question.id for question in self.plan.dataset.unanswerable],
                "skipped": self.plan.dataset.n_skipped,
                "drafts": sum(question.draft for question in self.plan.dataset.questions),
            },
            "notes": self.notes,
        }

    def to_embedding_eval(self) -> list[dict[str, Any]]:
        """The list that embedding-eval writes, with only its keys."""
        return [outcome.optimization.to_embedding_eval() for outcome in self.outcomes]

    def write(self, output: str | Path) -> list[Path]:
        """Write results.json and one run directory per model to a folder, or embedding-eval's list to a .json file."""
        target = Path(output)
        if is_json_file(target):
            return [write_json(target, self.to_embedding_eval())]
        written = []
        for outcome, path in zip(self.outcomes, self.runs(target), strict=True):
            if outcome.stored is None or outcome.stored.path.resolve() != path.resolve():
                write_outcome(path, outcome, self.plan, self.keys[outcome.profile.spec], self.command)
            written.append(path)
        return [self.write_results(ExperimentFolder(target)), *written]

    @property
    def key(self) -> str:
        """The resume key of the comparison: the keys of all models and the statistics."""
        return resume_key(sorted(self.keys.items()), self.plan.requested.stats, sorted(self.failures))

    def is_stored(self, folder: ExperimentFolder) -> bool:
        """Whether all models were loaded from this folder, and its results.json is that of this comparison."""
        if len(self.resumed) < len(self.keys) or not (folder.path / VIEW).is_file():
            return False
        try:
            return bool(json.loads((folder.path / RESULTS).read_text(encoding="utf-8"))["key"] == self.key)
        except (OSError, ValueError, KeyError, TypeError):
            return False

    def write_results(self, folder: ExperimentFolder) -> Path:
        """Write results.json to an output folder."""
        fair_view(self.report_data).write(folder.path)
        return folder.write_results(self.to_dict())

    def draw(self, output: str | Path) -> list[Path]:
        """Write the charts of the runs in a folder; nothing if charts cannot be drawn here."""
        folder = Path(output)
        return write_run_charts(folder, self.runs(folder), self.comparison)

    def runs(self, output: str | Path) -> list[Path]:
        """The run directory of each model in an output folder."""
        paths = ExperimentFolder(Path(output)).run_paths(self.keys)
        return [paths[outcome.profile.spec] for outcome in self.outcomes]

    def unrelated_runs(self, output: str | Path) -> dict[str, bool]:
        """Runs in the folder that are not part of this comparison, and whether their setup is the same."""
        return unrelated_runs(ExperimentFolder(Path(output)), self.keys, self.plan)

    def __repr__(self) -> str:
        nested = self.plan.requested.nested
        shown = ", ".join(
            f"{result.model_spec} failed"
            if isinstance(result, FailedModel)
            else (f"{result.model_spec} {result.nested_accuracy:.1f} % " if nested else f"{result.model_spec} ")
            + f"({result.best_accuracy:.1f} % optimistic)"
            for result in self.results
        )
        n_questions = len(self.outcomes[0].result.unit_ids)
        return f"<FairComparison on {n_questions} questions: {shown}>"
