"""From candidates to what each document is said to hold; pure, and nothing is embedded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from equipoise.ontology.assertion.kinds import ASSERTIONS, Assertion
from equipoise.tasks.extract.candidates import Candidates
from equipoise.tasks.extract.cut.base import Span
from equipoise.tasks.extract.settings import (
    CHUNK_THRESHOLD,
    MIN_CONFIDENCE,
    NUM_RESULTS,
    TOP_TERM_ONLY,
    Settings,
)
from equipoise.tasks.extract.stages import entries, stages


@dataclass(frozen=True, slots=True)
class Extracted:
    """A term that a document speaks of: what is asserted of it, how sure, and where."""

    term: str
    assertion: Assertion
    score: float
    """The mean score of its evidence."""
    spans: tuple[Span, ...]
    """The chunks that are its evidence, in the order of the text."""


@dataclass(frozen=True, eq=False, repr=False)
class Predictions:
    """For each document, in order, what was found in it; best first, equal scores by id."""

    ids: tuple[str, ...]
    found: tuple[tuple[Extracted, ...], ...]
    settings: Settings

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return f"<Predictions: {sum(map(len, self.found))} terms in {len(self)} documents>"

    def __iter__(self) -> Iterator[tuple[str, tuple[Extracted, ...]]]:
        return iter(zip(self.ids, self.found, strict=True))

    def of(self, document: str) -> tuple[Extracted, ...]:
        """What was found in the document of this id."""
        return self.found[self.ids.index(document)]

    def sets(self) -> dict[str, list[tuple[str, str]]]:
        """For each document the (term, assertion) pairs, as ``Sets.of`` takes them."""
        return {name: [(each.term, str(each.assertion)) for each in found] for name, found in self}


def predict(
    candidates: Candidates,
    *,
    num_results: int = NUM_RESULTS,
    chunk_threshold: float = CHUNK_THRESHOLD,
    min_confidence: float = MIN_CONFIDENCE,
    top_term_only: bool = TOP_TERM_ONLY,
    assertions: bool = True,
) -> Predictions:
    """What each document holds, from stored candidates.

    1. Of each chunk the first ``num_results`` terms count, or with ``top_term_only`` the first alone.
    2. A term whose score in the chunk is below ``chunk_threshold`` is dropped.
    3. Of chunks that overlap, the one with the best first term stays; of equals the longer.
    4. Evidence for the same term and assertion in a document is one entry; its score is the mean. With
       ``assertions=False`` everything is affirmed.
    5. An entry below ``min_confidence`` is dropped.
    """
    settings = Settings(num_results, chunk_threshold, min_confidence, top_term_only, assertions)
    settings = settings.checked(candidates.depth)
    chosen = stages(candidates, settings).chosen
    gathered = entries(candidates, settings, chosen)
    spans: list[list[Span]] = [[] for _ in gathered.score]
    for chunk, slot in zip(*np.nonzero(chosen), strict=True):
        spans[gathered.member[chunk, slot]].append((int(candidates.start[chunk]), int(candidates.end[chunk])))
    found: list[list[Extracted]] = [[] for _ in candidates.documents]
    for entry in np.flatnonzero(gathered.score >= min_confidence).tolist():
        found[gathered.document[entry]].append(
            Extracted(
                candidates.term_ids[gathered.term[entry]],
                ASSERTIONS[gathered.assertion[entry]],
                float(gathered.score[entry]),
                tuple(sorted(spans[entry])),
            )
        )
    ordered = tuple(
        tuple(sorted(each, key=lambda one: (-one.score, one.term, one.assertion))) for each in found
    )
    return Predictions(tuple(document.id for document in candidates.documents), ordered, settings)
