"""Tree embedders: trained (euclidean, poincare, lorentz), constructed (combinatorial), and baselines (random, text).

``tree_embedder(name)`` creates one; each has a geometry and ``fit(tree, dim, seed)``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

import numpy as np

from equipoise.domains.accounts.training.manifolds import (
    EuclideanManifold,
    Hyperboloid,
    Manifold,
    cone_initialization,
    constant_edge_layout,
)
from equipoise.domains.accounts.training.sampling import NegativePool, PositivePairs
from equipoise.domains.accounts.training.trainer import Progress, TrainingConfig, select_backend, train
from equipoise.domains.accounts.trees.tree import ANCESTORS, CLOSURE, PARENT, Tree
from equipoise.domains.accounts.vectors import NodeVectors
from equipoise.errors import InputError, ParameterError, UnknownNameError
from equipoise.geometry import distances
from equipoise.geometry.distances import hyperboloid_to_ball
from equipoise.models.embedder import embedder as text_model

if TYPE_CHECKING:
    from equipoise.types import Floats


@runtime_checkable
class TreeEmbedder(Protocol):
    """Computes one point per node of a tree; ``progress`` takes the finished and the maximum number of steps."""

    name: str
    geometry: str

    def fit(self, tree: Tree, dim: int, seed: int = 0, *, progress: Progress | None = None) -> NodeVectors:
        """The points of the tree's nodes in ``dim`` dimensions; the same seed gives the same points."""
        ...


def check_fit_arguments(tree: Tree, dim: int, min_dim: int = 1) -> None:
    """Raise an error for an empty tree or an invalid dimension."""
    if not len(tree):
        raise InputError(f"{tree.source} has no nodes", hint="a tree needs at least one node")
    if isinstance(dim, bool) or dim != int(dim) or dim < min_dim:
        raise ParameterError(f"dim is {dim}", hint=f"it is an integer of {min_dim} or more")


MIN_START_RADIUS, MAX_START_RADIUS = 2.0, 6.0
"""Initial radii of the largest subtrees and of the leaves."""
STAGED_EPOCHS = 1000
"""Default epochs of numba on the hyperboloid, where most of them take a fifth of the time."""


class LorentzEmbedder:
    """Riemannian gradient descent on the hyperboloid over all pairs of a node and a positive.

    Training starts with each node in the cone of its parent. ``TrainingConfig`` lists the options, and the module
    ``trainer`` describes the stages.
    """

    name = "lorentz"
    geometry = "lorentz"
    # One positive per node needs a lower temperature: 30 settings on WordNet's mammals in 5 dimensions (temperature
    # 1/64 to 1/4, learning rates 0.3 to 3, with and without refinement) gave MAP 0.90 to 0.999. Ancestors score better
    # without branch negatives: nouns in 10 dimensions MR 1.59 instead of 1.93, MAP 0.959 instead of 0.946; mammals and
    # verbs are equal.
    defaults: ClassVar[dict[str, dict[str, Any]]] = {
        PARENT: {"temperature": 1.0 / 32.0, "learning_rate": 3.0},
        ANCESTORS: {"n_branch_negatives": 0},
    }

    def __init__(self, **options: Any) -> None:
        train_relation = options.get("train_relation", PARENT)
        self.config = TrainingConfig.of(self.name, self.defaults.get(train_relation, {}), options)
        if "epochs" not in options and self._manifold().is_hyperbolic and select_backend(self.config) == "numba":
            self.config = replace(self.config, epochs=STAGED_EPOCHS)

    def fit(self, tree: Tree, dim: int, seed: int = 0, *, progress: Progress | None = None) -> NodeVectors:
        """The points of the tree's nodes; see ``TreeEmbedder``."""
        check_fit_arguments(tree, dim)
        rng = np.random.default_rng(seed)
        positives = PositivePairs.of(tree, self.config.train_relation)
        points = self._initial_points(tree, dim, rng)
        pool = NegativePool.of(tree, positives, self.config.negative_sampling)
        history = train(self._manifold(), points, positives, pool, self.config, rng, progress)
        settings = {"embedder": self.name, "dim": dim, "seed": seed, **asdict(self.config)}
        settings |= {"backend": select_backend(self.config), "epochs_run": len(history)}
        vectors = self._to_geometry(points)
        return NodeVectors(tree.ids, tree.names, vectors, self.geometry, settings, tuple(history))

    def _manifold(self) -> Manifold:
        return Hyperboloid()

    def _initial_points(self, tree: Tree, dim: int, rng: np.random.Generator) -> Floats:
        return cone_initialization(tree, dim, rng, min_radius=MIN_START_RADIUS, max_radius=MAX_START_RADIUS)

    def _to_geometry(self, points: Floats) -> Floats:
        return points


