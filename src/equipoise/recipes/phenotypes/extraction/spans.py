"""Gold spans as queries: what the model would find if every chunk were cut as people marked it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from equipoise.data.annotated import Annotation
from equipoise.evidence.sets import Sets
from equipoise.ontology.index.search import TermSystem
from equipoise.recipes.phenotypes.extraction.figures import leading
from equipoise.recipes.phenotypes.extraction.gold import Gold
from equipoise.recipes.phenotypes.extraction.score import as_asked
from equipoise.recipes.phenotypes.extraction.settings import ExtractionSettings
from equipoise.run.scoring import evaluate
from equipoise.stats.result import Estimate, Result
from equipoise.stats.tabled import result_of_values
from equipoise.tasks.extract import Candidates, Chunk, Predictions, predict, retrieved
from equipoise.types import Floats

FIRST = "gold span finds its term first"


def among(num_results: int) -> str:
    """The name of the share of gold spans whose term is among the first few.

    >>> among(10)
    'gold span finds its term among 10'
    """
    return f"gold span finds its term among {num_results}"


@dataclass(frozen=True)
class GoldSpans:
    """The pipeline on the spans that people marked.

    ``asked`` has a unit for every gold entry with a span; ``scored`` holds the leading figures of the same
    pipeline when the gold spans are its chunks, on the entries that have spans. ``chunker`` and ``model``
    count gold entries that the pipeline misses: those that their own span would have given, and the others.
    """

    asked: Result
    scored: Result
    found: int
    chunker: int
    model: int

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """All figures."""
        scored = [
            replace(each, metric=f"{name} with gold spans as chunks")
            for name, each in self.scored.estimates.items()
        ]
        return (*self.asked.estimates.values(), *scored)

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "estimates": [each.to_dict() for each in self.estimates],
            "found_by_the_pipeline": self.found,
            "lost_by_chunking": self.chunker,
            "lost_by_the_model": self.model,
        }


def gold_spans(
    gold: Gold, system: TermSystem, predictions: Predictions, settings: ExtractionSettings
) -> GoldSpans | None:
    """Ask for every span of the gold; None where nobody marked any."""
    marked = [
        (place, each)
        for place, document in enumerate(gold.annotated.documents)
        for each in document.annotations
        if each.spans
    ]
    if not marked:
        return None
    places = sorted({(place, span) for place, each in marked for span in each.spans})
    documents = gold.documents
    chunks = [Chunk(place, *span, documents[place].text[slice(*span)]) for place, span in places]
    depth = settings.pipeline.num_results
    found = retrieved(documents, chunks, system, num_results=depth, chunkers=("gold spans",))
    ranks = _ranks(found, marked)
    names = [documents[place].id for place, _ in marked]
    asked = result_of_values(
        "gold spans",
        [f"{name} {each.term} {each.assertion}" for name, (_, each) in zip(names, marked, strict=True)],
        {FIRST: ranks <= 1} | ({among(depth): ranks <= depth} if depth > 1 else {}),
        clusters=names,
        level=settings.level,
        resamples=settings.resamples if settings.bootstrap else 1,
        seed=settings.seed,
    )
    given = {name: {each.term for each in terms} for name, terms in predictions}
    hit = np.array([each.term in given[name] for name, (_, each) in zip(names, marked, strict=True)])
    of_span = {name: {each.term for each in terms} for name, terms in predict(found, **_choice(settings))}
    reach = np.array([each.term in of_span[name] for name, (_, each) in zip(names, marked, strict=True)])
    return GoldSpans(
        as_asked(asked, settings),
        as_asked(_scored(gold, found, settings), settings),
        int(hit.sum()),
        int((~hit & reach).sum()),
        int((~hit & ~reach).sum()),
    )


def _scored(gold: Gold, found: Candidates, settings: ExtractionSettings) -> Result:
    truth = {
        name: [(each.term, each.assertion) for each in terms if each.spans]
        for name, terms in gold.annotations.items()
    }
    return evaluate(
        Sets.of(truth, predict(found, **_choice(settings)).sets()),
        leading(settings.averaging, settings.mode),
        system="gold spans",
        level=settings.level,
        resamples=settings.resamples if settings.bootstrap else 1,
        seed=settings.seed,
    )


def _choice(settings: ExtractionSettings) -> dict[str, Any]:
    return settings.pipeline.record()


def _ranks(found: Candidates, marked: list[tuple[int, Annotation]]) -> Floats:
    """The best rank of each gold term for any of its spans; infinity where none finds it."""
    row = {
        at: number
        for number, at in enumerate(
            zip(found.document.tolist(), found.start.tolist(), found.end.tolist(), strict=True)
        )
    }
    code = {term: number for number, term in enumerate(found.term_ids)}
    ranks = np.full(len(marked), np.inf)
    for number, (place, each) in enumerate(marked):
        rows = [row[place, *span] for span in each.spans]
        slots = np.nonzero(found.terms[rows] == code.get(each.term, -1))[1]
        if len(slots):
            ranks[number] = slots.min() + 1
    return ranks
