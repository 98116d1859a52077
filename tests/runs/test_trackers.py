"""Scores in real experiment trackers, in their offline modes, read back with the reader of each."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from equipoise.errors import UnknownNameError
from equipoise.runs.trackers import log_scores

SCORES = {"bm25/nDCG@10": 0.5, "bm25/nDCG@10_low": 0.25, "units": 12}


@pytest.fixture(autouse=True)
def _in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings(action="ignore"):
        yield


@pytest.mark.slow
@pytest.mark.engines("mlflow")
def test_mlflow_has_the_scores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "mlruns").as_uri())
    import mlflow

    mlflow.set_tracking_uri((tmp_path / "mlruns").as_uri())
    log_scores("mlflow", "first", SCORES, {"seed": 7})
    (run,) = mlflow.search_runs(experiment_names=["equipoise"], output_format="list")
    assert run.info.run_name == "first"
    assert run.data.metrics == {"bm25/nDCG_at_10": 0.5, "bm25/nDCG_at_10_low": 0.25, "units": 12}
    assert run.data.params["seed"] == "7"


@pytest.mark.slow
@pytest.mark.engines("wandb")
def test_wandb_has_the_scores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    # In a process of its own: its end is when the file is complete.
    program = f"from equipoise.runs.trackers import log_scores; log_scores('wandb', 'first', {SCORES}, {{'seed': 7}})"
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
    from wandb.proto import wandb_internal_pb2

    (file,) = tmp_path.rglob("*.wandb")
    logged = {}
    for data in wandb_records(file.read_bytes()):
        record = wandb_internal_pb2.Record()
        record.ParseFromString(data)
        logged |= {(item.key or "/".join(item.nested_key)): json.loads(item.value_json) for item in record.history.item}
    assert {name: logged[name] for name in SCORES} == SCORES


def wandb_records(data: bytes) -> list[bytes]:
    """The records of an offline file of wandb: LevelDB's log format after a header of 7 bytes."""
    block, header = 32768, 7
    records, parts, place = [], b"", header
    while place + header <= len(data):
        if block - place % block < header:
            place += block - place % block
            continue
        length, kind = int.from_bytes(data[place + 4 : place + 6], "little"), data[place + 6]
        parts += data[place + header : place + header + length]
        place += header + length
        if kind in (1, 4):  # a full record, or the last part of one
            records.append(parts)
            parts = b""
    return records


@pytest.mark.slow
@pytest.mark.engines("tensorboard")
def test_tensorboard_has_the_scores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENSORBOARD_LOGDIR", str(tmp_path / "logs"))
    log_scores("tensorboard", "first run", SCORES)
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(tmp_path / "logs" / "first_run"))
    events.Reload()
    assert {name: events.Scalars(name)[0].value for name in events.Tags()["scalars"]} == SCORES


def test_an_unknown_tracker_is_an_error() -> None:
    with pytest.raises(UnknownNameError):
        log_scores("excel", "first", SCORES)
