"""Hierarchies read back from vectors: where each node ranks its relatives among all other nodes."""

from equipoise.tasks.reconstruct.reconstruct import (
    Reconstruction,
    checked_points,
    reconstruct,
    refuse_edgeless,
)
from equipoise.tasks.reconstruct.result import (
    reconstruction_metrics,
    reconstruction_result,
    reconstruction_slices,
)
from equipoise.tasks.reconstruct.spread import Spread, spread

__all__ = [
    "Reconstruction",
    "Spread",
    "checked_points",
    "reconstruct",
    "reconstruction_metrics",
    "reconstruction_result",
    "reconstruction_slices",
    "refuse_edgeless",
    "spread",
]
