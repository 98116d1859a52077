"""Tree embedders: trained (euclidean, poincare, lorentz), constructed (combinatorial), and baselines (random, text).

``tree_embedder(name)`` creates one; each has a geometry and ``fit(tree, dim, seed)``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

import numpy as np

from equipoise.domains.accounts.training.layouts import (
    cone_initialization,
    growing_edge_layout,
    to_ball,
    to_hyperboloid,
)
from equipoise.domains.accounts.training.objective import EUCLIDEAN, Manifold, PositivePairs, hyperboloid, rank_loss
from equipoise.domains.accounts.training.trainer import (
    Progress,
    TrainingConfig,
    TrainingProblem,
    default_restarts,
    train,
)
from equipoise.domains.accounts.training.turning_layout import static_layout
from equipoise.domains.accounts.trees.tree import ANCESTORS, CLOSURE, PARENT, Tree
from equipoise.domains.accounts.vectors import NodeVectors, in_geometry
from equipoise.errors import InputError, ParameterError, UnknownNameError
from equipoise.evidence.ranking_among_points import ranking_among_points
from equipoise.geometry.distances import ball_to_hyperboloid, hyperboloid_to_ball
from equipoise.geometry.spaces import geometry as geometry_named
from equipoise.models.embedder import embedder as text_model

if TYPE_CHECKING:
    from equipoise.types import Bools, Floats, Ints


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


def canonical_order(tree: Tree) -> tuple[Tree, Ints]:
    """The tree with nodes and edges in the order of the ids, and the position of each of its nodes in ``tree``."""
    order = np.array(sorted(range(len(tree)), key=tree.ids.__getitem__), dtype=np.int64)
    ordered = tree.taken(order)
    edges = ordered.edges[np.lexsort((ordered.edges[:, 1], ordered.edges[:, 0]))]
    return replace(ordered, edges=edges), order


def training_loss(vectors: NodeVectors) -> float:
    """The loss by which runs are compared; infinite for untrained or diverged vectors."""
    loss = float(vectors.settings.get("loss", vectors.history[-1] if vectors.history else math.inf))
    return loss if math.isfinite(loss) and np.isfinite(vectors.vectors).all() else math.inf


MAX_RADIUS = 30.0
"""Largest radius at which float64 can represent points of the ball: 1 - |x| is 2e-13 there."""
MIN_START_RADIUS, MAX_START_RADIUS = 2.0, 6.0
"""Initial radii of the largest subtrees and of the leaves."""
MAX_STRETCH = 1.5
"""Layouts are not larger than this many times the radius that a tree needs."""
STARTS: tuple[tuple[float | None, bool], ...] = (
    (math.inf, True), (15.0, False), (12.0, False), (12.0, True),
    (None, False), (10.0, True), (9.0, False), (None, False),
)  # fmt: skip
"""The start of each run: radius of the growing-edge layout (None: random cones), and whether it is only refined.

Refined layouts are best for parents: all charts of 5,000 accounts have MR 1 in two dimensions, where random starts give
5 to 30. For ancestors training from a layout is best: WordNet's mammals in 5 dimensions MR 1.01 instead of 1.1.
"""
LAYOUT = -1
"""The number of the layout without training, which is one more start in two dimensions."""
LAYOUT_LOSS = 0.01
"""With this loss of the layout (MAP 0.99) no further start is tried: training lowers it rarely, and takes minutes."""
CONES = STARTS.index((None, False))
"""The number of the first start from random cones."""
TRAINING_RADIUS, TRAINING_RADIUS_2D = 17.0, 19.0
"""Largest distance from the origin in training: larger in two dimensions, where leaves need more room.

