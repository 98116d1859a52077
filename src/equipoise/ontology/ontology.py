"""An ontology: its live terms with their texts, and the is_a graph over them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from equipoise.data.graph import find_cycle
from equipoise.errors import InputError
from equipoise.ontology.graph import Lineage, depths, levels, lineage
from equipoise.ontology.ids import IdBook, Obsolete, Resolutions, Resolved
from equipoise.ontology.rows import Rows
from equipoise.types import Bools, Ints


@dataclass(frozen=True, eq=False)
class Branches:
    """The top-level terms, and which of them each term lies below; a term may lie below several."""

    tops: Ints
    member: Bools
    """A row a term, a column a top."""

    def share(self, a: Ints, b: Ints) -> Bools:
        """Whether terms ``a`` and ``b`` have a branch in common, pair by pair."""
        return np.logical_or.reduce(self.member[a] & self.member[b], axis=-1)


@dataclass(frozen=True, eq=False, repr=False)
class Ontology:
    """Live terms in the order of the file; everything about term ``i`` stands at place ``i``.

    ``alternatives`` are the other ids of live terms, by place; ``obsolete`` are the terms that are no
    longer used. ``citation`` is the attribution to show wherever the terms are shown. ``outside`` counts
    is_a edges to what is no live term of the file; they are not followed.
    """

    name: str
    release: str
    citation: str
    ids: tuple[str, ...]
    labels: tuple[str, ...]
    synonyms: tuple[tuple[str, ...], ...]
    definitions: tuple[str, ...]
    parents: Rows
    alternatives: dict[str, int]
    obsolete: dict[str, Obsolete]
    outside: int = 0
    source: str = ""
    """What it was read from: ``hpo``, or a path."""

    def __post_init__(self) -> None:
        _ = self._levels  # refuses a cycle

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return f"<Ontology {self.title}: {len(self)} terms>"

    @property
    def title(self) -> str:
        """The name with the release, where there is one."""
        return f"{self.name} {self.release}".strip()

    # ---- ids ----------------------------------------------------------------------------------

    @cached_property
    def book(self) -> IdBook:
        """What every id leads to."""
        places = {name: place for place, name in enumerate(self.ids)}
        return IdBook(self.title, places, self.alternatives, self.obsolete, self.labels)

    def place(self, name: str) -> int:
        """Where the term of this id stands; alternative and replaced ids are followed."""
        return self.book.resolve(name).term

    def resolve(self, name: str) -> Resolved:
        """The live term behind an id, and how it was found; an error when there is none."""
        return self.book.resolve(name)

    def resolve_all(self, names: Iterable[str]) -> tuple[Ints, Resolutions]:
        """The places of all these ids, and a count of those that were followed."""
        found = [self.book.resolve(name) for name in names]
        moved = tuple(each for each in found if each.how != "live")
        return np.array([each.term for each in found], dtype=np.int64), Resolutions(len(found), moved)

    # ---- the graph ----------------------------------------------------------------------------

    @cached_property
    def children(self) -> Rows:
        """The terms directly below each term."""
        return self.parents.reversed()

    @cached_property
    def roots(self) -> Ints:
        """The terms without parents."""
        return np.flatnonzero(self.parents.counts == 0)

    @cached_property
    def depth(self) -> Ints:
        """The shortest path from a root to each term, in edges."""
        return depths(self.parents, self._levels)

    @cached_property
    def lineage(self) -> Lineage:
        """The ancestors of every term, itself among them, and the steps up to each."""
        return lineage(self.parents, self._levels)

    @cached_property
    def _levels(self) -> list[Ints]:
        found = levels(self.parents)
        if found is not None:
            return found
        names = self.ids
        cycle = find_cycle(
            (names[child], names[parent])
            for child, parent in zip(self.parents.owner, self.parents.values, strict=True)
        )
        raise InputError(
            f"{self.name} has a cycle: {' is_a '.join([*cycle, cycle[0]])}",
            hint="an ancestor cannot be its own descendant; remove one of these edges",
        )

    def ancestors(self, place: int) -> Ints:
        """All terms above one, and the term itself, as ascending places."""
        return self.lineage.rows[place]

    def descendants(self, place: int) -> Ints:
        """All terms below one, and the term itself, as ascending places."""
        rows = self.lineage.rows
        return rows.owner[rows.values == place]

    def branches(self, root: str | None = None) -> Branches:
        """The children of ``root`` and what lies below each; of the only root when none is named.

        With several roots and none named, the roots themselves are the branches.
        """
        if root is not None:
            tops = self.children[self.place(root)]
        else:
            tops = self.children[int(self.roots[0])] if len(self.roots) == 1 else self.roots
        column = np.full(len(self), -1)
        column[tops] = np.arange(len(tops))
        rows = self.lineage.rows
        inside = column[rows.values] >= 0
        member = np.zeros((len(self), len(tops)), dtype=bool)
        member[rows.owner[inside], column[rows.values[inside]]] = True
        return Branches(tops, member)

    # ---- identity -----------------------------------------------------------------------------

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the terms, their texts and their edges: equal content, equal fingerprint."""
        edges = [self.parents.starts.tolist(), self.parents.values.tolist()]
        content = [self.ids, self.labels, self.synonyms, self.definitions, edges]
        return hashlib.sha256(json.dumps(content, ensure_ascii=False).encode("utf-8")).hexdigest()
