"""The sample data that come with the program: bread, keeping time, accounts, philosophy."""

from __future__ import annotations

from importlib.resources import as_file, files
from pathlib import Path

from equipoise.data.dataset import Dataset
from equipoise.data.documents import read_document
from equipoise.data.field import Field, read_field
from equipoise.data.fixture import Question, read_fixture
from equipoise.data.runs import read_qrels
from equipoise.data.tables import read_rows


def bread() -> Dataset:
    """61 passages, 80 questions, graded judgements; ``wording`` says how near a question is to the text."""
    with as_file(files("equipoise.data") / "samples") as folder:
        return _read(folder)


def timekeeping() -> tuple[str, tuple[Question, ...]]:
    """A document of some 9,000 words on how people learned to keep time, and 130 questions on it.

    The answers stand in the document word for word. The questions are of all six categories and three
    difficulties.
    """
    with as_file(files("equipoise.data") / "samples" / "timekeeping") as folder:
        return read_document(folder / "timekeeping.md"), read_fixture(folder / "questions.jsonl")


BUSINESSES = ("acme", "larkspur")
"""The business ids of ``accounts()``: a maker of tools with a shop, and a design studio."""


def accounts() -> Path:
    """The SQLite file with the charts of accounts of two businesses, some 200 accounts in four levels.

    Beside it lies the chart of each as ``acme.csv`` and ``larkspur.csv``.
    """
    with as_file(files("equipoise.data") / "samples" / "accounts") as folder:
        return folder / "books.db"


def philosophy() -> Field:
    """97 pairs of concepts, 10 clusters, 56 annotated sentences, 105 relations and 16 concepts."""
    return read_field()


def _read(folder: Path) -> Dataset:
    passages, questions = (read_rows(folder / f"{name}.jsonl") for name in ("passages", "questions"))
    return Dataset(
        "bread",
        items={row["id"]: row["text"] for row in passages},
        units={row["id"]: row["text"] for row in questions},
        truth=read_qrels(folder / "truth.qrels"),
        slices={row["id"]: {"wording": row["wording"]} for row in questions},
    )
