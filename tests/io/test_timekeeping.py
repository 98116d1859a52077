"""The sample document about timekeeping and its questions."""

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


def test_the_document_has_its_length_and_sections(sample: Sample) -> None:
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


def test_every_answer_occurs_once_in_the_document(sample: Sample) -> None:
    document, questions = sample
    text = " ".join(document.split()).casefold()
    for question in questions:
        matches = re.findall(rf"(?<!\w){re.escape(question.answer.casefold())}(?!\w)", text)
        assert len(matches) == 1, question


def test_answers_are_not_in_their_questions_and_mostly_short(sample: Sample) -> None:
    _, questions = sample
    assert not [question for question in questions if question.answer.casefold() in question.question.casefold()]
    lengths = [len(question.answer.split()) for question in questions]
    assert sum(length <= 8 for length in lengths) >= 0.9 * len(lengths)


def test_questions_and_answers_are_unique(sample: Sample) -> None:
    _, questions = sample
    assert len({question.question.casefold() for question in questions}) == len(questions)
    assert len({question.answer.casefold() for question in questions}) == len(questions)


def test_validation_finds_no_issues(sample: Sample) -> None:
    document, questions = sample
    result = validate_fixture(questions, document, tokenizer="words")
    assert result.is_valid
    assert result.answers_found == len(questions)
    assert (result.answer_issues, result.duplicate_questions, result.near_duplicates) == ((), (), ())
    assert result.findings == ()
