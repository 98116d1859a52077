"""The shared context of all models of a comparison, and the findings about it: questions, document and grid.

Chunking the documents and locating the answers takes longer than loading finished results, which need neither. So
both happen when they are used.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from equipoise.checks.base import pluralize, run_checks
from equipoise.domains.fair.answer_matching import AnswerMatcher, normalize_answer
from equipoise.domains.fair.answer_verification import count_answers
from equipoise.domains.fair.checks import (
    AnswerOccurrences,
    AnswersInDocument,
    RetrievedFraction,
    SampleSize,
    SplitAnswers,
    chunking_sizes,
)
from equipoise.domains.fair.chunk_index import AnswerLocations, ChunkingParams, IndexedChunks, index_chunks
from equipoise.domains.fair.config import fitted_settings
from equipoise.domains.fair.grid_search import SplitCounts, answer_splits, split_counts
from equipoise.domains.fair.questions import QuestionAnswer, check_questions
from equipoise.domains.fair.validation import NEAR_DUPLICATE_SIMILARITY, question_check_subject, similar_pairs
from equipoise.errors import InputError, ParameterError
from equipoise.io.columns import is_frame, table_of
from equipoise.io.documents import TextDocument
from equipoise.models.tokenizers import WordTokenizer, tokenizer_for
from equipoise.stats.paired_tests import get_test
from equipoise.types import install_command

if TYPE_CHECKING:
    from equipoise.domains.fair.config import FairConfig
    from equipoise.io.splits import Fold
    from equipoise.tuning.grid import TuningRecord
    from equipoise.types import Finding, Ints


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
    question_file: str = "questions"
    """The name of the questions in a report."""

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
        """The SHA-256 of the documents, in order, and of the questions, by the names of their files."""
        documents = [part for document in self.documents for part in (document.name, document.text)]
        mark = {True: ("draft",), False: ()}
        questions = [
            part
            for item in self.questions
            for part in (item.id, item.question, *_accepted(item), item.category, item.difficulty, *mark[item.draft])
        ]
        name = self.documents[0].name if len(self.documents) == 1 else f"{len(self.documents)} documents"
        return {name: _digest(documents), self.question_file: _digest(questions)}

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
    "correct them (eq fair validate shows the closest passages), count them as misses (--unanswerable zero), "
    "or skip them (--unanswerable skip)"
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
        f"{len(unanswerable)} of {total} answers {'is' if len(unanswerable) == 1 else 'are'} not in the document",
        hint=_UNANSWERABLE_HINT,
        excerpt=f"{examples}{more}",
    )


class PreparedInputs(NamedTuple):
    """The configuration fitted to the document, the answerable questions, the chunks with answers, and notes."""

    settings: FairConfig
    dataset: QADataset
    indexed_chunks: dict[ChunkingParams, IndexedChunks]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Plan:
    """The shared context of all models: the requested configuration and all questions, and what follows from them."""

    requested: FairConfig
    full_dataset: QADataset = field(repr=False)
    matcher: AnswerMatcher

    @cached_property
    def prepared(self) -> PreparedInputs:
        """Chunk the documents, locate the answers, and check both."""
        return prepare_inputs(self.full_dataset, self.requested, self.matcher)

    @property
    def is_prepared(self) -> bool:
        """Whether the documents are chunked and the answers located."""
        return "prepared" in self.__dict__

    @property
    def n_chunkings(self) -> int:
        """The number of chunkings; before the inputs are prepared, of the requested grid."""
        return len(self.indexed_chunks if self.is_prepared else self.requested.chunkings)

    @property
    def settings(self) -> FairConfig:
        """The configuration, with defaults fitted to the document."""
        return self.prepared.settings

    @property
    def dataset(self) -> QADataset:
        """The documents and the questions that are scored."""
        return self.prepared.dataset

    @property
    def indexed_chunks(self) -> dict[ChunkingParams, IndexedChunks]:
        """The chunks of every chunking, and which answers they contain."""
        return self.prepared.indexed_chunks

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on the setup."""
        return self.prepared.notes

    @cached_property
    def splits(self) -> list[list[Fold]]:
        """The splits into folds, the same for all models."""
        return answer_splits(self.dataset, self.settings)

    @cached_property
    def split_counts(self) -> SplitCounts:
        """The number of splits and of folds; one fold without nested cross-validation."""
        return split_counts(self.dataset, self.settings)

    @cached_property
    def answer_counts(self) -> tuple[int, ...]:
        """The number of occurrences of each answer in the documents."""
        texts = [normalize_answer(document.text) for document in self.dataset.documents]
        unanswerable = {question.id for question in self.dataset.unanswerable}
        return tuple(
            0 if question.id in unanswerable else max(count_answers(question, texts, self.matcher), 1)
            for question in self.dataset.questions
        )


