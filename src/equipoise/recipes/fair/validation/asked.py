"""Questions that should not have been asked so: those asked before, and those that hold their answer."""

from __future__ import annotations

from collections.abc import Sequence

from equipoise.checks.fixture import AskedQuestions
from equipoise.data.fixture import Question
from equipoise.recipes.fair.validation.answers import one_line
from equipoise.recipes.fair.validation.duplicates import repeated_questions
from equipoise.tasks.answers.matcher import Matcher

_WIDTH = 60


def asked_questions(questions: Sequence[Question], matcher: Matcher) -> AskedQuestions:
    """What checks look at; the same for who validates a fixture and for who compares on it.

    >>> from equipoise.tasks.answers.matcher import matcher
    >>> asked_questions([Question("q1", "Was it in 1871?", "1871")], matcher("words")).leaking
    ['q1 "Was it in 1871?"']
    """
    return AskedQuestions(
        len(questions),
        [_named(each) for each in repeated_questions(questions)],
        [_named(each) for each in questions if matcher.holds(each.answer, each.question)],
    )


def _named(question: Question) -> str:
    text = one_line(question.question)
    return f'{question.id} "{text if len(text) <= _WIDTH else text[:_WIDTH] + "..."}"'
