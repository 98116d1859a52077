"""Fuzzing of every reader: modified samples of every format give a value or an EquipoiseError.

The number of a case is the seed: it determines the reader and the bytes. To run a range of cases:

    python tests/fuzz_readers.py 0 20000
"""

# ruff: noqa: E501  (samples stay on one line)

from __future__ import annotations

import gzip
import hashlib
import io
import json
import random
import shutil
import sqlite3
import sys
import warnings
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from equipoise.audit.apply_rules import audit_table
from equipoise.config import StatsConfig
from equipoise.domains.accounts.results import last_run_systems, read_stored_tree
from equipoise.domains.accounts.trees.files import read_codes, read_edges
from equipoise.domains.accounts.trees.read import read_gnucash, read_obo_tree, read_tree
from equipoise.domains.accounts.vectors import NodeVectors, read_node_vectors
from equipoise.domains.bench.read_data import read_data
from equipoise.domains.concepts.concept_set_reader import read_concept_set
from equipoise.domains.fair.questions import read_questions
from equipoise.domains.phenotypes.cases import read_cases
from equipoise.domains.phenotypes.extraction.annotated_corpus import read_annotated_corpus
from equipoise.domains.phenotypes.extraction.tuning_results import read_tuned_parameters
from equipoise.domains.phenotypes.ontology import load_ontology
from equipoise.domains.places.prediction_files import read_topk_predictions
from equipoise.domains.places.published_results import read_published_results
from equipoise.errors import EquipoiseError
from equipoise.evidence.labels import Labels
from equipoise.evidence.pairs import Pairs
from equipoise.evidence.ranking import Ranking
from equipoise.evidence.sets import Sets
from equipoise.evidence.space import Space
from equipoise.geometry.shards import open_shards
from equipoise.io.arrays import array_names, read_array, read_matrix
from equipoise.io.dag import edge_lines
from equipoise.io.dataset import Dataset
from equipoise.io.documents import read_document
from equipoise.io.obo import read_obo
from equipoise.io.run_files import read_qrels, read_run
from equipoise.io.tables import read_rows
from equipoise.io.texts_to_embed import read_texts
from equipoise.io.unit_scores import read_unit_scores
from equipoise.models.backends.precomputed import load as load_vectors
from equipoise.models.registry import parse_spec
from equipoise.report.build_view import build_view
from equipoise.report.export import export
from equipoise.runs.evaluate import evaluate
from equipoise.runs.manifest import Manifest
from equipoise.runs.run_folder import load_evidence, save_run
from equipoise.runs.run_folder import load_run as read_stored
from equipoise.runs.unit_table import RetrievedItem, UnitContent
from equipoise.tuning.grid import FoldSelection, Trial, TuningRecord

Files = dict[str, bytes]


class Target(NamedTuple):
    """A reader, the files of a valid sample, the entry to read and the files to change."""

    name: str
    read: Callable[[Path], object]
    files: Files
    entry: str
    changed: tuple[str, ...] = ()


def text(value: str) -> bytes:
    return value.encode()


def npz(compressed: bool = True, **arrays: Any) -> bytes:
    buffer = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(buffer, **arrays)
    return buffer.getvalue()


def npy(array: Any) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def sqlite(script: str) -> bytes:
    connection = sqlite3.connect(":memory:")
    connection.executescript(script)
    data = connection.serialize()
    connection.close()
    return data


