"""What a benchmark found: an outcome a system, the paired claims, and the cases that failed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from equipoise.errors import EquipoiseError
from equipoise.recipes.phenotypes.engine import Bench, Outcome
from equipoise.recipes.phenotypes.score import failure_sentence
from equipoise.report.phenotypes import PhenotypeEdition, SystemPart
from equipoise.stats.comparison import Comparison
from equipoise.stats.result import Result
from equipoise.types import Finding


@dataclass(frozen=True, eq=False)
class PhenotypeBenchmark:
    """Systems on the same cases, in the order in which they were named."""

    outcomes: tuple[Outcome, ...]
    bench: Bench
    comparison: Comparison | None
    findings: tuple[Finding, ...] = ()
    command: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.outcomes)

    def __getitem__(self, system: int | str) -> Result:
        """The result of a system, by its number or its name."""
        return self.results[system] if isinstance(system, str) else self.outcomes[system].result

    @property
    def results(self) -> Mapping[str, Result]:
        """The results by the names of the systems."""
        return {each.name: each.result for each in self.outcomes}

    @property
    def failures(self) -> dict[str, EquipoiseError]:
        """The cases that a system could not answer, as ``system, case``, each with its reason."""
        return {
            f"{each.name}, case {case}": error
            for each in self.outcomes
            for case, error in each.seen.failures.items()
        }

    @property
    def edition(self) -> PhenotypeEdition:
        """All that a report shows."""
        truth, settings = self.bench.truth, self.bench.settings
        ontology = truth.ontology
        return PhenotypeEdition(
            cases=len(truth.cases),
            scored=truth.scored,
            ontology=ontology.title,
            citation=ontology.citation,
            terms=len(ontology),
            measure=settings.measure,
            systems=tuple(
                SystemPart(
                    each.result,
                    each.slices,
                    () if each.diagnosis is None else each.diagnosis.figures,
                    each.model,
                    each.mode.name + (f" > {each.judge}" if each.judge else ""),
                )
                for each in self.outcomes
            ),
            comparison=self.comparison,
            notes=(*truth.notes, *self.bench.notes, *filter(None, (self._failed(),))),
            findings=self.findings,
        )

    def _failed(self) -> str:
        told = [f"{each.name}: {failure_sentence(each.seen)}" for each in self.outcomes if each.seen.failures]
        return "; ".join(told)

    def verdict(self) -> str:
        """Who leads, and whether the data can tell; a figure where there is one system."""
        return self.comparison.verdict("case") if self.comparison else str(self.outcomes[0].result["MRR"])

    def write(self, folder: str | Path) -> list[Path]:
        """Write a run directory for every system, results.json, and the charts where they can be drawn."""
        from equipoise.recipes.phenotypes.store import write_benchmark

        return write_benchmark(Path(folder), self)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values for JSON."""
        truth = self.bench.truth
        return {
            "ontology": {
                "name": truth.ontology.name,
                "release": truth.ontology.release,
                "terms": len(truth.ontology),
                "citation": truth.ontology.citation,
            },
            "cases": len(truth.cases),
            "scored_cases": truth.scored,
            "similarity": self.bench.settings.measure,
            "resolved_ids": [
                {"case": case, "id": each.id, "how": each.how, "term": truth.ontology.ids[each.term]}
                for case, each in truth.moved
            ],
            "systems": [_system(each) for each in self.outcomes],
            "comparison": None if self.comparison is None else self.comparison.to_dict(),
            "verdict": self.verdict(),
            "notes": list(self.edition.notes),
            "findings": [_finding(each) for each in self.findings],
            "failures": [
                {"where": where, "code": error.code, "sentence": error.sentence}
                for where, error in self.failures.items()
            ],
        }

    def __repr__(self) -> str:
        told = ", ".join(f"{name} {result['MRR'].value:.3f}" for name, result in self.results.items())
        return f"<PhenotypeBenchmark on {len(self.bench.truth.cases)} cases: MRR of {told}>"

    def _repr_html_(self) -> str:
        """The comparison, or the one result, as notebooks show it."""
        return (self.comparison or self.outcomes[0].result)._repr_html_()


def _system(outcome: Outcome) -> dict[str, Any]:
    return {
        "system": outcome.name,
        "model": outcome.model,
        "mode": outcome.mode.name,
        "reranker": outcome.judge or None,
        "seconds": outcome.seconds,
        "estimates": [each.to_dict() for each in outcome.result.estimates.values()],
        "slices": [
            {"slice": each.name, "value": each.value, **each.estimate.to_dict()} for each in outcome.slices
        ],
        "diagnosis": None if outcome.diagnosis is None else outcome.diagnosis.to_dict(),
    }


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "code": finding.code,
        "severity": str(finding.severity),
        "subject": finding.subject,
        "sentence": finding.sentence,
        "remedy": finding.remedy,
        "evidence": list(finding.evidence),
    }
