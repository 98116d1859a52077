"""Tables of models and data sets in every format, and the errors of malformed ones."""

from __future__ import annotations

import json
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from equipoise.checks.base import run_checks
from equipoise.domains.bench.leaderboard_readers import read_scores
from equipoise.domains.bench.score_table import ScoreTable, possible_denominators
from equipoise.errors import (
    DuplicateError,
    EquipoiseError,
    FormatError,
    InputError,
    NotFiniteError,
    PairingError,
    ParameterError,
    UnknownNameError,
)
from equipoise.evidence.pairs import Pairs
from equipoise.io.published.numbers import parse_printed
from equipoise.runs.evaluate import evaluate
from equipoise.runs.manifest import Manifest
from equipoise.runs.run_folder import save_run
from stored_runs import SYSTEMS, bread_runs

SCORES = {"a": {"x": 71.5, "y": 60.0}, "b": {"x": 70.25, "y": 61.0}}

WIDE = {
    "csv": "model,x,y\na,71.5,60.0\nb,70.25,61.0\n",
    "tsv": "model\tx\ty\na\t71.5\t60.0\nb\t70.25\t61.0\n",
    "md": "# Results\n\n| Model | x | y |\n|---|--:|--:|\n| a | **71.5** | 60.0 |\n| b | 70.25 | **61.0** |\n",
    "tex": r"""\begin{tabular}{lrr}
Model & x & y \\ \midrule
a & \textbf{71.5} & 60.0 \\
b & 70.25 & 61.0 \\
\end{tabular}
""",
    "json": json.dumps(SCORES),
    "jsonl": '{"model": "a", "x": 71.5, "y": 60.0}\n{"model": "b", "x": 70.25, "y": 61.0}\n',
}


def write(folder: Path, name: str, text: str) -> Path:
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return file


def assert_scores(table: ScoreTable) -> None:
    assert (table.models, table.datasets) == (("a", "b"), ("x", "y"))
    assert table.scores.tolist() == [[71.5, 60.0], [70.25, 61.0]]


@pytest.mark.parametrize("form", WIDE)
def test_a_wide_table_is_read_in_every_format(tmp_path: Path, form: str) -> None:
    assert_scores(read_scores(write(tmp_path, f"table.{form}", WIDE[form])))


def test_python_values_are_read() -> None:
    assert_scores(read_scores(SCORES))
    assert_scores(read_scores([{"model": name, **row} for name, row in SCORES.items()]))


def test_a_long_table_is_read() -> None:
    rows = [{"model": m, "dataset": d, "score": s} for m, row in SCORES.items() for d, s in row.items()]
    assert_scores(read_scores(rows))


def test_pandas_frames_are_read_with_models_in_the_index_or_in_a_column() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(SCORES).T
    assert_scores(read_scores(frame))
    assert_scores(read_scores(frame.rename_axis("model").reset_index()))


@pytest.mark.engines("polars")
def test_polars_frames_are_read() -> None:
    import polars

    assert_scores(read_scores(polars.DataFrame([{"model": name, **row} for name, row in SCORES.items()])))


def test_a_table_with_models_in_columns_is_transposed(tmp_path: Path) -> None:
    text = "dataset,a,b\nx,71.5,70.25\ny,60.0,61.0\n"
    assert_scores(read_scores(write(tmp_path, "table.csv", text)))
    unnamed = write(tmp_path, "unnamed.csv", text.replace("dataset", "task name"))
    assert_scores(read_scores(unnamed, models_in="columns"))
    assert read_scores(unnamed).models == ("x", "y")


def test_links_and_emphasis_are_not_part_of_a_name(tmp_path: Path) -> None:
    text = "Model,x,y\n[a](https://example.org/a),71.5,60.0\n**b**,70.25,61.0\n"
    assert_scores(read_scores(write(tmp_path, "table.csv", text)))


def test_the_largest_table_of_a_document_is_read(tmp_path: Path) -> None:
    text = "| Model | size |\n|---|---|\n| a | 1 |\n\n" + WIDE["md"]
    assert_scores(read_scores(write(tmp_path, "paper.md", text)))


