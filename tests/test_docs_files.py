"""The example files in the reference of file formats are read by the program, with the content that they show."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import equipoise
from equipoise import Dataset
from equipoise.accounts import read_edges, read_tree
from equipoise.audit.apply_rules import audit_table
from equipoise.bench import read_data
from equipoise.concepts import read_concept_set
from equipoise.fair import read_questions
from equipoise.io.run_files import read_qrels, read_run
from equipoise.io.texts_to_embed import read_texts
from equipoise.phenotypes import read_annotated_corpus, read_cases
from equipoise.places import read_coordinates, read_history, read_predictions, read_test_sequences

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "files.md"
EXAMPLES = dict(re.findall(r'^```\w+ title="([^"]+)"\n(.*?)^```$', PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL))

RUN = {"q1": {"d7": 0.83, "d2": 0.41}, "q2": {"d5": 0.77}}
QRELS = {"q1": {"d7": 1, "d2": 0}, "q2": {"d5": 2}}
HPO_IDS = ("HP:0000252", "HP:0001250")
EDGES = [("Cash", "Assets"), ("Bank", "Assets")]

READERS: dict[str, tuple[Callable[[Path], Any], Any]] = {
    "run.trec": (read_run, RUN),
    "run.json": (read_run, RUN),
    "run.jsonl": (read_run, RUN),
    "run.csv": (read_run, RUN),
    "truth.qrels": (read_qrels, QRELS),
    "truth.tsv": (read_qrels, QRELS),
    "truth.json": (read_qrels, QRELS),
    "questions.json": (lambda path: [pair.answer for pair in read_questions(path)], ["a week", "White bread"]),
    "questions.jsonl": (lambda path: [pair.id for pair in read_questions(path)], ["q1", "q2"]),
    "texts.jsonl": (lambda path: read_texts(str(path)).count, 2),
    "table.csv": (lambda path: audit_table(path).impossible, ()),
    "predictions.jsonl": (lambda path: read_predictions(path).targets, [2, 1]),
    "libcity.json": (lambda path: read_predictions(path).users.tolist(), [4, 9]),
    "visits.csv": (lambda path: read_history(path).places.tolist(), [0, 2, 1]),
    "sequences.jsonl": (lambda path: read_history(path).users.tolist(), ["ann", "ann", "ann", "bob"]),
    "test.jsonl": (lambda path: read_test_sequences(path).columns["weekday"].tolist(), ["Friday", "Saturday"]),
    "places.csv": (lambda path: read_coordinates(path, 3)[2].tolist(), [47.366, 8.545]),
    "accounts.csv": (lambda path: read_tree(path).named_edges(), [("11", "1"), ("12", "1")]),
    "edges.csv": (lambda path: read_edges(path).named_edges(), EDGES),
    "tree.json": (lambda path: list(read_tree(path).names), ["Assets", "Cash", "Bank"]),
    "cases.json": (lambda path: read_cases(path)[0].expected, HPO_IDS),
    "cases.csv": (lambda path: read_cases(path)[0].expected, HPO_IDS),
    "documents.jsonl": (lambda path: len(read_annotated_corpus(path).documents[0].annotations), 2),
}
"""By file: the reader and the expected content."""

FOLDERS = {"beir", "bench", "concepts"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The examples of the page as files."""
    root = tmp_path_factory.mktemp("files")
    for name, text in EXAMPLES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return root


def test_every_example_has_a_reader() -> None:
    assert {name for name in EXAMPLES if name.split("/")[0] not in FOLDERS} == {*READERS}


@pytest.mark.parametrize("name", READERS)
def test_an_example_is_read_as_shown(folder: Path, name: str) -> None:
    reader, expected = READERS[name]
    assert reader(folder / name) == expected


@pytest.mark.parametrize(
    ("name", "kind"),
    {
        "faq.csv": "retrieval",
        "similarity.csv": "similarity",
        "duplicates.csv": "pair-classification",
        "tickets.csv": "classification",
        "bitext.csv": "bitext",
        "reranking.jsonl": "reranking",
    }.items(),
)
def test_the_kind_of_a_data_set_is_recognised(folder: Path, name: str, kind: str) -> None:
    assert read_data(folder / "bench" / name).kind == kind


def test_the_beir_folder_is_read(folder: Path) -> None:
    data = Dataset.from_beir(folder / "beir")
    assert (len(data.items), len(data.units), data.truth["q1"]) == (2, 1, {"d7": 1})


def test_the_concept_set_is_read(folder: Path) -> None:
    concepts = read_concept_set(folder / "concepts")
    assert (len(concepts.pairs), len(concepts.clusters), len(concepts.relations)) == (2, 2, 2)


def test_pages_whose_examples_need_sample_files_say_where_they_are() -> None:
    docs = PAGE.parents[1]
    samples = Path(equipoise.__file__).parent / "io" / "samples"
    names = [f"{path.name}/" if path.is_dir() else path.name for path in samples.iterdir()]
    examples = re.compile(r"^```(?:eq|python run)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
    pages = {page: page.read_text("utf-8") for page in docs.rglob("*.md")}
    users = {page for page, text in pages.items() if any(name in "".join(examples.findall(text)) for name in names)}
    assert len(users) > 10
    assert [page for page in users if "setup/install.md#sample-files" not in pages[page]] == []
    assert "## Sample files" in pages[docs / "setup" / "install.md"]
