"""Geometries: distances, validity of points, and nearest neighbours."""

from equipoise.geometry.base import Geometry, InvalidRows, PointArray, PreparedCorpus, Validity, as_vectors
from equipoise.geometry.search import Neighbors, SearchCorpus, nearest_neighbors, score_blocks
from equipoise.geometry.spaces import GEOMETRIES, Cosine, Dot, Euclidean, Lorentz, Poincare, geometry

__all__ = [
    "GEOMETRIES",
    "Cosine",
    "Dot",
    "Euclidean",
    "Geometry",
    "InvalidRows",
    "Lorentz",
    "Neighbors",
    "Poincare",
    "PointArray",
    "PreparedCorpus",
    "SearchCorpus",
    "Validity",
    "as_vectors",
    "geometry",
    "nearest_neighbors",
    "score_blocks",
]
