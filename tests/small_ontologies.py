"""Ontologies that are small enough to check with a slow reference implementation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import networkx as nx
from hypothesis import strategies as st

from equipoise.domains.phenotypes.ontology import Ontology, ontology_from_file
from equipoise.io.obo import OboFile, OboTerm


def ontology_of(parents: Mapping[str, Sequence[str]]) -> Ontology:
    """Terms by id with the ids of their parents."""
    terms = tuple(
        OboTerm(id=name, name=f"label of {name}", parents=tuple(parent_ids)) for name, parent_ids in parents.items()
    )
    return ontology_from_file(OboFile("small.obo", title="small", terms=terms))


def upward(ontology: Ontology) -> nx.DiGraph:
    """The graph with an edge from the index of each term to the indices of its parents."""
    graph = nx.DiGraph()
    graph.add_nodes_from(range(len(ontology)))
    for child in range(len(ontology)):
        graph.add_edges_from((child, int(parent)) for parent in ontology.parents[child])
    return graph


@st.composite
def ontologies(draw: st.DrawFn) -> Ontology:
    """Up to a dozen terms, several roots and several parents, in an order that is not topological."""
    size = draw(st.integers(1, 12))
    order = draw(st.permutations(range(size)))
    parents: dict[str, list[str]] = {}
    for index, number in enumerate(order):
        parent_numbers = draw(st.lists(st.sampled_from(order[:index]), unique=True, max_size=3)) if index else []
        parents[f"T:{number:03}"] = [f"T:{parent:03}" for parent in parent_numbers]
    return ontology_of(dict(sorted(parents.items())))
