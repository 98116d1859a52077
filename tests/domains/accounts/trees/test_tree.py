"""Trees: what they refuse, and every number of theirs against networkx."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.domains.accounts.trees.tree import Tree
from equipoise.errors import DuplicateError, InputError, UnknownNameError

CHART = [("cash", "assets"), ("till", "cash"), ("bank", "assets"), ("sales", "income")]


@st.composite
def hierarchies(draw: st.DrawFn) -> tuple[list[str], list[tuple[str, str]]]:
    """Nodes in any order, and edges that lead to nodes drawn earlier, so that no cycle comes about."""
    count = draw(st.integers(1, 12))
    order = draw(st.permutations([f"n{number}" for number in range(count)]))
    possible = [(order[low], order[high]) for low in range(count) for high in range(low)]
    edges = draw(st.lists(st.sampled_from(possible), unique=True)) if possible else []
    return draw(st.permutations(order)), edges


def graph_of(nodes: list[str], edges: list[tuple[str, str]]) -> nx.DiGraph:
    """The same hierarchy in networkx, edges leading down."""
    graph = nx.DiGraph()
    graph.add_nodes_from(nodes)
    graph.add_edges_from((parent, child) for child, parent in edges)
    return graph


def named(tree: Tree, pairs: np.ndarray) -> set[tuple[str, str]]:
    return {(tree.ids[left], tree.ids[right]) for left, right in pairs}


@given(hierarchies())
def test_the_closure_is_that_of_networkx_each_pair_once(made):
    nodes, edges = made
    tree, graph = Tree.of(nodes, edges), graph_of(nodes, edges)
    expected = {(node, above) for node in nodes for above in nx.ancestors(graph, node)}
    assert named(tree, tree.closure()) == expected
    assert len(tree.closure()) == len(expected)


@given(hierarchies())
def test_depth_and_height_are_the_shortest_and_the_longest_paths_of_networkx(made):
    nodes, edges = made
    tree, graph = Tree.of(nodes, edges), graph_of(nodes, edges)
    roots = [node for node in nodes if graph.in_degree(node) == 0]
    for place, node in enumerate(nodes):
        depth = min(nx.shortest_path_length(graph, root, node) for root in roots if nx.has_path(graph, root, node))
        below = graph.subgraph({node} | nx.descendants(graph, node))
        height = nx.dag_longest_path_length(below)
        assert (tree.depth[place], tree.height[place]) == (depth, height)
        expected = depth / (depth + height) if depth + height else np.nan
        np.testing.assert_equal(tree.normalised_rank[place], expected)


@given(hierarchies())
def test_roots_leaves_parents_and_children_are_those_of_networkx(made):
    nodes, edges = made
    tree, graph = Tree.of(nodes, edges), graph_of(nodes, edges)
    assert [tree.ids[root] for root in tree.roots] == [node for node in nodes if not graph.in_degree(node)]
    assert [tree.ids[leaf] for leaf in tree.leaves] == [node for node in nodes if not graph.out_degree(node)]
    for place, node in enumerate(nodes):
        assert {tree.ids[each] for each in tree.parents(place)} == set(graph.predecessors(node))
        assert {tree.ids[each] for each in tree.children(place)} == set(graph.successors(node))


@given(hierarchies())
def test_a_branch_is_the_first_top_at_the_shortest_path(made):
    nodes, edges = made
    tree, graph = Tree.of(nodes, edges), graph_of(nodes, edges)
    carriers = [node for node in nodes if not graph.in_degree(node) and graph.out_degree(node)]
    tops = carriers if len(carriers) != 1 else list(graph.successors(carriers[0]))
    for node, branch in zip(nodes, tree.branches, strict=True):
        ways = [
            (nx.shortest_path_length(graph, top, node), nodes.index(top), top)
            for top in tops
            if nx.has_path(graph, top, node)
        ]
        assert branch == (min(ways)[2] if ways else node)


@given(hierarchies(), st.data())
def test_a_subtree_is_a_node_and_its_descendants(made, data):
    nodes, edges = made
    top = data.draw(st.sampled_from(nodes))
    kept = {top} | nx.descendants(graph_of(nodes, edges), top)
    tree = Tree.of(nodes, edges).subtree(top)
    assert tree.ids == tuple(node for node in nodes if node in kept)
    assert set(tree.named_edges()) == {edge for edge in edges if set(edge) <= kept}


@given(hierarchies())
def test_an_invented_root_joins_a_forest_and_moves_nothing(made):
    tree = Tree.of(*made)
    rooted = tree.rooted()
    assert len(rooted.roots) == 1
    assert rooted.ids[: len(tree)] == tree.ids
    assert (rooted is tree) == (len(tree.roots) == 1)
    if rooted is not tree:
        assert (rooted.depth[:-1] == tree.depth + 1).all()


@given(hierarchies(), st.randoms())
def test_the_fingerprint_knows_content_and_not_the_order_of_edges(made, random):
    nodes, edges = made
    tree = Tree.of(nodes, edges)
    shuffled = random.sample(edges, len(edges))
    assert Tree.of(nodes, shuffled, source="elsewhere").fingerprint == tree.fingerprint
    renamed = [(nodes[0], "another name"), *nodes[1:]]
    assert Tree.of(renamed, edges).fingerprint != tree.fingerprint
    if edges:
        assert Tree.of(nodes, edges[1:]).fingerprint != tree.fingerprint


def test_relations_are_the_parent_all_ancestors_or_both_directions():
    tree = Tree.from_edges(CHART)
    up = {("cash", "assets"), ("till", "cash"), ("till", "assets"), ("bank", "assets"), ("sales", "income")}
    assert named(tree, tree.pairs("parent")) == set(CHART)
    assert named(tree, tree.pairs("ancestors")) == up
    assert named(tree, tree.pairs("closure")) == up | {(above, below) for below, above in up}
    with pytest.raises(UnknownNameError) as caught:
        tree.pairs("ancestor")
    assert caught.value.hint == "did you mean ancestors?"


def test_names_may_be_given_and_default_to_the_id():
    tree = Tree.from_edges(CHART, names={"till": "The till"})
    assert tree.names[tree.position("till")] == "The till"
    assert tree.names[tree.position("bank")] == "bank"
    assert repr(tree) == "Tree('edges', 6 nodes, 4 edges, 2 roots, 3 levels)"


def test_an_unknown_node_is_named_with_the_nearest():
    with pytest.raises(UnknownNameError, match=r"edges.*'asset'") as caught:
        Tree.from_edges(CHART).subtree("asset")
    assert caught.value.hint == "did you mean assets?"


@pytest.mark.parametrize(
    ("nodes", "edges", "kind", "sentence"),
    [
        (["a", "b", "a"], [], DuplicateError, "chart has the id a twice"),
        (["a", ""], [], InputError, "chart has a node with an empty id"),
        ([], [], InputError, "chart has no nodes"),
        (["a"], [("a", "z")], InputError, "chart: the parent of a is 'z', which does not exist"),
        (["a"], [("z", "a")], InputError, "the edge z -> a is of 'z', which does not exist"),
        (["a"], [("a", "a")], InputError, "chart: a is its own parent"),
        (["a", "b"], [("a", "b"), ("a", "b")], DuplicateError, "chart gives the edge a -> b twice"),
        (
            ["top", "a", "b", "c"],
            [("a", "top"), ("a", "b"), ("b", "c"), ("c", "a")],
            InputError,
            "chart has a cycle of 3 nodes: a -> b -> c -> a",
        ),
    ],
)
def test_what_is_no_hierarchy_is_refused_by_name(nodes, edges, kind, sentence):
    with pytest.raises(kind) as caught:
        Tree.of(nodes, edges, source="chart")
    assert sentence in str(caught.value)
    assert caught.value.hint
    assert caught.value.exit_code == 2


def test_a_long_cycle_is_shown_in_part():
    nodes = [f"n{number}" for number in range(40)]
    with pytest.raises(InputError, match="40 nodes") as caught:
        Tree.of(nodes, zip(nodes, [*nodes[1:], nodes[0]], strict=True))
    assert "... 30 more" in str(caught.value)


def test_a_thousand_levels_are_no_recursion():
    nodes = [str(number) for number in range(1000)]
    tree = Tree.of(nodes, zip(nodes[1:], nodes[:-1], strict=True))
    assert tree.height[0] == tree.depth[-1] == 999
    assert len(tree.closure()) == 1000 * 999 // 2


def test_the_edges_cannot_be_changed():
    tree = Tree.from_edges(CHART)
    with pytest.raises(ValueError, match="read-only"):
        tree.edges[0, 0] = 3


PAIRS = st.tuples(st.integers(0, 9), st.integers(0, 9)).filter(lambda pair: pair[0] > pair[1])


@given(st.lists(PAIRS, unique=True))
def test_a_first_parent_stands_on_a_shortest_way_and_comes_first(pairs):
    tree = Tree.of([f"n{node}" for node in range(10)], [(f"n{low}", f"n{high}") for low, high in pairs])
    for node in range(10):
        above = [high for low, high in pairs if low == node]
        nearest = [each for each in above if tree.depth[each] == tree.depth[node] - 1]
        assert tree.first_parents[node] == (nearest[0] if above else -1)


def test_a_node_is_found_by_its_id_or_by_a_name_that_no_other_node_has() -> None:
    tree = Tree.of([("1", "Assets"), ("2", "Cash"), ("3", "Cash")], [("2", "1"), ("3", "1")])
    assert [tree.position(key) for key in ("2", "Assets")] == [1, 0]
    with pytest.raises(InputError, match=r"2 nodes of .* have the name 'Cash'"):
        tree.position("Cash")
    with pytest.raises(UnknownNameError):
        tree.position("Bank")
    with pytest.raises(InputError, match="have the name 'Assets:Cash'"):
        tree.position("Assets:Cash")
    renamed = Tree.of([("1", "Assets"), ("2", "Loans"), ("3", "Bank"), ("4", "Bank")], [("3", "1"), ("4", "2")])
    assert [renamed.position(key) for key in ("Assets:Bank", "Loans:Bank", "Loans")] == [2, 3, 1]
    assert tree.first_ancestors(2) == [0]
    assert tree.first_ancestors(0) == []
