"""The records of a field, and the field itself."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import ClassVar

from equipoise.data.field.problem import Problem


@dataclass(frozen=True, slots=True)
class Pair:
    """Two texts, and how alike people say they are, from 0 to 1."""

    first: str
    second: str
    expected: float

    @property
    def id(self) -> str:
        """Both texts: what the pair is called in tables."""
        return f"{self.first} / {self.second}"


@dataclass(frozen=True, slots=True)
class Cluster:
    """Concepts that belong together, under a name that no other cluster has."""

    name: str
    concepts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Entity:
    """A name in a sentence with its type; where it starts and ends, in characters, if that is given."""

    text: str
    label: str
    start: int | None = None
    end: int | None = None


@dataclass(frozen=True, slots=True)
class Sentence:
    """A text and the entities in it."""

    text: str
    entities: tuple[Entity, ...]


@dataclass(frozen=True, slots=True)
class Relation:
    """Something that is said of one entity and another."""

    subject: str
    predicate: str
    object: str


@dataclass(frozen=True)
class Field:
    """A field of knowledge, as far as it is described: what has no file is None.

    ``problems`` are those that leave it of use, or all of them if the field was only inspected.
    """

    __checks__: ClassVar[str] = "equipoise.checks.field"

    name: str
    pairs: tuple[Pair, ...] | None = None
    clusters: tuple[Cluster, ...] | None = None
    sentences: tuple[Sentence, ...] | None = None
    relations: tuple[Relation, ...] | None = None
    concepts: tuple[str, ...] | None = None
    problems: tuple[Problem, ...] = ()
    unread: tuple[str, ...] = ()
    """Data files of its folder that are no part of a field."""

    @property
    def present(self) -> tuple[str, ...]:
        """The parts that there are, such as ``pairs``."""
        return tuple(part for part in PARTS if getattr(self, part) is not None)

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """Every text that any task embeds, once each, in the order in which it first occurs."""
        found: list[str] = []
        for pair in self.pairs or ():
            found += [pair.first, pair.second]
        for cluster in self.clusters or ():
            found += cluster.concepts
        for sentence in self.sentences or ():
            found += [sentence.text, *(entity.text for entity in sentence.entities)]
        for relation in self.relations or ():
            found += [relation.subject, relation.object, question(relation)]
        found += self.concepts or ()
        return tuple(dict.fromkeys(found))

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of all content, in hexadecimal; neither the name nor the form of the files matters."""
        import hashlib  # loads OpenSSL, which few commands need

        content = {part: getattr(self, part) for part in PARTS}
        text = json.dumps(content, default=asdict, sort_keys=True)
        return hashlib.sha256(text.encode("ascii")).hexdigest()

    def __repr__(self) -> str:
        parts = ", ".join(f"{len(getattr(self, part))} {part}" for part in self.present)
        return f"<Field {self.name}: {parts or 'nothing'}>"


PARTS = ("pairs", "clusters", "sentences", "relations", "concepts")
"""What a field can have."""


def question(relation: Relation) -> str:
    """The subject and what is said of it, as words: the object is what answers it.

    >>> question(Relation("will to power", "relates_to", "amor fati"))
    'will to power relates to'
    """
    return f"{relation.subject} {relation.predicate.replace('_', ' ')}"
