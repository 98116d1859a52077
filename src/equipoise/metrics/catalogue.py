"""The catalogue of metrics by name: the built-in metrics, and metrics registered by users."""

from __future__ import annotations

import importlib.util
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equipoise.errors import InputError
from equipoise.metrics.base import BaseMetric, Metric

if TYPE_CHECKING:
    from equipoise.evidence.base import Evidence

ENTRY_POINTS = "equipoise.metrics"

BUILT_IN = {
    "ranking": "equipoise.metrics.ranking",
    "labels": "equipoise.metrics.labels",
    "sets": "equipoise.metrics.sets",
    "pairs": "equipoise.metrics.pairs",
    "space": "equipoise.metrics.structure",
}
"""The module whose ``METRICS`` measure a kind of evidence; imported when a metric of that kind is looked up."""


@dataclass(frozen=True)
class MetricCatalogue:
    """Metrics by name and alias: the built-in ones of some kinds of evidence, and added ones.

    A metric is a class, or an instance of a ``BaseMetric`` subclass.
    """

    added: tuple[Any, ...] = ()
    kinds: tuple[str, ...] = ()

    @cached_property
    def metrics(self) -> tuple[Any, ...]:
        """All metrics; this imports the modules of all ``kinds``."""
        built_in = (metric for kind in self.kinds for metric in import_module(BUILT_IN[kind]).METRICS)
        return (*built_in, *self.added)

    @cached_property
    def _by_name(self) -> dict[str, list[Any]]:
        names: dict[str, list[Any]] = {}
        for metric in self.metrics:
            for spelling in dict.fromkeys(name.casefold() for name in (metric.symbol, *metric.aliases)):
                names.setdefault(spelling, []).append(metric)
        return names

    def named(self, name: str, evidence: type[Evidence] | None = None) -> list[Any]:
        """All metrics with this name or alias, ignoring case; of this type of evidence only, if one of them fits it."""
        fitting = self._fitting(evidence).named(name) if evidence is not None else []
        return fitting or self._by_name.get(name.casefold(), [])

    def _fitting(self, evidence: type[Evidence]) -> MetricCatalogue:
        added = tuple(metric for metric in self.added if issubclass(evidence, metric.evidence))
        return MetricCatalogue(added, tuple(kind for kind in self.kinds if kind == evidence.kind))

    def spellings(self) -> list[str]:
        """All symbols and synonyms."""
        return [name for metric in self.metrics for name in (metric.symbol, *metric.aliases)]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.metrics)

    def with_plugin(self, path: str | Path) -> MetricCatalogue:
        """This catalogue and the metrics that a Python file defines."""
        return self.plus(_from_file(Path(path)), source=str(path))

    def with_entry_points(self) -> MetricCatalogue:
        """This catalogue and the metrics that installed packages offer under ``equipoise.metrics``."""
        from importlib.metadata import entry_points

        metrics = [metric for point in entry_points(group=ENTRY_POINTS) for metric in _instances([point.load()])]
        return self.plus(metrics, source=f"entry points {ENTRY_POINTS}") if metrics else self

    def plus(self, metrics: list[Any], *, source: str) -> MetricCatalogue:
        """This catalogue and more metrics; a name that exists is an error."""
        for metric in metrics:
            if self.named(metric.symbol):
                raise InputError(
                    f"{source} defines a metric {metric.symbol!r}, and there is one of that name already",
                    hint="give it another name",
                )
        return MetricCatalogue(self.added + tuple(metrics), self.kinds)


@lru_cache(maxsize=1)
def builtin() -> MetricCatalogue:
    """The metrics of this package."""
    return MetricCatalogue(kinds=tuple(BUILT_IN))


def _from_file(path: Path) -> list[Any]:
    if not path.is_file():
        raise InputError(f"there is no plugin file {path}", hint="give the path of a Python file")
    spec = importlib.util.spec_from_file_location(f"equipoise_plugin_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise InputError(f"{path} is not a Python file", hint="a plugin ends in .py")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise InputError(f"the plugin {path} fails when it is loaded: {type(error).__name__}: {error}") from error
    definitions = [value for value in vars(module).values() if getattr(value, "__module__", "") == module.__name__]
    try:
        metrics = _instances(definitions)
    except Exception as error:
        raise InputError(
            f"a metric of the plugin {path} cannot be made: {type(error).__name__}: {error}",
            hint="its __init__ takes no argument and gives a name: super().__init__(name=...)",
        ) from error
    if not metrics:
        raise InputError(
            f"the plugin {path} defines no metric",
            hint="subclass equipoise.BaseMetric with a name and calculate",
        )
    return metrics


def _instances(values: list[Any]) -> list[Any]:
    """Metric classes as they are; subclasses of ``BaseMetric`` as the instance that carries the name."""
    metrics: list[Any] = []
    for value in values:
        if isinstance(value, BaseMetric):
            metrics.append(value)
        elif inspect.isclass(value) and issubclass(value, BaseMetric):
            instance: Any = value  # its own __init__ gives the name
            metrics.append(instance())
        elif inspect.isclass(value) and issubclass(value, Metric) and not inspect.isabstract(value):
            metrics.append(value)
    return metrics
