"""The losses of tree training and their derivatives by the distances, written for one node in numpy."""

from __future__ import annotations

import math

import numpy as np

from equipoise.types import Floats


def softmax_loss(
    positive_distances: Floats,
    negative_distances: Floats,
    *,
    temperature: float,
    power: float = 1.0,
    negative_weight: float = 1.0,
) -> tuple[float, Floats, Floats]:
    """Softmax loss of one node, and its derivatives by the distances.

    ``positive_distances`` are d(u, v), (n_positives,), ``negative_distances`` d(u, w), (n_negatives,). Returns the loss
    summed over the positives, its derivatives by d(u, v) and by d(u, w). Without negatives all of them are 0.
    """
    if not len(negative_distances):
        return 0.0, np.zeros(len(positive_distances)), np.zeros(0)
    positive_logits = -(positive_distances**power) / temperature
    negative_logits = -(negative_distances**power) / temperature
    log_sum = np.logaddexp.reduce(negative_logits)
    log_negatives = log_sum + math.log(negative_weight)
    log_total = np.logaddexp(positive_logits, log_negatives)
    p_negative = np.exp(log_negatives - log_total)
    positive_slopes = power * positive_distances ** (power - 1.0) / temperature
    negative_slopes = power * negative_distances ** (power - 1.0) / temperature
    negative_gradient = -np.exp(negative_logits - log_sum) * p_negative.sum() * negative_slopes
    return float((log_total - positive_logits).sum()), p_negative * positive_slopes, negative_gradient


def hinge_loss(
    positive_distances: Floats,
    negative_distances: Floats,
    multiplicity: Floats,
    *,
    margin: float = 2.0,
    damping: float = 0.0,
) -> tuple[float, Floats, Floats]:
    """Hinge loss of one node on squared distances, and the derivatives of its damped form by the distances.

    ``multiplicity`` is the number of negatives that each one represents. Returns the sum of H over the positives, and
    the derivatives by d(u, v) and by d(u, w).
    """
    excess = positive_distances[:, None] ** 2 + margin - negative_distances[None, :] ** 2
    hinge = (multiplicity * np.maximum(excess, 0.0)).sum(axis=1)
    pair_weights = 1.0 / (1.0 + damping * hinge / margin)
    active = multiplicity * (excess > 0.0) * pair_weights[:, None]
    positive_gradient = 2.0 * positive_distances * active.sum(axis=1)
    return float(hinge.sum()), positive_gradient, -2.0 * negative_distances * active.sum(axis=0)
