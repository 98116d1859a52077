"""Details of units and the tuning record in a run directory."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.errors import StoreError
from equipoise.evidence.ranking import Ranking
from equipoise.runs.evaluate import evaluate
from equipoise.runs.manifest import DETAILS, TUNING, Manifest
from equipoise.runs.run_folder import load_run, save_run
from equipoise.runs.unit_table import RetrievedItem, UnitContent, detail_lines, parse_details
from equipoise.tuning.grid import FoldSelection, Trial, TuningRecord
from stored_runs import rewrite

RESULT = evaluate(Ranking.from_ranks([1, 3], candidates=9, unit_ids=["q1", "q2"]), "MRR", system="bm25")
DETAILS_OF_TWO = {
    "q1": UnitContent("why rain?", ("clouds",), {"kind": "why"}, (RetrievedItem("c1", "clouds", 0.5, True, "Sky"),)),
    "q2": UnitContent("</script><b>", (), {}, ()),
}
TUNED = TuningRecord(
    "accuracy",
    (Trial({"top_k": 5}, 0.5, 0.1, 900.0, 1.0), Trial({"top_k": 10}, 0.75, 0.2, 1800.0, 1.0)),
    best=1,
    baseline=0,
    optimistic=0.75,
    nested=0.5,
    folds=(FoldSelection({"top_k": 10}, 0.7, 0.5, 1), FoldSelection({"top_k": 5}, 0.7, 0.5, 1)),
    frontier=(Trial({"top_k": 5}, 0.5, 0.1, 900.0, 1.0),),
    cost_unit="tokens",
    budget=1000,
    within_budget=0,
)


def test_details_and_tuning_round_trip(tmp_path: Path) -> None:
    save_run(tmp_path / "a", RESULT, manifest=Manifest("bm25"), details=DETAILS_OF_TWO, tuning=TUNED)
    stored = load_run(tmp_path / "a")
    assert stored.details == DETAILS_OF_TWO
    assert stored.tuning == TUNED
    assert stored.tuning.gap == 0.25


def test_a_run_without_details_and_tuning_has_none(tmp_path: Path) -> None:
    save_run(tmp_path / "a", RESULT, manifest=Manifest("bm25"))
    stored = load_run(tmp_path / "a")
    assert stored.details == {}
    assert stored.tuning is None


def test_replacing_a_run_removes_details_and_tuning(tmp_path: Path) -> None:
    save_run(tmp_path / "a", RESULT, manifest=Manifest("bm25"), details=DETAILS_OF_TWO, tuning=TUNED)
    save_run(tmp_path / "a", RESULT, manifest=Manifest("bm25"))
    assert not (tmp_path / "a" / DETAILS).exists()
    assert not (tmp_path / "a" / TUNING).exists()


@pytest.mark.parametrize("file", [DETAILS, TUNING])
@pytest.mark.parametrize("text", ['{"id": "q1"}\n', "[1]\n", "{"])
def test_invalid_details_or_tuning_are_an_error_with_the_file_name(tmp_path: Path, file: str, text: str) -> None:
    save_run(tmp_path / "a", RESULT, manifest=Manifest("bm25"), details=DETAILS_OF_TWO, tuning=TUNED)
    rewrite(tmp_path / "a" / file, text)
    stored = load_run(tmp_path / "a")
    with pytest.raises(StoreError, match=file):
        _ = (stored.details, stored.tuning)


def test_parameters_and_cost_of_a_system_are_in_its_manifest(tmp_path: Path) -> None:
    manifest = replace(Manifest("bm25"), parameters={"chunk_size": 512}, cost={"dims": 384, "seconds": 0.5})
    save_run(tmp_path / "a", RESULT, manifest=manifest)
    manifest_read = load_run(tmp_path / "a").manifest
    assert (manifest_read.parameters, manifest_read.cost) == (manifest.parameters, manifest.cost)


def test_a_manifest_without_costs_is_read() -> None:
    content = Manifest("bm25").to_dict()
    del content["parameters"], content["cost"]
    assert Manifest.from_dict(content).cost == {}


numbers = st.floats(allow_nan=False, allow_infinity=False)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
retrieved_items = st.builds(
    RetrievedItem,
    texts,
    texts,
    st.none() | st.floats(allow_nan=False, allow_infinity=False),
    st.booleans(),
    texts,
)
unit_contents = st.builds(
    UnitContent,
    texts,
    st.lists(texts, max_size=3).map(tuple),
    st.dictionaries(texts, texts | st.integers() | st.none(), max_size=3),
    st.lists(retrieved_items, max_size=3).map(tuple),
)


@pytest.mark.slow
@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), unit_contents, max_size=5))
def test_any_text_round_trips(details: dict[str, UnitContent]) -> None:

    lines = list(detail_lines(details))
    assert all("\n" not in line for line in lines)
    assert parse_details([(n, json.loads(line)) for n, line in enumerate(lines, 1)], source="x") == details
