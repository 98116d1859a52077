"""All problems of a hierarchy at once, as findings, and the repair of accounts whose parent does not exist.

``tree_problems`` runs the checks on the rows as they were read. ``with_orphans`` builds a tree from rows in which some
parents do not exist.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from equipoise.checks.base import Check, Observation, evidence_names, join_names, pluralize, run_checks
from equipoise.domains.accounts.trees.tree import Tree, TreeRows
from equipoise.errors import ParameterError
from equipoise.io.dag import Edge, find_cycle
from equipoise.types import Finding, Severity

ORPHAN_POLICIES = ("error", "root", "drop")
"""What becomes of a node whose parent does not exist, and of its descendants."""
MIN_CHAIN = 3
"""Nodes in a row with a single child each that are reported as a chain."""


def duplicate_ids(rows: TreeRows) -> Iterator[Observation]:
    """EQ170: several rows have the same id."""
    counts = Counter(key for key, _ in rows.nodes if key)
    repeated = [key for key, count in counts.items() if count > 1]
    if repeated:
        yield Observation(
            rows.source,
            f"{pluralize(len(repeated), 'id')} in more than one row: {join_names(repeated)}",
            evidence_names([f"{key}: {counts[key]} rows" for key in repeated]),
        )


def self_parents(rows: TreeRows) -> Iterator[Observation]:
    """EQ171: a node is its own parent."""
    nodes = list(dict.fromkeys(child for child, parent in rows.edges if child == parent))
    if nodes:
        message = f"{pluralize(len(nodes), 'node')} with itself as parent: {join_names(nodes)}"
        yield Observation(rows.source, message, evidence_names(nodes))


def orphans(rows: TreeRows) -> Iterator[Observation]:
    """EQ172: the parent of a node does not exist."""
    edges = orphan_edges(rows)
    if edges:
        missing = list(dict.fromkeys(parent for _, parent in edges))
        yield Observation(
            rows.source,
            f"{pluralize(len(edges), 'node')} with a parent that does not exist: {join_names(missing)}",
            evidence_names([f"{child}: parent {parent}" for child, parent in edges]),
        )


def cycles(rows: TreeRows) -> Iterator[Observation]:
    """EQ173: a node is its own ancestor."""
    edges = dict.fromkeys(edge for edge in rows.edges if edge[0] != edge[1])
    found = []
    while cycle := find_cycle(edges):
        found.append(" -> ".join([*cycle, cycle[0]]))
        # One edge less, so that the next cycle is found.
        edges.pop((cycle[-1], cycle[0]))
    if found:
        yield Observation(rows.source, f"{pluralize(len(found), 'cycle')}: {join_names(found)}", evidence_names(found))


def no_root(rows: TreeRows) -> Iterator[Observation]:
    """EQ174: every node has a parent."""
    children = {child for child, _ in rows.edges}
    if rows.nodes and all(key in children for key, _ in rows.nodes):
        parents = list(dict.fromkeys(parent for _, parent in rows.edges))
        message = f"none of {pluralize(len(rows.nodes), 'node')} is a root"
        yield Observation(rows.source, message, evidence_names([f"parent {parent}" for parent in parents]))


def empty_fields(rows: TreeRows) -> Iterator[Observation]:
    """EQ175: nodes without an id or a name."""
    without_id = [name or "(no name)" for key, name in rows.nodes if not key]
    if without_id:
        message = f"{pluralize(len(without_id), 'row')} without an id: {join_names(without_id)}"
        yield Observation(rows.source, message, evidence_names(without_id))
    without_name = [key for key, name in rows.nodes if key and not name]
    if without_name and len(without_name) < len(rows.nodes):
        message = f"{pluralize(len(without_name), 'node')} without a name: {join_names(without_name)}"
        yield Observation(rows.source, message, evidence_names(without_name))


def duplicate_names(rows: TreeRows) -> Iterator[Observation]:
    """EQ176: siblings with the same name."""
    parents: dict[str, str] = dict(rows.edges)
    counts = Counter((parents.get(key, ""), " ".join(name.split()).casefold()) for key, name in rows.nodes if name)
    repeated = [(parent, name) for (parent, name), count in counts.items() if count > 1]
    if repeated:
        names = [f"{name!r} below {parent or 'the top'}" for parent, name in repeated]
        message = f"{pluralize(len(repeated), 'name')} of several siblings: {join_names(names)}"
        evidence = [f"{text}: {counts[key]} nodes" for text, key in zip(names, repeated, strict=True)]
        yield Observation(rows.source, message, evidence_names(evidence))


def single_child_chains(rows: TreeRows) -> Iterator[Observation]:
    """EQ177: nodes in a row that have one child each."""
    children: dict[str, list[str]] = {}
    for child, parent in dict.fromkeys(rows.edges):
        children.setdefault(parent, []).append(child)
    single = {parent: below[0] for parent, below in children.items() if len(below) == 1 and below[0] != parent}
    chains = []
    for start in single.keys() - set(single.values()):
        chain = [start]
        while chain[-1] in single and len(chain) <= len(single):
            chain.append(single[chain[-1]])
        if len(chain) > MIN_CHAIN:
            chains.append(" -> ".join(chain))
    if chains:
        chains.sort()
        message = f"{pluralize(len(chains), 'chain')} of nodes with a single child: {join_names(chains)}"
        yield Observation(rows.source, message, evidence_names(chains))


_IMPORTS = """\
from equipoise.checks.base import run_checks
from equipoise.domains.accounts.trees.tree import TreeRows
"""


def _example(nodes: str, edges: str) -> str:
    return f'{_IMPORTS}run_checks(TreeRows([{nodes}], [{edges}], "accounts.csv"))'


TREE_CHECKS: tuple[Check, ...] = (
    Check(
        code="EQ170",
        title="duplicate ids in a tree",
        severity=Severity.ISSUE,
        applies_to=TreeRows,
        function=duplicate_ids,
        why="""\
