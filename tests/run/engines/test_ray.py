"""Cells on a real Ray cluster: their values, their errors, and workers, nodes and drivers that are killed."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import equipoise
from cluster_cells import begun, complain, die, square, wait_for
from equipoise import run_fair_comparison
from equipoise.cli.program import cli
from equipoise.errors import EquipoiseError, InputError, MissingExtraError, ParameterError, PartialError
from equipoise.evidence.from_shards import ranking_from_shards
from equipoise.geometry.sharded import nearest_in_shards
from equipoise.run.engines import ray as engines
from equipoise.run.engines.local import LocalEngine
from equipoise.run.engines.ray import RayEngine
from equipoise.run.engines.ray_worker import Surroundings, answer
from fair_sample import SETTINGS, Counting, document, pairs

pytest.importorskip("ray")
pytestmark = pytest.mark.skipif(os.name != "posix", reason="kill -9 is of POSIX")

TEXT = document()
ASKED = pairs(TEXT)
MODELS = ["bm25:", "hash,dim=16", "sum:hash,dim=16+bm25:"]
WORDS = ["--chunk-sizes", "16", "24", "--overlaps", "0", "--top-ks", "1", "2", "--tokenizer", "words"]
TESTS = str(Path(__file__).parents[2])
SOURCE = str(Path(equipoise.__file__).parents[1])
SMALL = 80 * 2**20
Eq = Callable[..., subprocess.Popen[str]]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A head that runs nothing and two nodes with a core each; all of them are ended."""
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([SOURCE, TESTS]))
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.delenv("RAY_ADDRESS", raising=False)
        head = {"num_cpus": 0, "object_store_memory": SMALL, "include_dashboard": False}
        made = Cluster(initialize_head=True, head_node_args=head)
        try:
            for _ in range(2):
                made.add_node(num_cpus=1, object_store_memory=SMALL, wait=False)
            made.wait_for_nodes()
            yield made
        finally:
            made.shutdown()


@pytest.fixture(scope="module")
def engine(cluster: Any) -> Iterator[RayEngine]:
    cluster.wait_for_nodes()
    with RayEngine(cluster.address) as connected:
        yield connected


@pytest.fixture
def eq(tmp_path: Path) -> Iterator[Eq]:
    """The command in a process of its own, which does not outlive the test."""
    begun_here = []

    def start(*words: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "equipoise", *words],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([SOURCE, TESTS])},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        begun_here.append(process)
        return process

    yield start
    for process in begun_here:
        if process.poll() is None:
            process.kill()
            process.communicate()