The layout of a tree of 5,000 nodes and 14 levels has MAP 0.997 at radius 19 and 0.95 at 17; at 22 rounding of Lorentz
coordinates lowers it to 0.96.
"""


class LorentzEmbedder:
    """Riemannian gradient descent on the hyperboloid over all pairs of a node and a positive.

    Several runs start from growing-edge layouts and from random cones (``STARTS``), and the one with the lowest loss is
    kept. ``TrainingConfig`` lists the options, and the module ``trainer`` describes the stages.
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

    def fit(self, tree: Tree, dim: int, seed: int = 0, *, progress: Progress | None = None) -> NodeVectors:
        """The points with the lowest loss of several runs; they do not depend on the order of the nodes."""
        check_fit_arguments(tree, dim)
        n_starts = self.config.restarts or default_restarts(len(tree.pairs(self.config.train_relation)))
        total = self.config.epochs * n_starts
        best: NodeVectors | None = None
        # Large closures have one start, which the measured scores of nouns come from.
        first = CONES if n_starts == 1 and self.config.train_relation != PARENT else 0
        starts = list(range(first, first + n_starts))
        if dim == 2 and self.config.train_relation == PARENT and self._manifold(dim).is_hyperbolic:
            starts.insert(1, LAYOUT)
        for done, start in enumerate(starts):
            finished = min(done * self.config.epochs, total)
            report = (
                None if progress is None else lambda epoch, _, done=finished: progress(min(done + epoch, total), total)
            )
            vectors = self.fit_from(tree, dim, seed, start, progress=report)
            if best is None or training_loss(vectors) < training_loss(best):
                best = vectors
            if training_loss(best) == 0.0 or (start == LAYOUT and training_loss(best) <= LAYOUT_LOSS):
                break
        assert best is not None
        if progress is not None:
            progress(total, total)
        return replace(best, settings={**best.settings, "restarts": n_starts})

    def fit_from(self, tree: Tree, dim: int, seed: int, start: int, *, progress: Progress | None = None) -> NodeVectors:
        """The points of one training run, from the start of this number."""
        ordered, order = canonical_order(tree)
        rng = np.random.default_rng([seed, start] if start != LAYOUT else seed)
        if start == LAYOUT:
            points = to_hyperboloid(*static_layout(ordered, dim, MAX_RADIUS, rng))
            history: list[float] = []
            # Matrix products lose their digits at this radius, so that ``rank_loss`` cannot be used.
            ranking = ranking_among_points(points, ordered.pairs(PARENT), geometry_named("lorentz"))
            loss = float(np.log1p(ranking.above).mean()) if len(ranking.above) else 0.0
        else:
            radius, refine_only = STARTS[start % len(STARTS)] if dim > 1 else (None, False)
            points = self._initial_points(ordered, dim, rng, radius)
            history, loss = self._train(ordered, points, rng, progress, refine_only=refine_only)
        vectors = np.empty_like(points)
        vectors[order] = points
        return self._node_vectors(tree, vectors, history, {"seed": seed, "start": start, "loss": loss})

    def _train(
        self, tree: Tree, points: Floats, rng: np.random.Generator, progress: Progress | None, *, refine_only: bool
    ) -> tuple[list[float], float]:
        """Train the points in place; returns the history and the loss by which runs are compared."""
        manifold = self._manifold(points.shape[1] - (self.geometry != "euclidean"))
        positives = PositivePairs.of(tree, self.config.train_relation)
        problem = TrainingProblem(manifold, points, positives, self.config, rng)
        history = train(problem, progress, refine_only=refine_only)
        return history, rank_loss(manifold, points, positives, history)

    def _node_vectors(self, tree: Tree, points: Floats, history: list[float], more: dict[str, Any]) -> NodeVectors:
        dim = points.shape[1] - (self.geometry != "euclidean")
        settings = {"embedder": self.name, "dim": dim, **asdict(self.config), "epochs_run": len(history), **more}
        return NodeVectors(tree.ids, tree.names, self._to_geometry(points), self.geometry, settings, tuple(history))

    def fit_more(
        self, tree: Tree, vectors: NodeVectors, seed: int = 0, *, progress: Progress | None = None
    ) -> NodeVectors:
        """Continue training from existing vectors; a node that is not among them starts near its first parent.

        Only refinement runs, so that the existing points move little. Vectors of other nodes are left out.
        """
        check_fit_arguments(tree, vectors.dim)
        if {vectors.geometry, self.geometry} <= {"lorentz", "poincare"}:
            vectors = in_geometry(vectors, self.geometry)
        if vectors.geometry != self.geometry:
            raise ParameterError(
                f"the vectors are in {vectors.geometry} space, and {self.name} trains in {self.geometry} space",
                hint=f"train in {vectors.geometry} space",
            )
        index_by_id = {key: index for index, key in enumerate(vectors.ids)}
        known = np.array([index_by_id.get(key, -1) for key in tree.ids], dtype=np.int64)
        if not (known >= 0).any():
            raise InputError(
                "no node of the tree has a vector", hint="the ids of the vectors must be those of the tree"
            )
        rng = np.random.default_rng([seed, len(STARTS)])
        points = self._from_geometry(vectors.vectors)[np.maximum(known, 0)]
        _place_new_nodes(tree, points, known >= 0, self._manifold(vectors.dim), rng)
        history, loss = self._train(tree, points, rng, progress, refine_only=True)
        n_new = int((known < 0).sum())
        counts = {"new_nodes": n_new, "unused_vectors": len(vectors.ids) - (len(tree) - n_new)}
        return self._node_vectors(tree, points, history, {"seed": seed, "loss": loss, **counts})

    def _manifold(self, dim: int) -> Manifold:
        return hyperboloid(TRAINING_RADIUS_2D if dim == 2 else TRAINING_RADIUS)

    def _initial_points(self, tree: Tree, dim: int, rng: np.random.Generator, radius: float | None) -> Floats:
        if radius is None:
            return cone_initialization(tree, dim, rng, min_radius=MIN_START_RADIUS, max_radius=MAX_START_RADIUS)
        radius = min(radius, TRAINING_RADIUS_2D if dim == 2 else TRAINING_RADIUS)
        return to_hyperboloid(*growing_edge_layout(tree, dim, radius, rng, max_stretch=MAX_STRETCH))

    def _to_geometry(self, points: Floats) -> Floats:
        return points

    def _from_geometry(self, points: Floats) -> Floats:
        return points


