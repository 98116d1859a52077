"""Comparisons of several systems: adjusted p values (Holm, Benjamini-Hochberg), tie groups, rank intervals."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from equipoise.config import DEFAULT_STATS
from equipoise.errors import ParameterError, ShapeError, UnknownNameError
from equipoise.types import Bools, Direction, Floats, Ints


def holm(p: ArrayLike) -> Floats:
    """Holm's step-down adjustment, which controls the family-wise error rate: the probability of any false positive.

    The i-th smallest of m p values is multiplied by m - i + 1, then made monotone and capped at 1. NaN remains NaN and
    is not part of the family. (Holm, Scandinavian Journal of Statistics 1979.)

    >>> holm([0.01, 0.04, 0.03]).round(4)
    array([0.03, 0.06, 0.06])
    """
    return _adjust_families(p, lambda sorted_p, m: np.maximum.accumulate(sorted_p * (m - _steps(sorted_p)), axis=-1))


def benjamini_hochberg(p: ArrayLike) -> Floats:
    """Benjamini and Hochberg's adjustment, which controls the false discovery rate.

    That rate is the expected share of false positives among the positives. The i-th smallest of m p values is
    multiplied by m / i, then made monotone from the largest down and capped at 1.
    NaN remains NaN and is not part of the family. (Journal of the Royal Statistical Society B, 1995.)

    >>> benjamini_hochberg([0.01, 0.04, 0.03]).round(4)
    array([0.03, 0.04, 0.04])
    """

    def rule(sorted_p: Floats, m: Ints) -> Floats:
        scaled = sorted_p * m / (1 + _steps(sorted_p))
        # fmin ignores NaN, which is first in this direction.
        smallest = np.fmin.accumulate(scaled[..., ::-1], axis=-1)[..., ::-1]
        return np.where(np.isnan(sorted_p), np.nan, smallest)

    return _adjust_families(p, rule)


def unadjusted(p: ArrayLike) -> Floats:
    """The p values are not adjusted."""
    return _adjust_families(p, lambda sorted_p, m: sorted_p)


CORRECTIONS: dict[str, tuple[Callable[[ArrayLike], Floats], str]] = {
    "holm": (holm, "Holm"),
    "bh": (benjamini_hochberg, "Benjamini-Hochberg"),
    "none": (unadjusted, "no correction"),
}


def correction_text(method: str, n_tests: int) -> str:
    """The correction of a family of pairs, for captions.

    >>> correction_text("holm", 15), correction_text("none", 15)
    ('Holm correction for 15 pairs', 'no correction for 15 pairs')
    """
    name = CORRECTIONS[method][1]
    pairs = "one pair" if n_tests == 1 else f"{n_tests:,} pairs"
    return f"{name if method == 'none' else f'{name} correction'} for {pairs}"


def p_heading(method: str, n_tests: int) -> str:
    """The heading of a column of p values after this correction.

    >>> p_heading("holm", 3), p_heading("holm", 1), p_heading("none", 3)
    ('adj. p', 'p', 'p')
    """
    return "adj. p" if method != "none" and n_tests > 1 else "p"


def adjust(p: ArrayLike, method: str = "holm") -> Floats:
    """p values adjusted by ``method``: holm, bh or none. Of an array, each row is a family.

    >>> adjust([0.01, 0.04], "none")
    array([0.01, 0.04])
    """
    if method not in CORRECTIONS:
        raise UnknownNameError.of("correction", method, CORRECTIONS, more=f"choose one of {', '.join(CORRECTIONS)}")
    return CORRECTIONS[method][0](p)


def _steps(sorted_p: Floats) -> Ints:
    return np.arange(sorted_p.shape[-1])


def step_level(position: float, tests: int, method: str, alpha: float) -> float:
    """The level at which a correction tests the pair at ``position`` (from 0) of ``tests``.

    >>> step_level(0, 10, "holm", 0.05), step_level(9, 10, "holm", 0.05), step_level(4, 10, "bh", 0.05)
    (0.005, 0.05, 0.025)
    """
    if method == "holm":
        return alpha / (tests - position)
    return alpha * (position + 1) / tests if method == "bh" else alpha


def _adjust_families(p: ArrayLike, rule: Callable[[Floats, Ints], Floats]) -> Floats:
    """Apply ``rule`` to the p values of each family (last axis) in rising order; NaN remains NaN."""
    values = np.array(p, dtype=np.float64)
    if ((values < 0) | (values > 1)).any():
        raise ParameterError("a p value is outside 0 to 1")
    order = np.argsort(values, axis=-1, kind="stable")
    tests = np.count_nonzero(~np.isnan(values), axis=-1, keepdims=True)
    adjusted = np.minimum(rule(np.take_along_axis(values, order, axis=-1), tests), 1.0)
    np.put_along_axis(values, order, adjusted, axis=-1)
    return values


# Tie groups and rank intervals: which systems are not significantly different, and their possible ranks.
#
# "Not significantly different" is not transitive: A may be tied with B and B with C while A beats C. A partition into
# groups would hide one of these facts, so a system may have several letters: two systems share a letter if and only if
# they are not significantly different. (The compact letter display of Piepho, Journal of Computational and Graphical
# Statistics 2004.)


def tie_groups(
    scores: ArrayLike, p: ArrayLike, *, better: Direction, alpha: float = DEFAULT_STATS.alpha
) -> tuple[tuple[str, ...], ...]:
    """The letters of each system from scores and the symmetric matrix of (adjusted) p: "a" is the best band.

    Two systems are different if p < ``alpha``; an unknown p (NaN) is not significant. Each letter is
    a maximal set of systems no two of which are different. A system has none without a score, and if no difference
    from another system with a score was tested.

    >>> p = np.array([[1, .4, .01], [.4, 1, .3], [.01, .3, 1]])
    >>> tie_groups([0.9, 0.8, 0.7], p, better=Direction.UP)
    (('a',), ('a', 'b'), ('b',))
    """
    score = np.asarray(scores, dtype=np.float64)
    matrix = np.asarray(p, dtype=np.float64)
    if matrix.shape != (len(score), len(score)):
        raise ShapeError(f"a p matrix of shape {matrix.shape} does not fit {len(score)} scores")
    order = order_by_score(score, better)
    ranked = order[~np.isnan(score[order])]
    # A matrix filled on one side of the diagonal only is read as symmetric.
    different = (matrix < alpha) | (matrix < alpha).T
    known = ~np.isnan(matrix) | ~np.isnan(matrix).T
    np.fill_diagonal(known, False)
    if len(ranked) > 1:
        ranked = ranked[known[np.ix_(ranked, ranked)].any(axis=1)]
    groups = _cliques(different[np.ix_(ranked, ranked)])
    letters: list[list[str]] = [[] for _ in score]
    for number, group in enumerate(groups):
        for position in sorted(group):
            letters[ranked[position]].append(_letter(number))
    return tuple(map(tuple, letters))


def order_by_score(scores: Floats, better: Direction) -> Ints:
    """The order from best to worst; ties keep their order and NaN is last.

    >>> order_by_score(np.array([0.2, np.nan, 0.9]), Direction.DOWN)
    array([0, 2, 1])
    """
    return np.argsort(-scores if better == Direction.UP else scores, kind="stable").astype(np.int64)


def rank_intervals(signs: Ints) -> Ints:
    """The lowest and highest rank of each system: shape (systems, 2).

    ``signs`` is 1 where the system of the column is significantly better than that of the row, -1 where it is worse,
    and 0 where the difference is not significant. The interval begins at 1 plus the number of systems that are
    significantly better, and ends at the number of systems minus those that are significantly worse. If the pairs are
    tested at a family-wise error rate of 5 %, all intervals hold together with a confidence of 95 %.

    >>> rank_intervals(np.array([[0, 0, -1], [0, 0, 0], [1, 0, 0]])).tolist()
    [[1, 2], [1, 3], [2, 3]]
    """
    return np.column_stack([1 + (signs == 1).sum(axis=1), len(signs) - (signs == -1).sum(axis=1)]).astype(np.int64)


def _cliques(different: Bools) -> list[frozenset[int]]:
    """All maximal sets without a pair of different systems, ordered by their best members.

    Start with one set of all systems; each different pair splits the sets that contain both, and subsets of
    another set are removed.
    """
    groups = [frozenset(range(len(different)))]
    for one, other in zip(*np.nonzero(np.triu(different, 1)), strict=True):
        split: set[frozenset[int]] = set()
        for group in groups:
            split |= {group - {int(one)}, group - {int(other)}} if {one, other} <= group else {group}
        groups = [group for group in split if not any(group < larger for larger in split)]
    return sorted(groups, key=sorted)


def _letter(number: int) -> str:
    """a to z, then aa, ab, ... as spreadsheets count columns."""
    name = ""
    number += 1
    while number:
        number, digit = divmod(number - 1, 26)
        name = chr(ord("a") + digit) + name
    return name
