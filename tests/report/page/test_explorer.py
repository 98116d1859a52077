"""The unit explorer of a report: the selection of units, and complete contents."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.errors import StoreError
from equipoise.report import unit_explorer
from equipoise.report.build_view import build_view, compare_runs
from equipoise.report.unit_explorer import (
    ELLIPSIS,
    TextPool,
    max_text_length,
    read_unit_details,
    read_unit_slices,
    select_units,
)
from equipoise.report.view import RunsView
from equipoise.report.view_model import UnitExplorer
from equipoise.runs.manifest import DETAILS
from equipoise.runs.run_folder import StoredRun, load_run, save_run
from equipoise.runs.unit_table import RetrievedItem, UnitContent
from equipoise.types import Direction
from stored_runs import bread_runs, ranks, synthetic_runs, tuning


def explorer_of(report: RunsView) -> UnitExplorer:
    assert report.explorer is not None
    return report.explorer


def view_of(runs: list[StoredRun]) -> RunsView:
    return build_view(runs, compare_runs(runs), exports=False)


def with_splits(runs: list[StoredRun], splits: int) -> list[StoredRun]:
    """The runs as if their questions had been split into folds several times."""
    for run in runs:
        run.__dict__["tuning"] = replace(tuning(), splits=splits, split_sd=0.1)
    return runs


def test_all_retrieved_items_are_in_the_explorer(tmp_path: Path) -> None:
    runs = bread_runs(tmp_path, tuned=False)
    report = view_of(runs)
    explorer = explorer_of(report)
    by_name = {run.result.system: run for run in runs}
    assert len(explorer.units) == explorer.total == 80
    assert explorer.note == ""
    assert "is the mean over 20 random splits" in explorer_of(view_of(with_splits(runs, 20))).note
    for unit, detail in zip(explorer.units, explorer.details, strict=True):
        assert detail is not None
        text, expected, retrieved = detail
        for system, (items, scores, relevant) in zip(report.systems, retrieved, strict=True):
            content = by_name[system.name].details[unit]
            assert explorer.texts[text] == content.text
            assert [explorer.texts[index] for index in expected] == list(content.expected)
            names = [(explorer.items[item][0], explorer.texts[explorer.items[item][1]]) for item in items]
            assert names == [(entry.id, entry.text) for entry in content.retrieved]
            assert scores == pytest.approx([entry.score for entry in content.retrieved], abs=1e-4)
            assert relevant == [rank for rank, entry in enumerate(content.retrieved) if entry.relevant]


def test_values_and_lists_of_repeated_cross_validation_are_explained(tmp_path: Path) -> None:
    assert explorer_of(view_of(bread_runs(tmp_path / "single"))).unit_note == ""
    run = synthetic_runs(tmp_path, ["a"], {"MRR": [[0.1, 0.2, 0.3]]})[0]
    repeated = replace(tuning(0), splits=100, split_sd=0.01)
    path = save_run(tmp_path / "repeated", run.result, manifest=run.manifest, tuning=repeated)
    assert "in most of the 100 random splits" in explorer_of(view_of([load_run(path)])).unit_note


def test_values_are_aligned_by_unit_id(tmp_path: Path) -> None:
    ascending = synthetic_runs(tmp_path / "forth", ["a"], {"MRR": [[0.1, 0.2, 0.3]]}, units=["x", "y", "z"])
    descending = synthetic_runs(tmp_path / "back", ["b"], {"MRR": [[0.6, 0.5, 0.4]]}, units=["z", "y", "x"])
    report = view_of(ascending + descending)
    explorer = explorer_of(report)
    values = {system.name: row for system, row in zip(report.systems, explorer.columns[0]["values"], strict=True)}
    assert dict(zip(explorer.units, values["a"], strict=True)) == {"x": 0.1, "y": 0.2, "z": 0.3}
    assert dict(zip(explorer.units, values["b"], strict=True)) == {"x": 0.4, "y": 0.5, "z": 0.6}


def test_every_text_is_stored_once(tmp_path: Path) -> None:
    texts = explorer_of(view_of(bread_runs(tmp_path, tuned=False))).texts
    assert len(set(texts)) == len(texts)


@given(
    st.lists(st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0, float("nan")]), min_size=3, max_size=3), min_size=1),
    st.integers(1, 12),
)
def test_units_with_the_largest_differences_are_selected(rows: list[list[float]], max_units: int) -> None:
    values = np.array(rows)
    selection = select_units(values, max_units, Direction.UP)

    def value_range(row: list[float]) -> float:
        defined = [value for value in row if value == value]
        return max(defined) - min(defined) if defined else -1.0

    kept = set(selection.kept.tolist())
    assert len(kept) == min(max_units, len(rows))
    assert selection.kept.tolist() == sorted(kept)
    assert set(selection.ranked.tolist()) == kept
    excluded_ranges = [value_range(row) for index, row in enumerate(rows) if index not in kept]
    assert max(excluded_ranges, default=-2.0) <= min(value_range(rows[index]) for index in kept)
    assert bool(selection.note) == (len(rows) > max_units)


def test_the_worst_units_of_one_system_are_selected() -> None:
    values = np.array([[0.9], [0.1], [0.5], [0.2]])
    assert select_units(values, 2, Direction.UP).kept.tolist() == [1, 3]
    assert select_units(values, 2, Direction.DOWN).kept.tolist() == [0, 2]


def test_equal_units_are_sampled_with_the_seed() -> None:
    values = np.zeros((200, 2))
    selections = [select_units(values, 20, Direction.UP, seed=seed).kept.tolist() for seed in (0, 0, 1)]
    assert selections[0] == selections[1]
    assert selections[0] != selections[2]


def test_a_limited_page_explains_the_selection_of_units(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unit_explorer, "MOST_CELLS", 40)
    runs = synthetic_runs(tmp_path, ["a", "b"], {"MRR": 1 / ranks(2, 100)})
    explorer = explorer_of(view_of(runs))
    assert (len(explorer.units), explorer.total) == (20, 100)
    assert explorer.note.startswith("20 of 100 are shown: those on which the systems differ most")
    assert "(seed 0)" in explorer.note


def test_retrieved_items_are_dropped_before_units(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unit_explorer, "MOST_HITS", 60)
    details: dict[str | int, UnitContent] = {
        f"q{index}": UnitContent("?", retrieved=tuple(RetrievedItem(f"d{rank}", "text") for rank in range(3)))
        for index in range(50)
    }
    runs = synthetic_runs(tmp_path, ["a", "b"], {"MRR": 1 / ranks(2, 50)}, details=details)
    explorer = explorer_of(view_of(runs))
    details_with_hits = [detail for detail in explorer.details if detail is not None and detail[2]]
    assert len(explorer.units) == 50
    assert len(details_with_hits) == 10
    assert "Retrieved items are shown for 10 of them" in explorer.note


def test_long_texts_are_truncated_with_a_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unit_explorer, "TEXT_BYTES", 30_000)
    details: dict[str | int, UnitContent] = {
        f"q{index}": UnitContent("ä" * 3000 + str(index), ("right",)) for index in range(20)
    }
    runs = synthetic_runs(tmp_path, ["a", "b"], {"MRR": 1 / ranks(2, 20)}, details=details)
    explorer = explorer_of(view_of(runs))
    assert "Texts are truncated to 600 characters." in explorer.note
    assert max(map(len, explorer.texts)) == 600 + len(ELLIPSIS)
    assert sum(len(text.encode()) for text in explorer.texts) < 31_000


@given(st.lists(st.text(alphabet="ab", max_size=5000), max_size=20), st.integers(100, 20_000))
def test_truncated_texts_fit_the_limit(texts: list[str], max_bytes: int) -> None:
    length = max_text_length(set(texts), max_bytes)
    if length is None:
        assert sum(min(len(text), 160) for text in set(texts)) > max_bytes
        return
    pool = TextPool(length)
    for text in texts:
        assert pool.texts[pool.place(text)].removesuffix(ELLIPSIS) == text[:length]
    assert sum(len(text.removesuffix(ELLIPSIS)) for text in pool.texts) <= max_bytes


def test_reading_many_units_line_by_line_gives_the_same_details(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    misleading_text = '", "retrieved": [{"id": 1}], "slices": {}'
    details: dict[str | int, UnitContent] = {
        "a": UnitContent(
            misleading_text,
            (misleading_text,),
            {"retrieved": 3, misleading_text: None},
            (RetrievedItem(misleading_text, misleading_text, 0.5, True),),
        ),
        "b": UnitContent("plain", (), {"kind": "x"}),
        "c": UnitContent(""),
    }
    (run,) = synthetic_runs(tmp_path, ["s"], {"MRR": [[1.0, 0.5, 0.2]]}, units=["a", "b", "c"], details=details)
    unit_details, slices = read_unit_details(run, ["a", "c", "unknown"]), read_unit_slices([run])
    monkeypatch.setattr(unit_explorer, "MANY", 1)
    assert read_unit_details(run, ["a", "c", "unknown"]) == unit_details == {"a": details["a"], "c": details["c"]}
    assert read_unit_slices([run]) == slices == {"a": details["a"].slices, "b": details["b"].slices}


def test_a_damaged_line_is_an_error_when_read_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (run,) = synthetic_runs(
        tmp_path, ["s"], {"MRR": [[1.0, 0.5]]}, details={"q0": UnitContent("?"), "q1": UnitContent("!")}
    )
    lines = (run.path / DETAILS).read_text().splitlines()
    (run.path / DETAILS).write_text(f"{lines[0]}\n[1, 2\n")
    monkeypatch.setattr(unit_explorer, "MANY", 1)
    with pytest.raises(StoreError, match="line 2"):
        read_unit_details(run, ["q0"])


def test_slices_of_units_are_stored_as_indices(tmp_path: Path) -> None:
    details: dict[str | int, UnitContent] = {
        "q0": UnitContent("", slices={"kind": "b"}),
        "q1": UnitContent("", slices={"kind": "a"}),
        "q2": UnitContent(""),
    }
    runs = synthetic_runs(tmp_path, ["s", "t"], {"MRR": [[1.0, 0.5, 0.2], [1.0, 0.4, 0.1]]}, details=details)
    (kind,) = explorer_of(view_of(runs)).slices
    assert kind == {"name": "kind", "values": ["a", "b"], "of": [1, 0, -1]}


def test_values_of_slices_are_in_natural_order(tmp_path: Path) -> None:
    values = {"user": ["u10", "u9", "u1"], "hour": ["10", "0", "2"]}
    details: dict[str | int, UnitContent] = {
        f"q{index}": UnitContent("", slices={name: column[index] for name, column in values.items()})
        for index in range(3)
    }
    runs = synthetic_runs(tmp_path, ["s"], {"MRR": [[1.0, 0.5, 0.2]]}, details=details)
    slices = {part["name"]: part["values"] for part in explorer_of(view_of(runs)).slices}
    assert slices == {"user": ["u1", "u9", "u10"], "hour": ["0", "2", "10"]}
