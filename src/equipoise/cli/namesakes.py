"""Metrics that share a name: which of them a spelling fits."""

from __future__ import annotations

from typing import Any

from equipoise.cli.options import symbol_of
from equipoise.errors import EquipoiseError, ParameterError
from equipoise.metrics.base import Metric
from equipoise.metrics.catalogue import Catalogue
from equipoise.metrics.parse import parse

USUAL_CUTOFF = "@10"


def fitting(spelling: str, catalogue: Catalogue) -> list[Metric[Any]]:
    """Every metric that the spelling fits, as P@5 fits the precision of rankings and not that of classes.

    None where nothing has that name; an error where something has, and fits none of its namesakes. One
    that needs a cutoff and has none is taken with a usual one.
    """
    found: list[Metric[Any]] = []
    refusals: list[EquipoiseError] = []
    for declared in catalogue.named(symbol_of(spelling)):
        try:
            found.append(_read(spelling, declared))
        except EquipoiseError as refusal:
            refusals.append(refusal)
    if refusals and not found:
        raise refusals[0]
    return found


def _read(spelling: str, declared: Any) -> Metric[Any]:
    only = Catalogue((declared,))
    try:
        return parse(spelling, catalogue=only)[0]
    except ParameterError:
        if "@" in spelling:
            raise
        return parse(spelling + USUAL_CUTOFF, catalogue=only)[0]
