"""A full disk is an error with exit status 3, and finished work is kept for the next attempt."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

import equipoise
from equipoise.cli.main import cli
from equipoise.errors import PartialError
from equipoise.geometry.sharded_search import nearest_in_shards
from equipoise.geometry.shards import open_shards, write_shards
from equipoise.models.vector_cache import VectorCache
from equipoise.runs.executors import LocalExecutor
from equipoise.runs.run_folder import load_run
from equipoise.runs.runner import resumable_map
from fair_sample import document, pairs
from marked import marked
from toy_ontology import obo

KIB = 1024
DISK_HINT = "free disk space: finished results are kept, and the same command resumes"
VECTORS = np.random.default_rng(0).normal(size=(3000, 64)).astype(np.float32)


@pytest.fixture
@marked(pytest.mark.slow)
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 16 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if os.name != "posix" or shutil.which("mount") is None:
        pytest.skip("mounting a disk needs POSIX and mount")
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("mounting a disk needs root privileges")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def eq(*arguments: str) -> Result:
    return CliRunner().invoke(cli, list(arguments), prog_name="eq")


def fill_disk(disk: Path, free: int) -> Path:
    """Fill the disk except for a number of bytes."""
    filler = disk / "filler"
    status = os.statvfs(disk)
    filler.write_bytes(bytes(status.f_bavail * status.f_frsize - free))
    return filler


def test_complete_shards_are_kept(disk: Path) -> None:
    fill_disk(disk, 600 * KIB)
    with pytest.raises(PartialError, match="cannot take shard 2: the disk is full") as error:
        write_shards(disk / "shards", [VECTORS], rows=1000)
    assert "2 shards" in error.value.hint
    shards = open_shards(disk / "shards")
    rows_read = np.concatenate([rows for part in shards.parts for _, rows in part.windows()])
    assert np.array_equal(rows_read, VECTORS[:2000])


def test_results_of_finished_shards_are_kept(disk: Path, tmp_path: Path) -> None:
    shards = write_shards(tmp_path / "shards", [VECTORS], rows=500)
    filler = fill_disk(disk, 150 * KIB)
    results_folder = disk / "kept"
    with pytest.raises(PartialError) as error:
        nearest_in_shards(VECTORS[:400], shards, 10, map_function=resumable_map(LocalExecutor(), results_folder))
    assert error.value.code == "E700"
    finished = {file.name: file.stat().st_mtime_ns for file in results_folder.iterdir()}
    assert 1 <= len(finished) < 6
    filler.unlink()
    matches = nearest_in_shards(VECTORS[:400], shards, 10, map_function=resumable_map(LocalExecutor(), results_folder))
    assert matches.scores.tobytes() == nearest_in_shards(VECTORS[:400], shards, 10).scores.tobytes()
    assert finished.items() <= {file.name: file.stat().st_mtime_ns for file in results_folder.iterdir()}.items()


def test_embedded_trees_are_kept(disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [f"n{node},n{(node - 1) // 3}\n" for node in range(1, 120)]
    (tmp_path / "tree.csv").write_text("id,parent\nn0,\n" + "".join(rows))
    arguments = ["accounts", "evaluate", "--tree", "tree.csv", "--geometry", "euclidean", "--dims", "2", "3", "4"]
    arguments += [
        "--learning-rates",
        "0.3",
        "--epochs",
        "2",
        "--n-resamples",
        "40",
        "-o",
        str(disk / "results"),
        "--json",
    ]
    filler = fill_disk(disk, 150 * KIB)
    result = eq(*arguments)
    assert_disk_full(result)
    assert ".part" not in result.stderr
    assert load_run(disk / "results" / "runs" / "euclidean-2").manifest.system == "euclidean-2"
    filler.unlink()
    second = eq(*arguments)
    assert second.exit_code == 0, second.output
    assert "euclidean-2" in json.loads(second.stdout)["resumed"]


def test_the_vectors_of_an_unwritten_index_are_in_the_cache(
    disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EQUIPOISE_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    terms = "".join(f"\n[Term]\nid: T:{number}\nname: term{number}\n" for number in range(400))
    obo(tmp_path / "many.obo", terms)
    arguments = ["phenotypes", "index", "build", "--ontology", "many.obo", "--index-dir", str(disk), "--json"]
    arguments += ["--model-name", "py:cluster_cells.Plain,identity=plain"]
    filler = fill_disk(disk, 16 * KIB)
    result = eq(*arguments)
    assert_disk_full(result)
    assert [path.name for path in disk.iterdir()] == ["filler"]
    filler.unlink()
    second = json.loads(eq(*arguments).stdout)["indexes"][0]["report"]
    assert (second["from_cache"], second["embedded"]) == (400, 0)
    VectorCache.default().close()


def test_compared_models_are_kept(disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = document()
    (tmp_path / "document.md").write_text(text)
    (tmp_path / "fixture.json").write_text(json.dumps(pairs(text)))
    arguments = ["fair", "compare", "--doc", "document.md", "--qa", "fixture.json", "--tokenizer", "words"]
    arguments += [
        "--chunk-sizes",
        "16",
        "--overlaps",
        "0",
        "--top-ks",
        "1",
        "--models",
        "bm25:",
        "hash",
        "tfidf:",
    ]
    arguments += ["-o", str(disk / "results"), "--json"]
    filler = fill_disk(disk, 90 * KIB)
    assert_disk_full(eq(*arguments))
    assert load_run(disk / "results" / "runs" / "bm25").manifest.system == "bm25"
    filler.unlink()
    second = eq(*arguments)
    assert second.exit_code == 0, second.output
    assert "bm25: loaded from" in second.stderr


def assert_disk_full(result: Result) -> None:
    """The error for a full disk, with the exit status of a partial result."""
    assert result.exit_code == 3, result.output
    assert "the disk is full" in result.stderr
    assert DISK_HINT in result.stderr
    assert "Traceback" not in result.output


@pytest.mark.parametrize("suffix", [".npy", ".npz"])
def test_embedded_vectors_are_kept_and_embedding_resumes(disk: Path, tmp_path: Path, suffix: str) -> None:
    texts = tmp_path / "texts.txt"
    texts.write_text("".join(f"text {number}\n" for number in range(5000)))
    arguments = ("embed", str(texts), "--model", "hash,dim=64", "--no-cache", "-o", str(disk / f"v{suffix}"))
    filler = fill_disk(disk, 800 * KIB)
    first = eq(*arguments, "--json")
    assert first.exit_code == 3
    error = json.loads(first.stderr.splitlines()[-1])["error"]
    assert (error["code"], error["hint"]) == ("E700", DISK_HINT)
    assert not (disk / f"v{suffix}").exists()
    filler.unlink()
    second = eq(*arguments, "--json")
    assert second.exit_code == 0, second.stderr
    assert json.loads(second.stdout)["resumed"] == 2048
    assert sorted(path.name for path in disk.iterdir()) == [f"v{suffix}"]


@pytest.mark.slow
def test_a_limit_on_the_size_of_files_has_a_hint(tmp_path: Path) -> None:
    """As with ``ulimit -f``; Python ignores the signal, so the write fails."""
    resource = pytest.importorskip("resource")
    (tmp_path / "texts.txt").write_text("".join(f"text {number}\n" for number in range(5000)))
    arguments = ("embed", "texts.txt", "--model", "hash,dim=64", "--no-cache", "-o", "v.npy", "--json")
    completed = subprocess.run(
        [sys.executable, "-m", "equipoise", *arguments],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(equipoise.__file__).parents[1])},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (600 * KIB, 600 * KIB)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert completed.returncode == 3
    error = json.loads(completed.stderr.splitlines()[-1])["error"]
    assert (error["code"], error["hint"]) == ("E700", DISK_HINT)
