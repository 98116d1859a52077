"""What is wrong with a comparison as a whole: its fixture, its document, its models, its tuning."""

from __future__ import annotations

from collections.abc import Sequence

from equipoise.checks.catalogue import examine
from equipoise.checks.fixture import AnswerPlaces, AnswersInDocument, RetrievedShare, SampleSize
from equipoise.checks.subjects import LineUp, Window
from equipoise.checks.tuning import TuningBudgets, Windows
from equipoise.recipes.fair.outcome import Outcome, Plan
from equipoise.recipes.fair.result import ModelFacts
from equipoise.recipes.fair.shelf import Shelved
from equipoise.recipes.fair.validation.places import places
from equipoise.tasks.answers.normal import normalised
from equipoise.types import Finding


def findings_of(outcomes: Sequence[Outcome], plan: Plan) -> tuple[Finding, ...]:
    """The findings that belong to no single model."""
    facts = [each.facts for each in outcomes]
    return (
        *_about_material(plan),
        *examine(LineUp([each.spec for each in facts])),
        *examine(TuningBudgets.of({each.facts.spec: each.tuning for each in outcomes})),
        *examine(Windows([_window(each) for each in facts])),
    )


def _window(facts: ModelFacts) -> Window:
    """What a model does not read of the chunks of the whole grid, which are the same for all."""
    return Window(facts.spec, facts.window, facts.grid_chunks, facts.grid_truncated, None)


def _about_material(plan: Plan) -> tuple[Finding, ...]:
    """Whether there are enough questions, whether their answers can be found, and not by everyone."""
    chunking = plan.settings.baseline[0]
    shelf = plan.shelved[chunking]
    name = chunking.made(plan.settings.tokenizer).name
    fewest = min(len(each.cut.chunks) for each in plan.shelved.values())
    return (
        *examine(AnswersInDocument(_answers(plan, shelf), len(shelf.cut.chunks), name)),
        *examine(SampleSize(len(plan.material.questions))),
        *examine(RetrievedShare(fewest, max(plan.settings.top_ks))),
    )


def _answers(plan: Plan, shelf: Shelved) -> list[AnswerPlaces]:
    """At how many places each answer stands, and how many chunks of the baseline hold it."""
    texts = [normalised(document.text) for document in plan.material.documents]
    absent = {question.id for question in plan.material.absent}
    found = []
    for question, holders in zip(plan.material.questions, shelf.held.holders, strict=True):
        plain = normalised(question.answer)
        seen = sum(text.count(plain) for text in texts)
        if seen > 1:  # only now is it worth asking which of them are words of their own
            seen = sum(places(plain, text, plan.matcher) for text in texts)
        count = 0 if question.id in absent else max(seen, 1)
        found.append(AnswerPlaces(question.id, question.answer, count, len(holders)))
    return found
