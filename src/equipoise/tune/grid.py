"""The grid: every combination of the values of some parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import product

from equipoise.errors import DuplicateError, ParameterError
from equipoise.tune.record import Params, Value


def grid(
    *, valid: Callable[[Params], bool] | None = None, **axes: Iterable[Value]
) -> tuple[dict[str, Value], ...]:
    """All combinations of the axes, the last axis fastest; without axes, the one point that says nothing.

    ``valid`` leaves out the points for which it is false; when it leaves none, that is an error.

    >>> grid(chunk_size=[256, 512], top_k=[5, 10])[1]
    {'chunk_size': 256, 'top_k': 10}
    >>> len(grid(chunk_size=[64, 128], overlap=[0, 64], valid=overlap_fits))
    3
    """
    values = {name: _values(name, given) for name, given in axes.items()}
    points = [dict(zip(values, point, strict=True)) for point in product(*values.values())]
    kept = tuple(point for point in points if valid is None or valid(point))
    if not kept:
        tried = "; ".join(f"{name} {', '.join(map(str, found))}" for name, found in values.items())
        raise ParameterError(
            f"none of the {len(points)} configurations is valid ({tried})", hint=_rule_of(valid)
        )
    return kept


def overlap_fits(params: Params) -> bool:
    """The overlap is smaller than chunk_size: otherwise a chunk would never move on."""
    overlap, size = params.get("overlap"), params.get("chunk_size")
    return overlap is None or size is None or float(overlap) < float(size)


def _values(name: str, given: Iterable[Value]) -> tuple[Value, ...]:
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise ParameterError(f"{name}={given!r} is no list of values", hint=f"write {name}=[{given!r}]")
    values = tuple(given)
    if not values:
        raise ParameterError(f"the axis {name} has no values", hint="give it one, or leave it out")
    for place, value in enumerate(values):
        if not isinstance(value, str | int | float | None):
            raise ParameterError(
                f"{name} holds a {type(value).__name__}, which is no plain value",
                hint="name things by a text or a number",
            )
        if value in values[:place]:
            raise DuplicateError(
                f"the axis {name} holds {value!r} twice",
                hint="a trial that runs twice only costs time: name every value once",
            )
    return values


def _rule_of(valid: Callable[[Params], bool] | None) -> str:
    """What a point must satisfy, in the words of the rule itself."""
    rule = (valid.__doc__ or "").strip().splitlines()
    return f"a configuration is valid when this holds: {rule[0]}" if rule else "change the values of the axes"
