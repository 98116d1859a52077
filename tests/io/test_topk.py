"""Tables of the k best classes."""

from __future__ import annotations

import json

import pytest

from equipoise.domains.places.prediction_files import read_topk_predictions
from equipoise.errors import FormatError

ROWS = [
    {"id": "a", "target": 3, "predictions": [3, 1], "scores": [0.9, 0.1], "user": "ann"},
    {"id": "b", "target": 0, "predictions": [1, 2, 0], "scores": [0.5, 0.3, 0.2], "user": "bob"},
]


def write_rows(path, rows):
    if path.suffix == ".parquet":
        pa = pytest.importorskip("pyarrow")
        import pyarrow.parquet as pq

        pq.write_table(pa.Table.from_pylist(rows), path)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize("suffix", ["parquet", "jsonl"])
def test_columns_are_found_by_their_names(tmp_path, suffix):
    predictions = read_topk_predictions(write_rows(tmp_path / f"top.{suffix}", ROWS))
    assert predictions.targets == [3, 0]
    assert predictions.predictions == [[3, 1], [1, 2, 0]]
    assert predictions.scores == [[0.9, 0.1], [0.5, 0.3, 0.2]]
    assert predictions.unit_ids == ["a", "b"]
    assert predictions.columns == {"user": ["ann", "bob"]}
    assert predictions.depth == 2


def test_scores_and_ids_may_be_missing(tmp_path):
    rows = [{"y": row["target"], "Top_K": row["predictions"]} for row in ROWS]
    predictions = read_topk_predictions(write_rows(tmp_path / "top.jsonl", rows))
    assert predictions.scores is None
    assert predictions.unit_ids is None


@pytest.mark.parametrize(
    ("change", "fragment"),
    [
        ({"target": "home"}, "line 2 names the class 'home'"),
        ({"target": True}, "names the class True"),
        ({"predictions": []}, r"has \[\] for predictions"),
        ({"predictions": "1 2"}, "has '1 2' for predictions"),
        ({"predictions": [1, 2.5, 3]}, "names the class 2.5"),
        ({"scores": [0.5]}, "scores that do not fit"),
    ],
)
def test_invalid_rows_raise_format_error(tmp_path, change, fragment):
    with pytest.raises(FormatError, match=fragment):
        read_topk_predictions(write_rows(tmp_path / "top.jsonl", [ROWS[0], ROWS[1] | change]))


def test_missing_columns_raise_format_error_with_their_names(tmp_path):
    with pytest.raises(FormatError) as error:
        read_topk_predictions(write_rows(tmp_path / "top.jsonl", [{"target": 1, "x": 2}]))
    assert "predictions" in error.value.hint
