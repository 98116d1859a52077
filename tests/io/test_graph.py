"""Edge lists: headers, separators and errors; cycles."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.errors import FormatError
from equipoise.io.dag import Edge, edge_lines, find_cycle


@pytest.fixture
def write_file(tmp_path):
    def write(text: str, name: str = "tree.csv"):
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return write


def edges(path: Path) -> list[Edge]:
    return [edge for _, edge in edge_lines(path)[1]]


def test_lines_are_child_and_parent(write_file):
    expected = [("cat", "mammal"), ("cat", "pet"), ("mammal", "animal")]
    assert edges(write_file("cat,mammal\ncat, pet\n\nmammal,animal\n")) == expected
    assert edges(write_file("cat\tmammal\ncat\tpet\nmammal\tanimal\n", "tree.tsv")) == expected
    assert edges(write_file("cat\tmammal\ncat\tpet\nmammal\tanimal\n", "tree.txt")) == expected


def test_headers_are_not_edges_and_set_the_order(write_file):
    assert edges(write_file("child,parent\na,b\n")) == [("a", "b")]
    assert edges(write_file("Parent,Child\nb,a\n")) == [("a", "b")]
    assert edges(write_file("node,id\n")) == [("node", "id")]


@pytest.mark.parametrize(
    ("header", "parent_first"),
    [
        ("child_account,parent_account", False),
        ("account,belongs_to", False),
        ("ParentId,ChildId", True),
        ("Account No,Parent Account No", False),
    ],
)
def test_headers_of_other_names_are_recognised_unless_used_as_nodes(write_file, header, parent_first):
    result = edges(write_file(f"{header}\nb,a\nc,a\n"))
    assert result == ([("a", "b"), ("a", "c")] if parent_first else [("b", "a"), ("c", "a")])
    first, second = header.split(",")
    assert edges(write_file(f"{header}\nb,{first}\n"))[0] == (first, second)


@pytest.mark.parametrize("line", ["Bank account,Asset account", "item,category", "a,the", "cash,assets"])
def test_first_edges_are_not_mistaken_for_headers(write_file, line):
    assert edges(write_file(f"{line}\nc,b\n"))[0] == tuple(line.split(","))


def test_semicolons_and_tabs_separate_columns(write_file):
    for text in ("child;parent\nb,1;a,1\n", "child\tparent\nb,1\ta,1\n"):
        assert edges(write_file(text)) == [("b,1", "a,1")]


def test_weight_columns_are_ignored(write_file):
    assert edges(write_file("id1,id2,weight\na,b,1\nc,b,0.5\n")) == [("a", "b"), ("c", "b")]
    assert edges(write_file("parent\tchild\tweight\nb\ta\t1\n", "tree.tsv")) == [("a", "b")]
    with pytest.raises(FormatError, match="line 2"):
        edges(write_file("id1,id2,weight\na,b\n"))


@pytest.mark.parametrize("line", ["a", "a,b,c", "a,", ",b"])
def test_invalid_edges_raise_format_error_with_the_line(write_file, line):
    with pytest.raises(FormatError, match="line 2"):
        edges(write_file(f"x,y\n{line}\n"))


def has_cycle(pairs: list[tuple[str, str]]) -> bool:
    """Remove edges of leaves (nodes without children) until none are left or none can be removed."""
    remaining = set(pairs)
    while remaining:
        with_parent = {edge for edge in remaining if edge[0] in {parent for _, parent in remaining}}
        if with_parent == remaining:
            return True
        remaining = with_parent
    return False


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from("abcdef")), max_size=9))
def test_find_cycle_agrees_with_leaf_removal(pairs):
    cycle = find_cycle(pairs)
    assert bool(cycle) == has_cycle(pairs)
    assert set(zip(cycle, [*cycle[1:], *cycle[:1]], strict=True)) <= set(pairs)


@pytest.mark.slow
def test_long_chains_need_no_recursion():
    chain = [(str(i), str(i + 1)) for i in range(50_000)]
    assert find_cycle(chain) == []
    assert len(find_cycle([*chain, ("50000", "0")])) == 50_001
