"""JSON and TREC exports, and errors of all formats."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from equipoise.errors import DuplicateError, ParameterError, StoreError, UnknownNameError
from equipoise.io.run_files import read_run
from equipoise.report.export import FORMATS, export
from equipoise.runs.unit_table import RetrievedItem, UnitContent


def retrieved_details(*items: tuple[str, float | None], unit: str = "0") -> dict[str | int, UnitContent]:
    """The retrieved items of one unit, best first."""
    return {unit: UnitContent("why?", retrieved=tuple(RetrievedItem(doc, "text", score) for doc, score in items))}


def export_trec(exported, tmp_path: Path) -> dict[str, dict[str, float]]:
    """Export a TREC run and read it again."""
    file = tmp_path / "export.trec"
    file.write_text(export(exported.runs, None, "trec"))
    return read_run(file)


def test_a_trec_run_has_the_scores_of_the_system(make_runs, tmp_path: Path) -> None:
    exported = make_runs(["my system"], details=retrieved_details(("b", 0.9), ("a", 0.25)))
    assert export_trec(exported, tmp_path) == {"0": {"b": 0.9, "a": 0.25}}
    assert export(exported.runs, None, "trec").splitlines()[0] == "0 Q0 b 1 0.9 my_system"


@pytest.mark.parametrize("scores", [(None, None), (0.1, 0.2), (0.9, None)])
def test_the_order_of_the_list_is_used_if_scores_contradict_it(make_runs, tmp_path: Path, scores) -> None:
    exported = make_runs(["one"], details=retrieved_details(("b", scores[0]), ("a", scores[1])))
    assert export_trec(exported, tmp_path) == {"0": {"b": 1.0, "a": 0.5}}


def test_a_run_without_retrieved_lists_is_an_error(make_runs) -> None:
    with pytest.raises(StoreError) as error:
        export(make_runs(["one"]).runs, None, "trec")
    assert error.value.code == "E500"


def test_a_trec_export_of_two_systems_is_an_error(make_runs) -> None:
    exported = make_runs(["one", "two"])
    with pytest.raises(ParameterError) as error:
        export(exported.runs, exported.comparison, "trec")
    assert error.value.code == "E310"


def test_a_duplicate_document_is_an_error(make_runs) -> None:
    exported = make_runs(["one"], details=retrieved_details(("a", 0.9), ("a", 0.8)))
    with pytest.raises(DuplicateError, match="a was retrieved twice for unit 0"):
        export(exported.runs, None, "trec")


def test_white_space_in_names_is_replaced(make_runs, tmp_path: Path) -> None:
    exported = make_runs(
        ["one"], details=retrieved_details(("chunk 7", 0.9), ("chunk\u00a08 of\t9", 0.8), unit="question 1")
    )
    assert export_trec(exported, tmp_path) == {"question_1": {"chunk_7": 0.9, "chunk_8_of_9": 0.8}}


def test_names_that_differ_in_white_space_only_are_an_error(make_runs) -> None:
    equal_items = make_runs(["one"], details=retrieved_details(("chunk 7", 0.9), ("chunk_7", 0.8)))
    with pytest.raises(DuplicateError, match="chunk_7 was retrieved twice for unit 0") as error:
        export(equal_items.runs, None, "trec")
    assert "white space in names becomes _" in error.value.hint
    units = make_runs(
        ["one"], details=retrieved_details(("a", 0.9), unit="q 1") | retrieved_details(("a", 0.9), unit="q_1")
    )
    with pytest.raises(DuplicateError, match="two units would be called q_1"):
        export(units.runs, None, "trec")


def test_json_export_has_no_nan(make_runs, hostile) -> None:
    exported = make_runs(hostile, partial=hostile[:1])
    data = json.loads(export(exported.runs, exported.comparison, "json"), parse_constant=pytest.fail)
    assert set(data["systems"]) == set(hostile)
    assert len(data["cautions"]) == 1
    single_run = json.loads(export(exported.runs[1:2], None, "json"), parse_constant=pytest.fail)
    assert single_run["results"][0]["system"] == hostile[1]


def test_an_unknown_format_gets_a_suggestion(make_runs) -> None:
    with pytest.raises(UnknownNameError) as error:
        export(make_runs(["one"]).runs, None, "latx")
    assert error.value.hint == "did you mean latex?"


@pytest.mark.parametrize("format_name", [name for name in FORMATS if name != "csv"])
def test_only_csv_has_one_row_per_unit(make_runs, format_name: str) -> None:
    with pytest.raises(ParameterError) as error:
        export(make_runs(["one"]).runs, None, format_name, units=True)
    assert error.value.code == "E310"


@pytest.mark.parametrize("format_name", ["latex", "md", "csv", "json", "card"])
def test_several_runs_need_their_comparison(make_runs, format_name: str) -> None:
    with pytest.raises(ParameterError) as error:
        export(make_runs(["one", "two"]).runs, None, format_name)
    assert error.value.code == "E310"
