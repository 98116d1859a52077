"""Extraction measured: documents cut, terms found in one batch, predictions scored against the gold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

from equipoise.checks.catalogue import examine
from equipoise.checks.extraction import AssertedGold
from equipoise.data.annotated import SAMPLE, Annotated, read_annotated
from equipoise.errors import ParameterError
from equipoise.ontology.load import load_ontology
from equipoise.ontology.ontology import Ontology
from equipoise.ontology.similarity import similarity
from equipoise.recipes.fair.models import named_models
from equipoise.recipes.phenotypes.extraction.gold import Gold, gold_of
from equipoise.recipes.phenotypes.extraction.mistakes import mistakes
from equipoise.recipes.phenotypes.extraction.outcome import Extraction
from equipoise.recipes.phenotypes.extraction.score import result_of, sets_of, with_near_misses
from equipoise.recipes.phenotypes.extraction.settings import ExtractionSettings, settings_of, told
from equipoise.recipes.phenotypes.extraction.spans import gold_spans
from equipoise.recipes.phenotypes.extraction.system import term_system, unstored
from equipoise.recipes.phenotypes.extraction.tuned import TunedParameters
from equipoise.recipes.phenotypes.settings import DEFAULT_MODEL
from equipoise.recipes.phenotypes.store import refuse_unwritable
from equipoise.run.progress import Step, reported
from equipoise.stats.result import Result
from equipoise.tasks.extract import candidates, predict, trace
from equipoise.types import Finding

KEPT = 20
"""How many terms of a chunk are kept at least."""

Source = str | Path | Annotated


def run_extraction(
    source: Source = SAMPLE,
    model: Any = DEFAULT_MODEL,
    ontology: Ontology | str = "hpo",
    *,
    dataset: str | None = None,
    tuned: TunedParameters | None = None,
    output: str | Path | None = None,
    progress: Step | None = None,
    command: Sequence[str] = (),
    **settings: Any,
) -> Extraction:
    """Extract terms from annotated documents, and score them against the gold.

    ``source`` is a folder, a JSON or JSONL file, documents that were read already, or ``notes``: our own
    samples. ``settings`` are those of the pipeline (``num_results``, ``chunk_threshold``, ``min_confidence``,
    ``top_term_only``) and of ``ExtractionSettings``: ``chunkers``, ``averaging``, ``include_assertions``,
    ``bootstrap``, ``measure``, ``multi``, ``strategy``, ``level``, ``resamples``, ``seed``, ``index_dir``,
    ``threads``. ``tuned`` brings everything that a tuning chose and was made with; a setting beside it that
    says otherwise is refused, and so is another model or ontology. On documents that chose, it is a finding
    (EQ201). With ``output``, everything is written there.
    """
    chosen = settings_of(settings if tuned is None else tuned.settings(settings))
    folder = None if output is None else Path(output)
    if folder is not None:
        refuse_unwritable(folder)
    named = named_models(model)
    if len(named) != 1:
        raise ParameterError(
            f"{len(named)} models were named, and a run has one", hint="run each, and compare the runs"
        )
    name, loadable = next(iter(named.items()))
    with reported(folder, "extraction", 3, command=command, step=progress) as step:
        step("reading documents")
        gold = read_gold(source, ontology, dataset)
        if tuned is not None:
            tuned.refuse_other(name, gold.ontology)
        step(f"{name}: finding terms")
        found = measured(gold, loadable, name, chosen, command)
        step("writing")
        if tuned is not None:
            extra = tuned.findings(found.result.system, gold.annotated)
            found = replace(found, result=found_out(found.result, extra))
        if folder is not None:
            found.write(folder)
    return found


def read_gold(source: Source, ontology: Ontology | str, dataset: str | None = None) -> Gold:
    """The documents of a source in the terms of an ontology."""
    annotated = source if isinstance(source, Annotated) else read_annotated(source, dataset)
    return gold_of(annotated, ontology if isinstance(ontology, Ontology) else load_ontology(ontology))


def measured(
    gold: Gold, model: Any, name: str, settings: ExtractionSettings, command: Sequence[str] = ()
) -> Extraction:
    """One model with one configuration; every stage from the same candidates."""
    settings = settings.within(len(gold.ontology))
    with term_system(model, gold.ontology, settings) as system:
        assert system.fitted is not None  # the terms are read before the clock starts
        begun = perf_counter()
        found = candidates(
            gold.documents, system, chunkers=settings.chunkers, num_results=depth_of(settings, gold)
        )
        predictions = predict(found, **settings.pipeline.record())
        seconds = perf_counter() - begun
        spans = gold_spans(gold, system, predictions, settings)
        card, notes = system.card, unstored(system)
    sets = with_near_misses(sets_of(gold, predictions), similarity(gold.ontology, settings.measure))
    result = found_out(
        result_of(sets, f"{name} ({told(settings.pipeline)})", gold, settings), _of_gold(gold, settings)
    )
    return Extraction(
        model=name,
        card=card,
        gold=gold,
        settings=settings,
        candidates=found,
        predictions=predictions,
        result=result,
        mistakes=mistakes(gold.sets(), predictions.sets(), gold.ontology),
        traced=trace(found, predictions, gold.annotations),
        spans=spans,
        seconds=seconds,
        notes=notes,
        command=tuple(command),
    )


def found_out(result: Result, findings: tuple[Finding, ...]) -> Result:
    """The result with more findings, before its own."""
    return replace(result, findings=(*findings, *result.findings))


def depth_of(settings: ExtractionSettings, gold: Gold) -> int:
    """How many terms a chunk are kept: more than are predicted from, to tell where a gold term was lost."""
    return min(max(KEPT, settings.pipeline.num_results), len(gold.ontology))


def _of_gold(gold: Gold, settings: ExtractionSettings) -> tuple[Finding, ...]:
    return examine(
        AssertedGold.of(
            gold.annotated.source or "the documents",
            [each.assertion for found in gold.annotations.values() for each in found],
            scored=settings.include_assertions,
        )
    )
