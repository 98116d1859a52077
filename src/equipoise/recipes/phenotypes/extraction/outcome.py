"""What a run of extraction found: figures, errors by kind, the stages that lost terms, and the problems."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from equipoise.embed.card import Card
from equipoise.recipes.phenotypes.extraction.figures import figures
from equipoise.recipes.phenotypes.extraction.gold import Gold
from equipoise.recipes.phenotypes.extraction.mistakes import Mistakes
from equipoise.recipes.phenotypes.extraction.settings import WORDS, ExtractionSettings
from equipoise.recipes.phenotypes.extraction.spans import GoldSpans
from equipoise.report.extraction import ExtractionEdition
from equipoise.stats.result import Result
from equipoise.tasks.extract import Candidates, Predictions, Stage, Traced, lost_by_stage
from equipoise.types import Finding


@dataclass(frozen=True, eq=False)
class Extraction:
    """One model with one configuration on annotated documents."""

    model: str
    card: Card
    gold: Gold
    settings: ExtractionSettings
    candidates: Candidates
    predictions: Predictions
    result: Result
    mistakes: Mistakes
    traced: tuple[Traced, ...]
    spans: GoldSpans | None
    seconds: float
    notes: tuple[str, ...] = ()
    command: tuple[str, ...] = ()

    @property
    def primary(self) -> str:
        """The name of the leading figure."""
        return figures(self.settings.averaging, self.settings.mode)[0].name

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What is to be known of the result; it keeps them, so that stored runs tell them as well."""
        return self.result.findings

    @property
    def stages(self) -> Mapping[Stage, int]:
        """How many gold entries ended at each stage."""
        return lost_by_stage(self.traced)

    @property
    def edition(self) -> ExtractionEdition:
        """All that a report shows."""
        return ExtractionEdition(
            result=self.result,
            averaging=self.settings.averaging,
            mode=self.settings.mode,
            counted=WORDS[self.settings.mode],
            documents=len(self.gold.annotated),
            chunks=len(self.candidates),
            seconds=self.seconds,
            stages={str(stage): number for stage, number in self.stages.items()},
            mistakes=self.mistakes.to_dict(),
            spans=() if self.spans is None else self.spans.estimates,
            split=() if self.spans is None else (self.spans.found, self.spans.chunker, self.spans.model),
            notes=(*self.gold.notes, *self.notes),
            problems=self.gold.told,
            citation=self.gold.ontology.citation,
            findings=self.findings,
        )

    def write(self, folder: str | Path) -> Path:
        """Write extraction_results.json, a run directory, and the candidates that all of it rests on."""
        from equipoise.recipes.phenotypes.extraction.store import write_extraction

        return write_extraction(Path(folder), self)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values for JSON."""
        ontology = self.gold.ontology
        return {
            "system": self.result.system,
            "model": self.model,
            "settings": {
                **self.settings.pipeline.record(),
                **{
                    each.name: getattr(self.settings, each.name)
                    for each in fields(self.settings)
                    if each.name not in ("pipeline", "index_dir", "threads")
                },
            },
            "mode": self.settings.mode,
            "primary": self.primary,
            "ontology": {
                "name": ontology.name,
                "release": ontology.release,
                "citation": ontology.citation,
            },
            "documents": len(self.gold.annotated),
            "documents_without_gold": list(self.gold.annotated.without_gold),
            "notes": [*self.gold.notes, *self.notes],
            "chunks": len(self.candidates),
            "seconds": self.seconds,
            "estimates": [each.to_dict() for each in self.result.estimates.values()],
            "errors_by_kind": self.mistakes.to_dict(),
            "gold_by_stage": {str(stage): number for stage, number in self.stages.items()},
            "gold_spans": None if self.spans is None else self.spans.to_dict(),
            "resolved_ids": [
                {"id": each.id, "how": each.how, "term": ontology.ids[each.term]}
                for each in self.gold.resolutions.moved
            ],
            "problems": [asdict(each) for each in self.gold.problems],
            "findings": [asdict(each) for each in self.findings],
            "predictions": {
                name: [
                    {
                        "hpo_id": each.term,
                        "label": ontology.labels[ontology.place(each.term)],
                        "assertion_status": str(each.assertion),
                        "score": each.score,
                        "evidence_spans": [
                            {"start_char": start, "end_char": end} for start, end in each.spans
                        ],
                    }
                    for each in found
                ]
                for name, found in self.predictions
            },
        }

    def __repr__(self) -> str:
        figure = self.result[self.primary]
        return f"<Extraction by {self.result.system}: {self.primary} {figure.value:.3f}>"

    def _repr_html_(self) -> str:
        """The figures, as notebooks show them."""
        return self.result._repr_html_()
