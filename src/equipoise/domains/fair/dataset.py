"""The dataset of a fair comparison: documents, questions, near-duplicate answers, unanswerable questions."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from equipoise.domains.fair.answer_matching import AnswerMatcher, normalize_answer
from equipoise.domains.fair.chunk_index import AnswerLocations, ChunkingParams, IndexedChunks
from equipoise.domains.fair.questions import QuestionAnswer, check_questions
from equipoise.domains.fair.validation import NEAR_DUPLICATE_SIMILARITY, similar_pairs
from equipoise.errors import InputError
from equipoise.io.columns import is_frame, table_of
from equipoise.io.documents import TextDocument

# Questions with near-duplicate answers form one group. A group is never split over two folds.

MIN_WORD_OVERLAP = 0.5
"""Minimum share of words for a part of an answer to be its near-duplicate. A year is not a near-duplicate of a date."""

_WORDS = re.compile(r"\w+")
_NUMBER = re.compile(r"\d+")

Words = tuple[str, ...]


def answer_groups(answers: Sequence[Sequence[str]]) -> list[int]:
    """A group number for each question: the connected components of the near-duplicate relation of its answers.

    Near-duplicates have the same words, or one is a large contiguous part of the other, or they share most of
    their character trigrams and all of their numbers.

    >>> answer_groups([["Weber"], ["in May 1871"], ["miller", "Jonas Weber"], ["1871"], ["weber"]])
    [0, 1, 0, 2, 0]
    """
    owners = [index for index, accepted in enumerate(answers) for _ in accepted]
    group = list(range(len(answers)))

    def root(index: int) -> int:
        while group[index] != index:
            group[index] = index = group[group[index]]
        return index

    for one, other in _pairs([answer for accepted in answers for answer in accepted]):
        first, second = sorted((root(owners[one]), root(owners[other])))
        group[second] = first
    number: dict[int, int] = {}
    return [number.setdefault(root(index), len(number)) for index in range(len(answers))]


def _pairs(answers: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Index pairs of near-duplicate answers; enough pairs to connect every group."""
    plain = [normalize_answer(answer) for answer in answers]
    words = [tuple(_WORDS.findall(text)) or (text,) for text in plain]
    first_of: dict[Words, int] = {}
    for index, answer_words in enumerate(words):
        yield first_of.setdefault(answer_words, index), index
    lengths = sorted(set(map(len, first_of)))
    for index, answer_words in enumerate(words):
        yield from ((first_of[part], index) for part in _large_parts(answer_words, lengths) if part in first_of)
    numbers = [_NUMBER.findall(text) for text in plain]
    for one, other, _ in similar_pairs(plain, NEAR_DUPLICATE_SIMILARITY):
        if numbers[one] == numbers[other]:
            yield one, other


def _large_parts(words: Words, lengths: Sequence[int]) -> Iterator[Words]:
    """All contiguous spans with at least ``MIN_WORD_OVERLAP`` of the words, for the given lengths."""
    for length in lengths:
        if MIN_WORD_OVERLAP * len(words) <= length < len(words):
            for start in range(len(words) - length + 1):
                yield words[start : start + length]


_IDENTITY_LENGTH = 16


@dataclass(frozen=True)
class QADataset:
    """Documents and questions; ``unanswerable`` are the questions whose answer is in no document."""

    documents: tuple[TextDocument, ...]
    questions: tuple[QuestionAnswer, ...]
    unanswerable: tuple[QuestionAnswer, ...] = ()
    n_skipped: int = 0

    @property
    def texts(self) -> list[str]:
        """The texts of the questions."""
        return [question.question for question in self.questions]

    @property
    def ids(self) -> list[str]:
        """The question ids, which are the units."""
        return [question.id for question in self.questions]

    @cached_property
    def groups(self) -> list[int]:
        """The group of each question: equal for questions with near-duplicate answers."""
        return answer_groups([question.answers for question in self.questions])

    @cached_property
    def fingerprints(self) -> dict[str, str]:
        """The SHA-256 of the documents, in order, and of the questions."""
        documents = [part for document in self.documents for part in (document.name, document.text)]
        questions = [
            part
            for item in self.questions
            for part in (item.id, item.question, *_accepted(item), item.category, item.difficulty, *_mark(item))
        ]
        return {"document": _digest(documents), "questions": _digest(questions)}

    @cached_property
    def identity(self) -> dict[str, str]:
        """Short digests of the texts alone: file names and categories do not change the units."""
        questions = [part for item in self.questions for part in (item.id, item.question, *_accepted(item))]
        digests = {"document": _digest([document.text for document in self.documents]), "questions": _digest(questions)}
        return {part: digest[:_IDENTITY_LENGTH] for part, digest in digests.items()}


