"""Values of JSON, checked for their types when they are read back."""

from __future__ import annotations

from collections.abc import Mapping
from math import isnan, nan
from typing import Any

SHOWN = 40
"""Characters of a wrong value that a message shows."""


def text(value: Any) -> str:
    """A string; anything else raises ``TypeError``, as in all functions here."""
    return _of(value, str, "a text")


def integer(value: Any, *, below: int | None = None) -> int:
    """An integer from 0 up to ``below``."""
    if type(value) is not int or not 0 <= value < (1 << 62 if below is None else below):
        raise _wrong(value, "a count" if below is None else f"a place below {below}")
    return value


def real(value: Any) -> float:
    """A number; JSON has no NaN and no infinity, so that null and words are.

    >>> real(1), real(None)
    (1, nan)
    """
    if value is None:
        return nan
    if value in ("Infinity", "-Infinity"):
        return float(value)
    if type(value) not in (int, float) or abs(value) > 1.8e308 or isnan(value):
        raise _wrong(value, "a number")
    number: float = value
    return number


def optional(value: Any) -> float | None:
    """A number or nothing."""
    return None if value is None else real(value)


def name(value: Any) -> str | int:
    """An id: a string or an integer."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise _wrong(value, "an id")
    return value


def mapping(value: Any) -> dict[str, Any]:
    """An object whose values are no lists and no objects."""
    found: dict[str, Any] = _of(value, Mapping, "an object")
    for each in found.values():
        if isinstance(each, list | Mapping):
            raise _wrong(each, "a single value")
    return found


def items(value: Any) -> list[Any]:
    """A list."""
    return list(_of(value, list | tuple, "a list"))


def _of(value: Any, kind: Any, what: str) -> Any:
    if not isinstance(value, kind):
        raise _wrong(value, what)
    return value


def _wrong(value: Any, what: str) -> TypeError:
    shown = repr(value)
    return TypeError(f"{shown if len(shown) <= SHOWN else f'{shown[:SHOWN]}...'} is not {what}")
