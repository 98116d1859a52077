"""K-means and logistic regression of few rows in numpy, with the results of scikit-learn.

Importing scikit-learn takes 1 to 3 CPU-seconds, and each of its fits spends most of the time on checks. A concept set
has a few dozen points, on which these take milliseconds. A variant of K-means for resampling runs all starts at once.
"""

from __future__ import annotations

import warnings
from math import log
from typing import TYPE_CHECKING

import numpy as np

from equipoise.errors import InputError
from equipoise.types import require_extra

if TYPE_CHECKING:
    from equipoise.types import Floats, Ints

N_INIT = 10
"""Number of starts of K-means; the clustering with the smallest inertia is used."""
MAX_POINTS = 2000
"""Above this, the squared distances of all points would not fit the cache, and scikit-learn is as fast."""
MAX_ITERATIONS = 300
TOLERANCE = 1e-4
"""Iterations end when the squared shift of the centers is below this share of the mean variance of the coordinates."""


def kmeans(vectors: Floats, count: int, *, seed: int = 0, starts: int = N_INIT) -> Ints:
    """The cluster of each row by K-means; fewer than ``count`` where so many rows are not different.

    The same clusters as ``sklearn.cluster.KMeans(count, n_init=starts, random_state=seed)``: few points are clustered
    in numpy, with the same random numbers. scikit-learn clusters many points, and those that leave a cluster empty.
    """
    if vectors.shape[0] < count:
        raise InputError(
            f"there are {vectors.shape[0]} concepts for {count} clusters", hint="every cluster needs a concept"
        )
    labels = None
    if isinstance(vectors, np.ndarray) and len(vectors) <= MAX_POINTS:
        labels = _kmeans_of_few(vectors.astype(np.float64, order="C"), count, seed, starts)
    if labels is not None:
        return labels
    engine = require_extra("sklearn.cluster", extra="concepts").KMeans(count, n_init=starts, random_state=seed)
    with warnings.catch_warnings():
        # It warns of fewer clusters than requested; a collapsed space has a finding of its own.
        warnings.simplefilter("ignore")
        return np.asarray(engine.fit_predict(vectors), dtype=np.int64)


def _kmeans_of_few(points: Floats, count: int, seed: int, starts: int) -> Ints | None:
    """The clusters; None if a cluster became empty."""
    tolerance = TOLERANCE * float(points.var(axis=0).mean())
    points = points - points.mean(axis=0)
    squares = np.einsum("ij,ij->i", points, points)
    rng = np.random.RandomState(seed)
    best: Ints | None = None
    least = np.inf
    for _ in range(starts):
        result = _lloyd(points, points[_plus_plus(points, squares, count, rng)], tolerance)
        if result is None:
            return None
        labels, inertia = result
        # Equal clusters with other numbers are not an improvement, even if rounding makes their inertia smaller.
        if best is None or (inertia < least and len(np.unique(labels * count + best)) > count):
            best, least = labels, inertia
    return best


def _plus_plus(points: Floats, squares: Floats, count: int, rng: np.random.RandomState) -> Ints:
    """Greedy k-means++ (Arthur and Vassilvitskii, 2007) with the random numbers of scikit-learn."""
    n_points = len(points)
    # Sums are products with ones, and terms are added in the order of scikit-learn: rounding decides ties.
    ones = np.ones((n_points, 1))

    def distances(rows: Ints) -> Floats:
        centers = points[rows]
        norms = np.einsum("ij,ij->i", centers, centers)[:, None]
        return np.asarray(np.maximum(-2.0 * (centers @ points.T) + norms + squares, 0.0))

    rows = np.empty(count, dtype=np.int64)
    rows[0] = rng.choice(n_points, p=np.full(n_points, 1.0 / n_points))
    closest = distances(rows[:1])[0]
    total = closest @ ones
    for center in range(1, count):
        targets = rng.uniform(size=2 + int(log(count))) * total
        candidates = np.minimum(np.searchsorted(np.cumsum(closest), targets), n_points - 1)
        reached = np.minimum(closest, distances(candidates))
        sums = reached @ ones
        best = int(sums.argmin())
        rows[center], closest, total = candidates[best], reached[best], sums[best]
    return rows


