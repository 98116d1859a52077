"""Vectors for the nodes of a tree from whatever a user has: something to fit, a text model, a matrix."""

from __future__ import annotations

import csv
import inspect
import io
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.domains.accounts.reconstruction import check_points
from equipoise.errors import FormatError, InputError, ParameterError, ShapeError
from equipoise.geometry.spaces import geometry as geometry_named
from equipoise.io.arrays import array_names, read_array
from equipoise.io.atomic import write_bytes, write_text
from equipoise.io.tables import read_table
from equipoise.io.text import PathLike, display_path
from equipoise.models.backends.python_object import is_model

if TYPE_CHECKING:
    from equipoise.domains.accounts.trees.tree import Tree
    from equipoise.types import Floats

# Vectors of a tree's nodes: what they lie in, how they were made, and the files they are kept in.

_NPZ = ".npz"


@dataclass(frozen=True, eq=False)
class NodeVectors:
    """One point for every node of a tree, in the tree's order.

    ``dim`` is the dimension of the space: Lorentz points have one coordinate more, time first. ``settings``
    says what made them, and ``history`` holds the mean loss of each epoch, empty where nothing was trained.

    >>> NodeVectors(("a",), ("Cash",), np.zeros((1, 2)), "euclidean")
    Embedded(1 nodes, euclidean, 2 dimensions)
    """

    ids: tuple[str, ...]
    names: tuple[str, ...]
    vectors: Floats
    geometry: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    history: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if self.vectors.ndim != 2 or not len(self.ids) == len(self.names) == len(self.vectors):
            raise ShapeError(
                f"{len(self.ids)} ids, {len(self.names)} names and vectors of shape {self.vectors.shape} "
                "do not fit together",
                hint="give one id, one name and one row for each node",
            )

    @property
    def dim(self) -> int:
        """The dimension of the space, which for Lorentz points is one less than their coordinates."""
        return int(self.vectors.shape[1]) - (self.geometry == "lorentz")

    def __repr__(self) -> str:
        return f"Embedded({len(self.ids)} nodes, {self.geometry}, {self.dim} dimensions)"

    def write(self, path: PathLike) -> None:
        """Keep the vectors: ``.npz`` with everything, any other name as CSV of id, name, x0, x1, ...

        CSV holds every digit, so that reading gives back the same numbers; it does not say the geometry.
        """
        if Path(path).suffix.casefold() == _NPZ:
            write_bytes(path, self._npz())
        else:
            write_text(path, self._csv())

    def _npz(self) -> bytes:
        stream = io.BytesIO()
        np.savez_compressed(
            stream,
            ids=np.array(self.ids, dtype=np.str_),
            names=np.array(self.names, dtype=np.str_),
            vectors=self.vectors,
            geometry=np.array(self.geometry),
            settings=np.array(json.dumps(dict(self.settings), sort_keys=True)),
            history=np.array(self.history, dtype=np.float64),
        )
        return stream.getvalue()

    def _csv(self) -> str:
        stream = io.StringIO(newline="")
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(["id", "name", *(f"x{axis}" for axis in range(self.vectors.shape[1]))])
        for node, name, row in zip(self.ids, self.names, self.vectors.tolist(), strict=True):
            writer.writerow([node, name, *map(repr, row)])
        return stream.getvalue()


def read_node_vectors(path: PathLike, geometry: str | None = None) -> NodeVectors:
    """The vectors of a file that ``write`` made, or of any CSV with id, perhaps name, and number columns.

    A CSV does not say its geometry: it is euclidean unless ``geometry`` says otherwise.
    """
    if Path(path).suffix.casefold() == _NPZ:
        return _from_npz(path, geometry)
    table = read_table(path)
    if not table.rows:
        raise InputError(f"{display_path(path)} holds no vectors", hint="it needs columns id, name, x0, x1, ...")
    columns = [column for column in table.rows[0] if column not in ("id", "name")]
    table.require("id", *columns)
    if not columns:
        raise FormatError(f"{display_path(path)} has no columns of numbers", hint="it needs id, name, x0, x1, ...")
    vectors = np.empty((len(table.rows), len(columns)))
    for index, row in enumerate(table.rows):
        try:
            vectors[index] = [float(row[column]) for column in columns]
        except (TypeError, ValueError):
            bad = next(column for column in columns if not _is_number(row[column]))
            raise table.error(FormatError, [index], f"has {row[bad]!r} under {bad}, which is no number") from None
    ids = tuple(str(row["id"]) for row in table.rows)
    names = tuple(str(row.get("name") or row["id"]) for row in table.rows)
    return NodeVectors(ids, names, vectors, geometry or "euclidean")


