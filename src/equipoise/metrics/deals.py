"""Predicted sets dealt to the documents at random: what precision, recall and F1 are by luck."""

from __future__ import annotations

import numpy as np

from equipoise.evidence.sets import Sets, TermSets
from equipoise.metrics.overlap import Mode, Overlap, exact_hits, pair_credits, viewed
from equipoise.types import Floats, Ints

FEWEST_DEALS = 20
DEALS = 200
"""How many deals there are at least, where documents are few."""
PAIRS = 20_000
"""How many pairs of a gold and a predicted set are matched; with fewer in all, every one is."""


def dealt_orders(documents: int, rng: np.random.Generator) -> Ints:
    """Deals, a row each: which document's predictions every document gets.

    A round is a random order and its rotations, in which every document gets every set once; so where a whole
    round can be afforded, sums over documents have no error of drawing.

    >>> dealt_orders(3, np.random.default_rng(0)).shape
    (201, 3)
    """
    whole = documents**2 <= PAIRS
    turns = documents if whole else max(FEWEST_DEALS, PAIRS // documents)
    rounds = -(-DEALS // documents) if whole else 1
    places = np.arange(documents)
    parts = []
    for _ in range(rounds):
        order = rng.permutation(documents)
        shifts = np.arange(documents) if whole else rng.choice(documents, size=turns, replace=False)
        parts.append(order[(places + shifts[:, None]) % documents])
    return np.concatenate(parts)


def dealt(sets: Sets, mode: Mode, orders: Ints, *, soft: bool = False) -> Overlap:
    """Hits, gold and predicted entries by deal and document; kept with the sets, since matching is slow."""
    key = (mode, soft, orders.tobytes())
    if key not in sets.dealt:
        gold, predicted = viewed(sets.gold, mode), viewed(sets.predicted, mode)
        hits = (
            _soft(gold, predicted, orders, sets)
            if soft
            else np.array([exact_hits(gold, predicted.take(order), sets) for order in orders])
        )
        sets.dealt[key] = Overlap(hits, np.tile(gold.sizes, (len(orders), 1)), predicted.sizes[orders])
    found: Overlap = sets.dealt[key]
    return found


def expected_hits(sets: Sets, mode: Mode) -> float:
    """The mean number of exact hits over all deals: every gold set meets every predicted one alike often."""
    entries = max(1, len(sets.terms)) * len(sets.assertions)
    wanted, given = (
        np.bincount(side.terms * len(sets.assertions) + side.assertions, minlength=entries)
        for side in (viewed(sets.gold, mode), viewed(sets.predicted, mode))
    )
    return float(wanted @ given / len(sets))


def _soft(gold: TermSets, predicted: TermSets, orders: Ints, sets: Sets) -> Floats:
    """Every pair that any deal makes is matched once."""
    documents = len(sets)
    pairs, back = np.unique(np.arange(documents) * documents + orders, return_inverse=True)
    earned = pair_credits(gold, predicted, pairs // documents, pairs % documents, sets)
    return np.asarray(earned[back].reshape(orders.shape))
