"""What is wrong with the setup of a comparison: its questions, its document, its grid.

These findings belong to the data, and so to the result of every model that was measured on it: whoever reads
a single run directory must see them too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from equipoise.checks.registry import run_checks
from equipoise.domains.fair.checks import (
    AnswerOccurrences,
    AnswersInDocument,
    RetrievedFraction,
    SampleSize,
    SplitAnswers,
)
from equipoise.domains.fair.validation import question_check_subject

if TYPE_CHECKING:
    from equipoise.domains.fair.chunk_index import ChunkingParams
    from equipoise.domains.fair.plan import Plan
    from equipoise.tuning.grid import TuningRecord
    from equipoise.types import Finding, Ints


def setup_findings(tuning: TuningRecord, plan: Plan) -> tuple[Finding, ...]:
    """The findings about the setup, as far as configurations are concerned that the model could choose."""
    return (
        *_about_questions(plan),
        *_about_answers(tuning, plan),
        *_about_depth(tuning, plan),
    )


def _about_questions(plan: Plan) -> tuple[Finding, ...]:
    """Whether there are enough questions, each asked once and without its answer."""
    asked = plan.material.questions
    return (*run_checks(SampleSize(len(asked))), *run_checks(question_check_subject(asked, plan.matcher)))


def _choosable(tuning: TuningRecord, plan: Plan) -> list[tuple[ChunkingParams, int]]:
    """Every configuration that the model could have chosen."""
    settings = plan.settings
    affordable = {tuple(trial.params.items()) for trial in tuning.affordable}
    return [
        (chunking, k)
        for chunking in settings.chunkings
        for k in settings.tried_ks
        if tuple(settings.params(chunking, k).items()) in affordable
    ]


def _about_answers(tuning: TuningRecord, plan: Plan) -> tuple[Finding, ...]:
    """Whether the answers can be found with each chunking that could be chosen, and not anywhere."""
    stand = plan.answer_counts
    held = {chunking: plan.shelved[chunking].held.holders for chunking, _ in _choosable(tuning, plan)}
    cut = {_name(chunking): _cut(plan, stand, held[chunking]) for chunking in held}
    # Of all chunkings, the one that loses fewest answers says most about how many chunks hold one.
    widest = min(held, key=lambda chunking: len(cut[_name(chunking)]))
    # Answers that are cut have a finding of their own, with all chunkings in it.
    answers = [
        AnswerOccurrences(question.id, question.answer, places, max(len(holders), min(1, places)))
        for question, places, holders in zip(plan.material.questions, stand, held[widest], strict=True)
    ]
    chunks = len(plan.shelved[widest].cut.chunks)
    found = run_checks(AnswersInDocument(answers, chunks, _name(widest)))
    return found if plan.settings.joins else (*found, *run_checks(SplitAnswers(cut, len(answers))))


def _cut(plan: Plan, stand: Sequence[int], held: Sequence[Ints]) -> list[AnswerOccurrences]:
    """The answers that stand in the document and in no chunk."""
    return [
        AnswerOccurrences(question.id, question.answer, places, 0)
        for question, places, holders in zip(plan.material.questions, stand, held, strict=True)
        if places and not len(holders)
    ]


def _about_depth(tuning: TuningRecord, plan: Plan) -> tuple[Finding, ...]:
    """Whether a configuration that could be chosen returns most of the document; the worst of them."""
    shares = [
        RetrievedFraction(len(plan.shelved[chunking].cut.chunks), k, chunking=_name(chunking))
        for chunking, k in _choosable(tuning, plan)
    ]
    return run_checks(max(shares, key=lambda share: min(1.0, share.top_k / share.chunks)))


def _name(chunking: ChunkingParams) -> str:
    """A chunking in a few characters: ``fixed 512/50``."""
    return f"{chunking.chunker} {chunking.chunk_size}/{chunking.overlap}"
