"""Every check of a fixture reports its problem and nothing else."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest

from equipoise.domains.fair.checks import (
    CHECKS,
    AnswerOccurrences,
    AnswersInDocument,
    QuestionSet,
    RetrievedFraction,
    SampleSize,
    SplitAnswers,
)
from equipoise.types import Finding, Severity


def findings_of(subject: object) -> list[Finding]:
    return [finding for check in CHECKS for finding in check.findings(subject)]


def answer_occurrences(*rows: tuple[int, int]) -> AnswersInDocument:
    """Answers with a number of occurrences and a number of chunks, of 40, that contain them."""
    return AnswersInDocument(
        [AnswerOccurrences(f"q{number}", f"answer {number}", *row) for number, row in enumerate(rows, start=1)],
        40,
    )


def test_answers_that_occur_once_have_no_findings() -> None:
    assert findings_of(answer_occurrences((1, 1), (1, 2), (1, 1))) == []


def test_an_absent_answer_is_reported() -> None:
    (finding,) = findings_of(answer_occurrences((1, 1), (0, 0)))
    assert (finding.code, finding.severity) == ("EQ102", Severity.ISSUE)
    assert finding.message == '1 of 2 answers was not found, so no system can find it: q2 "answer 2"'
    assert finding.evidence == ('q2 "answer 2"',)


def test_a_split_answer_and_an_absent_answer_have_different_hints() -> None:
    absent, split = findings_of(answer_occurrences((0, 0), (1, 0), (1, 1)))
    assert (absent.code, split.code) == ("EQ102", "EQ102")
    assert "1 of 3 answers is split between chunks" in split.message
    assert "overlap" in split.hint
    assert "overlap" not in absent.hint


def test_the_chunking_with_most_split_answers_is_reported_with_its_maximum_score() -> None:
    split_answers = [AnswerOccurrences(f"q{number}", "x", 1, 0) for number in range(4)]
    (finding,) = findings_of(
        SplitAnswers(
            {"size 8, overlap 0": split_answers, "size 60, overlap 0": split_answers[:1], "size 60, overlap 20": []}, 10
        )
    )
    assert finding.code == "EQ102"
    assert "4 of 10 answers are split between chunks with chunk size 8, overlap 0" in finding.message
    assert "so at most 60 % can be found" in finding.message
    assert finding.message.endswith("1 of the 2 other chunk configurations also splits answers")
    assert finding.evidence[:2] == (
        "size 8, overlap 0: 4 answers split, maximum score 60 %",
        "size 60, overlap 0: 1 answer split, maximum score 90 %",
    )
    assert findings_of(SplitAnswers({"size 60, overlap 20": [], "size 60, overlap 30": []}, 10)) == []


def test_duplicate_questions_and_questions_containing_the_answer_are_reported() -> None:
    repeated, leaking = findings_of(QuestionSet(9, ['q3 "Who?"', 'q4 "Who?"'], ['q7 "In 1871?"']))
    assert (repeated.code, repeated.severity) == ("EQ111", Severity.ISSUE)
    assert repeated.message == '2 of 9 questions are duplicates: q3 "Who?" and 1 more'
    assert (leaking.code, leaking.severity) == ("EQ112", Severity.TIP)
    assert leaking.message == '1 of 9 questions contains its answer: q7 "In 1871?"'
    assert findings_of(QuestionSet(9)) == []


def test_answers_at_several_places_are_listed_with_the_most_frequent_first() -> None:
    (finding,) = findings_of(answer_occurrences((2, 2), (1, 1), (14, 9)))
    assert (finding.code, finding.severity) == ("EQ103", Severity.TIP)
    assert "2 of 3 answers occur more than once" in finding.message
    assert 'q3 "answer 3" 14 times, in 9 of 40 chunks' in finding.message
    assert finding.evidence == ('q3 "answer 3": 14 occurrences, 9 chunks', 'q1 "answer 1": 2 occurrences, 2 chunks')


def test_one_occurrence_in_the_overlap_of_two_chunks_is_not_ambiguous() -> None:
    assert findings_of(answer_occurrences((1, 2))) == []


def test_a_long_answer_is_truncated_in_the_finding() -> None:
    subject = AnswersInDocument([AnswerOccurrences("q1", "word " * 50, 0, 0)], 1)
    assert len(findings_of(subject)[0].evidence[0]) < 60


@pytest.mark.parametrize(("questions", "expected_codes"), [(49, ["EQ105"]), (50, []), (500, [])])
def test_fewer_questions_than_the_minimum_are_reported(questions: int, expected_codes: list[str]) -> None:
    assert [finding.code for finding in findings_of(SampleSize(questions))] == expected_codes


def test_the_minimum_is_a_parameter() -> None:
    assert findings_of(SampleSize(20, minimum=20)) == []
    assert "only 20 questions (the minimum is 30):" in findings_of(SampleSize(20, minimum=30))[0].message


def test_no_difference_is_detectable_with_two_questions() -> None:
    assert "no difference between systems could be detected" in findings_of(SampleSize(2))[0].message


@pytest.mark.parametrize(("chunks", "top_k", "expected_codes"), [(21, 10, []), (20, 10, ["EQ108"]), (1, 10, ["EQ108"])])
def test_retrieving_half_of_the_chunks_is_reported(chunks: int, top_k: int, expected_codes: list[str]) -> None:
    assert [finding.code for finding in findings_of(RetrievedFraction(chunks, top_k))] == expected_codes


def test_a_document_of_one_chunk_is_always_retrieved() -> None:
    (finding,) = findings_of(RetrievedFraction(1, 10))
    assert "returns 1 of 1 chunk," in finding.message
    assert "probability 1.00" in finding.message


@pytest.mark.parametrize(("n", "percent"), [(50, 11), (80, 9), (100, 8)])
def test_half_widths_equal_the_wilson_formula(n: int, percent: int) -> None:
    z, p = 1.959963984540054, 0.8
    expected = z / (1 + z * z / n) * sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    half_width = SampleSize(n).half_width
    assert half_width == pytest.approx(expected, rel=1e-12)
    assert round(100 * half_width) == percent


@pytest.mark.parametrize("n", [50, 100])
def test_the_detectable_difference_is_detected_with_80_percent_power(n: int) -> None:
    """Simulate two systems with independent errors and this difference; compute a paired t test directly."""
    from scipy.stats import t

    difference = SampleSize(n).detectable.value
    rng = np.random.default_rng(1)
    better = rng.random((20_000, n)) < 0.8 + difference / 2
    worse = rng.random((20_000, n)) < 0.8 - difference / 2
    differences = better.astype(float) - worse
    statistic = differences.mean(axis=1) / (differences.std(axis=1, ddof=1) / sqrt(n))
    power = np.mean(statistic > t.ppf(0.975, n - 1))
    assert power == pytest.approx(0.8, abs=0.04)