Ids identify the nodes. If two rows share one, it is unknown which of them is the parent of the nodes below. Often a
table has the accounts of several businesses, or one account was exported twice.""",
        hint="keep one row per id, or read one business of the table: --business-id",
        example=_example('("1", "Assets"), ("1", "Cash")', ""),
    ),
    Check(
        code="EQ171",
        title="node with itself as parent",
        severity=Severity.ISSUE,
        applies_to=TreeRows,
        function=self_parents,
        why="""\
A node cannot be its own ancestor, and its depth would be infinite. Some systems export roots this way: the id of the
account itself is in the column of the parent.""",
        hint="leave the parent of a root empty",
        example=_example('("1", "Assets")', '("1", "1")'),
    ),
    Check(
        code="EQ172",
        title="parent that does not exist",
        severity=Severity.ISSUE,
        applies_to=TreeRows,
        function=orphans,
        why="""\
A node whose parent is not among the nodes has no place in the hierarchy. Often the export is incomplete, or ids lost
their leading zeros. If such nodes were silently made roots, depths and ranks would be wrong.""",
        hint="add the parents, or make these nodes roots (--orphans root), or remove their subtrees (--orphans drop)",
        example=_example('("11", "Cash")', '("11", "1")'),
    ),
    Check(
        code="EQ173",
        title="cycle in a tree",
        severity=Severity.ISSUE,
        applies_to=TreeRows,
        function=cycles,
        why="""\
A node that is its own ancestor has no depth and no root above it. Such cycles come from accounts that were moved in a
system that does not check the new parent.""",
        hint="remove one edge of each cycle",
        example=_example('("1", "A"), ("2", "B")', '("1", "2"), ("2", "1")'),
    ),
    Check(
        code="EQ174",
        title="tree without a root",
        severity=Severity.ISSUE,
        applies_to=TreeRows,
        function=no_root,
        why="""\
Depth is counted from the nodes without a parent. If every node has one, either the top nodes refer to a parent that
does not exist, or there is a cycle.""",
        hint="leave the parent of the top nodes empty",
        example=_example('("1", "A")', '("1", "0")'),
    ),
    Check(
        code="EQ175",
        title="empty ids or names",
        severity=Severity.ISSUE,
        applies_to=TreeRows,
        function=empty_fields,
        why="""\