RUN = text("q1 Q0 d1 1 0.5 t\nq1 Q0 d2 2 0.25 t\nq2 Q0 d1 1 -3e2 t\n")
ROWS = [{"query": "q1", "doc": "d1", "score": 1.5}, {"query": "q2", "doc": "d1", "score": 2}]
OBO = text(
    "format-version: 1.2\ndata-version: hp/releases/2024-01-16\nontology: hp\n\n[Term]\nid: HP:0000001\nname: All\n\n[Term]\nid: HP:0000002\n"
    'name: Fever\ndef: "Hot \\"body\\"" [x:1]\nsynonym: "Pyrexia" EXACT []\nalt_id: HP:0000009\nis_a: HP:0000001 ! All\n'
)
GRAPH = json.dumps(
    {
        "graphs": [
            {
                "id": "http://x/hp.json",
                "meta": {"version": "http://x/2024-01-16/hp.json"},
                "nodes": [
                    {"id": "http://x/obo/HP_0000001", "lbl": "All", "type": "CLASS"},
                    {
                        "id": "http://x/obo/HP_0000002",
                        "lbl": "Fever",
                        "type": "CLASS",
                        "meta": {
                            "definition": {"val": "hot"},
                            "synonyms": [{"pred": "hasExactSynonym", "val": "Pyrexia"}],
                        },
                    },
                ],
                "edges": [{"sub": "http://x/obo/HP_0000002", "pred": "is_a", "obj": "http://x/obo/HP_0000001"}],
            }
        ]
    }
).encode()
GNUCASH_XML = text(
    '<?xml version="1.0"?><gnc-v2 xmlns:gnc="http://www.gnucash.org/XML/gnc" xmlns:act="http://www.gnucash.org/XML/act">'
    "<gnc:account><act:name>Root</act:name><act:id>r</act:id><act:type>ROOT</act:type></gnc:account>"
    "<gnc:account><act:name>Assets</act:name><act:id>a</act:id><act:type>ASSET</act:type><act:parent>r</act:parent></gnc:account>"
    "<gnc:account><act:name>Cash</act:name><act:id>c</act:id><act:type>CASH</act:type><act:parent>a</act:parent></gnc:account></gnc-v2>"
)
GNUCASH_SQL = sqlite(
    "create table books(guid text, root_account_guid text, root_template_guid text); insert into books values('b','r','t');"
    "create table accounts(guid text, parent_guid text, name text, account_type text, code text);"
    "insert into accounts values('r',null,'Root','ROOT',''),('a','r','Assets','ASSET','10'),('c','a','Cash','CASH','');"
)
TREE_SQL = sqlite(
    "create table accounts(id integer primary key, business_id integer, parent_id integer, name text);"
    "insert into accounts values(1,7,null,'Assets'),(2,7,1,'Cash'),(3,8,null,'Other');"
)
ANNOTATED = {
    "doc_id": "d1",
    "full_text": "He had seizures and no fever.",
    "annotations": [
        {
            "hpo_id": "HP:0001250",
            "assertion_status": "affirmed",
            "evidence_spans": [{"start_char": 7, "end_char": 15, "text_snippet": "seizures"}],
        },
        {"hpo_id": "HP:0001945", "assertion_status": "negated"},
    ],
}
PUBLISHED_MD = text(
    "# Results\n\n| system | nDCG@10 | MRR | n |\n|---|---|---|---|\n| a | 0.61 ± 0.02 | 0.5 [0.4, 0.6] | 100 |\n| b | **0.58** | 0.4 | 100 |\n"
)
PUBLISHED_TEX = text(
    r"\begin{tabular}{lcc}\toprule system & nDCG@10 & \textbf{MRR}\\\midrule a & 0.61 & 0.5\\ b & \multicolumn{2}{c}{0.4}\\\bottomrule\end{tabular}"
)
PUBLISHED_TXT = text(
    "              precision    recall  f1-score   support\n\n           0       0.67      1.00      0.80         2\n           1       1.00      0.50      0.67         2\n\n    accuracy                           0.75         4\n"
)
PLACES = json.dumps(
    {"a": {"acc@1": 29.61, "mrr": 40.84, "f1": 0.212, "correct@1": 100, "total": 338, "rr": 138.0}}
).encode()
HTML = text(
    "<html><head><meta charset='utf-8'><title>t</title></head><body><h1>Salt &amp; water</h1><table><tr><td>a<td>b</table><pre>x</pre><p>Text<br>more</body></html>"
)
FIXTURE = json.dumps(
    [
        {"question": "Which bread?", "answer": "rye", "category": "a", "difficulty": "easy"},
        {"question": "Why?", "answer": "salt"},
    ]
).encode()
CASES = json.dumps([{"text": "seizures", "hpo_ids": ["HP:0001250"], "language": "en", "id": "c1"}]).encode()
PAIRS = json.dumps(
    [
        {"concept_1": "duty", "concept_2": "law", "expected_similarity": 0.9},
        {"concept_1": "duty", "concept_2": "salt", "expected_similarity": 0.1},
    ]
).encode()
FIELD: Files = {
    "field/pairs.json": PAIRS,
    "field/clusters.json": json.dumps(
        [
            {"cluster_id": 0, "theme": "e", "concepts": ["duty", "law"]},
            {"cluster_id": 1, "theme": "f", "concepts": ["salt"]},
        ]
    ).encode(),
    "field/entities.json": json.dumps(
        [
            {
                "text": "Plato wrote Laws.",
                "entities": [
                    {"text": "Plato", "label": "PERSON", "start": 0, "end": 5},
                    {"text": "Laws", "label": "WORK", "start": 12, "end": 16},
                ],
            }
        ]
    ).encode(),
    "field/relations.json": json.dumps(
        {
            "relations": [
                {"subject": "Plato", "predicate": "wrote", "object": "Laws"},
                {"subject": "Kant", "predicate": "wrote", "object": "Critique"},
            ]
        }
    ).encode(),
    "field/concepts.json": json.dumps(["duty", "law"]).encode(),
}
TUNED = {
    "models": [
        {
            "model": "hash",
            "best": {"top_k": 5},
            "tuning": TuningRecord(
                "HR", (Trial({"top_k": 5}, 0.5),), 0, 0, 0.5, 0.5, (FoldSelection({"top_k": 5}, 0.5, 0.5, 2),)
            ).to_dict(),
        }
    ],
    "documents": ["a"],
    "fixed_settings": {},
    "ontology": {"fingerprint": "x"},
}


