"""Files of visits and predictions in the forms of several projects."""

from __future__ import annotations

import json

import numpy as np
import pytest

from equipoise.domains.places.prediction_files import ScoredPredictions, TopKPredictions, read_predictions, system_name
from equipoise.domains.places.published_results import read_published_results
from equipoise.domains.places.visits import VisitHistory, read_history, read_test_sequences
from equipoise.errors import EquipoiseError, FormatError, ParameterError

VISITS = [("ann", 3), ("bob", 1), ("ann", 0), ("ann", 3), ("bob", 2)]


def assert_same_history(history, expected):
    assert history.users.tolist() == expected.users.tolist()
    assert history.places.tolist() == expected.places.tolist()


def write_parquet(path, rows):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    pq.write_table(pa.Table.from_pylist(rows), path)
    return path


EXPECTED = VisitHistory.of([user for user, _ in VISITS], [place for _, place in VISITS])


@pytest.mark.parametrize(
    "header", [("user", "place"), ("user_id", "location_id"), ("entity_id", "location"), ("UID", "POI_id")]
)
def test_visits_are_read_by_the_column_names_of_several_projects(tmp_path, header):
    path = tmp_path / "visits.csv"
    path.write_text("\n".join([",".join(header), *(f"{user},{place}" for user, place in VISITS)]))
    assert_same_history(read_history(path), EXPECTED)


@pytest.mark.parametrize(
    "times",
    [
        ["5", "4", "6", "7", "10"],
        ["2024-05-01T05:00", "2024-05-01T04:00Z", "2024-05-01T06:00:00", "2024-05-02T06:00+01:00", "2025-01-01"],
        [f"Tue Apr {day:02} 18:00:09 +0000 2012" for day in (5, 4, 6, 7, 10)],
    ],
)
def test_visits_are_sorted_by_time(tmp_path, times):
    rows = [f"{user},{place},{time}" for (user, place), time in zip(VISITS, times, strict=True)]
    (tmp_path / "visits.csv").write_text("\n".join(["user,place,time", *reversed(rows)]))
    history = read_history(tmp_path / "visits.csv")
    assert history.users.tolist() == ["bob", "ann", "ann", "ann", "bob"]
    assert history.places.tolist() == [1, 3, 0, 3, 2]


def test_sequences_of_a_parquet_file_keep_the_order_of_visits(tmp_path):
    rows = [{"user": "ann", "places": [3, 0, 3]}, {"user": "bob", "places": [1, 2]}]
    history = read_history(write_parquet(tmp_path / "train.parquet", rows))
    assert history.counts.tolist() == EXPECTED.counts.tolist()
    assert history.take(np.flatnonzero(history.users == "ann")).places.tolist() == [3, 0, 3]
    assert history.previous.tolist() == [-1, 3, 0, -1, 1]


def test_only_the_targets_of_overlapping_training_examples_are_counted(tmp_path):
    rows = [{"user_X": [1, 1], "X": [3, 0], "Y": 3}, {"user_X": [1, 1, 1], "X": [3, 0, 3], "Y": 2}]
    history = read_history(write_parquet(tmp_path / "train.parquet", rows))
    assert history.places.tolist() == [3, 2]
    assert history.users.tolist() == ["1", "1"]


def test_visits_of_an_archive_are_found_by_name(tmp_path):
    np.savez(tmp_path / "v.npz", users=EXPECTED.users.astype(str), location=EXPECTED.places)
    assert_same_history(read_history(tmp_path / "v.npz"), EXPECTED)


def test_users_that_are_numbers_in_one_file_and_text_in_another_are_the_same():
    numbers, texts = np.array([7, 12, 99]), np.array(["7", "12", "99"], dtype=object)
    history = VisitHistory.of(["12", "7"], [0, 1])
    assert history.codes_of(numbers).tolist() == history.codes_of(texts).tolist() == [1, 0, -1]
    assert VisitHistory.of([12, 7], [0, 1]).codes_of(texts).tolist() == [0, 1, -1]


def test_test_sequences_have_targets_users_previous_places_and_times(tmp_path):
    rows = [
        {"id": "a", "user": "ann", "sequence": [3, 0], "target": 3, "time": "2024-05-05T18:30:00", "stay": 4},
        {"id": "b", "user": "bob", "sequence": [1], "target": 2, "time": "2024-05-06T07:00:00", "stay": 5},
    ]
    sequences = read_test_sequences(write_parquet(tmp_path / "test.parquet", rows))
    assert sequences.targets.tolist() == [3, 2]
    assert sequences.users.tolist() == ["ann", "bob"]
    assert sequences.previous.tolist() == [0, 1]
    assert {name: column.tolist() for name, column in sequences.columns.items()} == {
        "hour": ["18", "7"],
        "weekday": ["Sunday", "Monday"],
    }
    assert set(sequences.features) == {"sequence", "time", "stay"}


