"""Jobs on a real Ray cluster: values, errors, and killed workers, nodes and drivers."""

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
from equipoise.models.vector_cache import VectorCache
from equipoise.runs.executors import LocalExecutor, ray
from equipoise.runs.executors.ray import RayExecutor
from equipoise.runs.run_folder import load_run
from equipoise.runs.runner import resumable_map
from fair_sample import CONFIG, Counting, document, pairs
from stored_folders import stored
from toy_ontology import obo

pytestmark = [
    pytest.mark.engines("ray"),
    pytest.mark.skipif(os.name != "posix", reason="kill -9 is of POSIX"),
]

TEXT = document()
QUESTIONS = pairs(TEXT)
MODELS = ["bm25:", "hash,dim=16", "sum:hash,dim=16+bm25:"]
GRID_OPTIONS = ["--chunk-sizes", "16", "24", "--overlaps", "0", "--top-ks", "1", "2", "--tokenizer", "words"]
TERMS = [f"finding of kind{number}" for number in range(600)] + ["stuck"]
INDEX = ["phenotypes", "index", "build", "--ontology", "many.obo", "--json"]
Eq = Callable[..., subprocess.Popen[str]]


def test_finished_models_survive_a_killed_driver_and_a_killed_node(
    cluster: Any, eq: Eq, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs before this process connects, because a connected process prints the log of a killed node."""
    (tmp_path / "document.md").write_text(TEXT)
    (tmp_path / "fixture.json").write_text(json.dumps(QUESTIONS))
    arguments = ["fair", "compare", "--doc", "document.md", "--qa", "fixture.json", *GRID_OPTIONS, "--json"]
    arguments += ["--models", "bm25:", "py:cluster_cells.Patient,identity=patient", "-o", "results"]
    runs = tmp_path / "results" / "runs"

    driver = eq(*arguments, "--engine", "ray", "--address", cluster.address)
    wait_for(runs / "bm25" / "manifest.json")
    driver.kill()
    driver.communicate()
    assert [path.name for path in runs.iterdir() if not path.name.startswith(".")] == ["bm25"]
    finished = (runs / "bm25" / "manifest.json").read_bytes()

    (tmp_path / "node").unlink(missing_ok=True)
    driver = eq(*arguments, "--engine", "ray", "--address", cluster.address)
    wait_for(tmp_path / "node")
    cluster.kill_node((tmp_path / "node").read_text())
    (tmp_path / "gate").touch()
    output, stderr = driver.communicate(timeout=60)
    assert driver.returncode == 0, stderr
    assert len(json.loads(output)["models"]) == 2, "the output of Ray is not on stdout"
    assert "running on 2 cores on 3 nodes of a Ray cluster" in stderr
    assert "a model is started again" in stderr
    assert "bm25: loaded from results, not computed again" in stderr
    assert (runs / "bm25" / "manifest.json").read_bytes() == finished
    cluster.add_node()

    (tmp_path / "results").rename(tmp_path / "there")
    monkeypatch.chdir(tmp_path)
    assert CliRunner().invoke(cli, arguments, prog_name="eq").exit_code == 0
    assert stored(tmp_path / "results") == stored(tmp_path / "there")


def test_values_are_yielded_on_completion_and_equal_the_local_engine(engine: RayExecutor) -> None:
    steps: list[str] = []
    jobs = list(range(8))
    completed = list(engine.map(square, jobs, 100, progress=steps.append))
    local = [item.value() for item in LocalExecutor().map(square, jobs, 100)]
    assert sorted(item.index for item in completed) == jobs
    assert {item.index: item.value() for item in completed} == dict(enumerate(local))
    assert sorted(steps) == [f"square {job}" for job in jobs]
    assert engine.description == "2 cores on 3 nodes of a Ray cluster"


def test_errors_are_transferred_and_do_not_stop_other_jobs(engine: RayExecutor) -> None:
    completed = {
        item.index: item for item in engine.map(fail_as_named, ["input-error", "key-error", "stubborn", "fine"], "")
    }
    with pytest.raises(InputError) as error:
        completed[0].value()
    assert error.value.render() == "error[E200]: the job is bad\n  here\nhint: take another"
    with pytest.raises(KeyError, match="lost"):
        completed[1].value()
    with pytest.raises(EquipoiseError, match="StubbornError: <unlocked"):
        completed[2].value()
    assert completed[3].value() == "fine"


def test_a_job_that_cannot_be_pickled_is_an_error_of_that_job(engine: RayExecutor) -> None:
    completed = {item.index: item for item in engine.map(fail_as_named, [threading.Lock(), "fine"], "")}
    with pytest.raises(ParameterError) as error:
        completed[0].value()
    assert error.value.code == "E310"
    assert completed[1].value() == "fine"


def test_shared_data_must_be_picklable_and_importable(engine: RayExecutor) -> None:
    with pytest.raises(ParameterError) as error:
        list(engine.map(fail_as_named, ["fine"], threading.Lock()))
    assert error.value.code == "E310"
    (completed,) = engine.map(fail_as_named, ["fine"], MissingOnWorkers())
    with pytest.raises(MissingExtraError, match="No module named 'no_such_package'"):
        completed.value()


def test_a_job_of_a_killed_worker_is_retried_a_limited_number_of_times(
    engine: RayExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray, "ATTEMPTS", 2)
    n_messages = len(engine.messages)
    completed = {item.index: item for item in engine.map(kill_worker, [("once", 1), ("always", 9)], tmp_path)}
    assert completed[0].value() == "once"
    with pytest.raises(PartialError) as error:
        completed[1].value()
    assert error.value.code == "E700"
    assert [count_starts(tmp_path / name) for name in ("once", "always")] == [2, 2]
    assert len(engine.messages) == n_messages + 2


def test_a_node_without_the_package_receives_no_further_jobs(
    cluster: Any, engine: RayExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its jobs fail immediately, so without a check it would receive all of them."""
    (tmp_path / "equipoise").mkdir()
    (tmp_path / "equipoise" / "__init__.py").write_text("raise ImportError('half installed')\n")
    broken_node = cluster.add_node(env_vars={"PYTHONPATH": str(tmp_path)})
    cluster.wait()
    messages: list[str] = []
    monkeypatch.setattr(engine, "on_message", messages.append)
    completed = list(engine.map(square, list(range(60)), 0))
    cluster.kill_node(broken_node.node_id, graceful=True)
    assert sorted(item.value() for item in completed) == [number**2 for number in range(60)]
    assert messages == [
        f"the node {platform.node()} cannot run equipoise: ImportError: half installed; nothing more is sent there"
    ]


def test_a_package_missing_on_every_node_is_an_error_of_the_job(engine: RayExecutor) -> None:
    completed = list(engine.map(require_missing_package, ["one", "two"], None))
    for item in completed:
        with pytest.raises(MissingExtraError) as error:
            item.value()
        assert error.value.code == "E600"


def test_a_job_that_needs_more_cores_than_any_node_is_an_error(
    engine: RayExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray, "NODE_TIMEOUT_SECONDS", 0.2)
    monkeypatch.setattr(ray, "_LOOK_SECONDS", 0.1)
    with pytest.raises(PartialError, match="no node of the Ray cluster has 64 cores"):
        list(engine.map(square, [1], 0, n_cores=64))


def test_sharded_search_on_a_cluster_gives_the_same_bytes(engine: RayExecutor) -> None:
    rng = np.random.default_rng(0)
    corpus = [rng.normal(size=(rows, 8)).astype(np.float32) for rows in (40, 25, 35)]
    queries = rng.normal(size=(6, 8)).astype(np.float32)
    local = nearest_in_shards(queries, corpus, 5)
    remote = nearest_in_shards(queries, corpus, 5, map_function=resumable_map(engine))
    assert local.indices.tobytes() == remote.indices.tobytes()
    assert local.scores.tobytes() == remote.scores.tobytes()
    relevant = local.indices[:, 3:4]
    ranks = [
        ranking_from_shards(queries, corpus, relevant=relevant, map_function=map_function).ranks
        for map_function in (None, resumable_map(engine))
    ]
    assert ranks[0].tobytes() == ranks[1].tobytes()


def test_a_fair_comparison_stores_the_same_bytes_as_in_this_process(engine: RayExecutor, tmp_path: Path) -> None:
    local, remote = tmp_path / "here", tmp_path / "there"
    run_fair_comparison(MODELS, TEXT, QUESTIONS, output=local, config=CONFIG)
    comparison = run_fair_comparison(MODELS, TEXT, QUESTIONS, output=remote, engine=engine, config=CONFIG)
    assert [model.model_spec for model in comparison] == MODELS
    assert stored(local) == stored(remote)
    resumed = run_fair_comparison(MODELS, TEXT, QUESTIONS, output=remote, engine=engine, config=CONFIG)
    assert resumed.resumed == tuple(MODELS)
    assert resumed.to_dict() == comparison.to_dict()


def test_the_texts_of_one_model_are_distributed_over_the_nodes(
    engine: RayExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several blocks of texts give a run with the same bytes."""
    block_counts: list[int] = []

    def counted(function: Any, items: Any, shared: Any, **options: Any) -> Any:
        block_counts.append(len(items))
        return RayExecutor.map(engine, function, items, shared, **options)

    monkeypatch.setattr(engine, "map", counted)
    model, long_text = (
        ["py:cluster_cells.Plain,identity=plain"],
        TEXT + "".join(f"Stone {n}.\n" for n in range(900)),
    )
    local, remote = tmp_path / "here", tmp_path / "there"
    run_fair_comparison(model, long_text, QUESTIONS, output=local, config=CONFIG)
    run_fair_comparison(model, long_text, QUESTIONS, output=remote, engine=engine, config=CONFIG)
    assert stored(local) == stored(remote)
    assert max(block_counts) > 1


def test_a_benchmark_on_a_cluster_has_the_same_results(engine: RayExecutor, tmp_path: Path) -> None:
    ontology = load_ontology(obo(tmp_path / "toy.obo"))
    cases = [{"text": ontology.labels[term], "hpo_ids": [ontology.ids[term]]} for term in range(5)]
    options: dict[str, Any] = {"multi_vector": True, "config": StatsConfig(n_resamples=40)}

    def content(benchmark: Any) -> Any:
        return [(name, result.to_dict()) for name, result in benchmark.results.items()]

    local = run_benchmark(["hash", "tfidf:"], cases, ontology, **options)
    remote = run_benchmark(["hash", "tfidf:"], cases, ontology, output=tmp_path / "there", engine=engine, **options)
    resumed = run_benchmark(["hash", "tfidf:"], cases, ontology, output=tmp_path / "there", engine=engine, **options)
    assert content(local) == content(remote) == content(resumed)
    assert (remote.resumed, resumed.resumed) == ((), ("hash", "tfidf:"))


@pytest.mark.engines("sklearn")
def test_concepts_on_a_cluster_have_the_same_scores(engine: RayExecutor, tmp_path: Path) -> None:
    models, options = ["hash,dim=32", "hash,dim=48"], {"cache": False, "config": StatsConfig(n_resamples=24)}
    tasks = ["similarity", "clustering", "entities"]
    local = evaluate_concepts(models, tasks=tasks, **options)
    remote = evaluate_concepts(models, tasks=tasks, output=tmp_path, engine=engine, **options)
    assert json.dumps(local.to_dict()) == json.dumps(remote.to_dict())
    assert evaluate_concepts(models, tasks=tasks, output=tmp_path, engine=engine, **options).resumed == tuple(models)


def test_an_in_process_model_is_sent_to_the_cluster(engine: RayExecutor) -> None:
    (remote,) = run_fair_comparison([Counting()], TEXT, QUESTIONS, engine=engine, config=CONFIG)
    (local,) = run_fair_comparison([Counting()], TEXT, QUESTIONS, config=CONFIG)
    assert remote.result.per_unit.keys() == local.result.per_unit.keys()
    for name, values in local.result.per_unit.items():
        assert values.tobytes() == remote.result.per_unit[name].tobytes()


def test_an_index_build_survives_a_killed_driver_and_a_killed_node(
    cluster: Any, engine: RayExecutor, eq: Eq, postgres: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver is killed after two of three blocks; the node of the third block is killed later."""
    write_many_terms(tmp_path)
    arguments = [*INDEX, "--model-name", "py:cluster_cells.Stuck,identity=stuck"]
    ray_options = ["--engine", "ray", "--address", cluster.address, "--index-dir", "there"]
    driver = eq(*arguments, *ray_options)
    wait_for(tmp_path / "node")
    wait_until(lambda: count_stored_vectors(tmp_path / "there") == 512)
    driver.kill()
    driver.communicate()
    assert not list((tmp_path / "there").glob("*/meta.json"))

    (tmp_path / "node").unlink()
    monkeypatch.chdir(tmp_path)
    kill_thread = threading.Thread(target=kill_waiting_node, args=(cluster, tmp_path))
    kill_thread.start()
    result = run_command(*arguments, *ray_options, "--store", f"pgvector:{postgres}")
    kill_thread.join()
    assert result.exit_code == 0, result.output
    assert "a block of texts is started again" in result.stderr
    report = json.loads(result.stdout)["indexes"][0]["report"]
    assert (report["from_cache"], report["embedded"]) == (512, 89)
    cluster.add_node()

    assert run_command(*arguments, "--index-dir", "here").exit_code == 0
    assert file_contents(tmp_path / "here") == file_contents(tmp_path / "there")
    query_arguments = ["phenotypes", "query", "finding of kind7", "--ontology", "many.obo", "--index-dir", "there"]
    query_arguments += ["--model-name", arguments[-1], "--json", "--num-results", "3"]
    results = [
        json.loads(run_command(*query_arguments, *store).stdout)["results"]
        for store in ([], ["--store", f"pgvector:{postgres}"])
    ]
    assert len(results[0]) == 3
    assert results[0] == results[1]


def test_a_model_module_missing_on_the_workers_is_an_error(
    engine: RayExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_many_terms(tmp_path)
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "only_here.py").write_text("from cluster_cells import Patient\n")
    (tmp_path / "gate").touch()
    monkeypatch.syspath_prepend(tmp_path / "modules")
    monkeypatch.chdir(tmp_path)
    arguments = [*INDEX, "--model-name", "py:only_here.Patient", "--index-dir", "there", "--engine", "ray"]
    result = run_command(*arguments)
    assert result.exit_code == 4, result.output
    assert "cannot load the model" in result.stderr
    assert "No module named 'only_here'" in result.stderr


def test_trees_embedded_on_a_cluster_have_the_same_scores(
    engine: RayExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [f"{top}{leaf},{top}\n" for top in "abcd" for leaf in range(5)]
    (tmp_path / "tree.csv").write_text("id,parent\n" + "".join(f"{top},\n" for top in "abcd") + "".join(rows))
    monkeypatch.chdir(tmp_path)
    arguments = [
        "accounts",
        "evaluate",
        "--tree",
        "tree.csv",
        "--dims",
        "2",
        "--learning-rates",
        "0.3",
        "--epochs",
        "2",
    ]
    arguments += ["--n-seeds", "2", "--n-resamples", "40", "-o"]
    for folder, options in (("here", []), ("there", ["--engine", "ray"])):
        result = run_command(*arguments, folder, *options)
        assert result.exit_code == 0, result.output
    assert stored(tmp_path / "here") == stored(tmp_path / "there")
    assert run_command(*arguments, "there", "--engine", "ray", "--device", "cpu").exit_code == 2


def test_the_exact_search_of_a_corpus_on_disk_runs_on_a_cluster(
    engine: RayExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    write_shards(tmp_path / "shards", [rng.normal(size=(300, 8))], rows=70, kind="int8")
    np.save(tmp_path / "q.npy", rng.normal(size=(9, 8)))
    monkeypatch.chdir(tmp_path)
    arguments = ["index-quality", "--store", "faiss:hnsw", "--corpus", "shards", "--queries", "q.npy", "-o"]
    for folder, options in (("here", []), ("there", ["--engine", "ray"])):
        result = run_command(*arguments, folder, "--name", "hnsw", *options)
        assert result.exit_code == 0, result.output
    local, remote = (load_run(tmp_path / folder / "hnsw").result for folder in ("here", "there"))
    assert local.per_unit["IndexRecall@10"].tobytes() == remote.per_unit["IndexRecall@10"].tobytes()
    assert [path.name for path in (tmp_path / "there").iterdir()] == ["hnsw"]


def test_a_killed_head_is_an_error_and_finished_blocks_are_kept(
    cluster: Any, engine: RayExecutor, eq: Eq, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both kinds of address: the head is killed after two of three blocks. The cluster is unusable afterwards."""
    engine.__exit__(None, None, None)
    monkeypatch.setenv("RAY_CLIENT_RECONNECT_GRACE_PERIOD", "1")
    arguments = [*INDEX, "--model-name", "py:cluster_cells.Stuck,identity=stuck", "--index-dir", "there"]
    drivers = {}
    for name, address in (("inside", cluster.address), ("client", cluster.client)):
        (tmp_path / name).mkdir()
        write_many_terms(tmp_path / name)
        options = ["--engine", "ray", "--address", address]
        drivers[name] = eq(*arguments, *options, cwd=tmp_path / name, short_timeout=True)
    index_folders = [tmp_path / name / "there" for name in drivers]
    wait_until(
        lambda: (
            all(count_stored_vectors(folder) == 512 for folder in index_folders)
            or any(driver.poll() is not None for driver in drivers.values())
        )
    )
    cluster.kill_head()
    for name, driver in drivers.items():
        output, stderr = driver.communicate(timeout=60)
        assert (driver.returncode, output) == (3, ""), stderr
        first_line, *restart_lines, last_line = stderr.splitlines()
        assert first_line == "running on 2 cores on 3 nodes of a Ray cluster"
        assert all(line.startswith("a block of texts is started again") for line in restart_lines), stderr
        assert json.loads(last_line)["error"]["message"].startswith("the connection to the Ray cluster was lost: ")
        assert count_stored_vectors(tmp_path / name / "there") == 512


class MissingOnWorkers:
    """An object whose package is missing on the workers."""

    def __reduce__(self) -> tuple[Any, ...]:
        return import_module, ("no_such_package",)


def run_command(*arguments: str) -> Result:
    """Run the command in this process."""
    return CliRunner().invoke(cli, list(arguments), prog_name="eq")


def write_many_terms(folder: Path) -> None:
    """Write an ontology of 601 terms: three blocks of texts, with the shortest text in the last block."""
    terms = [f"\n[Term]\nid: T:{number}\nname: {label}\n" for number, label in enumerate(TERMS)]
    obo(folder / "many.obo", "".join(terms))


def count_stored_vectors(folder: Path) -> int:
    """The number of vectors in the partial files of an index."""
    n_vectors = 0
    for file in folder.glob(".*.work/*.sqlite"):
        with VectorCache(file) as cache:
            n_vectors += cache.size().vectors
    return n_vectors


def kill_waiting_node(cluster: Any, folder: Path) -> None:
    """Kill the node that waits for the file ``gate``, then create the file."""
    wait_for(folder / "node")
    cluster.kill_node((folder / "node").read_text())
    (folder / "gate").touch()


def file_contents(folder: Path) -> dict[str, bytes]:
    """The contents of all files of a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
