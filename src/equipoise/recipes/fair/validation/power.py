"""What a number of questions can show, computed: the interval of an accuracy, the smallest difference."""

from __future__ import annotations

from dataclasses import dataclass

from equipoise.checks.fixture import ACCURACY, SampleSize

SIZES = (50, 80, 100, 200, 400)
"""The rows of the table, beside the number of questions at hand."""


@dataclass(frozen=True, slots=True)
class Resolution:
    """What ``n`` questions can show for systems of the planning accuracy; fractions.

    ``half_width`` is that of the 95 % Wilson interval of the accuracy, ``detectable`` the smallest difference
    between two systems that a paired test shows four times in five, None where there is none.
    """

    n: int
    half_width: float
    detectable: float | None
    accuracy: float = ACCURACY


def resolution(n: int, *, accuracy: float = ACCURACY) -> Resolution:
    """What this many questions can show.

    >>> seen = resolution(50)
    >>> round(seen.half_width, 2), round(seen.detectable, 2)
    (0.11, 0.23)
    """
    size = SampleSize(n, accuracy=accuracy)
    planned = size.detectable
    return Resolution(n, size.half_width, planned.value if planned.known else None, accuracy)


def resolution_table(n: int, *, accuracy: float = ACCURACY) -> tuple[Resolution, ...]:
    """The usual sizes and this one, smallest first.

    >>> [each.n for each in resolution_table(60)]
    [50, 60, 80, 100, 200, 400]
    """
    return tuple(resolution(size, accuracy=accuracy) for size in sorted({n, *SIZES}))
