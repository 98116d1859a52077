"""The folder of a comparison: written files, resuming, and failures."""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from equipoise import load_run, run_fair_comparison
from equipoise.bench import leaderboard
from equipoise.config import StatsConfig
from equipoise.domains.fair import experiment, plan, results
from equipoise.domains.fair.config import METRIC
from equipoise.domains.fair.results import EMBEDDING_EVAL_KEYS
from equipoise.errors import EquipoiseError, MissingExtraError, PairingError, PartialError, StoreError
from equipoise.io.documents import TextDocument
from equipoise.models.embedder import Embedder
from equipoise.models.encoder import Encoder, ModelCard, Role
from equipoise.models.vector_cache import VectorCache
from equipoise.runs import manifest
from equipoise.runs.compare import compare
from equipoise.runs.experiment_folder import exit_code
from fair_sample import CONFIG, Counting, document, pairs

TEXT = document()
QUESTIONS = pairs(TEXT)
MODELS = ["bm25:", "hash,dim=16"]
SEED_1 = replace(CONFIG.stats, seed=1)


class CacheableModel(Encoder):
    """A model whose vectors are cached."""

    card = ModelCard("cacheable", "py:cacheable", dims=3)
    identity = "cacheable"

    def encode(self, texts: Any, role: Role) -> Any:
        return np.array([[len(text), text.count("a"), 1.0] for text in texts], dtype=np.float32)


class BrokenModel:
    """A model that fails when it is used."""

    def encode(self, texts: list[str]) -> Any:
        raise RuntimeError("out of memory")


def run_to_folder(output: Path, models: list[Any] = MODELS, **changes: Any) -> Any:
    return run_fair_comparison(models, TEXT, QUESTIONS, output=output, config=replace(CONFIG, **changes))


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    """A comparison of both models, and its folder."""
    folder = tmp_path_factory.mktemp("finished")
    return run_to_folder(folder), folder


@pytest.fixture
def first_run(finished_run: tuple[Any, Path], tmp_path: Path) -> Any:
    """The comparison of both models, with a copy of its folder in ``tmp_path``."""
    comparison, folder = finished_run
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    return comparison


def test_a_folder_has_the_results_and_one_run_directory_per_model(tmp_path: Path, first_run: Any) -> None:
    content = json.loads((tmp_path / "results.json").read_text())
    assert [model["model_spec"] for model in content["models"]] == MODELS
    assert set(EMBEDDING_EVAL_KEYS) <= set(content["models"][0])
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == ["bm25", "hash,dim=16"]
    for model, name in zip(first_run, ("bm25", "hash,dim=16"), strict=True):
        stored = load_run(tmp_path / "runs" / name)
        assert stored.tuning == model.tuning
        assert stored.result[METRIC] == model.result[METRIC]
        assert stored.manifest.cost["retrieved_tokens"] == model.retrieved_tokens
        assert stored.manifest.parameters["top_k"] == model.best_params["top_k"]


@pytest.mark.slow
def test_charts_are_drawn_from_stored_results(tmp_path: Path, first_run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = first_run.draw(tmp_path)
    assert {path.parent for path in paths} == {tmp_path / "visualizations"}
    names = {path.name for path in paths}
    assert {"leaderboard.png", "differences.svg", "frontier.png", "tuning-grid-bm25.svg"} <= names
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    assert run_to_folder(tmp_path, ["bm25:"]).draw(tmp_path) == []


def test_run_directories_can_be_compared_without_the_results(tmp_path: Path, first_run: Any) -> None:
    repeated = compare([load_run(path).result for path in sorted((tmp_path / "runs").iterdir())])
    assert repeated.primary == METRIC
    assert repeated.contrast("bm25:", "hash,dim=16").difference == pytest.approx(
        first_run.comparison.contrast("bm25:", "hash,dim=16").difference
    )


def test_details_show_the_retrieved_chunks_of_the_best_configuration(tmp_path: Path, first_run: Any) -> None:
    details = load_run(tmp_path / "runs" / "bm25").details
    assert len(details) == len(QUESTIONS)
    best = first_run[0].best_params
    for pair, detail in zip(QUESTIONS, details.values(), strict=True):
        assert detail.text == pair["question"]
        assert detail.expected == (pair["answer"],)
        assert detail.slices == {"category": pair["category"], "difficulty": pair["difficulty"]}
        assert len(detail.retrieved) == best["top_k"]
        for chunk in detail.retrieved:
            assert chunk.relevant == (pair["answer"].lower() in " ".join(chunk.text.split()).lower())
            assert chunk.where.startswith("Part ")


def test_finished_models_are_read_and_not_computed_again(
    tmp_path: Path, first_run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        experiment, "evaluate_model", lambda *arguments: pytest.fail("a finished model was computed again")
    )
    second = run_to_folder(tmp_path)
    assert second.resumed == tuple(MODELS)
    assert second.to_dict() == first_run.to_dict()
    assert second.summary == first_run.summary


def test_finished_models_are_not_chunked_or_rewritten(
    tmp_path: Path, first_run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "prepare_inputs", lambda *arguments: pytest.fail("the documents were chunked again"))
    times_before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()}
    second = run_to_folder(tmp_path)
    times_after = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()}
    assert {path for path in times_after if times_after[path] != times_before.get(path)} <= {tmp_path / "progress.json"}
    assert second.summary == first_run.summary


