"""The shared context of all models of a comparison."""

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
        counts = []
        for question in self.dataset.questions:
            plain = normalize_answer(question.answer)
            count = sum(text.count(plain) for text in texts)
            if count > 1:  # only then is the slower count of whole words needed
                count = sum(count_occurrences(plain, text, self.matcher) for text in texts)
            counts.append(0 if question.id in unanswerable else max(count, 1))
        return tuple(counts)
