"""Sums over units with their total: read as sums, and compared with the means that they give."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from equipoise.audit.apply_rules import audit_table
from equipoise.audit.read_records import parse_sum_label
from equipoise.domains.places.training_meter import calculate_correct_total_prediction, get_performance_dict

PUBLISHED = Path(__file__).parents[3] / "shared" / "data" / "next_loc_results"


def float32_results(seed: int, *, percent: bool = True) -> dict[str, float]:
    """Results of an evaluation loop in float32."""
    rng = np.random.default_rng(seed)
    ranks = rng.geometric(rng.uniform(0.02, 0.6), size=int(rng.integers(150, 20_000)))
    scale = np.float32(100 if percent else 1)
    total = np.float32(len(ranks))
    row = {f"correct@{k}": np.float32((ranks <= k).sum()) for k in (1, 3, 5, 10)}
    row["rr"] = (1 / ranks.astype(np.float32)).sum(dtype=np.float32)
    discounted_gains = np.where(ranks <= 10, 1 / np.log2(ranks + 1), 0)
    row |= {"ndcg": np.float32(discounted_gains.mean()) * scale, "f1": np.float32(0.41), "total": total}
    row |= {f"acc@{k}": row[f"correct@{k}"] / total * scale for k in (1, 5, 10)}
    row["mrr"] = row["rr"] / total * scale
    return {name: float(value) for name, value in row.items()}


@pytest.mark.parametrize("percent", [True, False])
@pytest.mark.parametrize("seed", range(10))
def test_sums_in_float32_have_no_issues(seed: int, percent: bool) -> None:
    audit = audit_table(float32_results(seed, percent=percent))
    assert audit.issues == ()
    assert audit.n_values == 11
    assert audit.unread == ()


@pytest.mark.skipif(not PUBLISHED.is_dir(), reason="the published results are not part of the repository")
def test_published_next_location_results_have_no_issues() -> None:
    files = sorted(PUBLISHED.glob("*.json"))
    assert files
    for file in files:
        assert audit_table(file).issues == (), file.name
    assert audit_table(PUBLISHED).issues == ()


@pytest.mark.parametrize("label", ["acc@1", "acc@5", "acc@10", "mrr", "rr", "correct@1", "correct@10", "total"])
@pytest.mark.parametrize("factor", [0.99, 1.001])
def test_a_sum_that_contradicts_its_mean_is_impossible(label: str, factor: float) -> None:
    row = float32_results(1)
    changed = row[label] * factor
    row[label] = changed if label in ("rr", "mrr") or label.startswith("acc") else round(changed)
    assert "EQ401" in [finding.code for finding in audit_table(row).impossible]


def test_sums_determine_the_unit_of_values_below_one() -> None:
    row = {
        "correct@1": 5,
        "correct@5": 9,
        "total": 10_000,
        "acc@1": 0.05,
        "acc@5": 0.09,
        "mrr": 0.07,
        "rr": 7.0,
    }
    assert audit_table(row).issues == ()
    assert audit_table(row | {"acc@1": 0.06}).impossible


def test_sums_without_means_are_read_and_compared() -> None:
    sums = {"correct@1": 5, "correct@5": 9, "correct@10": 12, "rr": 7.1, "ndcg": 8.9, "total": 1000}
    audit = audit_table(sums)
    assert audit.issues == ()
    assert audit.n_values == 5
    assert [finding.code for finding in audit_table(sums | {"correct@5": 3}).impossible] == ["EQ402"]
    assert "EQ411" in [finding.code for finding in audit_table(sums | {"correct@10": 1001}).impossible]
    assert "EQ403" in [finding.code for finding in audit_table(sums | {"rr": 4.0}).impossible]


def test_hits_alongside_a_total_may_be_counts() -> None:
    assert not audit_table({"hits@1": 80, "hits@5": 120, "total": 300, "mrr": 0.3}).issues
    assert not audit_table({"hits@1": 30, "hits@5": 60, "total": 300, "mrr": 0.14}).issues
    assert audit_table({"hits@1": 150, "hits@5": 120, "total": 300}).impossible


def test_a_sum_of_reciprocal_ranks_without_a_total_is_no_mean() -> None:
    assert not audit_table({"rr": 8408.5, "mrr": 67.98}).issues
    assert audit_table({"rr": 0.31, "mrr": 0.42}).impossible


def test_sums_of_several_splits_have_their_own_totals() -> None:
    row = {"val_correct@1": 10, "val_total": 20, "val_acc@1": 50.0}
    row |= {"test_correct@1": 9, "test_total": 10, "test_acc@1": 90.0}
    assert audit_table(row).issues == ()
    (issue,) = audit_table(row | {"test_acc@1": 50.0}).impossible
    assert (issue.code, issue.subject) == ("EQ401", "test")


@pytest.mark.parametrize("tied", [False, True])
def test_performance_dicts_of_this_package_have_no_issues(tied: bool, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(60, 40))
    targets = rng.integers(0, 40, 60)
    sums, true_classes, top_classes = calculate_correct_total_prediction(np.round(logits) if tied else logits, targets)
    (tmp_path / "result.json").write_text(json.dumps(get_performance_dict(sums, true_classes, top_classes)))
    assert audit_table(tmp_path / "result.json").issues == ()


@pytest.mark.parametrize(
    ("label", "measure"),
    [
        ("correct@5", "HR@5"),
        ("num_correct@1", "HR@1"),
        ("rr", "MRR"),
        ("ndcg_sum", "nDCG"),
        ("sum_rr", "MRR"),
    ],
)
def test_labels_of_sums_name_their_metric(label: str, measure: str) -> None:
    parsed = parse_sum_label(label)
    assert parsed is not None
    assert parsed.metric.name == measure
