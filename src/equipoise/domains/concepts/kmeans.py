"""K-means for resampling: all starts of a small set of points at once, in numpy, on one thread.

The clustering score is K-means of scikit-learn. Its interval and its chance level repeat K-means hundreds of times on
a few dozen points, where scikit-learn spends most of the time on checks and threads. This module runs the same
algorithm (greedy k-means++ and Lloyd's iterations) with one array operation for all starts.
"""

from __future__ import annotations

from math import log
from typing import TYPE_CHECKING

import numpy as np

from equipoise.tasks.classification import N_INIT, kmeans

if TYPE_CHECKING:
    from equipoise.types import Floats, Ints

MAX_POINTS = 2000
"""Above this, the squared distances of all points would not fit the cache, and scikit-learn is as fast."""
MAX_ITERATIONS = 300


def rotate_to_span(vectors: Floats) -> Floats:
    """Coordinates in the space that the vectors span: all inner products are kept, with at most n columns.

    >>> rotate_to_span(np.array([[3.0, 0.0, 4.0], [0.0, 2.0, 0.0]])).shape
    (2, 2)
    """
    if vectors.shape[0] >= vectors.shape[1]:
        return vectors
    left, sizes, _ = np.linalg.svd(vectors, full_matrices=False)
    return np.asarray(left * sizes)


def fast_kmeans(points: Floats, count: int, *, seed: int = 0, starts: int = N_INIT) -> Ints:
    """The cluster of each row in the tightest of several runs of K-means.

    Parameters
    ----------
    points
        Array of shape (points, dimensions).
    count
        Number of clusters, at most the number of points.
    seed
        Seed of the initialisation.
    starts
        Number of runs, each with its own k-means++ initialisation.

    Returns
    -------
    array
        One cluster per row.

    Examples
    --------
    >>> fast_kmeans(np.array([[0.0], [0.1], [5.0], [5.1]]), 2).tolist() in ([0, 0, 1, 1], [1, 1, 0, 0])
    True
    """
    if not count <= len(points) <= MAX_POINTS:
        return kmeans(points, count, seed=seed, starts=starts)
    points = points - points.mean(axis=0)
    squares = np.einsum("ij,ij->i", points, points)
    # Distances only decide between points: tiny negative values of rounding are 0.
    distances = np.maximum(squares[:, None] + squares - 2.0 * (points @ points.T), 0.0)
    centers = points[_initial_rows(distances, count, starts, np.random.default_rng(seed))]
    labels = _nearest(points, centers)
    for _ in range(MAX_ITERATIONS):
        members = (labels[:, None, :] == np.arange(count)[:, None]).astype(np.float64)
        sizes = members.sum(axis=2, keepdims=True)
        # An empty cluster keeps its center.
        centers = np.where(sizes > 0, members @ points / np.maximum(sizes, 1.0), centers)
        previous, labels = labels, _nearest(points, centers)
        if np.array_equal(labels, previous):
            break
    inertia = ((points - np.take_along_axis(centers, labels[:, :, None], axis=1)) ** 2).sum(axis=(1, 2))
    return np.asarray(labels[int(np.argmin(inertia))])


def _nearest(points: Floats, centers: Floats) -> Ints:
    """The nearest center of each point, of shape (starts, points); |x|^2 is the same for all centers."""
    distances = np.einsum("skd,skd->sk", centers, centers)[:, None, :] - 2.0 * (points @ centers.transpose(0, 2, 1))
    return np.asarray(distances.argmin(axis=2))


def _initial_rows(distances: Floats, count: int, starts: int, rng: np.random.Generator) -> Ints:
    """Greedy k-means++ (Arthur and Vassilvitskii, 2007): the best of 2 + ln k candidates per center."""
    trials = 2 + int(log(count))
    rows = np.empty((starts, count), dtype=np.int64)
    rows[:, 0] = rng.integers(len(distances), size=starts)
    closest = distances[rows[:, 0]]
    every = np.arange(starts)
    for place in range(1, count):
        cumulated = closest.cumsum(axis=1)
        targets = rng.random((starts, trials)) * cumulated[:, -1:]
        candidates = (cumulated[:, None, :] <= targets[:, :, None]).sum(axis=2)
        candidates = np.minimum(candidates, len(distances) - 1)
        reached = np.minimum(closest[:, None, :], distances[candidates])
        best = reached.sum(axis=2).argmin(axis=1)
        rows[:, place] = candidates[every, best]
        closest = reached[every, best]
    return rows
