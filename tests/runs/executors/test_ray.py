"""Cells on a real Ray cluster: their values, their errors, and workers, nodes and drivers that are killed."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import threading
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from cluster_cells import (
    count_starts,
    fail_as_named,
    kill_worker,
    require_missing_package,
    square,
    wait_for,
    wait_until,
)
from equipoise import run_fair_comparison
from equipoise.cli.main import cli
from equipoise.config import StatsConfig
from equipoise.domains.concepts.experiment import evaluate_concepts
from equipoise.domains.phenotypes.benchmark import run_benchmark
from equipoise.domains.phenotypes.ontology import load_ontology
from equipoise.errors import EquipoiseError, InputError, MissingExtraError, ParameterError, PartialError
from equipoise.evidence.ranking_from_vectors import ranking_from_shards
from equipoise.geometry.sharded_search import nearest_in_shards
from equipoise.geometry.shards import write_shards
from equipoise.models.cache import VectorCache
from equipoise.runs.executors import LocalExecutor, ray
from equipoise.runs.executors.ray import RayExecutor
from equipoise.runs.run_folder import load_run
from equipoise.runs.runner import resumable_map
from fair_sample import SETTINGS, Counting, document, pairs
from stored_folders import stored
from toy_ontology import obo

pytestmark = [
    pytest.mark.engines("ray"),
    pytest.mark.skipif(os.name != "posix", reason="kill -9 is of POSIX"),
]

TEXT = document()
ASKED = pairs(TEXT)
MODELS = ["bm25:", "hash,dim=16", "sum:hash,dim=16+bm25:"]
WORDS = ["--chunk-sizes", "16", "24", "--overlaps", "0", "--top-ks", "1", "2", "--tokenizer", "words"]
TERMS = [f"finding of kind{number}" for number in range(600)] + ["stuck"]
INDEX = ["phenotypes", "index", "build", "--ontology", "many.obo", "--json"]
Eq = Callable[..., subprocess.Popen[str]]


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
    cluster.kill_node((tmp_path / "node").read_text())
    (tmp_path / "gate").touch()
    output, said = driver.communicate(timeout=60)
    assert driver.returncode == 0, said
    assert len(json.loads(output)["models"]) == 2, "Ray's own words stay out of the data"
    assert "running on 2 cores on 3 nodes of a Ray cluster" in said
    assert "a model is started again" in said
    assert "bm25: loaded from results, not computed again" in said
    assert (runs / "bm25" / "manifest.json").read_bytes() == finished
    cluster.add_node()

    (tmp_path / "results").rename(tmp_path / "there")
    monkeypatch.chdir(tmp_path)
    assert CliRunner().invoke(cli, words, prog_name="eq").exit_code == 0
    assert stored(tmp_path / "results") == stored(tmp_path / "there")


def test_values_come_as_they_are_finished_and_are_those_of_the_local_engine(engine: RayExecutor) -> None:
    told: list[str] = []
    cells = list(range(8))
    found = list(engine.map(square, cells, 100, progress=told.append))
    local = [each.value() for each in LocalExecutor().map(square, cells, 100)]
    assert sorted(each.index for each in found) == cells
    assert {each.index: each.value() for each in found} == dict(enumerate(local))
    assert sorted(told) == [f"square {cell}" for cell in cells]
    assert engine.description == "2 cores on 3 nodes of a Ray cluster"


def test_errors_cross_whole_and_leave_the_other_cells_alone(engine: RayExecutor) -> None:
    found = {
        each.index: each for each in engine.map(fail_as_named, ["input-error", "key-error", "stubborn", "fine"], "")
    }
    with pytest.raises(InputError) as caught:
        found[0].value()
    assert caught.value.render() == "error[E200]: the job is bad\n  here\nhint: take another"
    with pytest.raises(KeyError, match="lost"):
        found[1].value()
    with pytest.raises(EquipoiseError, match="StubbornError: <unlocked"):
        found[2].value()
    assert found[3].value() == "fine"


def test_what_cannot_be_sent_is_said_of_its_cell_alone(engine: RayExecutor) -> None:
    found = {each.index: each for each in engine.map(fail_as_named, [threading.Lock(), "fine"], "")}
    with pytest.raises(ParameterError, match="cannot be sent to another machine"):
        found[0].value()
    assert found[1].value() == "fine"


def test_what_cells_share_must_be_there_and_here(engine: RayExecutor) -> None:
    with pytest.raises(ParameterError, match="cannot be sent to another machine"):
        list(engine.map(fail_as_named, ["fine"], threading.Lock()))
    (found,) = engine.map(fail_as_named, ["fine"], Foreign())
    with pytest.raises(MissingExtraError, match="No module named 'no_such_package'"):
        found.value()


def test_a_cell_whose_worker_is_killed_is_begun_again_but_not_for_ever(
    engine: RayExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray, "ATTEMPTS", 2)
    before = len(engine.messages)
    found = {each.index: each for each in engine.map(kill_worker, [("once", 1), ("always", 9)], tmp_path)}
    assert found[0].value() == "once"
    with pytest.raises(PartialError, match="its worker died 2 times"):
        found[1].value()
    assert [count_starts(tmp_path / name) for name in ("once", "always")] == [2, 2]
    assert len(engine.messages) == before + 2


def test_a_node_without_equipoise_swallows_no_cell(
    cluster: Any, engine: RayExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It fails at once, so that it would get one cell after the other."""
    (tmp_path / "equipoise").mkdir()
    (tmp_path / "equipoise" / "__init__.py").write_text("raise ImportError('half installed')\n")
    broken = cluster.add_node(env_vars={"PYTHONPATH": str(tmp_path)})
    cluster.wait()
    said: list[str] = []
    monkeypatch.setattr(engine, "on_message", said.append)
    found = list(engine.map(square, list(range(60)), 0))
    cluster.kill_node(broken.node_id, gently=True)
    assert sorted(each.value() for each in found) == [number**2 for number in range(60)]
    assert said == [
        f"the node {platform.node()} cannot run equipoise: ImportError: half installed; nothing more is sent there"
    ]


