"""The units of a report: which are kept, and that nothing is lost on the way."""

from __future__ import annotations

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
from equipoise.runs.run_folder import StoredRun
from equipoise.runs.unit_table import RetrievedItem, UnitContent
from equipoise.types import Direction
from stored_runs import bread_runs, ranks, synthetic_runs


def explorer_of(report: RunsView) -> UnitExplorer:
    assert report.explorer is not None
    return report.explorer


def page_of(runs: list[StoredRun]) -> RunsView:
    return build_view(runs, compare_runs(runs), exports=False)


def test_everything_that_was_retrieved_can_be_read_back(tmp_path: Path) -> None:
    runs = bread_runs(tmp_path, tuned=False)
    report = page_of(runs)
    shown = explorer_of(report)
    by_name = {run.result.system: run for run in runs}
    assert len(shown.units) == shown.total == 80
    assert shown.note == ""
    for unit, detail in zip(shown.units, shown.details, strict=True):
        assert detail is not None
        text, expected, retrieved = detail
        for system, (items, scores, relevant) in zip(report.systems, retrieved, strict=True):
            kept = by_name[system.name].details[unit]
            assert shown.texts[text] == kept.text
            assert [shown.texts[place] for place in expected] == list(kept.expected)
            names = [(shown.items[item][0], shown.texts[shown.items[item][1]]) for item in items]
            assert names == [(each.id, each.text) for each in kept.retrieved]
            assert scores == pytest.approx([each.score for each in kept.retrieved], abs=1e-4)
            assert relevant == [rank for rank, each in enumerate(kept.retrieved) if each.relevant]


def test_values_belong_to_their_units_whatever_their_order(tmp_path: Path) -> None:
    forth = synthetic_runs(tmp_path / "forth", ["a"], {"MRR": [[0.1, 0.2, 0.3]]}, units=["x", "y", "z"])
    back = synthetic_runs(tmp_path / "back", ["b"], {"MRR": [[0.6, 0.5, 0.4]]}, units=["z", "y", "x"])
    report = page_of(forth + back)
    shown = explorer_of(report)
    values = {each.name: row for each, row in zip(report.systems, shown.columns[0]["values"], strict=True)}
    assert dict(zip(shown.units, values["a"], strict=True)) == {"x": 0.1, "y": 0.2, "z": 0.3}
    assert dict(zip(shown.units, values["b"], strict=True)) == {"x": 0.4, "y": 0.5, "z": 0.6}


def test_every_text_stands_once(tmp_path: Path) -> None:
    texts = explorer_of(page_of(bread_runs(tmp_path, tuned=False))).texts
    assert len(set(texts)) == len(texts)


@given(
    st.lists(st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0, float("nan")]), min_size=3, max_size=3), min_size=1),
    st.integers(1, 12),
)
def test_no_unit_left_out_tells_more_than_one_that_is_kept(rows: list[list[float]], room: int) -> None:
    values = np.array(rows)
    chosen = select_units(values, room, Direction.UP)

    def told(row: list[float]) -> float:
        known = [value for value in row if value == value]
        return max(known) - min(known) if known else -1.0

    kept = set(chosen.kept.tolist())
    assert len(kept) == min(room, len(rows))
    assert chosen.kept.tolist() == sorted(kept)
    assert set(chosen.ranked.tolist()) == kept
    left = [told(row) for place, row in enumerate(rows) if place not in kept]
    assert max(left, default=-2.0) <= min(told(rows[place]) for place in kept)
    assert bool(chosen.note) == (len(rows) > room)


def test_of_one_system_the_worst_units_are_kept() -> None:
    values = np.array([[0.9], [0.1], [0.5], [0.2]])
    assert select_units(values, 2, Direction.UP).kept.tolist() == [1, 3]
    assert select_units(values, 2, Direction.DOWN).kept.tolist() == [0, 2]


def test_equals_are_drawn_by_the_seed() -> None:
    values = np.zeros((200, 2))
    draws = [select_units(values, 20, Direction.UP, seed=seed).kept.tolist() for seed in (0, 0, 1)]
    assert draws[0] == draws[1]
    assert draws[0] != draws[2]


def test_a_page_that_cannot_keep_all_units_says_which_it_keeps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unit_explorer, "MOST_CELLS", 40)
    runs = synthetic_runs(tmp_path, ["a", "b"], {"MRR": 1 / ranks(2, 100)})
    shown = explorer_of(page_of(runs))
    assert (len(shown.units), shown.total) == (20, 100)
    assert shown.note.startswith("20 of 100 are shown: those on which the systems differ most")
    assert "(seed 0)" in shown.note