def test_summary_and_description_columns_are_left_out_with_a_note(tmp_path: Path) -> None:
    text = "Rank,Model,Average,Params (M),License,x,y\n1,a,65.8,110,MIT,71.5,60.0\n2,b,65.6,22,Apache,70.25,61.0\n"
    table = read_scores(write(tmp_path, "table.csv", text))
    assert_scores(table)
    assert all(name in table.notes[0] for name in ("Rank", "Average", "Params (M)", "License"))
    assert read_scores(tmp_path / "table.csv", datasets=["Average"]).datasets == ("Average", "x", "y")


def test_metrics_of_one_data_set_are_no_data_sets() -> None:
    scores = {model: {"HR@1": 0.4, "HR@10 ↑": 0.8, "MRR": 0.5} for model in "ab"}
    with pytest.raises(InputError, match="metrics"):
        read_scores(scores)
    assert read_scores(scores, datasets=["HR@1"]).datasets[0] == "HR@1"
    assert read_scores({model: {"HR@1": 0.4, "beauty": 0.8} for model in "ab"}).datasets == ("HR@1", "beauty")


@pytest.mark.parametrize("name", ["n", "N", "n_units", "support"])
def test_the_number_of_units_is_neither_a_data_set_nor_a_model(tmp_path: Path, name: str) -> None:
    by_model = write(tmp_path, "models.csv", f"model,{name},x,y\na,90,71.5,60.0\nb,90,70.25,61.0\n")
    by_dataset = write(tmp_path, "datasets.csv", f"dataset,{name},a,b\nx,90,71.5,70.25\ny,80,60.0,61.0\n")
    for path in (by_model, by_dataset):
        table = read_scores(path)
        assert_scores(table)
        assert name in table.notes[0]
    assert read_scores(by_model, datasets=[name]).datasets == (name, "x", "y")


@pytest.mark.parametrize("text", ["", "-", "—", "n/a", "NaN"])
def test_missing_cells_are_not_numbers(text: str) -> None:
    table = read_scores({"a": {"x": 1.5, "y": text}, "b": {"x": 2.5, "y": 3.5}})
    assert table.missing.tolist() == [[False, True], [False, False]]
    assert not table.unreadable


def test_a_cell_that_is_not_a_number_is_a_finding() -> None:
    table = read_scores({"a": {"x": 71.0, "y": 1.5}, "b": {"x": "OOM", "y": 2.5}, "c": {"x": 70.0, "y": 3.5}})
    assert table.missing.sum() == 1
    assert "EQ425" in finding_codes(table)


def test_a_model_without_any_score_is_a_finding() -> None:
    table = read_scores({"a": {"x": 71.0}, "b": {"x": "OOM"}, "c": {"x": 70.0}})
    assert table.models == ("a", "c")
    assert "EQ425" in finding_codes(table)


def test_digits_intervals_and_percent_signs_are_parsed() -> None:
    table = read_scores({"a": {"x": "84.2 ± 0.3", "y": "61.0%"}, "b": {"x": "83.0 [82.1, 83.9]", "y": "60%"}})
    assert table.scores.tolist() == [[84.2, 61.0], [83.0, 60.0]]
    assert table.scales == {"x": "percent", "y": "percent"}


def test_an_arrow_in_the_header_sets_the_direction(tmp_path: Path) -> None:
    text = "| Model | x ↑ | WER ↓ |\n|---|---|---|\n| a | 71.5 | 8.1 |\n| b | 70.2 | 7.9 |\n"
    table = read_scores(write(tmp_path, "table.md", text))
    assert table.lower == {"WER"}
    assert table.oriented[:, 1].tolist() == [-8.1, -7.9]
    assert "EQ423" not in finding_codes(table)


def finding_codes(table: ScoreTable) -> set[str]:
    return {finding.code for finding in run_checks(table)}