@pytest.mark.parametrize("change", [{"top_ks": [1, 2]}, {"stats": SEED_1}, {"matcher": "embedding-eval"}, {"folds": 3}])
def test_results_of_other_options_are_not_replaced(tmp_path: Path, first_run: Any, change: dict[str, Any]) -> None:
    with pytest.raises(StoreError) as caught:
        run_to_folder(tmp_path, **change)
    assert caught.value.code == "E500"
    assert run_to_folder(tmp_path).resumed == tuple(MODELS)


def test_only_an_added_model_is_computed(tmp_path: Path, first_run: Any) -> None:
    comparison = run_to_folder(tmp_path, [*MODELS, "tfidf:"])
    assert comparison.resumed == tuple(MODELS)
    assert len(comparison) == 3


def test_a_run_of_another_version_is_computed_again(
    tmp_path: Path, first_run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "VERSION", "another version")
    assert run_to_folder(tmp_path).resumed == ()


def test_runs_with_different_numbers_of_resamples_have_other_draws(tmp_path: Path, first_run: Any) -> None:
    """Bootstrap errors are only paired if they come from the same resamples."""
    new = run_to_folder(tmp_path / "new", stats=StatsConfig(n_resamples=2_000))
    assert first_run[0].result.settings["draws"] != new[0].result.settings["draws"]


def test_a_run_has_its_start_time_and_cost_without_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class DailyClock:
        """A clock that advances by one day at every call."""

        passed = 0

        @classmethod
        def now(cls, zone: Any) -> datetime:
            cls.passed += 1
            return datetime(2026, 11, cls.passed, tzinfo=zone)

    monkeypatch.setattr(manifest, "datetime", DailyClock)
    run_fair_comparison(["hash,dim=16"], TEXT, QUESTIONS, output=tmp_path / "a", cache=False, config=CONFIG)
    run_manifest = load_run(tmp_path / "a" / "runs" / "hash,dim=16").manifest
    assert run_manifest.started < run_manifest.finished
    assert run_manifest.cost["seconds"] > 0
    assert run_manifest.cost["texts_from_cache"] == 0


def test_seconds_with_a_warm_cache_are_not_reported_as_cost(tmp_path: Path) -> None:
    cache = VectorCache(tmp_path / "cache")
    for name in ("first", "second"):
        model = Embedder(CacheableModel(), cache=cache)
        run_fair_comparison([model], TEXT, QUESTIONS, output=tmp_path / name, config=CONFIG)
    cold_manifest, warm_manifest = (
        load_run(next((tmp_path / name / "runs").iterdir())).manifest for name in ("first", "second")
    )
    assert cold_manifest.cost["seconds"] > 0
    assert warm_manifest.cost["seconds"] is None
    assert warm_manifest.cost["seconds_with_cache"] > 0
    assert warm_manifest.cost["texts_from_cache"] > len(QUESTIONS)


def test_the_tokenizer_is_recorded(tmp_path: Path, first_run: Any) -> None:
    assert load_run(tmp_path / "runs" / "bm25").manifest.settings["tokenizer"] == "words"
    assert json.loads((tmp_path / "results.json").read_text())["settings"]["tokenizer"] == "words"


def test_without_folds_runs_are_written_and_read_back(tmp_path: Path) -> None:
    first_result, second_result = (run_to_folder(tmp_path, folds=1) for _ in range(2))
    assert second_result.resumed == tuple(MODELS)
    assert second_result.summary == first_result.summary
    assert second_result[0].tuning.folds == ()


def test_a_folder_with_runs_on_other_questions_is_refused(tmp_path: Path, first_run: Any) -> None:
    others = [{**pair, "question": f"{pair['question']} Really?"} for pair in QUESTIONS]
    with pytest.raises(StoreError) as caught:
        run_fair_comparison(["bm25:"], TEXT, others, output=tmp_path, config=CONFIG)
    assert caught.value.code == "E500"


def test_runs_of_other_calls_are_listed_as_unrelated(tmp_path: Path) -> None:
    run_to_folder(tmp_path, ["tfidf:"])
    run_to_folder(tmp_path, ["hash,dim=8"], top_ks=[4])
    (tmp_path / "runs" / "notes").mkdir()
    comparison = run_to_folder(tmp_path)
    assert comparison.unrelated_runs(tmp_path) == {"hash,dim=8": False, "tfidf": True}
    assert [path.name for path in comparison.runs(tmp_path)] == ["bm25", "hash,dim=16"]


