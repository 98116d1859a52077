"""Questions whose answers no document holds: refused, counted as misses, or left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from equipoise.data.fixture import Question
from equipoise.errors import InputError
from equipoise.recipes.fair.chunking import Chunking
from equipoise.recipes.fair.material import Material
from equipoise.recipes.fair.shelf import Shelved
from equipoise.tasks.answers.evidence import HeldAnswers
from equipoise.tasks.answers.matcher import Matcher

SHOWN = 5
REMEDY = (
    "count them as misses (--absent zero), leave them out (--absent skip), "
    "or see eq fair validate --doc, which shows the nearest passages"
)

Shelves = dict[Chunking, Shelved]


def settle_absent(
    material: Material, shelved: Shelves, matcher: Matcher, absent: str
) -> tuple[Material, Shelves]:
    """The material with its absent answers noted, and without their questions where they are skipped.

    An answer that a chunk holds is there; only the others are looked for in the documents.
    """
    lacking = absent_questions(material, shelved, matcher)
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


def absent_questions(
    material: Material, shelved: Mapping[Chunking, Shelved], matcher: Matcher
) -> tuple[Question, ...]:
    """The questions whose answers stand in no chunk and in no document."""
    unheld = [
        question
        for place, question in enumerate(material.questions)
        if not any(len(shelf.held.holders[place]) for shelf in shelved.values())
    ]
    texts = [document.text for document in material.documents]
    holders = matcher.holders([question.answer for question in unheld], texts) if unheld else []
    return tuple(question for question, where in zip(unheld, holders, strict=True) if not len(where))


def _without(shelf: Shelved, kept: Sequence[int]) -> Shelved:
    held = shelf.held
    return Shelved(shelf.cut, HeldAnswers(held.joins, held.shelf, tuple(held.holders[at] for at in kept)))


def _refusal(lacking: Sequence[Question], total: int) -> InputError:
    shown = "\n".join(f"{each.id}: {each.answer}" for each in lacking[:SHOWN])
    more = f"\nand {len(lacking) - SHOWN} more" if len(lacking) > SHOWN else ""
    return InputError(
        f"{len(lacking)} of {total} answers are nowhere in the document",
        hint=REMEDY,
        excerpt=f"{shown}{more}",
    )
