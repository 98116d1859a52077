"""Reading one number: what Python calls a number is more than what a file may hold."""

from __future__ import annotations

import re
from math import isfinite
from numbers import Integral, Real

LONGEST_INTEGER = 310
"""Characters; every finite float has fewer, and Python refuses to read integers of thousands."""
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[+-]?(?:nan|inf|infinity)", re.IGNORECASE)


class NotANumber(ValueError):  # noqa: N818  (a signal between readers, which add file and line)
    """The value is no number at all."""


class NotFinite(ValueError):  # noqa: N818
    """The value is NaN, infinite, or too large for a float."""


def number(value: object) -> int | float:
    """A finite number from a field of a file: an int where it is written as one, else a float.

    Underscores, digits of other scripts and truth values are no numbers.

    >>> number("3"), number("0.5"), number(2.0)
    (3, 0.5, 2.0)
    """
    if isinstance(value, str):
        return _from_text(value.strip(" \t"))
    if isinstance(value, bool) or not isinstance(value, Real):
        raise NotANumber
    return _finite(value)


def _from_text(text: str) -> int | float:
    if _NOT_FINITE.fullmatch(text):
        raise NotFinite
    if not _DECIMAL.fullmatch(text):
        raise NotANumber
    approximate = _finite(float(text))  # type: ignore[arg-type]
    whole = len(text) <= LONGEST_INTEGER and not set(text) & set(".eE")
    return int(text) if whole else approximate


def _finite(value: Real) -> int | float:
    try:
        finite = isfinite(value)
    except OverflowError:
        finite = False
    if not finite:
        raise NotFinite
    return int(value) if isinstance(value, Integral) else float(value)
