"""Results of other projects: units are derived from counts and bounds, or the value is rejected."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import f1_score

from equipoise.audit.apply_rules import audit_table
from equipoise.domains.places.published_results import (
    PublishedScores,
    RoundingRange,
    accuracy_range,
    mean_gain_range,
    ndcg_gain,
    read_published_results,
    reciprocal_rank_gain,
    weighted_f1_range,
)
from equipoise.domains.places.training_meter import calculate_correct_total_prediction, get_performance_dict
from equipoise.errors import InputError, ParameterError

EXAMPLE = {"acc@1": 29.61, "acc@5": 54.48, "acc@10": 58.94, "mrr": 40.84, "ndcg": 44.96, "f1": 21.20}
PUBLISHED = Path(__file__).parents[4] / "shared" / "data" / "next_loc_results"
ranks = st.lists(st.integers(1, 30), min_size=1, max_size=40)
labels = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=40)


def row_of(values: dict[str, Any], **options: Any) -> PublishedScores:
    (row,) = read_published_results(values, **options)
    return row


def curve_of(target_ranks: np.ndarray, ks: list[int]) -> dict[int, RoundingRange]:
    return {k: RoundingRange(*[float((target_ranks <= k).mean())] * 2) for k in ks}


@given(ranks, st.sets(st.integers(1, 12)))
def test_mean_gains_of_ranks_are_within_the_range_of_their_accuracies(rank_list: list[int], ks: set[int]) -> None:
    target_ranks = np.array(rank_list)
    curve = curve_of(target_ranks, sorted(ks))
    for gain in (reciprocal_rank_gain, ndcg_gain(10), ndcg_gain(3)):
        mean = sum(gain(rank) for rank in rank_list) / len(rank_list)
        assert mean_gain_range(curve, gain).meets(RoundingRange(mean, mean))
    assert accuracy_range(curve, 4).meets(RoundingRange(*[float((target_ranks <= 4).mean())] * 2))


@given(labels)
def test_weighted_f1_is_within_the_range_of_the_accuracy(pairs: list[tuple[int, int]]) -> None:
    true, predicted = zip(*pairs, strict=True)
    accuracy = float(np.mean(np.array(true) == np.array(predicted)))
    f1 = f1_score(true, predicted, average="weighted", zero_division=0)
    bounds = weighted_f1_range({1: RoundingRange(accuracy, accuracy)})
    assert bounds.low - 1e-12 <= f1 <= bounds.high + 1e-12


def test_both_ends_of_the_weighted_f1_are_reached() -> None:
    one_class = ([0] * 3 + list(range(1, 8)), [0] * 10)
    precise = ([0] * 10, [0] * 3 + list(range(1, 8)))
    bounds = weighted_f1_range({1: RoundingRange(0.3, 0.3)})
    for (true, predicted), expected in ((one_class, bounds.low), (precise, bounds.high)):
        assert f1_score(true, predicted, average="weighted", zero_division=0) == pytest.approx(expected)


def test_the_values_of_the_example_are_percent() -> None:
    row = row_of(EXAMPLE)
    assert row.rejected == ()
    assert row.empty == ()
    expected = {
        "HR@1": 0.2961,
        "HR@5": 0.5448,
        "HR@10": 0.5894,
        "MRR": 0.4084,
        "nDCG@10": 0.4496,
        "F1": 0.212,
    }
    assert row.values == pytest.approx(expected)
    assert {entry.unit for entry in row.accepted} == {"percent"}


def test_counts_show_percent_next_to_an_f1_that_is_a_fraction() -> None:
    row = row_of(
        {
            "correct@1": 1234,
            "rr": 1701.39,
            "total": 4166,
            "acc@1": 29.62,
            "mrr": 40.84,
            "ndcg": 44.96,
            "f1": 0.212,
        }
    )
    assert row.total == 4166
    assert row.values["HR@1"] == 1234 / 4166
    assert row.values["MRR"] == pytest.approx(0.4084, abs=1e-4)
    assert row.values["F1"] == 0.212
    by_label = {entry.label: entry.unit for entry in row.accepted}
    assert by_label == {"correct@1": "count", "rr": "sum over visits", "ndcg": "percent", "f1": "fraction"}


def test_a_value_below_one_without_other_values_is_rejected() -> None:
    row = row_of({"mrr": 0.41, "f1": 0.2})
    assert row.values == {}
    assert [entry.label for entry in row.rejected] == ["mrr", "f1"]
    assert "a fraction (0.41) or percent (0.0041)" in row.rejected[0].reason


def test_hit_counts_decide_between_fraction_and_percent() -> None:
    assert row_of({"acc@1": 0.36, "total": 50}).values == {"HR@1": 0.36}  # 18 of 50; 0.36 % of 50 is not an integer
    ambiguous = row_of({"acc@1": 0.5, "total": 1000})  # 500 hits, or 5
    assert ambiguous.values == {}
    assert "may be" in ambiguous.rejected[0].reason
    impossible = row_of({"acc@1": 0.37, "total": 50})
    assert impossible.values == {}
    assert "no number of hits among 50 visits" in impossible.rejected[0].reason


def test_the_unit_of_one_accuracy_determines_that_of_the_others() -> None:
    row = row_of({"acc@1": 29.61, "acc@5": 0.5448, "mrr": 0.4084, "ndcg": 0.45})
    assert row.values == pytest.approx({"HR@1": 0.2961, "HR@5": 0.5448, "MRR": 0.4084, "nDCG@10": 0.45})


def test_empty_values_stay_unknown_and_are_listed() -> None:
    row = row_of({"acc@1": 29.61, "acc@5": None, "mrr": "", "f1": 21.2})
    assert row.empty == ("acc@5", "mrr")
    assert set(row.values) == {"HR@1", "F1"}


def test_zero_is_zero_in_every_unit() -> None:
    assert row_of({"acc@1": 0.0, "mrr": "0"}).values == {"HR@1": 0.0, "MRR": 0.0}


def test_decreasing_accuracies_are_rejected_together() -> None:
    row = row_of({"acc@1": 60.0, "acc@5": 30.0})
    assert row.values == {}
    assert len(row.rejected) == 2
    assert "the accuracies allow" in row.rejected[0].reason


def test_a_percent_sign_sets_the_unit() -> None:
    assert row_of({"acc@1": "0.5 %"}).values == pytest.approx({"HR@1": 0.005})
    assert row_of({"Acc@1 (%)": "0.5"}).values == pytest.approx({"HR@1": 0.005})
    row = row_of({"acc@1": "140 %"})
    assert row.values == {}
    assert "at most 1" in row.rejected[0].reason


def test_the_average_of_an_f1_decides_its_bounds() -> None:
    assert row_of({"acc@1": 29.61, "f1": 0.212}, f1="macro").rejected[0].metric == "F1(average=macro)"
    assert row_of({"acc@1": 29.61, "f1_micro": 0.2961}).values["F1(average=micro)"] == 0.2961
    with pytest.raises(ParameterError):
        row_of({"f1": 1}, f1="median")


def test_each_row_of_a_table_has_its_units(tmp_path: Path) -> None:
    file = tmp_path / "results.csv"
    file.write_text("model,n,acc@1,acc@5,mrr,ndcg,f1\nA,4166,29.62,54.49,40.84,,0.212\nB,50,0.3,,.42,46,\n")
    first, second = read_published_results(file)
    assert (first.name, second.name) == ("A", "B")
    assert first.values == pytest.approx({"HR@1": 0.2962, "HR@5": 0.5449, "MRR": 0.4084, "F1": 0.212})
    assert second.values == pytest.approx({"HR@1": 0.3, "MRR": 0.42, "nDCG@10": 0.46})
    assert second.empty == ("acc@5", "f1")


def test_the_audit_reads_the_same_file(tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    file.write_text(json.dumps({**EXAMPLE, "total": 4166}))
    assert audit_table(file).n_values == len(EXAMPLE)


def test_impossible_counts_are_errors() -> None:
    with pytest.raises(InputError, match=r"9 hits.*1 among 5 visits"):
        row_of({"correct@1": 9, "total": 5})
    with pytest.raises(InputError, match=r"2 hits.*5"):
        row_of({"correct@1": 3, "correct@5": 2, "total": 5})
    with pytest.raises(InputError):
        row_of({"correct@1": -1, "total": 5})
    with pytest.raises(InputError):
        row_of({"correct@1": 1, "total": 5.5})
    with pytest.raises(InputError, match=r"5 visits.*6"):
        row_of({"acc@1": 20.0, "total": 5}, total=6)
    with pytest.raises(InputError):
        read_published_results({"latency": 3})
    with pytest.raises(ParameterError, match=r"visits.*0"):
        row_of({"acc@1": 20.0}, total=0)


def float32_results(target_ranks: np.ndarray) -> dict[str, float]:
    """The results of an evaluation loop in float32: sums over units, and percentages of them."""
    hits = {k: np.float32((target_ranks <= k).sum()) for k in (1, 3, 5, 10)}
    total, reciprocal_sum = np.float32(len(target_ranks)), (1 / target_ranks.astype(np.float32)).sum(dtype=np.float32)
    gain = np.where(target_ranks <= 10, 1 / np.log2(target_ranks + 1), 0).astype(np.float32).sum(dtype=np.float32)
    row = {f"correct@{k}": hits[k] for k in hits} | {"rr": reciprocal_sum, "total": total}
    row |= {f"acc@{k}": hits[k] / total * np.float32(100) for k in (1, 5, 10)}
    row |= {"mrr": reciprocal_sum / total * np.float32(100), "ndcg": gain / total * np.float32(100)}
    return {name: float(value) for name, value in row.items()}


def test_percentages_in_float32_equal_their_counts() -> None:
    row = row_of({"correct@1": 1719, "total": 3502, "acc@1": 49.08623695})
    assert row.rejected == ()
    assert row.values == {"HR@1": 1719 / 3502}
    assert row_of({"total": 3502, "acc@1": 49.08623695}).values == pytest.approx({"HR@1": 1719 / 3502})


@pytest.mark.parametrize("seed", range(20))
def test_no_value_of_a_float32_evaluation_is_rejected(seed: int) -> None:
    rng = np.random.default_rng(seed)
    target_ranks = rng.geometric(rng.uniform(0.05, 0.6), size=int(rng.integers(200, 20_000)))
    row = row_of(float32_results(target_ranks))
    assert row.rejected == ()
    assert row.values["HR@1"] == float((target_ranks == 1).mean())
    assert row.values["MRR"] == pytest.approx(float((1 / target_ranks).mean()), abs=1e-6)


def test_a_percentage_that_differs_from_its_count_is_rejected() -> None:
    row = row_of({"correct@1": 1719, "total": 3502, "acc@1": 49.19})
    assert [entry.label for entry in row.rejected] == ["acc@1"]


def test_values_of_get_performance_dict_are_read_with_fractional_hits_of_ties() -> None:
    logits = np.array([[1.0, 1.0, 0.0], [0.2, 0.5, 0.1], [0.3, 0.3, 0.3]])
    sums = calculate_correct_total_prediction(np.tile(logits, (1, 5)), [0, 1, 2])[0]
    row = row_of(get_performance_dict(sums))
    assert row.rejected == ()
    assert row.values["HR@1"] == pytest.approx(float(sums[0]) / 3)


@pytest.mark.skipif(not PUBLISHED.is_dir(), reason="the published results are not part of the repository")
def test_published_results_are_read_without_a_rejection() -> None:
    for file in sorted(PUBLISHED.glob("*.json")):
        (row,) = read_published_results(file)
        assert row.rejected == (), file.name
        assert row.values["HR@10"] == json.loads(file.read_text())["correct@10"] / row.total


@given(ranks, st.sampled_from([1.0, 100.0]), st.sampled_from([1.0, 100.0]))
def test_accepted_values_are_correct_in_any_unit(rank_list: list[int], accuracy_scale: float, mrr_scale: float) -> None:
    rank_list = [1, *rank_list]
    target_ranks = np.array(rank_list)
    expected = {
        "HR@1": float((target_ranks <= 1).mean()),
        "HR@5": float((target_ranks <= 5).mean()),
        "MRR": float((1 / target_ranks).mean()),
    }
    row = row_of(
        {
            "acc@1": expected["HR@1"] * accuracy_scale,
            "acc@5": expected["HR@5"] * accuracy_scale,
            "mrr": expected["MRR"] * mrr_scale,
        },
        total=len(rank_list),
    )
    for metric, value in row.values.items():
        assert value == pytest.approx(expected[metric], abs=1e-9)
