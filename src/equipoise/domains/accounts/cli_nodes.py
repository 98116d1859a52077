"""``eq accounts``: the commands about single nodes and their place in the tree: check."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from equipoise.cli import options
from equipoise.cli.output import DONE, GATE_FAILED, Output, pass_output
from equipoise.domains.accounts.cli_tree import TreeSource, tree_options
from equipoise.errors import ParameterError

if TYPE_CHECKING:
    from equipoise.domains.accounts.trees.problems import TreeProblems

CHECK_HELP = """
\b
  eq accounts check accounts.csv
  eq accounts check --database books.db --business-id acme

List all problems of a tree at once: duplicate ids, nodes that are their own parent, parents that do not exist,
cycles, missing roots, empty ids and names, siblings with the same name, and chains of single children. The number of
nodes at each depth follows. The exit status is 1 if there is a problem that prevents an evaluation.
"""


@click.command(help=CHECK_HELP, short_help="List all problems of a tree, and its nodes by depth.")
@click.argument("file", metavar="[FILE]", required=False)
@tree_options
@options.output_options
@pass_output
def check(out: Output, /, file: str | None, source: TreeSource) -> int:
    """See ``CHECK_HELP``."""
    from equipoise.report.findings import findings_section
    from equipoise.report.terminal import Paragraph
    from equipoise.types import Severity

    problems = read_problems(_with_file(source, file))
    if out.json:
        out.data(_problems_to_dict(problems))
    else:
        out.show(*map(Paragraph, _summary(problems)), *findings_section(problems.findings, verbose=out.verbose))
    return GATE_FAILED if any(finding.severity == Severity.ISSUE for finding in problems.findings) else DONE


def _with_file(source: TreeSource, file: str | None) -> TreeSource:
    """The source of the options, or the file of the argument."""
    if file is None:
        return source
    if source.named:
        raise ParameterError(f"{file} and --{next(iter(source.named))} are two trees", hint="give one of them")
    return replace(source, tree=file)


def read_problems(source: TreeSource) -> TreeProblems:
    """The problems of the tree that the options name, valid or not."""
    from equipoise.domains.accounts.trees.problems import tree_problems
    from equipoise.domains.accounts.trees.tree import InvalidTreeError, TreeRows

    try:
        tree = source.read()
    except InvalidTreeError as error:
        if error.rows is None:
            raise
        return tree_problems(error.rows, None)
    # A node without a name was given its id.
    nodes = [(key, "" if name == key else name) for key, name in zip(tree.ids, tree.names, strict=True)]
    return tree_problems(TreeRows(nodes, tree.named_edges(), tree.source), tree)


def _summary(problems: TreeProblems) -> list[str]:
    """The size of the tree, the number of problems, and the nodes by depth."""
    from equipoise.checks.base import pluralize
    from equipoise.domains.accounts.cli import describe_tree

    rows, tree = problems.rows, problems.tree
    count = pluralize(len(problems.findings), "finding") if problems.findings else "no problems"
    depths = ", ".join(f"{depth}: {n_nodes:,}" for depth, n_nodes in enumerate(problems.nodes_by_depth)) or "n/a"
    if tree is None:
        first = f"{rows.source}: {pluralize(len(rows.nodes), 'row')}, not a tree; {count}."
    else:
        first = f"{describe_tree(tree)}, {pluralize(len(tree.roots), 'root')}; {count}."
    return [first, f"Nodes by depth: {depths}."]


def _problems_to_dict(problems: TreeProblems) -> dict[str, object]:
    return {
        "source": problems.rows.source,
        "rows": len(problems.rows.nodes),
        "is_tree": problems.tree is not None,
        "nodes_by_depth": problems.nodes_by_depth,
        "findings": [
            {
                "code": finding.code,
                "severity": str(finding.severity),
                "message": finding.message,
                "hint": finding.hint,
                "evidence": list(finding.evidence),
            }
            for finding in problems.findings
        ],
    }