@cache
def targets() -> list[Target]:
    """Every reader with its samples."""
    with TemporaryDirectory() as folder:
        return [*_file_targets(), *_folder_targets(Path(folder))]


def _file_targets() -> list[Target]:
    from equipoise.domains.phenotypes.extraction.tuning_results import FIXED_SETTINGS

    tuned = json.dumps(
        {**TUNED, "fixed_settings": {**dict.fromkeys(FIXED_SETTINGS, True), "chunkers": ["a"], "strategy": "a"}}
    ).encode()
    jsonl = b"".join(json.dumps(row).encode() + b"\n" for row in ROWS)
    vectors = NodeVectors(("a", "b"), ("A", "B"), np.eye(2), "euclidean", {"seed": 1}, (0.5, 0.25))
    space = Space.of([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]], labels=["a", "a", "b"], edges=[[0, 1]], depth=[0, 1, 1])
    evidences = [
        Ranking.from_runs(
            {"q": {"a": 1, "b": 1}, "r": {"c": 2}}, {"q": {"a": 0.9, "x": 0.8, "b": 0.7}, "r": {"x": 1.0}}
        ),
        Pairs.of([0.9, 0.2, 0.4], expected=[1.0, 0.0, 0.5]),
        Labels.of(["home", "work", "home"], ["home", "home", "home"]),
        Sets.of({"d1": ["fever", ("cough", "negated")]}, {"d1": ["fever", "cough"]}),
        space,
    ]
    samples: list[tuple[str, Callable[[Path], object], bytes]] = [
        ("run.trec", read_run, RUN),
        ("run.trec.gz", read_run, gzip.compress(RUN)),
        ("run.json", read_run, json.dumps({"q1": {"d1": 0.5}, "q2": {"d1": 1}}).encode()),
        ("run.jsonl", read_run, jsonl),
        (
            "predictions.json",
            read_run,
            json.dumps({"mteb_model_meta": {}, "default": {"test": {"q1": {"d1": 0.5}}}}).encode(),
        ),
        ("scores.csv", read_unit_scores, text("unit,faithfulness\nq1,0.5\nq2,1\n")),
        ("run.csv", read_run, text("query,doc,score\nq1,d1,1\nq2,d2,2\n")),
        ("run.tsv", read_run, text("query-id\tcorpus-id\tscore\nq1\td1\t1\n")),
        ("a.qrels", read_qrels, text("q1 0 d1 1\nq1 0 d2 0\nq2 0 d1 2\n")),
        ("qrels.json", read_qrels, json.dumps(ROWS).encode()),
        ("rows.json", read_rows, json.dumps(ROWS).encode()),
        ("rows.jsonl", read_rows, jsonl),
        ("pairs.csv", read_data, text("text_a,text_b,score,split\na,b,1,test\nc,d,2.5,test\n")),
        ("labels.jsonl", read_data, text('{"text": "a", "label": 1}\n{"text": "b", "label": 2}\n' * 4)),
        ("rerank.jsonl", read_data, text('{"query": "a", "positives": ["b"], "negatives": ["c", "d"]}\n' * 2)),
        ("edges.csv", edge_lines, text("child,parent\na,b\nb,c\n")),
        (
            "top.jsonl",
            read_topk_predictions,
            text(
                '{"id": "u1", "predictions": [1, 2], "scores": [0.5, 0.1], "target": 1}\n{"id": "u2", "predictions": [2, 3], "scores": [1, 0], "target": 1}\n'
            ),
        ),
        ("top.json", read_topk_predictions, text('[{"row": 1, "top_k": [1, 2], "y": 1, "hour": 3}]')),
        ("texts.txt", lambda path: [*read_texts(str(path)).items()], text("one\ntwo\n")),
        (
            "texts.jsonl",
            lambda path: [*read_texts(str(path)).items()],
            text('{"_id": "1", "title": "t", "text": "one"}\n{"_id": "2", "text": "two"}\n'),
        ),
        ("texts.txt.gz", lambda path: [*read_texts(str(path)).items()], gzip.compress(text("one\ntwo\n"))),
        ("a.npy", read_matrix, npy(np.eye(3))),
        ("shard.npy", open_shards, npy(np.eye(3))),
        ("a.npz", read_array, npz(a=np.eye(3))),
        ("b.npz", read_matrix, npz(False, a=np.eye(3))),
        ("c.npz", array_names, npz(a=np.eye(3), b=np.arange(3))),
        ("a.txt", read_document, text("A text.\n\nMore.\n")),
        ("a.html", read_document, HTML),
        ("hp.obo", read_obo, OBO),
        ("hp.json", read_obo, GRAPH),
        ("onto.obo", load_ontology, OBO),
        ("onto.json", load_ontology, GRAPH),
        ("tree.obo", read_obo_tree, OBO),
        ("books.gnucash", read_gnucash, GNUCASH_XML),
        ("books.xml", read_tree, GNUCASH_XML),
        ("books.db", read_tree, GNUCASH_SQL),
        ("books2.gnucash", read_gnucash, GNUCASH_SQL),
        ("accounts.db", lambda path: read_tree(path, 7), TREE_SQL),
        ("tree.csv", read_tree, text("id,name,parent\na,A,\nb,B,a\n")),
        (
            "tree.json",
            read_tree,
            json.dumps([{"id": "a", "name": "A", "children": [{"id": "b", "name": "B"}]}]).encode(),
        ),
        ("closure.tsv", read_edges, text("b\ta\nc\tb\n")),
        ("codes.csv", read_codes, text("code,name\n1,A\n11,B\n111,C\n")),
        ("cases.json", read_cases, CASES),
        ("cases.csv", read_cases, text("text,hpo_ids\nseizures,HP:0001250;HP:0001945\n")),
        ("fixture.json", read_questions, FIXTURE),
        ("pairs.json", read_concept_set, PAIRS),
        ("sts.tsv", read_concept_set, text("sentence1\tsentence2\tscore\na\tb\t0.5\nc\td\t0.1\n")),
        ("labelled.csv", read_concept_set, text("text,label\na,x\nb,y\nc,x\n")),
        ("doc.json", read_annotated_corpus, json.dumps(ANNOTATED).encode()),
        ("table.md", audit_table, PUBLISHED_MD),
        ("table.tex", audit_table, PUBLISHED_TEX),
        ("table.txt", audit_table, PUBLISHED_TXT),
        ("table.csv", audit_table, text("system,nDCG@10,MRR,n\na,0.61,0.5,100\nb,0.58,0.4,100\n")),
        ("table.json", audit_table, json.dumps({"a": {"nDCG@10": 0.61, "MRR": 0.5, "n": 100}}).encode()),
        ("places.json", read_published_results, PLACES),
        ("vectors.npz", read_node_vectors, vectors._npz()),
        ("vectors.csv", read_node_vectors, text("id,name,x0,x1\na,A,0.5,1\nb,B,1,2\n")),
        ("stored.npz", _vectors, npz(vectors=np.eye(2), texts=np.array(["a", "b"]))),
        ("tuned.json", read_tuned_parameters, tuned),
    ]
    for evidence in evidences:
        buffer = npz(kind=np.array(evidence.kind), **evidence.to_arrays())
        samples.append((f"{evidence.kind}.npz", _evaluate_evidence, buffer))
    return [Target(name, read, {name: data}, name) for name, read, data in [*samples, *_optional_targets()]]


