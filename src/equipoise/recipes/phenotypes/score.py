"""From what a system did on the cases to its figures, slices and what people see of each case."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from equipoise.checks.base import counted, listed
from equipoise.ontology.nearness import with_similarity
from equipoise.ontology.similarity import Similarity
from equipoise.recipes.phenotypes.figures import PRIMARY, figures
from equipoise.recipes.phenotypes.observe import Observed
from equipoise.recipes.phenotypes.settings import Settings
from equipoise.recipes.phenotypes.truth import Truth
from equipoise.run.details import Detail, Retrieved
from equipoise.run.manifest import STATUS_SETTINGS, Status
from equipoise.run.scoring import evaluate
from equipoise.stats.result import Result
from equipoise.stats.slices import Slice, sliced
from equipoise.stats.terms import DATA
from equipoise.types import Floats

SHOWN = 10
"""How many of the first terms of a case people see."""


def result_of(
    seen: Observed, truth: Truth, alike: Similarity, system: str, settings: Settings, chance: Floats
) -> Result:
    """Every figure with interval and chance; the evidence keeps the similarities.

    ``chance`` is what random terms would reach, which is the same for every system.
    """
    expected = [terms.tolist() for terms in truth.expected]
    ranking = with_similarity(
        seen.ranking, seen.first, seen.scores, expected, alike, tails=seen.tails, chance=chance
    )
    result = evaluate(
        ranking,
        figures(settings.ks),
        system=system,
        ties=settings.ties,
        level=settings.level,
        resamples=settings.resamples,
        seed=settings.seed,
    )
    told: dict[str, Any] = {DATA: data_of(truth, alike)}
    if seen.failures:
        told |= dict(zip(STATUS_SETTINGS, (str(Status.PARTIAL), failure_sentence(seen)), strict=True))
    return replace(result, settings={**result.settings, **told})


def data_of(truth: Truth, alike: Similarity) -> dict[str, str]:
    """What must be the same for two runs to be compared."""
    return {
        "cases": truth.fingerprint,
        "ontology": truth.ontology.fingerprint,
        "similarity": alike.measure.name,
    }


def failure_sentence(seen: Observed) -> str:
    """Which cases could not be answered."""
    if not seen.failures:
        return ""
    verdict = "counts as a miss" if len(seen.failures) == 1 else "count as misses"
    return f"{counted(len(seen.failures), 'case')} failed and {verdict}: {listed(list(seen.failures))}"


def slices_of(result: Result, truth: Truth, settings: Settings) -> tuple[Slice, ...]:
    """The primary figure on the parts of the cases, by language and every other property they have."""
    if not any(truth.properties.values()):
        return ()
    return sliced(result, PRIMARY, truth.properties, seed=settings.seed)


def details_of(seen: Observed, truth: Truth) -> dict[str | int, Detail]:
    """The text of every case, its expected terms, and the first terms that were found."""
    ontology = truth.ontology
    details: dict[str | int, Detail] = {}
    for place, case in enumerate(truth.cases):
        expected = set(truth.expected[place].tolist())
        found = [
            Retrieved(ontology.ids[term], ontology.labels[term], float(score), term in expected)
            for term, score in zip(
                seen.first[place, :SHOWN].tolist(), seen.scores[place, :SHOWN].tolist(), strict=True
            )
            if term >= 0
        ]
        details[case.id] = Detail(
            case.text,
            tuple(f"{ontology.ids[term]} {ontology.labels[term]}" for term in truth.expected[place].tolist()),
            truth.properties.get(case.id, {}),  # type: ignore[arg-type]
            tuple(found),
        )
    return details
