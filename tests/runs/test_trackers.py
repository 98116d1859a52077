"""Scores in real experiment trackers in offline mode, read with the reader of each tracker."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from equipoise.cli.main import cli
from equipoise.errors import MissingExtraError, UnknownNameError
from equipoise.runs.trackers import check_installed, flat_scores, log_scores

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
    # In a separate process, because the file is complete only when the process exits.
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
    records, parts, offset = [], b"", header
    while offset + header <= len(data):
        if block - offset % block < header:
            offset += block - offset % block
            continue
        length, kind = int.from_bytes(data[offset + 4 : offset + 6], "little"), data[offset + 6]
        parts += data[offset + header : offset + header + length]
        offset += header + length
        if kind in (1, 4):  # a full record, or the last part of one
            records.append(parts)
            parts = b""
    return records


def tensorboard_scores(folder: Path) -> dict[str, float]:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder))
    events.Reload()
    return {name: events.Scalars(name)[0].value for name in events.Tags()["scalars"]}


@pytest.mark.slow
@pytest.mark.engines("tensorboard")
def test_tensorboard_has_the_scores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENSORBOARD_LOGDIR", str(tmp_path / "logs"))
    log_scores("tensorboard", "first run", SCORES)
    assert tensorboard_scores(tmp_path / "logs" / "first_run") == SCORES


def test_an_unknown_tracker_is_an_error() -> None:
    with pytest.raises(UnknownNameError):
        log_scores("excel", "first", SCORES)


def test_a_missing_package_is_an_error_with_the_install_command() -> None:
    with pytest.raises(MissingExtraError) as error:
        check_installed("tracker_that_is_not_installed")
    assert error.value.hint == "pip install tracker_that_is_not_installed"


def test_scores_are_named_by_system_and_part_and_slices_are_left_out() -> None:
    estimate = {"metric": "MRR", "value": 0.5, "n": 9, "interval": {"low": 0.25, "high": None}}
    undefined = {"metric": "HR@1", "value": None, "n": 0, "interval": {"low": None, "high": None}}
    content = {
        "system": "lstm",
        "all": {"estimates": [estimate, undefined]},
        "by_user": {"system": "lstm", "estimates": [estimate]},
        "slices": [{"slice": "hour", **estimate}],
        "comparison": {"estimates": {"bm25": {"MRR": estimate}}},
    }
    assert flat_scores(content) == {
        "lstm/MRR": 0.5,
        "lstm/MRR_low": 0.25,
        "lstm/by_user/MRR": 0.5,
        "lstm/by_user/MRR_low": 0.25,
        "lstm/bm25/MRR": 0.5,
        "lstm/bm25/MRR_low": 0.25,
    }


COMMANDS = {
    "places score": ("--logits", "logits.npy", "--targets", "targets.npy"),
    "fair compare": ("--doc", "bread.md", "--qa", "qa.json", "--models", "hash:", "tfidf:"),
}
"""Commands whose scores are logged through the JSON data, with quick inputs."""


@pytest.mark.slow
@pytest.mark.engines("tensorboard")
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_logs_the_estimates_of_its_json_data(command: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    np.save("logits.npy", rng.normal(size=(40, 5)))
    np.save("targets.npy", rng.integers(0, 5, size=40))
    Path("bread.md").write_text("Wild yeast leavens sourdough.\n\nRye is eaten in Finland.\n\nBaguettes are French.\n")
    questions = [("What leavens sourdough?", "wild yeast"), ("Where is rye eaten?", "Finland")]
    Path("qa.json").write_text(json.dumps([{"question": text, "answer": answer} for text, answer in questions]))
    result = CliRunner().invoke(cli, [*command.split(), *COMMANDS[command], "--json", "--log", "tensorboard"])
    assert result.exit_code == 0, result.output
    expected = flat_scores(json.loads(result.stdout))
    assert expected
    assert tensorboard_scores(tmp_path / "runs" / command.replace(" ", "_")) == pytest.approx(expected)


@pytest.mark.slow
@pytest.mark.engines("tensorboard")
def test_a_gate_logs_the_scores_of_the_run_and_whether_it_passed(tmp_path: Path) -> None:
    Path("t.qrels").write_text("".join(f"q{query} 0 d1 1\n" for query in range(8)))
    Path("a.trec").write_text("".join(f"q{query} Q0 d{query % 2} 1 1.0 a\n" for query in range(8)))
    run = CliRunner()
    assert run.invoke(cli, ["score", "a.trec", "--qrels", "t.qrels", "-m", "P@1", "-o", "out"]).exit_code == 0
    result = run.invoke(cli, ["gate", "out/a", "--require", "P@1>=0.9", "--log", "tensorboard"])
    assert result.exit_code == 1
    logged = tensorboard_scores(tmp_path / "runs" / "gate_a")
    assert (logged["P@1"], logged["passed"]) == (0.5, 0.0)