def _optional_targets() -> list[tuple[str, Callable[[Path], object], bytes]]:
    """Samples of formats whose packages may be absent."""
    samples: list[tuple[str, Callable[[Path], object], bytes]] = []
    try:
        import pyarrow
        import pyarrow.parquet

        buffer = io.BytesIO()
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(ROWS), buffer)
        samples.append(("run.parquet", read_run, buffer.getvalue()))
        buffer = io.BytesIO()
        rows = [{"text": "a", "vector": [0.5, 1.0]}, {"text": "b", "vector": [0.0, 1.0]}]
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), buffer)
        samples.append(("stored.parquet", _vectors, buffer.getvalue()))
    except ImportError:
        pass
    try:
        from safetensors.numpy import save

        samples.append(("a.safetensors", read_array, save({"a": np.eye(3)})))
    except ImportError:
        pass
    try:
        import docx

        document = docx.Document()
        document.add_heading("Bread", 1)
        document.add_paragraph("Rye.")
        document.add_table(1, 2)
        buffer = io.BytesIO()
        document.save(buffer)
        samples.append(("a.docx", read_document, buffer.getvalue()))
    except ImportError:
        pass
    try:
        import pypdf

        writer = pypdf.PdfWriter()
        writer.add_blank_page(100, 100)
        buffer = io.BytesIO()
        writer.write(buffer)
        samples.append(("a.pdf", read_document, buffer.getvalue()))
    except ImportError:
        pass
    return samples


