"""Corpus, queries, judgements and runs from tables: BEIR folders, data frames, and objects of other libraries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from equipoise.errors import DuplicateError, FormatError, InputError, UnknownNameError
from equipoise.io.columns import ColumnTable, as_number, as_text, is_frame, stem_of, table_file, table_of
from equipoise.io.run_files import read_qrels
from equipoise.io.tables import table_format
from equipoise.io.text import PathLike, display_path

ReportIssue = Callable[[str, list[str]], None]
"""Called with the code of a problem and the ids of its rows; it may raise, otherwise the rows are left out."""


@dataclass(frozen=True)
class RetrievalParts:
    """Texts by id, judgements by split, query and document, and further columns of the queries."""

    documents: dict[str, str]
    queries: dict[str, str]
    judgements: dict[str, dict[str, dict[str, float]]]
    properties: dict[str, dict[str, Any]]

    @property
    def truth(self) -> dict[str, dict[str, float]]:
        """The judgements of all splits, in the order of the queries; contradicting ones are an error."""
        merged: dict[str, dict[str, float]] = {}
        for split in self.judgements.values():
            for query, gains in split.items():
                for document, gain in gains.items():
                    _add_judgement(merged, query, document, gain, "the qrels")
        return {query: merged[query] for query in self.queries if query in merged}


def has_retrieval_files(path: Path) -> bool:
    """Whether a folder has two of corpus, queries and qrels: it is a retrieval data set, possibly incomplete."""
    names = ("corpus", "queries", "qrels")
    exists = [(path / name).is_dir() or table_file(path, name) is not None for name in names] if path.is_dir() else []
    return sum(exists) >= 2


def beir_files(folder: PathLike) -> tuple[Path, Path, dict[str, Path]]:
    """The corpus, the queries and the qrels by split: qrels/SPLIT.tsv, or one file named qrels."""
    root = Path(folder)
    if not root.is_dir():
        raise InputError(f"there is no folder {display_path(root)}", hint="a BEIR folder has corpus, queries and qrels")
    corpus, queries = table_file(root, "corpus"), table_file(root, "queries")
    if corpus is None or queries is None:
        missing = "corpus" if corpus is None else "queries"
        raise InputError(f"{display_path(root)} has no {missing} file", hint=f"add {missing}.jsonl or {missing}.csv")
    below, single = root / "qrels", table_file(root, "qrels")
    files = {} if single is None else {"qrels": single}
    if below.is_dir():
        files = {stem_of(file): file for file in sorted(below.iterdir()) if file.is_file()}
    if not files:
        raise FormatError(
            f"{display_path(root)} has a corpus and queries but no qrels", hint="add qrels/test.tsv or qrels.csv"
        )
    return corpus, queries, files


def choose_split(files: Mapping[str, Path], split: str | None, folder: PathLike) -> dict[str, Path]:
    """The qrels of one split; of all splits if none is named."""
    if split is None:
        return dict(files)
    if split not in files:
        raise UnknownNameError.of(
            f"split of {display_path(folder)}",
            split,
            files,
            more=f"the {'only split is' if len(files) == 1 else 'splits are'} {', '.join(files)}",
        )
    return {split: files[split]}


def read_retrieval(
    corpus: Any,
    queries: Any,
    qrels: Mapping[str, Any],
    *,
    text: Sequence[str] = (),
    report_issue: ReportIssue,
) -> RetrievalParts:
    """The parts of a retrieval data set; ``qrels`` are tables by split, ``text`` the columns of the documents.

    Rows that cannot be used are reported and left out.
    """
    documents = _documents(table_of(corpus), text, report_issue)
    query_texts, properties = _queries(table_of(queries), report_issue)
    judgements: dict[str, dict[str, dict[str, float]]] = {}
    unknown_documents, unknown_queries, bad_gains = [], [], []
    for split, source in qrels.items():
        table = qrels_table(source)
        truth = judgements.setdefault(split, {})
        gain_column = table.find("gain")
        gains = table.columns[gain_column] if gain_column is not None else [1] * len(table)
        ids = zip(table.texts(table.column("query_id")), table.texts(table.column("doc_id")), gains, strict=True)
        for query, document, value in ids:
            gain = as_number(value)
            if gain is None:
                bad_gains.append(f"{query} {document}")
            elif query not in query_texts:
                unknown_queries.append(query)
            elif document not in documents:
                unknown_documents.append(document)
            else:
                _add_judgement(truth, query, document, gain, table.name)
    report_issue("unknown_documents", unknown_documents)
    report_issue("unknown_queries", unknown_queries)
    report_issue("bad_relevance", bad_gains)
    if not any(judgements.values()) and (unknown_documents or unknown_queries):
        raise InputError(
            "no judgement names a known query and a known document",
            hint="are the ids of the qrels those of the corpus and the queries?",
        )
    return RetrievalParts(documents, query_texts, judgements, properties)


def ir_datasets_parts(source: Any) -> tuple[Any, Any, Any] | None:
    """Documents, queries and judgements of an ``ir_datasets`` dataset; None for any other object."""
    if not all(hasattr(source, name) for name in ("docs_iter", "queries_iter", "qrels_iter")):
        return None
    return source.docs_iter(), source.queries_iter(), source.qrels_iter()


def qrels_table(source: Any) -> ColumnTable:
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


def _add_judgement(truth: dict[str, dict[str, float]], query: str, document: str, gain: float, name: str) -> None:
    if truth.setdefault(query, {}).setdefault(document, gain) != gain:
        raise DuplicateError(
            f"{name} gives document {document} the relevance {truth[query][document]:g} and {gain:g} for query {query}",
            hint="keep one judgement per query and document",
        )


def _documents(corpus: ColumnTable, text: Sequence[str], report_issue: ReportIssue) -> dict[str, str]:
    id_column = corpus.column("id")
    if text:
        columns = [corpus.column("text", name) for name in text]
    else:
        title = corpus.find("title")
        columns = [*([title] if title else []), corpus.column("text")]
    documents = _by_id(corpus, id_column, corpus.joined(columns), report_issue, "document")
    report_issue("empty_documents", [doc_id for doc_id, body in documents.items() if not body])
    return documents


def _queries(table: ColumnTable, report_issue: ReportIssue) -> tuple[dict[str, str], dict[str, dict[str, Any]]]:
    id_column, text_column = table.column("id"), table.column("text")
    ids = table.texts(id_column)
    queries = _by_id(table, id_column, table.texts(text_column), report_issue, "query")
    report_issue("blank_queries", [query_id for query_id, text in queries.items() if not text])
    properties = dict(zip(ids, table.properties([id_column, text_column]), strict=True))
    return {query_id: text for query_id, text in queries.items() if text}, properties


def _by_id(
    table: ColumnTable, id_column: str, texts: Sequence[str], report_issue: ReportIssue, noun: str
) -> dict[str, str]:
    """Texts by id; a repeated id with the same text is counted, one with another text is an error."""
    texts_by_id: dict[str, str] = {}
    first_row: dict[str, int] = {}
    repeated, without = [], []
    for row, (row_id, text) in enumerate(zip(map(as_text, table.columns[id_column]), texts, strict=True)):
        first = first_row.setdefault(row_id, row)
        if not row_id:
            without.append(f"row {row + 1}")
        elif first == row:
            texts_by_id[row_id] = text
        elif texts_by_id[row_id] != text:
            raise DuplicateError(
                f"{table.name} has two texts for the {noun} id {row_id}, in {table.where(first, row)}",
                hint="give every text an id of its own",
            )
        else:
            repeated.append(row_id)
    plural = "documents" if noun == "document" else "queries"
    report_issue(f"repeated_{plural}", repeated)
    report_issue(f"{noun}_without_id", without)
    return texts_by_id


# Judgements and runs from data frames, ranx, ir_measures and ir_datasets.

ScoresByUnit = dict[str, dict[str, float]]
ROLES = ("query_id", "doc_id", "gain", "score", "rank")
"""The roles that a user may assign to columns."""


def judgements_and_run(
    qrels: Any, run: Any, columns: Mapping[str, str] | None = None
) -> tuple[ScoresByUnit | None, ScoresByUnit | None]:
    """Gains and scores by query and document of objects of other libraries; None for any other object.

    ``columns`` names columns by their role. A name that only one of the two tables has applies to that one. A table
    without scores may have ranks: 1 is best. Without gains, every judgement is 1.

    >>> judgements_and_run([{"qid": "q1", "docid": "d7"}], [{"qid": "q1", "docid": "d7", "score": 0.5}])
    ({'q1': {'d7': 1.0}}, {'q1': {'d7': 0.5}})
    """
    chosen = dict(columns or {})
    tables = _table(qrels, "qrels"), _table(run, "run")
    known = {name for table in tables if isinstance(table, ColumnTable) for name in table.columns}
    for role, name in chosen.items():
        if role not in ROLES:
            raise UnknownNameError.of("column role", role, ROLES, more=f"the roles are {', '.join(ROLES)}")
        if name not in known:
            raise UnknownNameError.of("column", name, known, more=f"there are {', '.join(sorted(known))}")
    return _scores(tables[0], "gain", chosen), _scores(tables[1], "score", chosen)


def _table(source: Any, name: str) -> ColumnTable | ScoresByUnit | None:
    """The object as a table, or its scores if they are grouped by query."""
    if type(source).__module__.partition(".")[0] == "ranx":
        return {query: dict(scores) for query, scores in source.to_dict().items()}
    records = getattr(source, "qrels_iter" if name == "qrels" else "scoreddocs_iter", None)
    if records is not None:  # ir_datasets
        source = records()
    if not is_frame(source) and not _has_records(source):
        return None
    return table_of(source, name=f"the {name}")


def _scores(table: ColumnTable | ScoresByUnit | None, role: str, chosen: Mapping[str, str]) -> ScoresByUnit | None:
    if not isinstance(table, ColumnTable):
        return table
    return _by_query(table, role, {key: name for key, name in chosen.items() if name in table.columns})


def _has_records(source: Any) -> bool:
    """Whether an iterable has dicts or named tuples; a generator is assumed to."""
    if isinstance(source, str | bytes | Mapping) or not isinstance(source, Iterable):
        return False
    if not hasattr(source, "__len__"):
        return True
    first = next(iter(source), None)
    return isinstance(first, Mapping) or hasattr(first, "_asdict")


def _by_query(table: ColumnTable, role: str, chosen: Mapping[str, str]) -> ScoresByUnit:
    values = _values(table, role, chosen)
    queries = table.columns[_column(table, "query_id", chosen)]
    documents = table.columns[_column(table, "doc_id", chosen)]
    scores_by_query: ScoresByUnit = {}
    for row, (query, document, value) in enumerate(zip(queries, documents, values, strict=True)):
        query_id, document_id = as_text(query), as_text(document)
        if not query_id or not document_id:
            raise FormatError(
                f"row {row + 1} of {table.name} has no id of a query or document",
                hint="remove the row, or give it both ids",
            )
        scores = scores_by_query.setdefault(query_id, {})
        if document_id in scores and (role != "gain" or scores[document_id] != value):
            raise DuplicateError(
                f"document {document_id} is in {table.name} twice for query {query_id} (again in row {row + 1})",
                hint="keep one row per query and document",
            )
        scores[document_id] = value
    return scores_by_query


def _values(table: ColumnTable, role: str, chosen: Mapping[str, str]) -> list[float]:
    """Gains or scores; gains default to 1, and negated ranks may replace scores."""
    column = chosen.get(role) or table.find(role)
    sign = 1.0
    if column is None and role == "gain":
        return [1.0] * len(table)
    if column is None and (chosen.get("rank") or table.find("rank")):
        column, sign = chosen.get("rank") or table.find("rank"), -1.0
    column = column or _column(table, role, chosen)
    numbers = [as_number(value) for value in table.columns[column]]
    for row, number in enumerate(numbers):
        if number is None:
            value = table.columns[column][row]
            raise FormatError(
                f"row {row + 1} of {table.name} has {value!r} in the column {column}, which is not a number",
                hint=f"every {role} must be a number; remove rows without one",
            )
    return [sign * number for number in numbers if number is not None]


def _column(table: ColumnTable, role: str, chosen: Mapping[str, str]) -> str:
    try:
        return table.column(role, chosen.get(role))
    except FormatError as error:
        hint = f'name it: columns={{"{role}": "..."}}'
        if role == "score" and table.find("gain"):
            hint += "; judgements are the first argument and the run is the second"
        raise FormatError(
            f"there is no {role} column in {table.name}; the columns are {', '.join(table.columns)}", hint=hint
        ) from error