def qa_dataset(doc_content: Any, qa_pairs: Any) -> QADataset:
    """The dataset from documents and questions, after checking both.

    >>> qa_dataset("Rye and wheat.", [{"question": "What?", "answer": "rye"}]).ids
    ['q1']
    """
    return QADataset(documents_from(doc_content), check_questions(qa_pairs))


def documents_from(content: Any) -> tuple[TextDocument, ...]:
    """Documents from a text, a table, a list of texts or documents, without empty ones."""
    if is_frame(content):
        table = table_of(content)
        content = table.texts(table.column("text"))
    contents = [content] if isinstance(content, str | TextDocument) else content
    if not isinstance(contents, Sequence) or isinstance(contents, bytes):
        raise InputError(
            f"the document is a {type(content).__name__}, not a text",
            hint="pass a str or a list of str",
        )
    documents = []
    for number, document in enumerate(contents, start=1):
        if not isinstance(document, str | TextDocument):
            raise InputError(
                f"document {number} is a {type(document).__name__}, not a text",
                hint="pass a str, or read it with equipoise.io.documents.read_document",
            )
        documents.append(
            document if isinstance(document, TextDocument) else TextDocument(f"document {number}", document)
        )
    if not any(document.text.strip() for document in documents):
        raise InputError("the document is empty", hint="a scanned PDF contains no text: run OCR first")
    return tuple(document for document in documents if document.text.strip())


def _mark(question: QuestionAnswer) -> tuple[str, ...]:
    return ("draft",) if question.draft else ()


def _accepted(question: QuestionAnswer) -> tuple[str, ...]:
    """What counts as a hit: the answers, and the passages that they must be in."""
    return (*question.answers, *(f"\0{passage}" for passage in question.passages))


def _digest(parts: Sequence[str]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()


# Unanswerable questions: raise an error, count them as misses, or skip them.

N_SHOWN = 5
_UNANSWERABLE_HINT = (
    "count them as misses (--unanswerable zero), skip them (--unanswerable skip), "
    "or run eq fair validate --doc, which shows the nearest passages"
)

IndexedChunkings = dict[ChunkingParams, IndexedChunks]


def apply_unanswerable_policy(
    dataset: QADataset, indexed_chunks: IndexedChunkings, matcher: AnswerMatcher, policy: str
) -> tuple[QADataset, IndexedChunkings]:
    """The dataset with its unanswerable questions marked, or removed with the policy ``skip``.

    Only answers that are in no chunk are searched in the documents.
    """
    unanswerable = unanswerable_questions(dataset, indexed_chunks, matcher)
    if not unanswerable or policy == "zero":
        return replace(dataset, unanswerable=unanswerable), indexed_chunks
    if policy == "refuse":
        raise _unanswerable_error(unanswerable, len(dataset.questions))
    skipped_ids = {question.id for question in unanswerable}
    indices = [index for index, question in enumerate(dataset.questions) if question.id not in skipped_ids]
    if not indices:
        raise InputError(
            f"none of the {len(dataset.questions)} answers is in the document, so no question is left",
            hint="check that the question set belongs to this document: eq fair validate --qa ... --doc ...",
        )
    questions = tuple(dataset.questions[index] for index in indices)
    remaining = {chunking: _select_questions(indexed, indices) for chunking, indexed in indexed_chunks.items()}
    return replace(dataset, questions=questions, unanswerable=unanswerable, n_skipped=len(unanswerable)), remaining


def unanswerable_questions(
    dataset: QADataset, indexed_chunks: Mapping[ChunkingParams, IndexedChunks], matcher: AnswerMatcher
) -> tuple[QuestionAnswer, ...]:
    """The questions whose answers are in no chunk and in no document."""
    unlocated = [
        question
        for index, question in enumerate(dataset.questions)
        if not any(len(indexed.locations.holders[index]) for indexed in indexed_chunks.values())
    ]
    texts = [document.text for document in dataset.documents]
    index = matcher.build_index(texts) if unlocated else None
    return tuple(
        question
        for question in unlocated
        if index is not None and not any(len(index.holders(answer)) for answer in question.answers)
    )


def _select_questions(indexed: IndexedChunks, indices: Sequence[int]) -> IndexedChunks:
    locations = indexed.locations
    return IndexedChunks(
        indexed.chunked,
        AnswerLocations(locations.joins, locations.index, tuple(locations.holders[at] for at in indices)),
    )


def _unanswerable_error(unanswerable: Sequence[QuestionAnswer], total: int) -> InputError:
    examples = "\n".join(f"{question.id}: {question.answer_text}" for question in unanswerable[:N_SHOWN])
    more = f"\nand {len(unanswerable) - N_SHOWN} more" if len(unanswerable) > N_SHOWN else ""
    return InputError(
        f"{len(unanswerable)} of {total} answers are not in the document",
        hint=_UNANSWERABLE_HINT,
        excerpt=f"{examples}{more}",
    )
