"""K-means and logistic regression in numpy and scipy, with the results of scikit-learn.

Importing scikit-learn takes 1 to 3 CPU-seconds, and each of its fits spends most of the time on checks. A concept set
has a few dozen points, on which these take milliseconds. A variant of K-means for resampling runs all starts at once.
"""

from __future__ import annotations

from math import log
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.errors import InputError

if TYPE_CHECKING:
    from equipoise.types import Floats, Ints

N_INIT = 10
"""Number of starts of K-means; the clustering with the smallest inertia is used."""
MAX_POINTS = 2000
"""Above this, the inner products of all points would not fit the cache, and all starts at once are not faster."""
BLOCK_CELLS = 1 << 22
"""Distances between points and centers that are held in memory at once."""
MAX_ITERATIONS = 300
TOLERANCE = 1e-4
"""Iterations end when the squared shift of the centers is below this share of the mean variance of the coordinates."""


def kmeans(vectors: Any, count: int, *, seed: int = 0, starts: int = N_INIT) -> Ints:
    """The cluster of each row by K-means; fewer than ``count`` where so many rows are not different.

    The same clusters as ``sklearn.cluster.KMeans(count, n_init=starts, random_state=seed)``, with the same random
    numbers. ``vectors`` is an array or a sparse matrix.
    """
    if vectors.shape[0] < count:
        raise InputError(
            f"there are {vectors.shape[0]} concepts for {count} clusters", hint="every cluster needs a concept"
        )
    if isinstance(vectors, np.ndarray):
        points: Any = vectors.astype(np.float64, order="C")
        tolerance = TOLERANCE * float(points.var(axis=0).mean())
        points -= points.mean(axis=0)
        squares = np.einsum("ij,ij->i", points, points)
    else:  # centred, a sparse matrix would be dense
        points = vectors.tocsr().astype(np.float64)
        squared = points.multiply(points)
        squares = np.asarray(squared.sum(axis=1)).ravel()
        tolerance = TOLERANCE * float(np.mean(squared.mean(axis=0) - np.square(points.mean(axis=0))))
    rng = np.random.RandomState(seed)
    best, least = np.empty(0, dtype=np.int64), np.inf
    for _ in range(starts):
        labels, inertia = _lloyd(points, squares, as_dense(points[_plus_plus(points, squares, count, rng)]), tolerance)
        # Equal clusters with other numbers are not an improvement, even if rounding makes their inertia smaller.
        if not len(best) or (inertia < least and len(np.unique(labels * count + best)) > len(np.unique(best))):
            best, least = labels, inertia
    return best


def _plus_plus(points: Any, squares: Floats, count: int, rng: np.random.RandomState) -> Ints:
    """Greedy k-means++ (Arthur and Vassilvitskii, 2007) with the random numbers of scikit-learn."""
    n_points = points.shape[0]
    # Sums are products with ones, and terms are added in the order of scikit-learn: rounding decides ties.
    ones = np.ones((n_points, 1))

    def distances(rows: Ints) -> Floats:
        products = as_dense(points[rows] @ points.T)
        return np.asarray(np.maximum(-2.0 * products + squares[rows, None] + squares, 0.0))

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


def _lloyd(points: Any, squares: Floats, centers: Floats, tolerance: float) -> tuple[Ints, float]:
    """The cluster of each point after Lloyd's iterations, and the inertia."""
    labels = assigned = np.empty(0, dtype=np.int64)
    for _ in range(MAX_ITERATIONS):
        assigned, labels = labels, _nearest_centers(points, centers)
        previous, centers = centers, _new_centers(points, squares, labels, centers)
        if np.array_equal(labels, assigned) or np.square(centers - previous).sum() <= tolerance:
            break
    if not np.array_equal(labels, assigned):
        labels = _nearest_centers(points, centers)
    return labels, float(_squared_distances(points, squares, centers, labels).sum())