class PoincareEmbedder(LorentzEmbedder):
    """The same training, converted to points of the Poincare ball.

    Ball and hyperboloid are isometric, and training follows the geodesics exactly, so the result does not depend on the
    model.
    """

    name = "poincare"
    geometry = "poincare"

    def _to_geometry(self, points: Floats) -> Floats:
        return hyperboloid_to_ball(points)


class EuclideanEmbedder(LorentzEmbedder):
    """The same training in Euclidean space, with tuned options: the baseline of the hyperbolic embedders.

    It starts from the same layout: each point keeps its direction and its distance from the origin. One stage with
    plain distances scored best here, see the options below.
    """

    name = "euclidean"
    geometry = "euclidean"
    # Measured on WordNet's mammals in 5 dimensions. Parents: 45 settings (temperature 1/32 to 1/2, learning rates 0.3
    # to 3, final 0.001, 0.01 or 0.1), MAP 0.80 to 0.99. Ancestors: 48 (temperature 1/32 to 1, learning rates 0.03 to 1,
    # final 0.001 or 0.01), best MAP 0.255. Closure: 32 of these, MAP 0.14 to 0.38; with squared distances 0.26 to 0.28;
    # with 60 more epochs of refinement 0.27, while MR falls from 48 to 35.
    defaults: ClassVar[dict[str, dict[str, Any]]] = {
        PARENT: {"temperature": 1.0 / 32.0, "learning_rate": 3.0, "final_learning_rate": 0.01},
        ANCESTORS: {"learning_rate": 0.03, "final_learning_rate": 0.001},
        CLOSURE: {"learning_rate": 0.03, "final_learning_rate": 0.001},
    }

    def _manifold(self) -> Manifold:
        return EuclideanManifold()

    def _initial_points(self, tree: Tree, dim: int, rng: np.random.Generator) -> Floats:
        points = super()._initial_points(tree, dim, rng)[:, 1:]
        length = np.sqrt(np.einsum("ij,ij->i", points, points))
        scale = np.divide(np.arcsinh(length), length, out=np.ones_like(length), where=length > 0.0)
        return points * scale[:, None]


class RandomEmbedder:
    """Standard normal coordinates that do not depend on the tree: the mean rank is half the number of nodes."""

    name = "random"
    geometry = "euclidean"

    def fit(self, tree: Tree, dim: int, seed: int = 0, *, progress: Progress | None = None) -> NodeVectors:
        """The points of the tree's nodes; see ``TreeEmbedder``."""
        check_fit_arguments(tree, dim)
        vectors = np.random.default_rng(seed).standard_normal((len(tree), dim))
        if progress is not None:
            progress(1, 1)
        settings = {"embedder": self.name, "dim": dim, "seed": seed}
        return NodeVectors(tree.ids, tree.names, vectors, self.geometry, settings)


class TextEmbedder:
    """The vectors of a text model for the node names, truncated to the first ``dim`` coordinates.

    The tree is not used. Truncation is meaningful for models trained for it (Matryoshka). A ``dim`` above the model's
    dimension is an error.
    """

    geometry = "cosine"

    def __init__(self, model: str) -> None:
        self.name = f"text:{model}"
        self.model = model

    def fit(
        self, tree: Tree, dim: int | None = None, seed: int = 0, *, progress: Progress | None = None
    ) -> NodeVectors:
        """The vectors of the node names; without ``dim``, in the model's full dimension."""
        check_fit_arguments(tree, 1 if dim is None else dim)
        with text_model(self.model) as model:
            vectors = model.embed_report(tree.names, progress=progress).vectors.astype(np.float64)
        if dim is not None and dim > vectors.shape[1]:
            raise ParameterError(
                f"{self.model} has {vectors.shape[1]} dimensions, and {dim} were requested",
                hint=f"request at most {vectors.shape[1]}",
            )
        settings = {"embedder": self.name, "dim": dim or vectors.shape[1], "model": self.model}
        return NodeVectors(tree.ids, tree.names, vectors[:, :dim], self.geometry, settings)


MAX_RADIUS = 30.0
"""Largest radius at which float64 can represent points of the ball: 1 - |x| is 2e-13 there."""

ROUNDING_ULPS = 4.0
"""Bound of the rounding error of a point in units in the last place.

Measured errors of edges were at most 0.8 of the sum of both ends on charts, stars, paths and binary trees of 2 to 50
dimensions, and 2.9 on WordNet's mammals.
"""


def rounding_error_bound(points: Floats) -> Floats:
    """Upper bound of the distance by which float64 rounding moved each point of the ball, (n,).

    A coordinate near the rim is rounded by eps, and the metric multiplies that by e^radius.

    >>> rounding_error_bound(np.array([[0.0, 0.0], [0.0, 1.0 - 1e-9]])).round(9).tolist()
    [0.0, 1.776e-06]
    """
    norm = distances.norm(points)
    stretch: Floats = (1.0 + norm) / (1.0 - norm)
    return ROUNDING_ULPS * np.finfo(np.float64).eps * stretch


