"""What a tuning of extraction found: a nested figure a model, all trials, and what to deploy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equipoise.data.atomic import write_bytes
from equipoise.errors import MissingExtraError
from equipoise.evidence.sets import Sets
from equipoise.recipes.phenotypes.extraction.figures import leading
from equipoise.recipes.phenotypes.extraction.gold import Gold
from equipoise.recipes.phenotypes.extraction.settings import WORDS, ExtractionSettings
from equipoise.recipes.phenotypes.extraction.trials import Trials
from equipoise.recipes.phenotypes.extraction.tuned import TUNING, made_with, text_hashes
from equipoise.recipes.phenotypes.store import RUNS, VISUALIZATIONS, folder_of, refuse_unwritable
from equipoise.report.extraction_tuning import TunedPart, TuningEdition
from equipoise.run.cases import json_text
from equipoise.run.manifest import Manifest, Status, without_secrets
from equipoise.run.store import write_run
from equipoise.stats.comparison import Comparison
from equipoise.stats.result import Result
from equipoise.tune.record import Params, Tuning
from equipoise.types import Finding

if TYPE_CHECKING:
    from equipoise.report.charts.chart import Chart


@dataclass(frozen=True, eq=False)
class TunedModel:
    """One model: every trial, and the result on documents that had no say.

    ``sets`` holds what each document was given by the configuration that was chosen without it.
    """

    name: str
    tuning: Tuning
    trials: Trials
    result: Result
    sets: Sets

    @property
    def best(self) -> Params:
        """What to deploy."""
        return self.tuning.trials[self.tuning.best].params


@dataclass(frozen=True, eq=False)
class ExtractionTuning:
    """Models that were tuned on equal terms."""

    models: tuple[TunedModel, ...]
    gold: Gold
    settings: ExtractionSettings
    comparison: Comparison | None
    findings: tuple[Finding, ...] = ()
    command: tuple[str, ...] = ()

    @property
    def edition(self) -> TuningEdition:
        """All that a report shows."""
        return TuningEdition(
            parts=tuple(
                TunedPart(
                    name=each.name,
                    tuning=each.tuning,
                    estimate=each.result[each.tuning.metric],
                    precision=tuple(each.trials.precision.tolist()),
                    recall=tuple(each.trials.recall.tolist()),
                    unseen=tuple(
                        (metric.name, metric.measure(each.sets).value)
                        for average in ("micro", "macro")
                        for metric in leading(average, self.settings.mode)
                    ),
                )
                for each in self.models
            ),
            documents=len(self.gold.annotated),
            counted=WORDS[self.settings.mode],
            comparison=self.comparison,
            notes=self.gold.notes,
            problems=self.gold.told,
            findings=self.findings,
        )

    def charts(self) -> Iterator[Chart]:
        """Precision against recall of all trials, with the frontier of each model."""
        from equipoise.report.charts.extraction import frontier_chart

        yield frontier_chart(self.edition.parts)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values; ``documents`` are hashes of the texts that chose."""
        return {
            "documents": sorted(text_hashes(self.gold.annotated)),
            "mode": self.settings.mode,
            "made_with": made_with(self.settings),
            "ontology": {
                "name": self.gold.ontology.name,
                "release": self.gold.ontology.release,
                "fingerprint": self.gold.ontology.fingerprint,
            },
            "models": [
                {
                    "model": each.name,
                    "best": dict(each.best),
                    "estimate": each.result[each.tuning.metric].to_dict(),
                    "optimistic": each.tuning.optimistic,
                    "tuning": each.tuning.to_dict(),
                    "precision": each.trials.precision.tolist(),
                    "recall": each.trials.recall.tolist(),
                }
                for each in self.models
            ],
            "comparison": None if self.comparison is None else self.comparison.to_dict(),
            "problems": [asdict(each) for each in self.gold.problems],
            "findings": [asdict(each) for each in self.findings],
        }

    def write(self, folder: str | Path) -> list[Path]:
        """Write a run a model, the record of the tuning, and the frontier where it can be drawn."""
        folder = Path(folder)
        refuse_unwritable(folder)
        status = Status.PARTIAL if self.gold.lost else Status.COMPLETE
        for each in self.models:
            begun = Manifest.start(each.name, command=without_secrets(self.command), seed=self.settings.seed)
            manifest = replace(
                begun.finish(status, reason=self.gold.lost_sentence),
                parameters={
                    "model": each.name,
                    "mode": self.settings.mode,
                    **each.best,
                    "chunkers": ", ".join(self.settings.chunkers),
                },
                datasets={
                    "documents": self.gold.annotated.fingerprint,
                    self.gold.ontology.title: self.gold.ontology.fingerprint,
                },
            )
            place = folder / RUNS / folder_of(each.name)
            write_run(place, each.result, manifest=manifest, tuning=each.tuning)
        file = folder / TUNING
        write_bytes(file, f"{json_text(self.to_dict(), indent=2)}\n".encode())
        return [file, *self._drawn(folder / VISUALIZATIONS)]

    def _drawn(self, folder: Path) -> list[Path]:
        from equipoise.report.charts.render import png, svg

        written: list[Path] = []
        try:
            for each in self.charts():
                for suffix, content in (("svg", svg(each).encode()), ("png", png(each))):
                    folder.mkdir(parents=True, exist_ok=True)
                    write_bytes(folder / f"{each.name}.{suffix}", content)
                    written.append(folder / f"{each.name}.{suffix}")
        except MissingExtraError:
            return written
        return written

    def __repr__(self) -> str:
        told = ", ".join(f"{each.name} {each.result[each.tuning.metric].value:.3f}" for each in self.models)
        return f"<ExtractionTuning on {len(self.gold.annotated)} documents: {told}>"
