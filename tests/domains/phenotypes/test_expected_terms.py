"""The check for wrong expected terms: wrong ids are findings, and hard cases are not."""

from __future__ import annotations

from equipoise.checks.base import run_checks
from equipoise.domains.phenotypes.checks import ExpectedTerm, ExpectedTerms

TERMS = 10_000


def expected_terms(*ranks: float, candidates: int = TERMS, nearest: float = 0.1) -> ExpectedTerms:
    terms = [
        ExpectedTerm(f"c{index}", "a text", f"HP:{index}", "a label", rank, nearest, "another label")
        for index, rank in enumerate(ranks)
    ]
    return ExpectedTerms(terms, ["one", "other"], candidates)


def test_a_term_ranked_after_a_fifth_of_all_terms_is_a_finding() -> None:
    (finding,) = run_checks(expected_terms(1, 3, 2, 80, 1999, 1, 2001))
    assert finding.code == "EQ120"
    assert finding.subject == "case c6"
    start = "1 of 7 expected terms may be wrong: every system ranks at least 2,000 terms above HP:6 (a label)"
    assert finding.message.startswith(start)
    assert "also" not in finding.message
    assert len(finding.evidence) == 1


def test_hard_cases_weak_systems_small_ontologies_and_failures_are_no_findings() -> None:
    assert run_checks(expected_terms(1, 3, 500, 1900)) == ()
    assert run_checks(expected_terms(1, 3, 2, 80, 1999, 1, 2001, nearest=0.8)) == ()
    assert run_checks(expected_terms(1, 5000, 6000, 7000)) == ()
    assert run_checks(expected_terms(*[1] * 47, 5000, 6000, 7000)) == ()
    assert run_checks(expected_terms(1, 1, 1, 1, 1, 1, 90, candidates=100)) == ()
    assert run_checks(expected_terms(1, 1, 1, 1, 1, 1, float("inf"))) == ()


def test_two_wrong_terms_among_few_are_both_reported() -> None:
    (finding,) = run_checks(expected_terms(*[1] * 16, 5000, 6000))
    assert len(finding.evidence) == 2
    assert "above HP:16 (a label)" in finding.message
    assert finding.message.endswith("; also HP:17 (a label) in c17")
