"""Read scores from a folder: results of MTEB, or run directories of this program.

MTEB writes ``MODEL/REVISION/TASK.json``. Such a file has the scores of each split and subset (language); the
score of a task is the mean of ``main_score`` over the subsets of one split, as in MTEB.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from equipoise.checks.base import join_names, pluralize
from equipoise.domains.leaderboard.data import ScoreTable
from equipoise.errors import DuplicateError, EquipoiseError, InputError, ParameterError, UnknownNameError
from equipoise.io.text import open_text

if TYPE_CHECKING:
    from equipoise.runs.manifest import Manifest
    from equipoise.stats.result import Result

MODEL_META = "model_meta.json"
MANIFEST = "manifest.json"
DEFAULT_SPLIT = "test"
MTEB_SUFFIX = ".json"


@dataclass(frozen=True, slots=True)
class TaskScores:
    """The scores of one result file by split and subset."""

    model: str
    revision: str
    task: str
    scores: Mapping[str, Mapping[str, float]]


def read_folder(folder: Path, *, metric: str | None, split: str | None, subsets: Sequence[str]) -> ScoreTable:
    """The scores of a folder: run directories if there are any, else results of MTEB."""
    names = [name for _, _, files in os.walk(folder) for name in files]
    if MANIFEST in names:
        if split is not None or subsets:
            raise ParameterError(
                f"{folder} holds run directories, which have no splits or subsets",
                hint="leave out --split and --subset",
            )
        return _read_runs(folder, metric)
    if metric is not None:
        raise ParameterError(f"{folder} holds results of MTEB, whose score is main_score", hint="leave out --metric")
    return _read_mteb(folder, split, subsets)


# Results of MTEB.


def _read_mteb(folder: Path, split: str | None, subsets: Sequence[str]) -> ScoreTable:
    results: list[TaskScores] = []
    problems: list[str] = []
    for path in _json_files(folder):
        try:
            results.append(_task_scores(path, folder))
        except InputError as error:
            problems.append(error.message)
    if not results:
        reason = f": {problems[0]}" if problems else ""
        raise InputError(
            f"{folder} holds no results of MTEB and no run directory{reason}",
            hint="results of MTEB are MODEL/REVISION/TASK.json; runs are written by eq score -o",
        )
    results, notes = _one_revision(results)
    cells, more_notes = _cells(results, split, subsets)
    if not cells:
        known = sorted({name for result in results for name in result.scores})
        raise UnknownNameError.of("split", split or "", known, more=f"the splits are {', '.join(known)}")
    table = ScoreTable.from_units(str(folder), {key: {"": score} for key, score in cells.items()})
    return replace(table, unreadable=tuple(problems), notes=(*notes, *more_notes))


def _json_files(folder: Path) -> Iterator[Path]:
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (Path(place) / name for name in sorted(files) if name.endswith(MTEB_SUFFIX) and name != MODEL_META)


def _task_scores(path: Path, folder: Path) -> TaskScores:
    """One result file; an error says what is wrong with it."""
    # NaN is allowed: MTEB writes it for a score that could not be computed.
    file = open_text(path)
    try:
        content = json.loads(file.text)
        scores = {
            str(split): {str(entry.get("hf_subset", "default")): _score(entry) for entry in entries}
            for split, entries in content["scores"].items()
        }
        task = str(content["task_name"])
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not JSON: {error}") from error
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path} is no result of MTEB: it has no task_name, scores and main_score") from error
    model, revision = _model_of(path, folder)
    return TaskScores(model, revision, task, scores)


def _score(entry: Mapping[str, Any]) -> float:
    score = entry["main_score"]
    return float("nan") if score is None else float(score)


def _model_of(path: Path, folder: Path) -> tuple[str, str]:
    """The name of the model and its revision, from ``model_meta.json`` or the folders above the file."""
    parts = (folder.absolute().name, *path.relative_to(folder).parts)
    meta = path.parent / MODEL_META
    revision = parts[-2]
    if meta.is_file():
        try:
            content = json.loads(open_text(meta).text)
            return str(content["name"]), str(content.get("revision") or revision)
        except (InputError, ValueError, KeyError, TypeError, AttributeError):
            pass  # the folder names are enough
    model, revision = (parts[-3], revision) if len(parts) > 3 else (parts[-2], "")
    return model.replace("__", "/", 1), revision


def _one_revision(results: Sequence[TaskScores]) -> tuple[list[TaskScores], list[str]]:
    """The results of one revision per model: the one with the most tasks."""
    tasks: dict[str, dict[str, int]] = {}
    for result in results:
        revisions = tasks.setdefault(result.model, {})
        revisions[result.revision] = revisions.get(result.revision, 0) + 1
    kept = {model: max(revisions, key=lambda name: (revisions[name], name)) for model, revisions in tasks.items()}
    several = [f"{model} ({kept[model]})" for model, revisions in tasks.items() if len(revisions) > 1]
    notes = [f"of models with several revisions the one with the most tasks is used: {join_names(several)}"]
    return [result for result in results if kept[result.model] == result.revision], notes if several else []


def _cells(
    results: Sequence[TaskScores], split: str | None, subsets: Sequence[str]
) -> tuple[dict[tuple[str, str], float], list[str]]:
    """The score of each model on each task, over the subsets that all models with the task share."""
    by_task: dict[str, dict[str, dict[str, float]]] = {}
    for result in results:
        name = split or (DEFAULT_SPLIT if DEFAULT_SPLIT in result.scores else min(result.scores, default=""))
        scores = {
            subset: score
            for subset, score in result.scores.get(name, {}).items()
            if isfinite(score) and (not subsets or subset in subsets)
        }
        of_task = by_task.setdefault(result.task, {})
        if result.model in of_task:
            raise DuplicateError(
                f"{result.model} has two results of {result.task}", hint="keep one file per model and task"
            )
        if scores:
            of_task[result.model] = scores
    cells, reduced = {}, []
    for task, of_task in by_task.items():
        if not of_task:
            continue
        shared = set.intersection(*(set(scores) for scores in of_task.values()))
        if any(len(scores) > len(shared) for scores in of_task.values()):
            reduced.append(task)
        for model, scores in of_task.items():
            if shared:
                cells[model, task] = fmean(scores[subset] for subset in sorted(shared))
    notes = []
    if reduced:
        tasks = pluralize(len(reduced), "task")
        notes.append(f"{tasks} with different subsets per model use the shared subsets: {join_names(reduced)}")
    return cells, notes


# Run directories: one system on one data set each.


def _read_runs(folder: Path, metric: str | None) -> ScoreTable:
    from equipoise.runs.store import load_run
    from equipoise.types import Direction

    cells: dict[tuple[str, str], dict[str, float]] = {}
    metrics: dict[str, str] = {}
    lower: set[str] = set()
    problems: list[str] = []
    for path in sorted(place.parent for place in folder.rglob(MANIFEST)):
        try:
            run = load_run(path, evidence=False)
        except EquipoiseError as error:
            problems.append(error.message)
            continue
        result = run.result
        dataset = _dataset_name(run.manifest) or path.parent.name
        name = metric or metrics.setdefault(dataset, result.names[0])
        if name not in result.estimates:
            raise UnknownNameError.of(
                "metric", name, result.estimates, more=f"{path} has {', '.join(result.estimates) or 'none'}"
            )
        if (result.system, dataset) in cells:
            raise DuplicateError(
                f"{folder} has two runs of {result.system} on {dataset}", hint="name a folder with one run of each"
            )
        cells[result.system, dataset] = _unit_scores(result, name)
        lower |= {dataset} if result.estimates[name].better == Direction.DOWN else set()
    cells = {key: scores for key, scores in cells.items() if scores}
    if not cells:
        reason = problems[0] if problems else "no run has a score"
        raise InputError(f"{folder} has no readable run directory: {reason}", hint="run the command again")
    notes = [f"metrics: {', '.join(f'{dataset} {name}' for dataset, name in metrics.items())}"] if metrics else []
    table = ScoreTable.from_units(str(folder), cells)
    return replace(table, lower=frozenset(lower), unreadable=tuple(problems), notes=(*table.notes, *notes))


def _dataset_name(manifest: Manifest) -> str:
    """The name that ``eq bench`` gave the data set, or the names of its files."""
    named = manifest.parameters.get("dataset")
    return str(named) if named else " + ".join(Path(source).name for source in manifest.datasets)


def _unit_scores(result: Result, metric: str) -> dict[str, float]:
    """The defined scores by unit; the score under ``""`` if the metric has no per-unit values."""
    if metric not in result.per_unit:
        value = result.estimates[metric].value
        return {"": value} if isfinite(value) else {}
    pairs = zip(result.unit_ids.tolist(), result.per_unit[metric].tolist(), strict=True)
    return {str(unit): value for unit, value in pairs if isfinite(value)}
