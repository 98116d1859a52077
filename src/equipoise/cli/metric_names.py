"""Metric names on the command line: the catalogue with plugins, and the metrics that a name matches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from equipoise.errors import EquipoiseError, ParameterError
from equipoise.metrics.base import Metric
from equipoise.metrics.catalogue import MetricCatalogue, builtin
from equipoise.metrics.parser import parse_metrics

DEFAULT_CUTOFF = "@10"


def catalogue_with(plugins: Sequence[str]) -> MetricCatalogue:
    """The built-in metrics, those of installed packages, and those of plugin files."""
    catalogue = builtin().with_entry_points()
    for path in plugins:
        catalogue = catalogue.with_plugin(path)
    return catalogue


def symbol_of(expression: str) -> str:
    """The symbol in a metric name.

    >>> symbol_of("F1(average=macro)"), symbol_of("HR@{1,3}")
    ('F1', 'HR')
    """
    return expression.partition("(")[0].partition("@")[0].strip()


def matching_metrics(name: str, catalogue: MetricCatalogue) -> list[Metric[Any]]:
    """Every metric that the name matches: P@5 is the precision of rankings, not that of classes.

    Empty for an unknown symbol; an error if no metric with the symbol takes these parameters. A metric that needs
    a cutoff gets ``DEFAULT_CUTOFF`` if the name has none.
    """
    metrics: list[Metric[Any]] = []
    errors: list[EquipoiseError] = []
    for declared in catalogue.named(symbol_of(name)):
        try:
            metrics.append(_parse(name, MetricCatalogue((declared,))))
        except EquipoiseError as error:
            errors.append(error)
    if errors and not metrics:
        raise errors[0]
    return metrics


def _parse(name: str, catalogue: MetricCatalogue) -> Metric[Any]:
    try:
        return parse_metrics(name, catalogue=catalogue)[0]
    except ParameterError:
        if "@" in name:
            raise
        return parse_metrics(name + DEFAULT_CUTOFF, catalogue=catalogue)[0]
