"""The folder of a comparison: what is written, what is read back, what a failure leaves."""

from __future__ import annotations

import json
import shutil
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from equipoise import load_run, run_fair_comparison
from equipoise.config import StatsConfig
from equipoise.domains.fair import config, experiment, plan, results
from equipoise.domains.fair.config import METRIC
from equipoise.domains.fair.results import EMBEDDING_EVAL_KEYS
from equipoise.errors import EquipoiseError, MissingExtraError, PairingError, PartialError, StoreError
from equipoise.io.documents import TextDocument
from equipoise.models.cache import VectorCache
from equipoise.models.embedder import Embedder
from equipoise.models.encoder import Encoder, ModelCard
from equipoise.runs import manifest
from equipoise.runs.compare import compare
from equipoise.runs.experiment_folder import exit_code
from equipoise.types import Role
from fair_sample import SETTINGS, Counting, document, pairs

TEXT = document()
ASKED = pairs(TEXT)
MODELS = ["bm25:", "hash,dim=16"]


class Slow(Encoder):
    """A model whose vectors are worth keeping."""

    card = ModelCard("slow", "py:slow", dims=3)
    identity = "slow"

    def encode(self, texts: Any, role: Role) -> Any:
        return np.array([[len(text), text.count("a"), 1.0] for text in texts], dtype=np.float32)


class Broken:
    """A model that fails when it is used."""

    def encode(self, texts: list[str]) -> Any:
        raise RuntimeError("out of order")


def ran(output: Path, models: list[Any] = MODELS, **changes: Any) -> Any:
    return run_fair_comparison(models, TEXT, ASKED, output=output, **{**SETTINGS, **changes})


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    """A comparison of both models, and its folder."""
    folder = tmp_path_factory.mktemp("finished")
    return ran(folder), folder


@pytest.fixture
def first(finished: tuple[Any, Path], tmp_path: Path) -> Any:
    """The comparison of both models, with a copy of its folder in ``tmp_path``."""
    found, folder = finished
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    return found


def test_a_folder_holds_the_results_and_a_run_directory_a_model(tmp_path: Path, first: Any) -> None:
    content = json.loads((tmp_path / "results.json").read_text())
    assert [model["model_spec"] for model in content["models"]] == MODELS
    assert set(EMBEDDING_EVAL_KEYS) <= set(content["models"][0])
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == ["bm25", "hash,dim=16"]
    for model, name in zip(first, ("bm25", "hash,dim=16"), strict=True):
        stored = load_run(tmp_path / "runs" / name)
        assert stored.tuning == model.tuning
        assert stored.result[METRIC] == model.result[METRIC]
        assert stored.manifest.cost["retrieved_tokens"] == model.retrieved_tokens
        assert stored.manifest.parameters["top_k"] == model.best_params["top_k"]


@pytest.mark.slow
def test_charts_are_drawn_from_what_was_written(tmp_path: Path, first: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    written = first.draw(tmp_path)
    assert {path.parent for path in written} == {tmp_path / "visualizations"}
    names = {path.name for path in written}
    assert {"leaderboard.png", "differences.svg", "frontier.png", "tuning-grid-bm25.svg"} <= names
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    assert ran(tmp_path, ["bm25:"]).draw(tmp_path) == []


def test_run_directories_can_be_compared_by_themselves(tmp_path: Path, first: Any) -> None:
    again = compare([load_run(path).result for path in sorted((tmp_path / "runs").iterdir())])
    assert again.primary == METRIC
    assert again.contrast("bm25:", "hash,dim=16").difference == pytest.approx(
        first.comparison.contrast("bm25:", "hash,dim=16").difference
    )


def test_details_show_what_the_best_configuration_retrieves(tmp_path: Path, first: Any) -> None:
    details = load_run(tmp_path / "runs" / "bm25").details
    assert len(details) == len(ASKED)
    best = first[0].best_params
    for pair, detail in zip(ASKED, details.values(), strict=True):
        assert detail.text == pair["question"]
        assert detail.expected == (pair["answer"],)
        assert detail.slices == {"category": pair["category"], "difficulty": pair["difficulty"]}
        assert len(detail.retrieved) == best["top_k"]
        for chunk in detail.retrieved:
            assert chunk.relevant == (pair["answer"].lower() in " ".join(chunk.text.split()).lower())
            assert chunk.where.startswith("Part ")


def test_finished_models_are_read_back_and_not_computed_again(
    tmp_path: Path, first: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(experiment, "evaluate_model", lambda *given: pytest.fail("a finished model was computed again"))
    second = ran(tmp_path)
    assert second.resumed == tuple(MODELS)
    assert second.to_dict() == first.to_dict()
    assert second.summary == first.summary


def test_finished_models_need_no_chunks_and_rewrite_nothing(
    tmp_path: Path, first: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "prepare_inputs", lambda *given: pytest.fail("the documents were chunked again"))
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()}
    second = ran(tmp_path)
    after = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()}
    assert {path for path in after if after[path] != before.get(path)} <= {tmp_path / "progress.json"}
    assert second.summary == first.summary


