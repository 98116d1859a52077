"""What a person wants to see of a unit: its text, the right answers, its slices, and what was retrieved.

A run directory keeps them as ``details.jsonl``, one line a unit, so that the units of any recipe can be
looked into.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from equipoise.data import typed
from equipoise.data.dataset import Value
from equipoise.errors import StoreError
from equipoise.run.cases import json_text


@dataclass(frozen=True, slots=True)
class Retrieved:
    """One item that a system returned, best first; ``where`` says where it comes from (a section, a file)."""

    id: str
    text: str
    score: float | None = None
    relevant: bool = False
    where: str = ""


@dataclass(frozen=True, slots=True)
class Detail:
    """One unit as people see it."""

    text: str
    expected: tuple[str, ...] = ()
    slices: Mapping[str, Value] = field(default_factory=dict)
    retrieved: tuple[Retrieved, ...] = ()


Details = Mapping[str | int, Detail]
"""Details by unit id."""


def detail_lines(details: Details) -> Iterator[str]:
    """One line of JSON a unit."""
    for unit, detail in details.items():
        yield json_text({"id": unit, **asdict(detail)})


def parse_details(lines: Sequence[tuple[int, Any]], *, source: str) -> dict[str | int, Detail]:
    """The details from lines and their numbers.

    >>> details = {"q1": Detail("why?", ("because",), {"kind": "why"}, (Retrieved("d1", "because of rain"),))}
    >>> import json
    >>> lines = [(1, json.loads(line)) for line in detail_lines(details)]
    >>> parse_details(lines, source="details.jsonl") == details
    True
    """
    details: dict[str | int, Detail] = {}
    for number, line in lines:
        try:
            found = tuple(map(_retrieved, typed.items(line["retrieved"])))
            expected = tuple(map(typed.text, typed.items(line["expected"])))
            details[typed.name(line["id"])] = Detail(
                typed.text(line["text"]), expected, typed.mapping(line["slices"]), found
            )
        except (KeyError, TypeError) as error:
            raise StoreError(
                f"{source} line {number} is no detail of a unit: {error}",
                hint="the file was changed after it was written: run the command again",
            ) from error
    return details


def _retrieved(content: Any) -> Retrieved:
    relevant = content["relevant"]
    if not isinstance(relevant, bool):
        raise TypeError(f"{relevant!r} is neither true nor false")
    return Retrieved(
        typed.text(content["id"]),
        typed.text(content["text"]),
        typed.optional(content["score"]),
        relevant,
        typed.text(content["where"]),
    )
