"""The trained embedders: euclidean, Poincare ball and Lorentz, by stochastic gradient descent."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

import numpy as np

from equipoise.domains.accounts.training.initialization import cone_initialization, constant_edge_layout
from equipoise.domains.accounts.training.manifolds import EuclideanManifold, Hyperboloid, Manifold
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

# What every tree embedder is: a geometry, and ``fit(tree, dim, seed)``.


@runtime_checkable
class TreeEmbedder(Protocol):
    """Gives every node of a tree a point; ``progress`` takes the steps done and the most there can be."""

    name: str
    geometry: str

    def fit(self, tree: Tree, dim: int, seed: int = 0, *, progress: Progress | None = None) -> NodeVectors:
        """The points of the tree's nodes in ``dim`` dimensions; the same seed gives the same points."""
        ...


def check_fit_arguments(tree: Tree, dim: int, least: int = 1) -> None:
    """An empty tree and a dimension that is none are errors."""
    if not len(tree):
        raise InputError(f"{tree.source} holds no nodes", hint="a tree needs one node at least")
    if isinstance(dim, bool) or dim != int(dim) or dim < least:
        raise ParameterError(f"dim is {dim}", hint=f"it is a whole number of {least} or more")


INNER, OUTER = 2.0, 6.0
"""The radii at which the largest subtrees and the leaves begin."""
STAGED_EPOCHS = 1000
"""Epochs of curved space by numba, where most of them take a fifth of the time."""


class LorentzEmbedder:
    """Riemannian gradient descent on the hyperboloid over all pairs of a node and a relative.

    It begins with every node in the cone of its parent. ``TrainingConfig`` lists the options, and ``stages`` tells
    what numba does with the epochs.
    """

    name = "lorentz"
    geometry = "lorentz"
    # One relative a node wants a sharper loss: of 30 settings tried on WordNet's mammals in 5 dimensions
    # (sharpness 4 to 64, rates 0.3 to 3, with and without settling), MAP 0.90 to 0.999. Ancestors do better
    # without kin: nouns in 10 dimensions MR 1.59 for 1.93, MAP 0.959 for 0.946; mammals and verbs are equal.
    defaults: ClassVar[dict[str, dict[str, Any]]] = {
        PARENT: {"sharpness": 32.0, "rate": 3.0},
        ANCESTORS: {"kin": 0},
    }

    def __init__(self, **options: Any) -> None:
        train_on = options.get("train_on", PARENT)
        self.schedule = TrainingConfig.of(self.name, self.defaults.get(train_on, {}), options)
        if "epochs" not in options and self._space().curved and select_backend(self.schedule) == "numba":
            self.schedule = replace(self.schedule, epochs=STAGED_EPOCHS)

    def fit(self, tree: Tree, dim: int, seed: int = 0, *, progress: Progress | None = None) -> NodeVectors:
        """The points of the tree's nodes; see ``TreeEmbedder``."""
        check_fit_arguments(tree, dim)
        rng = np.random.default_rng(seed)
        relatives = PositivePairs.of(tree, self.schedule.train_on)
        points = self._start(tree, dim, rng)
        pool = NegativePool.of(tree, relatives, self.schedule.aim)
        history = train(self._space(), points, relatives, pool, self.schedule, rng, progress)
        settings = {"embedder": self.name, "dim": dim, "seed": seed, **asdict(self.schedule)}
        settings |= {"engine": select_backend(self.schedule), "epochs_run": len(history)}
        vectors = self._handed_over(points)
        return NodeVectors(tree.ids, tree.names, vectors, self.geometry, settings, tuple(history))

    def _space(self) -> Manifold:
        return Hyperboloid()

    def _start(self, tree: Tree, dim: int, rng: np.random.Generator) -> Floats:
        return cone_initialization(tree, dim, rng, inner=INNER, outer=OUTER)

    def _handed_over(self, points: Floats) -> Floats:
        return points


class PoincareEmbedder(LorentzEmbedder):
    """The same descent, handed over as points of the Poincare ball.

    Ball and hyperboloid are two pictures of one space, and the descent follows its geodesics exactly, so the
    picture does not change where it goes.
    """

    name = "poincare"
    geometry = "poincare"

    def _handed_over(self, points: Floats) -> Floats:
        return hyperboloid_to_ball(points)


class EuclideanEmbedder(LorentzEmbedder):
    """The same pairs in flat space, tuned for it: what hyperbolic figures must be held against.

    It begins at the same layout, seen from the origin: each point keeps its direction and distance. It has
    the loss of plain distances and one descent, which did best here: see the settings below.
    """

    name = "euclidean"
    geometry = "euclidean"
    # Tried on WordNet's mammals in 5 dimensions. Parents: 45 settings (sharpness 2 to 32, rates 0.3 to 3,
    # down to 0.001, 0.01 or 0.1), MAP 0.80 to 0.99. Ancestors: 48 (sharpness 1 to 32, rates 0.03 to 1, down
    # to 0.001 or 0.01), the best 0.255. Closure: 32 of these, MAP 0.14 to 0.38; with squared distances 0.26
    # to 0.28; with 60 more epochs of settling 0.27, while MR falls from 48 to 35.
    defaults: ClassVar[dict[str, dict[str, Any]]] = {
        PARENT: {"sharpness": 32.0, "rate": 3.0, "last_rate": 0.01},
        ANCESTORS: {"rate": 0.03, "last_rate": 0.001},
        CLOSURE: {"rate": 0.03, "last_rate": 0.001},
    }

    def _space(self) -> Manifold:
        return EuclideanManifold()

    def _start(self, tree: Tree, dim: int, rng: np.random.Generator) -> Floats:
        points = super()._start(tree, dim, rng)[:, 1:]
        length = np.sqrt(np.einsum("ij,ij->i", points, points))
        scale = np.divide(np.arcsinh(length), length, out=np.ones_like(length), where=length > 0.0)
        return points * scale[:, None]


