"""JSON, TREC, and what no format takes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from equipoise.errors import DuplicateError, ParameterError, StoreError, UnknownNameError
from equipoise.io.run_files import read_run
from equipoise.report.export import FORMATS, export
from equipoise.runs.unit_table import RetrievedItem, UnitContent


def lists(*found: tuple[str, float | None], unit: str = "0") -> dict[str | int, UnitContent]:
    """What was retrieved for one unit, best first."""
    return {unit: UnitContent("why?", retrieved=tuple(RetrievedItem(doc, "text", score) for doc, score in found))}


def trec(made, tmp_path: Path) -> dict[str, dict[str, float]]:
    """The run as the reader of TREC files reads it back."""
    file = tmp_path / "export.trec"
    file.write_text(export(made.runs, None, "trec"))
    return read_run(file)


def test_a_trec_run_has_the_scores_of_the_system(stored, tmp_path: Path) -> None:
    made = stored(["my system"], details=lists(("b", 0.9), ("a", 0.25)))
    assert trec(made, tmp_path) == {"0": {"b": 0.9, "a": 0.25}}
    assert export(made.runs, None, "trec").splitlines()[0] == "0 Q0 b 1 0.9 my_system"


@pytest.mark.parametrize("scores", [(None, None), (0.1, 0.2), (0.9, None)])
def test_where_scores_do_not_order_the_list_its_order_does(stored, tmp_path: Path, scores) -> None:
    made = stored(["one"], details=lists(("b", scores[0]), ("a", scores[1])))
    assert trec(made, tmp_path) == {"0": {"b": 1.0, "a": 0.5}}


def test_a_run_without_lists_is_refused_with_a_sentence(stored) -> None:
    with pytest.raises(StoreError, match="the run of one does not keep what was retrieved"):
        export(stored(["one"]).runs, None, "trec")


def test_a_trec_run_holds_one_system(stored) -> None:
    made = stored(["one", "two"])
    with pytest.raises(ParameterError, match="holds one system, and 2 were given"):
        export(made.runs, made.comparison, "trec")


def test_a_document_that_was_retrieved_twice_is_refused(stored) -> None:
    made = stored(["one"], details=lists(("a", 0.9), ("a", 0.8)))
    with pytest.raises(DuplicateError, match="a was retrieved twice for unit 0"):
        export(made.runs, None, "trec")


def test_names_with_white_space_become_one_field(stored, tmp_path: Path) -> None:
    made = stored(["one"], details=lists(("chunk 7", 0.9), ("chunk\u00a08 of\t9", 0.8), unit="question 1"))
    assert trec(made, tmp_path) == {"question_1": {"chunk_7": 0.9, "chunk_8_of_9": 0.8}}


def test_names_that_only_white_space_tells_apart_are_refused(stored) -> None:
    alike = stored(["one"], details=lists(("chunk 7", 0.9), ("chunk_7", 0.8)))
    with pytest.raises(DuplicateError, match="chunk_7 was retrieved twice for unit 0") as refused:
        export(alike.runs, None, "trec")
    assert "white space in names becomes _" in refused.value.hint
    units = stored(["one"], details=lists(("a", 0.9), unit="q 1") | lists(("a", 0.9), unit="q_1"))
    with pytest.raises(DuplicateError, match="two units would be called q_1"):
        export(units.runs, None, "trec")


def test_json_has_no_value_that_json_does_not_know(stored, hostile) -> None:
    made = stored(hostile, partial=hostile[:1])
    data = json.loads(export(made.runs, made.comparison, "json"), parse_constant=pytest.fail)
    assert set(data["systems"]) == set(hostile)
    assert len(data["cautions"]) == 1
    one = json.loads(export(made.runs[1:2], None, "json"), parse_constant=pytest.fail)
    assert one["results"][0]["system"] == hostile[1]


def test_an_unknown_format_gets_a_did_you_mean(stored) -> None:
    with pytest.raises(UnknownNameError) as refused:
        export(stored(["one"]).runs, None, "latx")
    assert refused.value.hint == "did you mean latex?"


@pytest.mark.parametrize("to", [name for name in FORMATS if name != "csv"])
def test_only_csv_has_a_row_a_unit(stored, to: str) -> None:
    with pytest.raises(ParameterError, match="one row per unit"):
        export(stored(["one"]).runs, None, to, units=True)


@pytest.mark.parametrize("to", ["latex", "md", "csv", "json", "card"])
def test_several_runs_are_shown_by_way_of_their_comparison(stored, to: str) -> None:
    with pytest.raises(ParameterError, match="2 runs were given without their comparison"):
        export(stored(["one", "two"]).runs, None, to)
