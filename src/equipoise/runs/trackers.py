"""Experiment trackers: the scores of a command as metrics in MLflow, Weights & Biases or TensorBoard."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from math import isfinite
from typing import Any

from equipoise.errors import MissingExtraError, UnknownNameError
from equipoise.types import require_extra

PROJECT = "equipoise"
"""The experiment or project that is used unless the tracker is configured by its environment variables."""


Scores = dict[str, float]
"""Numbers by name."""

_CONTAINERS = ("estimates", "result", "systems", "models", "datasets", "scores", "comparison", "all")
"""Keys of results that say nothing about a score; all other keys are part of its name."""
_NAMES = ("system", "name", "model_spec", "category")
"""Keys whose value names the results of an item."""


def flat_scores(content: Any) -> Scores:
    """Every estimate in the JSON data of a command, as numbers by name, with the limits of its interval.

    >>> estimate = {"metric": "MRR", "value": 0.5, "n": 9, "interval": {"low": 0.4, "high": 0.6}}
    >>> flat_scores({"systems": [{"system": "bm25", "estimates": [estimate]}]})
    {'bm25/MRR': 0.5, 'bm25/MRR_low': 0.4, 'bm25/MRR_high': 0.6}
    """
    return dict(_named_scores(content, ()))


def _named_scores(content: Any, path: tuple[str, ...]) -> Iterator[tuple[str, float]]:
    if isinstance(content, Mapping):
        if {"metric", "value", "interval"} <= content.keys():
            yield from _estimate_scores(content, path)
            return
        path = _extended(path, next((content[key] for key in _NAMES if isinstance(content.get(key), str)), ""))
        for key, value in content.items():
            if key != "slices":
                yield from _named_scores(value, path if key in _CONTAINERS else _extended(path, str(key)))
    elif isinstance(content, list | tuple):
        for item in content:
            yield from _named_scores(item, path)


def _estimate_scores(estimate: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[tuple[str, float]]:
    name = "/".join(_extended(path, estimate["metric"]))
    interval = estimate["interval"] or {}
    for ending, value in (("", estimate["value"]), *((f"_{side}", interval.get(side)) for side in ("low", "high"))):
        if value is not None and isfinite(value):
            yield name + ending, float(value)


def _extended(path: tuple[str, ...], part: str) -> tuple[str, ...]:
    return path if not part or part in path else (*path, part)


def check_installed(tracker: str) -> None:
    """Raise an error if the package of a tracker is missing, without importing it."""
    if find_spec(tracker) is None:
        raise MissingExtraError(
            f"logging needs the package {tracker}, which is not installed", hint=f"pip install {tracker}"
        )


def log_scores(
    tracker: str, run_name: str, scores: Mapping[str, float], parameters: Mapping[str, Any] | None = None
) -> None:
    """Write scores to a tracker as one run.

    The address, the credentials and the offline mode are those of the tracker's own environment variables, such as
    ``MLFLOW_TRACKING_URI``, ``WANDB_MODE`` and, for TensorBoard, ``TENSORBOARD_LOGDIR`` (default: runs).

    Parameters
    ----------
    tracker
        ``mlflow``, ``wandb`` or ``tensorboard``.
    run_name
        The name of the run.
    scores
        Numbers by name, such as ``result.to_dict(flat=True)``.
    parameters
        Settings that describe the run.

    Returns
    -------
    None
        The run is written to the tracker.

    Examples
    --------
    >>> log_scores("mlflow", "first run", {"nDCG@10": 0.61}, {"model": "minilm"})  # doctest: +SKIP
    """
    if tracker not in TRACKERS:
        raise UnknownNameError.of("tracker", tracker, TRACKERS, more=f"the trackers are {', '.join(TRACKERS)}")
    check_installed(tracker)
    TRACKERS[tracker](run_name, dict(scores), {key: str(value) for key, value in (parameters or {}).items()})


def _log_to_mlflow(run_name: str, scores: Scores, parameters: dict[str, str]) -> None:
    import os

    mlflow = require_extra("mlflow", extra="trackers")
    if not os.environ.get("MLFLOW_EXPERIMENT_NAME") and not os.environ.get("MLFLOW_EXPERIMENT_ID"):
        mlflow.set_experiment(PROJECT)
    with mlflow.start_run(run_name=run_name, nested=mlflow.active_run() is not None):
        mlflow.log_params({_mlflow_name(key): value[:500] for key, value in parameters.items()})
        mlflow.log_metrics({_mlflow_name(name): value for name, value in scores.items()})


def _mlflow_name(name: str) -> str:
    """The name with the characters that MLflow allows.

    >>> _mlflow_name("minilm/nDCG@10"), _mlflow_name("MAP(norm=R)@5")
    ('minilm/nDCG_at_10', 'MAP_norm_R_at_5')
    """
    return re.sub(r"_+", "_", re.sub(r"[^\w\-. :/]", "_", name.replace("@", "_at_"))).strip("_")


def _log_to_wandb(run_name: str, scores: Scores, parameters: dict[str, str]) -> None:
    import os

    wandb = require_extra("wandb", extra="trackers")
    project = None if os.environ.get("WANDB_PROJECT") else PROJECT
    with wandb.init(project=project, name=run_name, config=parameters, reinit="create_new") as run:
        run.log(scores)


def _log_to_tensorboard(run_name: str, scores: Scores, parameters: dict[str, str]) -> None:
    import os
    from pathlib import Path

    writers = require_extra("tensorboard.summary.writer.event_file_writer", extra="trackers")
    events = require_extra("tensorboard.compat.proto.event_pb2", extra="trackers")
    summaries = require_extra("tensorboard.compat.proto.summary_pb2", extra="trackers")
    folder = Path(os.environ.get("TENSORBOARD_LOGDIR") or "runs") / re.sub(r"[^\w.-]+", "_", run_name)
    writer = writers.EventFileWriter(str(folder))
    values = [summaries.Summary.Value(tag=name, simple_value=value) for name, value in scores.items()]
    writer.add_event(events.Event(wall_time=time.time(), step=0, summary=summaries.Summary(value=values)))
    writer.close()


TRACKERS: dict[str, Callable[[str, Scores, dict[str, str]], None]] = {
    "mlflow": _log_to_mlflow,
    "wandb": _log_to_wandb,
    "tensorboard": _log_to_tensorboard,
}
"""The trackers by the name that ``--log`` takes."""
