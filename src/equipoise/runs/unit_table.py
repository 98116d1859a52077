"""The per-unit values of a run, and the content of its units, as lines of JSON.

A line has the id of the unit, the value of every metric, its weights and cluster if there are any, and for
rankings the gains, ranks and counts of its relevant items. ``null`` is an undefined value, and ``undefined``
says why; a rank of ``null`` is an item that was not retrieved.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf, isfinite, isnan, nan
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.errors import StoreError
from equipoise.evidence.base import FILE_CHANGED
from equipoise.evidence.ranking import Ranking
from equipoise.io import json as typed

if TYPE_CHECKING:
    from equipoise.io.dataset import Value
    from equipoise.stats.result import Result
    from equipoise.types import Floats, Ids

NO_RELEVANT = "no relevant item"
NO_VALUE = "the metric has no value on this unit"
_INFINITIES = {"Infinity": inf, "-Infinity": -inf}


@dataclass(frozen=True)
class UnitTable:
    """The columns of the table, as in a result."""

    unit_ids: Ids
    per_unit: dict[str, Floats]
    weights: dict[str, Floats]
    clusters: Ids | None


def unit_lines(result: Result) -> Iterator[str]:
    """One line of JSON per unit, in the order of the units."""
    values = {name: column.tolist() for name, column in result.per_unit.items()}
    weights = {name: column.tolist() for name, column in result.weights.items()}
    clusters = None if result.clusters is None else result.clusters.tolist()
    items = _items(result.evidence) if isinstance(result.evidence, Ranking) else None
    for index, unit in enumerate(result.unit_ids.tolist()):
        line: dict[str, Any] = {"id": unit, "values": _row(values, index)}
        relevant = {} if items is None else next(items)
        if None in line["values"].values():
            line["undefined"] = NO_RELEVANT if relevant.get("gains") == [] else NO_VALUE
        if weights:
            line["weights"] = _row(weights, index)
        if clusters is not None:
            line["cluster"] = clusters[index]
        yield json_text(line | relevant)


def parse_unit_lines(lines: Sequence[tuple[int, Any]], *, source: str) -> UnitTable:
    """The columns of the table from its lines and their numbers."""
    if not lines:
        return UnitTable(np.empty(0, dtype=object), {}, {}, None)
    names, weighted, clustered = _shape(lines[0][1])
    for number, line in lines:
        if _shape(line) != (names, weighted, clustered):
            raise StoreError(
                f"{source} line {number} has different fields from line {lines[0][0]}",
                hint=FILE_CHANGED,
            )
    cases = [line for _, line in lines]
    try:
        return UnitTable(
            ids([typed.name(case["id"]) for case in cases]),
            {name: _column(case["values"][name] for case in cases) for name in names},
            {name: _column(case["weights"][name] for case in cases) for name in weighted},
            ids([typed.name(case["cluster"]) for case in cases]) if clustered else None,
        )
    except (TypeError, ValueError) as error:
        raise StoreError(f"{source} has a value of the wrong type: {error}", hint=FILE_CHANGED) from error


def json_text(value: Any, *, indent: int | None = None) -> str:
    """JSON that every parser reads: no NaN, no infinity; floats keep all their digits."""
    return json.dumps(plain(value), ensure_ascii=False, allow_nan=False, indent=indent, default=_unknown)


def plain(value: Any) -> Any:
    """A value for JSON: NaN is None, infinity is a string, numpy scalars and arrays are Python values."""
    if isinstance(value, float):
        return value if isfinite(value) else None if isnan(value) else _word(value)
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(entry) for entry in value]
    if isinstance(value, np.generic | np.ndarray):
        return plain(value.tolist())
    return value


def number(value: Any) -> float:
    """The float that ``plain`` was given: None is NaN.

    >>> number(plain(float("-inf"))), number(plain(float("nan")))
    (-inf, nan)
    """
    if value is None:
        return nan
    return _INFINITIES[value] if isinstance(value, str) and value in _INFINITIES else float(value)


def ids(values: Sequence[Any]) -> Ids:
    """Ids from JSON: an array of integers if all are, else of Python objects."""
    if values and all(type(value) is int and abs(value) < 1 << 63 for value in values):
        return np.array(values, dtype=np.int64)
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _items(ranking: Ranking) -> Iterator[dict[str, list[Any]]]:
    """For each unit, the gains, ranks and counts of its relevant items."""
    starts = ranking.starts.tolist()
    gains, tied = ranking.gain.tolist(), ranking.tied.tolist()
    retrieved = ranking.retrieved.tolist()
    ranks = [rank if known else None for rank, known in zip(ranking.ranks.tolist(), retrieved, strict=True)]
    above = [count if known else None for count, known in zip(ranking.above.tolist(), retrieved, strict=True)]
    for first, last in pairwise(starts):
        part = slice(first, last)
        yield {"ranks": ranks[part], "above": above[part], "tied": tied[part], "gains": gains[part]}


def _row(columns: Mapping[str, list[float]], index: int) -> dict[str, Any]:
    return {name: plain(column[index]) for name, column in columns.items()}


def _shape(line: Any) -> tuple[tuple[str, ...], tuple[str, ...], bool]:
    """The metrics, the weighted metrics, and whether there is a cluster; empty for an invalid line."""
    if not isinstance(line, dict) or "id" not in line or not isinstance(line.get("values"), dict):
        return (), (), False
    return tuple(line["values"]), tuple(line.get("weights", ())), "cluster" in line


def _column(values: Iterator[Any]) -> Floats:
    return np.array([number(value) for value in values], dtype=np.float64)


def _word(value: float) -> str:
    return "Infinity" if value > 0 else "-Infinity"


def _unknown(value: Any) -> str:
    """Paths and other objects in settings, as text."""
    return str(value)


# The content of a unit for reports: its text, the expected answers, its slices, and the retrieved items.


@dataclass(frozen=True, slots=True)
class RetrievedItem:
    """One item that a system returned, best first; ``where`` says where it comes from (a section, a file)."""

    id: str
    text: str
    score: float | None = None
    relevant: bool = False
    where: str = ""


@dataclass(frozen=True, slots=True)
class UnitContent:
    """The content of one unit."""

    text: str
    expected: tuple[str, ...] = ()
    slices: Mapping[str, Value] = field(default_factory=dict)
    retrieved: tuple[RetrievedItem, ...] = ()


UnitContents = Mapping[str | int, UnitContent]
"""Details by unit id."""


def detail_lines(details: UnitContents) -> Iterator[str]:
    """One line of JSON per unit."""
    for unit, detail in details.items():
        retrieved = [{name: getattr(item, name) for name in RetrievedItem.__slots__} for item in detail.retrieved]
        content = {name: getattr(detail, name) for name in UnitContent.__slots__}
        yield json_text({"id": unit, **content, "retrieved": retrieved})


def parse_details(lines: Sequence[tuple[int, Any]], *, source: str) -> dict[str | int, UnitContent]:
    """The details from lines and their numbers.

    >>> details = {"q1": UnitContent("why?", ("because",), {"kind": "why"}, (RetrievedItem("d1", "because of rain"),))}
    >>> import json
    >>> lines = [(1, json.loads(line)) for line in detail_lines(details)]
    >>> parse_details(lines, source="details.jsonl") == details
    True
    """
    details: dict[str | int, UnitContent] = {}
    for number, line in lines:
        try:
            retrieved = tuple(map(_retrieved, typed.items(line["retrieved"])))
            expected = tuple(map(typed.text, typed.items(line["expected"])))
            details[typed.name(line["id"])] = UnitContent(
                typed.text(line["text"]), expected, typed.mapping(line["slices"]), retrieved
            )
        except (KeyError, TypeError) as error:
            raise StoreError(
                f"{source} line {number} is not the content of a unit: {error}",
                hint=FILE_CHANGED,
            ) from error
    return details


def _retrieved(content: Any) -> RetrievedItem:
    relevant = content["relevant"]
    if not isinstance(relevant, bool):
        raise TypeError(f"{relevant!r} is neither true nor false")
    return RetrievedItem(
        typed.text(content["id"]),
        typed.text(content["text"]),
        typed.optional(content["score"]),
        relevant,
        typed.text(content["where"]),
    )
