"""A small chart of accounts: four roots and three levels; the nodes are not ordered by level."""

from __future__ import annotations

import pytest

from equipoise.domains.accounts.trees.tree import Tree


@pytest.fixture(scope="session")
def chart() -> Tree:
    """Four roots with three groups each, and two accounts per group."""
    edges = []
    for top in ("assets", "debts", "income", "costs"):
        for group in range(3):
            edges += [(f"{top}.{group}.{leaf}", f"{top}.{group}") for leaf in range(2)]
            edges.append((f"{top}.{group}", top))
    return Tree.from_edges(edges, source="a small chart")