def prepare_inputs(full_dataset: QADataset, requested: FairConfig, matcher: AnswerMatcher) -> PreparedInputs:
    """Fit the configuration to the document, chunk the documents, and apply the policy for unanswerable questions."""
    tokenizer = tokenizer_for(requested.tokenizer)
    tokens = sum(tokenizer.count(document.text) for document in full_dataset.documents)
    settings = fitted_settings(requested, tokens)
    dataset, indexed_chunks = apply_unanswerable_policy(
        full_dataset, index_chunks(full_dataset, settings, matcher), matcher, settings.unanswerable
    )
    counts = split_counts(dataset, settings)
    if get_test(settings.stats.test).binary_only and counts.splits > 1:
        raise ParameterError(
            f"the test {settings.stats.test} needs binary hits, and means over {counts.splits} splits are fractional",
            hint="use --n-repeats 1 or another test: McNemar's exact p is always reported in its own column",
        )
    fitted = "" if settings.axes == requested.axes else _fitted_note(requested, settings, tokens)
    notes = (fitted, counts.note, _skipped_note(dataset.n_skipped), _tokenizer_note(settings))
    return PreparedInputs(settings, dataset, indexed_chunks, tuple(filter(None, notes)))


def _fitted_note(requested: FairConfig, settings: FairConfig, tokens: int) -> str:
    """A note on default values that were fitted to the document and the budget."""
    values = {name: ", ".join(map(str, settings.axes[name])) for name in ("chunk_size", "overlap", "top_k")}
    if settings.budget is not None:  # every top_k is tried
        values["top_k"] = f"1 to {settings.max_top_k}"
    defaults = (
        ("chunk sizes", values["chunk_size"], requested.chunk_sizes),
        ("overlaps", values["overlap"], requested.overlaps),
        ("top_k", values["top_k"], requested.top_ks),
    )
    fitted = "; ".join(f"{label} {fitted}" for label, fitted, given in defaults if given is None)
    budget = "" if settings.budget is None else " and the token budget"
    return f"The default grid was adapted to a document of {tokens:,} tokens{budget}: {fitted}"


def _skipped_note(questions: int) -> str:
    if not questions:
        return ""
    verb = "was" if questions == 1 else "were"
    return f"{pluralize(questions, 'question')} {verb} skipped: the answer is not in the document"


def _tokenizer_note(settings: FairConfig) -> str:
    """A note if no tokenizer was specified and the default one is not installed."""
    if settings.tokenizer is not None or settings.tokenizer_name != WordTokenizer.name:
        return ""
    return (
        f"cl100k is not installed ({install_command('chunk')}), so tokens are words; with it, chunk "
        "sizes and scores differ"
    )


# These findings concern the data, so they are stored with the result of every model: a single run directory must
# show them.


def setup_findings(tuning: TuningRecord, plan: Plan) -> tuple[Finding, ...]:
    """The findings about the setup, limited to the configurations that the model could select."""
    return (
        *run_checks(SampleSize(len(plan.dataset.questions))),
        *run_checks(question_check_subject(plan.dataset.questions, plan.matcher)),
        *_about_answers(tuning, plan),
        *_about_depth(tuning, plan),
    )


def _eligible(tuning: TuningRecord, plan: Plan) -> list[tuple[ChunkingParams, int]]:
    """Every configuration that the model could select."""
    settings = plan.settings
    affordable = [
        {name: value for name, value in trial.params.items() if name != "rerank_depth"} for trial in tuning.affordable
    ]
    return [
        (chunking, k)
        for chunking in settings.chunkings
        for k in settings.top_k_axis
        if settings.params(chunking, k) in affordable
    ]


def _about_answers(tuning: TuningRecord, plan: Plan) -> tuple[Finding, ...]:
    """Whether the chunks of each eligible chunking contain the answers, and how often."""
    occurrences = plan.answer_counts
    holders_of = {chunking: plan.indexed_chunks[chunking].locations.holders for chunking, _ in _eligible(tuning, plan)}
    split = {_name(chunking): _split_answers(plan, occurrences, holders_of[chunking]) for chunking in holders_of}
    # The chunking that splits the fewest answers is the most informative about how many chunks contain one.
    widest = min(holders_of, key=lambda chunking: len(split[_name(chunking)]))
    # Split answers have a separate finding that covers all chunkings.
    answers = [
        AnswerOccurrences(question.id, question.answer_text, n_occurrences, max(len(holders), min(1, n_occurrences)))
        for question, n_occurrences, holders in zip(
            plan.dataset.questions, occurrences, holders_of[widest], strict=True
        )
    ]
    chunks = len(plan.indexed_chunks[widest].chunked.chunks)
    findings = run_checks(AnswersInDocument(answers, chunks, _name(widest)))
    return findings if plan.settings.joins else (*findings, *run_checks(SplitAnswers(split, len(answers))))


def _split_answers(plan: Plan, occurrences: Sequence[int], holders_of: Sequence[Ints]) -> list[AnswerOccurrences]:
    """The answers that occur in the document and in no chunk."""
    return [
        AnswerOccurrences(question.id, question.answer_text, n_occurrences, 0)
        for question, n_occurrences, holders in zip(plan.dataset.questions, occurrences, holders_of, strict=True)
        if n_occurrences and not len(holders)
    ]


def _about_depth(tuning: TuningRecord, plan: Plan) -> tuple[Finding, ...]:
    """Whether an eligible configuration returns most of the document; only the worst is reported."""
    shares = [
        RetrievedFraction(len(plan.indexed_chunks[chunking].chunked.chunks), k, chunking=_name(chunking))
        for chunking, k in _eligible(tuning, plan)
    ]
    return run_checks(max(shares, key=lambda share: min(1.0, share.top_k / share.chunks)))


def _name(chunking: ChunkingParams) -> str:
    """The sizes of a chunking: ``size 512, overlap 50``."""
    return chunking_sizes(chunking.chunk_size, chunking.overlap, chunking.chunker)
