"""Run directories for report tests: real ones about bread, and synthetic ones of any size."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import equipoise
from equipoise.config import StatsConfig
from equipoise.domains.bench.retrieval_data import retrieve
from equipoise.io.dataset import Dataset
from equipoise.io.run_files import read_qrels
from equipoise.io.tables import read_rows
from equipoise.models.retriever import retriever
from equipoise.runs.evaluate import evaluate
from equipoise.runs.manifest import Manifest
from equipoise.runs.run_folder import StoredRun, load_run, save_run
from equipoise.runs.unit_table import RetrievedItem, UnitContent
from equipoise.stats.estimate import result_from_values
from equipoise.tuning.grid import FoldSelection, Trial, TuningRecord
from equipoise.types import Direction

SYSTEMS = ("bm25:", "tfidf:", "hash")
COST = {"dims": 384, "seconds": 1.234, "bytes_per_vector": 1536.0, "truncated_share": 0.25}
WORDS = ("rye", "wheat", "dough", "oven", "salt", "yeast", "crumb", "crust")


def load_bread() -> Dataset:
    """61 passages, 80 questions, graded judgements; ``wording`` classifies how similar a question is to the text."""
    folder = Path(equipoise.__file__).parent / "io" / "samples"
    passages, questions = (read_rows(folder / f"{name}.jsonl") for name in ("passages", "questions"))
    return Dataset(
        "bread",
        items={row["id"]: row["text"] for row in passages},
        units={row["id"]: row["text"] for row in questions},
        truth=read_qrels(folder / "truth.qrels"),
        slices={row["id"]: {"wording": row["wording"]} for row in questions},
    )


def bread_runs(folder: Path, *, tuned: bool = True) -> list[StoredRun]:
    """Three systems on the questions about bread, with their retrieved passages."""
    data = load_bread()
    for index, spec in enumerate(SYSTEMS):
        name = spec.rstrip(":")
        manifest = replace(
            Manifest.start(name, command=["eq", "demo"]),
            datasets={"bread": data.fingerprint},
            parameters={"model": spec, "stemmer": "none"},
            cost=COST if name == "hash" else {"seconds": 0.5},
        ).finish()
        save_run(
            folder / name,
            evaluate(retrieve(retriever(spec), data), system=name),
            manifest=manifest,
            details=retrieved(data, spec),
            tuning=tuning(index) if tuned else None,
        )
    return [load_run(folder / spec.rstrip(":")) for spec in SYSTEMS]


def retrieved(data: Dataset, spec: str, depth: int = 5) -> dict[str | int, UnitContent]:
    """The top passages of a system for every question."""
    passages = list(data.items)
    fitted = retriever(spec).fit(list(data.items.values()))
    results = fitted.search(list(data.units.values()), depth)
    details: dict[str | int, UnitContent] = {}
    for index, (unit, text) in enumerate(data.units.items()):
        truth = data.truth.get(unit, {})
        hits = tuple(
            RetrievedItem(
                passages[item_index],
                data.items[passages[item_index]],
                score,
                truth.get(passages[item_index], 0) > 0,
                "bread",
            )
            for item_index, score in zip(results.indices[index].tolist(), results.scores[index].tolist(), strict=True)
        )
        answers = tuple(data.items[item_id] for item_id in truth)
        details[unit] = UnitContent(text, answers, dict(data.slices.get(unit, {})), hits)
    return details


def tuning(seed: int = 0) -> TuningRecord:
    """A tuning record for a grid of three parameters."""
    rng = np.random.default_rng(seed)
    trials = tuple(
        Trial({"chunk_size": size, "overlap": overlap, "top_k": k}, float(rng.random()), cost=float(size * k))
        for size in (128, 256)
        for overlap in (0, 50)
        for k in (1, 3, 5)
    )
    best = max(range(len(trials)), key=lambda index: trials[index].value)
    folds = tuple(FoldSelection(trials[index].params, 0.7, 0.6, 16) for index in (best, best, 0))
    frontier = (min(trials, key=lambda trial: trial.cost or 0), trials[best])
    return TuningRecord("HR", trials, best, 0, trials[best].value, 0.5, folds, frontier, "tokens", 600.0, 0)


def synthetic_runs(
    folder: Path,
    systems: Sequence[str],
    values: Mapping[str, Any],
    *,
    units: Sequence[str | int] | None = None,
    details: Mapping[str | int, UnitContent] | None = None,
    bounds: tuple[float, float] = (0.0, 1.0),
    better: Direction = Direction.UP,
    **manifest_fields: Any,
) -> list[StoredRun]:
    """A run for each system; ``values`` maps a metric to an array of (systems, units).

    ``manifest_fields`` are fields of the manifests.
    """
    columns = {name: np.asarray(column, dtype=float) for name, column in values.items()}
    ids = units or [f"q{index}" for index in range(next(iter(columns.values())).shape[1])]
    runs = []
    for index, system in enumerate(systems):
        system_values = {name: column[index] for name, column in columns.items()}
        result = result_from_values(
            system, list(ids), system_values, config=StatsConfig(n_resamples=200), bounds=bounds, better=better
        )
        manifest = replace(Manifest.start(system).finish(), **manifest_fields)
        path = save_run(folder / f"run{index}", result, manifest=manifest, details=details)
        runs.append(load_run(path))
    return runs


def rewrite(file: Path, content: str | bytes) -> None:
    """Replace a file of a run directory and update its hash in the manifest."""
    data = content.encode() if isinstance(content, str) else content
    file.write_bytes(data)
    manifest = file.with_name("manifest.json")
    manifest_content = json.loads(manifest.read_text())
    manifest_content["files"][file.name] = hashlib.sha256(data).hexdigest()
    manifest.write_text(json.dumps(manifest_content))


def ranks(systems: int, units: int, seed: int = 0) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Ranks of the relevant item; those of the first system are slightly better."""
    rng = np.random.default_rng(seed)
    difficulty = 1 + 5 * rng.random(units)
    samples = rng.exponential(difficulty, (systems, units)) * (1 + 0.1 * np.arange(systems))[:, np.newaxis]
    return np.maximum(1.0, np.ceil(samples))
