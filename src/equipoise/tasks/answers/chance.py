"""How many questions chunks that are drawn at random would answer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from equipoise.tasks.answers.rule import Parts
from equipoise.types import Floats, Ints

DRAWS = 100_000
"""Of all questions together: with these the standard error is at most 0.5 / sqrt(100,000) = 0.0016."""
MOST_DRAWS = 4_000
"""Of one question; with fewer than 25 of them the standard error is at most 0.008 / sqrt(questions)."""


def chance_levels(
    holders: Sequence[Ints], parts: Sequence[Parts | None], corpus: int, depth: int, rng: np.random.Generator
) -> Floats:
    """The share of questions that k of ``corpus`` chunks answer, drawn at random: a number for k = 1, 2, ...

    ``holders`` are the chunks that answer a question by themselves: to draw one of them has a closed form.
    ``parts`` are given where chunks are read together. What they then answer only together is simulated,
    with a standard error of at most 0.0016. An answer that only the seam of two neighbours makes whole, so
    that its words are in neither, is left out.

    >>> rye, bread = [True, False, False], [False, True, False]
    >>> either, both = Parts(np.array([rye, bread]), 1), Parts(np.array([rye, bread]), 2)
    >>> rng, none = np.random.default_rng(0), np.array([], dtype=int)
    >>> chance_levels([np.array([0, 1])], [either], 3, 3, rng).round(2).tolist()
    [0.67, 1.0, 1.0]
    >>> chance_levels([none], [both], 3, 3, rng).round(1).tolist()  # two of three chunks: one time in three
    [0.0, 0.3, 1.0]
    """
    alone = _drawing_one_of(np.array([len(each) for each in holders]), corpus, depth)
    simulated = np.zeros(depth)
    orders = None
    for held, each in zip(holders, parts, strict=True):
        scattered = None if each is None else each.scattered()
        if scattered is not None:
            if orders is None:
                orders = _orders(corpus, depth, min(MOST_DRAWS, -(-DRAWS // len(holders))), rng)
            simulated += _only_together(scattered, held, orders, rng.permutation(corpus))
    return alone + simulated / len(holders)


def _drawing_one_of(counts: Ints, corpus: int, depth: int) -> Floats:
    """How often one of so many chunks is among k; the mean over the questions."""
    drawn = np.arange(depth)
    missed = np.cumprod(np.maximum(corpus - counts[:, None] - drawn, 0) / (corpus - drawn), axis=1)
    return 1.0 - missed.mean(axis=0)


def _orders(corpus: int, depth: int, draws: int, rng: np.random.Generator) -> Ints:
    """The first chunks of random orders, a column an order."""
    orders = rng.permuted(np.tile(np.arange(corpus), (draws, 1)), axis=1)
    return np.ascontiguousarray(orders[:, :depth].T)


def _only_together(parts: Parts, held: Ints, orders: Ints, labels: Ints) -> Floats:
    """How often the first k chunks have enough parts, and none of them holds the answer by itself.

    ``labels`` renames the chunks at random, so that questions share no order and their errors are
    independent.
    """
    sets = np.packbits(parts.there[:, labels], axis=0)  # the parts that a chunk has, as bits
    holds = np.zeros(len(labels), dtype=np.bool_)
    holds[held] = True
    gathered = np.bitwise_or.accumulate(sets.take(orders, axis=1), axis=1)
    enough = np.bitwise_count(gathered).sum(axis=0, dtype=np.uint32) >= parts.needed
    alone = np.logical_or.accumulate(holds[labels].take(orders), axis=0)
    together: Floats = np.mean(enough & ~alone, axis=1)
    return together
