"""Notions of nearness: what a distance is, which points are valid, and who is nearest."""

from equipoise.geometry.base import Geometry, Prepared
from equipoise.geometry.names import GEOMETRIES, geometry
from equipoise.geometry.points import Points, as_points
from equipoise.geometry.search import Corpus, Neighbours, nearest, score_blocks
from equipoise.geometry.spaces import Cosine, Dot, Euclidean, Lorentz, Poincare
from equipoise.geometry.validity import Fault, Validity

__all__ = [
    "GEOMETRIES",
    "Corpus",
    "Cosine",
    "Dot",
    "Euclidean",
    "Fault",
    "Geometry",
    "Lorentz",
    "Neighbours",
    "Poincare",
    "Points",
    "Prepared",
    "Validity",
    "as_points",
    "geometry",
    "nearest",
    "score_blocks",
]