def test_different_scales_and_directions_are_not_comparable() -> None:
    mixed = read_scores({"a": {"x": 71.0, "y": 0.61}, "b": {"x": 70.0, "y": 0.62}})
    assert not mixed.is_comparable
    assert "EQ421" in finding_codes(mixed)
    errors = read_scores({"a": {"x": 7.1, "WER": 6.1}, "b": {"x": 7.0, "WER": 6.2}})
    assert errors.is_comparable
    assert "EQ423" in finding_codes(errors)
    assert not errors.with_lower(["WER"]).is_comparable
    assert errors.with_lower(["x", "WER"]).is_comparable


def test_a_fraction_among_percentages_is_a_finding() -> None:
    table = read_scores({"a": {"x": 71.0}, "b": {"x": 0.702}, "c": {"x": 69.5}, "d": {"x": 75.0}})
    assert "EQ422" in finding_codes(table)


# Missing cells.

GAPS: dict[str, dict[str, Any]] = {
    "a": {"x": 1.5, "y": 2.5, "z": 3.5},
    "b": {"x": 1.6, "y": 2.6, "z": 3.6},
    "c": {"x": 1.7, "y": None, "z": 3.7},
}


def test_missing_cells_keep_common_data_sets_or_complete_models() -> None:
    table = read_scores(GAPS)
    assert table.complete("datasets").datasets == ("x", "z")
    assert table.complete("datasets").models == ("a", "b", "c")
    assert table.complete("models").models == ("a", "b")
    assert table.complete("models").datasets == ("x", "y", "z")
    assert "EQ420" in finding_codes(table)
    assert table.complete("datasets").notes
    assert table.complete("models").notes


def test_missing_cells_without_a_complete_part_are_an_error() -> None:
    table = read_scores({"a": {"x": 1.5, "y": None}, "b": {"x": None, "y": 1.5}})
    for policy in ("datasets", "models", "error"):
        with pytest.raises(PairingError):
            table.complete(policy)  # type: ignore[arg-type]
    with pytest.raises(ParameterError):
        read_scores(GAPS).complete("impute")  # type: ignore[arg-type]


# Units.


def unit_rows(n_units: int = 4) -> list[dict[str, Any]]:
    return [
        {"model": model, "dataset": dataset, "query_id": f"q{unit}", "score": (unit + shift) % 3 / 2}
        for model, shift in (("a", 0), ("b", 1))
        for dataset in ("x", "y")
        for unit in range(n_units)
    ]


def test_per_unit_scores_are_averaged_and_kept() -> None:
    table = read_scores(unit_rows())
    assert table.units["x"].tolist() == [[0.0, 0.5], [0.5, 1.0], [1.0, 0.0], [0.0, 0.5]]
    assert table.scores.tolist() == [[0.375, 0.375], [0.5, 0.5]]
    assert table.n_units == {"x": 4, "y": 4}
    assert table.oriented_units is not None


def test_units_without_a_score_of_every_model_are_left_out_with_a_finding() -> None:
    table = read_scores(unit_rows()[:-1])
    assert table.n_units == {"x": 4, "y": 3}
    assert table.scores[:, 1].tolist() == [0.5, 0.5]
    (finding,) = (finding for finding in run_checks(table) if finding.code == "EQ427")
    assert finding.subject == "y"
    assert "1 (b) of 4" in finding.message


def test_units_that_a_model_lacks_return_when_it_is_left_out() -> None:
    rows = [*unit_rows(), {"model": "c", "dataset": "x", "query_id": "q1", "score": 0.5}]
    table = read_scores(rows)
    assert (table.n_units["x"], table.scores[0, 0]) == (1, 0.5)
    selected = table.select(["a", "b"])
    assert (selected.n_units["x"], selected.scores[0, 0]) == (4, 0.375)
    assert "EQ427" not in finding_codes(selected)


def test_models_without_a_common_unit_are_an_error() -> None:
    rows = [{**row, "query_id": row["model"] + row["query_id"]} for row in unit_rows()]
    with pytest.raises(PairingError):
        read_scores(rows)


