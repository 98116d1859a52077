"""What is wrong with a comparison as a whole: its fixture, its document, its models, its tuning."""

from __future__ import annotations

from collections.abc import Sequence

from equipoise.checks.catalogue import examine
from equipoise.checks.fixture import AnswerPlaces, AnswersInDocument, CutAnswers, RetrievedShare, SampleSize
from equipoise.checks.subjects import LineUp, Window
from equipoise.checks.tuning import Windows
from equipoise.recipes.fair.chunking import Chunking
from equipoise.recipes.fair.outcome import Outcome, Plan
from equipoise.recipes.fair.result import ModelFacts
from equipoise.recipes.fair.validation.asked import asked_questions
from equipoise.recipes.fair.validation.places import places
from equipoise.tasks.answers.normal import normalised
from equipoise.types import Finding, Ints


def findings_of(outcomes: Sequence[Outcome], plan: Plan) -> tuple[Finding, ...]:
    """The findings that belong to no single model; what nobody could choose is not held against anyone."""
    facts = [each.facts for each in outcomes]
    return (
        *_about_questions(plan),
        *_about_answers(outcomes, plan),
        *_about_depth(outcomes, plan),
        *examine(LineUp([each.spec for each in facts])),
        *examine(Windows([_window(each) for each in facts])),
    )


def _window(facts: ModelFacts) -> Window:
    """What a model does not read of the chunks that it could be given."""
    return Window(facts.spec, facts.window, facts.grid_chunks, facts.grid_truncated, None)


def _about_questions(plan: Plan) -> tuple[Finding, ...]:
    """Whether there are enough questions, each asked once and without its answer."""
    asked = plan.material.questions
    return (*examine(SampleSize(len(asked))), *examine(asked_questions(asked, plan.matcher)))


def _choosable(outcomes: Sequence[Outcome], plan: Plan) -> list[tuple[Chunking, int]]:
    """Every configuration that some model could have chosen."""
    settings = plan.settings
    affordable = {tuple(trial.params.items()) for each in outcomes for trial in each.tuning.affordable}
    return [
        (chunking, k)
        for chunking in settings.chunkings
        for k in settings.tried_ks
        if tuple(settings.params(chunking, k).items()) in affordable
    ]


def _about_answers(outcomes: Sequence[Outcome], plan: Plan) -> tuple[Finding, ...]:
    """Whether the answers can be found with each chunking that could be chosen, and not anywhere."""
    stand = _places(plan)
    held = {chunking: plan.shelved[chunking].held.holders for chunking, _ in _choosable(outcomes, plan)}
    cut = {_name(chunking): _cut(plan, stand, held[chunking]) for chunking in held}
    # Of all chunkings, the one that loses fewest answers says most about how many chunks hold one.
    widest = min(held, key=lambda chunking: len(cut[_name(chunking)]))
    # Answers that are cut have a finding of their own, with all chunkings in it.
    answers = [
        AnswerPlaces(question.id, question.answer, places, max(len(holders), min(1, places)))
        for question, places, holders in zip(plan.material.questions, stand, held[widest], strict=True)
    ]
    chunks = len(plan.shelved[widest].cut.chunks)
    found = examine(AnswersInDocument(answers, chunks, _name(widest)))
    return found if plan.settings.joins else (*found, *examine(CutAnswers(cut, len(answers))))


def _cut(plan: Plan, stand: Sequence[int], held: Sequence[Ints]) -> list[AnswerPlaces]:
    """The answers that stand in the document and in no chunk."""
    return [
        AnswerPlaces(question.id, question.answer, places, 0)
        for question, places, holders in zip(plan.material.questions, stand, held, strict=True)
        if places and not len(holders)
    ]


def _places(plan: Plan) -> list[int]:
    """At how many places of the documents each answer stands."""
    texts = [normalised(document.text) for document in plan.material.documents]
    absent = {question.id for question in plan.material.absent}
    found = []
    for question in plan.material.questions:
        plain = normalised(question.answer)
        seen = sum(text.count(plain) for text in texts)
        if seen > 1:  # only now is it worth asking which of them are words of their own
            seen = sum(places(plain, text, plan.matcher) for text in texts)
        found.append(0 if question.id in absent else max(seen, 1))
    return found


def _about_depth(outcomes: Sequence[Outcome], plan: Plan) -> tuple[Finding, ...]:
    """Whether a configuration that could be chosen returns most of the document; the worst of them."""
    shares = [
        RetrievedShare(len(plan.shelved[chunking].cut.chunks), k, chunking=_name(chunking))
        for chunking, k in _choosable(outcomes, plan)
    ]
    return examine(max(shares, key=lambda share: min(1.0, share.top_k / share.chunks)))


def _name(chunking: Chunking) -> str:
    """A chunking in a few characters: ``fixed 512/50``."""
    return f"{chunking.chunker} {chunking.chunk_size}/{chunking.overlap}"