@pytest.mark.parametrize("change", [{"top_ks": [1, 2]}, {"seed": 1}, {"matcher": "source"}, {"folds": 3}])
def test_other_inputs_are_computed_again(tmp_path: Path, first: Any, change: dict[str, Any]) -> None:
    assert ran(tmp_path, **change).resumed == ()


def test_a_model_that_is_added_is_the_only_one_computed(tmp_path: Path, first: Any) -> None:
    found = ran(tmp_path, [*MODELS, "tfidf:"])
    assert found.resumed == tuple(MODELS)
    assert len(found) == 3


def test_a_run_of_another_version_is_computed_again(
    tmp_path: Path, first: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "VERSION", "another version")
    assert ran(tmp_path).resumed == ()


def test_a_run_with_another_number_of_resamples_is_computed_again(
    tmp_path: Path, first: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bootstrap errors are only paired if they come from the same resamples."""
    monkeypatch.setattr(config, "FAIR_STATS", StatsConfig(n_resamples=2_000))
    new = ran(tmp_path)
    assert new.resumed == ()
    assert first[0].result.settings["draws"] != new[0].result.settings["draws"]


def test_a_run_says_when_it_was_begun_and_what_its_seconds_are_worth(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Days:
        """A clock that moves on a day whenever it is asked."""

        passed = 0

        @classmethod
        def now(cls, zone: Any) -> datetime:
            cls.passed += 1
            return datetime(2026, 11, cls.passed, tzinfo=zone)

    monkeypatch.setattr(manifest, "datetime", Days)
    run_fair_comparison(["hash,dim=16"], TEXT, ASKED, output=tmp_path / "a", cache=False, **SETTINGS)
    cold = load_run(tmp_path / "a" / "runs" / "hash,dim=16").manifest
    assert cold.started < cold.finished
    assert cold.cost["seconds"] > 0
    assert cold.cost["texts_from_cache"] == 0


def test_seconds_that_a_warm_cache_spared_are_no_cost(tmp_path: Path) -> None:
    cache = VectorCache(tmp_path / "cache")
    for name in ("first", "second"):
        model = Embedder(Slow(), cache=cache)
        run_fair_comparison([model], TEXT, ASKED, output=tmp_path / name, **SETTINGS)
    first, second = (load_run(next((tmp_path / name / "runs").iterdir())).manifest for name in ("first", "second"))
    assert first.cost["seconds"] > 0
    assert second.cost["seconds"] is None
    assert second.cost["seconds_with_cache"] > 0
    assert second.cost["texts_from_cache"] > len(ASKED)


def test_the_tokenizer_is_recorded(tmp_path: Path, first: Any) -> None:
    assert load_run(tmp_path / "runs" / "bm25").manifest.parameters["tokenizer"] == "words"
    assert json.loads((tmp_path / "results.json").read_text())["settings"]["tokenizer"] == "words"


def test_without_folds_runs_are_written_and_read_back(tmp_path: Path) -> None:
    first, second = (ran(tmp_path, folds=1) for _ in range(2))
    assert second.resumed == tuple(MODELS)
    assert second.summary == first.summary
    assert second[0].tuning.folds == ()


def test_runs_of_other_calls_are_told_from_those_of_this_one(tmp_path: Path) -> None:
    ran(tmp_path, ["tfidf:"])
    ran(tmp_path, ["hash,dim=8"], top_ks=[4])
    (tmp_path / "runs" / "notes").mkdir()
    found = ran(tmp_path)
    assert found.unrelated_runs(tmp_path) == {"hash,dim=8": False, "tfidf": True}
    assert [path.name for path in found.runs(tmp_path)] == ["bm25", "hash,dim=16"]


def test_runs_of_other_questions_are_not_compared_by_the_names_of_their_units(tmp_path: Path) -> None:
    ran(tmp_path / "one", ["bm25:"])
    others = [{**pair, "question": f"{pair['question']} Really?"} for pair in ASKED]
    run_fair_comparison(["hash,dim=16"], TEXT, others, output=tmp_path / "two", **SETTINGS)
    runs = [load_run(tmp_path / "one" / "runs" / "bm25"), load_run(tmp_path / "two" / "runs" / "hash,dim=16")]
    with pytest.raises(PairingError):
        compare([run.result for run in runs])


def test_another_kind_or_file_name_does_not_change_the_units(tmp_path: Path) -> None:
    ran(tmp_path / "one", ["bm25:"])
    kinds = [{**pair, "category": "negation"} for pair in ASKED]
    document = TextDocument("renamed.md", TEXT)
    run_fair_comparison(["hash,dim=16"], document, kinds, output=tmp_path / "two", **SETTINGS)
    runs = [load_run(tmp_path / "one" / "runs" / "bm25"), load_run(tmp_path / "two" / "runs" / "hash,dim=16")]
    assert "EQ203" not in {finding.code for finding in compare([run.result for run in runs]).findings}


def test_a_damaged_run_is_computed_again(tmp_path: Path, first: Any) -> None:
    (tmp_path / "runs" / "bm25" / "tuning.json").write_text("{")
    (tmp_path / "runs" / "hash,dim=16" / "errors.npz").write_bytes(b"")
    assert ran(tmp_path).resumed == ()
    assert load_run(tmp_path / "runs" / "bm25").tuning is not None


def test_a_failing_model_takes_nothing_from_the_others(tmp_path: Path) -> None:
    found = ran(tmp_path, ["bm25:", Broken(), "hash,dim=16"])
    ((name, error),) = found.failures.items()
    assert name.endswith("Broken")
    assert [model.model_spec for model in found] == [MODELS[0], name, MODELS[1]]
    assert len(found) == 3
    with pytest.raises(PartialError):
        _ = found[1].best_accuracy
    assert "out of order" in repr(found[1])
    assert f"{name} failed" in repr(found)
    assert "out of order" in error.message
    assert len(list((tmp_path / "runs").iterdir())) == 2
    assert f"{name} failed" in found.summary
    assert list(json.loads((tmp_path / "results.json").read_text())["failures"]) == [name]


def test_when_all_models_fail_the_first_failure_is_raised() -> None:
    with pytest.raises(PartialError):
        run_fair_comparison([Broken()], TEXT, ASKED, **SETTINGS)


@pytest.mark.parametrize(
    ("errors", "code"),
    [
        ([], 0),
        ([MissingExtraError("no engine")], 4),
        ([PartialError("the service is down")], 3),
        ([MissingExtraError("no engine"), PartialError("the service is down")], 3),
    ],
)
def test_the_exit_code_says_what_failed(errors: list[EquipoiseError], code: int) -> None:
    assert exit_code({str(place): error for place, error in enumerate(errors)}) == code


def test_a_json_file_gets_the_list_of_the_source_alone(tmp_path: Path) -> None:
    ran(tmp_path / "results.json")
    content = json.loads((tmp_path / "results.json").read_text())
    assert [tuple(model) for model in content] == [EMBEDDING_EVAL_KEYS] * 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["results.json"]


def test_write_puts_everything_into_a_folder_afterwards(tmp_path: Path) -> None:
    found = run_fair_comparison(MODELS, TEXT, ASKED, **SETTINGS)
    written = found.write(tmp_path / "later")
    assert [path.name for path in written] == ["results.json", "bm25", "hash,dim=16"]
    assert ran(tmp_path / "later").resumed == tuple(MODELS)


def test_a_model_in_hand_is_never_taken_for_another(tmp_path: Path) -> None:
    ran(tmp_path, [Counting()])
    assert ran(tmp_path, [Counting()]).resumed == ()


def test_an_output_that_cannot_be_written_is_refused_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    model = Counting()
    with pytest.raises(StoreError):
        ran(tmp_path / "taken", [model])
    assert not model.documents