def _nearest_centers(points: Any, centers: Floats) -> Ints:
    """The nearest center of each point; the squared norm of the point is the same for all centers."""
    norms = np.einsum("ij,ij->i", centers, centers)
    labels = np.empty(points.shape[0], dtype=np.int64)
    height = max(1, BLOCK_CELLS // len(centers))
    for start in range(0, len(labels), height):
        block = slice(start, start + height)
        labels[block] = (norms - 2.0 * (points[block] @ centers.T)).argmin(axis=1)
    return labels


def _new_centers(points: Any, squares: Floats, labels: Ints, centers: Floats) -> Floats:
    """The mean of each cluster. An empty cluster gets the point that is furthest from its center."""
    from scipy.sparse import csr_array

    sizes = np.bincount(labels, minlength=len(centers)).astype(np.float64)
    ends = np.append(0, sizes.cumsum()).astype(np.int64)
    rows = np.argsort(labels, kind="stable")
    sums = as_dense(csr_array((np.ones(len(rows)), rows, ends), shape=(len(centers), len(rows))) @ points)
    empty = np.flatnonzero(sizes == 0)
    if len(empty):
        distances = _squared_distances(points, squares, centers, labels)
        furthest = np.argpartition(distances, -len(empty))[: -len(empty) - 1 : -1]
        for cluster, row in zip(empty.tolist(), furthest.tolist(), strict=True):
            if distances.max() > 0:  # else there are fewer different points than clusters
                sums[cluster] = as_dense(points[[row]])[0]
                sums[labels[row]] -= sums[cluster]
                sizes[cluster] = 1.0
                sizes[labels[row]] -= 1.0
    means = sums / np.where(sizes > 0, sizes, 1.0)[:, None]
    means[sizes == 0] = means[sizes.argmax()]
    return np.asarray(means)


def _squared_distances(points: Any, squares: Floats, centers: Floats, labels: Ints) -> Floats:
    """The squared distance of each point from the center of its cluster."""
    if isinstance(points, np.ndarray):
        return np.asarray(np.square(points - centers[labels]).sum(axis=1))
    products = np.asarray(points.multiply(centers[labels]).sum(axis=1)).ravel()
    return np.asarray(np.maximum(squares - 2.0 * products + np.square(centers).sum(axis=1)[labels], 0.0))


def as_dense(matrix: Any) -> Floats:
    """An array or a sparse matrix as a dense array."""
    return np.asarray(matrix if isinstance(matrix, np.ndarray) else matrix.toarray(), dtype=np.float64)


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
"""Rows times classes times the smaller of rows and columns, up to which Newton's method is used."""
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


MAX_LBFGS_STEPS = 5000
LBFGS_OPTIONS = {"maxls": 50, "gtol": 1e-4, "ftol": 64 * float(np.finfo(float).eps)}
"""The options of scikit-learn, so that iterations end at the same step."""


def lbfgs_classes(known: Any, codes: Ints, rows: Any, *, max_steps: int = MAX_LBFGS_STEPS) -> Ints:
    """The most probable class of each row by the logistic regression of ``LogisticRegression``, fitted by L-BFGS.

    The same classes as ``sklearn.linear_model.LogisticRegression(max_iter=max_steps)``: the loss, the optimiser of
    scipy and its options are the same. ``known`` and ``rows`` are arrays or sparse matrices.

    >>> lbfgs_classes(np.eye(2), np.array([3, 5]), np.array([[0.9, 0.1]]))
    array([3])
    """
    from scipy.optimize import minimize
    from scipy.special import expit

    classes, targets = np.unique(codes, return_inverse=True)
    n_rows, n_columns = known.shape
    # Two classes have one vector of weights: the logit of the first class is 0.
    n_logits = 1 if len(classes) == 2 else len(classes)
    transposed, places = known.T, (np.arange(n_rows), targets)
    hits = (targets == 1).astype(np.float64)[:, None]

    def loss(flat: Floats) -> tuple[float, Floats]:
        weights = flat.reshape(n_columns + 1, n_logits)
        logits = known @ weights[:-1] + weights[-1]
        if n_logits == 1:
            total = float((np.logaddexp(0.0, logits) - hits * logits).sum())
            errors = expit(logits) - hits
        else:
            logits -= logits.max(axis=1, keepdims=True)
            at_targets = logits[places]
            errors = np.exp(logits, out=logits)
            sums = errors.sum(axis=1, keepdims=True)
            total = float(np.log(sums).sum() - at_targets.sum())
            errors /= sums
            errors[places] -= 1.0
        gradient = np.empty_like(weights)
        gradient[:-1] = (transposed @ errors + weights[:-1]) / n_rows
        gradient[-1] = errors.sum(axis=0) / n_rows
        return (total + 0.5 * float(np.square(weights[:-1]).sum())) / n_rows, gradient.ravel()

    start = np.zeros((n_columns + 1) * n_logits)
    fitted = minimize(loss, start, method="L-BFGS-B", jac=True, options={"maxiter": max_steps, **LBFGS_OPTIONS})
    weights = fitted.x.reshape(n_columns + 1, n_logits)
    logits = rows @ weights[:-1] + weights[-1]
    return np.asarray(classes[(logits[:, 0] > 0).astype(np.int64) if n_logits == 1 else logits.argmax(axis=1)])
