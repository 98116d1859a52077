"""Terminal reports of results and comparisons."""

from __future__ import annotations

import io

import numpy as np
import pytest
from rich.console import Console

from equipoise.checks.base import reasons
from equipoise.cli.explain import plain_formula, worked_values
from equipoise.evidence.ranking import Ranking
from equipoise.report.pairwise import comparison_view
from equipoise.report.tables import chance_text, score_part
from equipoise.report.terminal import at_least_severity, console, findings_section, sort_by_severity
from equipoise.runs.compare import compare
from equipoise.runs.evaluate import evaluate
from equipoise.types import Finding, Severity


def printed(parts: list[object], width: int = 80) -> str:
    """The parts printed on a terminal of this width."""
    stream = io.StringIO()
    Console(file=stream, width=width, highlight=False).print(*parts, sep="\n", crop=False)
    return stream.getvalue()


def ranking(*ranks: int) -> Ranking:
    """One relevant item per unit, at these ranks of ten."""
    return Ranking.from_ranks(list(ranks), candidates=10)


def test_each_metric_has_its_own_number_of_digits() -> None:
    evidence = Ranking.from_ranks(np.random.default_rng(0).integers(1, 1001, 200), candidates=1000)
    text = printed(score_part([evaluate(evidence, ["MRR", "MR"])]))
    rows = {line.split()[0]: line.split()[1] for line in text.splitlines()[4:6]}
    assert "." not in rows["MR"]
    assert len(rows["MRR"].partition(".")[2]) >= 3
    assert "Smaller is better: MR." in text


def test_one_unit_has_no_interval_with_the_reason() -> None:
    text = printed(score_part([evaluate(ranking(3), ["MRR"])]), width=120)
    assert "n/a (" in text
    assert "0.333" in text


def test_undefined_units_are_counted_in_the_row() -> None:
    evidence = Ranking.from_runs({"a": {"x": 1}, "b": {"x": 0}, "c": {"x": 1}}, {"a": {"x": 1.0}})
    row = printed(score_part([evaluate(evidence, ["HR@1"])])).splitlines()[4].split()
    assert row[-4:-1] == ["2", "1", "<="]


def test_lower_is_better_ranks_the_smallest_first() -> None:
    comparison = compare({"low": ranking(*[1, 2] * 8), "high": ranking(*[4, 6] * 8)}, "MR")
    lines = printed(comparison_view(comparison).parts(quiet=True)).splitlines()
    assert [line.split()[1] for line in lines[-2:]] == ["low", "high"]
    assert "+3." in printed(comparison_view(comparison).parts(verbose=True))


def test_identical_systems_share_a_band_and_no_difference_is_claimed() -> None:
    comparison = compare({"one": ranking(*[1, 2] * 8), "two": ranking(*[1, 2] * 8)}, "MRR")
    text = printed(comparison_view(comparison).parts(verbose=True))
    assert all(line.startswith("a  ") for line in text.split("best first\n\n")[1].splitlines()[2:4])
    assert "0/16/0" in text


def test_undefined_scores_have_no_leader() -> None:
    empty = Ranking.from_runs({"a": {"x": 0}, "b": {"x": 0}}, {"a": {"x": 1.0}, "b": {"x": 1.0}})
    text = printed(comparison_view(compare({"one": empty, "two": empty}, "MRR")).parts(), width=120)
    assert text.startswith("Inconclusive: no system has a value of MRR")
    assert "n/a" in text


FINDINGS = [
    Finding("EQ2", Severity.NOTE, "b", "is small", "grow"),
    Finding("EQ1", Severity.ISSUE, "a", "is wrong", "repair it", ("unit 7",)),
    Finding("EQ2", Severity.NOTE, "c", "is small", "grow"),
    Finding("EQ3", Severity.TIP, "a", "is slow", ""),
]


def test_findings_are_sorted_by_severity_with_one_hint_per_group() -> None:
    text = printed(findings_section(FINDINGS))
    assert text.split("Findings\n")[1] == (
        "! issue EQ1  a: is wrong\n"
        "             -> repair it\n"
        "+ tip   EQ3  a: is slow\n"
        "- note  EQ2  b, c: is small\n"
        "             -> grow\n"
    )
    assert "unit 7" not in text
    assert "unit 7" in printed(findings_section(FINDINGS, verbose=True))
    assert findings_section([]) == []


def test_similar_findings_are_counted_and_the_reason_is_given_once() -> None:
    details = tuple(f"a query with a long name, number {number}" for number in range(9))
    findings = [
        Finding("EQ301", Severity.TIP, name, f"{number} ties", "keep digits", details)
        for number, name in enumerate("abcdef")
    ]
    text = printed(findings_section(findings, verbose=True), width=400)
    assert "b: 1 ties" in text
    assert "c: 2 ties" not in text
    assert "and 4 more: c, d, e, f" in text
    assert text.count("and 4 more\n") == 2, "of nine details, five are printed for each finding"
    assert " ".join(text.split()).count(reasons()["EQ301"]) == 1
    assert "and " not in printed(findings_section(findings[:3]))


def test_duplicate_findings_are_shown_once() -> None:
    assert len(sort_by_severity(FINDINGS * 2)) == len(FINDINGS)


@pytest.mark.parametrize(
    ("severity", "codes"), [("issue", {"EQ1"}), ("tip", {"EQ1", "EQ3"}), ("note", {"EQ1", "EQ2", "EQ3"})]
)
def test_a_gate_includes_higher_severities(severity: str, codes: set[str]) -> None:
    assert {finding.code for finding in at_least_severity(FINDINGS, severity)} == codes


def test_long_findings_are_wrapped_and_indented() -> None:
    long = Finding("EQ1", Severity.TIP, "a", "goes on " * 20, "stop " * 20)
    lines = printed(findings_section([long]), width=60).splitlines()[2:]
    assert all(len(line) <= 60 for line in lines)
    assert all(line.startswith(" " * 13) for line in lines[1:])


def test_a_pipe_is_not_coloured_and_not_wrapped(monkeypatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    terminal = console(io.StringIO())
    assert terminal.width == 10_000
    assert terminal.color_system is None


def test_worked_examples_of_a_metric_are_computed_if_possible() -> None:
    from equipoise.metrics.parser import parse_metrics

    (metric,) = parse_metrics("AP@5")
    assert worked_values(metric)[0].endswith("MAP@5 = 0.7000")
    (ontology,) = parse_metrics("MaxOntSim@5")
    assert worked_values(ontology) == []


def test_the_bound_of_a_chance_level_depends_on_the_direction() -> None:
    result = evaluate(ranking(1, 2, 3, 4), ["MRR", "MR"])
    assert chance_text(result["MRR"], 2, bounded=True).startswith("<= 0.")
    assert chance_text(result["MR"], 2, bounded=True) == ">= 5.50"
    assert chance_text(result["MR"], 2, bounded=False) == "5.50"


@pytest.mark.parametrize(
    ("latex", "plain"),
    [
        ("relevant within k / k", "relevant within k / k"),
        (r"\frac{1}{n} \sum_i [\hat y_i = y_i]", "(1 / n) sum_i [hat(y)_i = y_i]"),
        (r"\frac{2\,TP}{2\,TP + FP + FN}", "2 TP / (2 TP + FP + FN)"),
        (r"\mathrm{Pearson}(\mathrm{rank}(p), \mathrm{rank}(e))", "Pearson(rank(p), rank(e))"),
    ],
)
def test_formulas_are_readable_without_latex(latex: str, plain: str) -> None:
    assert plain_formula(latex) == plain
