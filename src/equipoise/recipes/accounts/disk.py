"""Points of any dimension as points of the disk or the plane, for pictures alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from equipoise.errors import ParameterError
from equipoise.geometry.functions import ball_to_hyperboloid, lorentz_norm
from equipoise.hierarchy.embedded import Embedded
from equipoise.types import Floats

HYPERBOLIC = ("poincare", "lorentz")
PROJECTED = "Seen in the two directions that differ most: how far from the middle is that of all dimensions."

FARTHEST = 5.0
"""Points farther out than this lie on the rim for the eye; here 1.3 % of the radius is left to it."""


@dataclass(frozen=True)
class Flattened:
    """Two coordinates a node; ``kind`` is "disk" or "plane", ``caption`` says what was lost."""

    points: Floats
    kind: str
    caption: str = ""


def flattened(embedded: Embedded) -> Flattened:
    """Hyperbolic points in the Poincare disk, flat ones in the plane.

    Two dimensions are drawn as they are. More are turned until the two directions in which the points differ
    most lie in the picture; each point keeps its distance from the origin, so that its depth can be seen. A
    disk whose points would crowd on the rim is shrunk towards its middle.

    >>> flattened(Embedded(("a",), ("a",), np.array([[1.0, 0.0, 0.0]]), "lorentz")).points.tolist()
    [[0.0, 0.0]]
    """
    if embedded.dim < 2:
        raise ParameterError("one dimension is too few for a picture", hint="embed the tree in 2 or more")
    if embedded.geometry not in HYPERBOLIC:
        plane = embedded.vectors if embedded.dim == 2 else _directions(embedded.vectors)
        return Flattened(plane, "plane", "" if embedded.dim == 2 else PROJECTED)
    above = embedded.vectors if embedded.geometry == "lorentz" else ball_to_hyperboloid(embedded.vectors)
    ways = above[:, 1:]
    if embedded.dim > 2:
        ways = _directions(ways / np.maximum(above[:, :1], 1.0))
    length = np.sqrt((ways * ways).sum(axis=1, keepdims=True))
    ways = np.divide(ways, length, out=np.zeros_like(ways), where=length > 0)
    far = lorentz_norm(above)
    factor = max(1.0, float(far.max(initial=0.0)) / FARTHEST)
    captions = ([PROJECTED] if embedded.dim > 2 else []) + ([_shrunk(factor)] if factor > 1 else [])
    return Flattened(np.tanh(far / factor / 2)[:, None] * ways, "disk", " ".join(captions))


def _shrunk(factor: float) -> str:
    return (
        f"All distances from the middle are drawn {factor:.2g} times shorter than they are, since most "
        "points would lie on the rim; directions are kept."
    )


def _directions(rows: Floats) -> Floats:
    """The coordinates along the two directions in which the rows differ most, signs made definite."""
    _, _, axes = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)
    chosen = np.zeros((2, rows.shape[1]))
    chosen[: min(2, len(axes))] = axes[:2]
    # A direction and its opposite are alike; the one whose largest part is positive is taken.
    largest = np.abs(chosen).argmax(axis=1)
    signs = np.sign(chosen[np.arange(2), largest])
    found: Floats = rows @ (chosen * np.where(signs == 0, 1.0, signs)[:, None]).T
    return found
