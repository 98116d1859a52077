"""Vectors in a space, with what is known about the points: classes, depths, norms, relations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from equipoise.errors import DuplicateError, InputError, NotFiniteError, ShapeError
from equipoise.evidence.base import (
    Arrays,
    Evidence,
    StoredArrays,
    check_same_length,
    float_column,
    ids_to_array,
    to_numpy,
    unique_ids,
)
from equipoise.evidence.labels import as_class_labels

if TYPE_CHECKING:
    from equipoise.types import Floats, Ids, Ints

Vectors = NDArray[np.floating[Any]]
"""Single precision is stored as it is; arithmetic is done in double precision."""


@dataclass(frozen=True, eq=False, repr=False)
class Space(Evidence):
    """Embedded points with optional classes, depths, norms and edges; a unit is a point.

    Create it with ``Space.of``. ``depth`` has one number per point, NaN if it is undefined; ``norms`` are distances
    from the origin in the geometry of the vectors, None if it is Euclidean; ``edges`` has one pair of row numbers per
    relation.

    >>> space = Space.of([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]], labels=["a", "a", "b"], edges=[[0, 1]])
    >>> space.take(np.array([1, 0])).edges.tolist()
    [[1, 0]]
    """

    kind: ClassVar[str] = "space"

    unit_ids: Ids
    vectors: Vectors
    labels: Ints | None = None
    classes: Ids | None = None
    depth: Floats | None = None
    norms: Floats | None = None
    edges: Ints | None = None

    @classmethod
    def of(
        cls,
        vectors: ArrayLike,
        *,
        labels: ArrayLike | None = None,
        depth: ArrayLike | None = None,
        norms: ArrayLike | None = None,
        edges: ArrayLike | None = None,
        unit_ids: ArrayLike | None = None,
    ) -> Self:
        """From a matrix of vectors, and columns with one entry per point.

        Parameters
        ----------
        vectors
            A (points, dimensions) matrix of finite numbers.
        labels
            The class of each point.
        depth
            The depth of each point in a hierarchy, NaN if it is undefined.
        norms
            The distance of each point from the origin; by default the Euclidean norm.
        edges
            Relations: pairs of row numbers.
        unit_ids
            Ids of the points; by default 0, 1, 2, ...
        """
        matrix = _matrix(vectors)
        codes = classes = None
        if labels is not None:
            names = as_class_labels(labels, "labels")
            check_same_length(matrix, names, "vectors", "labels")
            classes, codes = np.unique(names, return_inverse=True)
            codes = codes.astype(np.int64)
        deep = None if depth is None else float_column(depth, "the depths", nan=True)
        norm_column = None if norms is None else float_column(norms, "the norms")
        for column, name in ((deep, "depths"), (norm_column, "norms")):
            if column is not None:
                check_same_length(matrix, column, "vectors", name)
        joined = None if edges is None else _edges(edges, len(matrix))
        return cls(unique_ids(unit_ids, len(matrix)), matrix, codes, classes, deep, norm_column, joined)

    @property
    def radii(self) -> Floats:
        """How far each point is from the origin: the norms as given, else the euclidean ones."""
        return np.linalg.norm(self.vectors.astype(np.float64), axis=1) if self.norms is None else self.norms

    def take(self, index: Ints) -> Self:
        """The points at ``index``, with every edge that joins two of them (or copies of them)."""
        return replace(
            self,
            unit_ids=self.unit_ids[index],
            vectors=self.vectors[index],
            labels=None if self.labels is None else self.labels[index],
            depth=None if self.depth is None else self.depth[index],
            norms=None if self.norms is None else self.norms[index],
            edges=None if self.edges is None else _edges_among(self.edges, index, len(self)),
        )

    def shuffled(self, rng: np.random.Generator) -> Self:
        """The same vectors and norms, with classes, depths and relations assigned to them at random."""
        order = rng.permutation(len(self))
        return replace(
            self,
            labels=None if self.labels is None else self.labels[order],
            depth=None if self.depth is None else self.depth[order],
            edges=None if self.edges is None else order[self.edges],
        )

    def to_arrays(self) -> Arrays:
        """Ids, vectors, and what else is known."""
        arrays: Arrays = {"unit_ids": ids_to_array(self.unit_ids), "vectors": self.vectors}
        if self.classes is not None:
            arrays["classes"] = ids_to_array(self.classes)
        for name in ("labels", "depth", "norms", "edges"):
            if getattr(self, name) is not None:
                arrays[name] = getattr(self, name)
        return arrays

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """The inverse of ``to_arrays``."""
        stored = StoredArrays(arrays)
        unit_ids = stored.ids("unit_ids")
        points = len(unit_ids)
        classes = stored.ids("classes") if "classes" in stored else None
        n_classes = 0 if classes is None else len(classes)
        return cls(
            unit_ids,
            stored.numbers("vectors", points, None),
            stored.codes("labels", n_classes, points) if "labels" in stored else None,
            classes,
            stored.numbers("depth", points) if "depth" in stored else None,
            stored.numbers("norms", points) if "norms" in stored else None,
            stored.codes("edges", points, None, 2) if "edges" in stored else None,
        )


def _matrix(vectors: Any) -> Vectors:
    """A matrix of finite floats, in single precision if the input is."""
    try:
        matrix = to_numpy(vectors)
        if matrix.dtype != np.float32:
            matrix = matrix.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"the vectors are not a matrix of numbers: {error}") from error
    if matrix.ndim != 2 or matrix.shape[1] == 0:
        raise ShapeError(
            f"the vectors have shape {matrix.shape}", hint="give one row per point and one column per dimension"
        )
    bad = ~np.isfinite(matrix).all(axis=1)
    if bad.any():
        count = "1 vector holds" if bad.sum() == 1 else f"{int(bad.sum())} vectors hold"
        raise NotFiniteError(
            f"{count} NaN or infinity, the first at position {int(np.argmax(bad))}",
            hint="embed these items again or leave them out",
        )
    return matrix


def _edges(edges: Any, points: int) -> Ints:
    """Pairs of different positions, none of them twice."""
    pairs = to_numpy(edges)
    if pairs.size == 0:
        return np.empty((0, 2), dtype=np.int64)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        raise ShapeError(
            f"the edges have shape {pairs.shape} of {pairs.dtype}",
            hint="give one row per edge: the positions of its two ends among the vectors",
        )
    if pairs.min() < 0 or pairs.max() >= points:
        raise InputError(f"the edges reach from {pairs.min()} to {pairs.max()}, but there are {points} vectors")
    loops = pairs[:, 0] == pairs[:, 1]
    if loops.any():
        raise InputError(
            f"edge {int(np.argmax(loops))} joins point {pairs[np.argmax(loops), 0]} to itself",
            hint="a point is always near itself; leave such edges out",
        )
    distinct, times = np.unique(pairs, axis=0, return_counts=True)
    if len(distinct) != len(pairs):
        first, second = distinct[np.argmax(times)]
        raise DuplicateError(
            f"the edge from {first} to {second} appears {int(times.max())} times",
            hint="numpy.unique(edges, axis=0) keeps one of each",
        )
    return pairs.astype(np.int64)


def _edges_among(edges: Ints, index: Ints, points: int) -> Ints:
    """The edges between the points at ``index``, in their new positions; a copied point copies its edges."""
    order = np.argsort(index, kind="stable")
    copies = np.bincount(index, minlength=points)
    first_place = np.cumsum(copies) - copies
    from_copies, to_copies = copies[edges[:, 0]], copies[edges[:, 1]]
    products = from_copies * to_copies
    edge = np.repeat(np.arange(len(edges)), products)
    position = np.arange(len(edge)) - np.repeat(np.cumsum(products) - products, products)
    start, end = edges[edge].T
    one = order[first_place[start] + position // to_copies[edge]]
    other = order[first_place[end] + position % to_copies[edge]]
    return np.stack([one, other], axis=1).astype(np.int64)
