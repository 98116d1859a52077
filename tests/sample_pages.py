"""Report pages of every kind as files, for the browser tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from equipoise import run_fair_comparison
from equipoise.report.build_view import build_view, compare_runs
from equipoise.report.html.render import render_html
from equipoise.report.view import View
from equipoise.runs.manifest import Status
from equipoise.runs.run_folder import StoredRun, find_runs, load_run
from fair_sample import CONFIG, document, pairs
from hostile import hostile_runs
from stored_runs import bread_runs, ranks, synthetic_runs

MODELS = ("bm25", "tfidf", "hash", "hash,dim=16", "hash,dim=64", "sum:hash,dim=16+bm25")


def fair(folder: Path) -> Sequence[StoredRun]:
    """Six models compared on a document, with tuning."""
    text = document()
    run_fair_comparison(list(MODELS), text, pairs(text, 40), output=folder, config=replace(CONFIG, budget=100))
    return [load_run(path) for path in find_runs(folder)]


def single(folder: Path) -> Sequence[StoredRun]:
    """A single system with its retrieved items and without tuning."""
    return bread_runs(folder, tuned=False)[:1]


def partial(folder: Path) -> Sequence[StoredRun]:
    """Two interrupted systems with scores only, some of them undefined."""
    values = 1 / ranks(2, 30)
    values[1, :3] = np.nan
    hits = np.where(np.isnan(values), np.nan, values >= 0.1)
    return synthetic_runs(
        folder, ["a", "b"], {"MRR": values, "HR@10": hits}, status=Status.PARTIAL, reason="out of time"
    )


def large(folder: Path) -> Sequence[StoredRun]:
    """Ten systems on ten thousand units."""
    return synthetic_runs(folder, [f"team/model-{index}" for index in range(10)], {"MRR": 1 / ranks(10, 10_000)})


KINDS: dict[str, Callable[[Path], Sequence[StoredRun]]] = {
    "fair": fair,
    "single": single,
    "partial": partial,
    "hostile": hostile_runs,
    "large": large,
}


def write_page(kind: str, folder: Path) -> Path:
    """Write the page of one kind to a file."""
    runs = KINDS[kind](folder / kind)
    file = folder / f"{kind}.html"
    report = build_view(runs, compare_runs(runs), experiment=View.read(folder / kind))
    file.write_text(render_html(report), encoding="utf-8")
    return file
