"""Whether retrieved chunks hold an answer, by the source's names; ``tasks.answers`` has the rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from equipoise.data.fixture import Question, questions
from equipoise.errors import InputError, ShapeError, UnknownNameError
from equipoise.tasks.answers.matcher import MATCHERS, Matcher, matcher
from equipoise.tasks.answers.source_rule import PASSED, SourceRule


@dataclass(frozen=True, slots=True)
class EvaluationScore:
    """The score of one question, and why; it is true where the question counts as answered."""

    score: float
    explanation: str
    retrieved_chunks: tuple[str, ...] = field(default=(), repr=False)
    qa_pair_id: str = ""

    def __bool__(self) -> bool:
        return self.score >= PASSED


class BinaryEvaluator:
    """Says whether the chunks that were retrieved hold the expected answer.

    ``matcher="words"`` looks for the answer inside one chunk, on the borders of words, and scores 1 or 0.
    ``matcher="source"`` is the source's own rule: the chunks are read as one text, borders do not count, and
    ``partial_match_threshold`` of the answer's words are enough, which then are the score. Unless they are
    given, ``fuzzy_word_match`` and ``normalize_currency`` are off for the one and on for the other.

    >>> evaluator = BinaryEvaluator()
    >>> evaluator.evaluate("What is the capital?", "Paris", ["Paris is its capital."]).score
    1.0
    >>> bool(evaluator.evaluate("How much?", "65%", ["It rose by 165%."]))
    False
    """

    def __init__(
        self,
        case_sensitive: bool = False,
        normalize_whitespace: bool = True,
        partial_match_threshold: float = 0.8,
        fuzzy_word_match: bool | None = None,
        normalize_currency: bool | None = None,
        *,
        matcher: str = "words",
    ) -> None:
        self.matcher = _rule(
            matcher,
            case_sensitive=case_sensitive,
            normalize_whitespace=normalize_whitespace,
            partial_match_threshold=partial_match_threshold,
            fuzzy_word_match=matcher == "source" if fuzzy_word_match is None else fuzzy_word_match,
            normalize_currency=matcher == "source" if normalize_currency is None else normalize_currency,
        )

    def evaluate(
        self, question: str, expected_answer: str, retrieved_chunks: Sequence[str]
    ) -> EvaluationScore:
        """The score of one question; only the answer and the chunks decide it."""
        chunks = _chunks(retrieved_chunks)
        if not isinstance(expected_answer, str) or not expected_answer.strip():
            raise InputError("the expected answer is empty or no text", hint="give the words that answer it")
        if not chunks:
            return EvaluationScore(0.0, "nothing was retrieved")
        if isinstance(self.matcher, SourceRule):
            score = self.matcher.score(expected_answer, chunks)
        else:
            score = 0.0 if self.matcher.first_hit(expected_answer, chunks) is None else 1.0
        return EvaluationScore(score, self._explained(score, expected_answer, chunks), chunks)

    def evaluate_batch(
        self,
        qa_pairs: Iterable[Mapping[str, Any] | Question],
        retrieved_chunks_list: Sequence[Sequence[str]],
    ) -> list[EvaluationScore]:
        """The scores of many questions, each with its own chunks."""
        asked = questions(qa_pairs)
        if len(asked) != len(retrieved_chunks_list):
            raise ShapeError(
                f"there are {len(asked)} questions and {len(retrieved_chunks_list)} lists of chunks",
                hint="give one list a question",
            )
        return [
            replace(self.evaluate(each.question, each.answer, chunks), qa_pair_id=each.id)
            for each, chunks in zip(asked, retrieved_chunks_list, strict=True)
        ]

    def _explained(self, score: float, answer: str, chunks: Sequence[str]) -> str:
        if score == 0.0:
            return f"none of the {len(chunks)} chunks holds the answer"
        if score < 1.0:
            return f"the chunks have {score:.0%} of the answer's words"
        return f"the answer is in the first {self.matcher.first_hit(answer, chunks)} of {len(chunks)} chunks"


def _rule(name: str, **source: Any) -> Matcher:
    """The rule of this name from the source's options."""
    if name not in MATCHERS:
        raise UnknownNameError.of("matcher", str(name), MATCHERS, more=f"known: {', '.join(MATCHERS)}")
    if name == "source":
        return matcher(name, **source)
    return matcher(
        name,
        fold_case=not source["case_sensitive"],
        collapse_spaces=source["normalize_whitespace"],
        threshold=source["partial_match_threshold"],
        fuzzy=source["fuzzy_word_match"],
        currency=source["normalize_currency"],
    )


def _chunks(chunks: Any) -> tuple[str, ...]:
    if isinstance(chunks, str) or not isinstance(chunks, Iterable):
        raise InputError(
            f"the retrieved chunks are a {type(chunks).__name__}, not a list", hint="give a list of texts"
        )
    texts = tuple(chunks)
    for place, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputError(f"retrieved chunk {place + 1} is a {type(text).__name__}, not a text")
    return texts
