"""What every tree embedder is: a geometry, and ``fit(tree, dim, seed)``."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from equipoise.errors import InputError, ParameterError
from equipoise.hierarchy.embedded import Embedded
from equipoise.hierarchy.riemann.train import Progress
from equipoise.hierarchy.tree import Tree


@runtime_checkable
class TreeEmbedder(Protocol):
    """Gives every node of a tree a point; ``progress`` takes the steps done and the most there can be."""

    name: str
    geometry: str

    def fit(self, tree: Tree, dim: int, seed: int = 0, *, progress: Progress | None = None) -> Embedded:
        """The points of the tree's nodes in ``dim`` dimensions; the same seed gives the same points."""
        ...


def checked(tree: Tree, dim: int, least: int = 1) -> None:
    """An empty tree and a dimension that is none are errors."""
    if not len(tree):
        raise InputError(f"{tree.source} holds no nodes", hint="a tree needs one node at least")
    if isinstance(dim, bool) or dim != int(dim) or dim < least:
        raise ParameterError(f"dim is {dim}", hint=f"it is a whole number of {least} or more")
