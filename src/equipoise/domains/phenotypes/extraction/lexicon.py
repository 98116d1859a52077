"""Names that the ontology lacks: clinical abbreviations, lay English, and German names of frequent findings.

Written for this project. Each line of ``lexicon_en.txt`` and ``lexicon_de.txt`` is the label of a term and the names
that are added to it. They are matched like the synonyms of the ontology, in any word order, inflection and spelling;
abbreviations must have the same upper and lower case.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from equipoise.domains.phenotypes.ontology.ontology import Ontology


def additional_names(ontology: Ontology, language: str) -> Iterator[tuple[str, int]]:
    """The names of a language with the indices of their terms; labels that the ontology lacks are skipped."""
    index_of = {label.casefold(): index for index, label in enumerate(ontology.labels)}
    for label, names in lexicon_entries(language):
        term = index_of.get(label.casefold())
        if term is not None:
            yield from ((name, term) for name in names)


@cache
def lexicon_entries(language: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The labels of a language with their names.

    >>> dict(lexicon_entries("en"))["Hypertension"][0]
    'HTN'
    """
    text = (files(__package__) / f"lexicon_{language}.txt").read_text(encoding="utf-8")
    entries = (line.partition(": ") for line in text.splitlines())
    return tuple((label, tuple(name.strip() for name in names.split(", "))) for label, _, names in entries)
