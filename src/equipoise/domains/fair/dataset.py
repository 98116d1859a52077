"""What is asked of what: the documents and the questions, checked before any work begins."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from equipoise.domains.fair.answer_evidence import AnswerLocations
from equipoise.domains.fair.answer_matching import AnswerMatcher, normalize_answer
from equipoise.domains.fair.chunk_index import ChunkingParams, IndexedChunks
from equipoise.domains.fair.questions import QuestionAnswer, check_questions
from equipoise.domains.fair.validation import NEAR_DUPLICATE_SIMILARITY, similar_pairs
from equipoise.errors import InputError
from equipoise.io.documents import TextDocument

# Questions whose answers are nearly one: what one of them shows, the other must not know.

MIN_WORD_OVERLAP = 0.5
"""An answer within another is nearly the same from this share of its words on: a year is not a whole date."""

_WORDS = re.compile(r"\w+")
_NUMBER = re.compile(r"\d+")

Words = tuple[str, ...]


def answer_groups(answers: Sequence[str]) -> list[int]:
    """A number for each answer, the same for answers that are nearly one, directly or through others.

    Nearly one are answers of the same words, those of which one is a large part of the other, word for word
    and in order, and those that share most of their letters and all of their numbers.

    >>> answer_groups(["Weber", "in May 1871", "Jonas Weber", "1871", "weber"])
    [0, 1, 0, 2, 0]
    """
    group = list(range(len(answers)))

    def root(place: int) -> int:
        while group[place] != place:
            group[place] = place = group[group[place]]
        return place

    for one, other in _pairs(answers):
        first, second = sorted((root(one), root(other)))
        group[second] = first
    number: dict[int, int] = {}
    return [number.setdefault(root(place), len(number)) for place in range(len(answers))]


def _pairs(answers: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Places of answers that belong together; enough of them to connect all that do."""
    plain = [normalize_answer(answer) for answer in answers]
    words = [tuple(_WORDS.findall(text)) or (text,) for text in plain]
    first_of: dict[Words, int] = {}
    for place, own in enumerate(words):
        yield first_of.setdefault(own, place), place
    lengths = sorted(set(map(len, first_of)))
    for place, own in enumerate(words):
        yield from ((first_of[part], place) for part in _large_parts(own, lengths) if part in first_of)
    numbers = [_NUMBER.findall(text) for text in plain]
    for one, other, _ in similar_pairs(plain, NEAR_DUPLICATE_SIMILARITY):
        if numbers[one] == numbers[other]:
            yield one, other


def _large_parts(words: Words, lengths: Sequence[int]) -> Iterator[Words]:
    """All stretches of the words that are a large part of them, of the lengths that answers have."""
    for length in lengths:
        if MIN_WORD_OVERLAP * len(words) <= length < len(words):
            for start in range(len(words) - length + 1):
                yield words[start : start + length]


_SHORT = 16


@dataclass(frozen=True)
class QADataset:
    """Documents and questions; ``absent`` holds the questions whose answers no document holds."""

    documents: tuple[TextDocument, ...]
    questions: tuple[QuestionAnswer, ...]
    absent: tuple[QuestionAnswer, ...] = ()
    skipped: int = 0

    @property
    def texts(self) -> list[str]:
        """The questions as they are asked."""
        return [question.question for question in self.questions]

    @property
    def ids(self) -> list[str]:
        """The units."""
        return [question.id for question in self.questions]

    @cached_property
    def groups(self) -> list[int]:
        """The questions of one answer, or nearly one, belong together: they have the same number."""
        return answer_groups([question.answer for question in self.questions])

    @cached_property
    def fingerprints(self) -> dict[str, str]:
        """The SHA-256 of the documents, in order, and of the questions."""
        documents = [part for each in self.documents for part in (each.name, each.text)]
        asked = [
            part
            for each in self.questions
            for part in (each.id, each.question, each.answer, each.category, each.difficulty)
        ]
        return {"document": _digest(documents), "questions": _digest(asked)}

    @cached_property
    def identity(self) -> dict[str, str]:
        """The same of what is read and asked alone: file names and kinds of questions do not change units."""
        asked = [part for each in self.questions for part in (each.id, each.question, each.answer)]
        digests = {"document": _digest([each.text for each in self.documents]), "questions": _digest(asked)}
        return {part: digest[:_SHORT] for part, digest in digests.items()}


