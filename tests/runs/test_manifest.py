"""Manifests: the provenance of a run, without secrets."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest

from equipoise.errors import InputError, StoreError
from equipoise.runs.manifest import SCHEMA, Manifest, Status, redact_secrets
from equipoise.runs.unit_table import json_text


def test_files_are_identified_by_their_sha256(tmp_path: Path) -> None:
    truth, run = tmp_path / "truth.qrels", tmp_path / "run.trec"
    truth.write_bytes(b"q 0 a 1\n")
    run.write_bytes(b"q Q0 a 1 0.5 t\n")
    manifest = Manifest.start("bm25", truth=[truth], inputs=[run, "-"])
    assert manifest.datasets == {str(truth): hashlib.sha256(b"q 0 a 1\n").hexdigest()}
    assert manifest.inputs == {str(run): hashlib.sha256(run.read_bytes()).hexdigest(), "-": None}


def test_a_missing_file_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        Manifest.start("bm25", inputs=[tmp_path / "none"])
    assert error.value.code == "E200"


def test_a_run_is_partial_until_it_is_finished() -> None:
    started = Manifest.start("bm25")
    assert not started.complete
    assert "bm25 is partial" in started.caution
    finished = started.finish()
    assert finished.complete
    assert finished.caution == ""
    assert started.started <= finished.finished
    assert finished.finish("failed", reason="no memory").caution == "the run of bm25 is failed: no memory"


def test_manifests_round_trip() -> None:
    manifest = Manifest.start("bm25", command=["eq", "score"], seed=3, settings={"confidence_level": 0.9}).finish()
    assert Manifest.from_dict(json.loads(json_text(manifest.to_dict()))) == manifest


def test_the_environment_is_not_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EQUIPOISE_TEST_MARK", "mark-that-must-not-travel")
    text = json_text(Manifest.start("bm25", command=["eq"]).to_dict())
    assert "mark-that-must-not-travel" not in text
    assert os.environ["PATH"] not in text


@pytest.mark.parametrize(
    ("command", "stored"),
    [
        (["--api-key", "s3cr3t", "--seed", "1"], ("--api-key", "***", "--seed", "1")),
        (["--api-key=s3cr3t"], ("--api-key=***",)),
        (["--hub_token", "s3cr3t"], ("--hub_token", "***")),
        (["--hub-token", "-s3cr3t", "--seed", "1"], ("--hub-token", "***", "--seed", "1")),
        (["--password", "--token", "s3cr3t"], ("--password", "***", "***")),
        (["--monkey", "kong", "--max-tokens", "9"], ("--monkey", "kong", "--max-tokens", "9")),
        (["OPENAI_API_KEY=s3cr3t", "--apikey", "s3cr3t"], ("OPENAI_API_KEY=***", "--apikey", "***")),
        (["https://me:s3cr3t@host/db?a=b"], ("https://***@host/db?a=b",)),
        (["mail@host", "a://b/c@d"], ("mail@host", "a://b/c@d")),
        (["--key-file", "a.pem", "runs/key"], ("--key-file", "a.pem", "runs/key")),
        ([], ()),
    ],
)
def test_values_of_secret_options_are_redacted(command: list[str], stored: tuple[str, ...]) -> None:
    assert redact_secrets(command) == stored


def test_a_newer_schema_is_an_error_with_an_upgrade_hint() -> None:
    content = Manifest("bm25").to_dict() | {"schema": SCHEMA + 1}
    with pytest.raises(StoreError, match=f"follows schema {SCHEMA + 1}") as error:
        Manifest.from_dict(content, source="runs/a/manifest.json")
    assert "upgrade" in error.value.hint


@pytest.mark.parametrize(
    ("content", "expected_text"),
    [
        ([], "has no schema"),
        ({}, "has no schema"),
        ({"schema": "1"}, "has no schema"),
        ({"schema": True}, "has no schema"),
        ({"schema": 0}, "follows schema 0"),
        ({"schema": SCHEMA}, "has no valid system"),
        (Manifest("x").to_dict() | {"units": "3"}, "has no valid units"),
        (Manifest("x").to_dict() | {"units": -1}, "has no valid units"),
        (Manifest("x").to_dict() | {"status": "done"}, "has the status 'done'"),
        (Manifest("x").to_dict() | {"evidence": "ranking"}, "has no valid evidence"),
    ],
)
def test_invalid_content_is_an_error(content: object, expected_text: str) -> None:
    with pytest.raises(StoreError, match=expected_text):
        Manifest.from_dict(content)


def test_unknown_fields_are_ignored() -> None:
    manifest = Manifest("bm25", status=Status.COMPLETE)
    assert Manifest.from_dict(manifest.to_dict() | {"engine": "ray"}) == manifest