def test_a_metric_must_be_chosen_among_several() -> None:
    rows = [{**row, "metric": metric} for row in unit_rows() for metric in ("MRR", "nDCG")]
    with pytest.raises(ParameterError):
        read_scores(rows)
    with pytest.raises(UnknownNameError):
        read_scores(rows, metric="nDGC")
    assert len(read_scores(rows, metric="MRR").units["x"]) == 4


# Folders.


def result_file(folder: Path, model: str, task: str, scores: Any, revision: str = "r1") -> Path:
    file = folder / model / revision / f"{task}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"task_name": task, "dataset_revision": "1", "scores": scores}))
    return file


def entry(score: float | None, subset: str = "default") -> dict[str, Any]:
    return {"main_score": score, "hf_subset": subset, "languages": ["eng-Latn"]}


def test_mteb_results_are_read_by_model_and_task(tmp_path: Path) -> None:
    for model, shift in (("org__a", 0.0), ("org__b", 0.1)):
        result_file(tmp_path, model, "STS17", {"test": [entry(0.5 + shift, "en"), entry(0.7 + shift, "de")]})
        result_file(tmp_path, model, "NQ", {"dev": [entry(0.1)], "test": [entry(0.4 - shift)]})
    table = read_scores(tmp_path)
    assert (table.models, table.datasets) == (("org/a", "org/b"), ("NQ", "STS17"))
    assert np.allclose(table.scores, [[0.4, 0.6], [0.3, 0.7]])
    assert np.allclose(read_scores(tmp_path, subsets=["de"]).scores, [[0.7], [0.8]])
    assert np.allclose(read_scores(tmp_path, split="dev").scores, [[0.1], [0.1]])
    with pytest.raises(UnknownNameError):
        read_scores(tmp_path, split="train")


def test_the_name_of_a_model_comes_from_its_metadata(tmp_path: Path) -> None:
    for model in ("one", "two"):
        result_file(tmp_path, model, "NQ", {"test": [entry(0.4)]})
    (tmp_path / "one" / "r1" / "model_meta.json").write_text('{"name": "org/one", "revision": "abc"}')
    assert read_scores(tmp_path).models == ("org/one", "two")


def test_only_subsets_that_all_models_have_are_averaged(tmp_path: Path) -> None:
    result_file(tmp_path, "a", "T", {"test": [entry(0.2, "en"), entry(0.9, "de")]})
    result_file(tmp_path, "b", "T", {"test": [entry(0.3, "en")]})
    table = read_scores(tmp_path)
    assert table.scores.tolist() == [[0.2], [0.3]]
    assert any("T" in note for note in table.notes)


def test_the_revision_with_the_most_tasks_is_used_with_a_note(tmp_path: Path) -> None:
    result_file(tmp_path, "a", "T", {"test": [entry(0.9)]}, revision="old")
    for task in ("T", "U"):
        result_file(tmp_path, "a", task, {"test": [entry(0.2)]}, revision="new")
        result_file(tmp_path, "b", task, {"test": [entry(0.3)]})
    table = read_scores(tmp_path)
    assert table.scores.tolist() == [[0.2, 0.2], [0.3, 0.3]]
    assert any("new" in note for note in table.notes)


def test_unreadable_files_are_findings_and_the_others_are_used(tmp_path: Path) -> None:
    for model in ("a", "b"):
        result_file(tmp_path, model, "T", {"test": [entry(0.9)]})
    result_file(tmp_path, "a", "U", {"test": [entry(None)]})
    write(tmp_path / "a" / "r1", "V.json", "{")
    write(tmp_path / "a" / "r1", "W.json", '{"mteb_version": "1.0", "test": {}}')
    table = read_scores(tmp_path)
    assert table.datasets == ("T",)
    assert len(table.unreadable) == 2
    assert "EQ425" in finding_codes(table)


def test_a_folder_without_results_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        read_scores(tmp_path)
    write(tmp_path, "notes.json", "[]")
    with pytest.raises(InputError):
        read_scores(tmp_path)


