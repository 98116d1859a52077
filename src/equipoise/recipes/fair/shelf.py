"""Every chunking of the documents, and which chunks hold which answers: worked out once for all models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from equipoise.recipes.fair.chunking import Chunking, Cut, Cutter
from equipoise.recipes.fair.material import Material
from equipoise.recipes.fair.settings import Settings
from equipoise.tasks.answers.evidence import HeldAnswers
from equipoise.tasks.answers.matcher import Matcher, Shelf
from equipoise.tasks.answers.rule import Parts
from equipoise.types import Ints


@dataclass(frozen=True)
class Shelved:
    """The documents cut in one way, and which chunks hold which answers."""

    cut: Cut
    held: HeldAnswers


@dataclass(frozen=True)
class _Board(Shelf):
    """The texts ``start`` to ``stop`` of a shelf, counted from 0."""

    whole: Shelf
    start: int
    stop: int

    def holders(self, answer: str) -> Ints:
        """The positions of the texts that hold the answer."""
        return self.own(self.whole.holders(answer))

    def first_hit(self, answer: str, order: Sequence[int] | Ints) -> int | None:
        """How many texts, taken in this order, are needed."""
        return self.whole.first_hit(answer, np.asarray(order) + self.start)

    def parts(self, answer: str) -> Parts | None:
        """What these texts may have of the answer together."""
        parts = self.whole.parts(answer)
        return None if parts is None else Parts(parts.there[:, self.start : self.stop], parts.needed)

    def own(self, places: Ints) -> Ints:
        """Those places of the shelf that are here."""
        return places[slice(*np.searchsorted(places, [self.start, self.stop]))] - self.start


def shelve(material: Material, settings: Settings, matcher: Matcher) -> dict[Chunking, Shelved]:
    """Every chunking that the grid and the baseline ask for, with the answers looked up in it.

    All chunks stand on one shelf, so that each answer is looked up once for all chunkings.
    """
    cutter = Cutter(material.documents, settings.tokenizer, as_source=matcher.joins)
    cuts = [cutter.cut(each) for each in dict.fromkeys([*settings.chunkings, settings.baseline[0]])]
    whole = matcher.shelve([text for found in cuts for text in found.texts])
    holders = [whole.holders(question.answer) for question in material.questions]
    borders = np.cumsum([0, *(len(found.chunks) for found in cuts)]).tolist()
    shelved = {}
    for found, (start, stop) in zip(cuts, pairwise(borders), strict=True):
        board = _Board(whole, start, stop)
        held = HeldAnswers(matcher.joins, board, tuple(board.own(places) for places in holders))
        shelved[found.chunking] = Shelved(found, held)
    return shelved
