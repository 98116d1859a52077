"""The outcome of a whole comparison: results as the source has them, and what may be claimed from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from equipoise.domains.fair.model_outcome import FairModelResult, strangers, write_outcome
from equipoise.domains.fair.model_result import FailedModel, OptimizationResult
from equipoise.domains.fair.report import FairReportData, ModelSummary, fair_report
from equipoise.report.charts.files import write_charts
from equipoise.report.terminal import render_text
from equipoise.runs.experiment import RUNS, folder_names, is_json_file, write_results

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

    A model that failed is in its place as a ``FailedModel``, which prints why and raises its error where a
    result would have a value; ``failures`` holds these errors by model. ``comparison`` is made of the
    held-out values, and ``mcnemar`` of binary hits by McNemar's exact test; both are None where fewer than
    two models have them.
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
        """What became of each model, in the order in which they were given."""
        finished = {each.facts.spec: each.optimization for each in self.outcomes}
        return tuple(
            finished[name] if name in finished else FailedModel(name, self.failures[name])
            for name in self.keys or finished
        )

    @overload
    def __getitem__(self, place: int) -> OptimizationResult | FailedModel: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[OptimizationResult | FailedModel]: ...
    def __getitem__(
        self, place: int | slice
    ) -> OptimizationResult | FailedModel | Sequence[OptimizationResult | FailedModel]:
        """The result at a place in the order of the models."""
        return self.results[place]

    def __len__(self) -> int:
        return len(self.results)

    @property
    def tunings(self) -> dict[str, TuningRecord]:
        """How each model was tuned."""
        return {each.facts.spec: each.tuning for each in self.outcomes}

    @property
    def frontiers(self) -> dict[str, tuple[Trial, ...]]:
        """For each model, the best accuracy that each number of retrieved tokens buys."""
        return {name: tuning.frontier for name, tuning in self.tunings.items()}

    @property
    def resumed(self) -> tuple[str, ...]:
        """The models that were read back instead of computed."""
        return tuple(each.facts.spec for each in self.outcomes if each.stored is not None)

    @property
    def notes(self) -> tuple[str, ...]:
        """What to know about how it was done."""
        return self.plan.notes

    @property
    def edition(self) -> FairReportData:
        """All that a report shows."""
        contenders = tuple(
            ModelSummary(
                name=each.facts.spec,
                estimate=each.result[self.plan.settings.metric],
                tuning=each.tuning,
                tokens=each.facts.retrieved_tokens,
                tied_questions=each.facts.tied_questions,
                slices=self.slices[each.facts.spec],
            )
            for each in self.outcomes
        )
        return FairReportData(
            contenders,
            self.comparison,
            self.mcnemar,
            self.findings,
            self.notes,
            {name: error.message for name, error in self.failures.items()},
            self.plan.settings.budget,
            self.plan.settings.tokenizer_name,
        )

    @property
    def summary(self) -> str:
        """The report for people, as text."""
        return render_text(*fair_report(self.edition))

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values; the source's fields of a model are in percent, all others fractions."""
        settings = self.plan.settings
        return {
            "schema": 1,
            "models": [each.optimization.to_dict() for each in self.outcomes],
            "comparison": None if self.comparison is None else self.comparison.to_dict(),
            "mcnemar": [] if self.mcnemar is None else self.mcnemar.to_dict()["contrasts"],
            "slices": {
                name: [{"slice": {each.name: each.value}, **each.estimate.to_dict()} for each in slices]
                for name, slices in self.slices.items()
            },
            "findings": [
                {
                    "code": each.code,
                    "severity": str(each.severity),
                    "subject": each.subject,
                    "message": each.message,
                    "hint": each.hint,
                    "evidence": list(each.evidence),
                }
                for each in self.findings
            ],
            "failures": {
                name: {"code": error.code, "message": error.message, "hint": error.hint}
                for name, error in self.failures.items()
            },
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
                "folds": self.plan.fold_count,
                "repeats": max(1, len(self.plan.splits)),
                "seed": settings.seed,
                "questions": len(self.plan.material.questions),
                "absent": [each.id for each in self.plan.material.absent],
                "skipped": self.plan.material.skipped,
            },
            "notes": self.notes,
        }

    def to_source(self) -> list[dict[str, Any]]:
        """The list that the source writes: its keys and no others."""
        return [each.optimization.to_source() for each in self.outcomes]

    def write(self, output: str | Path) -> list[Path]:
        """Write results.json and a run directory a model to a folder; to a .json file, the source's list."""
        target = Path(output)
        if is_json_file(target):
            return [write_results(target, self.to_source())]
        written = []
        for done, path in zip(self.outcomes, self.runs(target), strict=True):
            if done.stored is None or done.stored.path.resolve() != path.resolve():
                write_outcome(path, done, self.plan, self.keys[done.facts.spec], self.command)
            written.append(path)
        return [write_results(target, self.to_dict()), *written]

    def draw(self, output: str | Path) -> list[Path]:
        """Write the charts of what was written to a folder; none where they cannot be drawn here."""
        folder = Path(output)
        return write_charts(folder, self.runs(folder), self.comparison)

    def runs(self, output: str | Path) -> list[Path]:
        """Where in a folder the run directory of each model lies."""
        names = folder_names([*self.keys])
        return [Path(output) / RUNS / names[done.facts.spec] for done in self.outcomes]

    def strangers(self, output: str | Path) -> dict[str, bool]:
        """The runs in the folder that are no part of this comparison, and whether they are of its setup."""
        return strangers(Path(output), folder_names([*self.keys]).values(), self.plan)

    def __repr__(self) -> str:
        honest = self.plan.settings.nested
        shown = ", ".join(
            f"{each.model_spec} failed"
            if isinstance(each, FailedModel)
            else (f"{each.model_spec} {each.nested_accuracy:.1f} % " if honest else f"{each.model_spec} ")
            + f"({each.best_accuracy:.1f} % optimistic)"
            for each in self.results
        )
        return f"<FairComparison on {len(self.plan.material.questions)} questions: {shown}>"
