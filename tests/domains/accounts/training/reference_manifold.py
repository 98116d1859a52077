"""The manifolds of training, as plain functions: distances with their gradients, and the exponential map."""

from __future__ import annotations

import numpy as np

from equipoise.domains.accounts.training.numba_sgd import MAX_STEP
from equipoise.domains.accounts.training.objective import EUCLIDEAN, Manifold, hyperboloid

SPACES = [EUCLIDEAN, hyperboloid()]


def distance_and_gradient(space: Manifold, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distances d(x, y), and their gradients by x: unit tangent vectors at x that point away from y."""
    if not space.is_hyperbolic:
        length = np.linalg.norm(x - y, axis=-1)
        return length, (x - y) / np.maximum(length, 1e-12)[..., None]
    product = np.maximum(x[..., 0] * y[..., 0] - (x[..., 1:] * y[..., 1:]).sum(-1), 1.0 + 1e-12)
    sinh = np.sqrt(product * product - 1.0)
    return np.log(product + sinh), (product[..., None] * x - y) / sinh[..., None]


def exp_map(space: Manifold, x: np.ndarray, tangent: np.ndarray) -> np.ndarray:
    """Exponential map of rows; steps are limited to ``MAX_STEP``, norms to ``max_norm``."""
    signs = np.where((np.arange(x.shape[1]) == 0) & space.is_hyperbolic, -1.0, 1.0)
    length = np.sqrt(np.maximum((signs * tangent * tangent).sum(-1, keepdims=True), 0.0))
    step = np.minimum(length, MAX_STEP)
    unit = tangent / np.maximum(length, 1e-300)
    if not space.is_hyperbolic:
        return x + step * unit
    return on_hyperboloid((np.cosh(step) * x + np.sinh(step) * unit)[:, 1:], space)


def on_hyperboloid(coordinates: np.ndarray, space: Manifold = SPACES[1]) -> np.ndarray:
    """Points with these space coordinates, (n, dim) -> (n, dim + 1); norms are clipped to ``max_norm``."""
    norms = np.linalg.norm(coordinates, axis=1, keepdims=True)
    coordinates = coordinates * (space.max_norm / np.maximum(norms, space.max_norm))
    return np.concatenate([np.sqrt(1.0 + (coordinates**2).sum(1, keepdims=True)), coordinates], axis=1)


def some_points(space: Manifold, count: int, dims: int = 3, scale: float = 1.0) -> np.ndarray:
    """Points a few units from the origin."""
    coordinates = scale * np.random.default_rng(3).normal(size=(count, dims))
    return on_hyperboloid(coordinates, space) if space.is_hyperbolic else coordinates
