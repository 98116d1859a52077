"""Reports of all problems in a tree, and accounts whose parent does not exist."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.checks.base import run_checks
from equipoise.domains.accounts.checks import duplicate_names, single_child_chains, tree_problems
from equipoise.domains.accounts.trees.read import read_tree
from equipoise.domains.accounts.trees.tree import ORPHAN_POLICIES, InvalidTreeError, Tree, TreeRows, with_orphans
from equipoise.errors import ParameterError

IDS = st.sampled_from(["", "1", "2", "3", "4", "5"])
ROWS = st.builds(
    TreeRows,
    st.lists(st.tuples(IDS, st.sampled_from(["", "Cash", "Bank"])), max_size=8),
    st.lists(st.tuples(IDS.filter(bool), IDS.filter(bool)), max_size=8),
    st.just("rows"),
)
FATAL = {"EQ170", "EQ171", "EQ172", "EQ173", "EQ175"}

INVALID_CHART = """\
id,parent,name
1,,Assets
11,1,Cash
11,1,Cash again
12,9,Bank
13,1,
2,2,Liabilities
21,22,A
22,21,B
,1,No id
3,1,cash
"""


def finding_codes(rows: TreeRows) -> set[str]:
    return {finding.code for finding in run_checks(rows)}


def test_all_problems_of_a_file_are_reported_together(tmp_path: Path) -> None:
    file = tmp_path / "bad.csv"
    file.write_text(INVALID_CHART)
    with pytest.raises(InvalidTreeError) as error_info:
        read_tree(file)
    assert error_info.value.rows is not None
    assert finding_codes(error_info.value.rows) == {"EQ170", "EQ171", "EQ172", "EQ173", "EQ175", "EQ176"}
    problems = tree_problems(error_info.value.rows, None)
    assert problems.nodes_by_depth == [1, 3]


@pytest.mark.parametrize(
    ("nodes", "edges", "code"),
    [
        ([("1", "A"), ("1", "B")], [], "EQ170"),
        ([("1", "A")], [("1", "1")], "EQ171"),
        ([("1", "A")], [("1", "0")], "EQ172"),
        ([("1", "A"), ("2", "B")], [("1", "2"), ("2", "1")], "EQ173"),
        ([("1", "A"), ("2", "B")], [("1", "2"), ("2", "1")], "EQ174"),
        ([("1", "A"), ("2", "B")], [("2", "1"), ("2", "1")], "EQ170"),
        ([("1", "A"), ("2", "B")], [], "EQ178"),
        ([("1", "A"), ("", "B")], [], "EQ175"),
        ([("1", "A"), ("2", "")], [], "EQ175"),
        ([("1", "Petty  cash"), ("2", "petty Cash")], [], "EQ176"),
        ([(key, "") for key in "abc"], [("b", "a"), ("c", "b")], "EQ177"),
    ],
)
def test_each_problem_has_a_code(nodes: list[tuple[str, str]], edges: list[tuple[str, str]], code: str) -> None:
    assert code in finding_codes(TreeRows(nodes, edges, "rows"))


def test_nodes_with_random_ids_are_reported_by_name() -> None:
    ids = [f"{index:032x}" for index in range(5)]
    nodes = list(zip(ids, ["Loans", "House", "Mortgage", "Mortgage", "Bank"], strict=True))
    rows = TreeRows(nodes, [(ids[1], ids[0]), (ids[2], ids[1]), (ids[3], ids[1])], "rows")
    assert "'Mortgage' under House" in next(duplicate_names(rows)).message
    rows = TreeRows(nodes[:3], rows.edges[:2], "rows")
    assert next(single_child_chains(rows)).message.endswith(": Loans -> House -> Mortgage")


def test_a_group_with_one_member_is_not_a_chain() -> None:
    nodes = [("1", "Assets"), ("11", "Cash"), ("2", "Loans")]
    assert not finding_codes(TreeRows(nodes, [("11", "1")], "rows"))


def test_a_regular_chart_has_no_findings() -> None:
    nodes = [("1", "Assets"), ("11", "Cash"), ("12", "Bank"), ("2", "Liabilities")]
    assert not finding_codes(TreeRows(nodes, [("11", "1"), ("12", "1")], "rows"))


@given(rows=ROWS)
def test_rows_without_fatal_findings_are_a_tree_and_others_are_not(rows: TreeRows) -> None:
    has_duplicate_edges = len(set(rows.edges)) < len(rows.edges)
    known = {key for key, _ in rows.nodes}
    has_unknown_child = any(child not in known for child, _ in rows.edges)
    fatal = finding_codes(rows) & FATAL
    only_names_are_empty = all(key for key, _ in rows.nodes)
    if only_names_are_empty:
        fatal -= {"EQ175"}
    if not rows.nodes:
        return
    if not fatal and not has_duplicate_edges and not has_unknown_child:
        assert len(Tree.of(rows.nodes, rows.edges)) == len(rows.nodes)
    else:
        with pytest.raises(InvalidTreeError) as error_info:
            Tree.of(rows.nodes, rows.edges)
        assert error_info.value.rows is not None


def test_orphans_become_roots_or_are_dropped_with_their_descendants() -> None:
    nodes = [("1", "Assets"), ("11", "Cash"), ("21", "Loans"), ("211", "Bank loan"), ("2111", "Long term")]
    rows = TreeRows(nodes, [("11", "1"), ("21", "2"), ("211", "21"), ("2111", "211")], "chart")
    as_roots, dropped = with_orphans(rows, "root"), with_orphans(rows, "drop")
    assert [as_roots.ids[root] for root in as_roots.roots] == ["1", "21"]
    assert len(as_roots) == 5
    assert dropped.ids == ("1", "11")
    assert "orphan" in as_roots.source
    assert "3 nodes" in dropped.source
    with pytest.raises(InvalidTreeError):
        with_orphans(rows, "error")
    with pytest.raises(ParameterError):
        with_orphans(rows, "keep")
    assert ORPHAN_POLICIES[0] == "error"


def test_a_node_with_another_parent_that_exists_is_not_dropped() -> None:
    rows = TreeRows([("1", "A"), ("2", "B")], [("2", "1"), ("2", "9")], "chart")
    assert with_orphans(rows, "drop").named_edges() == [("2", "1")]
