"""The shared context of all models of a comparison, and the findings about it: questions, document and grid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from equipoise.checks.base import run_checks
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
from equipoise.domains.fair.validation import question_check_subject

if TYPE_CHECKING:
    from equipoise.domains.fair.chunk_index import ChunkingParams, IndexedChunks
    from equipoise.domains.fair.config import FairConfig
    from equipoise.domains.fair.dataset import QADataset
    from equipoise.io.splits import Fold
    from equipoise.tuning.grid import TuningRecord
    from equipoise.types import Finding, Ints


@dataclass(frozen=True)
class Plan:
    """The shared context of all models: dataset, configuration, matcher, chunks with answers, splits into folds."""

    dataset: QADataset
    settings: FairConfig
    matcher: AnswerMatcher
    indexed_chunks: dict[ChunkingParams, IndexedChunks] = field(repr=False)
    splits: list[list[Fold]] = field(repr=False)
    notes: tuple[str, ...] = ()

    @property
    def fold_count(self) -> int:
        """The number of folds of a split; 1 without nested cross-validation."""
        return len(self.splits[0]) if self.splits else 1

    @cached_property
    def answer_counts(self) -> tuple[int, ...]:
        """How often each answer occurs in the documents."""
        texts = [normalize_answer(document.text) for document in self.dataset.documents]
        unanswerable = {question.id for question in self.dataset.unanswerable}
        return tuple(
            0 if question.id in unanswerable else max(count_answers(question, texts, self.matcher), 1)
            for question in self.dataset.questions
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
