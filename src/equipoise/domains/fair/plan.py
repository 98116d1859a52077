"""What all models of a comparison share."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from equipoise.domains.fair.answer_matching import AnswerMatcher, normalize_answer
from equipoise.domains.fair.answer_verification import count_occurrences

if TYPE_CHECKING:
    from equipoise.domains.fair.chunk_index import ChunkingParams, IndexedChunks
    from equipoise.domains.fair.config import FairConfig
    from equipoise.domains.fair.dataset import QADataset
    from equipoise.io.splits import Fold


@dataclass(frozen=True)
class Plan:
    """What all models share: the material, its chunks, the splits into folds, the settings, the matcher."""

    material: QADataset
    settings: FairConfig
    matcher: AnswerMatcher
    shelved: dict[ChunkingParams, IndexedChunks] = field(repr=False)
    splits: list[list[Fold]] = field(repr=False)
    notes: tuple[str, ...] = ()

    @property
    def fold_count(self) -> int:
        """The number of folds of a split; 1 where nothing is nested."""
        return len(self.splits[0]) if self.splits else 1

    @cached_property
    def answer_counts(self) -> tuple[int, ...]:
        """At how many places of the documents each answer is."""
        texts = [normalize_answer(document.text) for document in self.material.documents]
        absent = {question.id for question in self.material.absent}
        found = []
        for question in self.material.questions:
            plain = normalize_answer(question.answer)
            seen = sum(text.count(plain) for text in texts)
            if seen > 1:  # only now is it worth asking which of them are words of their own
                seen = sum(count_occurrences(plain, text, self.matcher) for text in texts)
            found.append(0 if question.id in absent else max(seen, 1))
        return tuple(found)
