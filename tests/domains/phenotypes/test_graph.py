"""The graph as arrays, compared with networkx on small graphs."""

from __future__ import annotations

import networkx as nx
import pytest
from hypothesis import given, settings

from equipoise.errors import InputError
from equipoise.io.dag import Rows
from small_ontologies import ontologies, ontology_of, upward


@settings(max_examples=50)
@given(ontologies())
def test_ancestors_have_the_fewest_steps_upwards(ontology):
    graph = upward(ontology)
    for node in range(len(ontology)):
        expected = nx.single_source_shortest_path_length(graph, node)
        rows = ontology.ancestor_table.rows
        steps = dict(
            zip(
                rows[node].tolist(),
                ontology.ancestor_table.steps[rows.starts[node] : rows.starts[node + 1]],
                strict=True,
            )
        )
        assert steps == expected
        assert ontology.ancestors(node).tolist() == sorted(expected)


@settings(max_examples=50)
@given(ontologies())
def test_descendants_are_the_reverse_of_ancestors(ontology):
    graph = upward(ontology)
    for node in range(len(ontology)):
        expected = sorted({node} | nx.ancestors(graph, node))
        assert ontology.descendants(node).tolist() == expected
        assert ontology.ancestor_table.below[node] == len(expected)


@settings(max_examples=50)
@given(ontologies())
def test_depth_is_the_shortest_path_from_a_root(ontology):
    down = upward(ontology).reverse()
    expected = nx.multi_source_dijkstra_path_length(down, set(ontology.roots.tolist()))
    assert ontology.depth.tolist() == [expected[node] for node in range(len(ontology))]


def test_a_cycle_is_an_error_with_its_terms():
    with pytest.raises(InputError, match=r"small.*is_a.*is_a"):
        ontology_of({"a": [], "b": ["a", "c"], "c": ["b"]})


def test_a_term_with_itself_as_parent_is_a_cycle():
    with pytest.raises(InputError, match="is_a"):
        ontology_of({"a": [], "b": ["a", "b"]})


def test_branches_are_the_children_of_the_only_root():
    ontology = ontology_of({"r": [], "x": ["r"], "y": ["r"], "p": ["x"], "q": ["x", "y"], "s": ["p"]})
    branches = ontology.branches()
    assert [ontology.ids[top] for top in branches.tops] == ["x", "y"]
    membership = {name: branches.member[ontology.index_of(name)].tolist() for name in "rxyqs"}
    assert membership == {
        "r": [False] * 2,
        "x": [True, False],
        "y": [False, True],
        "q": [True, True],
        "s": [True, False],
    }


def test_branches_of_a_given_term_are_its_children():
    ontology = ontology_of({"r": [], "x": ["r"], "p": ["x"], "q": ["x"]})
    assert [ontology.ids[top] for top in ontology.branches("x").tops] == ["p", "q"]


def test_several_roots_are_branches_themselves():
    ontology = ontology_of({"r": [], "t": [], "x": ["r"]})
    assert ontology.branches().tops.tolist() == [0, 1]
    assert ontology.branches().member.tolist() == [[True, False], [False, True], [True, False]]


def test_reversed_rows_turn_parents_into_children():
    rows = Rows.of([[], [0], [0, 1]])
    assert [rows.reversed()[row].tolist() for row in range(3)] == [[1, 2], [2], []]
