"""Entities: whether names of one type lie together, and near the sentences they come from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from equipoise.data.field.records import Entity, Sentence
from equipoise.errors import InputError
from equipoise.evidence.labels import Labels
from equipoise.evidence.space import Space
from equipoise.tasks.encode import Encode, encoded, row_cosines, unit_rows
from equipoise.tasks.probe import probe
from equipoise.types import Floats, Ids, Ints


@dataclass(frozen=True)
class Entities:
    """Entities by type, and how near each mention is to its sentence.

    ``space`` has one point an entity: one that is named in three sentences is still one, since copies of a
    point would be its nearest neighbours. ``entity_text`` has one cosine a mention, ``mention_ids`` names
    them, and ``sentence_of`` says which sentence each is in, so that whole sentences can be resampled.
    """

    space: Space
    names: tuple[str, ...]
    entity_text: Floats
    mention_ids: Ids
    sentence_of: Ints
    entity_text_chance: float
    """The mean cosine of the mentions with the other sentences; NaN for a single one."""
    seed: int = 0

    @cached_property
    def probed(self) -> Labels:
        """The type of each entity as a cross-validated linear probe predicts it."""
        return probe(self.space, groups=self.names, seed=self.seed)


def entities(encode: Encode, sentences: Sequence[Sentence], *, seed: int = 0) -> Entities:
    """Embed sentences and entities; ``seed`` decides the folds of the probe.

    >>> vectors = {"Plato wrote Laws.": [1.0, 1.0], "Plato": [1.0, 0.0], "Laws": [0.0, 1.0]}
    >>> marked = Sentence("Plato wrote Laws.", (Entity("Plato", "PERSON"), Entity("Laws", "WORK")))
    >>> found = entities(lambda texts: [vectors[text] for text in texts], [marked])
    >>> found.entity_text.round(3).tolist(), found.space.classes.tolist()
    ([0.707, 0.707], ['PERSON', 'WORK'])
    """
    mentions = [(place, entity) for place, each in enumerate(sentences) for entity in each.entities]
    kinds = list(dict.fromkeys((entity.text, entity.label) for _, entity in mentions))
    if len({label for _, label in kinds}) < 2:
        raise InputError(
            "the sentences have entities of fewer than two types", hint="types need others to differ from"
        )
    texts = [sentence.text for sentence in sentences]
    names = [text for text, _ in kinds]
    vectors = encoded(encode, texts + names)
    whole, named = vectors[: len(texts)], vectors[len(texts) :]
    row = {kind: place for place, kind in enumerate(kinds)}
    rows = np.array([row[entity.text, entity.label] for _, entity in mentions], dtype=np.int64)
    inside = np.array([place for place, _ in mentions], dtype=np.int64)
    return Entities(
        Space.of(named, labels=[label for _, label in kinds], unit_ids=_point_ids(kinds)),
        tuple(names),
        row_cosines(named[rows], whole[inside]),
        _mention_ids(mentions),
        inside,
        _elsewhere(named[rows], whole, inside),
        seed,
    )


def _elsewhere(mentions: Floats, sentences: Floats, inside: Ints) -> float:
    """The mean cosine of mentions with sentences that they are not marked in: pairs dealt at random."""
    if len(sentences) < 2:
        return float("nan")
    # The sum of cosines with all sentences is one product with the sum of their directions.
    total = unit_rows(mentions) @ unit_rows(sentences).sum(axis=0)
    own = row_cosines(mentions, sentences[inside])
    return float(np.mean((total - own) / (len(sentences) - 1)))


def _point_ids(kinds: Sequence[tuple[str, str]]) -> list[str]:
    """The name of each entity, with its type where a name has several."""
    times = Counter(text for text, _ in kinds)
    return [f"{text} ({label})" if times[text] > 1 else text for text, label in kinds]


def _mention_ids(mentions: Sequence[tuple[int, Entity]]) -> Ids:
    """The number of the sentence and the name, numbered where a sentence marks it several times."""
    times: Counter[tuple[int, str]] = Counter()
    ids = []
    for place, entity in mentions:
        times[place, entity.text] += 1
        nth = times[place, entity.text]
        ids.append(f"{place + 1}: {entity.text}{f' ({nth})' if nth > 1 else ''}")
    return np.array(ids, dtype=object)
