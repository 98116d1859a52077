"""Tests on paired differences of two systems, for all metrics at once.

Every test takes ``differences`` of shape (units, metrics), one system minus the other, with NaN where a
unit is undefined; such units are left out, metric by metric.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from equipoise.config import N_PERMUTATIONS, paired_test_name
from equipoise.errors import UndefinedError, UnknownNameError
from equipoise.evidence.segments import average_ranks
from equipoise.stats.bootstrap_mean import ResamplingUnits
from equipoise.stats.tilted_signs import MIN_EXTREME, TiltedSigns

if TYPE_CHECKING:
    from equipoise.types import Floats, Ids

ALTERNATIVES = ("two-sided", "greater", "less")

# One block of signs is 256 x 4096: 8 MB as float64, for any number of units and permutations.
FLIP_BLOCK, UNIT_BLOCK = 256, 4096
EXACT_COLUMNS = 256
# Sums of the same numbers with other signs differ by rounding alone; below this share of the sum of
# magnitudes two of them are equal. Without it, p on 0/1 data would depend on the order of addition.
EQUAL = 1e-11


RANDOMISATION = "randomisation"
"""The name of the default test."""


def sign_flip_test(
    differences: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    clusters: Ids | None = None,
    alternative: str = "two-sided",
    n_permutations: int = N_PERMUTATIONS,
    rng: np.random.Generator,
) -> Floats:
    """Paired randomisation test: the share of sign patterns with a mean at least as extreme as the observed one.

    If two systems are exchangeable, each unit's difference is equally likely to have either sign; with ``clusters``,
    all units of a cluster change sign together. All sign patterns are enumerated if there are at most
    ``n_permutations`` of them (units without a difference do not count), and p is exact. Otherwise ``n_permutations``
    random sign patterns are sampled, b of them are at least as extreme as the observed one, and
    p = (b + 1) / (n_permutations + 1), so p is never 0. If b is below 10, p is estimated by importance sampling, which
    has no smallest p: otherwise nothing could be significant after a correction for many pairs. p is undefined (NaN)
    if there are no units.

    >>> sign_flip_test([[1.0], [1.0], [1.0], [0.0]], rng=np.random.default_rng(0))
    array([0.25])
    """
    units = ResamplingUnits.of(_difference_table(differences, alternative), weights, clusters)
    sums = -units.totals if alternative == "less" else units.totals
    # What is left of differences that cancel within a cluster is rounding.
    sums = np.where(np.abs(sums) <= 1e-13 * np.abs(sums).max(axis=0, initial=0.0), 0.0, sums)
    two_sided = alternative == "two-sided"
    if two_sided:  # the same random signs whichever system is first
        sums = np.where(sums.sum(axis=0) < 0.0, -sums, sums)
    # In the order of their values: random signs then do not depend on the order of the units.
    sums = np.sort(sums, axis=0)
    changing = np.count_nonzero(sums, axis=0)
    exact = changing <= n_permutations.bit_length() - 1
    p = np.full(sums.shape[1], np.nan)
    for count in sorted(set(changing[exact].tolist())):
        columns = np.flatnonzero(exact & (changing == count))
        p[columns] = _exact_p(sums[:, columns], count, two_sided)
    if not exact.all():
        p[~exact] = _monte_carlo_p(np.ascontiguousarray(sums[:, ~exact]), n_permutations, two_sided, rng)
    p[units.counts == 0] = np.nan
    return p


def paired_t_test(
    differences: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    clusters: Ids | None = None,
    alternative: str = "two-sided",
) -> Floats:
    """Student's t test of the mean difference.

    With ``clusters``, the standard error is cluster-robust (df = clusters - 1).

    Ignoring clusters would make the test anti-conservative. p is undefined (NaN) with fewer than two units or clusters,
    and if all differences are equal but not 0 (the standard error is 0). p is 1 if all differences are 0.

    >>> paired_t_test([[1.0], [2.0], [3.0], [0.0]]).round(4)
    array([0.1027])
    """
    from scipy.special import stdtr

    values = _difference_table(differences, alternative)
    units = ResamplingUnits.of(values, weights, clusters)
    means, errors = units.means, units.standard_errors
    with np.errstate(divide="ignore", invalid="ignore"):
        t = means / errors
    t[~(errors > 1e-12 * np.abs(means))] = np.nan
    tail = {"two-sided": -np.abs(t), "greater": -t, "less": t}[alternative]
    p: Floats = stdtr(np.maximum(units.counts - 1, 1), tail) * (2 if alternative == "two-sided" else 1)
    p[(units.n_units > 0) & (np.nan_to_num(values) == 0).all(axis=0)] = 1.0
    return p


def wilcoxon_test(
    differences: ArrayLike,
    *,
    clusters: Ids | None = None,
    n_permutations: int = N_PERMUTATIONS,
    rng: np.random.Generator,
) -> Floats:
    """Wilcoxon's signed-rank test: the signs of the ranked absolute differences are permuted; zeros are left out.

    The null distribution is enumerated or sampled as in the randomisation test, because the normal approximation
    is off when many differences are equal, as they are for most metrics. The units of a cluster
    change sign together.

    >>> wilcoxon_test([[1.0], [2.0], [3.0], [4.0]], rng=np.random.default_rng(0))
    array([0.125])
    """
    values = _difference_table(differences)
    ranks = np.empty_like(values)
    for column in range(values.shape[1]):
        ranks[:, column] = _signed_ranks(values[:, column])
    return sign_flip_test(ranks, clusters=clusters, n_permutations=n_permutations, rng=rng)


def mcnemar_test(differences: ArrayLike) -> Floats:
    """McNemar's exact test for hits and misses: does each system win half of the units on which they differ?

    The differences must be -1, 0 or 1; other values are an error. p is 1 if no unit differs.

    >>> mcnemar_test([[1.0], [1.0], [1.0], [1.0], [-1.0], [0.0]])
    array([0.375])
    """
    from scipy.special import bdtr

    values = _difference_table(differences)
    graded = ~np.isin(values, (-1.0, 0.0, 1.0)) & ~np.isnan(values)
    if graded.any():
        raise UndefinedError(
            f"McNemar's test needs hits and misses; a difference here is {values[graded][0]:g}",
            hint="use the test 'randomisation' for graded values",
        )
    n_positive, n_negative = (values == 1).sum(axis=0), (values == -1).sum(axis=0)
    p: Floats = np.minimum(bdtr(np.minimum(n_positive, n_negative), n_positive + n_negative, 0.5) * 2, 1.0)
    p[np.isnan(values).all(axis=0)] = np.nan
    return p


@dataclass(frozen=True, slots=True)
class PairedTest:
    """A paired test: name, citation, and the options it supports."""

    function: Callable[..., Floats]
    title: str
    cite: str
    options: frozenset[str]
    binary_only: bool = False

    @property
    def noun(self) -> str:
        """The title with its article, for a sentence; a title in the possessive has none."""
        return self.title if "'s " in self.title else f"the {self.title}"


TESTS: dict[str, PairedTest] = {
    "randomisation": PairedTest(
        sign_flip_test,
        "paired randomisation test",
        "Fisher 1935; Smucker, Allan and Carterette, CIKM 2007",
        frozenset({"weights", "clusters", "n_permutations", "rng"}),
    ),
    "t": PairedTest(
        paired_t_test,
        "paired t test",
        "Student 1908; cluster-robust after Liang and Zeger, Biometrika 1986",
        frozenset({"weights", "clusters"}),
    ),
    "wilcoxon": PairedTest(
        wilcoxon_test,
        "Wilcoxon signed-rank test",
        "Wilcoxon 1945; clusters after Rosner, Glynn and Lee, Biometrics 2006",
        frozenset({"clusters", "n_permutations", "rng"}),
    ),
    "mcnemar": PairedTest(mcnemar_test, "McNemar's exact test", "McNemar 1947", frozenset(), binary_only=True),
}


def get_test(name: str) -> PairedTest:
    """The test of this name or alias, or a did-you-mean."""
    return TESTS[paired_test_name(name)]


def why_untestable(name: str, values: Floats | None = None, **options: object) -> str:
    """Why a test cannot be run on these values, or with these options if they are not None; empty if it can."""
    test = get_test(name)
    unsupported = [option for option, value in options.items() if value is not None and option not in test.options]
    if unsupported:
        return f"{test.noun} cannot take {unsupported[0]} into account"
    if values is not None and test.binary_only and not np.isin(values[~np.isnan(values)], (0.0, 1.0)).all():
        return f"{test.noun} needs hits and misses"
    return ""


def run_test(
    name: str,
    differences: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    clusters: Ids | None = None,
    n_permutations: int = N_PERMUTATIONS,
    rng: np.random.Generator,
) -> Floats:
    """p of the test called ``name``, one per metric; an option that the test would ignore is an error.

    >>> run_test("t", [[1.0], [2.0], [3.0], [0.0]], rng=np.random.default_rng(0)).round(4)
    array([0.1027])
    """
    test = get_test(name)
    reason = why_untestable(name, weights=weights, clusters=clusters)
    if reason:
        raise UndefinedError(reason, hint="the test 'randomisation' can")
    options = {"weights": weights, "clusters": clusters, "n_permutations": n_permutations, "rng": rng}
    accepted = {option: value for option, value in options.items() if option in test.options}
    return test.function(differences, **accepted)


def _difference_table(differences: ArrayLike, alternative: str = "two-sided") -> Floats:
    """Differences of shape (units, metrics)."""
    if alternative not in ALTERNATIVES:
        raise UnknownNameError.of(
            "alternative", alternative, ALTERNATIVES, more=f"choose one of {', '.join(ALTERNATIVES)}"
        )
    values = np.asarray(differences, dtype=np.float64)
    return values[:, np.newaxis] if values.ndim == 1 else values


def _exact_p(sums: Floats, count: int, two_sided: bool) -> Floats:
    """Exact p from all sign patterns of the ``count`` nonzero rows that each column has."""
    nonzero_first = np.argsort(sums == 0, axis=0, kind="stable")[:count]
    rows = np.take_along_axis(sums, nonzero_first, axis=0)
    patterns = np.arange(2**count)[:, np.newaxis] >> np.arange(count) & 1
    signs = 2.0 * patterns - 1.0
    p = np.empty(sums.shape[1])
    for start in range(0, len(p), EXACT_COLUMNS):
        part = rows[:, start : start + EXACT_COLUMNS]
        p[start : start + EXACT_COLUMNS] = _as_extreme(signs @ part, part, two_sided) / len(signs)
    return p


def _monte_carlo_p(sums: Floats, n_permutations: int, two_sided: bool, rng: np.random.Generator) -> Floats:
    """Monte Carlo p: random bits times the sums, block by block, for all columns in one product.

    The random bits depend only on the number of rows, so p of a column does not depend on its neighbours.
    """
    count, columns = sums.shape
    total = sums.sum(axis=0)
    extreme = np.zeros(columns)
    for start in range(0, n_permutations, FLIP_BLOCK):
        size = min(FLIP_BLOCK, n_permutations - start)
        flipped = np.zeros((size, columns))
        for first in range(0, count, UNIT_BLOCK):
            part = sums[first : first + UNIT_BLOCK]
            width = -(-len(part) // 8)
            packed = np.frombuffer(rng.bytes(size * width), dtype=np.uint8).reshape(size, width)
            flipped += np.unpackbits(packed, axis=1, count=len(part)).astype(np.float64) @ part
        # Bits are 0 or 1; with signs of -1 and 1 the sum would be twice this, less the total.
        flipped *= 2.0
        flipped -= total
        extreme += _as_extreme(flipped, sums, two_sided)
    p = (extreme + 1) / (n_permutations + 1)
    rare = (extreme < MIN_EXTREME) & (total > 0)
    if rare.any():
        p[rare] = np.minimum(_tail_p(sums[:, rare], rng) * (2.0 if two_sided else 1.0), 1.0)
    return p


def _tail_p(sums: Floats, rng: np.random.Generator) -> Floats:
    """The probability of a total at least as large as the (positive) observed one, by importance sampling.

    All columns share the random numbers.
    """
    signs = TiltedSigns.of(np.ascontiguousarray(sums.T))
    positive, observed = signs.positive, signs.scaled.sum(axis=1, keepdims=True)
    totals = np.tile(-observed, signs.n_patterns)
    for first in range(0, len(sums), UNIT_BLOCK):
        units = slice(first, min(first + UNIT_BLOCK, len(sums)))
        uniform = rng.random((signs.n_patterns, units.stop - first), dtype=np.float32)
        for column, differences in enumerate(signs.scaled):
            totals[column] += (uniform < positive[column, units]).astype(np.float64) @ (2.0 * differences[units])
    return signs.p(totals, totals >= observed - EQUAL * np.abs(signs.scaled).sum(axis=1, keepdims=True))


def _as_extreme(flipped: Floats, sums: Floats, two_sided: bool) -> Floats:
    """The number of sign-flipped totals at least as extreme as the observed one, up to rounding."""
    observed = sums.sum(axis=0)
    slack = EQUAL * np.abs(sums).sum(axis=0)
    if two_sided:
        flipped, observed = np.abs(flipped), np.abs(observed)
    return np.asarray((flipped >= observed - slack).sum(axis=0), dtype=np.float64)


def _signed_ranks(column: Floats) -> Floats:
    """Average ranks of the magnitudes with the signs of the differences; zeros remain 0 and NaN remains NaN."""
    largest = np.nanmax(np.abs(column), initial=0.0)
    # Differences of sums have rounding errors: 0.3 - 0.2 and 0.2 - 0.1 must share a rank.
    rounded = np.round(column / largest, 12) if largest > 0 else column
    nonzero = ~np.isnan(rounded) & (rounded != 0)
    signed = np.where(np.isnan(column), np.nan, 0.0)
    signed[nonzero] = np.sign(rounded[nonzero]) * average_ranks(np.abs(rounded[nonzero]))
    return signed
