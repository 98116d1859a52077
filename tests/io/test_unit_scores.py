"""Scores per unit of other tools: score columns, unit columns and errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest

from equipoise.errors import DuplicateError, EquipoiseError, FormatError
from equipoise.io.run_files import read_run
from equipoise.io.unit_scores import is_unit_table, read_unit_scores

RAGAS = pandas.DataFrame(
    {
        "user_input": ["who?", "when?"],
        "retrieved_contexts": [["a"], ["b", "c"]],
        "response": ["Weber", "1871"],
        "reference": ["Weber", "1872"],
        "faithfulness": [1.0, None],
        "context_precision": [0.5, 0.25],
    }
)
LANGSMITH = pandas.DataFrame(
    {
        "inputs.question": ["who?", "when?"],
        "outputs.answer": ["Weber", "1871"],
        "feedback.correctness": [True, False],
        "feedback.conciseness": [0.5, 1.0],
        "execution_time": [1.2, 0.7],
        "example_id": ["e1", "e2"],
        "id": ["r1", "r2"],
    }
)


def test_numeric_columns_of_ragas_are_metrics() -> None:
    scores = read_unit_scores(RAGAS)
    assert scores.unit_ids == ["who?", "when?"]
    assert set(scores.values) == {"faithfulness", "context_precision"}
    np.testing.assert_array_equal(scores.values["faithfulness"], [1.0, np.nan])


def test_feedback_columns_of_langsmith_are_metrics() -> None:
    scores = read_unit_scores(LANGSMITH)
    assert scores.unit_ids == ["e1", "e2"]
    assert dict(scores.values) == {"correctness": [1.0, 0.0], "conciseness": [0.5, 1.0]}


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_files_equal_frames(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"scores.{suffix}"
    frame = LANGSMITH
    {"csv": frame.to_csv, "parquet": frame.to_parquet}.get(
        suffix, lambda file, **_: frame.to_json(file, orient="records", lines=True)
    )(path, index=False)
    assert is_unit_table(path)
    assert dict(read_unit_scores(path).values) == dict(read_unit_scores(frame).values)


@pytest.mark.parametrize(
    ("column", "noun"),
    [("question_id", "question"), ("inputs.query", "query"), ("qid", "query"), ("user_input", "example")],
)
def test_the_unit_column_sets_the_noun(column: str, noun: str) -> None:
    assert read_unit_scores([{column: "a", "score": 0.5}]).noun == noun


def test_runs_are_not_unit_tables() -> None:
    assert not is_unit_table([{"query_id": "q1", "doc_id": "d1", "score": 0.5}])


@pytest.mark.parametrize(
    ("rows", "error"),
    [
        ([{"unit": "a", "text": "b"}], FormatError),
        ([{"name": "a", "score": 1}], FormatError),
        ([{"unit": "a", "score": 1}, {"unit": "a", "score": 0}], DuplicateError),
        ([{"unit": "", "score": 1}], FormatError),
    ],
    ids=["no scores", "no units", "repeated unit", "unit without a name"],
)
def test_invalid_tables_raise_errors(rows: list[dict[str, Any]], error: type[EquipoiseError]) -> None:
    with pytest.raises(error):
        read_unit_scores(rows)


def test_errors_of_wide_tables_are_short() -> None:
    with pytest.raises(FormatError) as error:
        read_unit_scores([{f"column {number} of a wide table": "x" for number in range(2000)}])
    assert len(error.value.render()) < 2000
    long_error = FormatError("x" * 10**5, hint="y" * 10**5, excerpt="\n".join(["z" * 10**4] * 500))
    assert len(long_error.render().splitlines()) < 20
    assert len(long_error.render()) < 10_000


# Prediction files of mteb.


def test_predictions_of_mteb_are_runs(tmp_path: Path) -> None:
    lists = {"q1": {"d1": 0.5, "d2": 0.25}}
    path = tmp_path / "NanoTask_predictions.json"
    path.write_text(json.dumps({"mteb_model_meta": {"name": "m"}, "default": {"train": {}, "test": lists}}))
    assert read_run(path) == lists
    path.write_text(json.dumps({"mteb_model_meta": {}, "de": {"test": lists}, "en": {"test": lists}}))
    with pytest.raises(FormatError):
        read_run(path)
    path.write_text(json.dumps({"mteb_model_meta": {}, "default": {"test": [0.5, 0.25]}}))
    with pytest.raises(FormatError):
        read_run(path)
    path.write_text(json.dumps({"task_name": "NanoTask", "scores": {"test": []}}))
    with pytest.raises(FormatError):
        read_run(path)
