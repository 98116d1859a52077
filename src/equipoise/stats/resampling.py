"""Bootstrap resamples: units or clusters of units as sums, so that a resample is a row of counts.

Every mean is a ratio of two sums over resampling units: weight times value, over weight. A resample is a row of
counts, and all resamples of all metrics are one matrix product.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.errors import NotFiniteError, ParameterError, ShapeError

if TYPE_CHECKING:
    from equipoise.types import Bools, Floats, Ids, Ints

BLOCK_CELLS = 1 << 20
"""Cells of a block of the count matrix: 8 MB of float64, and about as much again while it is counted."""


@dataclass(frozen=True, slots=True)
class ResamplingUnits:
    """Columns of per-unit values as sums per resampling unit: of weight times value, and of weight.

    ``kish`` is the number of evenly weighted units with the same effective sample size.
    """

    totals: Floats
    masses: Floats
    binary: Bools
    constant: Bools
    even: Bools
    kish: Floats
    clustered: bool

    @classmethod
    def of(cls, values: Any, weights: Any = None, clusters: Any = None) -> ResamplingUnits:
        """Add up values (one row per unit, NaN where undefined) by unit, or by cluster."""
        table = _table(values)
        mass = np.where(np.isnan(table), 0.0, _weights_for(table, weights))
        counted = mass > 0.0
        table = np.where(counted, table, 0.0)
        largest = np.where(counted, table, -inf).max(axis=0, initial=-inf)
        smallest = np.where(counted, table, inf).min(axis=0, initial=inf)
        squares = np.square(mass).sum(axis=0)
        totals, masses = table * mass, mass
        if clusters is not None:
            totals, masses = _sums_by_code(np.stack([totals, masses]), cluster_codes(clusters, len(table)))
        return cls(
            totals,
            masses,
            binary=((table == 0.0) | (table == 1.0)).all(axis=0),
            constant=largest <= smallest,
            even=(~counted | (mass == mass.max(axis=0, initial=0.0))).all(axis=0),
            kish=np.square(mass.sum(axis=0)) / np.where(squares > 0.0, squares, 1.0),
            clustered=clusters is not None,
        )

    @property
    def counts(self) -> Ints:
        """The number of resampling units with weight in each column."""
        return np.asarray(np.count_nonzero(self.masses > 0.0, axis=0), dtype=np.int64)

    @property
    def means(self) -> Floats:
        """The point estimates; NaN where nothing is defined."""
        return ratio(self.totals.sum(axis=0), self.masses.sum(axis=0))

    @property
    def residuals(self) -> Floats:
        """The residual of each resampling unit: its sum minus mean times weight; each column sums to 0."""
        return np.asarray(self.totals - self.masses * np.nan_to_num(self.means))

    @property
    def standard_errors(self) -> Floats:
        """The standard error of the mean, linearised for the ratio, with the small-sample factor k / (k - 1)."""
        factor = self.counts / np.maximum(self.counts - 1, 1)
        return ratio(np.sqrt(np.square(self.residuals).sum(axis=0) * factor), self.masses.sum(axis=0))

    def ordered(self) -> ResamplingUnits:
        """Each column sorted separately, so that resamples do not depend on the order of the input.

        Columns then do not share resamples; intervals of single means do not need that.
        """
        order = np.lexsort((self.totals, self.masses), axis=0)
        return replace(
            self,
            totals=np.take_along_axis(self.totals, order, axis=0),
            masses=np.take_along_axis(self.masses, order, axis=0),
        )

    def taken(self, columns: Ints) -> ResamplingUnits:
        """Some of the columns."""
        return ResamplingUnits(
            self.totals[:, columns],
            self.masses[:, columns],
            self.binary[columns],
            self.constant[columns],
            self.even[columns],
            self.kish[columns],
            self.clustered,
        )


def mean_skewness(draws: ResamplingUnits) -> Floats:
    """The skewness of the mean of each column: that of the resampling units over the square root of their number.

    >>> mean_skewness(ResamplingUnits.of([0.0, 0.0, 0.0, 1.0])).round(3)
    array([0.577])
    """
    second = np.square(draws.residuals).sum(axis=0) ** 1.5
    return ratio(np.abs((draws.residuals**3).sum(axis=0)), second)


def bootstrap_sums(columns: Floats, n_resamples: int, rng: np.random.Generator) -> Floats:
    """The column sums of resampled rows, one row per resample.

    >>> bootstrap_sums(np.array([[2.0]]), 3, np.random.default_rng(0)).ravel()
    array([2., 2., 2.])
    """
    checked_resamples(n_resamples)
    sums = np.zeros((n_resamples, columns.shape[1]))
    start = 0
    for counts in _count_blocks(len(columns), n_resamples, rng):
        np.matmul(counts, columns, out=sums[start : start + len(counts)])
        start += len(counts)
    return sums


def bayesian_bootstrap_sums(
    columns: Floats, n_resamples: int, rng: np.random.Generator, *, added: float = 1.0
) -> tuple[Floats, Floats]:
    """Column sums with the rows weighted by random exponentials, one row per resample, and one additional weight.

    Divided by their sum the weights are uniform on the simplex: the Bayesian bootstrap. The
    additional weight is that of ``added`` rows, which may be a fraction.
    """
    checked_resamples(n_resamples)
    draws = len(columns)
    sums, extra = np.zeros((n_resamples, columns.shape[1])), np.zeros((n_resamples, 1))
    height = max(1, BLOCK_CELLS // (draws + 1))
    for start in range(0, n_resamples, height):
        rows = slice(start, min(start + height, n_resamples))
        np.matmul(rng.standard_exponential((rows.stop - start, draws)), columns, out=sums[rows])
        extra[rows] = rng.standard_gamma(added, (rows.stop - start, 1))
    return sums, extra


def checked_resamples(n_resamples: int) -> int:
    """The number of resamples, when there is at least one."""
    if n_resamples < 1:
        raise ParameterError(f"{n_resamples} resamples were requested", hint="2,000 are enough for a 95 % interval")
    return n_resamples


def checked_seed(seed: int) -> int:
    """The seed, when randomness can start from it."""
    if seed < 0:
        raise ParameterError(f"the seed {seed} is negative", hint="a seed is 0 or a positive integer")
    return seed


def _count_blocks(draws: int, n_resamples: int, rng: np.random.Generator) -> Iterator[Floats]:
    """How often each unit is in each resample, in blocks of rows of bounded size."""
    height = max(1, BLOCK_CELLS // max(draws, 1))
    for start in range(0, n_resamples if draws else 0, height):
        rows = min(height, n_resamples - start)
        picks = rng.integers(0, draws, size=(rows, draws), dtype=np.int32)
        cells = picks + draws * np.arange(rows)[:, None]
        yield np.bincount(cells.ravel(), minlength=rows * draws).reshape(rows, draws).astype(np.float64)


def ratio(numerator: Floats, denominator: Floats) -> Floats:
    """A quotient that is NaN where nothing is counted."""
    positive = denominator > 0.0
    return np.where(positive, numerator / np.where(positive, denominator, 1.0), np.nan)


def id_order(ids: Ids) -> Ints:
    """The order of the units by their ids, whatever the order in which they were read.

    >>> id_order(np.array(["b", "a"]))
    array([1, 0])
    """
    keys = ids.tolist()
    try:
        order = sorted(range(len(keys)), key=keys.__getitem__)
    except TypeError:  # ids of several types
        order = sorted(range(len(keys)), key=lambda at: (type(keys[at]).__name__, str(keys[at])))
    return np.array(order, dtype=np.int64)


def cluster_codes(clusters: Any, units: int) -> Ints:
    """Cluster ids of any kind as 0, 1, 2, ... in order of appearance.

    >>> cluster_codes(["b", "a", "b"], 3)
    array([0, 1, 0])
    """
    ids = list(clusters)
    if len(ids) != units:
        raise ShapeError(f"{len(ids)} cluster ids were given for {units} units", hint="give one cluster id a unit")
    code_of: dict[Any, int] = {}
    codes = np.array([code_of.setdefault(cluster_id, len(code_of)) for cluster_id in ids], dtype=np.int64)
    if any(cluster_id is None or cluster_id != cluster_id for cluster_id in code_of):
        raise NotFiniteError("a unit has no cluster id", hint="give such units their own cluster")
    return codes


def cluster_members(clusters: Any, units: int) -> list[Ints]:
    """For each cluster the rows of its units, in order of appearance."""
    codes = cluster_codes(clusters, units)
    order = np.argsort(codes, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(codes[order])) + 1) if units else []


def _sums_by_code(tables: Floats, codes: Ints) -> tuple[Floats, Floats]:
    """Each of two tables with the rows of equal code added up."""
    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    sums = np.add.reduceat(tables[:, order], starts, axis=1) if len(codes) else tables
    return sums[0], sums[1]


def _table(values: Any) -> Floats:
    table = np.asarray(values, dtype=np.float64)
    table = table[:, None] if table.ndim == 1 else table
    if table.ndim != 2:
        raise ShapeError(
            f"values have {table.ndim} dimensions, not 2", hint="give one row per unit and one column per metric"
        )
    if np.isinf(table).any():
        raise NotFiniteError("a value is infinite, and so is any mean of it", hint="undefined units are NaN")
    return table


def _weights_for(table: Floats, weights: Any) -> Floats:
    """Weights of the shape of the table; where the value is undefined they may be anything."""
    if weights is None:
        return np.ones_like(table)
    unit_weights = np.asarray(weights, dtype=np.float64)
    unit_weights = unit_weights[:, None] if unit_weights.ndim == 1 else unit_weights
    if unit_weights.shape[0] != table.shape[0] or unit_weights.shape[1:] not in {(1,), table.shape[1:]}:
        raise ShapeError(f"weights of shape {unit_weights.shape} do not fit values of shape {table.shape}")
    unit_weights = np.broadcast_to(unit_weights, table.shape)
    used = unit_weights[~np.isnan(table)]
    if not (np.isfinite(used) & (used >= 0.0)).all():
        raise ParameterError("a weight is negative, infinite or NaN", hint="a unit that counts nothing has 0")
    return unit_weights
