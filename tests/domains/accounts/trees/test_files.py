"""Trees from tables, edges, JSON, NetworkX and OBO files."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from tempfile import TemporaryDirectory

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.domains.accounts.trees.files import read_edges, read_json, read_table, tree_from_closure
from equipoise.domains.accounts.trees.read import from_networkx, read_obo_tree, read_tree
from equipoise.domains.accounts.trees.tree import InvalidTreeError, Tree
from equipoise.errors import DuplicateError, FormatError, InputError, UnknownNameError

EXPECTED = Tree.of(
    [("1", "Assets"), ("11", "Cash"), ("111", "Till")], [("11", "1"), ("111", "11")], source="expected"
).fingerprint


def test_a_table_has_one_row_per_node_with_any_column_names(file):
    for header in ("id,parent,name", "Account,Parent Account,Title", "code,parent_code,label"):
        tree = read_table(file(f"{header}\n1,,Assets\n11,1,Cash\n111,11,Till\n", "chart.csv"))
        assert tree.fingerprint == EXPECTED
    tree = read_table(
        file("nr\tabove\twhat\n1\t\tAssets\n11\t1\tCash\n111\t11\tTill\n", "chart.tsv"),
        id="nr",
        parent="above",
        name="what",
    )
    assert tree.fingerprint == EXPECTED


def test_names_are_optional(file):
    assert read_table(file("id,parent\na,\nb,a\n", "chart.csv")).names == ("a", "b")


@pytest.mark.parametrize(
    ("rows", "kind", "text", "excerpt"),
    [
        ("a,\nb,a\na,b\n", DuplicateError, "has the id a twice", ["2 | a,", "4 | a,b"]),
        ("a,\nb,x\n", InputError, "the parent of b is 'x'", ["3 | b,x"]),
        ("a,\nb,b\n", InputError, "b is its own parent", ["3 | b,b"]),
        ("a,b\nb,a\n", InputError, "a cycle of 2 nodes: a -> b -> a", ["2 | a,b", "3 | b,a"]),
        ("a,\n,a\n", FormatError, "line 3 has no id", ["3 | ,a"]),
    ],
)
def test_an_error_in_a_table_has_its_lines(file, rows, kind, text, excerpt):
    with pytest.raises(kind) as error_info:
        read_table(file(f"id,parent\n{rows}", "chart.csv"))
    assert text in str(error_info.value)
    assert error_info.value.excerpt.splitlines() == excerpt


def test_a_table_without_parents_or_with_a_mistyped_column_is_an_error(file):
    with pytest.raises(FormatError):
        read_table(file("id,name\n1,Assets\n", "chart.csv"))
    with pytest.raises(FormatError) as error_info:
        read_table(file("id,parent\n1,\n", "chart.csv"), parent="parents")
    assert error_info.value.hint == "did you mean parent?"


def test_records_may_omit_optional_keys(file):
    records = [{"id": "a"}, {"id": "b", "parent": "a", "name": "B"}]
    for text, name in ((json.dumps(records), "a.json"), ("\n".join(map(json.dumps, records)), "a.jsonl")):
        tree = read_tree(file(text, name))
        assert (tree.named_edges(), tree.names) == ([("b", "a")], ("a", "B"))
    with pytest.raises(FormatError, match="row 1"):
        read_json(file('[{"name": "A"}, {"id": "b", "parent": "a"}]', "a.json"))


def test_semicolons_and_tabs_separate_a_table_without_commas_in_its_header(file):
    for separator in (";", "\t"):
        lines = ["id,parent,name", "1,,Assets", "11,1,Cash", "111,11,Till"]
        text = "\n".join(line.replace(",", separator) for line in lines)
        assert read_table(file(text, "chart.csv")).fingerprint == EXPECTED
        assert read_tree(file(text, "chart.csv")).fingerprint == EXPECTED
        assert read_tree(file(text, "chart.txt")).fingerprint == EXPECTED


def test_a_first_line_that_may_be_a_header_is_in_the_source_text(file):
    text = "Konto,Oberkonto\nb,a\nc,a\n"
    tree = read_edges(file(text, "edges.csv"))
    assert tree.source.endswith("edges.csv (line 1 was read as an edge: Konto -> Oberkonto)")
    for unambiguous in ("child,parent\nx,y\nb,a\n", "b,a\nc,a\n", "b,a\n"):
        assert read_edges(file(unambiguous, "edges.csv")).source.endswith("edges.csv")


def test_edges_are_read_with_and_without_header_and_weight(file):
    for text in ("b,a\nc,b\n", "child,parent\nb,a\nc,b\n", "id1,id2,weight\nb,a,1\nc,b,1\n"):
        tree = read_edges(file(text, "edges.csv"))
        assert tree.named_edges() == [("b", "a"), ("c", "b")]
    assert read_edges(file("parent\tchild\na\tb\n", "edges.tsv")).named_edges() == [("b", "a")]


@pytest.mark.parametrize(
    ("text", "kind", "lines"),
    [
        ("a,b\nb,c\nc,d\nd,b\n", InputError, ["2 | b,c", "3 | c,d", "4 | d,b"]),
        ("a,b\nx,x\n", InputError, ["2 | x,x"]),
        ("a,b\nc,b\na,b\n", DuplicateError, ["1 | a,b", "3 | a,b"]),
    ],
)
def test_invalid_edges_are_an_error_with_their_lines_and_all_rows(file, text, kind, lines):
    with pytest.raises(kind) as error_info:
        read_edges(file(text, "edges.csv"))
    assert error_info.value.excerpt.splitlines() == lines
    assert isinstance(error_info.value, InvalidTreeError)
    assert len(error_info.value.rows.edges) == text.count("\n")


def test_a_closure_file_gives_its_transitive_reduction(file):
    text = "id1,id2,weight\nc,b,1\nc,a,1\nb,a,1\n"
    tree = read_edges(file(text, "closure.csv"), closure=True)
    assert tree.named_edges() == [("c", "b"), ("b", "a")]
    assert len(tree.closure()) == 3


def test_closed_pairs_are_recognised_as_a_closure_with_a_note(file):
    text = "c,b\nc,a\nb,a\n"
    tree = read_edges(file(text, "closure.csv"))
    assert tree.named_edges() == [("c", "b"), ("b", "a")]
    assert tree.source.endswith("closure.csv (read as a closure)")
    assert len(read_edges(file(text, "closure.csv"), closure=False).edges) == 3


@given(st.sets(st.tuples(st.integers(0, 8), st.integers(0, 8)).filter(lambda pair: pair[0] > pair[1]), min_size=1))
def test_edges_are_a_closure_only_if_they_are_closed_and_not_reduced(pairs):
    graph = nx.DiGraph((str(low), str(high)) for low, high in pairs)
    is_closed = set(nx.transitive_closure_dag(graph).edges) == set(graph.edges)
    is_reducible = set(nx.transitive_reduction(graph).edges) != set(graph.edges)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "edges.csv"
        path.write_text("child,parent\n" + "".join(f"{low},{high}\n" for low, high in graph.edges))
        recognised = read_edges(path).source.endswith("(read as a closure)")
    assert recognised == (is_closed and is_reducible)


@given(st.sets(st.tuples(st.integers(0, 8), st.integers(0, 8)).filter(lambda pair: pair[0] > pair[1]), min_size=1))
def test_a_closure_is_reduced_as_by_networkx(pairs):
    graph = nx.transitive_closure_dag(nx.DiGraph((str(low), str(high)) for low, high in pairs))
    tree = tree_from_closure(Tree.from_edges(graph.edges), "closure")
    assert set(tree.named_edges()) == set(nx.transitive_reduction(graph).edges)
    assert {(tree.ids[low], tree.ids[high]) for low, high in tree.closure()} == set(graph.edges)


def test_pairs_that_are_not_closed_are_an_error_with_an_example(file):
    with pytest.raises(InputError, match=r"->.*->.*->.*missing pairs: 1"):
        read_edges(file("c,b\nb,a\n", "closure.csv"), closure=True)


def test_json_is_nested_or_flat(file):
    nested = {"id": 1, "name": "Assets", "children": [{"id": 11, "name": "Cash", "children": []}]}
    nested["children"][0]["children"].append({"id": 111, "name": "Till"})
    flat_rows = [
        {"id": 1, "parent": None, "name": "Assets"},
        {"id": 11, "parent": 1, "name": "Cash"},
        {"id": 111, "parent": 11, "name": "Till"},
    ]
    for value in (nested, [nested], flat_rows):
        assert read_json(file(json.dumps(value), "chart.json")).fingerprint == EXPECTED


def test_nested_objects_without_ids_have_their_path_as_id(file):
    value = [
        {"name": "Shop", "children": [{"name": "Cash"}]},
        {"name": "Stall", "children": [{"name": "Cash"}]},
    ]
    tree = read_json(file(json.dumps(value), "chart.json"))
    assert tree.ids == ("Shop", "Shop / Cash", "Stall", "Stall / Cash")
    assert tree.names == ("Shop", "Cash", "Stall", "Cash")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"name": "a"}, "'children'"),
        ({"name": "a", "children": {}}, None),
        ({"name": "a", "children": "b"}, "'a'"),
        ({"name": "a", "children": ["b"]}, "'b'.*'a'"),
        ({"children": []}, "id nor name"),
        ([1, 2], "list"),
    ],
)
def test_json_without_a_tree_is_an_error(file, value, text):
    path = file(json.dumps(value), "chart.json")
    if text is None:
        assert len(read_json(path)) == 1
        return
    with pytest.raises(FormatError, match=text):
        read_json(path)


def test_a_networkx_graph_has_edges_down_or_up():
    down = nx.balanced_tree(2, 2, create_using=nx.DiGraph)
    tree = from_networkx(down)
    assert [tree.ids[root] for root in tree.roots] == ["0"]
    assert from_networkx(down.reverse(), direction="up").fingerprint == tree.fingerprint
    assert from_networkx(down, direction="up").roots.tolist() == tree.leaves.tolist()
    down.nodes[0]["name"] = "top node"
    assert from_networkx(down).names[0] == "top node"


def test_a_networkx_graph_without_a_direction_is_an_error():
    with pytest.raises(InputError):
        from_networkx(nx.path_graph(3))
    with pytest.raises(UnknownNameError, match="'sideways'"):
        from_networkx(nx.DiGraph([(1, 2)]), direction="sideways")
    with pytest.raises(DuplicateError, match="id 1"):
        from_networkx(nx.DiGraph([(1, "1")]))


def test_an_obo_tree_has_the_is_a_relation_without_obsolete_terms(tmp_path):
    text = """format-version: 1.2

[Term]
id: X:1
name: thing

[Term]
id: X:2
name: part
is_a: X:1 ! thing

[Term]
id: X:3
name: both
is_a: X:1
is_a: X:2

[Term]
id: X:4
name: old
is_obsolete: true
"""
    (tmp_path / "x.obo.gz").write_bytes(gzip.compress(text.encode()))
    tree = read_obo_tree(tmp_path / "x.obo.gz")
    assert tree.names == ("thing", "part", "both")
    assert set(tree.named_edges()) == {("X:2", "X:1"), ("X:3", "X:1"), ("X:3", "X:2")}
