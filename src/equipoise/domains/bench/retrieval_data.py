"""Data of ranking tasks: retrieval from a corpus, and reranking of given candidates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from equipoise.domains.bench.data import BenchData, EvaluatedSystem, IssueLog, Observation, require_rows, slices_of
from equipoise.domains.bench.tables import BenchTable, as_number, as_text, stem_of, table_file, table_of
from equipoise.errors import DuplicateError, FormatError, InputError, UnknownNameError
from equipoise.evidence.ranking import Ranking
from equipoise.io.dataset import Dataset
from equipoise.io.tables import table_format
from equipoise.runs.unit_table import RetrievedItem, UnitContent
from equipoise.stats.formatting import format_count
from equipoise.tasks.retrieval import candidate_scores, retrieve

SHOWN = 10
"""Retrieved items that are kept per query."""
_LONGEST_TEXT = 300


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
        if queries is None or qrels is None:
            parts = _from_positives(table_of(corpus, name=name), text, log)
            self.name = name or "retrieval"
        else:
            self.name = name or "retrieval"
            parts = _from_tables(table_of(corpus), table_of(queries), _stacked_qrels(qrels), text, log)
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
        return f"{_count(len(self.dataset.units), 'query')}, {_count(len(self.dataset.items), 'document')}"

    @property
    def content(self) -> Any:
        """The fingerprint of the dataset."""
        return self.dataset.fingerprint

    @property
    def texts(self) -> tuple[Sequence[str], Sequence[str]]:
        """Queries, and documents that are not empty."""
        return list(self.dataset.units.values()), [text for text in self.dataset.items.values() if text]

    def observe(self, system: EvaluatedSystem, *, seed: int = 0) -> Observation:
        """Rank the whole corpus for every query; the first hits are kept."""
        retrieved: dict[str, list[tuple[str, float]]] = {}
        ranking = retrieve(system.retriever, self.dataset, top=SHOWN, retrieved=retrieved)
        return Observation(ranking, details=self._details(retrieved))

    def _details(self, retrieved: Mapping[str, list[tuple[str, float]]]) -> dict[str | int, UnitContent]:
        items, truth = self.dataset.items, self.dataset.truth
        return {
            unit: UnitContent(
                text,
                tuple(item for item, gain in truth.get(unit, {}).items() if gain > 0),
                self.slices.get(unit, {}),
                tuple(
                    RetrievedItem(item, items[item][:_LONGEST_TEXT], score, truth.get(unit, {}).get(item, 0) > 0)
                    for item, score in retrieved.get(unit, ())
                ),
            )
            for unit, text in self.dataset.units.items()
        }


class Reranking(BenchData):
    """Queries, each with its own positive and negative candidates.

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
        queries, positives, negatives, used = _query_columns(source, text)
        units: dict[str, str] = {}
        self._relevant: dict[str, list[str]] = {}
        self._candidates: dict[str, list[str]] = {}
        blank, lacking, conflicting = [], [], []
        for row, query in enumerate(queries):
            unit = str(row + 1)
            relevant = list(dict.fromkeys(positives[row]))
            others = [each for each in dict.fromkeys(negatives[row]) if each not in set(relevant)]
            if len(others) < len(set(negatives[row])):
                conflicting.append(unit)
            if not query:
                blank.append(unit)
            elif not relevant or not others:
                lacking.append(unit)
            else:
                units[unit] = query
                self._relevant[unit], self._candidates[unit] = relevant, relevant + others
        log.add("blank_queries", blank)
        log.add("no_candidates", lacking)
        log.add(
            "positive_and_negative",
            conflicting,
        )
        require_rows(list(units), self.name, "query", log)
        self._units = units
        self.issues = log.issues
        kept = source.rows([str(row + 1) in units for row in range(len(queries))])
        self.slices = slices_of(list(units), kept.properties(used))

    @property
    def unit_ids(self) -> Sequence[str]:
        """The rows of the table."""
        return list(self._units)

    @property
    def size(self) -> str:
        """Queries and candidates."""
        return f"{_count(len(self._units), 'query')}, {_count(sum(map(len, self._candidates.values())), 'candidate')}"

    @property
    def content(self) -> Any:
        """Queries and candidates."""
        return [self._units, self._relevant, self._candidates]

    @property
    def texts(self) -> tuple[Sequence[str], Sequence[str]]:
        """Queries and distinct candidates."""
        return list(self._units.values()), list(
            dict.fromkeys(text for each in self._candidates.values() for text in each)
        )

    def observe(self, system: EvaluatedSystem, *, seed: int = 0) -> Observation:
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
        return Observation(ranking, details=self._details(columns, scores, documents))

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
                        documents[candidates[at]][:_LONGEST_TEXT],
                        float(values[at]),
                        documents[candidates[at]] in relevant,
                    )
                    for at in order.tolist()
                ),
            )
        return details