def _lloyd(points: Floats, centers: Floats, tolerance: float) -> tuple[Ints, float] | None:
    """The cluster of each point after Lloyd's iterations, and the inertia; None if a cluster became empty."""
    count = len(centers)
    labels = _nearest_centers(points, centers)
    for _ in range(MAX_ITERATIONS - 1):
        members = (labels == np.arange(count)[:, None]).astype(np.float64)
        sizes = members.sum(axis=1, keepdims=True)
        if not sizes.all():
            return None
        previous, centers = centers, members @ points / sizes
        assigned, labels = labels, _nearest_centers(points, centers)
        if np.array_equal(labels, assigned) or ((centers - previous) ** 2).sum() <= tolerance:
            break
    if len(np.unique(labels)) < count:
        return None
    return labels, float(((points - centers[labels]) ** 2).sum())


def _nearest_centers(points: Floats, centers: Floats) -> Ints:
    """The nearest center of each point; its squared norm is the same for all centers."""
    return np.asarray((np.einsum("ij,ij->i", centers, centers) - 2.0 * (points @ centers.T)).argmin(axis=1))


# K-means for resampling: intervals and chance levels repeat it hundreds of times on a few dozen points. This is the
# same algorithm with one array operation for all starts. Centers are means of points, so that inner products of the
# points are enough: iterations take products of at most as many columns as there are points.


def rotate_to_span(vectors: Floats) -> Floats:
    """Coordinates in the space that the vectors span: all inner products are kept, with at most n columns."""
    if vectors.shape[0] >= vectors.shape[1]:
        return vectors
    left, sizes, _ = np.linalg.svd(vectors, full_matrices=False)
    return np.asarray(left * sizes)


def fast_kmeans(points: Floats, count: int, *, seed: int = 0, starts: int = N_INIT) -> Ints:
    """The cluster of each row in the tightest of several runs of K-means, each with its own k-means++ start."""
    if not count <= len(points) <= MAX_POINTS:
        return kmeans(points, count, seed=seed, starts=starts)
    points = points - points.mean(axis=0)
    gram = points @ points.T
    squares = np.einsum("ij,ij->i", points, points)
    # Distances only decide between points: tiny negative values of rounding are 0.
    distances = np.maximum(squares[:, None] + squares - 2.0 * gram, 0.0)
    rows = _initial_rows(distances, count, starts, np.random.default_rng(seed))
    products, norms = gram[rows], squares[rows]
    labels = _nearest(products, norms)
    shares = np.zeros(products.shape)
    clusters = np.arange(count)[:, None]
    for _ in range(MAX_ITERATIONS):
        members = labels[:, None, :] == clusters
        sizes = members.sum(axis=2, keepdims=True)
        # An empty cluster keeps its center.
        is_filled = (sizes > 0)[:, :, 0]
        np.divide(members, sizes, out=shares, where=sizes > 0)
        products_of_means = (shares.reshape(-1, len(points)) @ gram).reshape(shares.shape)
        norms_of_means = np.einsum("skn,skn->sk", shares, products_of_means)
        if is_filled.all():
            products, norms = products_of_means, norms_of_means
        else:
            products = np.where(is_filled[:, :, None], products_of_means, products)
            norms = np.where(is_filled, norms_of_means, norms)
        previous, labels = labels, _nearest(products, norms)
        if np.array_equal(labels, previous):
            break
    costs = np.take_along_axis(norms[:, :, None] - 2.0 * products, labels[:, None, :], axis=1)
    return np.asarray(labels[int(np.argmin(costs.sum(axis=(1, 2))))])


def _nearest(products: Floats, norms: Floats) -> Ints:
    """The nearest center of each point by start, from inner products (starts, centers, points) and squared norms."""
    return np.asarray((norms[:, :, None] - 2.0 * products).argmin(axis=1))


def _initial_rows(distances: Floats, count: int, starts: int, rng: np.random.Generator) -> Ints:
    """Greedy k-means++ (Arthur and Vassilvitskii, 2007): the best of 2 + ln k candidates per center."""
    trials = 2 + int(log(count))
    rows = np.empty((starts, count), dtype=np.int64)
    rows[:, 0] = rng.integers(len(distances), size=starts)
    closest = distances[rows[:, 0]]
    start_rows = np.arange(starts)
    for center in range(1, count):
        cumulated = closest.cumsum(axis=1)
        targets = rng.random((starts, trials)) * cumulated[:, -1:]
        candidates = (cumulated[:, None, :] <= targets[:, :, None]).sum(axis=2)
        candidates = np.minimum(candidates, len(distances) - 1)
        reached = np.minimum(closest[:, None, :], distances[candidates])
        best = reached.sum(axis=2).argmin(axis=1)
        rows[:, center] = candidates[start_rows, best]
        closest = reached[start_rows, best]
    return rows


