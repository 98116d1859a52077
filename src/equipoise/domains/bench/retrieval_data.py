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
from equipoise.domains.bench.tables import BenchTable, as_number, as_text, query_columns, stem_of, table_file, table_of
from equipoise.errors import DuplicateError, FormatError, InputError, UnknownNameError
from equipoise.io.dataset import Dataset
from equipoise.io.run_files import read_qrels
from equipoise.io.tables import table_format
from equipoise.runs.unit_table import RetrievedItem, UnitContent
from equipoise.tasks.retrieval import retrieve


class Retrieval(BenchData):
    """Queries, a corpus of documents, and judgements.

    Parameters
    ----------
    corpus
        The documents: a table with ids and texts. A BEIR folder holds all three parts. A table of queries and
        positives alone is also allowed: the corpus is then all positives and negatives.
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
        if queries is None and isinstance(corpus, str | Path) and is_beir_folder(Path(corpus)):
            folder = Path(corpus)
            name = name or folder.resolve().name
            corpus, queries, qrels = _beir_parts(folder, split)
        self.name = name or "retrieval"
        if queries is None or qrels is None:
            parts = _from_positives(table_of(corpus, name=name), text, log)
        else:
            files = qrels if isinstance(qrels, list) and all(isinstance(each, Path) for each in qrels) else [qrels]
            parts = _from_tables(table_of(corpus), table_of(queries), [_qrels_table(each) for each in files], text, log)
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


# BEIR folders and their parts.


def is_beir_folder(path: Path) -> bool:
    """Whether a folder has a corpus and queries."""
    return path.is_dir() and table_file(path, "corpus") is not None and table_file(path, "queries") is not None


def _beir_parts(folder: Path, split: str | None) -> tuple[Path, Path, list[Path]]:
    corpus, queries = table_file(folder, "corpus"), table_file(folder, "queries")
    below = folder / "qrels"
    if below.is_dir():
        files = {stem_of(file): file for file in sorted(below.iterdir()) if file.is_file()}
    else:
        single = table_file(folder, "qrels")
        files = {} if single is None else {"qrels": single}
    if not files:
        raise FormatError(f"{folder} has a corpus and queries but no qrels", hint="add qrels/test.tsv or qrels.csv")
    if split is not None and split not in files:
        raise UnknownNameError.of(f"split of {folder.name}", split, files, more=f"it has {', '.join(files)}")
    chosen = split or ("test" if "test" in files else None)
    assert corpus is not None
    assert queries is not None
    return corpus, queries, [files[chosen]] if chosen else list(files.values())


def _qrels_table(source: Any) -> BenchTable:
    """Judgements as a table; a file without the usual columns is read as TREC qrels."""
    if isinstance(source, str | Path) and Path(source).is_file():
        table = None if table_format(source) is None else table_of(source)
        if table is None or table.find("query_id") is None:
            rows = [
                {"query_id": query, "doc_id": document, "relevance": gain}
                for query, gains in read_qrels(source).items()
                for document, gain in gains.items()
            ]
            return table_of(rows, name=Path(source).name)
        return table
    return table_of(source)


Parts = tuple[dict[str, str], dict[str, str], dict[str, dict[str, float]], dict[str, dict[str, Any]]]
"""Documents, queries, judgements and slices."""


def _from_tables(
    corpus: BenchTable, queries: BenchTable, qrels: Sequence[BenchTable], text: Sequence[str], log: IssueLog
) -> Parts:
    documents = _documents(corpus, text, log)
    asked, properties = _queries(queries, log)
    truth: dict[str, dict[str, float]] = {}
    unknown_documents, unknown_queries, bad_gains = [], [], []
    for table in qrels:
        query_column, doc_column = table.column("query_id"), table.column("doc_id")
        gain_column = table.find("gain")
        gains = table.columns[gain_column] if gain_column is not None else [1] * len(table)
        for query, document, value in zip(table.texts(query_column), table.texts(doc_column), gains, strict=True):
            gain = as_number(value)
            if gain is None:
                bad_gains.append(f"{query} {document}")
            elif query not in asked:
                unknown_queries.append(query)
            elif document not in documents:
                unknown_documents.append(document)
            elif truth.setdefault(query, {}).setdefault(document, gain) != gain:
                raise DuplicateError(
                    f"{table.name} gives document {document} the relevance {truth[query][document]:g} and {gain:g} "
                    f"for query {query}",
                    hint="keep one judgement per query and document",
                )
    relevant = {query: truth[query] for query in asked if any(gain > 0 for gain in truth.get(query, {}).values())}
    log.add("unknown_documents", unknown_documents)
    log.add("unknown_queries", unknown_queries)
    log.add("bad_relevance", bad_gains)
    log.add("unjudged_queries", [each for each in asked if each not in relevant])
    if truth == {} and (unknown_documents or unknown_queries):
        raise InputError(
            "no judgement names a known query and a known document",
            hint="are the ids of the qrels those of the corpus and the queries?",
        )
    return (
        documents,
        {query: asked[query] for query in relevant},
        relevant,
        {query: properties[query] for query in relevant if properties.get(query)},
    )


def _documents(corpus: BenchTable, text: Sequence[str], log: IssueLog) -> dict[str, str]:
    id_column = corpus.column("id")
    if text:
        columns = [corpus.column("text", each) for each in text]
    else:
        title = corpus.find("title")
        columns = [*([title] if title else []), corpus.column("text")]
    documents = _by_id(corpus, id_column, corpus.joined(columns), log, "document")
    log.add("empty_documents", [each for each, body in documents.items() if not body])
    return documents


def _queries(table: BenchTable, log: IssueLog) -> tuple[dict[str, str], dict[str, dict[str, Any]]]:
    id_column, text_column = table.column("id"), table.column("text")
    ids = table.texts(id_column)
    found = _by_id(table, id_column, table.texts(text_column), log, "query")
    log.add("blank_queries", [each for each, text in found.items() if not text])
    properties = dict(zip(ids, table.properties([id_column, text_column]), strict=True))
    return {each: text for each, text in found.items() if text}, properties


def _by_id(table: BenchTable, id_column: str, texts: Sequence[str], log: IssueLog, noun: str) -> dict[str, str]:
    """Texts by id; a repeated id with the same text is counted, one with another text is an error."""
    found: dict[str, str] = {}
    repeated, without = [], []
    for row, (each, text) in enumerate(zip(map(as_text, table.columns[id_column]), texts, strict=True)):
        if not each:
            without.append(f"row {row + 1}")
        elif each in found and found[each] != text:
            raise DuplicateError(
                f"{table.name} has two texts for the {noun} id {each}", hint="give every text an id of its own"
            )
        elif each in found:
            repeated.append(each)
        else:
            found[each] = text
    plural = "documents" if noun == "document" else "queries"
    log.add(f"repeated_{plural}", repeated)
    log.add(f"{noun}_without_id", without)
    return found


def _from_positives(table: BenchTable, text: Sequence[str], log: IssueLog) -> Parts:
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