class CombinatorialEmbedder:
    """The construction of Sala, De Sa, Gu and Re (2018): children around their parent, all edges of equal length.

    ``edge`` is that length; longer edges approximate distances in the tree better. By default it is the longest for
    which float64 can represent the deepest node. A node with several parents uses the first on a shortest path from a
    root, and ``settings["unused_edges"]`` counts the other edges. In two dimensions siblings are at equal angles; in
    more dimensions they are spread at random.
    """

    name = "combinatorial"
    geometry = "poincare"

    def __init__(self, edge: float | None = None) -> None:
        if edge is not None and not (edge > 0.0 and math.isfinite(edge)):
            raise ParameterError(f"edge is {edge}", hint="it is a length above 0")
        self.edge = edge

    def fit(self, tree: Tree, dim: int, seed: int = 0, *, progress: Progress | None = None) -> NodeVectors:
        """The points of the tree's nodes; see ``TreeEmbedder``."""
        check_fit_arguments(tree, dim, min_dim=2)
        levels = int(tree.depth.max(initial=0.0)) + (len(tree.roots) > 1)
        max_edge = MAX_RADIUS / max(1, levels)
        edge = self.edge or max_edge
        if edge > max_edge * (1.0 + 1e-9):
            raise ParameterError(
                f"with edges of {edge:g} the deepest of {levels} levels is at radius {edge * levels:g}, "
                f"and float64 can represent points of the ball up to {MAX_RADIUS:g}",
                hint=f"the maximum for {tree.source} is {max_edge:.4g}",
            )
        points = constant_edge_layout(tree, dim, edge, np.random.default_rng(seed), MAX_RADIUS)
        if progress is not None:
            progress(1, 1)
        n_unused_edges = len(tree.edges) - (len(tree) - len(tree.roots))
        settings = {"embedder": self.name, "dim": dim, "seed": seed, "edge": edge, "unused_edges": n_unused_edges}
        return NodeVectors(tree.ids, tree.names, hyperboloid_to_ball(points), self.geometry, settings)


TREE_EMBEDDERS: dict[str, type] = {
    kind.name: kind
    for kind in (EuclideanEmbedder, PoincareEmbedder, LorentzEmbedder, CombinatorialEmbedder, RandomEmbedder)
}
"""Embedders by name; ``text:MODEL`` is any text model."""

_TEXT = "text"

__all__ = [
    "TREE_EMBEDDERS",
    "CombinatorialEmbedder",
    "EuclideanEmbedder",
    "LorentzEmbedder",
    "PoincareEmbedder",
    "RandomEmbedder",
    "TextEmbedder",
    "TreeEmbedder",
    "normalise_name",
    "tree_embedder",
]


def tree_embedder(name: str, **options: Any) -> TreeEmbedder:
    """Create an embedder of trees by name.

    Parameters
    ----------
    name
        ``euclidean``, ``poincare``, ``lorentz``, ``combinatorial``, ``random``, or ``text:MODEL`` with the spec of a
        text model, which embeds the names of the nodes.
    **options
        Options of the embedder, such as the fields of ``TrainingConfig``.

    Returns
    -------
    TreeEmbedder
        An object with ``fit(tree, dim)``.

    Examples
    --------
    >>> tree_embedder("lorentz", epochs=10).geometry
    'lorentz'
    """
    kind, _, model = name.partition(":")
    if kind.strip().casefold() == _TEXT:
        if not model:
            raise ParameterError("text: has no model name", hint="write text:MODEL; eq ls models lists them")
        return _create(name, lambda: TextEmbedder(model, **options), options)
    embedder_class = TREE_EMBEDDERS.get(normalise_name(name))
    if embedder_class is None:
        more = f"known: {', '.join(TREE_EMBEDDERS)}, {_TEXT}:MODEL"
        raise UnknownNameError.of("tree embedder", name, [*TREE_EMBEDDERS, _TEXT], more=more)
    return _create(name, lambda: embedder_class(**options), options)


def normalise_name(name: str) -> str:
    """The canonical name of an embedder; the spec of a text model is not changed.

    >>> normalise_name(" Lorentz")
    'lorentz'
    """
    stripped = name.strip()
    return stripped.casefold() if stripped.casefold() in TREE_EMBEDDERS else stripped


def _create(name: str, create: Callable[[], TreeEmbedder], options: dict[str, Any]) -> TreeEmbedder:
    try:
        return create()
    except TypeError as error:
        raise ParameterError(
            f"the {name} embedder has no option {', '.join(options)}", hint="leave the option out"
        ) from error
