"""Retrieval: the ranks that a system gives the relevant items of a dataset, and scores of given candidates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import InputError
from equipoise.evidence.ranking import Ranking
from equipoise.geometry.topk import top_columns
from equipoise.models.dense import FittedShards

if TYPE_CHECKING:
    from equipoise.io.dataset import Dataset
    from equipoise.types import Floats

Blocks = Iterable[tuple[slice, NDArray[Any]]]
Retrieved = dict[str, list[tuple[str, float]]]
"""Per unit: ids and scores of the best items, best first."""


class FittedSystem(Protocol):
    """What has seen the items and can score them all for a text."""

    def score_blocks(self, queries: Sequence[str]) -> Blocks:
        """Rows of queries with their scores against every item, higher being better."""


class RetrievalSystem(Protocol):
    """What ``equipoise.retriever`` makes, or anything that is fitted on texts in the same way."""

    def fit(self, documents: Sequence[str]) -> FittedSystem:
        """The system after it has seen the items."""


def retrieve(system: RetrievalSystem, data: Dataset, *, top: int = 0, retrieved: Retrieved | None = None) -> Ranking:
    """Rank every item of the dataset for every unit; the ranks are exact and of full depth.

    A unit without truth is undefined. An item without text is a candidate that ranks below all others.

    Parameters
    ----------
    system
        What ``equipoise.retriever`` returns.
    data
        Items, units and truth.
    top, retrieved
        The ids and scores of the best ``top`` items of each unit are added to ``retrieved``.

    >>> from equipoise.io.dataset import Dataset
    >>> from equipoise.models.retriever import retriever
    >>> data = Dataset("d", {"a": "rye bread", "b": "a slow train", "c": ""}, {"q": "bread"}, {"q": {"a": 1}})
    >>> retrieve(retriever("bm25:"), data).ranks
    array([1.])
    """
    if not data.items or not data.units:
        raise InputError(f"{data.name} has no items or no units", hint="both are needed to retrieve anything")
    ids = list(data.items)
    place = {item: position for position, item in enumerate(ids)}
    truth = [data.truth.get(unit, {}) for unit in data.units]
    filled = np.array([bool(text.strip()) for text in data.items.values()])
    fitted = system.fit([text for text in data.items.values() if text.strip()])
    if isinstance(fitted, FittedShards) and filled.all():
        return _retrieve_from_shards(fitted, data, place, top, retrieved)
    blocks: Blocks = fitted.score_blocks(list(data.units.values()))
    if not filled.all():
        blocks = _with_empty_items(blocks, filled)
    if retrieved is not None and top > 0:
        blocks = _keep_top(blocks, min(top, int(filled.sum())), list(data.units), ids, retrieved)
    return Ranking.from_blocks(
        blocks,
        [[place[item] for item in gains] for gains in truth],
        gains=[list(gains.values()) for gains in truth],
        units=len(data.units),
        corpus=len(place),
        unit_ids=list(data.units),
    )


def _retrieve_from_shards(
    fitted: FittedShards, data: Dataset, place: Mapping[str, int], top: int, retrieved: Retrieved | None
) -> Ranking:
    """The same for a corpus in files, which is read twice in all instead of once per block of units."""
    texts, ids = list(data.units.values()), list(data.items)
    truth = [data.truth.get(unit, {}) for unit in data.units]
    if retrieved is not None and top > 0:
        best = fitted.search(texts, min(top, len(ids)))
        for unit, rows, scores in zip(data.units, best.indices.tolist(), best.scores.tolist(), strict=True):
            retrieved[unit] = [(ids[row], score) for row, score in zip(rows, scores, strict=True)]
    relevant = [[place[item] for item in gains] for gains in truth]
    return fitted.ranking(texts, relevant, [list(gains.values()) for gains in truth], list(data.units))


def candidate_scores(
    system: RetrievalSystem, queries: Sequence[str], documents: Sequence[str], columns: Sequence[Sequence[int]]
) -> list[Floats]:
    """The scores of each query for its own candidates, which are positions in ``documents``."""
    scores: list[Floats] = [np.empty(0)] * len(queries)
    for rows, block in system.fit(documents).score_blocks(queries):
        for row, query in enumerate(range(len(queries))[rows]):
            scores[query] = np.asarray(block[row, np.asarray(columns[query], dtype=np.int64)], dtype=np.float64)
    return scores


def _with_empty_items(blocks: Blocks, filled: NDArray[np.bool_]) -> Iterator[tuple[slice, NDArray[Any]]]:
    """The blocks with a column of minus infinity for every item without text."""
    for rows, scores in blocks:
        whole = np.full((len(scores), len(filled)), -np.inf, dtype=scores.dtype)
        whole[:, filled] = scores
        yield rows, whole


def _keep_top(
    blocks: Blocks, top: int, units: Sequence[str], ids: Sequence[str], retrieved: Retrieved
) -> Iterator[tuple[slice, NDArray[Any]]]:
    """The blocks unchanged; the best items of each row are added to ``retrieved`` before the block is reused."""
    for rows, scores in blocks:
        columns, best = top_columns(scores, top)
        for unit, places, values in zip(units[rows], columns.tolist(), best.tolist(), strict=True):
            retrieved[unit] = [(ids[place], value) for place, value in zip(places, values, strict=True)]
        yield rows, scores