@pytest.mark.engines("mteb")
def test_files_written_by_mteb_have_the_score_that_mteb_reads(tmp_path: Path) -> None:
    from mteb.results import TaskResult

    expected = {}
    for model, shift in (("org__a", 0.0), ("org__b", 0.05)):
        scores = {"test": [{**entry(0.81 + shift, "en-en")}, {**entry(0.62 + shift, "es-es")}]}
        result = TaskResult(
            task_name="STS17",
            dataset_revision="1",
            mteb_version="2.0.0",
            scores=scores,
            evaluation_time=1.0,
            kg_co2_emissions=None,
        )
        file = tmp_path / model / "r1" / "STS17.json"
        file.parent.mkdir(parents=True)
        result.to_disk(file)
        expected[model.replace("__", "/")] = TaskResult.from_disk(file).get_score()
    table = read_scores(tmp_path)
    assert dict(zip(table.models, table.scores[:, 0].tolist(), strict=True)) == pytest.approx(expected)


def test_run_directories_are_read_with_their_units(tmp_path: Path) -> None:
    runs = bread_runs(tmp_path, tuned=False)
    table = read_scores(tmp_path)
    assert set(table.models) == {spec.rstrip(":") for spec in SYSTEMS}
    assert table.datasets == ("bread",)
    assert len(table.units["bread"]) == len(runs[0].result.unit_ids)
    by_model = dict(zip(table.models, table.scores[:, 0].tolist(), strict=True))
    for run in runs:
        assert by_model[run.result.system] == pytest.approx(run.result.estimates[run.result.names[0]].value)


def test_interrupted_writes_and_manifests_of_other_programs_are_no_runs(tmp_path: Path) -> None:
    runs = bread_runs(tmp_path, tuned=False)
    shutil.copytree(next(tmp_path.rglob("manifest.json")).parent, tmp_path / ".a.1.part")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "manifest.json").write_text("{}")
    table = read_scores(tmp_path)
    assert len(table.models) == len(runs)
    assert table.unreadable == ()


def test_an_unknown_metric_of_run_directories_is_an_error(tmp_path: Path) -> None:
    bread_runs(tmp_path, tuned=False)
    with pytest.raises(UnknownNameError):
        read_scores(tmp_path, metric="nDGC")


def test_metrics_without_per_unit_values_are_read_as_one_score(tmp_path: Path) -> None:
    for system, scores in (("a", [0.1, 0.5, 0.9, 0.7]), ("b", [0.2, 0.1, 0.8, 0.3])):
        result = evaluate(Pairs.of(scores, expected=[0.0, 1.0, 2.0, 3.0]), ["Spearman"], system=system)
        save_run(tmp_path / system, result, manifest=Manifest(system, datasets={"sts.csv": "1"}))
    table = read_scores(tmp_path)
    assert table.datasets == ("sts.csv",)
    assert table.units == {}
    assert table.scores[:, 0].tolist() == pytest.approx([0.8, 0.6])


# Denominators.


def reference_denominators(texts: list[str], limit: int) -> list[int]:
    """Every n for which all texts are rounded percentages of n."""
    return [n for n in range(1, limit + 1) if all(any(f"{100 * k / n:.2f}" == t for k in range(n + 1)) for t in texts)]


@pytest.mark.parametrize("texts", [["66.67"], ["66.67", "83.33"], ["12.50", "37.50"], ["99.00"], ["0.00", "100.00"]])
def test_denominators_equal_a_plain_search(texts: list[str]) -> None:
    cells = [number for text in texts if (number := parse_printed(text)) is not None]
    assert list(possible_denominators(cells, percent=True, limit=60)) == reference_denominators(texts, 60)


