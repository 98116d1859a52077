"""The folder of a comparison: what is written, what is read back, what a failure leaves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from equipoise import read_run, run_fair_comparison
from equipoise.errors import EquipoiseError, MissingExtraError, PartialError, StoreError
from equipoise.recipes.fair import compare as module
from equipoise.recipes.fair.comparison import exit_code
from equipoise.recipes.fair.result import METRIC, SOURCE_KEYS
from equipoise.run.evaluate import compare
from fair_sample import SETTINGS, Counting, document, pairs

TEXT = document()
ASKED = pairs(TEXT)
MODELS = ["bm25:", "hash,dim=16"]


class Broken:
    """A model that fails when it is used."""

    def encode(self, texts: list[str]) -> Any:
        raise RuntimeError("out of order")


def ran(output: Path, models: list[Any] = MODELS, **changes: Any) -> Any:
    return run_fair_comparison(models, TEXT, ASKED, output=output, **{**SETTINGS, **changes})


def test_a_folder_holds_the_results_and_a_run_directory_a_model(tmp_path: Path) -> None:
    found = ran(tmp_path)
    content = json.loads((tmp_path / "results.json").read_text())
    assert [model["model_spec"] for model in content["models"]] == MODELS
    assert set(SOURCE_KEYS) <= set(content["models"][0])
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == ["bm25", "hash,dim=16"]
    for model, name in zip(found, ("bm25", "hash,dim=16"), strict=True):
        stored = read_run(tmp_path / "runs" / name)
        assert stored.tuning == model.tuning
        assert stored.result[METRIC] == model.result[METRIC]
        assert stored.manifest.cost["retrieved_tokens"] == model.retrieved_tokens
        assert stored.manifest.parameters["top_k"] == model.best_params["top_k"]


def test_run_directories_can_be_compared_by_themselves(tmp_path: Path) -> None:
    found = ran(tmp_path)
    again = compare([read_run(path).result for path in sorted((tmp_path / "runs").iterdir())])
    assert again.primary == METRIC
    assert again.contrast("bm25:", "hash,dim=16").difference == pytest.approx(
        found.comparison.contrast("bm25:", "hash,dim=16").difference
    )


def test_details_show_what_the_best_configuration_retrieves(tmp_path: Path) -> None:
    found = ran(tmp_path)
    details = read_run(tmp_path / "runs" / "bm25").details
    assert len(details) == len(ASKED)
    best = found[0].best_params
    for pair, detail in zip(ASKED, details.values(), strict=True):
        assert detail.text == pair["question"]
        assert detail.expected == (pair["answer"],)
        assert detail.slices == {"category": pair["category"], "difficulty": pair["difficulty"]}
        assert len(detail.retrieved) == best["top_k"]
        for chunk in detail.retrieved:
            assert chunk.relevant == (pair["answer"].lower() in " ".join(chunk.text.split()).lower())
            assert chunk.where.startswith("Part ")


def test_finished_models_are_read_back_and_not_computed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = ran(tmp_path)
    monkeypatch.setattr(module, "outcome", lambda *given: pytest.fail("a finished model was computed again"))
    second = ran(tmp_path)
    assert second.resumed == tuple(MODELS)
    assert second.to_dict() == first.to_dict()
    assert second.summary == first.summary


@pytest.mark.parametrize("change", [{"top_ks": [1, 2]}, {"seed": 1}, {"matcher": "source"}, {"folds": 3}])
def test_other_inputs_are_computed_again(tmp_path: Path, change: dict[str, Any]) -> None:
    ran(tmp_path)
    assert ran(tmp_path, **change).resumed == ()


def test_a_model_that_is_added_is_the_only_one_computed(tmp_path: Path) -> None:
    ran(tmp_path)
    found = ran(tmp_path, [*MODELS, "tfidf:"])
    assert found.resumed == tuple(MODELS)
    assert len(found) == 3


def test_a_damaged_run_is_computed_again(tmp_path: Path) -> None:
    ran(tmp_path)
    (tmp_path / "runs" / "bm25" / "tuning.json").write_text("{")
    (tmp_path / "runs" / "hash,dim=16" / "errors.npz").write_bytes(b"")
    assert ran(tmp_path).resumed == ()
    assert read_run(tmp_path / "runs" / "bm25").tuning is not None


def test_a_failing_model_takes_nothing_from_the_others(tmp_path: Path) -> None:
    found = ran(tmp_path, ["bm25:", Broken(), "hash,dim=16"])
    assert [model.model_spec for model in found] == MODELS
    ((name, error),) = found.failures.items()
    assert name.endswith("Broken")
    assert "out of order" in error.sentence
    assert len(list((tmp_path / "runs").iterdir())) == 2
    assert f"{name} failed" in found.summary
    assert list(json.loads((tmp_path / "results.json").read_text())["failures"]) == [name]


def test_when_all_models_fail_the_first_failure_is_raised() -> None:
    with pytest.raises(PartialError, match="out of order"):
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
    assert [tuple(model) for model in content] == [SOURCE_KEYS] * 2
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
    with pytest.raises(StoreError, match="is a file"):
        ran(tmp_path / "taken", [model])
    assert not model.documents