def test_a_killed_driver_and_a_killed_node_lose_nothing_that_was_finished(
    cluster: Any, eq: Eq, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before this process connects: whoever is connected when a node dies gets its log printed."""
    (tmp_path / "document.md").write_text(TEXT)
    (tmp_path / "fixture.json").write_text(json.dumps(ASKED))
    words = ["fair", "compare", "--doc", "document.md", "--qa", "fixture.json", *WORDS, "--json"]
    words += ["--models", "bm25:", "py:cluster_cells.Patient,identity=patient", "-o", "results"]
    runs = tmp_path / "results" / "runs"

    driver = eq(*words, "--engine", "ray", "--address", cluster.address)
    wait_for(runs / "bm25" / "manifest.json")
    driver.kill()
    driver.communicate()
    assert [path.name for path in runs.iterdir() if not path.name.startswith(".")] == ["bm25"]
    finished = (runs / "bm25" / "manifest.json").read_bytes()

    (tmp_path / "node").unlink(missing_ok=True)
    driver = eq(*words, "--engine", "ray", "--address", cluster.address)
    wait_for(tmp_path / "node")
    kill_node(cluster, (tmp_path / "node").read_text())
    (tmp_path / "gate").touch()
    output, said = driver.communicate(timeout=60)
    assert driver.returncode == 0, said
    assert len(json.loads(output)["models"]) == 2, "Ray's own words stay out of the data"
    assert "running on 2 cores on 3 nodes of a Ray cluster" in said
    assert "a cell was begun again" in said
    assert "bm25: read back from results, nothing computed again" in said
    assert (runs / "bm25" / "manifest.json").read_bytes() == finished
    cluster.add_node(num_cpus=1, object_store_memory=SMALL, wait=False)

    (tmp_path / "results").rename(tmp_path / "there")
    monkeypatch.chdir(tmp_path)
    assert CliRunner().invoke(cli, words, prog_name="eq").exit_code == 0
    assert stored(tmp_path / "results") == stored(tmp_path / "there")


def test_values_come_as_they_are_finished_and_are_those_of_the_local_engine(engine: RayEngine) -> None:
    told: list[str] = []
    cells = list(range(8))
    found = list(engine.map(square, cells, 100, step=told.append))
    local = [each.value() for each in LocalEngine().map(square, cells, 100)]
    assert sorted(each.place for each in found) == cells
    assert {each.place: each.value() for each in found} == dict(enumerate(local))
    assert sorted(told) == [f"square {cell}" for cell in cells]
    assert engine.place == "2 cores on 3 nodes of a Ray cluster"


def test_errors_cross_whole_and_leave_the_other_cells_alone(engine: RayEngine) -> None:
    found = {each.place: each for each in engine.map(complain, ["ours", "theirs", "stubborn", "fine"], "")}
    with pytest.raises(InputError) as caught:
        found[0].value()
    assert caught.value.render() == "error[E200]: the cell is bad\n  here\nhint: take another"
    with pytest.raises(KeyError, match="lost"):
        found[1].value()
    with pytest.raises(EquipoiseError, match="StubbornError: <unlocked"):
        found[2].value()
    assert found[3].value() == "fine"


def test_what_cannot_be_sent_is_said_of_its_cell_alone(engine: RayEngine) -> None:
    found = {each.place: each for each in engine.map(complain, [threading.Lock(), "fine"], "")}
    with pytest.raises(ParameterError, match="cannot be sent to another machine"):
        found[0].value()
    assert found[1].value() == "fine"


def test_what_cells_share_must_be_there_and_here(engine: RayEngine) -> None:
    with pytest.raises(ParameterError, match="cannot be sent to another machine"):
        list(engine.map(complain, ["fine"], threading.Lock()))
    (found,) = engine.map(complain, ["fine"], Foreign())
    with pytest.raises(MissingExtraError, match="No module named 'no_such_package'"):
        found.value()


def test_a_cell_whose_worker_is_killed_is_begun_again_but_not_for_ever(
    engine: RayEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "ATTEMPTS", 2)
    before = len(engine.notes)
    found = {each.place: each for each in engine.map(die, [("once", 1), ("always", 9)], tmp_path)}
    assert found[0].value() == "once"
    with pytest.raises(PartialError, match="its worker died 2 times"):
        found[1].value()
    assert [begun(tmp_path / name) for name in ("once", "always")] == [2, 2]
    assert len(engine.notes) == before + 2


def test_a_cell_that_no_node_is_large_enough_for_is_not_waited_for_for_ever(
    engine: RayEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "PATIENCE_SECONDS", 0.2)
    monkeypatch.setattr(engines, "_LOOK_SECONDS", 0.1)
    with pytest.raises(PartialError, match="no node of the Ray cluster has 64 cores"):
        list(engine.map(square, [1], 0, cores=64))


def test_shards_searched_on_a_cluster_give_the_same_bytes(engine: RayEngine) -> None:
    rng = np.random.default_rng(0)
    corpus = [rng.normal(size=(rows, 8)).astype(np.float32) for rows in (40, 25, 35)]
    queries = rng.normal(size=(6, 8)).astype(np.float32)
    here = nearest_in_shards(queries, corpus, 5)
    there = nearest_in_shards(queries, corpus, 5, over=engine.in_order)
    assert here.indices.tobytes() == there.indices.tobytes()
    assert here.scores.tobytes() == there.scores.tobytes()
    relevant = here.indices[:, 3:4]
    ranks = [
        ranking_from_shards(queries, corpus, relevant=relevant, over=over).ranks
        for over in (None, engine.in_order)
    ]
    assert ranks[0].tobytes() == ranks[1].tobytes()


def test_a_fair_comparison_stores_the_same_bytes_as_in_this_process(
    engine: RayEngine, tmp_path: Path
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    run_fair_comparison(MODELS, TEXT, ASKED, output=here, **SETTINGS)
    found = run_fair_comparison(MODELS, TEXT, ASKED, output=there, engine=engine, **SETTINGS)
    assert [each.model_spec for each in found] == MODELS
    assert stored(here) == stored(there)
    again = run_fair_comparison(MODELS, TEXT, ASKED, output=there, engine=engine, **SETTINGS)
    assert again.resumed == tuple(MODELS)
    assert again.to_dict() == found.to_dict()


def test_a_model_in_hand_travels_too(engine: RayEngine) -> None:
    (found,) = run_fair_comparison([Counting()], TEXT, ASKED, engine=engine, **SETTINGS)
    (here,) = run_fair_comparison([Counting()], TEXT, ASKED, **SETTINGS)
    assert found.result.per_unit.keys() == here.result.per_unit.keys()
    for name, values in here.result.per_unit.items():
        assert values.tobytes() == found.result.per_unit[name].tobytes()


def test_an_engine_that_was_not_entered_is_refused() -> None:
    with pytest.raises(ParameterError, match="is not connected"):
        next(RayEngine().map(square, [1], 0))


def test_a_worker_of_another_version_says_so() -> None:
    found = answer(pickle.dumps((square, 1)), 0, Surroundings(version="0.0.1"))
    assert isinstance(found.outcome, MissingExtraError)
    assert "the command was typed with 0.0.1" in found.outcome.sentence
    assert found.outcome.exit_code == 4


def test_a_worker_without_what_a_cell_is_made_of_says_so() -> None:
    found = answer(b"cno_such_package\nmodel\n.", 0, Surroundings())
    assert isinstance(found.outcome, MissingExtraError)
    assert "No module named 'no_such_package'" in found.outcome.sentence


class Foreign:
    """Something that is made of a package which no worker has."""

    def __reduce__(self) -> tuple[Any, ...]:
        return import_module, ("no_such_package",)


def kill_node(cluster: Any, node_id: str) -> None:
    """Pull the plug of a node."""
    (node,) = (each for each in cluster.worker_nodes if each.node_id == node_id)
    cluster.remove_node(node, allow_graceful=False)


def stored(folder: Path) -> dict[str, Any]:
    """Every file of a comparison as it is, but for times and the words of the command."""
    found: dict[str, Any] = {}
    for path in sorted(folder.rglob("*")):
        if not path.is_file() or path.suffix in (".png", ".svg"):
            continue
        name = str(path.relative_to(folder))
        found[name] = _timeless(json.loads(path.read_text())) if _has_times(path) else path.read_bytes()
    assert len(found) > 5
    return found


def _has_times(path: Path) -> bool:
    return path.name in ("manifest.json", "results.json")


def _timeless(content: dict[str, Any]) -> str:
    for name in ("started", "finished", "command"):
        content.pop(name, None)
    for name in ("seconds", "seconds_with_cache"):
        content.get("cost", {}).pop(name, None)
    for model in content.get("models", []):
        model.pop("optimization_time_seconds")
    return json.dumps(content)