# BEIR folders and their parts.


def is_beir_folder(path: Path) -> bool:
    """Whether a folder has a corpus and queries."""
    return path.is_dir() and table_file(path, "corpus") is not None and table_file(path, "queries") is not None


def _beir_parts(folder: Path, split: str | None) -> tuple[Path, Path, list[Path]]:
    corpus, queries = table_file(folder, "corpus"), table_file(folder, "queries")
    below = folder / "qrels"
    if below.is_dir():
        files = {stem_of(file): file for file in sorted(below.iterdir()) if table_format(file) is not None}
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


def _stacked_qrels(qrels: Any) -> list[BenchTable]:
    return (
        [table_of(each) for each in qrels]
        if isinstance(qrels, list) and all(isinstance(each, Path) for each in qrels)
        else [table_of(qrels)]
    )


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
    log.add(
        "unknown_documents",
        unknown_documents,
    )
    log.add("unknown_queries", unknown_queries)
    log.add("bad_relevance", bad_gains)
    log.add(
        "unjudged_queries",
        [each for each in asked if each not in relevant],
    )
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
    log.add(
        "empty_documents",
        [each for each, body in documents.items() if not body],
    )
    return documents


def _queries(table: BenchTable, log: IssueLog) -> tuple[dict[str, str], dict[str, dict[str, Any]]]:
    id_column, text_column = table.column("id"), table.column("text")
    ids = table.texts(id_column)
    found = _by_id(table, id_column, table.texts(text_column), log, "query")
    log.add(
        "blank_queries",
        [each for each, text in found.items() if not text],
    )
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


# One table of queries with positives and negatives.


def _query_columns(
    table: BenchTable, text: Sequence[str]
) -> tuple[list[str], list[list[str]], list[list[str]], list[str]]:
    """Queries, positives, negatives, and the columns that were used; numbered columns count as lists.

    ``text`` names the columns of the query, the positive and, if there are three, the negative.
    """
    if text:
        chosen = [table.column("text", each) for each in text]
        if not 2 <= len(chosen) <= 3:
            raise InputError(f"{len(chosen)} text columns were named", hint="--text QUERY POSITIVE [NEGATIVE]")
        lists = [_merged_lists(table, chosen[place : place + 1]) for place in (1, 2)]
        return table.texts(chosen[0]), lists[0], lists[1], chosen
    query = table.column("query")
    found: dict[str, list[str]] = {}
    for role in ("positive", "negative"):
        main = table.find(role)
        main = None if main == query else main
        numbered = [
            name
            for name in table.columns
            if name.casefold().rstrip("_-0123456789 ") in (role, role[:3]) and name != main
        ]
        found[role] = [*([main] if main else []), *numbered]
    if not found["positive"]:
        table.column("positive")  # raises with the columns there are
    positives, negatives = (_merged_lists(table, found[role]) for role in ("positive", "negative"))
    return table.texts(query), positives, negatives, [query, *found["positive"], *found["negative"]]


def _merged_lists(table: BenchTable, columns: Sequence[str]) -> list[list[str]]:
    """The texts of several columns, per row."""
    parts = [table.lists(column) for column in columns]
    return [[text for part in parts for text in part[row]] for row in range(len(table))]


def _from_positives(table: BenchTable, text: Sequence[str], log: IssueLog) -> Parts:
    """The corpus is every positive and negative, once; equal queries are one query."""
    queries, positives, negatives, used = _query_columns(table, text)
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


def _count(count: int, noun: str) -> str:
    plural = {"query": "queries"}.get(noun, f"{noun}s")
    return f"{format_count(count)} {noun if count == 1 else plural}"
