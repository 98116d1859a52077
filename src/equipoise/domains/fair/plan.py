"""The shared context of all models of a comparison, and the findings about it: questions, document and grid.

Chunking the documents and locating the answers takes longer than loading finished results, which need neither. So
both happen when they are used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

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
from equipoise.domains.fair.chunk_index import index_chunks
from equipoise.domains.fair.config import fitted_settings
from equipoise.domains.fair.dataset import apply_unanswerable_policy
from equipoise.domains.fair.grid_search import SplitCounts, answer_splits, split_counts
from equipoise.domains.fair.validation import question_check_subject
from equipoise.errors import ParameterError
from equipoise.models.tokenizers import WordTokenizer, tokenizer_for
from equipoise.stats.paired_tests import get_test
from equipoise.types import install_command

if TYPE_CHECKING:
    from equipoise.domains.fair.chunk_index import ChunkingParams, IndexedChunks
    from equipoise.domains.fair.config import FairConfig
    from equipoise.domains.fair.dataset import QADataset
    from equipoise.io.splits import Fold
    from equipoise.tuning.grid import TuningRecord
    from equipoise.types import Finding, Ints


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
        """How often each answer occurs in the documents."""
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
    fitted = "" if settings.axes == requested.axes else _fitted_note(settings, tokens)
    notes = (fitted, counts.note, _skipped_note(dataset.n_skipped), _tokenizer_note(settings))
    return PreparedInputs(settings, dataset, indexed_chunks, tuple(filter(None, notes)))


def _fitted_note(settings: FairConfig, tokens: int) -> str:
    """A note on default values that were reduced for a short document."""
    values = {
        "chunk sizes": settings.chunk_sizes,
        "overlaps": settings.overlaps,
        "top_k": settings.top_ks,
    }
    listed = ", ".join(f"{name} {'/'.join(map(str, axis))}" for name, axis in values.items())
    return f"The default grid was fitted to a document of {tokens:,} tokens: {listed}"


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
        *_about_questions(plan),
        *_about_answers(tuning, plan),
        *_about_depth(tuning, plan),
    )


def _about_questions(plan: Plan) -> tuple[Finding, ...]:
    """Whether there are enough questions, without duplicates and without leaked answers."""
    questions = plan.dataset.questions
    return (*run_checks(SampleSize(len(questions))), *run_checks(question_check_subject(questions, plan.matcher)))


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
