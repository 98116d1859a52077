"""The concept set and its records, and the issues of its files."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any, ClassVar

from equipoise.errors import DuplicateError, FormatError, InputError


class IssueKind(StrEnum):
    """The kind of an issue."""

    ENTRY = "entry"
    """An entry lacks a key, or holds something else than it should."""
    REPEATED = "repeated"
    """An entry that contradicts an earlier one."""
    DUPLICATE = "duplicate"
    """Entries that are equal to earlier ones and are left out."""
    TOO_FEW = "too few"
    """There are too few entries for any metric."""
    RANGE = "range"
    """An expected similarity is outside 0 to 1."""
    OFFSETS = "offsets"
    """The offsets of an entity are wrong."""


_ERRORS: dict[IssueKind, type[InputError]] = {
    IssueKind.ENTRY: FormatError,
    IssueKind.REPEATED: DuplicateError,
    IssueKind.DUPLICATE: DuplicateError,
    IssueKind.TOO_FEW: InputError,
    IssueKind.RANGE: InputError,
    IssueKind.OFFSETS: InputError,
}


@dataclass(frozen=True, slots=True)
class ConceptSetIssue:
    """One issue of a file of a concept set, with a hint.

    Entries with wrong offsets remain usable, since the tasks embed the entity's text, and duplicates are left out.
    """

    rule: IssueKind
    file: str
    message: str
    hint: str = ""
    excerpt: str = ""
    kind: type[InputError] | None = None
    """The error, if the file could not be read."""

    @property
    def fatal(self) -> bool:
        """Whether a run stops."""
        return self.rule not in (IssueKind.OFFSETS, IssueKind.DUPLICATE)

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "rule": self.rule,
            "fatal": self.fatal,
            "file": self.file,
            "message": self.message,
            "hint": self.hint,
        }

    def error(self, *, more: int = 0, location: str = "") -> InputError:
        """The problem as an error; ``more`` others are pointed at by the command that lists them all."""
        hint = self.hint
        if more:
            others = "1 more problem" if more == 1 else f"{more} more problems"
            hint = f"{hint}; " * bool(hint) + f"eq concepts check {location} lists it and {others}"
        kind = self.kind or _ERRORS[self.rule]
        return kind(self.message, hint=hint, excerpt=self.excerpt)


@dataclass(frozen=True, slots=True)
class ConceptPair:
    """Two texts and their expected similarity, from 0 to 1.

    ``category`` is any group of pairs that results are also shown by; ``ratings`` has the rating of each annotator,
    NaN where an annotator gave none.
    """

    first: str
    second: str
    expected: float
    category: str = ""
    ratings: tuple[float, ...] = ()

    @property
    def id(self) -> str:
        """Both texts: what the pair is called in tables."""
        return f"{self.first} / {self.second}"


@dataclass(frozen=True, slots=True)
class ConceptCluster:
    """Concepts that belong together, under a name that no other cluster has."""

    name: str
    concepts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EntityMention:
    """A name in a sentence with its type; start and end in characters, if given."""

    text: str
    label: str
    start: int | None = None
    end: int | None = None


@dataclass(frozen=True, slots=True)
class AnnotatedSentence:
    """A text and the entities in it."""

    text: str
    entities: tuple[EntityMention, ...]


@dataclass(frozen=True, slots=True)
class Relation:
    """A statement about two entities: subject, predicate, object."""

    subject: str
    predicate: str
    object: str


@dataclass(frozen=True)
class ConceptSet:
    """A concept set; parts without a file are None.

    Attributes
    ----------
    name
        The name of the folder or file.
    pairs
        Pairs of texts with their expected similarity.
    clusters
        Concepts that belong together.
    sentences
        Sentences with marked entities.
    relations
        Subject, predicate and object of each relation.
    concepts
        The texts for embedding quality.
    problems
        Problems that do not prevent a run, or all of them if the set was only checked.
    unread
        Data files of the folder that are not part of a concept set.
    """

    __checks__: ClassVar[str] = "equipoise.domains.concepts.checks"

    name: str
    pairs: tuple[ConceptPair, ...] | None = None
    clusters: tuple[ConceptCluster, ...] | None = None
    sentences: tuple[AnnotatedSentence, ...] | None = None
    relations: tuple[Relation, ...] | None = None
    concepts: tuple[str, ...] | None = None
    problems: tuple[ConceptSetIssue, ...] = ()
    unread: tuple[str, ...] = ()

    @property
    def present(self) -> tuple[str, ...]:
        """The parts that there are, such as ``pairs``."""
        return tuple(part for part in SECTIONS if getattr(self, part) is not None)

    @property
    def standard_concepts(self) -> tuple[str, ...] | None:
        """The concepts that embedding quality is measured on: the listed ones, or else those of the clusters."""
        if self.concepts is not None or self.clusters is None:
            return self.concepts
        return tuple(concept for cluster in self.clusters for concept in cluster.concepts)

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """Every text that any task embeds, once each, in the order in which it first occurs."""
        texts: list[str] = []
        for pair in self.pairs or ():
            texts += [pair.first, pair.second]
        for cluster in self.clusters or ():
            texts += cluster.concepts
        for sentence in self.sentences or ():
            texts += [sentence.text, *(entity.text for entity in sentence.entities)]
        for relation in self.relations or ():
            texts += [relation.subject, relation.object, relation_query(relation)]
        texts += self.concepts or ()
        return tuple(dict.fromkeys(texts))

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of all content, in hexadecimal; neither the name nor the form of the files matters."""
        import hashlib  # loads OpenSSL, which few commands need

        content = {part: getattr(self, part) for part in SECTIONS}
        text = json.dumps(content, default=asdict, sort_keys=True)
        return hashlib.sha256(text.encode("ascii")).hexdigest()

    def __repr__(self) -> str:
        parts = ", ".join(f"{len(getattr(self, part))} {part}" for part in self.present)
        return f"<ConceptSet {self.name}: {parts or 'nothing'}>"


SECTIONS = ("pairs", "clusters", "sentences", "relations", "concepts")
"""The parts of a concept set."""


def relation_query(relation: Relation) -> str:
    """The subject and predicate as text: the object is the answer.

    >>> relation_query(Relation("will to power", "relates_to", "amor fati"))
    'will to power relates to'
    """
    return f"{relation.subject} {relation.predicate.replace('_', ' ')}"
