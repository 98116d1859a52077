"""Equality of results that hold undefined numbers."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, TypeVar, cast

T = TypeVar("T")
_NAN = object()


def nan_equal(cls: type[T]) -> type[T]:
    """Let undefined numbers (NaN) of a dataclass equal each other, so that equal results compare equal.

    Up to Python 3.12 dataclasses compared their fields as tuples, in which the same NaN object equals itself;
    from 3.13 on they compare field by field, and an object with a NaN no longer equals itself.

    >>> from dataclasses import dataclass
    >>> @nan_equal
    ... @dataclass(frozen=True)
    ... class Value:
    ...     value: float
    >>> Value(float("nan")) == Value(float("nan")), Value(float("nan")) == Value(0.0)
    (True, False)
    """
    names = [field.name for field in fields(cast(Any, cls)) if field.compare]

    def key(self: T) -> tuple[Any, ...]:
        return tuple(_without_nan(getattr(self, name)) for name in names)

    def equal(self: T, other: object) -> bool:
        return key(self) == key(other) if type(other) is type(self) else NotImplemented

    def hashed(self: T) -> int:
        return hash(key(self))

    cls.__eq__, cls.__hash__ = equal, hashed  # type: ignore[assignment]
    return cls


def _without_nan(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_without_nan, value))
    return _NAN if isinstance(value, float) and value != value else value