A node without an id cannot be referred to as a parent. A node without a name has nothing that a text model could embed,
and reports show its id instead.""",
        hint="fill in the empty fields",
        example=_example('("1", "A"), ("", "B")', ""),
    ),
    Check(
        code="EQ176",
        title="siblings with the same name",
        severity=Severity.TIP,
        applies_to=TreeRows,
        function=duplicate_names,
        why="Two children of one node with the same name are often one account that was entered twice. A text model "
        "cannot distinguish them.",
        hint="merge or rename them",
        example=_example('("1", "Bank"), ("2", "bank")', ""),
    ),
    Check(
        code="EQ177",
        title="chain of single children",
        severity=Severity.NOTE,
        applies_to=TreeRows,
        function=single_child_chains,
        why="A group with one member adds a level and no information. Distances in such a chain take room that other "
        "branches need.",
        hint="remove groups that have one member",
        example=_example('("1", "A"), ("2", "B"), ("3", "C"), ("4", "D")', '("2", "1"), ("3", "2"), ("4", "3")'),
    ),
)


@dataclass(frozen=True)
class TreeProblems:
    """The findings about rows; ``tree`` is None if they are not a hierarchy."""

    rows: TreeRows
    findings: tuple[Finding, ...]
    tree: Tree | None

    @property
    def nodes_by_depth(self) -> list[int]:
        """The number of ids at each depth below the nodes without a parent.

        >>> rows = TreeRows([("1", ""), ("11", ""), ("12", ""), ("9", "")], [("11", "1"), ("12", "1"), ("9", "9")], "")
        >>> tree_problems(rows, None).nodes_by_depth
        [1, 2]
        """
        children: dict[str, list[str]] = {}
        for child, parent in self.rows.edges:
            children.setdefault(parent, []).append(child)
        has_parent = {child for child, _ in self.rows.edges}
        layer = {key for key, _ in self.rows.nodes if key and key not in has_parent}
        reached, counts = set(layer), []
        while layer:
            counts.append(len(layer))
            layer = {child for parent in layer for child in children.get(parent, ())} - reached
            reached |= layer
        return counts


def tree_problems(rows: TreeRows, tree: Tree | None) -> TreeProblems:
    """All problems of the rows; ``tree`` is what was built of them, if it could be."""
    return TreeProblems(rows, tuple(run_checks(rows)), tree)


def orphan_edges(rows: TreeRows) -> list[Edge]:
    """The edges to parents that do not exist."""
    known = {key for key, _ in rows.nodes}
    return [(child, parent) for child, parent in rows.edges if parent not in known]


def with_orphans(rows: TreeRows, policy: str) -> Tree:
    """The tree of rows in which some parents do not exist.

    ``root`` makes nodes without an existing parent roots; ``drop`` leaves them and their descendants out. ``source``
    states how many there were.

    >>> rows = TreeRows([("1", "Assets"), ("21", "Loans"), ("211", "Bank loan")], [("21", "2"), ("211", "21")], "chart")
    >>> with_orphans(rows, "root")
    Tree('chart (1 orphan as root)', 3 nodes, 1 edges, 2 roots, 2 levels)
    >>> with_orphans(rows, "drop").ids
    ('1',)
    """
    if policy not in ORPHAN_POLICIES:
        raise ParameterError(f"orphans is {policy!r}", hint=f"it is one of {', '.join(ORPHAN_POLICIES)}")
    missing = set(orphan_edges(rows))
    edges = [edge for edge in rows.edges if edge not in missing]
    if policy == "error" or not missing:
        return Tree.of(rows.nodes, rows.edges, source=rows.source)
    count = pluralize(len(missing), "orphan")
    if policy == "root":
        roots = "root" if len(missing) == 1 else "roots"
        return Tree.of(rows.nodes, edges, source=f"{rows.source} ({count} as {roots})")
    parents = {child for child, _ in edges}
    dropped = {child for child, _ in missing} - parents
    while below := {child for child, parent in edges if parent in dropped} - dropped:
        dropped |= below
    return Tree.of(
        [node for node in rows.nodes if node[0] not in dropped],
        [(child, parent) for child, parent in edges if child not in dropped and parent not in dropped],
        source=f"{rows.source} (without {count} and their descendants: {pluralize(len(dropped), 'node')})",
    )
