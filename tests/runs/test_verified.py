"""Every reader of a run directory verifies the files against the hashes of the manifest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from equipoise.cli.main import cli
from equipoise.config import StatsConfig
from equipoise.errors import ChangedFileError, EquipoiseError, StoreError
from equipoise.evidence.ranking import Ranking
from equipoise.runs.evaluate import evaluate
from equipoise.runs.manifest import Manifest, read_manifest
from equipoise.runs.run_folder import load_evidence, load_run, save_run
from equipoise.runs.unit_table import UnitContent
from equipoise.view.results import summarise_run
from stored_runs import bread_runs, rewrite, tuning

FILES = ("result.json", "cases.jsonl", "evidence.npz", "details.jsonl", "tuning.json")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run directory with every file except the errors."""
    return store(tmp_path / "run")


def store(path: Path, system: str = "bm25", ranks: tuple[int, ...] = (1, 3, 2, 9)) -> Path:
    names = [f"q{index}" for index in range(len(ranks))]
    result = evaluate(
        Ranking.from_ranks(list(ranks), candidates=20, unit_ids=names),
        "MRR",
        system=system,
        config=StatsConfig(n_resamples=50),
    )
    details = {name: UnitContent(name) for name in names}
    return save_run(path, result, manifest=Manifest(system), details=details, tuning=tuning())


def edit(file: Path) -> None:
    """Change one byte without changing the length: a 1 becomes a 2, or the last byte is flipped."""
    data = file.read_bytes()
    index = data.find(b"1.0")
    changed = data[:-1] + bytes([data[-1] ^ 1]) if index < 0 else data[:index] + b"2" + data[index + 1 :]
    file.write_bytes(changed)


def test_the_manifest_has_the_sha256_of_every_other_file(run: Path) -> None:
    manifest = json.loads((run / "manifest.json").read_text())["files"]
    hashes = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in run.iterdir()}
    del hashes["manifest.json"]
    assert manifest == hashes
    assert set(FILES) == set(hashes)


@pytest.mark.parametrize("evidence", [True, False])
@pytest.mark.parametrize("name", FILES)
def test_a_changed_file_is_an_error_that_names_it(run: Path, name: str, evidence: bool) -> None:
    edit(run / name)
    with pytest.raises(ChangedFileError) as error:
        load_run(run, evidence=evidence)
    assert error.value.code == "E501"
    assert str(run / name) in error.value.message
    assert error.value.hint


@pytest.mark.parametrize("name", FILES)
def test_a_removed_file_is_an_error_that_names_it(run: Path, name: str) -> None:
    (run / name).unlink()
    with pytest.raises(StoreError, match=name):
        load_run(run)


def test_the_error_samples_are_verified(tmp_path: Path) -> None:
    from dataclasses import replace

    result = replace(load_run(store(tmp_path / "a")).result, errors={"MRR": np.array([0.1, -0.1])})
    path = save_run(tmp_path / "b", result, manifest=Manifest("bm25"))
    assert load_run(path).result.errors["MRR"].tolist() == [0.1, -0.1]
    edit(path / "errors.npz")
    with pytest.raises(ChangedFileError, match="errors"):
        load_run(path)


def test_details_changed_after_opening_are_an_error(run: Path) -> None:
    opened = load_run(run)
    edit(run / "details.jsonl")
    with pytest.raises(ChangedFileError):
        _ = opened.details


def test_a_file_that_the_manifest_does_not_list_is_not_read(tmp_path: Path) -> None:
    result = load_run(store(tmp_path / "a")).result
    path = save_run(tmp_path / "b", result, manifest=Manifest("bm25"))
    (path / "details.jsonl").write_bytes((tmp_path / "a" / "details.jsonl").read_bytes())
    (path / "tuning.json").write_bytes((tmp_path / "a" / "tuning.json").read_bytes())
    opened = load_run(path)
    assert (opened.details, opened.tuning) == ({}, None)


def test_a_manifest_without_hashes_is_an_error(run: Path) -> None:
    manifest = json.loads((run / "manifest.json").read_text())
    del manifest["files"]
    (run / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(StoreError) as error:
        load_run(run)
    assert error.value.code == "E500"
    assert error.value.hint


@pytest.mark.parametrize(
    ("reader", "name"),
    [(load_evidence, "evidence.npz"), (lambda path: summarise_run("key", path, "f"), "result.json")],
)
def test_reading_a_single_file_verifies_it(run: Path, reader: Callable[[Path], object], name: str) -> None:
    reader(run)
    edit(run / name)
    with pytest.raises(ChangedFileError, match=name):
        reader(run)


COMMANDS: dict[str, Callable[[Path, Path], list[str]]] = {
    "compare": lambda a, b: ["compare", str(a), str(b), "--primary", "MRR"],
    "export": lambda a, b: ["export", str(a), "--to", "md"],
    "export units": lambda a, b: ["export", str(a), "--to", "csv", "--units"],
    "gate": lambda a, b: ["gate", str(a), "--require", "MRR>=0.1"],
    "gate baseline": lambda a, b: ["gate", str(b), "--no-worse-than", str(a)],
    "report": lambda a, b: ["report", str(a), "-o", str(a.parent / "r.html"), "--no-charts"],
    "places compare": lambda a, b: ["places", "compare", *map(str, sorted(a.parent.glob("seeds/*/*")))],
    "extraction compare": lambda a, b: ["phenotypes", "extraction", "compare", str(a), str(b)],
}


@pytest.mark.parametrize("name", ["result.json", "cases.jsonl"])
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_that_reads_runs_fails_on_an_edited_file(tmp_path: Path, command: str, name: str) -> None:
    first, second = store(tmp_path / "one"), store(tmp_path / "other", "tfidf", (2, 3, 2, 9))
    changed = first
    if command == "places compare":
        for model in ("a", "b"):
            for seed in ("1", "2"):
                changed = store(tmp_path / "seeds" / model / seed, model)
    edit(changed / name)
    result = CliRunner().invoke(cli, COMMANDS[command](first, second))
    assert result.exit_code == 2, result.output
    assert "E501" in result.stderr
    assert name in result.stderr


def test_cases_set_to_one_do_not_change_a_verdict(tmp_path: Path) -> None:
    runs = bread_runs(tmp_path, tuned=False)
    file = runs[2].path / "cases.jsonl"
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    for line in lines:
        line["values"] = dict.fromkeys(line["values"], 1.0)
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    result = CliRunner().invoke(cli, ["compare", *(str(run.path) for run in runs)])
    assert (result.exit_code, "E501" in result.stderr) == (2, True)


@pytest.mark.parametrize(
    "change",
    [
        {"evidence": {}},
        {"evidence": {"kind": 1, "sha256": None}},
        {"files": {"result.json": 3}},
        {"files": []},
        {"seed": "x"},
        {"cost": {"dims": "many"}},
        {"datasets": {"truth": 7}},
        {"units": 3},
        {"versions": None},
    ],
)
def test_a_manifest_with_wrong_types_is_an_error(run: Path, change: dict[str, object]) -> None:
    manifest = json.loads((run / "manifest.json").read_text())
    (run / "manifest.json").write_text(json.dumps(manifest | change))
    with pytest.raises(EquipoiseError):
        load_run(run)


def test_a_run_rewritten_with_its_hashes_is_valid(run: Path) -> None:
    rewrite(run / "result.json", (run / "result.json").read_text().replace("bm25", "bm26"))
    assert load_run(run).result.system == "bm26"
    assert read_manifest(run).system == "bm25"
