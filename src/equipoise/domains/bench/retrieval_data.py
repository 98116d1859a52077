"""Retrieval from a corpus: BEIR folders, three tables, or queries with positives. Reranking of given candidates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from equipoise.checks.base import pluralize
from equipoise.domains.bench.base_data import (
    LONGEST_TEXT,
    SHOWN,
    BenchData,
    BenchObservation,
    EvaluatedSystem,
    IssueLog,
    UsedColumns,
    require_rows,
    slices_of,
)
from equipoise.errors import InputError
from equipoise.evidence.ranking import Ranking, merge_items
from equipoise.geometry.topk import top_columns
from equipoise.io.columns import ColumnTable, query_columns, table_of
from equipoise.io.dataset import Dataset
from equipoise.io.retrieval_tables import (
    beir_files,
    choose_split,
    has_retrieval_files,
    ir_datasets_parts,
    read_retrieval,
)
from equipoise.models.dense import FittedShards
from equipoise.models.rerank import RerankedRetriever
from equipoise.progress import portion
from equipoise.runs.unit_table import RetrievedItem, UnitContent

if TYPE_CHECKING:
    from equipoise.types import Floats


class Retrieval(BenchData):
    """Queries, a corpus of documents, and judgements.

    Parameters
    ----------
    corpus
        The documents: a table with ids and texts. A BEIR folder or an ``ir_datasets`` object holds all three parts. A
        table of queries and positives alone is also allowed: the corpus is then all positives and negatives.
    queries
        A table of queries with ids and texts.
    qrels
        A table of judgements: query id, document id, relevance.
    name
        The name in reports.
    split
        The split of the qrels of a BEIR folder. Default: test if there is one, otherwise all.
    text
        The columns of the document text, joined by a space. Default: title and text. In a table of queries and
        positives: the columns of the query, the positive and the negative.

    >>> data = Retrieval([{"query": "what is rye?", "positive": "Rye is a grass."}], name="tiny")
    >>> data.size
    '1 query, 1 document'
    """

    kind = "retrieval"
    title = "retrieval from a corpus"
    formats = (
        "BEIR folder (corpus, queries, qrels/*.tsv); three tables named corpus, queries and qrels in any format; "
        "one table with query and positive (and negative)"
    )
    unit = "query"
    metrics = ("nDCG@10", "MRR@10", "R@10", "R@100", "MAP", "HR@1", "HR@10")
    needs_vectors = False

    def __init__(
        self,
        corpus: Any,
        queries: Any = None,
        qrels: Any = None,
        *,
        name: str = "",
        split: str | None = None,
        text: Sequence[str] = (),
    ) -> None:
        log = IssueLog()
        splits: dict[str, Any] = {}
        if queries is None and isinstance(corpus, str | Path) and has_retrieval_files(Path(corpus)):
            folder = Path(corpus)
            name = name or folder.resolve().name
            corpus, queries, splits = beir_files(folder)
            splits = choose_split(splits, split or ("test" if "test" in splits else None), folder)
        elif queries is None and (opened := ir_datasets_parts(corpus)):
            corpus, queries, qrels = opened
        if not splits and qrels is not None:
            splits = {"qrels": qrels}
        self.name = name or "retrieval"
        if queries is None or not splits:
            parts = _from_positives(table_of(corpus, name=name), text, log)
        else:
            parts = _from_tables(corpus, queries, splits, text, log)
        documents, texts, truth, slices, self.columns = parts
        require_rows(list(truth), self.name, "queries", log)
        self.dataset = Dataset(self.name, documents, texts, truth, slices)
        first: dict[str, str] = {}
        copies = [doc_id for doc_id, body in documents.items() if body and first.setdefault(body, doc_id) != doc_id]
        log.add("duplicate_documents", copies)
        self.issues = log.issues
        self.slices = slices

    @property
    def unit_ids(self) -> Sequence[str]:
        """The queries that have relevant documents."""
        return list(self.dataset.units)

    @property
    def size(self) -> str:
        """Queries and documents."""
        queries = pluralize(len(self.dataset.units), "query", "queries")
        return f"{queries}, {pluralize(len(self.dataset.items), 'document')}"

    @property
    def content(self) -> Any:
        """The fingerprint of the dataset."""
        return self.dataset.fingerprint

    @property
    def texts(self) -> tuple[Sequence[str], Sequence[str]]:
        """Queries, and documents that are not empty."""
        return list(self.dataset.units.values()), [text for text in self.dataset.items.values() if text]

    def observe(self, system: EvaluatedSystem, *, seed: int = 0) -> BenchObservation:
        """Rank the whole corpus for every query; the first hits are kept."""
        retrieved: dict[str, list[tuple[str, float]]] = {}
        ranking = retrieve(system.retriever, self.dataset, top=SHOWN, retrieved=retrieved)
        return BenchObservation(ranking, details=self._details(retrieved))

    def _details(self, retrieved: Mapping[str, list[tuple[str, float]]]) -> dict[str | int, UnitContent]:
        items, truth = self.dataset.items, self.dataset.truth
        return {
            unit: UnitContent(
                text,
                tuple(item for item, gain in truth.get(unit, {}).items() if gain > 0),
                self.slices.get(unit, {}),
                tuple(
                    RetrievedItem(item, items[item][:LONGEST_TEXT], score, truth.get(unit, {}).get(item, 0) > 0)
                    for item, score in retrieved.get(unit, ())
                ),
            )
            for unit, text in self.dataset.units.items()
        }


Parts = tuple[dict[str, str], dict[str, str], dict[str, dict[str, float]], dict[str, dict[str, Any]], UsedColumns]
"""Documents, queries, judgements, slices, and the columns of a single table."""


def _used_columns(table: ColumnTable, columns: Mapping[str, Sequence[str]], text: Sequence[str]) -> UsedColumns:
    """The columns of a table of queries and positives."""
    queries, positives, negatives = columns.values()
    roles = () if text else columns
    return UsedColumns.of(table, roles, queries=queries, documents=positives, negatives=negatives)


def _from_tables(corpus: Any, queries: Any, qrels: Mapping[str, Any], text: Sequence[str], log: IssueLog) -> Parts:
    """The queries that have a relevant document."""
    parts = read_retrieval(corpus, queries, qrels, text=text, report_issue=log.add)
    relevant = {query: gains for query, gains in parts.truth.items() if any(gain > 0 for gain in gains.values())}
    log.add("unjudged_queries", [query_id for query_id in parts.queries if query_id not in relevant])
    return (
        parts.documents,
        {query: parts.queries[query] for query in relevant},
        relevant,
        {query: parts.properties[query] for query in relevant if parts.properties.get(query)},
        UsedColumns(),
    )


def _from_positives(table: ColumnTable, text: Sequence[str], log: IssueLog) -> Parts:
    """The corpus is every positive and negative, once; equal queries are one query."""
    queries, positives, negatives, used = query_columns(table, text)
    documents: dict[str, str] = {}
    units: dict[str, str] = {}
    truth: dict[str, dict[str, float]] = {}
    slices: dict[str, dict[str, Any]] = {}
    blank_rows, without_positive, repeated = [], [], []
    properties = table.properties(name for names in used.values() for name in names)
    number_of: dict[str, str] = {}
    for row, query in enumerate(queries):
        ids = [documents.setdefault(text, f"d{len(documents) + 1}") for text in positives[row]]
        for text in negatives[row]:
            documents.setdefault(text, f"d{len(documents) + 1}")
        if not query:
            blank_rows.append(f"row {row + 1}")
        elif not ids:
            without_positive.append(f"row {row + 1}")
        else:
            unit = number_of.setdefault(query, f"q{row + 1}")
            if unit in units:
                repeated.append(f"row {row + 1}")
            units[unit] = query
            truth.setdefault(unit, {}).update(dict.fromkeys(ids, 1.0))
            slices.setdefault(unit, dict(properties[row]))
    log.add("blank_queries", blank_rows)
    log.add("unjudged_queries", without_positive)
    log.add("repeated_queries", repeated)
    return (
        {doc_id: text for text, doc_id in documents.items()},
        units,
        truth,
        {unit: values for unit, values in slices.items() if values},
        _used_columns(table, used, text),
    )


class Reranking(BenchData):
    """Queries, each with its own positive and negative candidates.

    Parameters
    ----------
    table
        A path, a data frame, a ``datasets`` object, or rows in Python.
    name
        The name in reports. Default: the name of the file.
    text
        The columns of the query, the positives and the negatives, if their names are unusual.

    >>> data = Reranking([{"query": "rye", "positives": ["a grass"], "negatives": ["a train", "a bus"]}])
    >>> data.size
    '1 query, 3 candidates'
    """

    kind = "reranking"
    title = "reranking of given candidates"
    formats = "one table with query, positives and negatives (lists, JSON lists in a CSV cell, or one per column)"
    unit = "query"
    metrics = ("MAP", "MRR", "nDCG@10")
    needs_vectors = False

    def __init__(self, table: Any, *, name: str = "", text: Sequence[str] = ()) -> None:
        source = table_of(table, name=name)
        self.name = name or source.name
        log = IssueLog()
        queries, positives, negatives, used = query_columns(source, text)
        units: dict[str, str] = {}
        self._relevant: dict[str, list[str]] = {}
        self._candidates: dict[str, list[str]] = {}
        blank_rows, without_candidates, conflicting = [], [], []
        for row, query in enumerate(queries):
            unit = str(row + 1)
            relevant = list(dict.fromkeys(positives[row]))
            others = [candidate for candidate in dict.fromkeys(negatives[row]) if candidate not in set(relevant)]
            if len(others) < len(set(negatives[row])):
                conflicting.append(unit)
            if not query:
                blank_rows.append(unit)
            elif not relevant or not others:
                without_candidates.append(unit)
            else:
                units[unit] = query
                self._relevant[unit], self._candidates[unit] = relevant, relevant + others
        log.add("blank_queries", blank_rows)
        log.add("no_candidates", without_candidates)
        log.add("positive_and_negative", conflicting)
        require_rows(list(units), self.name, "queries", log)
        self._units = units
        self.issues = log.issues
        used_table = source.rows([str(row + 1) in units for row in range(len(queries))])
        self.columns = _used_columns(source, used, text)
        properties = used_table.properties(name for names in used.values() for name in names)
        self.slices = slices_of(list(units), properties)

    @property
    def unit_ids(self) -> Sequence[str]:
        """The rows of the table."""
        return list(self._units)

    @property
    def size(self) -> str:
        """Queries and candidates."""
        candidates = pluralize(sum(map(len, self._candidates.values())), "candidate")
        return f"{pluralize(len(self._units), 'query', 'queries')}, {candidates}"

    @property
    def content(self) -> Any:
        """Queries and candidates."""
        return [self._units, self._relevant, self._candidates]

    @property
    def texts(self) -> tuple[Sequence[str], Sequence[str]]:
        """Queries and distinct candidates."""
        return list(self._units.values()), list(
            dict.fromkeys(text for candidates in self._candidates.values() for text in candidates)
        )

    def observe(self, system: EvaluatedSystem, *, seed: int = 0) -> BenchObservation:
        """Rank the candidates of each query."""
        queries, documents = self.texts
        place = {text: index for index, text in enumerate(documents)}
        columns = [[place[text] for text in candidates] for candidates in self._candidates.values()]
        scores = candidate_scores(system.retriever, queries, documents, columns)
        ranking = Ranking.from_lists(
            columns,
            [[place[text] for text in relevant] for relevant in self._relevant.values()],
            scores=scores,
            unit_ids=list(self._units),
        )
        return BenchObservation(ranking, details=self._details(columns, scores, documents))

    def _details(
        self, columns: Sequence[Sequence[int]], scores: Sequence[Any], documents: Sequence[str]
    ) -> dict[str | int, UnitContent]:
        details: dict[str | int, UnitContent] = {}
        for (unit, query), candidates, values in zip(self._units.items(), columns, scores, strict=True):
            relevant = set(self._relevant[unit])
            order = np.argsort(-np.asarray(values), kind="stable")[:SHOWN]
            details[unit] = UnitContent(
                query,
                tuple(self._relevant[unit]),
                self.slices.get(unit, {}),
                tuple(
                    RetrievedItem(
                        str(candidates[at]),
                        documents[candidates[at]][:LONGEST_TEXT],
                        float(values[at]),
                        documents[candidates[at]] in relevant,
                    )
                    for at in order.tolist()
                ),
            )
        return details


# The ranks that a system gives the relevant items of a dataset, and its scores of given candidates.

Blocks = Iterable[tuple[slice, NDArray[Any]]]
Retrieved = dict[str, list[tuple[str, float]]]
"""Per unit: ids and scores of the best items, best first."""


class FittedSystem(Protocol):
    """A system that is fitted on the items and scores all of them for a text."""

    def score_blocks(self, queries: Sequence[str]) -> Blocks:
        """Rows of queries with their scores against every item, higher being better."""


class RetrievalSystem(Protocol):
    """What ``equipoise.retriever`` makes, or anything that is fitted on texts in the same way."""

    def fit(self, documents: Sequence[str]) -> FittedSystem:
        """The system, fitted on the items."""


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
    share = _share_of_documents(system, data)
    with portion(0.0, share):
        fitted = system.fit([text for text in data.items.values() if text.strip()])
    if isinstance(fitted, FittedShards):
        return _retrieve_from_shards(fitted, data, filled, top, retrieved)
    blocks: Blocks = fitted.score_blocks(list(data.units.values()))
    if not filled.all():
        blocks = _with_empty_items(blocks, filled)
    if retrieved is not None and top > 0:
        blocks = _keep_top(blocks, min(top, int(filled.sum())), list(data.units), ids, retrieved)
    with portion(share, 1.0):
        return Ranking.from_blocks(
            blocks,
            [[place[item] for item in gains] for gains in truth],
            gains=[list(gains.values()) for gains in truth],
            units=len(data.units),
            corpus=len(place),
            unit_ids=list(data.units),
        )


def _share_of_documents(system: RetrievalSystem, data: Dataset) -> float:
    """The share of the time that documents take, for the progress: by characters, or little before a reranker."""
    if isinstance(system, RerankedRetriever):
        return 0.2
    items, units = (sum(map(len, texts.values())) for texts in (data.items, data.units))
    return items / max(1, items + units)


def _retrieve_from_shards(
    fitted: FittedShards, data: Dataset, filled: NDArray[np.bool_], top: int, retrieved: Retrieved | None
) -> Ranking:
    """The same for a corpus in files, which is read twice in all instead of once per block of units."""
    texts, units = list(data.units.values()), list(data.units)
    ids = [item for item, has_text in zip(data.items, filled.tolist(), strict=True) if has_text]
    if retrieved is not None and top > 0:
        best = fitted.search(texts, min(top, len(ids)))
        for unit, rows, scores in zip(units, best.indices.tolist(), best.scores.tolist(), strict=True):
            retrieved[unit] = [(ids[row], score) for row, score in zip(rows, scores, strict=True)]
    place = {item: position for position, item in enumerate(ids)}
    truth = [data.truth.get(unit, {}) for unit in units]
    with_text = [{item: gain for item, gain in gains.items() if item in place} for gains in truth]
    relevant = [[place[item] for item in gains] for gains in with_text]
    ranking = fitted.ranking(texts, relevant, [list(gains.values()) for gains in with_text], units)
    if filled.all():
        return ranking
    last = [[gain for item, gain in gains.items() if item not in place and gain > 0] for gains in truth]
    return _with_last_items(ranking, last, len(data.items) - len(ids))


def _with_last_items(ranking: Ranking, gains: list[list[float]], n_last: int) -> Ranking:
    """The ranking with ``n_last`` more candidates, tied below all others; ``gains`` are of the relevant ones."""
    gain = np.array([number for row in gains for number in row], dtype=np.float64)
    counts = np.array([len(row) for row in gains], dtype=np.int64)
    above = np.repeat(ranking.candidates, counts)
    pool = ranking.candidates + n_last
    last = Ranking.of_items(
        ranking.unit_ids, counts, gain=gain, above=above, tied=np.full_like(above, n_last - 1), depth=pool
    )
    merged = merge_items(replace(ranking, candidates=pool, depth=pool), last)
    return replace(merged, invalid_points=ranking.invalid_points)


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
        all_scores = np.full((len(scores), len(filled)), -np.inf, dtype=scores.dtype)
        all_scores[:, filled] = scores
        yield rows, all_scores


def _keep_top(
    blocks: Blocks, top: int, units: Sequence[str], ids: Sequence[str], retrieved: Retrieved
) -> Iterator[tuple[slice, NDArray[Any]]]:
    """The blocks unchanged; the best items of each row are added to ``retrieved`` before the block is reused."""
    for rows, scores in blocks:
        columns, best = top_columns(scores, top)
        for unit, places, values in zip(units[rows], columns.tolist(), best.tolist(), strict=True):
            retrieved[unit] = [(ids[place], value) for place, value in zip(places, values, strict=True)]
        yield rows, scores
