"""A disk that fills: a sentence, exit code 3, and everything that was finished is there for the next try."""

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
from equipoise.models.cache import VectorCache
from equipoise.runs.executors import LocalExecutor
from equipoise.runs.run_folder import load_run
from equipoise.runs.runner import resumable_map
from fair_sample import document, pairs
from marked import marked
from toy_ontology import obo

KIB = 1024
ROOM = "free disk space: finished results are kept, and the same command resumes"
VECTORS = np.random.default_rng(0).normal(size=(3000, 64)).astype(np.float32)


@pytest.fixture
@marked(pytest.mark.slow)
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 16 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if os.name != "posix" or shutil.which("mount") is None:
        pytest.skip("disks are mounted otherwise here")
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if made.returncode:
        pytest.skip("only an administrator may mount a small disk")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def eq(*words: str) -> Result:
    return CliRunner().invoke(cli, list(words), prog_name="eq")


def leave(disk: Path, free: int) -> Path:
    """Fill the disk up to so many bytes."""
    filler = disk / "filler"
    status = os.statvfs(disk)
    filler.write_bytes(bytes(status.f_bavail * status.f_frsize - free))
    return filler


def test_shards_that_are_whole_stay(disk: Path) -> None:
    leave(disk, 600 * KIB)
    with pytest.raises(PartialError, match="cannot take shard 2: the disk is full") as caught:
        write_shards(disk / "shards", [VECTORS], rows=1000)
    assert "2 shards" in caught.value.hint
    kept = open_shards(disk / "shards")
    found = np.concatenate([rows for part in kept.parts for _, rows in part.windows()])
    assert np.array_equal(found, VECTORS[:2000])


def test_answers_of_shards_that_are_finished_stay(disk: Path, tmp_path: Path) -> None:
    shards = write_shards(tmp_path / "shards", [VECTORS], rows=500)
    filler = leave(disk, 150 * KIB)
    kept = disk / "kept"
    with pytest.raises(PartialError, match="the disk is full"):
        nearest_in_shards(VECTORS[:400], shards, 10, map_function=resumable_map(LocalExecutor(), kept))
    finished = {file.name: file.stat().st_mtime_ns for file in kept.iterdir()}
    assert 1 <= len(finished) < 6
    filler.unlink()
    found = nearest_in_shards(VECTORS[:400], shards, 10, map_function=resumable_map(LocalExecutor(), kept))
    assert found.scores.tobytes() == nearest_in_shards(VECTORS[:400], shards, 10).scores.tobytes()
    assert finished.items() <= {file.name: file.stat().st_mtime_ns for file in kept.iterdir()}.items()


def test_trees_that_are_embedded_stay(disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [f"n{node},n{(node - 1) // 3}\n" for node in range(1, 120)]
    (tmp_path / "tree.csv").write_text("id,parent\nn0,\n" + "".join(rows))
    words = ["accounts", "evaluate", "--tree", "tree.csv", "--geometry", "euclidean", "--dims", "2", "3", "4"]
    words += ["--learning-rates", "0.3", "--epochs", "2", "--n-resamples", "40", "-o", str(disk / "results"), "--json"]
    filler = leave(disk, 150 * KIB)
    ended = eq(*words)
    refused(ended)
    assert ".part" not in ended.stderr
    assert load_run(disk / "results" / "runs" / "euclidean-2").manifest.system == "euclidean-2"
    filler.unlink()
    again = eq(*words)
    assert again.exit_code == 0, again.output
    assert "euclidean-2" in json.loads(again.stdout)["resumed"]


def test_an_index_that_has_no_room_leaves_its_vectors_in_the_cache(
    disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EQUIPOISE_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    terms = "".join(f"\n[Term]\nid: T:{number}\nname: term{number}\n" for number in range(400))
    obo(tmp_path / "many.obo", terms)
    words = ["phenotypes", "index", "build", "--ontology", "many.obo", "--index-dir", str(disk), "--json"]
    words += ["--model-name", "py:cluster_cells.Plain,identity=plain"]
    filler = leave(disk, 16 * KIB)
    ended = eq(*words)
    refused(ended)
    assert [path.name for path in disk.iterdir()] == ["filler"]
    filler.unlink()
    again = json.loads(eq(*words).stdout)["indexes"][0]["report"]
    assert (again["from_cache"], again["embedded"]) == (400, 0)
    VectorCache.default().close()


def test_models_that_were_compared_stay(disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = document()
    (tmp_path / "document.md").write_text(text)
    (tmp_path / "fixture.json").write_text(json.dumps(pairs(text)))
    words = ["fair", "compare", "--doc", "document.md", "--qa", "fixture.json", "--tokenizer", "words"]
    words += [
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
    words += ["-o", str(disk / "results"), "--json"]
    filler = leave(disk, 90 * KIB)
    refused(eq(*words))
    assert load_run(disk / "results" / "runs" / "bm25").manifest.system == "bm25"
    filler.unlink()
    again = eq(*words)
    assert again.exit_code == 0, again.output
    assert "bm25: loaded from" in again.stderr


def refused(ended: Result) -> None:
    """Said in a sentence, with the code for what is not finished."""
    assert ended.exit_code == 3, ended.output
    assert "the disk is full" in ended.stderr
    assert ROOM in ended.stderr
    assert "Traceback" not in ended.output


@pytest.mark.parametrize("suffix", [".npy", ".npz"])
def test_vectors_that_were_embedded_stay_and_embedding_goes_on(disk: Path, tmp_path: Path, suffix: str) -> None:
    texts = tmp_path / "texts.txt"
    texts.write_text("".join(f"text {number}\n" for number in range(5000)))
    words = ("embed", str(texts), "--model", "hash,dim=64", "--no-cache", "-o", str(disk / f"v{suffix}"))
    filler = leave(disk, 800 * KIB)
    failed = eq(*words, "--json")
    assert failed.exit_code == 3
    error = json.loads(failed.stderr.splitlines()[-1])["error"]
    assert (error["code"], error["hint"]) == ("E700", ROOM)
    assert not (disk / f"v{suffix}").exists()
    filler.unlink()
    again = eq(*words, "--json")
    assert again.exit_code == 0, again.stderr
    assert json.loads(again.stdout)["resumed"] == 2048
    assert sorted(each.name for each in disk.iterdir()) == [f"v{suffix}"]


@pytest.mark.slow
def test_a_limit_on_the_size_of_files_has_a_hint(tmp_path: Path) -> None:
    """As ``ulimit -f`` sets it; Python ignores the signal, so that the write fails."""
    resource = pytest.importorskip("resource")
    (tmp_path / "texts.txt").write_text("".join(f"text {number}\n" for number in range(5000)))
    words = ("embed", "texts.txt", "--model", "hash,dim=64", "--no-cache", "-o", "v.npy", "--json")
    done = subprocess.run(
        [sys.executable, "-m", "equipoise", *words],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(equipoise.__file__).parents[1])},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (600 * KIB, 600 * KIB)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 3
    error = json.loads(done.stderr.splitlines()[-1])["error"]
    assert (error["code"], error["hint"]) == ("E700", ROOM)