def qa_dataset(doc_content: Any, qa_pairs: Any) -> QADataset:
    """The documents and questions, when something can be asked of them.

    >>> qa_dataset("Rye and wheat.", [{"question": "What?", "answer": "rye"}]).ids
    ['q1']
    """
    return QADataset(_documents(doc_content), check_questions(qa_pairs))


def _documents(content: Any) -> tuple[TextDocument, ...]:
    given = [content] if isinstance(content, str | TextDocument) else content
    if not isinstance(given, Sequence) or isinstance(given, bytes):
        raise InputError(
            f"the document is a {type(content).__name__}, and not a text",
            hint="give a str, or a list of them",
        )
    found = []
    for place, each in enumerate(given, start=1):
        if not isinstance(each, str | TextDocument):
            raise InputError(
                f"document {place} is a {type(each).__name__}, and not a text",
                hint="give a str, or read it with equipoise.io.documents.read_document",
            )
        found.append(each if isinstance(each, TextDocument) else TextDocument(f"document {place}", each))
    if not any(document.text.strip() for document in found):
        raise InputError("the document is empty", hint="a scanned PDF has no text of its own: run it through OCR first")
    return tuple(document for document in found if document.text.strip())


def _digest(parts: Sequence[str]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()


# Questions whose answers no document holds: refused, counted as misses, or left out.

SHOWN = 5
HINT = (
    "count them as misses (--absent zero), leave them out (--absent skip), "
    "or see eq fair validate --doc, which shows the nearest passages"
)

Shelves = dict[ChunkingParams, IndexedChunks]


def apply_unanswerable_policy(
    material: QADataset, shelved: Shelves, matcher: AnswerMatcher, absent: str
) -> tuple[QADataset, Shelves]:
    """The material with its absent answers noted, and without their questions where they are skipped.

    An answer that a chunk holds is there; only the others are looked for in the documents.
    """
    lacking = unanswerable_questions(material, shelved, matcher)
    if not lacking or absent == "zero":
        return replace(material, absent=lacking), shelved
    if absent == "refuse":
        raise _refusal(lacking, len(material.questions))
    gone = {question.id for question in lacking}
    kept = [place for place, question in enumerate(material.questions) if question.id not in gone]
    if not kept:
        raise InputError(
            f"no document holds any of the {len(material.questions)} answers, so no question is left",
            hint="see whether the fixture belongs to this document: eq fair validate --qa ... --doc ...",
        )
    questions = tuple(material.questions[place] for place in kept)
    fewer = {chunking: _without(shelf, kept) for chunking, shelf in shelved.items()}
    return replace(material, questions=questions, absent=lacking, skipped=len(lacking)), fewer


def unanswerable_questions(
    material: QADataset, shelved: Mapping[ChunkingParams, IndexedChunks], matcher: AnswerMatcher
) -> tuple[QuestionAnswer, ...]:
    """The questions whose answers stand in no chunk and in no document."""
    unheld = [
        question
        for place, question in enumerate(material.questions)
        if not any(len(shelf.held.holders[place]) for shelf in shelved.values())
    ]
    texts = [document.text for document in material.documents]
    holders = matcher.holders([question.answer for question in unheld], texts) if unheld else []
    return tuple(question for question, where in zip(unheld, holders, strict=True) if not len(where))


def _without(shelf: IndexedChunks, kept: Sequence[int]) -> IndexedChunks:
    held = shelf.held
    return IndexedChunks(shelf.cut, AnswerLocations(held.joins, held.shelf, tuple(held.holders[at] for at in kept)))


def _refusal(lacking: Sequence[QuestionAnswer], total: int) -> InputError:
    shown = "\n".join(f"{each.id}: {each.answer}" for each in lacking[:SHOWN])
    more = f"\nand {len(lacking) - SHOWN} more" if len(lacking) > SHOWN else ""
    return InputError(
        f"{len(lacking)} of {total} answers are nowhere in the document",
        hint=HINT,
        excerpt=f"{shown}{more}",
    )