def _folder_targets(folder: Path) -> list[Target]:
    beir = {
        "beir/corpus.jsonl": text('{"_id": "d1", "title": "t", "text": "one"}\n'),
        "beir/queries.jsonl": text('{"_id": "q1", "text": "which"}\n'),
        "beir/qrels/test.tsv": text("query-id\tcorpus-id\tscore\nq1\td1\t1\n"),
    }
    result = evaluate(
        Ranking.from_ranks([1, 3, 2, 9], candidates=20, unit_ids=list("abcd")),
        ["MRR", "HR@3"],
        system="s",
        config=StatsConfig(n_resamples=20),
    )
    details = {"a": UnitContent("text", ("x",), {"kind": "k"}, (RetrievedItem("d", "t", 0.5, True, "w"),))}
    tuning = TuningRecord(
        "MRR",
        (Trial({"k": 1}, 0.5), Trial({"k": 2}, 0.6)),
        1,
        0,
        0.6,
        0.5,
        (FoldSelection({"k": 1}, 0.5, 0.4, 2),),
    )
    path = save_run(folder / "run", result, manifest=Manifest("s", cost={"dims": 3}), details=details, tuning=tuning)
    stored = {f"run/{file.name}": file.read_bytes() for file in sorted(path.iterdir())}
    names = tuple(stored)
    tree = {
        "tree/tree.json": json.dumps(
            {"source": "s", "ids": ["a", "b"], "names": ["A", "B"], "edges": [[1, 0]]}
        ).encode()
    }
    systems = {"acc/results.json": json.dumps({"systems": [{"system": "a"}]}).encode()}
    return [
        Target("beir", Dataset.from_beir, beir, "beir", tuple(beir)),
        Target("beir data", read_data, beir, "beir", tuple(beir)),
        Target("field", read_concept_set, FIELD, "field", tuple(FIELD)),
        *(Target(part, _read_run, stored, "run", (part,)) for part in names),
        *(Target(f"evidence of {part}", load_evidence, stored, "run", (part,)) for part in names[:2]),
        Target("stored tree", read_stored_tree, tree, "tree", tuple(tree)),
        Target("last systems", last_run_systems, systems, "acc", tuple(systems)),
    ]


