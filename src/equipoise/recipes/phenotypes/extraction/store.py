"""The folder of a run of extraction.

extraction_results.json    every figure, error and prediction
candidates.npz             what retrieval found for every chunk, from which any configuration can be predicted
run/                       a run directory, as eq compare, eq gate, eq report and eq view read them
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from equipoise.data.atomic import write_bytes
from equipoise.recipes.phenotypes.extraction.outcome import Extraction
from equipoise.recipes.phenotypes.extraction.score import details_of
from equipoise.recipes.phenotypes.store import refuse_unwritable
from equipoise.run.cases import json_text
from equipoise.run.manifest import Manifest, Status, without_secrets
from equipoise.run.store import write_run

RESULTS, CANDIDATES, RUN = "extraction_results.json", "candidates.npz", "run"


def write_extraction(folder: Path, found: Extraction) -> Path:
    """Write everything; the results file comes last, so that whoever finds it finds the run as well."""
    refuse_unwritable(folder)
    gold, settings = found.gold, found.settings
    begun = Manifest.start(found.result.system, command=without_secrets(found.command), seed=settings.seed)
    manifest = replace(
        begun.finish(Status.PARTIAL if gold.lost else Status.COMPLETE, reason=gold.lost_sentence),
        parameters={
            "model": found.model,
            "model_name": found.card.name,
            **settings.pipeline.record(),
            "chunkers": ", ".join(settings.chunkers),
            "mode": settings.mode,
            "averaging": settings.averaging,
            "ontology": gold.ontology.title,
            "similarity": settings.measure,
            "citation": gold.ontology.citation,
        },
        datasets={
            "documents": gold.annotated.fingerprint,
            gold.ontology.title: gold.ontology.fingerprint,
        },
        cost={"dims": found.card.dims, "seconds": found.seconds},
    )
    # One place whatever the configuration is called: who runs again replaces the run, and a gate finds one.
    place = folder / RUN
    write_run(place, found.result, manifest=manifest, details=details_of(gold, found.predictions))
    found.candidates.save(folder / CANDIDATES)
    content = {"run": RUN, **found.to_dict()}
    file = folder / RESULTS
    write_bytes(file, f"{json_text(content, indent=2)}\n".encode())
    return file
