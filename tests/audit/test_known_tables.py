"""The impossible values of known tables are found with their derivations; possible ones are not flagged."""

from __future__ import annotations

from pathlib import Path

import pytest

from equipoise.audit.apply_rules import audit_table
from equipoise.types import Finding, Severity

TABLES = Path(__file__).parent / "tables"


def findings_with_code(name: str, code: str, **options: bool) -> list[Finding]:
    return [finding for finding in audit_table(TABLES / name, **options).findings if finding.code == code]


def test_a_median_rank_of_3_and_a_map_of_93_percent_are_impossible() -> None:
    findings = findings_with_code("accounts.md", "EQ404", one_relevant=True)
    assert [finding.subject for finding in findings] == ["5", "10", "15", "25", "50"]
    last_issue = findings[-1]
    assert last_issue.severity is Severity.ISSUE
    assert last_issue.message == "MAP 93.45% is too large for a median rank of 3.00: at most 0.6667"
    assert "together that is at most 1/2 + 1/(2 x 3) = 0.666667" in last_issue.evidence
    assert "MAP 93.45% is printed, so the value is 0.93445 to 0.93455" in last_issue.evidence


def test_without_the_one_relevant_assumption_the_median_rank_gives_notes() -> None:
    audit = audit_table(TABLES / "accounts.md")
    assert audit.impossible == ()
    notes = [finding for finding in audit.findings if finding.code == "EQ450"]
    assert len(notes) == 5
    assert "impossible if every query has one relevant item (EQ404); otherwise it may be correct" in notes[0].message
    assert "--one-relevant" in notes[0].hint


def test_a_table_can_declare_that_the_parent_is_the_only_relevant_item(tmp_path: Path) -> None:
    text = (TABLES / "accounts.md").read_text().rstrip() + "\n| relation" + " | parent" * 6 + " |\n"
    (tmp_path / "declared.md").write_text(text)
    audit = audit_table(tmp_path / "declared.md")
    assert [(finding.code, finding.subject) for finding in audit.impossible][-1] == ("EQ404", "50, parent")
    assert len(audit.impossible) == 5


def test_precision_at_one_is_the_hit_rate_at_one() -> None:
    (findings,) = findings_with_code("phenotypes.md", "EQ401")
    assert findings.subject == "BioLORD-2023-M"
    assert findings.message == "HR@1 0.3333 and P@1 1.0000 differ, but are equal by definition"


def test_a_perfect_precision_at_10_bounds_recall_at_1_by_a_tenth() -> None:
    findings = findings_with_code("phenotypes.md", "EQ405")
    assert findings[0].message == "R@1 0.1667 is too large for P@10 1.0000: at most 0.1001"
    assert "on average R@1 is at most 0.10005" in findings[0].evidence


def test_ndcg_equal_to_map_at_every_cutoff_is_impossible() -> None:
    findings = findings_with_code("phenotypes.md", "EQ406", binary=True, map_over_relevant=True)
    assert [finding.message.partition(":")[0] for finding in findings] == [
        "MAP@3 0.6111 is as large as nDCG@3 0.6111",
        "MAP@5 0.7222 is as large as nDCG@5 0.7222",
        "MAP@10 0.8611 is as large as nDCG@10 0.8611",
    ]
    notes = findings_with_code("phenotypes.md", "EQ450")
    assert len(notes) == 3, "without --binary and --map-over-relevant grades or the denominator could explain it"


def test_a_random_mrr_of_14_percent_is_impossible_with_1187_classes() -> None:
    (findings,) = audit_table(TABLES / "random.csv").impossible
    assert findings.code == "EQ410"
    assert findings.message.endswith("chance level among 1,187: 0.006451")


def test_the_number_of_classes_follows_from_the_random_accuracy() -> None:
    rows = [{"system": "random baseline", "Acc@1": "0.08%", "MRR": "14%"}]
    (findings,) = audit_table(rows).impossible
    assert findings.code == "EQ410"
    assert "so n is 1,177 to 1,333" in findings.evidence[0]


def test_norm_consistency_has_the_wrong_direction() -> None:
    findings = findings_with_code("concepts.json", "EQ415")
    assert [finding.subject for finding in findings] == ["minilm", "mpnet"]
    assert findings[0].message.endswith("rewards inconsistency: it is 0 when all norms are equal")


def test_density_and_clustering_coefficient_are_constants_of_the_test_data() -> None:
    findings = findings_with_code("concepts.json", "EQ414")
    assert [finding.message.partition(" for all")[0] for finding in findings] == [
        "graph_density is 0.031",
        "clustering_coefficient is 0.118",
    ]


def test_a_wilson_interval_of_the_best_of_27_is_misleading() -> None:
    (findings,) = audit_table(TABLES / "fair.json").misleading
    assert findings.code == "EQ413"
    assert (
        findings.message == "the interval of Acc 94.4% is valid for one fixed configuration, but this is the best of 27"
    )
    assert "it is Wilson's interval of one share of 90 queries" in findings.evidence


@pytest.mark.parametrize("declared", [{}, {"no_ties": True}])
def test_possible_known_tables_have_no_findings(declared: dict[str, bool]) -> None:
    assert audit_table(TABLES / "vectors.md", **declared).findings == ()
    assert audit_table(TABLES / "places.json", one_relevant=True, **declared).findings == ()