def _evaluate_evidence(path: Path) -> object:
    """Evidence, and the value of a metric on it."""
    evidence = load_evidence(path)
    metrics = "Silhouette" if evidence.kind == "space" else None
    return evaluate(evidence, metrics, config=StatsConfig(n_resamples=10)) if len(evidence) else evidence


def _read_run(path: Path) -> object:
    """A run directory, and everything that is derived from it."""
    run = read_stored(path)
    outputs: list[object] = [run.details, run.tuning, run.result.to_dict()]
    outputs += [export([run], None, format_name) for format_name in ("csv", "md", "latex", "card", "json", "bibtex")]
    outputs.append(export([run], None, "csv", units=True))
    return outputs, build_view([run], None)


def _vectors(path: Path) -> object:
    return load_vectors(parse_spec(f"vectors:{path}"))


SPLICES = [
    b"", b"\0", b"\n", b"\r", b" ", b"\t", b'"', b"{", b"}", b"[", b"]", b"nan", b"1e999", b"NaN", b"null", b"true", b"-1",
    b"\\ud800", b"\xff", b"\xef\xbb\xbf", b"\xff\xfe", b"\x1f\x8b", "\u2028".encode(), b"\x1c", b"_", b"9" * 400, b",", b":",
    b"charset=punycode", b"charset=idna", b"charset=undefined", b"charset=utf-7", b"charset=raw_unicode_escape", b"<", b">", b"&", b"&#x110000;", b"<![CDATA[", b"\x1b[31m", b"PK\x03\x04",
]  # fmt: skip
VALUES: list[Any] = [
    None,
    True,
    0,
    -1,
    1.5,
    10**30,
    "",
    "x",
    [],
    [[]],
    {},
    {"a": 1},
    [1, "a", None],
    "\u202e",
    -0.0,
    1e308,
]


def mutate(data: bytes, rng: random.Random) -> bytes:
    """Return the bytes with one to four changes; JSON and npz files are also changed structurally."""
    if rng.random() < 0.5:
        try:
            return _change_structure(data, rng)
        except (ValueError, UnicodeDecodeError, zipfile.BadZipFile, OSError, KeyError):
            pass
    for _ in range(rng.randint(1, 4)):
        start = rng.randint(0, len(data))
        stop = rng.choice(
            (start, min(len(data), start + rng.randint(1, 8)), min(len(data), start + rng.randint(1, 200)))
        )
        choice = rng.random()
        if choice < 0.5:
            data = data[:start] + rng.choice(SPLICES) + data[stop:]
        elif choice < 0.7:
            data = data[:start] + rng.randbytes(stop - start) + data[stop:]
        elif choice < 0.8:
            data = data[:start]
        elif choice < 0.9:
            data = data[:start] + data[start:stop] * 2 + data[stop:]
        else:
            data = data[:100] + rng.randbytes(len(data[100:]))
    return data