def _place_new_nodes(tree: Tree, points: Floats, is_known: Bools, manifold: Manifold, rng: np.random.Generator) -> None:
    """Move each new node to its first parent, and from there by one median edge in a random outward direction."""
    child, parent = tree.edges[is_known[tree.edges].all(axis=1)].T
    space = geometry_named("lorentz" if manifold.is_hyperbolic else "euclidean")
    length = float(np.median(space.distance(points[child], points[parent]))) if len(child) else 1.0
    first = 1 if manifold.is_hyperbolic else 0
    for node in np.argsort(tree.depth, kind="stable").tolist():
        if is_known[node]:
            continue
        above = int(tree.first_parents[node])
        base = np.zeros(points.shape[1] - first) if above < 0 else points[above, first:]
        outward = base / max(float(np.linalg.norm(base)), 1e-9)
        outward += 0.5 * rng.standard_normal(len(base)) / math.sqrt(len(base))
        outward /= np.linalg.norm(outward)
        new_point = base + length * outward
        if manifold.is_hyperbolic:
            # The tangent at the base is outward + (base . outward) base, of squared length 1 + (base . outward)^2.
            radial = float(base @ outward)
            tangent = (outward + radial * base) / math.sqrt(1.0 + radial * radial)
            new_point = math.cosh(length) * base + math.sinh(length) * tangent
            new_point *= min(1.0, manifold.max_norm / max(float(np.linalg.norm(new_point)), 1e-300))
            points[node, 0] = math.sqrt(1.0 + float(new_point @ new_point))
        points[node, first:] = new_point


class PoincareEmbedder(LorentzEmbedder):
    """The same training, converted to points of the Poincare ball.

    Ball and hyperboloid are isometric, and training follows the geodesics exactly, so the result does not depend on the
    model.
    """

    name = "poincare"
    geometry = "poincare"

    def _to_geometry(self, points: Floats) -> Floats:
        return hyperboloid_to_ball(points)

    def _from_geometry(self, points: Floats) -> Floats:
        return ball_to_hyperboloid(points)


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
    # with 60 more epochs of refinement 0.27, while MR falls from 48 to 35. With 400 epochs parents take about the CPU
    # time of the Lorentz embedder (8 s and 7 s): MR 1.16 to 1.27 in three seeds, with 300 epochs 1.22 and 1.33.
    # Refinement lowers MAP to 0.9. For ancestors and closures the Euclidean embedder takes more time than Lorentz.
    defaults: ClassVar[dict[str, dict[str, Any]]] = {
        PARENT: {"epochs": 400, "temperature": 1.0 / 32.0, "learning_rate": 3.0},
        ANCESTORS: {"epochs": 300, "learning_rate": 0.03, "final_learning_rate": 0.001},
        CLOSURE: {"epochs": 300, "learning_rate": 0.03, "final_learning_rate": 0.001},
    }

    def _manifold(self, dim: int) -> Manifold:
        return EUCLIDEAN

    def _initial_points(self, tree: Tree, dim: int, rng: np.random.Generator, radius: float | None) -> Floats:
        points = super()._initial_points(tree, dim, rng, radius)[:, 1:]
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


class CombinatorialEmbedder:
    """The construction of Sala, De Sa, Gu and Re (2018) with growing edges: children around their parent, no training.

    Every edge is longer than the one above, so that a node is nearer to its parent than to its children
    (``growing_edge_layout``). ``radius`` is the distance of the farthest node from the origin: in a larger one the
    distances of the tree are approximated better. A node with several parents uses the first on a shortest path from a
    root, and ``settings["unused_edges"]`` counts the other edges. In more than two dimensions siblings are spread at
    random.
    """

    name = "combinatorial"
    geometry = "poincare"

    def __init__(self, radius: float = MAX_RADIUS) -> None:
        if not 0.0 < radius <= MAX_RADIUS:
            raise ParameterError(
                f"radius is {radius:g}",
                hint=f"it is above 0 and at most {MAX_RADIUS:g}, where float64 can represent points of the ball",
            )
        self.radius = radius

    def fit(self, tree: Tree, dim: int, seed: int = 0, *, progress: Progress | None = None) -> NodeVectors:
        """The points of the tree's nodes; see ``TreeEmbedder``."""
        check_fit_arguments(tree, dim, min_dim=2)
        ordered, order = canonical_order(tree)
        points = np.empty((len(tree), dim))
        points[order] = to_ball(*static_layout(ordered, dim, self.radius, np.random.default_rng(seed)))
        if progress is not None:
            progress(1, 1)
        n_unused_edges = len(tree.edges) - (len(tree) - len(tree.roots))
        settings = {"embedder": self.name, "dim": dim, "seed": seed}
        settings |= {"radius": self.radius, "unused_edges": n_unused_edges}
        return NodeVectors(tree.ids, tree.names, points, self.geometry, settings)


TREE_EMBEDDERS: dict[str, type] = {
    kind.name: kind
    for kind in (EuclideanEmbedder, PoincareEmbedder, LorentzEmbedder, CombinatorialEmbedder, RandomEmbedder)
}
"""Embedders by name; ``text:MODEL`` is any text model."""

_TEXT = "text"


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
