"""Figures whose units depend on each other, and what that does to a difference of two.

A unit that is scored by what other units chose is not independent of them, and a paired test that takes it
for that finds too many differences. Such a figure comes with the errors that it made when everything was
drawn and chosen anew (``tune.redraw``), and two systems are told apart only where the test and these errors
both say so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isnan, nan, sqrt

import numpy as np

from equipoise.stats.contrast import Contrast, unit_sd
from equipoise.stats.interval import Interval, normal_critical, t_critical, t_interval
from equipoise.stats.result import Result
from equipoise.types import Floats

DRAWS = "draws"
"""The setting that names what was drawn: the errors of results that agree on it pair."""

DEGREES = "degrees of the errors"
"""The setting that gives the degrees of freedom of errors whose p is Student's: of a few hundred redraws no
share could be as small as a correction over many pairs asks for."""

METHOD = "redrawn"
"""How people read of an interval that comes from such errors."""

REDRAWN_P = "each p the larger of the test's and of that from redrawn units"
"""How a caption says where p comes from."""

_SLACK = 1e-12


def redrawn_difference(
    difference: float, errors: Floats, degrees: float, level: float = 0.95
) -> tuple[Interval, float]:
    """The interval of a difference from its redrawn errors, and the two-sided p of "no difference".

    p is the share of errors that are as large as the difference, and never 0. Errors that are redrawn from
    few units are a little too small; they are widened as Student's t is, as in the interval.

    >>> interval, p = redrawn_difference(0.1, np.array([-0.02, 0.01, 0.12, 0.0]), 50)
    >>> p, interval.method
    (0.4, 'redrawn')
    """
    interval = t_interval(difference, root_mean_square(errors), degrees, level, method=METHOD)
    extreme = np.count_nonzero(np.abs(errors) * widening(degrees, level) >= abs(difference) - _SLACK)
    return interval, float((extreme + 1) / (len(errors) + 1))


def student_difference(
    difference: float, errors: Floats, degrees: float, level: float = 0.95
) -> tuple[Interval, float]:
    """The interval of a difference from the spread of its errors, and Student's two-sided p of "none".

    For errors that are no more than a sample of their size, already scaled to the whole data.

    >>> interval, p = student_difference(0.1, np.array([-0.04, 0.04, -0.04, 0.04]), 30)
    >>> round(p, 3), interval.method
    (0.038, 'redrawn')
    """
    from scipy.special import stdtr

    error = float(np.std(errors, ddof=1)) if len(errors) > 1 else nan
    if isnan(difference) or isnan(error):
        return Interval.unknown("nothing was redrawn", level=level), nan
    if not error > _SLACK * max(1.0, abs(difference)):
        reason = "every resample gives the same value"
        return Interval.unknown(reason, level=level), 1.0 if abs(difference) <= _SLACK else nan
    interval = t_interval(difference, error, degrees, level, method=METHOD)
    return interval, float(2 * stdtr(degrees, -abs(difference) / error))


def widening(degrees: float, level: float = 0.95) -> float:
    """By how much errors that were redrawn from ``degrees`` + 1 units are to be stretched.

    Units drawn from n stray less than units drawn from all there are, by a factor of n / (n - 1) in the
    variance, and their spread is itself not known exactly.

    >>> round(widening(99), 3), round(widening(9999), 3)
    (1.017, 1.0)
    """
    return t_critical(level, degrees) / normal_critical(level) * sqrt((degrees + 1.0) / degrees)


def with_redrawn_errors(contrasts: Sequence[Contrast], results: Mapping[str, Result]) -> list[Contrast]:
    """The contrasts with the larger of both p, where both systems bring errors of the metric."""
    return [_judged(each, results[each.a], results[each.b]) for each in contrasts]


def errors_of(result: Result, metric: str) -> Floats | None:
    """The redrawn errors of a metric, where the result brings them."""
    return result.errors.get(metric)


def redrawn_scores(results: Sequence[Result], metric: str, scores: Floats) -> Floats | None:
    """Where the figures may truly lie, a row a draw and a column a system; None where errors do not pair."""
    errors = [errors_of(result, metric) for result in results]
    found = [each for each in errors if each is not None]
    draws = {(result.settings.get(DRAWS), len(each)) for result, each in zip(results, found, strict=False)}
    if len(found) < len(results) or len(draws) > 1:
        return None
    return scores - np.column_stack(found)


def _judged(seen: Contrast, first: Result, second: Result) -> Contrast:
    a, b = errors_of(first, seen.metric), errors_of(second, seen.metric)
    if a is None or b is None or seen.n < 2 or isnan(seen.difference):
        return seen
    size = min(len(a), len(b))
    # Errors of different draws do not pair: read backwards they are as good as independent, which is wider.
    paired = len(a) == len(b) and first.settings.get(DRAWS) == second.settings.get(DRAWS)
    errors = a[:size] - (b[:size] if paired else b[:size][::-1])
    degrees = [each.settings[DEGREES] for each in (first, second) if DEGREES in each.settings]
    if degrees:
        interval, p = student_difference(seen.difference, errors, min(degrees), seen.interval.level)
    else:
        interval, p = redrawn_difference(seen.difference, errors, seen.n - 1, seen.interval.level)
    if not interval.width > 0:
        return replace(seen, p=_larger(seen.p, p))
    return replace(
        seen,
        p=_larger(seen.p, p),
        interval=interval,
        sd=unit_sd(seen.difference, root_mean_square(errors), seen.n),
        units_per_block=1.0,
        reason="" if isnan(seen.p) else seen.reason,
    )


def _larger(tested: float, redrawn: float) -> float:
    """The larger p; that of the errors where the test has none."""
    return redrawn if isnan(tested) else max(tested, redrawn)


def root_mean_square(errors: Floats) -> float:
    """The size of errors around 0; 0 where none is known."""
    known = errors[~np.isnan(errors)]
    return sqrt(float(np.mean(np.square(known)))) if len(known) else 0.0
