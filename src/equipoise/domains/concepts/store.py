"""The folder of an evaluation.

results.json              every score with its parts and claims
runs/EVIDENCE/MODEL/      run directories, as eq compare and eq report read them; the weighted score is in the
                          one whose evidence it is made of
visualizations/           the charts, where they can be drawn
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from equipoise.runs.experiment import RUNS, check_writable, folder_names, write_results
from equipoise.runs.manifest import Manifest, redact_secrets
from equipoise.runs.store import save_run

if TYPE_CHECKING:
    from equipoise.domains.concepts.results import ConceptEvaluation, ModelScores
    from equipoise.stats.result import Result
    from equipoise.types import Finding


def write_evaluation(folder: Path, found: ConceptEvaluation) -> Path:
    """Everything into the folder; the path of results.json."""
    check_writable(folder)
    names = folder_names(found.scores)
    for model, own in found.scores.items():
        for evidence, task, result in stored_results(own):
            manifest = Manifest(
                system=model,
                command=redact_secrets(found.command),
                seed=found.config.seed,
                datasets={f"{found.concept_set.name} {own.tasks[task].blend.needs}": found.concept_set.fingerprint},
                parameters={
                    "model": model,
                    "task": task,
                    "blend": own.tasks[task].blend.formula,
                    "resampled for the blend": own.tasks[task].observed.sampling.told,
                },
                cost={"dims": own.dims},
            )
            told = replace(result, findings=_findings(found, model, result))
            save_run(folder / RUNS / evidence / names[model], told, manifest=manifest)
    return write_results(folder, found.to_dict())


def _findings(found: ConceptEvaluation, model: str, result: Result) -> tuple[Finding, ...]:
    """What a run directory keeps: what was found of its model, and of all of them together."""
    others = set(found.scores) - {model}
    shared = (each for each in found.findings if each.subject not in others)
    return tuple(dict.fromkeys((*shared, *result.findings)))


def stored_results(own: ModelScores) -> Iterator[tuple[str, str, Result]]:
    """What is stored of a model: the kind of evidence, the task, and the result."""
    for task, measured in own.tasks.items():
        for evidence, result in measured.observed.results.items():
            yield evidence, task, measured.stored if evidence == measured.observed.main else result
