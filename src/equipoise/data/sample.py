"""The sample data that comes with the program: questions about bread."""

from __future__ import annotations

from importlib.resources import as_file, files
from pathlib import Path

from equipoise.data.dataset import Dataset
from equipoise.data.runs import read_qrels
from equipoise.data.tables import read_rows


def bread() -> Dataset:
    """61 passages, 80 questions, graded judgements; ``wording`` says how near a question is to the text."""
    with as_file(files("equipoise.data") / "samples") as folder:
        return _read(folder)


def _read(folder: Path) -> Dataset:
    passages, questions = (read_rows(folder / f"{name}.jsonl") for name in ("passages", "questions"))
    return Dataset(
        "bread",
        items={row["id"]: row["text"] for row in passages},
        units={row["id"]: row["text"] for row in questions},
        truth=read_qrels(folder / "truth.qrels"),
        slices={row["id"]: {"wording": row["wording"]} for row in questions},
    )