def test_denominators_need_accuracies_and_a_stated_number_must_be_consistent() -> None:
    rows = [{"model": m, "dataset": "accuracy", "score": s, "n": 10} for m, s in (("a", "66.67"), ("b", "50.00"))]
    table = read_scores(rows)
    assert table.denominators()["accuracy"][:3] == (6, 12, 18)
    assert "EQ426" in finding_codes(table)
    assert "EQ426" not in finding_codes(read_scores([{**row, "n": 12} for row in rows]))
    assert "EQ426" in finding_codes(read_scores([*rows, {"model": "c", "dataset": "F1", "score": "50.00"}]))
    assert read_scores([{**row, "dataset": "nDCG"} for row in rows]).denominators() == {}


def test_percentages_below_one_are_read() -> None:
    table = read_scores([{"model": m, "dataset": "errors", "score": s} for m, s in (("a", "0.5 %"), ("b", "0.7 %"))])
    assert "EQ422" not in finding_codes(table)


# Malformed tables.

MALFORMED: dict[str, tuple[str, str, type[EquipoiseError]]] = {
    "an empty file": ("t.csv", "", InputError),
    "an unknown suffix": ("t.xlsx", "model,x\na,1\n", FormatError),
    "a header alone": ("t.csv", "model,x\n", FormatError),
    "no number": ("t.csv", "model,x\na,high\nb,low\n", FormatError),
    "only summaries": ("t.csv", "model,Average\na,1.5\nb,2.5\n", FormatError),
    "a model twice": ("t.csv", "model,x\na,1.5\na,2.5\n", DuplicateError),
    "a data set twice": ("t.csv", "model,x,x\na,1.5,2.5\nb,1,2\n", DuplicateError),
    "a model without a name": ("t.csv", "model,x\na,1.5\n,2.5\n", FormatError),
    "a row that is too long": ("t.csv", "model,x\na,1.5,9\nb,2.5\n", FormatError),
    "an infinite score": ("t.csv", "model,x\na,inf\nb,2.5\nc,2.5\n", NotFiniteError),
    "a text without a table": ("t.md", "# Nothing\n\nwords\n", FormatError),
    "broken JSON": ("t.json", '{"a": {"x": 1.5}', FormatError),
    "JSON of another shape": ("t.json", "[1, 2, 3]", FormatError),
    "JSON with lists as scores": ("t.json", '{"a": {"x": [1, 2]}, "b": {"x": 1}}', FormatError),
    "a long table with a cell twice": ("t.csv", "model,dataset,score\na,x,1.5\na,x,2.5\n", DuplicateError),
    "a long table without a name": ("t.csv", "model,dataset,score\n,x,1.5\nb,x,2.5\n", FormatError),
    "a long table without a score": ("t.csv", "model,dataset,score\na,x,\nb,x,\n", FormatError),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_a_malformed_table_is_an_error_with_a_message_and_a_hint(tmp_path: Path, case: str) -> None:
    name, text, kind = MALFORMED[case]
    with pytest.raises(EquipoiseError) as error:
        read_scores(write(tmp_path, name, text))
    assert isinstance(error.value, kind), error.value.render()
    assert error.value.message
    assert error.value.hint


PIECES = (
    *("model", "dataset", "score", "Average", "a", "b", "x", "1.5", "70", "inf", "%", "-", "---", "\u2193", " "),
    *(",", "|", "\n", "\t", "&", "\\\\", '"', "{", "}", "[", "]", ":"),
)


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.md", "t.txt", "t.tex", "t.json", "t.jsonl"])
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pieces=st.lists(st.sampled_from(PIECES), max_size=60))
def test_any_text_gives_a_table_or_an_error_with_a_code(tmp_path: Path, name: str, pieces: list[str]) -> None:
    file = write(tmp_path, name, "".join(pieces))
    with suppress(EquipoiseError):
        table = read_scores(file)
        assert table.scores.shape == (len(table.models), len(table.datasets))
        run_checks(table)


def test_a_file_that_does_not_exist_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        read_scores(tmp_path / "none.csv")


def test_splits_and_subsets_are_options_of_folders_only() -> None:
    with pytest.raises(ParameterError):
        read_scores(SCORES, split="test")
    with pytest.raises(ParameterError):
        read_scores(SCORES, models_in="diagonal")
