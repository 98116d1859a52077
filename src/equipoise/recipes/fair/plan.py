"""What all models of a comparison share."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from equipoise.data.split import Fold
from equipoise.recipes.fair.chunking import Chunking
from equipoise.recipes.fair.material import Material
from equipoise.recipes.fair.settings import Settings
from equipoise.recipes.fair.shelf import Shelved
from equipoise.recipes.fair.validation.places import places
from equipoise.tasks.answers.matcher import Matcher
from equipoise.tasks.answers.normal import normalised


@dataclass(frozen=True)
class Plan:
    """What all models share: the material, its chunks, the splits into folds, the settings, the matcher."""

    material: Material
    settings: Settings
    matcher: Matcher
    shelved: dict[Chunking, Shelved] = field(repr=False)
    splits: list[list[Fold]] = field(repr=False)
    notes: tuple[str, ...] = ()

    @property
    def fold_count(self) -> int:
        """The number of folds of a split; 1 where nothing is nested."""
        return len(self.splits[0]) if self.splits else 1

    @cached_property
    def answer_counts(self) -> tuple[int, ...]:
        """At how many places of the documents each answer is."""
        texts = [normalised(document.text) for document in self.material.documents]
        absent = {question.id for question in self.material.absent}
        found = []
        for question in self.material.questions:
            plain = normalised(question.answer)
            seen = sum(text.count(plain) for text in texts)
            if seen > 1:  # only now is it worth asking which of them are words of their own
                seen = sum(places(plain, text, self.matcher) for text in texts)
            found.append(0 if question.id in absent else max(seen, 1))
        return tuple(found)
