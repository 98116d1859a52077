"""Questions that were asked before, against slow code that compares every pair."""

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


def asked(*pairs: tuple[str, str]) -> list[QuestionAnswer]:
    return [QuestionAnswer(f"q{number}", *pair) for number, pair in enumerate(pairs)]


def test_case_and_white_space_do_not_make_another_question() -> None:
    questions = asked(("Who was it?", "Ada"), ("who  was\nit?", "Ada"), ("WHO WAS IT?", "Bo"), ("Why?", "x"))
    assert [each.question for each in duplicate_questions(questions)] == ["who  was\nit?", "WHO WAS IT?"]
    assert near_duplicates(questions) == []


def test_one_word_more_with_the_same_answer_is_a_near_duplicate() -> None:
    (pair,) = near_duplicates(
        asked(
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


def test_a_template_with_other_contents_is_no_duplicate() -> None:
    questions = asked(
        ("What was the revenue in the fiscal year of 2021?", "4 million"),
        ("What was the revenue in the fiscal year of 2022?", "5 million"),
        ("What is the capital of France?", "Paris"),
        ("What is the capital of Spain?", "Madrid"),
    )
    assert near_duplicates(questions) == []


def test_the_same_question_with_different_answers_is_told() -> None:
    (pair,) = near_duplicates(
        asked(
            ("Who is the present owner of the old mill?", "Ada"),
            ("Who is the present owner of the old mills?", "Bo"),
        )
    )
    assert not pair.same_answer


def test_questions_of_punctuation_alone_are_compared_without_harm() -> None:
    assert near_duplicates(asked(("?", "a"), ("??", "a"))) == []


def jaccard(one: str, other: str) -> float:
    def groups(text: str) -> set[str]:
        line = " " + " ".join(re.findall(r"\w+", text.lower())) + " "
        return {line[place : place + 3] for place in range(len(line) - 2)}

    return len(groups(one) & groups(other)) / len(groups(one) | groups(other))


QUESTIONS = st.lists(
    st.lists(st.sampled_from(["when", "was", "the", "old", "mill", "sold", "7"]), min_size=3, max_size=7).map(" ".join),
    max_size=12,
    unique=True,
)


@given(QUESTIONS, st.lists(st.sampled_from(["Ada", "Bo"]), min_size=12, max_size=12))
def test_every_pair_is_compared(texts: list[str], answers: list[str]) -> None:
    questions = asked(*zip(texts, answers, strict=False))
    expected = {
        (one.question, other.question)
        for place, one in enumerate(questions)
        for other in questions[place + 1 :]
        if (one.answer == other.answer and jaccard(one.question, other.question) >= NEAR_DUPLICATE_SIMILARITY)
        or (
            jaccard(one.question, other.question) >= SAME_ANSWER_SIMILARITY
            and one.question.count("7") == other.question.count("7")
        )
    }
    found = near_duplicates(questions)
    assert {(pair.first, pair.second) for pair in found} == expected
    for pair in found:
        assert abs(pair.similarity - jaccard(pair.first, pair.second)) < 1e-12