def test_what_every_node_lacks_is_an_error_of_its_cell(engine: RayExecutor) -> None:
    found = list(engine.map(require_missing_package, ["one", "two"], None))
    for each in found:
        with pytest.raises(MissingExtraError, match="this needs the package"):
            each.value()


def test_a_cell_that_no_node_is_large_enough_for_is_not_waited_for_for_ever(
    engine: RayExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray, "NODE_TIMEOUT_SECONDS", 0.2)
    monkeypatch.setattr(ray, "_LOOK_SECONDS", 0.1)
    with pytest.raises(PartialError, match="no node of the Ray cluster has 64 cores"):
        list(engine.map(square, [1], 0, n_cores=64))


def test_shards_searched_on_a_cluster_give_the_same_bytes(engine: RayExecutor) -> None:
    rng = np.random.default_rng(0)
    corpus = [rng.normal(size=(rows, 8)).astype(np.float32) for rows in (40, 25, 35)]
    queries = rng.normal(size=(6, 8)).astype(np.float32)
    here = nearest_in_shards(queries, corpus, 5)
    there = nearest_in_shards(queries, corpus, 5, map_function=resumable_map(engine))
    assert here.indices.tobytes() == there.indices.tobytes()
    assert here.scores.tobytes() == there.scores.tobytes()
    relevant = here.indices[:, 3:4]
    ranks = [
        ranking_from_shards(queries, corpus, relevant=relevant, map_function=over).ranks
        for over in (None, resumable_map(engine))
    ]
    assert ranks[0].tobytes() == ranks[1].tobytes()


