"""From predictions and gold to figures with intervals, and to what people see of each document."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from equipoise.checks.catalogue import examine
from equipoise.checks.subjects import Scored
from equipoise.evidence.sets import Sets
from equipoise.ontology.similarity import Similarity
from equipoise.recipes.phenotypes.extraction.figures import figures
from equipoise.recipes.phenotypes.extraction.gold import Gold
from equipoise.recipes.phenotypes.extraction.settings import ExtractionSettings
from equipoise.run.details import Detail, Retrieved
from equipoise.run.manifest import STATUS_SETTINGS, Status
from equipoise.run.scoring import evaluate
from equipoise.stats.interval import Interval
from equipoise.stats.result import Result
from equipoise.stats.terms import DATA
from equipoise.tasks.extract import Extracted, Predictions
from equipoise.types import Floats, Ids

NO_INTERVAL = "not asked for"


def sets_of(gold: Gold, predictions: Predictions) -> Sets:
    """The evidence: what each document holds and what was found in it."""
    return Sets.of(gold.sets(), predictions.sets())


def with_near_misses(sets: Sets, alike: Similarity) -> Sets:
    """The same sets, where a term that is alike to a gold one earns part of a hit."""

    def credit(gold: Ids, found: Ids) -> Floats:
        rows, columns = (
            np.array([alike.ontology.place(str(term)) for term in side], dtype=np.int64)
            for side in (gold, found)
        )
        return np.clip(alike.between(rows, columns), 0.0, 1.0)

    return sets.with_credit(credit)


def result_of(sets: Sets, system: str, gold: Gold, settings: ExtractionSettings) -> Result:
    """Every figure; what decides their meaning stands in the settings, so that unlike runs are refused."""
    result = evaluate(
        sets,
        figures(settings.averaging, settings.mode),
        system=system,
        level=settings.level,
        resamples=settings.resamples if settings.bootstrap else 1,
        seed=settings.seed,
    )
    result = as_asked(result, settings)
    return replace(result, settings={**result.settings, **terms_of(gold, settings)})


def as_asked(result: Result, settings: ExtractionSettings) -> Result:
    """The result without intervals, where none were asked for; nothing is found on intervals then."""
    if settings.bootstrap:
        return result
    bare = {
        name: replace(each, interval=Interval.unknown(NO_INTERVAL, level=each.interval.level))
        for name, each in result.estimates.items()
    }
    result = replace(result, estimates=bare)
    known = {metric.name: metric for metric in figures(settings.averaging, settings.mode)}
    return replace(result, findings=examine(Scored(result, known)))


def terms_of(gold: Gold, settings: ExtractionSettings) -> dict[str, Any]:
    """On what terms figures are comparable: the same documents and terms, the same mode and average."""
    terms: dict[str, Any] = {
        DATA: {"documents": gold.annotated.fingerprint, "ontology": gold.ontology.fingerprint},
        "mode": settings.mode,
        "averaging": settings.averaging,
        "measure": settings.measure,
    }
    if gold.lost:
        terms |= dict(zip(STATUS_SETTINGS, (str(Status.PARTIAL), gold.lost_sentence), strict=True))
    return terms


def details_of(gold: Gold, predictions: Predictions) -> dict[str | int, Detail]:
    """The text of every document, its gold, and what was found with its evidence."""
    details: dict[str | int, Detail] = {}
    for document, (_, found) in zip(gold.annotated.documents, predictions, strict=True):
        entries = {(each.term, each.assertion) for each in document.annotations}
        details[document.id] = Detail(
            document.text,
            tuple(f"{_named(gold, each.term)}, {each.assertion}" for each in document.annotations),
            {
                name: value
                for name, value in (("language", document.language), ("dataset", document.dataset))
                if value
            },
            tuple(_shown(gold, document.text, each, entries) for each in found),
        )
    return details


def _shown(gold: Gold, text: str, each: Extracted, entries: set[tuple[str, str]]) -> Retrieved:
    evidence = "; ".join(text[start:end] for start, end in each.spans)
    label = gold.ontology.labels[gold.ontology.place(each.term)]
    return Retrieved(
        each.term,
        f"{label}, {each.assertion}",
        each.score,
        (each.term, str(each.assertion)) in entries,
        where=evidence,
    )


def _named(gold: Gold, term: str) -> str:
    return f"{term} {gold.ontology.labels[gold.ontology.place(term)]}"
