"""Experiment trackers: the scores of a command as metrics in MLflow, Weights & Biases or TensorBoard."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from typing import Any

from equipoise.errors import MissingExtraError, UnknownNameError
from equipoise.types import require_extra

PROJECT = "equipoise"
"""The experiment or project that is used unless the tracker is configured by its environment variables."""


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
    """
    if tracker not in TRACKERS:
        raise UnknownNameError.of("tracker", tracker, TRACKERS, more=f"the trackers are {', '.join(TRACKERS)}")
    TRACKERS[tracker](run_name, dict(scores), {key: str(value) for key, value in (parameters or {}).items()})


def _log_to_mlflow(run_name: str, scores: dict[str, float], parameters: dict[str, str]) -> None:
    import os

    mlflow = _engine("mlflow")
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


def _log_to_wandb(run_name: str, scores: dict[str, float], parameters: dict[str, str]) -> None:
    import os

    wandb = _engine("wandb")
    project = None if os.environ.get("WANDB_PROJECT") else PROJECT
    with wandb.init(project=project, name=run_name, config=parameters, reinit="create_new") as run:
        run.log(scores)


def _log_to_tensorboard(run_name: str, scores: dict[str, float], parameters: dict[str, str]) -> None:
    import os
    from pathlib import Path

    writers = _engine("tensorboard.summary.writer.event_file_writer", package="tensorboard")
    events = _engine("tensorboard.compat.proto.event_pb2", package="tensorboard")
    summaries = _engine("tensorboard.compat.proto.summary_pb2", package="tensorboard")
    folder = Path(os.environ.get("TENSORBOARD_LOGDIR") or "runs") / re.sub(r"[^\w.-]+", "_", run_name)
    writer = writers.EventFileWriter(str(folder))
    values = [summaries.Summary.Value(tag=name, simple_value=value) for name, value in scores.items()]
    writer.add_event(events.Event(wall_time=time.time(), step=0, summary=summaries.Summary(value=values)))
    writer.close()


def _engine(module: str, *, package: str = "") -> Any:
    try:
        return require_extra(module, extra="trackers")
    except MissingExtraError as error:
        name = package or module
        raise MissingExtraError(
            f"logging needs the package {name}, which is not installed", hint=f"pip install {name}"
        ) from error


TRACKERS: dict[str, Callable[[str, dict[str, float], dict[str, str]], None]] = {
    "mlflow": _log_to_mlflow,
    "wandb": _log_to_wandb,
    "tensorboard": _log_to_tensorboard,
}
"""The trackers by the name that ``--log`` takes."""