def _from_npz(path: PathLike, geometry: str | None) -> NodeVectors:
    parts = {name: read_array(f"{path}:{name}") for name in array_names(path)}
    if "ids" not in parts or "vectors" not in parts:
        raise FormatError(
            f"{display_path(path)} holds {', '.join(parts) or 'nothing'}; ids and vectors are needed",
            hint="Embedded.write(path) keeps both",
        )
    try:
        ids = tuple(map(str, parts["ids"].tolist()))
        return NodeVectors(
            ids,
            tuple(map(str, parts["names"].tolist())) if "names" in parts else ids,
            np.asarray(parts["vectors"], dtype=np.float64),
            geometry or str(parts.get("geometry", "euclidean")),
            dict(json.loads(str(parts["settings"]))) if "settings" in parts else {},
            tuple(map(float, parts["history"].tolist())) if "history" in parts else (),
        )
    except (TypeError, ValueError, RecursionError) as error:
        raise FormatError(f"{display_path(path)} holds no vectors of a tree: {error}", hint="write it again") from error


def _is_number(value: object) -> bool:
    try:
        float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
    return True


TREE_PARAMETER_NAMES = ("tree", "hierarchy")
"""What the first parameter of a ``fit`` is called that takes a tree; others get the names of the nodes."""
VECTOR_ATTRIBUTES = ("vectors", "embeddings", "embedding_", "vectors_")
"""Where an object may keep its vectors after it was fitted."""
ENCODE_METHODS = ("encode", "embed", "transform")
_OF_NAMES = "an embedder has fit(tree, dim, seed), fit(names) or encode(names), or is a matrix with a row a node"


def node_vectors_from(
    embedder: Any, tree: Tree, *, geometry: str, dim: int | None = None, seed: int = 0, **training: Any
) -> NodeVectors:
    """The vectors of an embedder, one a node in the order of the tree.

    An object with ``fit`` is fitted: on the tree where its first parameter is called ``tree``, else on the
    names. What it returns, what ``encode`` of the names gives, or what it keeps are the vectors. A matrix has
    a row a node; a mapping has a vector an id; vectors with ids are put into the order of the tree.
    ``training`` goes to ``fit``, and so do ``dim`` and ``seed`` where it takes them.

    >>> from equipoise.domains.accounts.trees.tree import Tree
    >>> tree = Tree.from_edges([("cash", "assets"), ("bank", "assets")])
    >>> node_vectors_from(np.eye(3), tree, geometry="euclidean")
    Embedded(3 nodes, euclidean, 3 dimensions)
    """
    space = geometry_named(geometry).name
    found = _found(embedder, tree, {"dim": dim, "seed": seed}, training)
    if isinstance(found, NodeVectors):
        return align_to_tree(found, tree)
    return NodeVectors(tree.ids, tree.names, _matrix(found, tree), space)


def align_to_tree(found: NodeVectors, tree: Tree) -> NodeVectors:
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
    return NodeVectors(tree.ids, tree.names, rows, found.geometry, found.settings, found.history)


def align_and_check(found: NodeVectors, tree: Tree) -> NodeVectors:
    """The vectors in the order of the tree's nodes, once it is known that they lie in their space."""
    ordered = align_to_tree(found, tree)
    check_points(geometry_named(ordered.geometry), ordered.vectors, tree)
    return ordered


def _found(embedder: Any, tree: Tree, offered: dict[str, Any], training: dict[str, Any]) -> Any:
    """A matrix, a mapping or ``NodeVectors``."""
    if isinstance(embedder, NodeVectors | Mapping | np.ndarray | list | tuple) or _is_tensor(embedder):
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
        raise ParameterError(f"{_called(embedder)} has no fit that could take {', '.join(training)}", hint=_OF_NAMES)
    for name in ENCODE_METHODS:
        if callable(getattr(embedder, name, None)):
            return getattr(embedder, name)(names)
    if is_model(embedder):  # one with the two methods by role
        return embedder.embed_documents(names)
    for name in VECTOR_ATTRIBUTES:
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
        name: value for name, value in offered.items() if name in taken and name not in training and value is not None
    }
    return fit(tree if first in TREE_PARAMETER_NAMES else names, **also, **training)


def _is_vectors(given: Any) -> bool:
    return isinstance(given, NodeVectors | Mapping | np.ndarray | list | tuple) or _is_tensor(given)


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
