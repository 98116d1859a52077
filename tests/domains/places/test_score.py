"""Scores of one system: all and answerable units, baselines, users, slices, ties."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import f1_score

from equipoise.config import StatsConfig
from equipoise.domains.places.demo import PlacesDemo
from equipoise.domains.places.prediction_files import TopKPredictions
from equipoise.domains.places.score import score_places, score_top_k
from equipoise.domains.places.visits import VisitHistory
from equipoise.errors import InputError, ParameterError, ShapeError

ROWS, CLASSES = 400, 30
RNG = np.random.default_rng(3)
TARGETS = RNG.integers(2, CLASSES, ROWS)
LOGITS = RNG.normal(size=(ROWS, CLASSES)).astype(np.float32)
LOGITS[np.arange(ROWS), TARGETS] += 1.5
COUNTS = np.r_[0, 0, RNG.integers(0, 3, 8), RNG.integers(5, 2000, CLASSES - 10)]
USERS = RNG.integers(0, 25, ROWS)
QUICK = StatsConfig(n_resamples=200)


@pytest.fixture(scope="module")
def scores():
    return score_places(
        LOGITS,
        TARGETS,
        padding=0,
        unseen=1,
        train_counts=COUNTS,
        users=USERS,
        slices={"hour": np.arange(ROWS) % 24},
        config=QUICK,
    )


def hits_at(rows, k):
    """Whether the target is among the k best, by sorting."""
    best = np.argsort(-np.where(np.arange(CLASSES) == 0, -np.inf, LOGITS[rows]), axis=1)[:, :k]
    return (best == TARGETS[rows, None]).any(axis=1)


def test_all_and_answerable_units_are_scored(scores):
    seen_rows = np.flatnonzero(COUNTS[TARGETS] > 0)
    assert 0 < len(seen_rows) < ROWS
    for k in (1, 3, 5, 10):
        assert scores.all[f"Acc@{k}"].value == pytest.approx(hits_at(np.arange(ROWS), k).mean())
        assert scores.answerable[f"Acc@{k}"].value == pytest.approx(hits_at(seen_rows, k).mean())
    assert scores.answerable["MRR"].n == len(seen_rows)
    top1 = LOGITS[:, 1:].argmax(axis=1) + 1
    for average in ("weighted", "macro", "micro"):
        f1 = scores.all["F1" if average == "weighted" else f"F1(average={average})"].value
        assert f1 == pytest.approx(f1_score(TARGETS, top1, average=average, zero_division=0))
    assert scores.percent["Acc@1"] == pytest.approx(100 * scores.all["Acc@1"].value)


def test_every_score_has_baselines(scores):
    n = CLASSES - 1
    chance = scores.baselines["random"]
    assert chance["HR@1"] == pytest.approx(1 / n)
    assert chance["MRR"] == pytest.approx(sum(1 / rank for rank in range(1, n + 1)) / n)
    assert scores.all["MRR"].chance == pytest.approx(chance["MRR"])
    order = np.argsort(-COUNTS[1:], kind="stable") + 1
    assert len(set(COUNTS[order[:3]])) == 3
    assert scores.baselines["majority"]["HR@1"] == pytest.approx(np.mean(order[0] == TARGETS))
    assert scores.baselines["majority"]["HR@3"] == pytest.approx(np.isin(TARGETS, order[:3]).mean())
    seen_rows = COUNTS[TARGETS] > 0
    majority_score = scores.answerable_baselines["majority"]["HR@1"]
    assert majority_score == pytest.approx(np.mean(TARGETS[seen_rows] == order[0]))
    expected = f1_score(TARGETS, np.full(ROWS, order[0]), average="macro", zero_division=0)
    assert scores.baselines["majority"]["F1(average=macro)"] == pytest.approx(expected)


def test_user_and_markov_baselines_need_histories():
    history = VisitHistory.of(["a", "a", "b", "b", "b"], [2, 2, 3, 2, 3], classes=5)
    logits = np.random.default_rng(0).normal(size=(2, 5))
    options = {"history": history, "users": ["a", "b"], "ks": (1,), "config": QUICK}
    scores = score_places(logits, [2, 3], **options)
    assert set(scores.baselines) == {"random", "majority", "user"}
    assert scores.baselines["user"]["HR@1"] == 1.0
    with_previous = score_places(logits, [2, 2], previous=[2, 3], **options)
    assert with_previous.baselines["markov"]["HR@1"] == 1.0
    with pytest.raises(ParameterError):
        score_places(logits, [2, 3], history=history, ks=(1,))
    with pytest.raises(ParameterError):
        score_places(logits, [2, 3], previous=[2, 3], ks=(1,))


def test_users_are_clusters_and_have_equal_weight(scores):
    assert scores.all["Acc@1"].interval.method == "wilson-effective"
    assert len(set(scores.all.clusters.tolist())) == 25
    hits = hits_at(np.arange(ROWS), 1)
    means = [hits[user == USERS].mean() for user in range(25)]
    assert scores.by_user["Acc@1"].value == pytest.approx(np.mean(means))
    assert scores.by_user["Acc@1"].n == 25


def test_intervals_are_wider_where_rows_of_a_user_are_equal():
    hits = np.repeat(np.arange(20) % 2, 20)
    logits = np.c_[np.ones(400), 2.0 * hits, np.zeros(400)]
    targets = np.ones(400, dtype=int)
    without_users = score_places(logits, targets, ks=(1,), config=QUICK)
    clustered = score_places(logits, targets, ks=(1,), users=np.repeat(np.arange(20), 20), config=QUICK)
    assert clustered.all["Acc@1"].interval.width > 2 * without_users.all["Acc@1"].interval.width


def test_slices_add_up_and_have_a_defined_order(scores):
    parts = {}
    for part in scores.slices:
        parts.setdefault(part.name, []).append(part)
    assert list(parts) == ["hour", "training visits of the target", "target in training"]
    assert all(sum(part.estimate.n for part in group) == ROWS for group in parts.values())
    assert [part.value for part in parts["hour"]] == [str(hour) for hour in range(24)]
    names = [part.value for part in parts["training visits of the target"]]
    assert names == ["0", "1 to 9", "10 to 99", "100 to 999", "1000 or more"]
    hits = hits_at(np.arange(ROWS), 1)
    rare = next(part for part in parts["training visits of the target"] if part.value == "1 to 9")
    mask = (COUNTS[TARGETS] >= 1) & (COUNTS[TARGETS] <= 9)
    assert rare.estimate.value == pytest.approx(hits[mask].mean())
    unseen = next(part for part in parts["target in training"] if part.value == "no")
    assert unseen.estimate.n == np.count_nonzero(COUNTS[TARGETS] == 0)


def test_ties_are_counted_with_the_range_of_scores():
    logits = np.array([[2.0, 2.0, 1.0, 0.0], [2.0, 2.0, 1.0, 0.0], [0.0, 1.0, 2.0, 3.0], [0.0, 3.0, 3.0, 1.0]])
    scores = score_places(logits, [0, 1, 3, 3], ks=(1, 3), config=QUICK)
    assert (scores.ties.targets, scores.ties.tops) == (2, 3)
    assert (scores.ties.low, scores.ties.high) == (0.25, 0.75)
    assert scores.all["Acc@1"].value == 0.5
    messages = [finding.message for finding in scores.findings if finding.code == "EQ301"]
    assert any("3 visits of 4 have several places with the largest score" in message for message in messages)
    assert scores.findings == scores.all.findings  # the stored and reported findings are the printed ones


def test_without_training_counts_there_is_no_answerable_split():
    unknown = score_places(LOGITS, TARGETS, config=QUICK)
    assert unknown.answerable is None
    assert "unknown" in unknown.all_notes[0]
    all_seen = score_places(LOGITS, TARGETS, unseen=1, config=QUICK)
    assert all_seen.answerable is all_seen.all
    assert "All targets occur" in all_seen.all_notes[0]
    none_seen = score_places(LOGITS, TARGETS, train_counts=np.zeros(CLASSES, dtype=int), config=QUICK)
    assert none_seen.answerable is None
    assert "No target occurs" in none_seen.all_notes[0]


def test_the_same_seed_gives_the_same_bytes():
    first, repeated = (
        json.dumps(score_places(LOGITS, TARGETS, users=USERS, config=replace(QUICK, seed=4)).to_dict(), default=str)
        for _ in range(2)
    )
    assert first == repeated


@pytest.mark.slow
def test_top_k_predictions_score_like_logits_within_their_depth():
    order = np.argsort(-LOGITS, axis=1)[:, :10]
    top = TopKPredictions("t", TARGETS.tolist(), order.tolist(), columns={"user": USERS.tolist()})
    truncated = score_top_k(top, classes=CLASSES, train_counts=COUNTS)
    full = score_places(LOGITS, TARGETS, train_counts=COUNTS, users=USERS)
    for name in ("Acc@1", "Acc@3", "Acc@10", "nDCG@10", "F1(average=macro)"):
        assert truncated.all[name].value == pytest.approx(full.all[name].value)
    assert truncated.all["MRR"].value < full.all["MRR"].value
    assert truncated.baselines == full.baselines
    assert len(set(truncated.all.clusters.tolist())) == 25
    assert "not among the predicted places" in truncated.all_notes[0]


def test_scores_beyond_the_depth_of_top_k_predictions_are_errors():
    top = TopKPredictions("t", [2, 5], [[2, 1], [1, 0]])
    with pytest.raises(ParameterError, match="Acc@3"):
        score_top_k(top, classes=9, ks=(1, 3))
    with pytest.raises(InputError, match=r"5.*4"):
        score_top_k(top, classes=4, ks=(1,))
    with pytest.raises(ShapeError, match=r"2 training.*9"):
        score_top_k(top, classes=9, ks=(1,), train_counts=[1, 2])


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"train_counts": [1, 2]}, ShapeError, "2 training counts for 30 classes"),
        ({"train_counts": np.full(CLASSES, -1)}, InputError, "non-negative integer"),
        ({"users": [1, 2]}, ShapeError, "2 users for 400 rows"),
        ({"slices": {"hour": [1]}}, ShapeError, "1 hour for 400 rows"),
        ({"ks": (1, 31)}, ParameterError, "k = 31"),
    ],
)
def test_bad_input_is_an_error(options, error, text):
    with pytest.raises(error) as error_info:
        score_places(LOGITS, TARGETS, **options)
    assert text in error_info.value.message


def test_no_rows_are_an_error():
    with pytest.raises(InputError):
        score_places(np.zeros((0, 12)), [])


@pytest.mark.parametrize(("classes", "padding"), [(1, None), (2, None), (7, None), (10, 0)])
def test_default_cutoffs_stop_at_the_number_of_classes_with_a_note(classes, padding):
    rng = np.random.default_rng(classes)
    targets = rng.integers(0 if padding is None else 1, classes, 40)
    scores = score_places(rng.normal(size=(40, classes)), targets, padding=padding, config=QUICK)
    usable = classes - (padding is not None)
    names = [f"HR@{k}" for k in (1, 3, 5, 10) if k <= usable]
    assert [name for name in scores.all.names if name.startswith("HR@")] == names
    assert any("Acc@10" in note and "left out" in note for note in scores.all_notes)
    with pytest.raises(ParameterError):
        score_places(rng.normal(size=(40, classes)), targets, padding=padding, ks=(1, usable + 1))


def test_default_cutoffs_stop_at_the_shortest_predicted_list_with_a_note():
    scores = score_top_k(TopKPredictions("t", [2, 5, 1], [[2, 1, 4], [1, 0, 3], [1, 2, 0, 4, 5]]), classes=9)
    assert [name for name in scores.all.names if name.startswith("HR@")] == ["HR@1", "HR@3"]
    assert any("Acc@5, Acc@10" in note for note in scores.all_notes)


def test_visits_of_users_without_history_are_counted() -> None:
    history = VisitHistory.of(["ann", "ann", "bob"], [0, 1, 2], classes=3)
    scores = score_places(np.eye(3), [0, 1, 2], users=["ann", "eve", "eve"], history=history, config=QUICK)
    assert "2 of 3 visits are by users without training visits" in scores.all_notes


@pytest.mark.parametrize("n_hits", [374, 377, 378, 381])
def test_findings_round_scores_as_the_table_does(n_hits):
    target_ranks = np.where(np.arange(ROWS) < n_hits, np.arange(ROWS) % 10, 10)
    logits = -((np.arange(CLASSES) - TARGETS[:, None] + target_ranks[:, None]) % CLASSES)
    scores = score_places(logits, TARGETS, config=QUICK)
    columns = {column.head: column.cells for column in scores.view().answer.columns}
    cell = dict(zip(columns["metric"], columns["estimate"], strict=True))["Acc@10"]
    (ceiling,) = [finding for finding in scores.findings if finding.code == "EQ303"]
    assert ceiling.message.startswith(f"Acc@10 ({cell} %) is near its best")
    assert f"Acc@10 {cell} %, {float(cell):g} % of the visits at the maximum" in ceiling.evidence


@pytest.mark.parametrize("users", [None, USERS])
def test_the_order_and_the_ids_of_the_rows_change_no_score_interval_or_chance_level(users):
    order = np.random.default_rng(5).permutation(ROWS)
    by_row, shuffled = (
        score_places(
            LOGITS[rows],
            TARGETS[rows],
            train_counts=COUNTS,
            users=None if users is None else users[rows],
            coordinates=np.column_stack([np.linspace(47, 48, CLASSES), np.full(CLASSES, 8.0)]),
            unit_ids=ids,
            config=QUICK,
        ).to_dict()
        for rows, ids in ((np.arange(ROWS), None), (order, [f"visit{row}" for row in order]))
    )
    assert dict(numbers(shuffled)) == pytest.approx(dict(numbers(by_row)), rel=1e-9, nan_ok=True)


def numbers(value, path=""):
    """Every number of nested values with its path."""
    if isinstance(value, float | int):
        yield path, value
    elif isinstance(value, dict | list):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from numbers(part, f"{path}/{key}")


def test_clusters_are_given_as_users():
    with pytest.raises(ParameterError):
        score_places(LOGITS, TARGETS, config=replace(QUICK, clusters=USERS))


def test_the_difference_to_the_best_baseline_is_tested_per_visit() -> None:
    demo = PlacesDemo.of(users=12, days=14, places=60)
    contrast = demo.scores.against_baseline
    assert contrast is not None
    best = max(demo.scores.baselines, key=lambda name: demo.scores.baselines[name][contrast.metric])
    assert contrast.b == f"{best} (baseline)"
    expected = demo.scores.all[contrast.metric].value - demo.scores.baselines[best][contrast.metric]
    assert contrast.difference == pytest.approx(expected)
    alone = score_places(demo.logits, demo.cases.targets)
    assert alone.against_baseline is None, "the random baseline has no scores per visit"


def test_mcnemar_cannot_compare_with_a_baseline_over_users() -> None:
    demo = PlacesDemo.of(users=4, days=7, places=30)
    with pytest.raises(ParameterError, match="cannot take users into account"):
        score_places(
            demo.logits,
            demo.cases.targets,
            users=demo.cases.users,
            history=demo.learned,
            config=StatsConfig(test="mcnemar"),
        )


def test_a_top_k_list_shows_each_prediction_the_share_of_unknown_ranks_and_the_random_order() -> None:
    top = TopKPredictions("t", [2, 5, 1, 7], [[2, 1], [1, 0], [0, 1], [3, 4]])
    scores = score_top_k(top, classes=8, ks=(1,))
    contents = list(scores.details().values())
    assert [content.text for content in contents] == ["true place 2", "true place 5", "true place 1", "true place 7"]
    predicted = [(item.id, item.relevant) for content in contents for item in content.retrieved]
    assert predicted == [("place 2", True), ("place 1", False), ("place 0", False), ("place 3", False)]
    curve, histogram = scores.charts()[:2]
    assert "50.0 %, not in the first 2" in histogram.description
    chance_line = curve.spec["layer"][0]["data"]["values"]
    assert [row["value"] for row in chance_line] == pytest.approx([1 / 8, 2 / 8])


def test_the_chance_level_of_f1_micro_is_that_of_the_random_baseline(scores) -> None:
    assert scores.all["F1(average=micro)"].chance == scores.baselines["random"]["F1(average=micro)"]
    assert np.isnan(scores.all["F1(average=macro)"].chance)
