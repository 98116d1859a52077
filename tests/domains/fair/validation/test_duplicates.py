"""Duplicate questions, compared with plain code over all pairs."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from equipoise.domains.fair.questions import QuestionAnswer
from equipoise.domains.fair.validation import (
    NEAR_DUPLICATE_SIMILARITY,
    SAME_ANSWER_SIMILARITY,
    duplicate_questions,
    near_duplicates,
)


def question_answers(*pairs: tuple[str, str]) -> list[QuestionAnswer]:
    return [QuestionAnswer(f"q{index}", *pair) for index, pair in enumerate(pairs)]


def test_case_and_white_space_do_not_distinguish_questions() -> None:
    questions = question_answers(("Who was it?", "Ada"), ("who  was\nit?", "Ada"), ("WHO WAS IT?", "Bo"), ("Why?", "x"))
    assert [question.question for question in duplicate_questions(questions)] == ["who  was\nit?", "WHO WAS IT?"]
    assert near_duplicates(questions) == []


def test_an_additional_word_with_the_same_answer_is_a_near_duplicate() -> None:
    (pair,) = near_duplicates(
        question_answers(
            ("When was the company founded?", "1995"),
            ("When was the company first founded?", "1995"),
            ("Who leads the company?", "Ada"),
        )
    )
    assert (pair.first, pair.second) == (
        "When was the company founded?",
        "When was the company first founded?",
    )
    assert pair.same_answer
    assert NEAR_DUPLICATE_SIMILARITY <= pair.similarity < 1


def test_a_template_with_different_contents_is_not_a_duplicate() -> None:
    questions = question_answers(
        ("What was the revenue in the fiscal year of 2021?", "4 million"),
        ("What was the revenue in the fiscal year of 2022?", "5 million"),
        ("What is the capital of France?", "Paris"),
        ("What is the capital of Spain?", "Madrid"),
    )
    assert near_duplicates(questions) == []


def test_near_duplicates_with_different_answers_are_marked() -> None:
    (pair,) = near_duplicates(
        question_answers(
            ("Who is the present owner of the old mill?", "Ada"),
            ("Who is the present owner of the old mills?", "Bo"),
        )
    )
    assert not pair.same_answer


def test_questions_of_punctuation_only_are_not_near_duplicates() -> None:
    assert near_duplicates(question_answers(("?", "a"), ("??", "a"))) == []


def jaccard(first: str, second: str) -> float:
    def trigrams(text: str) -> set[str]:
        line = " " + " ".join(re.findall(r"\w+", text.lower())) + " "
        return {line[start : start + 3] for start in range(len(line) - 2)}

    return len(trigrams(first) & trigrams(second)) / len(trigrams(first) | trigrams(second))


QUESTIONS = st.lists(
    st.lists(st.sampled_from(["when", "was", "the", "old", "mill", "sold", "7"]), min_size=3, max_size=7).map(" ".join),
    max_size=12,
    unique=True,
)


@given(QUESTIONS, st.lists(st.sampled_from(["Ada", "Bo"]), min_size=12, max_size=12))
def test_near_duplicates_equal_a_comparison_of_all_pairs(texts: list[str], answers: list[str]) -> None:
    questions = question_answers(*zip(texts, answers, strict=False))
    expected = {
        (first.question, second.question)
        for index, first in enumerate(questions)
        for second in questions[index + 1 :]
        if (first.answer == second.answer and jaccard(first.question, second.question) >= NEAR_DUPLICATE_SIMILARITY)
        or (
            jaccard(first.question, second.question) >= SAME_ANSWER_SIMILARITY
            and first.question.count("7") == second.question.count("7")
        )
    }
    duplicates = near_duplicates(questions)
    assert {(pair.first, pair.second) for pair in duplicates} == expected
    for pair in duplicates:
        assert abs(pair.similarity - jaccard(pair.first, pair.second)) < 1e-12