def test_what_was_retrieved_gives_way_before_the_units_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unit_explorer, "MOST_HITS", 60)
    details: dict[str | int, UnitContent] = {
        f"q{place}": UnitContent("?", retrieved=tuple(RetrievedItem(f"d{rank}", "text") for rank in range(3)))
        for place in range(50)
    }
    runs = synthetic_runs(tmp_path, ["a", "b"], {"MRR": 1 / ranks(2, 50)}, details=details)
    shown = explorer_of(page_of(runs))
    listed = [detail for detail in shown.details if detail is not None and detail[2]]
    assert len(shown.units) == 50
    assert len(listed) == 10
    assert "Retrieved items are shown for 10 of them" in shown.note


def test_long_texts_are_cut_and_the_page_says_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unit_explorer, "TEXT_BYTES", 30_000)
    details: dict[str | int, UnitContent] = {
        f"q{place}": UnitContent("ä" * 3000 + str(place), ("right",)) for place in range(20)
    }
    runs = synthetic_runs(tmp_path, ["a", "b"], {"MRR": 1 / ranks(2, 20)}, details=details)
    shown = explorer_of(page_of(runs))
    assert "Texts are truncated to 600 characters." in shown.note
    assert max(map(len, shown.texts)) == 600 + len(ELLIPSIS)
    assert sum(len(text.encode()) for text in shown.texts) < 31_000


@given(st.lists(st.text(alphabet="ab", max_size=5000), max_size=20), st.integers(100, 20_000))
def test_texts_that_are_said_to_fit_do_fit(texts: list[str], room: int) -> None:
    length = max_text_length(set(texts), room)
    if length is None:
        assert sum(min(len(text), 160) for text in set(texts)) > room
        return
    table = TextPool(length)
    for text in texts:
        assert table.texts[table.place(text)].removesuffix(ELLIPSIS) == text[:length]
    assert sum(len(text.removesuffix(ELLIPSIS)) for text in table.texts) <= room


def test_many_units_are_read_line_by_line_and_come_out_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tricky = '", "retrieved": [{"id": 1}], "slices": {}'
    details: dict[str | int, UnitContent] = {
        "a": UnitContent(
            tricky, (tricky,), {"retrieved": 3, tricky: None}, (RetrievedItem(tricky, tricky, 0.5, True),)
        ),
        "b": UnitContent("plain", (), {"kind": "x"}),
        "c": UnitContent(""),
    }
    (run,) = synthetic_runs(tmp_path, ["s"], {"MRR": [[1.0, 0.5, 0.2]]}, units=["a", "b", "c"], details=details)
    whole, slices = read_unit_details(run, ["a", "c", "unknown"]), read_unit_slices([run])
    monkeypatch.setattr(unit_explorer, "MANY", 1)
    assert read_unit_details(run, ["a", "c", "unknown"]) == whole == {"a": details["a"], "c": details["c"]}
    assert read_unit_slices([run]) == slices == {"a": details["a"].slices, "b": details["b"].slices}


def test_a_changed_line_is_refused_when_it_is_read_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (run,) = synthetic_runs(
        tmp_path, ["s"], {"MRR": [[1.0, 0.5]]}, details={"q0": UnitContent("?"), "q1": UnitContent("!")}
    )
    lines = (run.path / DETAILS).read_text().splitlines()
    (run.path / DETAILS).write_text(f"{lines[0]}\n[1, 2\n")
    monkeypatch.setattr(unit_explorer, "MANY", 1)
    with pytest.raises(StoreError, match="line 2"):
        read_unit_details(run, ["q0"])


def test_slices_of_units_are_named_by_place(tmp_path: Path) -> None:
    details: dict[str | int, UnitContent] = {
        "q0": UnitContent("", slices={"kind": "b"}),
        "q1": UnitContent("", slices={"kind": "a"}),
        "q2": UnitContent(""),
    }
    runs = synthetic_runs(tmp_path, ["s", "t"], {"MRR": [[1.0, 0.5, 0.2], [1.0, 0.4, 0.1]]}, details=details)
    (kind,) = explorer_of(page_of(runs)).slices
    assert kind == {"name": "kind", "values": ["a", "b"], "of": [1, 0, -1]}
