"""Labels of other libraries, of papers and of this package are recognised."""

from __future__ import annotations

import pytest

from equipoise.audit.metric_labels import ColumnRole, is_metric_label, parse_label, suggest_label
from equipoise.metrics.parser import builtin, parse_metrics

LABELS = {
    "HR@1": [
        "acc@1",
        "Acc@1",
        "Hit@1",
        "hit_rate@1",
        "HR @ 1",
        "hits@1",
        "H@1",
        "success_1",
        "top-1 accuracy",
        "Top1",
    ],
    "nDCG@10": [
        "NDCG@10",
        "ndcg_at_10",
        "ndcg_cut_10",
        "cosine_ndcg@10",
        "NanoNQ_cosine_ndcg@10",
        "**nDCG@10** ↑",
    ],
    "MAP(norm=R)@10": ["map_cut_10", "MAP(norm=R)@10"],
    "MRR": ["mrr", "recip_rank", "Mean Reciprocal Rank (MRR)", "mean reciprocal rank", "test/mrr"],
    "P@5": ["P_5", "Precision@5", "precision_at_5", "P@5 (%)"],
    "R@100": ["recall_100", "Recall@100", "R@100", "eval_recall_at_100"],
    "R(capped)@100": ["R_cap@100", "R(capped)@100"],
    "MR": ["Mean Rank (MR)", "mean_rank", "MR", "MR (lower is better)"],
    "MedianRank": ["Median Rank", "median_rank", "MedR", "MdR"],
    "Acc": ["accuracy", "Acc", "best_accuracy"],
    "F1": ["f1", "F1-score", "f1_score"],
    "F1(average=weighted)": ["f1_weighted", "weighted F1", "F1(average=weighted)", "Weighted-F1"],
    "F1(average=macro)": ["macro F1", "f1 (macro)", "F1_macro"],
    "R(average=macro)": ["recall_macro", "macro recall"],
    "Spearman": ["Spearman ρ (%)", "rho", "spearman"],
    "nDCG(gain=exp)@10": ["nDCG(gain=exp)@10"],
}


@pytest.mark.parametrize(("name", "label"), [(name, label) for name, labels in LABELS.items() for label in labels])
def test_a_label_is_parsed_to_its_metric(name: str, label: str) -> None:
    parsed = parse_label(label)
    assert parsed is not None
    assert str(parsed.metric) == name
    assert parsed.role is ColumnRole.VALUE
    assert parsed.percent == ("%" in label)


@pytest.mark.parametrize("metric", list(builtin()), ids=lambda metric: metric.symbol)
def test_every_built_in_metric_is_parsed_by_name(metric) -> None:  # type: ignore[no-untyped-def]
    label = f"{metric.symbol}@10" if metric.needs_cutoff else metric.symbol
    parsed = parse_label(label)
    assert parsed is not None
    assert str(parsed.metric) == parse_metrics(label)[0].name


@pytest.mark.parametrize(
    "label",
    [
        "",
        "dim",
        "dim_r",
        "latency ms",
        "epoch",
        "steps",
        "delta MRR",
        "MRR diff",
        "p-value",
        "improvement_pct",
        "v1",
        "MRR_std",
        "run_r",
    ],
)
def test_other_labels_are_not_metrics(label: str) -> None:
    assert not is_metric_label(label)


@pytest.mark.parametrize(
    ("label", "role", "metric", "group"),
    [
        ("ci_lower", ColumnRole.LOW, "None", ""),
        ("MRR_ci_upper", ColumnRole.HIGH, "MRR", ""),
        ("nested_ci_lower", ColumnRole.LOW, "None", "nested"),
        ("HR@1 std", ColumnRole.SPREAD, "HR@1", ""),
    ],
)
def test_bounds_and_standard_deviations_refer_to_their_metric(
    label: str, role: ColumnRole, metric: str, group: str
) -> None:
    parsed = parse_label(label)
    assert parsed is not None
    assert (parsed.role, str(parsed.metric), parsed.group) == (role, metric, group)


def test_a_mistyped_label_gets_a_suggestion_with_its_cutoff() -> None:
    assert suggest_label("nDGC@10") == "did you mean nDCG@10 for nDGC@10?"
    assert suggest_label("zzz") == ""


@pytest.mark.parametrize(
    ("label", "metric", "group"),
    [
        ("R@1 (I2T)", "R@1", "I2T"),
        ("HR@1 [dev]", "HR@1", "dev"),
        ("NQ R@1 (dev)", "R@1", "NQ dev"),
        ("Recall (10)", "R", "10"),
        ("F1 (entity) (%)", "F1", "entity"),
        ("Mean Reciprocal Rank (MRR)", "MRR", ""),
        ("MRR (higher is better)", "MRR", ""),
    ],
)
def test_brackets_contain_another_name_or_a_group(label: str, metric: str, group: str) -> None:
    parsed = parse_label(label)
    assert parsed is not None
    assert (str(parsed.metric), parsed.group) == (metric, group)
