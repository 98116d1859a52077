"""Retrieval from a corpus: BEIR folders, three tables, or one table of queries and positives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from equipoise.domains.bench.base_data import (
    LONGEST_TEXT,
    SHOWN,
    BenchData,
    BenchObservation,
    EvaluatedSystem,
    IssueLog,
    counted,
    require_rows,
)
from equipoise.io.columns import ColumnTable, query_columns, table_of
from equipoise.io.dataset import Dataset
from equipoise.io.retrieval_tables import (
    beir_files,
    choose_split,
    has_retrieval_files,
    ir_datasets_parts,
    read_retrieval,
)
from equipoise.runs.unit_table import RetrievedItem, UnitContent
from equipoise.tasks.retrieval import retrieve


class Retrieval(BenchData):
    """Queries, a corpus of documents, and judgements.

    Parameters
    ----------
    corpus
        The documents: a table with ids and texts. A BEIR folder or an ``ir_datasets`` object holds all three parts. A
        table of queries and positives alone is also allowed: the corpus is then all positives and negatives.
    queries, qrels
        Tables of queries and of judgements (query id, document id, relevance).
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
        documents, texts, truth, slices = parts
        require_rows(list(truth), self.name, "query", log)
        self.dataset = Dataset(self.name, documents, texts, truth, slices)
        first: dict[str, str] = {}
        copies = [each for each, body in documents.items() if body and first.setdefault(body, each) != each]
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
        return f"{counted(len(self.dataset.units), 'query')}, {counted(len(self.dataset.items), 'document')}"

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


Parts = tuple[dict[str, str], dict[str, str], dict[str, dict[str, float]], dict[str, dict[str, Any]]]
"""Documents, queries, judgements and slices."""


def _from_tables(corpus: Any, queries: Any, qrels: Mapping[str, Any], text: Sequence[str], log: IssueLog) -> Parts:
    """The queries that have a relevant document."""
    parts = read_retrieval(corpus, queries, qrels, text=text, report_issue=log.add)
    relevant = {query: gains for query, gains in parts.truth.items() if any(gain > 0 for gain in gains.values())}
    log.add("unjudged_queries", [each for each in parts.queries if each not in relevant])
    return (
        parts.documents,
        {query: parts.queries[query] for query in relevant},
        relevant,
        {query: parts.properties[query] for query in relevant if parts.properties.get(query)},
    )


def _from_positives(table: ColumnTable, text: Sequence[str], log: IssueLog) -> Parts:
    """The corpus is every positive and negative, once; equal queries are one query."""
    queries, positives, negatives, used = query_columns(table, text)
    documents: dict[str, str] = {}
    units: dict[str, str] = {}
    truth: dict[str, dict[str, float]] = {}
    slices: dict[str, dict[str, Any]] = {}
    blank, lacking, repeated = [], [], []
    properties = table.properties(used)
    number_of: dict[str, str] = {}
    for row, query in enumerate(queries):
        ids = [documents.setdefault(text, f"d{len(documents) + 1}") for text in positives[row]]
        for text in negatives[row]:
            documents.setdefault(text, f"d{len(documents) + 1}")
        if not query:
            blank.append(f"row {row + 1}")
        elif not ids:
            lacking.append(f"row {row + 1}")
        else:
            unit = number_of.setdefault(query, f"q{row + 1}")
            if unit in units:
                repeated.append(f"row {row + 1}")
            units[unit] = query
            truth.setdefault(unit, {}).update(dict.fromkeys(ids, 1.0))
            slices.setdefault(unit, dict(properties[row]))
    log.add("blank_queries", blank)
    log.add("unjudged_queries", lacking)
    log.add("repeated_queries", repeated)
    return (
        {each: text for text, each in documents.items()},
        units,
        truth,
        {unit: each for unit, each in slices.items() if each},
    )
