"""Points that know nothing of the tree, and points of its names: what trained ones must beat."""

from __future__ import annotations

import numpy as np

from equipoise.embed.model import embedder as text_model
from equipoise.errors import ParameterError
from equipoise.hierarchy.embedded import Embedded
from equipoise.hierarchy.embedders.base import checked
from equipoise.hierarchy.riemann.train import Progress
from equipoise.hierarchy.tree import Tree


class Random:
    """Normal coordinates, the same for every tree of that size: a mean rank of half the nodes."""

    name = "random"
    geometry = "euclidean"

    def fit(self, tree: Tree, dim: int, seed: int = 0, *, progress: Progress | None = None) -> Embedded:
        """The points of the tree's nodes; see ``TreeEmbedder``."""
        checked(tree, dim)
        vectors = np.random.default_rng(seed).standard_normal((len(tree), dim))
        if progress is not None:
            progress(1, 1)
        settings = {"embedder": self.name, "dim": dim, "seed": seed}
        return Embedded(tree.ids, tree.names, vectors, self.geometry, settings)


class Text:
    """The vectors that a text model gives the names, cut to the first ``dim`` coordinates where it has more.

    The tree is not looked at. The cut vectors are the model's own first coordinates, as models trained for
    that (Matryoshka) expect; a ``dim`` above what the model has is an error.
    """

    geometry = "cosine"

    def __init__(self, model: str) -> None:
        self.name = f"text:{model}"
        self.model = model

    def fit(
        self, tree: Tree, dim: int | None = None, seed: int = 0, *, progress: Progress | None = None
    ) -> Embedded:
        """The vectors of the tree's names; without ``dim``, as long as the model makes them."""
        checked(tree, 1 if dim is None else dim)
        with text_model(self.model) as model:
            vectors = model.embed_report(tree.names, progress=progress).vectors.astype(np.float64)
        if dim is not None and dim > vectors.shape[1]:
            raise ParameterError(
                f"{self.model} has {vectors.shape[1]} dimensions, and {dim} were asked for",
                hint=f"ask for at most {vectors.shape[1]}",
            )
        settings = {"embedder": self.name, "dim": dim or vectors.shape[1], "model": self.model}
        return Embedded(tree.ids, tree.names, vectors[:, :dim], self.geometry, settings)
