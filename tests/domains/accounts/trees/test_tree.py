"""Trees: errors, and every property compared with networkx."""

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
    """Nodes in any order, and edges to nodes drawn earlier, which prevents cycles."""
    count = draw(st.integers(1, 12))
    ordered = draw(st.permutations([f"n{index}" for index in range(count)]))
    possible = [(ordered[low], ordered[high]) for low in range(count) for high in range(low)]
    edges = draw(st.lists(st.sampled_from(possible), unique=True)) if possible else []
    return draw(st.permutations(ordered)), edges


def graph_of(nodes: list[str], edges: list[tuple[str, str]]) -> nx.DiGraph:
    """The same hierarchy in networkx, edges leading down."""
    graph = nx.DiGraph()
    graph.add_nodes_from(nodes)
    graph.add_edges_from((parent, child) for child, parent in edges)
    return graph


def named_pairs(tree: Tree, pairs: np.ndarray) -> set[tuple[str, str]]:
    return {(tree.ids[left], tree.ids[right]) for left, right in pairs}


@given(hierarchies())
def test_the_closure_equals_networkx_with_each_pair_once(hierarchy):
    nodes, edges = hierarchy
    tree, graph = Tree.of(nodes, edges), graph_of(nodes, edges)
    expected = {(node, ancestor) for node in nodes for ancestor in nx.ancestors(graph, node)}
    assert named_pairs(tree, tree.closure()) == expected
    assert len(tree.closure()) == len(expected)


@given(hierarchies())
def test_depth_and_height_are_the_shortest_and_the_longest_paths_of_networkx(hierarchy):
    nodes, edges = hierarchy
    tree, graph = Tree.of(nodes, edges), graph_of(nodes, edges)
    roots = [node for node in nodes if graph.in_degree(node) == 0]
    for position, node in enumerate(nodes):
        depth = min(nx.shortest_path_length(graph, root, node) for root in roots if nx.has_path(graph, root, node))
        subgraph = graph.subgraph({node} | nx.descendants(graph, node))
        height = nx.dag_longest_path_length(subgraph)
        assert (tree.depth[position], tree.height[position]) == (depth, height)
        expected = depth / (depth + height) if depth + height else np.nan
        np.testing.assert_equal(tree.normalised_rank[position], expected)


@given(hierarchies())
def test_roots_leaves_parents_and_children_equal_networkx(hierarchy):
    nodes, edges = hierarchy
    tree, graph = Tree.of(nodes, edges), graph_of(nodes, edges)
    assert [tree.ids[root] for root in tree.roots] == [node for node in nodes if not graph.in_degree(node)]
    assert [tree.ids[leaf] for leaf in tree.leaves] == [node for node in nodes if not graph.out_degree(node)]
    for position, node in enumerate(nodes):
        assert {tree.ids[node_position] for node_position in tree.parents(position)} == set(graph.predecessors(node))
        assert {tree.ids[node_position] for node_position in tree.children(position)} == set(graph.successors(node))


@given(hierarchies())
def test_a_branch_is_the_first_top_at_the_shortest_path(hierarchy):
    nodes, edges = hierarchy
    tree, graph = Tree.of(nodes, edges), graph_of(nodes, edges)
    inner_roots = [node for node in nodes if not graph.in_degree(node) and graph.out_degree(node)]
    tops = inner_roots if len(inner_roots) != 1 else list(graph.successors(inner_roots[0]))
    for node, branch in zip(nodes, tree.branches, strict=True):
        distances = [
            (nx.shortest_path_length(graph, top, node), nodes.index(top), top)
            for top in tops
            if nx.has_path(graph, top, node)
        ]
        assert branch == (min(distances)[2] if distances else node)


@given(hierarchies(), st.data())
def test_a_subtree_is_a_node_and_its_descendants(hierarchy, data):
    nodes, edges = hierarchy
    top = data.draw(st.sampled_from(nodes))
    expected_nodes = {top} | nx.descendants(graph_of(nodes, edges), top)
    tree = Tree.of(nodes, edges).subtree(top)
    assert tree.ids == tuple(node for node in nodes if node in expected_nodes)
    assert set(tree.named_edges()) == {edge for edge in edges if set(edge) <= expected_nodes}