MAX_LOGISTIC_SIZE = 100_000
"""Rows times classes times the smaller of rows and columns, up to which ``LogisticRegression`` is used."""
GRADIENT_TOLERANCE = 1e-7
"""Largest entry of the gradient of the mean loss. scikit-learn stops at 1e-4."""
MAX_NEWTON_STEPS = 100


class LogisticRegression:
    """Multinomial logistic regression with an L2 penalty of strength 1 on the weights, and none on the intercepts.

    The loss is the sum of cross-entropies plus half the squared norm of the weights (a quarter for two classes, which
    is half the squared norm of the difference of both weight vectors). Newton's method with conjugate gradients in the
    space that the rows span.
    """

    def __init__(self, rows: Floats, codes: Ints) -> None:
        self.classes, targets = np.unique(codes, return_inverse=True)
        self._mean = rows.mean(axis=0)
        left, sizes, self._axes = np.linalg.svd(rows - self._mean, full_matrices=False)
        # The columns are coordinates of the rows, and ones for the intercepts.
        self._rows = np.column_stack([left * sizes, np.ones(len(rows))])
        self._targets = np.eye(len(self.classes))[targets]
        self._penalty = np.full((self._rows.shape[1], 1), 2.0 if len(self.classes) == 2 else 1.0)
        self._penalty[-1] = 0.0
        # The diagonal of the Hessian where all classes are equally probable.
        uniform = 1.0 / len(self.classes)
        self._scale = uniform * (1 - uniform) * (self._rows**2).sum(axis=0)[:, None] + self._penalty
        self.weights = self._fit()

    def predict(self, rows: Floats) -> Ints:
        """The most probable class of each row."""
        logits = (rows - self._mean) @ self._axes.T @ self.weights[:-1] + self.weights[-1]
        return np.asarray(self.classes[logits.argmax(axis=1)], dtype=np.int64)

    def _fit(self) -> Floats:
        weights = np.zeros((self._rows.shape[1], len(self.classes)))
        loss, probabilities, gradient = self._evaluate(weights)
        for _ in range(MAX_NEWTON_STEPS):
            if np.abs(gradient).max() <= GRADIENT_TOLERANCE * len(self._rows):
                break
            step = self._newton_step(probabilities, gradient)
            slope, share = float((step * gradient).sum()), 1.0
            while True:
                proposed = self._evaluate(weights + share * step)
                if proposed[0] <= loss + 1e-4 * share * slope or share < 1e-8:
                    break
                share /= 2
            weights = weights + share * step
            loss, probabilities, gradient = proposed
        return weights

    def _evaluate(self, weights: Floats) -> tuple[float, Floats, Floats]:
        """The loss, the probabilities of the classes, and the gradient."""
        logits = self._rows @ weights
        logits -= logits.max(axis=1, keepdims=True)
        exponentials = np.exp(logits)
        sums = exponentials.sum(axis=1, keepdims=True)
        probabilities = exponentials / sums
        penalized = self._penalty * weights
        loss = float(np.log(sums).sum() - (self._targets * logits).sum() + 0.5 * (penalized * weights).sum())
        return loss, probabilities, self._rows.T @ (probabilities - self._targets) + penalized

    def _newton_step(self, probabilities: Floats, gradient: Floats) -> Floats:
        """The solution of Hessian x step = -gradient, by conjugate gradients with a diagonal preconditioner."""
        step = np.zeros_like(gradient)
        residual = -gradient
        size = float(np.linalg.norm(gradient))
        tolerance = min(0.1, (size / len(self._rows)) ** 0.5) * size
        scaled = residual / self._scale
        direction = scaled
        product = float((residual * scaled).sum())
        for _ in range(gradient.size):
            weighted = probabilities * (self._rows @ direction)
            weighted -= probabilities * weighted.sum(axis=1, keepdims=True)
            curved = self._rows.T @ weighted + self._penalty * direction
            length = product / float((direction * curved).sum())
            step = step + length * direction
            residual = residual - length * curved
            if np.linalg.norm(residual) <= tolerance:
                break
            scaled = residual / self._scale
            previous, product = product, float((residual * scaled).sum())
            direction = scaled + (product / previous) * direction
        return step
