"""The document about keeping time and its questions are what they are said to be."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from equipoise.domains.fair.questions import CATEGORIES, DIFFICULTIES, QuestionAnswer, timekeeping
from equipoise.domains.fair.validation import validate_fixture

Sample = tuple[str, tuple[QuestionAnswer, ...]]


@pytest.fixture(scope="module", name="sample")
def sample_of_the_package() -> Sample:
    return timekeeping()


def test_the_document_has_the_length_and_the_sections_of_a_short_book(sample: Sample) -> None:
    document, _ = sample
    assert 8_000 <= len(document.split()) <= 9_000
    headings = re.findall(r"^(#+) (.+)$", document, flags=re.MULTILINE)
    assert Counter(len(marks) for marks, _ in headings) == {1: 1, 2: 8, 3: 30}
    assert len({title for _, title in headings}) == len(headings)


def test_all_categories_and_difficulties_have_their_share(sample: Sample) -> None:
    _, questions = sample
    n = len(questions)
    assert 110 <= n <= 130
    categories = Counter(question.category for question in questions)
    difficulties = Counter(question.difficulty for question in questions)
    assert categories.keys() == set(CATEGORIES)
    assert difficulties.keys() == set(DIFFICULTIES)
    assert min(categories.values()) >= 20
    assert categories["multi_hop"] / n >= 0.2
    assert difficulties["hard"] / n >= 0.4
    assert difficulties["easy"] / n >= 0.1


def test_every_answer_stands_in_the_document_as_it_is_written(sample: Sample) -> None:
    document, questions = sample
    text = " ".join(document.split()).casefold()
    for question in questions:
        places = re.findall(rf"(?<!\w){re.escape(question.answer.casefold())}(?!\w)", text)
        assert len(places) == 1, question


def test_no_answer_is_given_away_and_few_are_long(sample: Sample) -> None:
    _, questions = sample
    assert not [question for question in questions if question.answer.casefold() in question.question.casefold()]
    lengths = [len(question.answer.split()) for question in questions]
    assert sum(length <= 8 for length in lengths) >= 0.9 * len(lengths)


def test_no_question_or_answer_is_there_twice(sample: Sample) -> None:
    _, questions = sample
    assert len({question.question.casefold() for question in questions}) == len(questions)
    assert len({question.answer.casefold() for question in questions}) == len(questions)


def test_our_own_validation_has_nothing_to_say_against_it(sample: Sample) -> None:
    document, questions = sample
    result = validate_fixture(questions, document, tokenizer="words")
    assert result.is_valid
    assert result.answers_found == len(questions)
    assert (result.answer_issues, result.duplicate_questions, result.near_duplicates) == ((), (), ())
    assert result.findings == ()
