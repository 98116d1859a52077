"""The folder of a comparison, from which finished models are read back.

results.json        every figure of every model, and the claims
runs/MODEL/         a run directory, as eq compare and eq report read them
visualizations/     every chart as PNG and SVG, where they can be drawn
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from equipoise.data.atomic import write_bytes
from equipoise.errors import EquipoiseError, StoreError
from equipoise.recipes.fair.outcome import Outcome
from equipoise.recipes.fair.plan import Plan
from equipoise.recipes.fair.result import METRIC, ModelFacts
from equipoise.run.cases import json_text
from equipoise.run.folder import read_manifest
from equipoise.run.manifest import Manifest, without_secrets
from equipoise.run.store import read_run, write_run

RUNS, RESULTS = "runs", "results.json"
VERSION = "fair comparison 3"
"""Grows when the same inputs would give other scores."""

_INPUTS = "all inputs of this comparison"
_SETUP = "all inputs but the model"


def is_list(output: Path) -> bool:
    """Whether the output is a file in the source's format, rather than a folder."""
    return output.suffix.casefold() == ".json"


def refuse_unwritable(output: Path) -> None:
    """Say before the work begins that the results could not be kept."""
    if is_list(output):
        if output.is_dir():
            raise StoreError(f"{output} is a folder", hint="name a file, or leave .json out for a folder")
        if not output.absolute().parent.is_dir():
            raise StoreError(f"there is no folder {output.absolute().parent}", hint="make it first")
    elif output.exists() and not output.is_dir():
        raise StoreError(
            f"{output} is a file, where a folder should be",
            hint="name another folder, or a file that ends in .json",
        )


def folder_names(models: Iterable[str]) -> dict[str, str]:
    """A folder for every model, named like it as far as file systems allow.

    >>> folder_names(["sum:minilm+bm25:", "st:BAAI/bge-base-en-v1.5", "bm25", "bm25:"])
    {'sum:minilm+bm25:': 'sum-minilm+bm25', 'st:BAAI/bge-base-en-v1.5': 'st-BAAI-bge-base-en-v1.5', \
'bm25': 'bm25', 'bm25:': 'bm25-2'}
    """
    names: dict[str, str] = {}
    for model in models:
        plain = re.sub(r"[^\w.+,=@-]+", "-", model).strip("-.")[:120] or "model"
        name, number = plain, 1
        while name in names.values():
            number += 1
            name = f"{plain}-{number}"
        names[model] = name
    return names


def input_key(plan: Plan, name: str, model_fingerprint: str) -> str:
    """A digest of everything that decides the figures of one model, and of what it is called."""
    parts = (
        name,
        VERSION,
        plan.settings.metric,
        plan.settings.fingerprint,
        *plan.material.fingerprints.values(),
        model_fingerprint,
    )
    return _digest(parts)


def setup_key(plan: Plan) -> str:
    """A digest of what all models of a comparison share: settings, document and questions."""
    return _digest((VERSION, plan.settings.fingerprint, *plan.material.fingerprints.values()))


def _digest(parts: Iterable[str]) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def strangers(folder: Path, own: Iterable[str], plan: Plan) -> dict[str, bool]:
    """The other run directories in the folder of a comparison, and whether each is of the same setup."""
    if not (folder / RUNS).is_dir():
        return {}
    names = set(own)
    others = sorted(path for path in (folder / RUNS).iterdir() if path.name not in names)
    found = {}
    for path in others:
        try:
            found[path.name] = read_manifest(path).inputs.get(_SETUP) == setup_key(plan)
        except EquipoiseError:
            continue  # whatever lies there, it is no run
    return found


def write_outcome(path: Path, done: Outcome, plan: Plan, key: str, command: Sequence[str] = ()) -> Path:
    """A run directory of one model."""
    facts = done.facts
    manifest = Manifest(
        system=facts.spec,
        started=done.begun.started,
        finished=done.begun.finished,
        command=without_secrets(command),
        seed=plan.settings.seed,
        datasets=plan.material.fingerprints,
        inputs={_INPUTS: key, _SETUP: setup_key(plan)},
        parameters={
            "model": facts.spec,
            "model_name": facts.name,
            **done.tuning.trials[done.tuning.best].params,
            "matcher": plan.settings.matcher,
            "tokenizer": plan.settings.tokenizer_name,
            "folds": plan.fold_count,
            "repeats": max(1, len(plan.splits)),
            "configurations": facts.configurations,
        },
        cost={
            "dims": facts.dimensions,
            "bytes_per_vector": facts.bytes_per_vector,
            # Vectors that an earlier run made cost nothing now, so that these seconds compare with no others.
            "seconds": None if facts.cached_texts else facts.seconds,
            "seconds_with_cache": facts.seconds,
            "texts_from_cache": facts.cached_texts,
            "truncated_share": facts.truncated_share,
            "retrieved_tokens": facts.retrieved_tokens,
            "window": facts.window,
            "grid_chunks": facts.grid_chunks,
            "grid_truncated": facts.grid_truncated,
            "tied_questions": facts.tied_questions,
        },
    )
    return write_run(path, done.result, manifest=manifest, details=done.details, tuning=done.tuning)


def kept_outcome(path: Path | None) -> tuple[str, Outcome] | None:
    """The finished run that lies there, with the key of its inputs; None where there is none.

    A directory that cannot be read is no reason to fail: it is computed again and replaced.
    """
    if path is None:
        return None
    try:
        manifest = read_manifest(path)
        key = manifest.inputs.get(_INPUTS)
        if not manifest.complete or not key:
            return None
        stored = read_run(path, evidence=False)
        if stored.tuning is None or (stored.tuning.folds and METRIC not in stored.result.errors):
            return None
    except (EquipoiseError, OSError):
        return None
    return key, Outcome(_facts(manifest), stored.tuning, stored.result, stored=stored, begun=manifest)


def _facts(manifest: Manifest) -> ModelFacts:
    """What ``write_outcome`` said of the model."""
    cost = manifest.cost
    return ModelFacts(
        spec=manifest.system,
        name=str(manifest.parameters["model_name"]),
        dimensions=_whole(cost["dims"]),
        bytes_per_vector=cost["bytes_per_vector"],
        truncated_share=cost["truncated_share"],
        window=_whole(cost["window"]),
        grid_chunks=_whole(cost["grid_chunks"]) or 0,
        grid_truncated=_whole(cost["grid_truncated"]),
        tied_questions=_whole(cost.get("tied_questions")) or 0,
        retrieved_tokens=cost["retrieved_tokens"],
        seconds=float(cost["seconds_with_cache"] or 0.0),
        cached_texts=_whole(cost["texts_from_cache"]) or 0,
        configurations=int(manifest.parameters["configurations"]),
    )


def _whole(number: float | None) -> int | None:
    return None if number is None else int(number)


def write_results(output: Path, content: Any) -> Path:
    """The JSON file of all models; into the folder, or as the file itself."""
    file = output if is_list(output) else output / RESULTS
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(file, f"{json_text(content, indent=2)}\n".encode())
    except OSError as error:
        raise StoreError(
            f"{file} cannot be written: {error.strerror}", hint="choose another folder"
        ) from error
    return file
