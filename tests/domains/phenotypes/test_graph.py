"""The graph as arrays, against networkx on graphs of every small shape."""

from __future__ import annotations

import networkx as nx
import pytest
from hypothesis import given, settings

from equipoise.errors import InputError
from equipoise.io.dag import Rows
from small_ontologies import ontologies, ontology_of, upward


@settings(max_examples=50)
@given(ontologies())
def test_ancestors_are_what_can_be_reached_upwards_in_the_fewest_steps(ontology):
    graph = upward(ontology)
    for place in range(len(ontology)):
        reached = nx.single_source_shortest_path_length(graph, place)
        rows = ontology.ancestor_table.rows
        found = dict(
            zip(
                rows[place].tolist(),
                ontology.ancestor_table.steps[rows.starts[place] : rows.starts[place + 1]],
                strict=True,
            )
        )
        assert found == reached
        assert ontology.ancestors(place).tolist() == sorted(reached)


@settings(max_examples=50)
@given(ontologies())
def test_descendants_are_ancestors_the_other_way_round(ontology):
    graph = upward(ontology)
    for place in range(len(ontology)):
        expected = sorted({place} | nx.ancestors(graph, place))
        assert ontology.descendants(place).tolist() == expected
        assert ontology.ancestor_table.below[place] == len(expected)


@settings(max_examples=50)
@given(ontologies())
def test_depth_is_the_shortest_path_from_a_root(ontology):
    down = upward(ontology).reverse()
    expected = nx.multi_source_dijkstra_path_length(down, set(ontology.roots.tolist()))
    assert ontology.depth.tolist() == [expected[place] for place in range(len(ontology))]


def test_a_cycle_is_refused_and_named():
    with pytest.raises(InputError, match=r"small.*is_a.*is_a"):
        ontology_of({"a": [], "b": ["a", "c"], "c": ["b"]})


def test_a_term_that_is_its_own_parent_is_a_cycle():
    with pytest.raises(InputError, match="is_a"):
        ontology_of({"a": [], "b": ["a", "b"]})


def test_branches_are_the_children_of_the_only_root():
    ontology = ontology_of({"r": [], "x": ["r"], "y": ["r"], "p": ["x"], "q": ["x", "y"], "s": ["p"]})
    branches = ontology.branches()
    assert [ontology.ids[top] for top in branches.tops] == ["x", "y"]
    below = {name: branches.member[ontology.index_of(name)].tolist() for name in "rxyqs"}
    assert below == {"r": [False] * 2, "x": [True, False], "y": [False, True], "q": [True, True], "s": [True, False]}


def test_branches_can_be_those_of_a_named_term():
    ontology = ontology_of({"r": [], "x": ["r"], "p": ["x"], "q": ["x"]})
    assert [ontology.ids[top] for top in ontology.branches("x").tops] == ["p", "q"]


def test_several_roots_are_branches_themselves():
    ontology = ontology_of({"r": [], "t": [], "x": ["r"]})
    assert ontology.branches().tops.tolist() == [0, 1]
    assert ontology.branches().member.tolist() == [[True, False], [False, True], [True, False]]


def test_rows_reversed_turn_parents_into_children():
    rows = Rows.of([[], [0], [0, 1]])
    assert [rows.reversed()[row].tolist() for row in range(3)] == [[1, 2], [2], []]
