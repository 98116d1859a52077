"""Comparisons of several systems: adjusted p values (Holm, Benjamini-Hochberg), tie groups and rank intervals."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt

import numpy as np
from numpy.typing import ArrayLike

from equipoise.config import DEFAULT_STATS, StatsConfig
from equipoise.errors import ParameterError, ShapeError, UnknownNameError
from equipoise.stats.bootstrap_mean import FEW_RESAMPLING_UNITS, bootstrap_means
from equipoise.types import Bools, Direction, Floats, Ids, Ints

ROUNDING = 1e-12
"""Differences below this share of the largest score are rounding."""


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
    a maximal set of systems no two of which are different. A system without a score has none.

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


def rank_intervals(
    values: Floats,
    *,
    better: Direction,
    weights: Floats | None = None,
    clusters: Ids | None = None,
    config: StatsConfig = DEFAULT_STATS,
    rng: np.random.Generator,
) -> Ints:
    """The interval of the rank of each system, lowest and highest rank: shape (systems, 2).

    All systems are scored on the same resamples of the units (or clusters) on which every system is defined. A
    system that is never defined, or too few units, give the full range.

    >>> rank_intervals(np.tile([[1, 0.5], [0.9, 0.2], [1, 0.4]], (4, 1)), better=Direction.UP,
    ...                rng=np.random.default_rng(0)).tolist()
    [[1, 1], [2, 2]]
    """
    if values.ndim != 2:
        raise ShapeError(f"the values have {values.ndim} dimensions", hint="give an array of (units, systems)")
    systems = values.shape[1]
    ranges = np.tile(np.array([1, systems]), (systems, 1))
    ranked = np.flatnonzero(~np.isnan(values).all(axis=0))
    complete = ~np.isnan(values[:, ranked]).any(axis=1)
    if complete.sum() < 2 or len(ranked) < 2:
        return ranges
    defined, share = values[np.ix_(complete, ranked)], None if weights is None else weights[complete]
    labels = None if clusters is None else clusters[complete]
    means = bootstrap_means(defined, weights=share, clusters=labels, n_resamples=config.n_resamples, rng=rng)
    ranges[ranked] = rank_intervals_from_resamples(
        np.average(defined, axis=0, weights=share),
        means,
        better=better,
        n_values=len(defined) if labels is None else len(np.unique(labels)),
        confidence_level=config.confidence_level,
    )
    # Systems without a score may have any rank.
    ranges[ranked, 1] += systems - len(ranked)
    return ranges


def rank_intervals_from_resamples(
    scores: Floats, resamples: Floats, *, better: Direction, n_values: int, confidence_level: float
) -> Ints:
    """Rank intervals (systems, 2) from the scores and their resamples, one row per resample."""
    sign = 1.0 if better == Direction.UP else -1.0
    return ranks_of_signs(
        significant_signs(sign * scores, sign * resamples, n_values=n_values, confidence_level=confidence_level)
    )


def ranks_of_signs(signs: Ints) -> Ints:
    """The lowest rank of a system is 1 + those above it, the highest the number of systems minus those below it."""
    return np.column_stack([1 + (signs == 1).sum(axis=1), len(signs) - (signs == -1).sum(axis=1)]).astype(np.int64)


def significant_signs(scores: Floats, resamples: Floats, *, n_values: int, confidence_level: float) -> Ints:
    """1 where the system of the column is significantly better than that of the row, -1 where it is worse.

    Each system is compared with all others simultaneously: its critical value is the quantile of its largest
    absolute studentised difference over the resamples. (Mogstad, Romano, Shaikh and Wilhelm, "Inference for Ranks",
    Review of Economic Studies, 2024.) Ranks counted in each resample would be too narrow for systems that are nearly
    equal. ``n_values`` values were resampled. A difference that is the same for all of them has no standard error, and
    is significant if their sign test is.
    """
    n_systems = len(scores)
    signs = np.zeros((n_systems, n_systems), dtype=np.int64)
    resamples = resamples[~np.isnan(resamples).any(axis=1)]
    if n_values < 2 or not len(resamples):
        return signs
    deviations = np.ascontiguousarray((resamples - resamples.mean(axis=0)).T)
    slack = ROUNDING * max(float(np.abs(resamples).max(initial=0.0)), 1e-300)
    sign_test_significant = 2.0 ** (1 - n_values) < round(1 - confidence_level, 12)
    small_sample = sqrt(n_values / (n_values - 1))  # a bootstrap of n values understates a standard error
    for system in range(n_systems):
        differences = deviations - deviations[system]
        errors = differences.std(axis=1)
        observed = scores - scores[system]
        varying = errors > slack
        significant = ~varying & (np.abs(observed) > slack) & sign_test_significant
        if varying.any():
            studentised = differences[varying] / errors[varying, np.newaxis]
            largest = np.abs(studentised, out=studentised).max(axis=0)
            critical = _t_critical(float(np.quantile(largest, confidence_level)), n_values, n_systems, confidence_level)
            significant[varying] = np.abs(observed[varying]) > critical * small_sample * errors[varying]
        signs[system] = np.sign(observed) * significant
    return signs


def _t_critical(normal: float, n_values: int, n_systems: int, confidence_level: float) -> float:
    """The critical value of a studentised difference, from the bootstrap quantile ``normal``.

    It is that of Student's t with the same tail. With fewer than 10 values, resamples repeat the same few means; there
    it is that of Student's t with Bonferroni's correction.
    """
    from scipy.special import ndtr, stdtrit

    tail = float(ndtr(-normal))
    if n_values < FEW_RESAMPLING_UNITS:
        tail = (1 - confidence_level) / 2 / (n_systems - 1)
    return float(-stdtrit(n_values - 1, tail))


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
