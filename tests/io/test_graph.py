"""Edge lists, and the cycles they must not have."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.errors import DuplicateError, FormatError, InputError
from equipoise.io.dag import edges, find_cycle


@pytest.fixture
def file(tmp_path):
    def written(text: str, name: str = "tree.csv"):
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return written


def test_a_line_is_a_child_and_its_parent(file):
    expected = [("cat", "mammal"), ("cat", "pet"), ("mammal", "animal")]
    assert edges(file("cat,mammal\ncat, pet\n\nmammal,animal\n")) == expected
    assert edges(file("cat\tmammal\ncat\tpet\nmammal\tanimal\n", "tree.tsv")) == expected
    assert edges(file("cat\tmammal\ncat\tpet\nmammal\tanimal\n", "tree.txt")) == expected


def test_a_header_is_no_edge_and_decides_the_order(file):
    assert edges(file("child,parent\na,b\n")) == [("a", "b")]
    assert edges(file("Parent,Child\nb,a\n")) == [("a", "b")]
    assert edges(file("node,id\n")) == [("node", "id")]


@pytest.mark.parametrize(
    ("header", "upside_down"),
    [
        ("child_account,parent_account", False),
        ("account,belongs_to", False),
        ("ParentId,ChildId", True),
        ("Account No,Parent Account No", False),
    ],
)
def test_a_header_of_other_words_is_known_where_they_stand_nowhere_else(file, header, upside_down):
    found = edges(file(f"{header}\nb,a\nc,a\n"))
    assert found == ([("a", "b"), ("a", "c")] if upside_down else [("b", "a"), ("c", "a")])
    first, second = header.split(",")
    assert edges(file(f"{header}\nb,{first}\n"))[0] == (first, second)


@pytest.mark.parametrize("line", ["Bank account,Asset account", "item,category", "a,the", "cash,assets"])
def test_a_first_edge_that_does_not_read_like_names_of_columns_stays_one(file, line):
    assert edges(file(f"{line}\nc,b\n"))[0] == tuple(line.split(","))


def test_semicolons_and_tabs_separate_where_there_is_no_comma(file):
    for text in ("child;parent\nb,1;a,1\n", "child\tparent\nb,1\ta,1\n"):
        assert edges(file(text)) == [("b,1", "a,1")]


def test_a_header_may_name_a_weight_which_is_passed_over(file):
    assert edges(file("id1,id2,weight\na,b,1\nc,b,0.5\n")) == [("a", "b"), ("c", "b")]
    assert edges(file("parent\tchild\tweight\nb\ta\t1\n", "tree.tsv")) == [("a", "b")]
    with pytest.raises(FormatError, match="line 2"):
        edges(file("id1,id2,weight\na,b\n"))


def test_a_cycle_is_named_with_its_lines(file):
    with pytest.raises(InputError, match="has a cycle: b -> c -> d -> b") as caught:
        edges(file("a,b\nb,c\nc,d\nd,b\n"))
    assert caught.value.excerpt.splitlines() == ["2 | b,c", "3 | c,d", "4 | d,b"]
    with pytest.raises(InputError, match="a cycle: x -> x"):
        edges(file("x,x\n"))


@pytest.mark.parametrize("line", ["a", "a,b,c", "a,", ",b"])
def test_what_is_no_edge_is_shown(file, line):
    with pytest.raises(FormatError, match="line 2"):
        edges(file(f"x,y\n{line}\n"))


def test_an_edge_twice_names_both_lines(file):
    with pytest.raises(DuplicateError, match="lines 1 and 3"):
        edges(file("a,b\nc,b\na,b\n"))


def has_cycle(pairs: list[tuple[str, str]]) -> bool:
    """Take away leaves (nodes that are nobody's parent) until nothing is left or nothing can go."""
    left = set(pairs)
    while left:
        kept = {edge for edge in left if edge[0] in {parent for _, parent in left}}
        if kept == left:
            return True
        left = kept
    return False


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from("abcdef")), max_size=9))
def test_a_cycle_is_found_where_there_is_one_and_is_one(pairs):
    cycle = find_cycle(pairs)
    assert bool(cycle) == has_cycle(pairs)
    assert set(zip(cycle, [*cycle[1:], *cycle[:1]], strict=True)) <= set(pairs)


@pytest.mark.slow
def test_a_long_chain_needs_no_recursion():
    chain = [(str(i), str(i + 1)) for i in range(50_000)]
    assert find_cycle(chain) == []
    assert len(find_cycle([*chain, ("50000", "0")])) == 50_001
