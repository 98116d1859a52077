"""Logistic regression of few rows: the optimum of scikit-learn's, without the 1 to 3 CPU-seconds of its import."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from equipoise.types import Floats, Ints

MAX_SIZE = 100_000
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