# Points that know nothing of the tree, and points of its names: what trained ones must beat.


class RandomEmbedder:
    """Normal coordinates, the same for every tree of that size: a mean rank of half the nodes."""

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
    ) -> NodeVectors:
        """The vectors of the tree's names; without ``dim``, as long as the model makes them."""
        check_fit_arguments(tree, 1 if dim is None else dim)
        with text_model(self.model) as model:
            vectors = model.embed_report(tree.names, progress=progress).vectors.astype(np.float64)
        if dim is not None and dim > vectors.shape[1]:
            raise ParameterError(
                f"{self.model} has {vectors.shape[1]} dimensions, and {dim} were asked for",
                hint=f"ask for at most {vectors.shape[1]}",
            )
        settings = {"embedder": self.name, "dim": dim or vectors.shape[1], "model": self.model}
        return NodeVectors(tree.ids, tree.names, vectors[:, :dim], self.geometry, settings)


# The combinatorial construction of Sala, De Sa, Gu and Re (2018): no training, every edge equally long.

MAX_RADIUS = 30.0
"""How far from the origin float64 still tells points of the ball apart: 1 - |x| is 2e-13 there."""

ROUNDING_ULPS = 4.0
"""How many units in the last place a point may be off. Edges came out wrong by 0.8 of the sum of both ends at
most on charts, stars, paths and binary trees of 2 to 50 dimensions, and by 2.9 on WordNet's mammals."""


def rounding_error_bound(points: Floats) -> Floats:
    """How far float64 may have moved each point of the ball from where the construction puts it.

    A coordinate near the rim is rounded by eps, and the metric stretches that by e^radius.

    >>> rounding_error_bound(np.array([[0.0, 0.0], [0.0, 1.0 - 1e-9]])).round(9).tolist()
    [0.0, 1.776e-06]
    """
    norm = distances.norm(points)
    stretch: Floats = (1.0 + norm) / (1.0 - norm)
    return ROUNDING_ULPS * np.finfo(np.float64).eps * stretch


class CombinatorialEmbedder:
    """Children around their parent at one distance: the longer it is, the nearer to distances in the tree.

    ``edge`` is that distance; without it, the longest that keeps the deepest node within float64's reach. A
    node with several parents hangs from the first on a shortest path from a root, and
    ``settings["edges_left_out"]`` counts the others. In two dimensions siblings stand at equal angles; in
    more, they are spread at random.
    """

    name = "combinatorial"
    geometry = "poincare"

    def __init__(self, edge: float | None = None) -> None:
        if edge is not None and not (edge > 0.0 and math.isfinite(edge)):
            raise ParameterError(f"edge is {edge}", hint="it is a length above 0")
        self.edge = edge

    def fit(self, tree: Tree, dim: int, seed: int = 0, *, progress: Progress | None = None) -> NodeVectors:
        """The points of the tree's nodes; see ``TreeEmbedder``."""
        check_fit_arguments(tree, dim, least=2)
        levels = int(tree.depth.max(initial=0.0)) + (len(tree.roots) > 1)
        longest = MAX_RADIUS / max(1, levels)
        edge = self.edge or longest
        if edge > longest * (1.0 + 1e-9):
            raise ParameterError(
                f"edges of {edge:g} put the deepest of {levels} levels {edge * levels:g} from the origin, "
                f"and float64 tells points of the ball apart up to {MAX_RADIUS:g}",
                hint=f"edges of {longest:.4g} are the longest for {tree.source}",
            )
        points = constant_edge_layout(tree, dim, edge, np.random.default_rng(seed), MAX_RADIUS)
        if progress is not None:
            progress(1, 1)
        left_out = len(tree.edges) - (len(tree) - len(tree.roots))
        settings = {"embedder": self.name, "dim": dim, "seed": seed, "edge": edge, "edges_left_out": left_out}
        return NodeVectors(tree.ids, tree.names, hyperboloid_to_ball(points), self.geometry, settings)


TREE_EMBEDDERS: dict[str, type] = {
    each.name: each
    for each in (EuclideanEmbedder, PoincareEmbedder, LorentzEmbedder, CombinatorialEmbedder, RandomEmbedder)
}
"""Embedders by name; ``text:MODEL`` stands for any text model besides."""

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
    """The embedder that answers to a name, with its options; ``text:MODEL`` takes any spec of a text model.

    >>> tree_embedder("lorentz", epochs=10).geometry
    'lorentz'
    """
    kind, _, model = name.partition(":")
    if kind.strip().casefold() == _TEXT:
        if not model:
            raise ParameterError("text: names no model", hint="write text:MODEL; eq ls models lists them")
        return _made(name, lambda: TextEmbedder(model, **options), options)
    found = TREE_EMBEDDERS.get(normalise_name(name))
    if found is None:
        more = f"known: {', '.join(TREE_EMBEDDERS)}, {_TEXT}:MODEL"
        raise UnknownNameError.of("tree embedder", name, [*TREE_EMBEDDERS, _TEXT], more=more)
    return _made(name, lambda: found(**options), options)


def normalise_name(name: str) -> str:
    """An embedder's name as it is known; that of a text model stays as it is written.

    >>> normalise_name(" Lorentz")
    'lorentz'
    """
    plain = name.strip()
    return plain.casefold() if plain.casefold() in TREE_EMBEDDERS else plain


def _made(name: str, make: Callable[[], TreeEmbedder], options: dict[str, Any]) -> TreeEmbedder:
    try:
        return make()
    except TypeError as error:
        raise ParameterError(
            f"the {name} embedder does not take {', '.join(options)}", hint="leave the option out"
        ) from error
