"""Trees of ontologies: the is_a relation of an OBO file."""

from __future__ import annotations

from equipoise.data.obo import read_obo
from equipoise.data.text import PathLike, shown
from equipoise.hierarchy.tree import Tree


def read_obo_tree(path: PathLike) -> Tree:
    """The terms of an OBO file or an OBO graph and their ``is_a`` parents; obsolete terms are left out."""
    terms = [term for term in read_obo(path).terms if not term.obsolete]
    return Tree.of(
        [(term.id, term.name) for term in terms],
        [(term.id, parent) for term in terms for parent in dict.fromkeys(term.parents)],
        source=shown(path),
    )
