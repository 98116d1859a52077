"""The options of the statistics, with their defaults. Validated here and nowhere else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from equipoise.errors import InputError, ParameterError, UnknownNameError, did_you_mean

if TYPE_CHECKING:
    import numpy as np

TEST_ALIASES: dict[str, tuple[str, ...]] = {
    "randomisation": ("randomization", "sign_flip", "sign-flip", "permutation"),
    "t": ("paired_t", "paired-t", "ttest", "t-test"),
    "wilcoxon": (),
    "mcnemar": (),
}
"""The paired tests of ``stats.paired_tests`` and their aliases."""


def paired_test_name(name: str) -> str:
    """The paired test of this name or alias.

    >>> paired_test_name("Permutation")
    'randomisation'
    """
    for test, aliases in TEST_ALIASES.items():
        if name.casefold() in (test, *aliases):
            return test
    raise UnknownNameError.of("paired test", name, TEST_ALIASES, more=f"the tests are {', '.join(TEST_ALIASES)}")


CORRECTION_NAMES = ("holm", "bh", "none")
"""The corrections for multiple comparisons of ``stats.multiple_comparisons``."""

CONFIDENCE_LEVEL = 0.95
N_RESAMPLES = 2_000
N_PERMUTATIONS = 10_000
"""Defaults of every interval and test: confidence level, bootstrap resamples, and permutations."""


class Ties(StrEnum):
    """The order of equal scores: the expectation over all orders, the order of the ids, the best or the worst."""

    EXPECTED = "expected"
    BY_ID = "by_id"
    OPTIMISTIC = "optimistic"
    PESSIMISTIC = "pessimistic"

    @classmethod
    def parse(cls, name: Ties | str) -> Ties:
        """The tie policy with this name.

        >>> Ties.parse("by_id")
        <Ties.BY_ID: 'by_id'>
        """
        try:
            return cls(name)
        except ValueError as error:
            raise ParameterError(
                f"ties={name!r} is not a tie policy",
                hint=did_you_mean(str(name), list(cls)) or f"choose {', '.join(cls)}",
            ) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class StatsConfig:
    """All options of intervals and tests.

    Parameters
    ----------
    confidence_level
        Confidence level of every interval. A difference is significant if its adjusted p is below
        1 - ``confidence_level``.
    n_resamples
        Bootstrap resamples per interval.
    n_permutations
        Random sign patterns of the randomisation test. Smaller p values than these resolve are estimated by importance
        sampling.
    seed
        Seed of all random numbers. The same seed gives the same result.
    ties
        How tied scores are ranked: ``expected`` (the mean over all orders), ``by_id``, ``optimistic`` or
        ``pessimistic``.
    test
        The paired test: ``randomisation``, ``t``, ``wilcoxon`` or ``mcnemar``.
    correction
        The correction for multiple comparisons: ``holm``, ``bh`` (Benjamini-Hochberg) or ``none``.
    clusters
        One cluster id per unit, in the order of the units or as a mapping by unit id. Whole clusters are
        resampled. None: units are independent.

    >>> StatsConfig(confidence_level=0.9, seed=7).alpha
    0.1
    """

    confidence_level: float = CONFIDENCE_LEVEL
    n_resamples: int = N_RESAMPLES
    n_permutations: int = N_PERMUTATIONS
    seed: int = 0
    ties: Ties | str = Ties.EXPECTED
    test: str = "randomisation"
    correction: str = "holm"
    clusters: Mapping[Any, Any] | Sequence[Any] | np.ndarray | None = field(default=None, compare=False, repr=False)
    alpha: float = field(init=False, compare=False, repr=False)
    """The significance level. It is rounded, because 1 - 0.95 in floating point is above 0.05."""

    def __post_init__(self) -> None:
        check_confidence_level(self.confidence_level)
        for name, default in (("n_resamples", N_RESAMPLES), ("n_permutations", N_PERMUTATIONS)):
            if getattr(self, name) < 1:
                raise ParameterError(f"{name}={getattr(self, name)} is less than 1", hint=f"the default is {default:,}")
        if self.seed < 0:
            raise ParameterError(f"seed={self.seed} is negative", hint="a seed is 0 or a positive integer")
        if self.correction not in CORRECTION_NAMES:
            raise UnknownNameError.of(
                "correction", self.correction, CORRECTION_NAMES, more=f"choose one of {', '.join(CORRECTION_NAMES)}"
            )
        object.__setattr__(self, "test", paired_test_name(self.test))
        object.__setattr__(self, "ties", Ties.parse(self.ties))
        object.__setattr__(self, "alpha", round(1 - self.confidence_level, 12))

    def rng(self, *stream: int) -> np.random.Generator:
        """The random generator of one purpose. Streams are independent of each other."""
        import numpy as np

        return np.random.default_rng([self.seed, *stream])

    def clusters_for(self, unit_ids: Sequence[Any] | np.ndarray) -> Sequence[Any] | np.ndarray | None:
        """The cluster ids in the order of the units; None without clusters."""
        if not isinstance(self.clusters, Mapping):
            return self.clusters
        units = unit_ids if isinstance(unit_ids, list) else list(getattr(unit_ids, "tolist", lambda: unit_ids)())
        missing = [unit for unit in units if unit not in self.clusters]
        if missing:
            raise InputError(
                f"{len(missing)} of {len(units)} ids have no cluster, {missing[0]} is the first",
                hint="give every id of the ground truth a cluster",
            )
        return [self.clusters[unit] for unit in units]


def check_confidence_level(confidence_level: float) -> float:
    """The confidence level, if it is between 0 and 1."""
    if not 0.0 < confidence_level < 1.0:
        raise ParameterError(
            f"confidence_level={confidence_level} is not between 0 and 1", hint="95 % is confidence_level=0.95"
        )
    return confidence_level


DEFAULT_STATS = StatsConfig()
