"""Results and comparisons as data frames, Markdown, LaTeX and flat dicts."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from equipoise import Ranking, compare, evaluate
from equipoise.errors import UnknownNameError

RANKS = {"a": [1, 2, 4, 1, 3, 1], "b": [2, 2, 9, 1, 5, 4]}
RANKINGS = {name: Ranking.from_ranks(ranks, candidates=20) for name, ranks in RANKS.items()}
LIBRARIES = ["pandas", pytest.param("polars", marks=pytest.mark.engines("polars")), "pyarrow"]


def columns(frame: object) -> dict[str, list[object]]:
    """The columns of a frame of any library, read with the methods of that library."""
    if hasattr(frame, "to_pydict"):  # pyarrow
        return dict(frame.to_pydict())
    if hasattr(frame, "to_dicts"):  # polars
        return {name: frame[name].to_list() for name in frame.columns}  # type: ignore[index, attr-defined]
    return {name: frame[name].tolist() for name in frame.columns}  # type: ignore[index, attr-defined]


@pytest.mark.parametrize("library", LIBRARIES)
def test_frames_of_results_have_one_row_per_metric(library: str) -> None:
    result = evaluate(RANKINGS["a"], ["MRR", "HR@1"], system="a")
    table = columns(result.to_frame(library))
    assert table["system"] == ["a", "a"]
    assert table["metric"] == ["MRR", "HR@1"]
    assert table["value"] == pytest.approx([np.mean(1 / np.array(RANKS["a"])), 0.5])
    assert table["low"] == [result[metric].interval.low for metric in ("MRR", "HR@1")]


@pytest.mark.parametrize("library", LIBRARIES)
def test_per_unit_frames_have_one_row_per_unit(library: str) -> None:
    table = columns(evaluate(RANKINGS["a"], ["MRR"]).to_frame(library, per_unit=True))
    assert table["MRR"] == pytest.approx([1 / rank for rank in RANKS["a"]])
    assert len(table["unit"]) == len(RANKS["a"])


@pytest.mark.parametrize("library", LIBRARIES)
def test_frames_of_comparisons_have_one_row_per_system_or_pair(library: str) -> None:
    comparison = compare(RANKINGS, ["MRR", "HR@1"])
    systems = columns(comparison.to_frame(library))
    assert list(zip(systems["system"], systems["metric"], strict=True)) == [
        (system, metric) for system in ("a", "b") for metric in ("MRR", "HR@1")
    ]
    pairs = columns(comparison.to_frame(library, pairs=True))
    expected = [comparison.contrast("a", "b", metric) for metric in pairs["metric"]]
    assert pairs["difference"] == pytest.approx([contrast.difference for contrast in expected])
    assert pairs["adjusted"] == pytest.approx([contrast.adjusted for contrast in expected])


def test_unknown_values_are_missing_in_frames_and_absent_in_flat_dicts() -> None:
    result = evaluate(Ranking.from_ranks([2], candidates=3), ["MRR"])  # one unit has no interval
    assert math.isnan(result["MRR"].interval.low)
    assert columns(result.to_frame("pyarrow"))["low"] == [None]
    assert result.to_dict(flat=True) == {"MRR": 0.5, "units": 1}


def test_a_flat_dict_holds_numbers_only() -> None:
    flat = compare(RANKINGS, ["MRR"]).to_dict(flat=True)
    assert set(flat) == {"a/MRR", "a/MRR_low", "a/MRR_high", "b/MRR", "b/MRR_low", "b/MRR_high", "units"}
    assert all(isinstance(value, int | float) for value in flat.values())
    assert json.loads(json.dumps(flat, allow_nan=False)) == flat


def test_tables_for_papers_have_every_system_and_metric() -> None:
    comparison = compare(RANKINGS, ["MRR", "HR@1"])
    for text in (comparison.to_markdown(), comparison.to_latex()):
        assert "MRR" in text
        assert "HR@1" in text
    assert comparison.to_latex().count(r"\textbf") == 2
    result = evaluate(RANKINGS["a"], ["MRR"], system="bm25")
    assert result.to_markdown().splitlines()[2].startswith("| bm25 |")
    assert r"\begin{tabular}" in result.to_latex()


def test_unknown_libraries_raise_unknown_name_error() -> None:
    with pytest.raises(UnknownNameError):
        evaluate(RANKINGS["a"], ["MRR"]).to_frame("panda")
