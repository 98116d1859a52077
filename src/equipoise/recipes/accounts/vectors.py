"""Vectors for the nodes of a tree from whatever a user has: something to fit, a text model, a matrix."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from equipoise.embed.adapters.python_object import is_model
from equipoise.errors import InputError, ParameterError, ShapeError
from equipoise.geometry.names import geometry as geometry_named
from equipoise.hierarchy.embedded import Embedded
from equipoise.hierarchy.tree import Tree
from equipoise.tasks.reconstruct import checked_points
from equipoise.types import Floats

TREE_WORDS = ("tree", "hierarchy")
"""What the first parameter of a ``fit`` is called that takes a tree; others get the names of the nodes."""
KEPT = ("vectors", "embeddings", "embedding_", "vectors_")
"""Where an object may keep its vectors after it was fitted."""
ENCODERS = ("encode", "embed", "transform")
_OF_NAMES = (
    "an embedder has fit(tree, dim, seed), fit(names) or encode(names), or is a matrix with a row a node"
)


def vectors_for(
    embedder: Any, tree: Tree, *, geometry: str, dim: int | None = None, seed: int = 0, **training: Any
) -> Embedded:
    """The vectors of an embedder, one a node in the order of the tree.

    An object with ``fit`` is fitted: on the tree where its first parameter is called ``tree``, else on the
    names. What it returns, what ``encode`` of the names gives, or what it keeps are the vectors. A matrix has
    a row a node; a mapping has a vector an id; vectors with ids are put into the order of the tree.
    ``training`` goes to ``fit``, and so do ``dim`` and ``seed`` where it takes them.

    >>> tree = Tree.from_edges([("cash", "assets"), ("bank", "assets")])
    >>> vectors_for(np.eye(3), tree, geometry="euclidean")
    Embedded(3 nodes, euclidean, 3 dimensions)
    """
    space = geometry_named(geometry).name
    found = _found(embedder, tree, {"dim": dim, "seed": seed}, training)
    if isinstance(found, Embedded):
        return in_order(found, tree)
    return Embedded(tree.ids, tree.names, _matrix(found, tree), space)


def in_order(found: Embedded, tree: Tree) -> Embedded:
    """The vectors in the order of the tree's nodes; a node without one is an error."""
    if found.ids == tree.ids:
        return found
    places = {key: place for place, key in enumerate(found.ids)}
    if len(places) < len(found.ids):
        twice = next(key for place, key in enumerate(found.ids) if places[key] != place)
        raise InputError(f"the vectors hold the node {twice} twice", hint="give each node one vector")
    lacking = [key for key in tree.ids if key not in places]
    if lacking:
        raise InputError(
            f"{len(lacking)} of {len(tree)} nodes have no vector, {lacking[0]} is the first",
            hint="the ids of vectors and tree must be spelled alike",
        )
    rows = found.vectors[[places[key] for key in tree.ids]]
    return Embedded(tree.ids, tree.names, rows, found.geometry, found.settings, found.history)


def in_space(found: Embedded, tree: Tree) -> Embedded:
    """The vectors in the order of the tree's nodes, once it is known that they lie in their space."""
    ordered = in_order(found, tree)
    checked_points(geometry_named(ordered.geometry), ordered.vectors, tree)
    return ordered


def _found(embedder: Any, tree: Tree, offered: dict[str, Any], training: dict[str, Any]) -> Any:
    """A matrix, a mapping or ``Embedded``."""
    if isinstance(embedder, Embedded | Mapping | np.ndarray | list | tuple) or _is_tensor(embedder):
        if training:
            raise ParameterError(
                f"vectors that are there already cannot take {', '.join(training)}", hint="leave it out"
            )
        return embedder
    names = list(tree.names)
    fit = getattr(embedder, "fit", None)
    if callable(fit):
        given = _fit(fit, tree, names, offered, training)
        if _is_vectors(given):
            return given
        embedder = embedder if given is None else given
    elif training:
        raise ParameterError(
            f"{_called(embedder)} has no fit that could take {', '.join(training)}", hint=_OF_NAMES
        )
    for name in ENCODERS:
        if callable(getattr(embedder, name, None)):
            return getattr(embedder, name)(names)
    if is_model(embedder):  # one with the two methods by role
        return embedder.embed_documents(names)
    for name in KEPT:
        if getattr(embedder, name, None) is not None:
            return getattr(embedder, name)
    raise ParameterError(f"{_called(embedder)} gives no vectors", hint=_OF_NAMES)


def _fit(
    fit: Callable[..., Any], tree: Tree, names: list[str], offered: dict[str, Any], training: dict[str, Any]
) -> Any:
    """Call ``fit`` with what its signature asks for."""
    try:
        taken = inspect.signature(fit).parameters
    except (TypeError, ValueError):  # some extensions do not say
        return fit(names, **training)
    first = next(iter(taken), "")
    rest = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in taken.values())
    unknown = [name for name in training if name not in taken and not rest]
    if unknown:
        raise ParameterError(
            f"the fit of {_called(getattr(fit, '__self__', fit))} takes no {unknown[0]}",
            hint=f"it takes {', '.join(taken) or 'nothing'}",
        )
    also = {
        name: value
        for name, value in offered.items()
        if name in taken and name not in training and value is not None
    }
    return fit(tree if first in TREE_WORDS else names, **also, **training)


def _is_vectors(given: Any) -> bool:
    return isinstance(given, Embedded | Mapping | np.ndarray | list | tuple) or _is_tensor(given)


def _is_tensor(value: Any) -> bool:
    """Whether a value is an array of another library."""
    return hasattr(value, "__array__") and hasattr(value, "shape")


def _matrix(found: Any, tree: Tree) -> Floats:
    if isinstance(found, Mapping):
        lacking = [key for key in tree.ids if key not in found]
        if lacking:
            raise InputError(
                f"{len(lacking)} of {len(tree)} nodes have no vector, {lacking[0]} is the first",
                hint="the mapping needs a vector for every id of the tree",
            )
        found = [found[key] for key in tree.ids]
    if callable(getattr(found, "detach", None)):
        found = found.detach().cpu().numpy()
    try:
        matrix = np.asarray(found, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"the vectors are not rows of numbers of one length: {error}") from error
    if matrix.ndim != 2 or len(matrix) != len(tree):
        raise ShapeError(
            f"there are vectors of shape {matrix.shape} for {len(tree)} nodes",
            hint="give one row a node, in the order of the tree",
        )
    return matrix


def _called(embedder: Any) -> str:
    return type(embedder).__qualname__
