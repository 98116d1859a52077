"""Sample data for retrieval; the samples of the domains are in their folders below."""

from __future__ import annotations

from importlib.resources import as_file, files
from pathlib import Path

from equipoise.io.dataset import Dataset
from equipoise.io.run_files import read_qrels
from equipoise.io.tables import read_rows


def load_bread() -> Dataset:
    """61 passages, 80 questions, graded judgements; ``wording`` classifies how similar a question is to the text."""
    with as_file(files("equipoise.io") / "samples") as folder:
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