def test_a_leaderboard_of_tuned_runs_reports_that_its_intervals_ignore_the_tuning(
    tmp_path: Path, first_run: Any
) -> None:
    board = leaderboard(tmp_path)
    assert set(board.table.tuned) == {"bm25:", "hash,dim=16"}
    assert "EQ428" in {finding.code for finding in board.findings}


def test_runs_of_different_questions_are_not_paired_by_unit_names(tmp_path: Path) -> None:
    run_to_folder(tmp_path / "one", ["bm25:"])
    others = [{**pair, "question": f"{pair['question']} Really?"} for pair in QUESTIONS]
    run_fair_comparison(["hash,dim=16"], TEXT, others, output=tmp_path / "two", config=CONFIG)
    runs = [load_run(tmp_path / "one" / "runs" / "bm25"), load_run(tmp_path / "two" / "runs" / "hash,dim=16")]
    with pytest.raises(PairingError):
        compare([run.result for run in runs])


def test_another_category_or_file_name_does_not_change_the_units(tmp_path: Path) -> None:
    run_to_folder(tmp_path / "one", ["bm25:"])
    recategorised = [{**pair, "category": "negation"} for pair in QUESTIONS]
    document = TextDocument("renamed.md", TEXT)
    run_fair_comparison(["hash,dim=16"], document, recategorised, output=tmp_path / "two", config=CONFIG)
    runs = [load_run(tmp_path / "one" / "runs" / "bm25"), load_run(tmp_path / "two" / "runs" / "hash,dim=16")]
    assert "EQ203" not in {finding.code for finding in compare([run.result for run in runs]).findings}


def test_a_damaged_run_is_computed_again(tmp_path: Path, first_run: Any) -> None:
    (tmp_path / "runs" / "bm25" / "tuning.json").write_text("{")
    (tmp_path / "runs" / "hash,dim=16" / "errors.npz").write_bytes(b"")
    assert run_to_folder(tmp_path).resumed == ()
    assert load_run(tmp_path / "runs" / "bm25").tuning is not None


def test_a_failing_model_does_not_affect_the_others(tmp_path: Path) -> None:
    comparison = run_to_folder(tmp_path, ["bm25:", BrokenModel(), "hash,dim=16"])
    ((name, error),) = comparison.failures.items()
    assert name.endswith("BrokenModel")
    assert [model.model_spec for model in comparison] == [MODELS[0], name, MODELS[1]]
    assert len(comparison) == 3
    with pytest.raises(PartialError):
        _ = comparison[1].best_accuracy
    assert "out of memory" in repr(comparison[1])
    assert f"{name} failed" in repr(comparison)
    assert "out of memory" in error.message
    assert len(list((tmp_path / "runs").iterdir())) == 2
    assert f"1 of 3 requested models failed: {name} (" in " ".join(comparison.summary.split())
    assert list(json.loads((tmp_path / "results.json").read_text())["failures"]) == [name]


def test_the_first_failure_is_raised_when_all_models_fail() -> None:
    with pytest.raises(PartialError):
        run_fair_comparison([BrokenModel()], TEXT, QUESTIONS, config=CONFIG)


@pytest.mark.parametrize(
    ("errors", "code"),
    [
        ([], 0),
        ([MissingExtraError("no engine")], 4),
        ([PartialError("the service is down")], 3),
        ([MissingExtraError("no engine"), PartialError("the service is down")], 3),
    ],
)
def test_the_exit_code_depends_on_the_failures(errors: list[EquipoiseError], code: int) -> None:
    assert exit_code({str(index): error for index, error in enumerate(errors)}) == code


def test_a_json_file_gets_only_the_list_of_embedding_eval(tmp_path: Path) -> None:
    run_to_folder(tmp_path / "results.json")
    content = json.loads((tmp_path / "results.json").read_text())
    assert [tuple(model) for model in content] == [EMBEDDING_EVAL_KEYS] * 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["results.json"]


def test_write_stores_a_finished_comparison_in_a_folder(tmp_path: Path) -> None:
    comparison = run_fair_comparison(MODELS, TEXT, QUESTIONS, config=CONFIG)
    paths = comparison.write(tmp_path / "later")
    assert [path.name for path in paths] == ["results.json", "bm25", "hash,dim=16"]
    assert run_to_folder(tmp_path / "later").resumed == tuple(MODELS)


def test_model_objects_are_not_resumed(tmp_path: Path) -> None:
    run_to_folder(tmp_path, [Counting()])
    assert run_to_folder(tmp_path, [Counting()]).resumed == ()


def test_an_output_that_cannot_be_written_is_an_error_before_the_evaluation(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    model = Counting()
    with pytest.raises(StoreError):
        run_to_folder(tmp_path / "taken", [model])
    assert not model.documents