def _change_structure(data: bytes, rng: random.Random) -> bytes:
    if data[:2] == b"PK":
        return _change_arrays(data, rng)
    lines = data.splitlines() if data.count(b"\n{") else [data]
    index = rng.randrange(len(lines))
    lines[index] = json.dumps(_change_value(json.loads(lines[index]), rng)).encode()
    return b"\n".join(lines)


def _change_value(value: Any, rng: random.Random) -> Any:
    """JSON with one value replaced, one key dropped, or one repeated."""
    if isinstance(value, dict) and value and rng.random() < 0.85:
        key = rng.choice(list(value))
        if rng.random() < 0.15:
            return {name: item for name, item in value.items() if name != key}
        return {**value, key: _change_value(value[key], rng)}
    if isinstance(value, list) and value and rng.random() < 0.85:
        index = rng.randrange(len(value))
        if rng.random() < 0.15:
            return [*value[:index], *value[index + rng.randint(0, 1) :], value[index]]
        return [*value[:index], _change_value(value[index], rng), *value[index + 1 :]]
    return rng.choice(VALUES)


def _change_arrays(data: bytes, rng: random.Random) -> bytes:
    with np.load(io.BytesIO(data), allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    if not arrays or not all(isinstance(value, np.ndarray) for value in arrays.values()):
        raise ValueError("not an archive of arrays")
    name = rng.choice(list(arrays))
    array = arrays[name]
    changes: list[Callable[[], Any]] = [
        lambda: array[..., None],
        lambda: array.ravel()[: array.size // 2],
        lambda: array.astype(str),
        lambda: np.concatenate([array.ravel(), array.ravel()]),
        lambda: np.zeros_like(array, dtype=float),
        lambda: np.full(array.shape, -1),
        lambda: np.full(array.shape, 2**62),
        lambda: np.full(array.shape, np.nan),
        lambda: np.empty((0, *array.shape[1:]), array.dtype) if array.ndim else np.array(None, dtype=complex),
        lambda: array.astype(complex) if array.dtype.kind in "fiub" else np.array("x"),
    ]
    arrays[name] = rng.choice(changes)()
    if rng.random() < 0.1:
        del arrays[name]
    return npz(**arrays)


def run_case(number: int, folder: Path) -> str:
    """Run one case and return a description of the failure, or an empty string."""
    rng = random.Random(number)
    all_targets = targets()
    target = all_targets[number % len(all_targets)]
    files = dict(target.files)
    changed_file = rng.choice(target.changed or tuple(files))
    files[changed_file] = mutate(files[changed_file], rng)
    _update_hash(files, changed_file)
    root = folder / next(iter(files)).split("/")[0]
    shutil.rmtree(root, ignore_errors=True)
    root.unlink(missing_ok=True)  # a memory-mapped file must not change while it is mapped
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            target.read(folder / target.entry)
    except EquipoiseError as error:
        error.render()
    except Exception as error:
        from traceback import extract_tb

        last = [frame for frame in extract_tb(error.__traceback__) if "equipoise" in frame.filename][-1]
        return f"case {number} ({target.name}): {type(error).__name__}: {error} at {last.filename}:{last.lineno}"
    return ""


def _update_hash(files: Files, changed_file: str) -> None:
    """Give the manifest of a run directory the hash of the file that was changed."""
    manifest = "run/manifest.json"
    if manifest in files and changed_file != manifest:
        content = json.loads(files[manifest])
        content["files"][changed_file.removeprefix("run/")] = hashlib.sha256(files[changed_file]).hexdigest()
        files[manifest] = json.dumps(content).encode()


def main(first: int, last: int) -> int:
    """Run these cases and print the failures."""
    failures = 0
    with TemporaryDirectory() as folder:
        for number in range(first, last):
            if failure := run_case(number, Path(folder)):
                failures += 1
                sys.stdout.write(f"{failure[:400]}\n")
                sys.stdout.flush()
    sys.stdout.write(f"{last - first} cases over {len(targets())} targets, {failures} failures\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