@given(hierarchies())
def test_an_added_root_joins_a_forest_and_increases_depths_by_one(hierarchy):
    tree = Tree.of(*hierarchy)
    rooted = tree.rooted()
    assert len(rooted.roots) == 1
    assert rooted.ids[: len(tree)] == tree.ids
    assert (rooted is tree) == (len(tree.roots) == 1)
    if rooted is not tree:
        assert (rooted.depth[:-1] == tree.depth + 1).all()


@given(hierarchies(), st.randoms())
def test_the_fingerprint_depends_on_content_and_not_on_the_order_of_edges(hierarchy, random):
    nodes, edges = hierarchy
    tree = Tree.of(nodes, edges)
    shuffled = random.sample(edges, len(edges))
    assert Tree.of(nodes, shuffled, source="elsewhere").fingerprint == tree.fingerprint
    renamed = [(nodes[0], "another name"), *nodes[1:]]
    assert Tree.of(renamed, edges).fingerprint != tree.fingerprint
    if edges:
        assert Tree.of(nodes, edges[1:]).fingerprint != tree.fingerprint


def test_relations_are_the_parent_all_ancestors_or_both_directions():
    tree = Tree.from_edges(CHART)
    ancestor_pairs = {("cash", "assets"), ("till", "cash"), ("till", "assets"), ("bank", "assets"), ("sales", "income")}
    assert named_pairs(tree, tree.pairs("parent")) == set(CHART)
    assert named_pairs(tree, tree.pairs("ancestors")) == ancestor_pairs
    assert named_pairs(tree, tree.pairs("closure")) == ancestor_pairs | {
        (above, below) for below, above in ancestor_pairs
    }
    with pytest.raises(UnknownNameError) as error_info:
        tree.pairs("ancestor")
    assert error_info.value.hint == "did you mean ancestors?"


def test_names_are_optional_and_default_to_the_id():
    tree = Tree.from_edges(CHART, names={"till": "The till"})
    assert tree.names[tree.position("till")] == "The till"
    assert tree.names[tree.position("bank")] == "bank"
    assert repr(tree) == "Tree('edges', 6 nodes, 4 edges, 2 roots, 3 levels)"


def test_an_unknown_node_is_an_error_with_a_suggestion():
    with pytest.raises(UnknownNameError, match=r"edges.*'asset'") as error_info:
        Tree.from_edges(CHART).subtree("asset")
    assert error_info.value.hint == "did you mean assets?"


@pytest.mark.parametrize(
    ("nodes", "edges", "kind", "text"),
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
def test_invalid_hierarchies_are_errors(nodes, edges, kind, text):
    with pytest.raises(kind) as error_info:
        Tree.of(nodes, edges, source="chart")
    assert text in str(error_info.value)
    assert error_info.value.hint
    assert error_info.value.exit_code == 2


def test_a_long_cycle_is_shortened_in_the_message():
    nodes = [f"n{number}" for number in range(40)]
    with pytest.raises(InputError, match="40 nodes") as error_info:
        Tree.of(nodes, zip(nodes, [*nodes[1:], nodes[0]], strict=True))
    assert "... 30 more" in str(error_info.value)


def test_a_thousand_levels_do_not_exceed_the_recursion_limit():
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
def test_the_first_parent_is_the_first_one_on_a_shortest_path(pairs):
    tree = Tree.of([f"n{node}" for node in range(10)], [(f"n{low}", f"n{high}") for low, high in pairs])
    for node in range(10):
        parents = [high for low, high in pairs if low == node]
        nearest = [node_position for node_position in parents if tree.depth[node_position] == tree.depth[node] - 1]
        assert tree.first_parents[node] == (nearest[0] if parents else -1)


def test_a_node_is_found_by_its_id_or_by_a_unique_name() -> None:
    tree = Tree.of([("1", "Assets"), ("2", "Cash"), ("3", "Cash")], [("2", "1"), ("3", "1")])
    assert [tree.position(key) for key in ("2", "Assets")] == [1, 0]
    with pytest.raises(InputError, match=r"2 nodes of .*'Cash'"):
        tree.position("Cash")
    with pytest.raises(UnknownNameError):
        tree.position("Bank")
    with pytest.raises(InputError, match="'Assets:Cash'"):
        tree.position("Assets:Cash")
    renamed = Tree.of([("1", "Assets"), ("2", "Loans"), ("3", "Bank"), ("4", "Bank")], [("3", "1"), ("4", "2")])
    assert [renamed.position(key) for key in ("Assets:Bank", "Loans:Bank", "Loans")] == [2, 3, 1]
    assert tree.first_ancestors(2) == [0]
    assert tree.first_ancestors(0) == []
