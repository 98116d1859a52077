"""Frames, ranx, ir_measures and ir_datasets objects give the same ranking as dicts."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas
import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise import Dataset, Ranking, evaluate
from equipoise.errors import DuplicateError, FormatError, UnknownNameError

QRELS = {"q1": {"d1": 1, "d2": 2}, "q2": {"d3": 1}}
RUN = {"q1": {"d1": 0.5, "d2": 0.5, "d9": 0.8}, "q2": {"d3": 0.1, "d1": 0.3}}


class Judgement(NamedTuple):
    query_id: str
    doc_id: str
    relevance: float


class ScoredDoc(NamedTuple):
    query_id: str
    doc_id: str
    score: float


class DatasetObject:
    """The interface of an ``ir_datasets`` dataset: iterators of named tuples."""

    def qrels_iter(self) -> Iterator[Judgement]:
        return (Judgement(*row) for row in rows_of(QRELS))

    def scoreddocs_iter(self) -> Iterator[ScoredDoc]:
        return (ScoredDoc(*row) for row in rows_of(RUN))


def rows_of(nested: dict[str, dict[str, float]]) -> list[tuple[str, str, float]]:
    return [(query, document, value) for query, items in nested.items() for document, value in items.items()]


def columns_of(nested: Any, names: tuple[str, str, str]) -> dict[str, list[Any]]:
    return {name: list(column) for name, column in zip(names, zip(*rows_of(nested), strict=True), strict=True)}


def polars_frame(columns: dict[str, list[Any]]) -> Any:
    import polars

    return polars.DataFrame(columns)


def lazy_frame(columns: dict[str, list[Any]]) -> Any:
    return polars_frame(columns).lazy()


def hub_dataset(columns: dict[str, list[Any]]) -> Any:
    import datasets

    return datasets.Dataset.from_dict(columns)


def relation(columns: dict[str, list[Any]]) -> Any:
    import duckdb

    return duckdb.from_arrow(pyarrow.table(columns))


def indexed_frame(columns: dict[str, list[Any]]) -> Any:
    frame = pandas.DataFrame(columns)
    return frame.set_index(list(columns)[:2])


def indexed_series(columns: dict[str, list[Any]]) -> Any:
    return indexed_frame(columns).iloc[:, 0]


def categorical_frame(columns: dict[str, list[Any]]) -> Any:
    frame = pandas.DataFrame(columns).convert_dtypes()
    return frame.astype(dict.fromkeys(list(columns)[:2], "category"))


def dictionary_table(columns: dict[str, list[Any]]) -> Any:
    return pyarrow.table({name: pyarrow.array(values).dictionary_encode() for name, values in columns.items()})


def streamed_dataset(columns: dict[str, list[Any]]) -> Any:
    return hub_dataset(columns).to_iterable_dataset()


def dataset_dict(columns: dict[str, list[Any]]) -> Any:
    import datasets

    return datasets.DatasetDict({"test": hub_dataset(columns)})


FRAMES = [
    pandas.DataFrame,
    indexed_frame,
    categorical_frame,
    pyarrow.table,
    dictionary_table,
    pytest.param(streamed_dataset, marks=pytest.mark.engines("datasets")),
    pytest.param(dataset_dict, marks=pytest.mark.engines("datasets")),
    pytest.param(polars_frame, marks=pytest.mark.engines("polars")),
    pytest.param(lazy_frame, marks=pytest.mark.engines("polars")),
    pytest.param(hub_dataset, marks=pytest.mark.engines("datasets")),
    pytest.param(relation, marks=pytest.mark.engines("duckdb")),
]


def arrays_equal(left: Ranking, right: Ranking) -> bool:
    left_arrays, right_arrays = left.to_arrays(), right.to_arrays()
    return all(np.array_equal(left_arrays[name], right_arrays[name]) for name in left_arrays)


@pytest.mark.parametrize("frame", [*FRAMES, indexed_series])
def test_frames_equal_dicts(frame: Callable[[Any], Any]) -> None:
    qrels = frame(columns_of(QRELS, ("query_id", "doc_id", "relevance")))
    run = frame(columns_of(RUN, ("qid", "docno", "score")))
    expected = Ranking.from_runs(QRELS, RUN)
    assert arrays_equal(Ranking.from_runs(qrels, run), expected)
    assert arrays_equal(Ranking.from_runs(QRELS, run), expected)
    assert arrays_equal(Ranking.from_runs(qrels, RUN), expected)


@given(
    st.dictionaries(
        st.integers(0, 5), st.dictionaries(st.integers(0, 9), st.integers(0, 3), min_size=1), min_size=1, max_size=4
    ),
    st.dictionaries(
        st.integers(0, 5), st.dictionaries(st.integers(0, 9), st.integers(0, 5), min_size=1), min_size=1, max_size=4
    ),
)
def test_integer_ids_of_frames_and_dicts_match(qrels: Any, run: Any) -> None:
    run_frame = pandas.DataFrame(columns_of(run, ("query_id", "doc_id", "score")))
    qrels_frame = pandas.DataFrame(columns_of(qrels, ("query_id", "doc_id", "relevance")))
    expected = Ranking.from_runs(
        *({str(q): {str(d): v for d, v in r.items()} for q, r in x.items()} for x in (qrels, run))
    )
    assert arrays_equal(Ranking.from_runs(qrels, run_frame), expected)
    assert arrays_equal(Ranking.from_runs(qrels_frame, run), expected)


@pytest.mark.engines("ranx")
def test_ranx_objects_are_read() -> None:
    with warnings.catch_warnings(action="ignore"):  # the package is compiled with warnings at its first import
        import ranx

    qrels, run = ranx.Qrels(QRELS), ranx.Run(RUN)
    metrics = ["nDCG@2", "MAP", "MRR", "R@1"]
    values = [evaluate(Ranking.from_runs(*pair), metrics) for pair in ((qrels, run), (QRELS, RUN))]
    for metric in metrics:  # ranx sorts the items of a query, so the order within a tie group differs
        assert values[0][metric].value == values[1][metric].value


@pytest.mark.engines("ir_measures")
def test_ir_measures_iterators_are_read() -> None:
    import ir_measures

    qrels = (ir_measures.Qrel(query, document, int(gain)) for query, document, gain in rows_of(QRELS))
    run = [ir_measures.ScoredDoc(*row) for row in rows_of(RUN)]
    assert arrays_equal(Ranking.from_runs(qrels, run), Ranking.from_runs(QRELS, RUN))


def test_ir_datasets_objects_are_read() -> None:
    assert arrays_equal(Ranking.from_runs(DatasetObject(), DatasetObject()), Ranking.from_runs(QRELS, RUN))


@pytest.mark.engines("ir_datasets")
def test_datasets_of_ir_datasets_are_read(tmp_path: Any) -> None:
    import ir_datasets

    (tmp_path / "docs.tsv").write_text("d1\train\nd2\tsnow\n")
    (tmp_path / "queries.tsv").write_text("q1\twet?\n")
    (tmp_path / "qrels").write_text("q1 0 d1 1\nq1 0 d2 0\n")
    source = ir_datasets.create_dataset(
        docs_tsv=str(tmp_path / "docs.tsv"),
        queries_tsv=str(tmp_path / "queries.tsv"),
        qrels_trec=str(tmp_path / "qrels"),
    )
    data = Dataset.from_tables(source, name="weather")
    assert dict(data.items) == {"d1": "rain", "d2": "snow"}
    assert {query: dict(gains) for query, gains in data.truth.items()} == {"q1": {"d1": 1, "d2": 0}}
    run = {"q1": {"d1": 0.2, "d2": 0.4}}
    assert evaluate(Ranking.from_runs(source, run), ["MRR"])["MRR"].value == 0.5


def test_columns_can_be_named_and_ranks_replace_scores() -> None:
    qrels = pandas.DataFrame({"user": ["q1"], "page": ["d1"]})
    run = pandas.DataFrame({"user": ["q1", "q1"], "page": ["d2", "d1"], "rank": [1, 2]})
    with pytest.raises(FormatError):
        Ranking.from_runs(qrels, run)
    columns = {"query_id": "user", "doc_id": "page"}
    assert Ranking.from_runs(qrels, run, columns=columns).ranks.tolist() == [2.0]
    with pytest.raises(UnknownNameError):
        Ranking.from_runs(qrels, run, columns={"query": "user"})
    with pytest.raises(UnknownNameError):
        Ranking.from_runs(qrels, run, columns={**columns, "score": "points"})


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"doc_id": ["d1", "d1"]}, DuplicateError),
        ({"doc_id": ["d1", None]}, FormatError),
        ({"score": [0.5, None]}, FormatError),
        ({"score": ["high", 0.5]}, FormatError),
    ],
    ids=["repeated document", "missing id", "missing score", "score is text"],
)
def test_invalid_rows_raise_errors(change: dict[str, Any], error: type[Exception]) -> None:
    columns = {"query_id": ["q1", "q1"], "doc_id": ["d1", "d2"], "score": [0.5, 0.4], **change}
    with pytest.raises(error):
        Ranking.from_runs(QRELS, pandas.DataFrame(columns))


def test_lists_of_ids_are_not_rows() -> None:
    assert Ranking.from_runs([["b"], ["c"]], [["a", "b"], ["c", "a"]]).ranks.tolist() == [2.0, 1.0]


@pytest.mark.parametrize("frame", FRAMES)
def test_datasets_are_built_from_three_frames(frame: Callable[[Any], Any]) -> None:
    data = Dataset.from_tables(
        frame({"doc_id": ["1", "2"], "title": ["Rain", ""], "text": ["falls", "snow"]}),
        frame({"query_id": ["7"], "query": ["wet?"]}),
        frame({"query_id": [7], "doc_id": [1]}),
    )
    assert dict(data.items) == {"1": "Rain falls", "2": "snow"}
    assert dict(data.truth["7"]) == {"1": 1.0}


@pytest.mark.parametrize("frame", FRAMES)
def test_qa_datasets_are_built_from_frames(frame: Callable[[Any], Any]) -> None:
    from equipoise.domains.fair.plan import qa_dataset

    question_rows = {"question": ["Who?", "When?"], "answer": ["Weber", "1871"], "category": ["exact", None]}
    data = qa_dataset(frame({"text": ["Weber built it.", "It was 1871."]}), frame(question_rows))
    assert [question.answer for question in data.questions] == ["Weber", "1871"]
    assert [question.kinds for question in data.questions] == [{"category": "exact"}, {}]
    assert [document.text for document in data.documents] == ["Weber built it.", "It was 1871."]


@pytest.mark.parametrize("frame", FRAMES)
def test_benchmarks_are_built_from_frames(frame: Callable[[Any], Any]) -> None:
    from equipoise.domains.bench.read_data import read_suite

    (data,) = read_suite(frame({"text_a": ["a", "b"], "text_b": ["c", "d"], "score": [0.5, 2.0]}))
    assert (data.kind, len(data.unit_ids)) == ("similarity", 2)
