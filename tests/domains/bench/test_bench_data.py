"""Kinds of data: recognised by their columns and read from every format; malformed rows are counted and left out."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
from pathlib import Path
from typing import Any

import pytest

from equipoise import EquipoiseError, bench
from equipoise.domains.bench.read_data import KINDS, read_data, read_suite

PAIRS = [
    {"sentence1": "a dog", "sentence2": "a hound", "score": 4.5},
    {"sentence1": "a dog", "sentence2": "a train", "score": 0.5},
    {"sentence1": "a cat", "sentence2": "a kitten", "score": 4.0},
]
LABELLED = [{"text": f"text number {row}", "label": "ab"[row % 2], "city": "xy"[row % 2]} for row in range(8)]
SHAPES: dict[str, list[dict[str, Any]]] = {
    "retrieval": [{"question": "what is rye?", "answer": "a grass"}, {"question": "what is a bus?", "answer": "a car"}],
    "reranking": [{"query": "rye", "positives": ["a grass"], "negatives": ["a bus", "a car"]}] * 2,
    "similarity": PAIRS,
    "pair-classification": [{**row, "score": None, "label": int(row["score"] > 1)} for row in PAIRS],
    "classification": LABELLED,
    "bitext": [{"en": "a dog", "de": "ein Hund"}, {"en": "a cat", "de": "eine Katze"}],
}


def corpus(*rows: tuple[str, str]) -> list[dict[str, str]]:
    return [{"_id": doc_id, "title": "", "text": text} for doc_id, text in rows]


DOCUMENTS = corpus(("d1", "rye is a grass"), ("d2", "a bus is a car"), ("d3", ""))
QUERIES = [{"_id": "q1", "text": "rye"}, {"_id": "q2", "text": "bus"}, {"_id": "q3", "text": "train"}]
QRELS = [{"query-id": "q1", "corpus-id": "d1", "score": 1}, {"query-id": "q2", "corpus-id": "d2", "score": 2}]


def issue_counts(data: bench.BenchData) -> dict[str, int]:
    """The issues of a data set by code."""
    return {issue.code: issue.count for issue in data.issues}


@pytest.mark.parametrize("kind", SHAPES)
def test_a_table_is_recognised_by_its_columns(kind: str) -> None:
    assert read_data(SHAPES[kind]).kind == kind


@pytest.mark.parametrize("kind", SHAPES)
@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl", "json", "parquet"])
def test_every_format_gives_the_same_data(kind: str, suffix: str, tmp_path: Path) -> None:
    file = tmp_path / f"data.{suffix}"
    write(file, SHAPES[kind])
    data = read_data(str(file), name="data")
    assert data.kind == kind
    assert data.fingerprint == read_data(SHAPES[kind], name="data").fingerprint


def write(file: Path, rows: list[dict[str, Any]]) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(rows)
    match file.suffix:
        case ".csv" | ".tsv":
            flat = frame.map(lambda cell: json.dumps(cell) if isinstance(cell, list) else cell)
            flat.to_csv(file, index=False, sep="," if file.suffix == ".csv" else "\t")
        case ".parquet":
            frame.to_parquet(file)
        case ".jsonl":
            file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        case _:
            file.write_text(json.dumps(rows))


@pytest.mark.parametrize("kind", SHAPES)
def test_a_pandas_frame_is_read(kind: str) -> None:
    frame = pytest.importorskip("pandas").DataFrame(SHAPES[kind])
    assert read_data(frame, name="data").fingerprint == read_data(SHAPES[kind], name="data").fingerprint


@pytest.mark.engines("polars")
def test_a_polars_frame_is_read() -> None:
    import polars

    assert len(read_data(polars.DataFrame(PAIRS))) == 3


@pytest.mark.engines("datasets")
def test_hub_datasets_and_saved_folders_are_read(tmp_path: Path) -> None:
    import datasets

    dataset = datasets.Dataset.from_list(LABELLED)
    splits = datasets.DatasetDict({"train": dataset.select(range(4, 8)), "test": dataset.select(range(4))})
    splits.save_to_disk(str(tmp_path / "saved"))
    assert read_data(dataset, name="x").fingerprint == read_data(LABELLED, name="x").fingerprint
    assert read_data(splits, name="x").fingerprint == read_data(str(tmp_path / "saved"), name="x").fingerprint
    assert len(read_data(splits)) == 4


def test_a_beir_folder_is_read_in_any_table_format(tmp_path: Path) -> None:
    folder = beir(tmp_path / "beir")
    write(tmp_path / "beir" / "corpus.csv", DOCUMENTS)
    (folder / "corpus.jsonl").unlink()
    data = read_data(str(folder))
    assert (data.kind, data.name, data.size) == ("retrieval", "beir", "2 queries, 3 documents")


def beir(folder: Path) -> Path:
    (folder / "qrels").mkdir(parents=True)
    write(folder / "corpus.jsonl", DOCUMENTS)
    write(folder / "queries.jsonl", QUERIES)
    write(folder / "qrels" / "test.tsv", QRELS)
    write(folder / "qrels" / "train.tsv", [{"query-id": "q3", "corpus-id": "d2", "score": 1}])
    return folder


def test_the_test_split_is_the_default_and_other_splits_can_be_chosen(tmp_path: Path) -> None:
    folder = str(beir(tmp_path / "beir"))
    assert list(read_data(folder).unit_ids) == ["q1", "q2"]
    assert list(read_data(folder, split="train").unit_ids) == ["q3"]
    with pytest.raises(EquipoiseError) as error:
        read_data(folder, split="dev")
    assert error.value.code == "E300"


def test_one_table_can_be_evaluated_in_several_ways(tmp_path: Path) -> None:
    file = tmp_path / "labels.csv"
    write(file, [{"text": f"text {row}", "label": "ab"[row % 2]} for row in range(40)])
    names = [data.name for data in read_suite([f"{kind}{file}" for kind in ("", "few-shot:", "clustering:")])]
    assert names == ["labels (classification)", "labels (few-shot)", "labels (clustering)"]


def test_columns_of_text_and_a_split_are_for_the_data_sets_that_have_them(tmp_path: Path) -> None:
    folder = str(beir(tmp_path / "beir"))
    tickets = tmp_path / "tickets.csv"
    write(tickets, [{"subject": row["text"], "label": row["label"]} for row in LABELLED])
    retrieval, labelled = read_suite([folder, str(tickets)], text=["subject"], split="train")
    assert list(retrieval.unit_ids) == ["q3"]  # the split, though the folder has no column subject
    assert labelled.size == "8 texts, 2 labels"
    first, second = read_suite([folder, str(beir(tmp_path / "other"))], text=["title"], split="train")
    assert list(first.unit_ids) == list(second.unit_ids) == ["q3"]


def test_columns_of_text_and_a_split_that_no_data_set_has_are_errors(tmp_path: Path) -> None:
    folder = str(beir(tmp_path / "beir"))
    file = tmp_path / "labels.csv"
    write(file, LABELLED)
    for options, word in (({"split": "dev"}, "dev"), ({"text": ["body"], "split": "train"}, "body")):
        with pytest.raises(EquipoiseError, match=word) as error:
            read_suite([folder, str(file)], **options)
        assert error.value.code == "E300"


def test_trec_judgements_and_numeric_ids_are_read(tmp_path: Path) -> None:
    file = tmp_path / "truth.qrels"
    file.write_text("q1 0 d1 1\nq2 0 d2 2\n")
    table = bench.Retrieval(DOCUMENTS, QUERIES, QRELS)
    assert bench.Retrieval(DOCUMENTS, QUERIES, str(file)).fingerprint == table.fingerprint
    documents = [{"id": 1, "text": "rye"}, {"id": 2, "text": "bus"}]
    judgements = [{"query_id": 7.0, "doc_id": 1.0, "score": 1.0}]
    assert bench.Retrieval(documents, [{"id": 7, "text": "rye"}], judgements).size == "1 query, 2 documents"


def test_text_columns_are_joined() -> None:
    rows = [{"_id": "d1", "head": "rye", "body": "a grass"}, {"_id": "d2", "head": "bus", "body": ""}]
    qrels = [{"query-id": "q1", "corpus-id": "d1", "score": 1}]
    data = bench.Retrieval(rows, QUERIES, qrels, text=("head", "body"))
    assert list(data.dataset.items.values()) == ["rye a grass", "bus"]


def test_a_prefix_sets_the_kind(tmp_path: Path) -> None:
    file = tmp_path / "tickets.csv"
    write(file, LABELLED + [{**row, "text": f"{row['text']} {copy}"} for row in LABELLED for copy in range(3)])
    kinds = [read_data(f"{prefix}{file}").kind for prefix in ("", "clustering:", "few-shot:")]
    assert kinds == ["classification", "clustering", "classification"]


def test_malformed_retrieval_rows_are_counted_and_left_out() -> None:
    documents = [*DOCUMENTS, DOCUMENTS[0], {"_id": "d4", "title": "", "text": "a bus is a car"}]
    queries = [*QUERIES, {"_id": "q4", "text": " "}]
    qrels = [
        *QRELS,
        QRELS[0],
        {"query-id": "q1", "corpus-id": "gone", "score": 1},
        {"query-id": "gone", "corpus-id": "d1", "score": 1},
        {"query-id": "q1", "corpus-id": "d2", "score": None},
    ]
    data = bench.Retrieval(documents, queries, qrels)
    assert issue_counts(data) == {
        "repeated_documents": 1,
        "empty_documents": 1,
        "blank_queries": 1,
        "unknown_documents": 1,
        "unknown_queries": 1,
        "bad_relevance": 1,
        "unjudged_queries": 1,
        "duplicate_documents": 1,
    }
    assert list(data.unit_ids) == ["q1", "q2"]


def test_malformed_pairs_and_labels_are_counted() -> None:
    pairs = [*PAIRS, PAIRS[0], {**PAIRS[0], "sentence1": ""}, {**PAIRS[1], "score": None}]
    assert issue_counts(read_data(pairs)) == {"repeated_pairs": 1, "blank_texts": 1, "blank_labels": 1}
    rows = [*LABELLED, {"text": "", "label": "a"}, {"text": "x", "label": ""}, {"text": "text number 0", "label": "b"}]
    assert issue_counts(read_data(rows)) == {
        "blank_texts": 1,
        "blank_labels": 1,
        "repeated_texts": 1,
        "conflicting_labels": 1,
    }


def test_other_columns_become_slices() -> None:
    assert read_data(LABELLED).slices["1"] == {"city": "x"}


INVALID_DATA: dict[str, Any] = {
    "two texts for one id": lambda: bench.Retrieval(corpus(("d", "a"), ("d", "b")), QUERIES, QRELS),
    "two relevances": lambda: bench.Retrieval(DOCUMENTS, QUERIES, [*QRELS, {**QRELS[0], "score": 3}]),
    "foreign ids": lambda: bench.Retrieval(corpus(("x", "a")), QUERIES, QRELS),
    "no id column": lambda: bench.Retrieval([{"text": "a"}], QUERIES, QRELS),
    "no positives": lambda: bench.Retrieval([{"query": "a", "positive": ""}]),
    "no candidates": lambda: bench.Reranking([{"query": "a", "positives": ["b"], "negatives": []}]),
    "constant scores": lambda: bench.Similarity([{**row, "score": 1} for row in PAIRS]),
    "scores that are words": lambda: bench.Similarity([{**row, "score": "high"} for row in PAIRS]),
    "three classes of pairs": lambda: bench.PairClassification([{**row, "label": "neutral"} for row in PAIRS]),
    "one class of pairs": lambda: bench.PairClassification([{**row, "label": 1} for row in PAIRS]),
    "one label": lambda: bench.Classification([{**row, "label": "a"} for row in LABELLED]),
    "a label per text": lambda: bench.Classification([{**row, "label": row["text"]} for row in LABELLED]),
    "no texts left to predict": lambda: bench.Classification(LABELLED, protocol="few-shot"),
    "a split of a table": lambda: read_suite([PAIRS], split="dev"),
    "unknown protocol": lambda: bench.Classification(LABELLED, protocol="zero-shot"),
    "one translation": lambda: bench.Bitext([{"en": "a", "de": "b"}]),
    "no rows": lambda: read_data([]),
    "unknown columns": lambda: read_data([{"x": 1, "yy": 2}]),
    "no table": lambda: read_data(7),
    "no file": lambda: read_data("nowhere.csv"),
    "one column of a pair": lambda: bench.Similarity(PAIRS, text=("sentence1",)),
    "an unknown column": lambda: bench.Classification(LABELLED, text=("body",)),
    "no data": lambda: read_suite([]),
    "two of one name": lambda: read_suite([read_data(PAIRS, name="x"), read_data(PAIRS, name="x")]),
}


@pytest.mark.parametrize("case", INVALID_DATA)
def test_contradictory_and_unusable_input_is_an_error_with_a_code_and_a_hint(case: str) -> None:
    with pytest.raises(EquipoiseError) as error:
        INVALID_DATA[case]()
    assert error.value.code.startswith("E")
    assert error.value.hint
    assert error.value.exit_code == 2


@pytest.mark.parametrize("content", ["", "\x00\x01", "text,label\n", 'text,label\n"open,a\n', "a,a\n1,2\n", "[1, 2"])
def test_malformed_files_are_errors_with_a_code(content: str, tmp_path: Path) -> None:
    for suffix in ("csv", "jsonl", "json", "parquet", "txt"):
        file = tmp_path / f"data.{suffix}"
        file.write_text(content)
        with pytest.raises(EquipoiseError) as error:
            read_data(str(file))
        assert error.value.code != "E100"


def test_every_kind_is_listed_with_formats_and_metrics() -> None:
    assert len(KINDS) == 7
    assert all(kind.formats and kind.title and kind.metrics for kind in KINDS.values())


def test_a_folder_of_tables_is_one_data_set_per_table(tmp_path: Path) -> None:
    folder = tmp_path / "stsb"
    folder.mkdir()
    for language in ("de", "en"):
        (folder / f"{language}-dev.csv").write_text("sentence1,sentence2,score\na b,a c,1.5\nd,e,0.5\nf,f,5\n")
    (folder / "README.md").write_text("two languages")
    assert [(data.name, data.kind) for data in read_suite([str(folder)])] == [
        ("stsb/de-dev", "similarity"),
        ("stsb/en-dev", "similarity"),
    ]
    assert [data.name for data in read_suite(f"sts:{folder}")] == ["stsb/de-dev", "stsb/en-dev"]
    with pytest.raises(EquipoiseError) as error:
        bench.read_data(folder)
    assert error.value.code == "E204"


def test_columns_of_numbers_are_not_languages() -> None:
    with pytest.raises(EquipoiseError) as error:
        read_data([{"model": name, "sts": 70.5, "faq": 60.2} for name in ("a", "b", "c")])
    assert error.value.code == "E204"


TABLE = "query,positive\n" + "".join(f"what is rye{row}?,rye{row} is a grass\n" for row in range(4))


SAME_TABLES = {
    "semicolons.csv": TABLE.replace(",", ";").encode(),
    "tabs.csv": TABLE.replace(",", "\t").encode(),
    "bars.csv": TABLE.replace(",", "|").encode(),
    "commas.tsv": TABLE.encode(),
    "mark.csv": b"\xef\xbb\xbf" + TABLE.encode(),
    "windows.csv": TABLE.replace("\n", "\r\n").encode(),
    "capitals.csv": TABLE.replace("query,positive", " Query , Positive ").encode(),
    "compressed.csv.gz": gzip.compress(TABLE.encode()),
    "compressed.csv.bz2": bz2.compress(TABLE.encode()),
    "compressed.csv.xz": lzma.compress(TABLE.encode()),
}


@pytest.mark.parametrize("name", SAME_TABLES)
def test_a_table_is_the_same_in_every_encoding(tmp_path: Path, name: str) -> None:
    (tmp_path / "plain.csv").write_text(TABLE)
    (tmp_path / name).write_bytes(SAME_TABLES[name])
    expected, data = (read_data(tmp_path / file_name, name="same") for file_name in ("plain.csv", name))
    assert data.fingerprint == expected.fingerprint


def test_a_document_may_exceed_the_field_limit_of_the_csv_module(tmp_path: Path) -> None:
    (tmp_path / "long.csv").write_text(f"{TABLE}long?,{'word ' * 100_000}\n")
    assert max(map(len, read_data(tmp_path / "long.csv").texts[1])) > 131_072


def test_with_semicolons_the_comma_is_the_decimal_mark(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("text_a;text_b;score\na;b;3,5\nc;d;1\ne;f;2,25\n")
    assert read_data(tmp_path / "a.csv").content[3] == [3.5, 1.0, 2.25]


UNUSABLE_TABLES = {
    "empty.csv": (b"", "E200"),
    "header.csv": (b"query,positive\n", "E204"),
    "no-header.csv": (TABLE.partition("\n")[2].encode(), "E204"),
    "damaged.csv.gz": (gzip.compress(TABLE.encode())[:40], "E200"),
    "damaged.csv.xz": (lzma.compress(TABLE.encode())[:60], "E200"),
    "archive.csv": (b"PK\x03\x04 and more", "E204"),
    "archive.zip": (b"PK\x03\x04 and more", "E204"),
    "workbook.xlsx": (b"PK\x03\x04 and more", "E204"),
    "latin.csv": (TABLE.replace("rye", "r\xe4y").encode("latin-1"), "E204"),
    "wide.csv": (TABLE.encode("utf-16"), "E200"),
    "ragged.csv": (f"{TABLE}a,b,c\n".encode(), "E204"),
    "classes.csv": (b"text_a,text_b,label\na,b,0\nc,d,1\ne,f,2\n", "E204"),
    "one-class.csv": (b"text,label\na,x\nb,x\nc,x\nd,x\n", "E200"),
    "constant.csv": (b"text_a,text_b,score\na,b,1\nc,d,1\n", "E200"),
}


@pytest.mark.parametrize("name", UNUSABLE_TABLES)
def test_unusable_tables_are_errors_with_a_hint(tmp_path: Path, name: str) -> None:
    content, code = UNUSABLE_TABLES[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(EquipoiseError) as error_info:
        read_data(tmp_path / name)
    assert (error_info.value.code, bool(error_info.value.hint)) == (code, True)


@pytest.mark.parametrize("missing", ["corpus.jsonl", "queries.jsonl", "qrels/test.tsv"])
def test_a_retrieval_folder_without_one_of_its_files_is_an_error(tmp_path: Path, missing: str) -> None:
    (tmp_path / "qrels").mkdir()
    (tmp_path / "corpus.jsonl").write_text('{"_id": "d", "text": "a"}\n')
    (tmp_path / "queries.jsonl").write_text('{"_id": "q", "text": "a"}\n')
    (tmp_path / "qrels/test.tsv").write_text("query-id\tcorpus-id\tscore\nq\td\t1\n")
    assert read_data(tmp_path).kind == "retrieval"
    (tmp_path / missing).unlink()
    with pytest.raises(EquipoiseError, match=missing.partition(".")[0].partition("/")[0]):
        read_data(tmp_path)


def test_rows_of_other_splits_and_leaked_texts_are_left_out_and_counted() -> None:
    rows = [
        {"text": f"text {number}", "label": "ab"[number % 2], "split": split}
        for number, split in enumerate(["train"] * 6 + ["validation"] * 2 + ["test"] * 4)
    ]
    data = bench.Classification([*rows, {"text": "text 0", "label": "a", "split": "test"}])
    assert len(data.unit_ids) == 4
    assert {issue.code: issue.count for issue in data.issues} == {"other_splits": 2, "leaked_texts": 1}


def test_two_kinds_of_data_from_one_table_have_two_names() -> None:
    names = [data.name for data in read_suite([read_data(PAIRS, name="x"), read_data(LABELLED, name="x")])]
    assert len(set(names)) == 2
    assert all(name.startswith("x (") for name in names)