def test_worked_examples_have_no_findings() -> None:
    assert audit_table({"MRR": 0.567, "HR@1": "0.333"}, n=3, one_relevant=True, no_ties=True).findings == ()
    assert audit_table({"nDCG@10": 0.458, "HR@1": 0.25, "HR@10": 0.75}, n=4, one_relevant=True).findings == ()
    assert audit_table({"AP@5": 0.7, "P@5": 0.6}, n=1, no_ties=True).findings == ()


def test_a_latex_table_is_read_with_header_groups_and_markup() -> None:
    audit = audit_table(TABLES / "paper.tex")
    assert [row.name for row in audit.tables[0].rows] == [
        "BM25/NQ",
        "BM25/TREC",
        "Dense, 110M/NQ",
        "Dense, 110M/TREC",
    ]
    (findings,) = audit.impossible
    assert (findings.code, findings.subject) == ("EQ402", "Dense, 110M/NQ")
    assert findings.message.startswith("HR@1 48.9% is above HR@5 47.1%")


TARGETS = (
    "For each account we rank its parent among all other accounts.",
    "Precision of retrieving the\nparent account as the nearest neighbour.",
    "The parent is ranked among all accounts.",
)


@pytest.mark.parametrize("target", TARGETS)
def test_the_text_of_the_file_can_declare_one_relevant_item(target: str, tmp_path: Path) -> None:
    (tmp_path / "report.md").write_text(f"{target}\n\n{(TABLES / 'accounts.md').read_text()}")
    audit = audit_table(tmp_path / "report.md")
    assert [(finding.code, finding.subject) for finding in audit.impossible] == [
        ("EQ404", finding) for finding in ("5", "10", "15", "25", "50")
    ]
    assert (
        audit.impossible[0].evidence[0].startswith("given that every query has one relevant item, as the text says: ")
    )


def test_a_declaration_that_contradicts_the_values_is_ignored(tmp_path: Path) -> None:
    table = "| HR@5 | Recall@5 | MAP | Median Rank |\n|--|--|--|--|\n| 0.90 | 0.61 | 0.80 | 3 |\n"
    (tmp_path / "report.md").write_text(f"{TARGETS[0]}\n\n{table}")
    assert not audit_table(tmp_path / "report.md").issues
    (tmp_path / "report.md").write_text(f"{TARGETS[0]} All ancestors count.\n\n{table.replace('0.61', '0.90')}")
    assert not audit_table(tmp_path / "report.md").issues


def test_a_formula_of_the_file_declares_the_denominator_of_average_precision(tmp_path: Path) -> None:
    formula = r"$$AP@K = \frac{1}{\min(K, |Relevant|)} \sum_k P@k$$"
    (tmp_path / "report.md").write_text(f"{formula}\n\n{(TABLES / 'phenotypes.md').read_text()}")
    findings = [item for item in audit_table(tmp_path / "report.md", binary=True).impossible if item.code == "EQ406"]
    assert len(findings) == 3
    notes = [finding for finding in audit_table(tmp_path / "report.md").findings if finding.code == "EQ450"]
    assert {note.hint for note in notes} == {"if this assumption holds, declare it with --binary"}


BEST = {
    "model_name": "bge-base",
    "baseline_accuracy": 90.1,
    "best_accuracy": 94.4,
    "ci_lower": 88.3,
    "ci_upper": 97.4,
}


@pytest.mark.parametrize("other_fields", [{}, {"best_params": {"chunk_size": 512, "top_k": 10}}])
def test_the_best_of_a_search_is_detected_without_a_count_of_configurations(other_fields: dict[str, object]) -> None:
    (findings,) = audit_table([BEST | other_fields]).misleading
    assert findings.code == "EQ413"
    assert findings.message.endswith("but this is the best of several")
    assert "the interval goes from 88.3 to 97.4" in findings.evidence


def test_an_interval_of_an_unselected_score_has_no_issues() -> None:
    plain = {"accuracy": 94.4, "ci_lower": 88.3, "ci_upper": 97.4}
    fine_tuned = {"baseline_accuracy": 90.1, "tuned_accuracy": 94.4, "ci_lower": 88.3, "ci_upper": 97.4}
    nested = BEST | {"nested_accuracy": 91.0}
    for row in (plain, fine_tuned, nested):
        assert not audit_table([row]).issues


PRINTED = """\
st:bge-base:
  Baseline: 90.1%
  Optimized: 94.4% (95% CI: [88.3%, 97.4%])
  Best params: {'chunk_size': 512}
st:minilm:
  Baseline: 85.1%
  Optimized: 89.7% (95% CI: [81.3%, 94.4%])
"""


@pytest.mark.parametrize("name", ["printed.txt", "printed.md"])
def test_the_best_of_a_search_is_found_in_program_output(name: str, tmp_path: Path) -> None:
    text = PRINTED if name.endswith("txt") else f"# Results\n\n```\n{PRINTED}```\n"
    (tmp_path / name).write_text(text)
    audit = audit_table(tmp_path / name)
    assert [(finding.code, finding.subject) for finding in audit.misleading] == [
        ("EQ413", "st:bge-base/optimized"),
        ("EQ413", "st:minilm/optimized"),
    ]
    assert audit.n_values == 4