def test_a_fair_comparison_stores_the_same_bytes_as_in_this_process(engine: RayExecutor, tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    run_fair_comparison(MODELS, TEXT, ASKED, output=here, **SETTINGS)
    found = run_fair_comparison(MODELS, TEXT, ASKED, output=there, engine=engine, **SETTINGS)
    assert [each.model_spec for each in found] == MODELS
    assert stored(here) == stored(there)
    again = run_fair_comparison(MODELS, TEXT, ASKED, output=there, engine=engine, **SETTINGS)
    assert again.resumed == tuple(MODELS)
    assert again.to_dict() == found.to_dict()


def test_the_texts_of_a_single_model_are_spread_over_the_nodes(
    engine: RayExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Enough texts for several blocks; the run has the same bytes."""
    sent: list[int] = []

    def counted(function: Any, items: Any, shared: Any, **options: Any) -> Any:
        sent.append(len(items))
        return RayExecutor.map(engine, function, items, shared, **options)

    monkeypatch.setattr(engine, "map", counted)
    model, long = (
        ["py:cluster_cells.Plain,identity=plain"],
        TEXT + "".join(f"Stone {n}.\n" for n in range(900)),
    )
    here, there = tmp_path / "here", tmp_path / "there"
    run_fair_comparison(model, long, ASKED, output=here, **SETTINGS)
    run_fair_comparison(model, long, ASKED, output=there, engine=engine, **SETTINGS)
    assert stored(here) == stored(there)
    assert max(sent) > 1


def test_a_benchmark_on_a_cluster_has_the_same_results(engine: RayExecutor, tmp_path: Path) -> None:
    ontology = load_ontology(obo(tmp_path / "toy.obo"))
    cases = [{"text": ontology.labels[term], "hpo_ids": [ontology.ids[term]]} for term in range(5)]
    options: dict[str, Any] = {"multi_vector": True, "config": StatsConfig(n_resamples=40)}

    def content(benchmark: Any) -> Any:
        return [(name, result.to_dict()) for name, result in benchmark.results.items()]

    here = run_benchmark(["hash", "tfidf:"], cases, ontology, **options)
    there = run_benchmark(["hash", "tfidf:"], cases, ontology, output=tmp_path / "there", engine=engine, **options)
    again = run_benchmark(["hash", "tfidf:"], cases, ontology, output=tmp_path / "there", engine=engine, **options)
    assert content(here) == content(there) == content(again)
    assert (there.resumed, again.resumed) == ((), ("hash", "tfidf:"))


@pytest.mark.engines("sklearn")
def test_concepts_on_a_cluster_have_the_same_scores(engine: RayExecutor, tmp_path: Path) -> None:
    models, options = ["hash,dim=32", "hash,dim=48"], {"cache": False, "config": StatsConfig(n_resamples=24)}
    tasks = ["similarity", "clustering", "entities"]
    here = evaluate_concepts(models, tasks=tasks, **options)
    there = evaluate_concepts(models, tasks=tasks, output=tmp_path, engine=engine, **options)
    assert json.dumps(here.to_dict()) == json.dumps(there.to_dict())
    assert evaluate_concepts(models, tasks=tasks, output=tmp_path, engine=engine, **options).resumed == tuple(models)


def test_a_model_in_hand_travels_too(engine: RayExecutor) -> None:
    (found,) = run_fair_comparison([Counting()], TEXT, ASKED, engine=engine, **SETTINGS)
    (here,) = run_fair_comparison([Counting()], TEXT, ASKED, **SETTINGS)
    assert found.result.per_unit.keys() == here.result.per_unit.keys()
    for name, values in here.result.per_unit.items():
        assert values.tobytes() == found.result.per_unit[name].tobytes()


def test_an_index_outlives_its_driver_and_a_node_and_has_the_same_bytes(
    cluster: Any, engine: RayExecutor, eq: Eq, postgres: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two of three blocks are back when the driver is killed; the node of the third one dies later."""
    many_terms(tmp_path)
    words = [*INDEX, "--model-name", "py:cluster_cells.Stuck,identity=stuck"]
    there = ["--engine", "ray", "--address", cluster.address, "--index-dir", "there"]
    driver = eq(*words, *there)
    wait_for(tmp_path / "node")
    wait_until(lambda: kept_vectors(tmp_path / "there") == 512)
    driver.kill()
    driver.communicate()
    assert not list((tmp_path / "there").glob("*/meta.json"))

    (tmp_path / "node").unlink()
    monkeypatch.chdir(tmp_path)
    plug = threading.Thread(target=pull_the_plug, args=(cluster, tmp_path))
    plug.start()
    ended = eq_here(*words, *there, "--store", f"pgvector:{postgres}")
    plug.join()
    assert ended.exit_code == 0, ended.output
    assert "a block of texts is started again" in ended.stderr
    report = json.loads(ended.stdout)["indexes"][0]["report"]
    assert (report["from_cache"], report["embedded"]) == (512, 89)
    cluster.add_node()

    assert eq_here(*words, "--index-dir", "here").exit_code == 0
    assert files(tmp_path / "here") == files(tmp_path / "there")
    asked = ["phenotypes", "query", "finding of kind7", "--ontology", "many.obo", "--index-dir", "there"]
    asked += ["--model-name", words[-1], "--json", "--num-results", "3"]
    found = [
        json.loads(eq_here(*asked, *store).stdout)["results"] for store in ([], ["--store", f"pgvector:{postgres}"])
    ]
    assert len(found[0]) == 3
    assert found[0] == found[1]


def test_a_model_that_the_workers_lack_is_a_sentence_of_theirs(
    engine: RayExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    many_terms(tmp_path)
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "only_here.py").write_text("from cluster_cells import Patient\n")
    (tmp_path / "gate").touch()
    monkeypatch.syspath_prepend(tmp_path / "own")
    monkeypatch.chdir(tmp_path)
    words = [*INDEX, "--model-name", "py:only_here.Patient", "--index-dir", "there", "--engine", "ray"]
    ended = eq_here(*words)
    assert ended.exit_code == 4, ended.output
    assert "cannot load the model" in ended.stderr
    assert "No module named 'only_here'" in ended.stderr


def test_trees_are_embedded_on_a_cluster_with_the_same_figures(
    engine: RayExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [f"{top}{leaf},{top}\n" for top in "abcd" for leaf in range(5)]
    (tmp_path / "tree.csv").write_text("id,parent\n" + "".join(f"{top},\n" for top in "abcd") + "".join(rows))
    monkeypatch.chdir(tmp_path)
    words = ["accounts", "evaluate", "--tree", "tree.csv", "--dims", "2", "--learning-rates", "0.3", "--epochs", "2"]
    words += ["--n-seeds", "2", "--n-resamples", "40", "-o"]
    for folder, where in (("here", []), ("there", ["--engine", "ray"])):
        ended = eq_here(*words, folder, *where)
        assert ended.exit_code == 0, ended.output
    assert stored(tmp_path / "here") == stored(tmp_path / "there")
    assert eq_here(*words, "there", "--engine", "ray", "--device", "cpu").exit_code == 2


def test_the_exact_search_of_a_corpus_on_disk_runs_on_a_cluster(
    engine: RayExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    write_shards(tmp_path / "shards", [rng.normal(size=(300, 8))], rows=70, kind="int8")
    np.save(tmp_path / "q.npy", rng.normal(size=(9, 8)))
    monkeypatch.chdir(tmp_path)
    words = ["index-quality", "--store", "faiss:hnsw", "--corpus", "shards", "--queries", "q.npy", "-o"]
    for folder, where in (("here", []), ("there", ["--engine", "ray"])):
        ended = eq_here(*words, folder, "--name", "hnsw", *where)
        assert ended.exit_code == 0, ended.output
    here, there = (load_run(tmp_path / folder / "hnsw").result for folder in ("here", "there"))
    assert here.per_unit["IndexRecall@10"].tobytes() == there.per_unit["IndexRecall@10"].tobytes()
    assert [path.name for path in (tmp_path / "there").iterdir()] == ["hnsw"]


def test_a_head_that_is_killed_is_a_sentence_and_what_is_finished_stays(
    cluster: Any, engine: RayExecutor, eq: Eq, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both kinds of address at once: two of three blocks of each are back. The cluster ends here."""
    engine.__exit__(None, None, None)
    monkeypatch.setenv("RAY_CLIENT_RECONNECT_GRACE_PERIOD", "1")
    words = [*INDEX, "--model-name", "py:cluster_cells.Stuck,identity=stuck", "--index-dir", "there"]
    drivers = {}
    for name, address in (("inside", cluster.address), ("client", cluster.client)):
        (tmp_path / name).mkdir()
        many_terms(tmp_path / name)
        where = ["--engine", "ray", "--address", address]
        drivers[name] = eq(*words, *where, cwd=tmp_path / name, impatient=True)
    there = [tmp_path / name / "there" for name in drivers]
    wait_until(
        lambda: (
            all(kept_vectors(folder) == 512 for folder in there)
            or any(driver.poll() is not None for driver in drivers.values())
        )
    )
    cluster.kill_head()
    for name, driver in drivers.items():
        output, said = driver.communicate(timeout=60)
        assert (driver.returncode, output) == (3, ""), said
        running, *lost, last = said.splitlines()
        assert running == "running on 2 cores on 3 nodes of a Ray cluster"
        assert all(line.startswith("a block of texts is started again") for line in lost), said
        assert json.loads(last)["error"]["message"].startswith("the connection to the Ray cluster was lost: ")
        assert kept_vectors(tmp_path / name / "there") == 512


class Foreign:
    """Something that is made of a package which no worker has."""

    def __reduce__(self) -> tuple[Any, ...]:
        return import_module, ("no_such_package",)


def eq_here(*words: str) -> Result:
    """The command in this process."""
    return CliRunner().invoke(cli, list(words), prog_name="eq")


def many_terms(folder: Path) -> None:
    """An ontology of 601 terms: three blocks of texts, the shortest of which is in the last."""
    terms = [f"\n[Term]\nid: T:{number}\nname: {label}\n" for number, label in enumerate(TERMS)]
    obo(folder / "many.obo", "".join(terms))


def kept_vectors(folder: Path) -> int:
    """How many vectors lie beside an index that is being built."""
    found = 0
    for file in folder.glob(".*.work/*.sqlite"):
        with VectorCache(file) as cache:
            found += cache.size().vectors
    return found


def pull_the_plug(cluster: Any, folder: Path) -> None:
    """End the node that waits before the gate, and open it for the next one."""
    wait_for(folder / "node")
    cluster.kill_node((folder / "node").read_text())
    (folder / "gate").touch()


def files(folder: Path) -> dict[str, bytes]:
    """All that lies in a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
