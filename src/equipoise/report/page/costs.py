"""What each system takes: dimensions, seconds, bytes a vector, and how much of the texts it did not read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import floor, log10

from equipoise.report.page.figures import number
from equipoise.report.page.model import Cost, Number
from equipoise.report.page.subject import Subject
from equipoise.stats.numbers import figure, percent

FIGURES = 3
"""A cost is measured once, so more figures than these would be noise."""


def costs(subject: Subject) -> tuple[Cost, ...]:
    """A column for every usual kind of cost that some run knows; the protocol has the others."""
    recorded = [run.manifest.cost for run in subject.runs]
    values = {name: [each.get(name) for each in recorded] for name in KNOWN}
    return tuple(_cost(name, found) for name, found in values.items() if any(v is not None for v in found))


def other_costs(cost: Mapping[str, float | None]) -> dict[str, str]:
    """What a run recorded beyond the usual costs, as people read it."""
    known = {name: None if v is None else number(v) for name, v in cost.items() if name not in KNOWN}
    return {name: "" if value is None else _plain(value) for name, value in known.items()}


def _cost(name: str, values: list[float | None]) -> Cost:
    head, text = KNOWN[name]
    numbers: tuple[Number, ...] = tuple(None if value is None else number(value) for value in values)
    return Cost(name, head, numbers, tuple("" if value is None else text(value) for value in numbers))


def _plain(value: float) -> str:
    """A number to three figures, a whole number in full."""
    if value == int(value):
        return figure(value, 0)
    return figure(value, max(0, FIGURES - 1 - floor(log10(abs(value)))))


def _share(value: float) -> str:
    return percent(round(value, 3))


KNOWN: dict[str, tuple[str, Callable[[float], str]]] = {
    "dims": ("dims", _plain),
    "seconds": ("seconds", _plain),
    "bytes_per_vector": ("bytes a vector", _plain),
    "truncated_share": ("texts truncated", _share),
    "retrieved_tokens": ("tokens retrieved", _plain),
}