@pytest.mark.parametrize(
    "text",
    [
        "user,place\nann,x\n",
        "user,place\nann,-1\n",
        "user,what\nann,1\n",
        "user,place\n,1\n",
        "user,place,time\na,1,yes\n",
    ],
)
def test_malformed_visits_are_an_error_with_the_file_name(tmp_path, text):
    (tmp_path / "v.csv").write_text(text)
    with pytest.raises(EquipoiseError) as error:
        read_history(tmp_path / "v.csv")
    assert "v.csv" in error.value.message


LIBCITY = {"uid": [4, 9], "loc_true": [1, 0], "loc_pred": [[0.1, 0.7, 0.2], [0.5, 0.25, 0.25]]}


@pytest.mark.parametrize(
    "form", ["object", "batches", "lines", "npz", pytest.param("pt", marks=pytest.mark.engines("torch"))]
)
def test_predictions_of_libcity_are_scores_with_targets_and_users(tmp_path, form):
    halves = [{name: values[part] for name, values in LIBCITY.items()} for part in (slice(1), slice(1, 2))]
    path = tmp_path / f"p.{ {'lines': 'jsonl', 'npz': 'npz', 'pt': 'pt'}.get(form, 'json') }"
    if form == "npz":
        np.savez(path, **{name: np.array(values) for name, values in LIBCITY.items()})
    elif form == "pt":
        torch = pytest.importorskip("torch")
        torch.save({name: torch.tensor(values, dtype=None) for name, values in LIBCITY.items()}, path)
    elif form == "lines":
        path.write_text("\n".join(map(json.dumps, halves)))
    else:
        path.write_text(json.dumps(LIBCITY if form == "object" else halves))
    predictions = read_predictions(path)
    assert isinstance(predictions, ScoredPredictions)
    np.testing.assert_allclose(predictions.scores, LIBCITY["loc_pred"], rtol=1e-6)
    assert predictions.targets.tolist() == [1, 0]
    assert predictions.users.tolist() == [4, 9]


def test_a_table_of_lists_is_a_table_of_the_best_classes(tmp_path):
    (tmp_path / "top.json").write_text(json.dumps([{"target": 1, "predictions": [1, 0]}]))
    assert isinstance(read_predictions(tmp_path / "top.json"), TopKPredictions)


@pytest.mark.parametrize(
    "change",
    [{"loc_pred": [[0.1, 0.9]]}, {"loc_true": ["a", "b"]}, {"loc_pred": [[0.1], [0.5, 0.5]]}, {"uid": [[1], 2]}],
)
def test_libcity_files_of_other_shapes_are_errors(tmp_path, change):
    (tmp_path / "p.json").write_text(json.dumps(LIBCITY | change))
    if change == {"loc_pred": [[0.1, 0.9]]}:  # the number of rows is compared with the targets when they are scored
        assert len(read_predictions(tmp_path / "p.json").scores) == 1
        return
    with pytest.raises(FormatError):
        read_predictions(tmp_path / "p.json")


def test_an_archive_without_known_names_needs_a_name(tmp_path):
    np.savez(tmp_path / "p.npz", one=np.eye(2), two=np.eye(2))
    with pytest.raises(ParameterError):
        read_predictions(tmp_path / "p.npz")
    assert read_predictions(f"{tmp_path / 'p.npz'}:two").scores.shape == (2, 2)


def test_a_system_is_named_after_its_folder_when_its_file_has_a_generic_name():
    names = {"a/lstm/logits.npy": "lstm", "a/lstm.npy": "lstm", "b/gru/preds.pt:x": "gru", "b/run.jsonl.gz": "run"}
    assert {path: system_name(path) for path in names} == names


def test_libcity_results_are_fractions_and_mrr_of_a_list_has_its_first_cutoff():
    """The evaluator computes rank sums for the first cutoff of a list, and names MRR and NDCG after the whole list."""
    results = {
        "Recall@1": 0.15,
        "Recall@5": 0.3,
        "F1@[1, 5]": 0.1,
        "MRR@[1, 5]": 0.15,
        "MAP@[1, 5]": 0.15,
        "NDCG@[1, 5]": 0.15,
    }
    (row,) = read_published_results(results)
    assert row.values == {"HR@1": 0.15, "HR@5": 0.3, "MRR@1": 0.15, "nDCG@1": 0.15}
    assert [value.metric for value in row.rejected] == ["F1"]
    (single,) = read_published_results({"Recall@5": 0.3, "MRR@5": 0.25, "NDCG@5": 0.26})
    assert single.values == {"HR@5": 0.3, "MRR@5": 0.25, "nDCG@5": 0.26}
