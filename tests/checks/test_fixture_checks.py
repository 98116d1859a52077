"""Checks of a fixture complain of what deserves it and are silent on what does not."""

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


def found(thing: object) -> list[Finding]:
    return [finding for check in CHECKS for finding in check.findings(thing)]


def answers(*rows: tuple[int, int]) -> AnswersInDocument:
    """Answers at so many places, in so many of 40 chunks."""
    return AnswersInDocument(
        [AnswerOccurrences(f"q{number}", f"answer {number}", *row) for number, row in enumerate(rows, start=1)],
        40,
    )


def test_answers_that_stand_once_raise_nothing() -> None:
    assert found(answers((1, 1), (1, 2), (1, 1))) == []


def test_an_absent_answer_is_named() -> None:
    (finding,) = found(answers((1, 1), (0, 0)))
    assert (finding.code, finding.severity) == ("EQ102", Severity.ISSUE)
    assert finding.message == '1 of 2 answers is not in the document, and no system can find it: q2 "answer 2"'
    assert finding.evidence == ('q2 "answer 2"',)


def test_an_answer_that_borders_cut_gets_another_hint_than_an_absent_one() -> None:
    absent, cut = found(answers((0, 0), (1, 0), (1, 1)))
    assert (absent.code, cut.code) == ("EQ102", "EQ102")
    assert "1 of 3 answers is split between chunks" in cut.message
    assert "overlap" in cut.hint
    assert "overlap" not in absent.hint


def test_of_several_chunkings_the_one_that_cuts_most_is_told_with_what_it_can_score() -> None:
    lost = [AnswerOccurrences(f"q{number}", "x", 1, 0) for number in range(4)]
    (finding,) = found(
        SplitAnswers({"size 8, overlap 0": lost, "size 60, overlap 0": lost[:1], "size 60, overlap 20": []}, 10)
    )
    assert finding.code == "EQ102"
    assert "4 of 10 answers are split between chunks with chunk size 8, overlap 0" in finding.message
    assert "so at most 60 % can be found" in finding.message
    assert finding.message.endswith("1 of 2 other chunkings splits answers too")
    assert finding.evidence[:2] == (
        "size 8, overlap 0: 4 answers split, maximum score 60 %",
        "size 60, overlap 0: 1 answer split, maximum score 90 %",
    )
    assert found(SplitAnswers({"size 60, overlap 20": [], "size 60, overlap 30": []}, 10)) == []


def test_questions_asked_before_and_questions_with_their_answer_are_named() -> None:
    repeated, leaking = found(QuestionSet(9, ['q3 "Who?"', 'q4 "Who?"'], ['q7 "In 1871?"']))
    assert (repeated.code, repeated.severity) == ("EQ111", Severity.ISSUE)
    assert repeated.message == '2 of 9 questions are duplicates: q3 "Who?", q4 "Who?"'
    assert (leaking.code, leaking.severity) == ("EQ112", Severity.TIP)
    assert leaking.message == '1 of 9 questions contains its answer: q7 "In 1871?"'
    assert found(QuestionSet(9)) == []


def test_answers_at_several_places_are_listed_with_the_most_frequent_first() -> None:
    (finding,) = found(answers((2, 2), (1, 1), (14, 9)))
    assert (finding.code, finding.severity) == ("EQ103", Severity.TIP)
    assert "2 of 3 answers occur more than once" in finding.message
    assert 'q3 "answer 3" 14 times, in 9 of 40 chunks' in finding.message
    assert finding.evidence == ('q3 "answer 3": 14 occurrences, 9 chunks', 'q1 "answer 1": 2 occurrences, 2 chunks')


def test_a_place_in_the_overlap_of_two_chunks_is_not_ambiguous() -> None:
    assert found(answers((1, 2))) == []


def test_a_long_answer_is_cut_in_the_finding() -> None:
    subject = AnswersInDocument([AnswerOccurrences("q1", "word " * 50, 0, 0)], 1)
    assert len(found(subject)[0].evidence[0]) < 60


@pytest.mark.parametrize(("questions", "raised"), [(49, ["EQ105"]), (50, []), (500, [])])
def test_fewer_questions_than_the_minimum_are_too_few(questions: int, raised: list[str]) -> None:
    assert [finding.code for finding in found(SampleSize(questions))] == raised


def test_the_minimum_is_the_one_that_was_given() -> None:
    assert found(SampleSize(20, minimum=20)) == []
    assert "only 20 questions (the minimum is 30):" in found(SampleSize(20, minimum=30))[0].message


def test_two_questions_show_nothing() -> None:
    assert "no difference between systems could be detected" in found(SampleSize(2))[0].message


@pytest.mark.parametrize(("chunks", "top_k", "raised"), [(21, 10, []), (20, 10, ["EQ108"]), (1, 10, ["EQ108"])])
def test_half_of_the_chunks_is_most_of_the_document(chunks: int, top_k: int, raised: list[str]) -> None:
    assert [finding.code for finding in found(RetrievedFraction(chunks, top_k))] == raised


def test_a_document_of_one_chunk_is_returned_whole() -> None:
    (finding,) = found(RetrievedFraction(1, 10))
    assert "returns 1 of 1 chunk:" in finding.message
    assert "probability 1.00" in finding.message


@pytest.mark.parametrize(("n", "rounded"), [(50, 11), (80, 9), (100, 8)])
def test_half_widths_are_those_of_wilson_by_hand(n: int, rounded: int) -> None:
    z, p = 1.959963984540054, 0.8
    by_hand = z / (1 + z * z / n) * sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    half_width = SampleSize(n).half_width
    assert half_width == pytest.approx(by_hand, rel=1e-12)
    assert round(100 * half_width) == rounded


@pytest.mark.parametrize("n", [50, 100])
def test_the_detectable_difference_is_detected_four_times_in_five(n: int) -> None:
    """Two systems that err independently and differ by that much, drawn many times; a paired t by hand."""
    from scipy.stats import t

    difference = SampleSize(n).detectable.value
    rng = np.random.default_rng(1)
    better = rng.random((20_000, n)) < 0.8 + difference / 2
    worse = rng.random((20_000, n)) < 0.8 - difference / 2
    seen = better.astype(float) - worse
    statistic = seen.mean(axis=1) / (seen.std(axis=1, ddof=1) / sqrt(n))
    power = np.mean(statistic > t.ppf(0.975, n - 1))
    assert power == pytest.approx(0.8, abs=0.04)
