"""Retrieval: the ranks that a system gives the relevant items of a dataset."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from numpy.typing import NDArray

from equipoise.errors import InputError
from equipoise.evidence.ranking import Ranking

if TYPE_CHECKING:
    from equipoise.io.dataset import Dataset


class FittedSystem(Protocol):
    """What has seen the items and can score them all for a text."""

    def score_blocks(self, queries: Sequence[str]) -> Iterable[tuple[slice, NDArray[Any]]]:
        """Rows of queries with their scores against every item, higher being better."""


class RetrievalSystem(Protocol):
    """What ``equipoise.retriever`` makes, or anything that is fitted on texts in the same way."""

    def fit(self, documents: Sequence[str]) -> FittedSystem:
        """The system after it has seen the items."""


def retrieve(system: RetrievalSystem, data: Dataset) -> Ranking:
    """Rank every item of the dataset for every unit; the ranks are exact and of full depth.

    A unit without truth keeps its place and is undefined.

    >>> from equipoise.io.dataset import Dataset
    >>> from equipoise.models.retriever import retriever
    >>> data = Dataset("d", {"a": "rye bread", "b": "a slow train"}, {"q": "bread"}, {"q": {"a": 1}})
    >>> retrieve(retriever("bm25:"), data).ranks
    array([1.])
    """
    if not data.items or not data.units:
        raise InputError(f"{data.name} has no items or no units", hint="both are needed to retrieve anything")
    place = {item: position for position, item in enumerate(data.items)}
    truth = [data.truth.get(unit, {}) for unit in data.units]
    fitted = system.fit(list(data.items.values()))
    return Ranking.from_blocks(
        fitted.score_blocks(list(data.units.values())),
        [[place[item] for item in gains] for gains in truth],
        gains=[list(gains.values()) for gains in truth],
        units=len(data.units),
        corpus=len(place),
        unit_ids=list(data.units),
    )
