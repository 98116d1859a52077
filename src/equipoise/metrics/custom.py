"""Custom metrics: their base class, and metrics of Python files and of installed packages."""

from __future__ import annotations

import importlib.util
import inspect
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from equipoise.errors import EquipoiseError, InputError, UndefinedError
from equipoise.evidence.base import Evidence
from equipoise.metrics.base import Metric, MetricValue
from equipoise.types import Direction


class BaseMetric(Metric[Any]):
    """Base class of custom metrics: a name and ``calculate``.

    ``calculate(evidence)`` returns one number per unit (NaN where it is undefined), which gets paired tests like any
    built-in metric, or a single number for all units.

    Parameters
    ----------
    name
        The name of the metric; it may also be a class attribute.
    better
        ``up`` if higher values are better, ``down`` if lower ones are.
    bounds
        The smallest and the largest possible value.
    title
        The name in words.
    evidence
        The kind of evidence, such as ``Ranking``; None for any.

    >>> class Steep(BaseMetric):
    ...     def __init__(self):
    ...         super().__init__(name="steep")
    ...     def calculate(self, results):
    ...         return 1 / results.best_ranks**2
    """

    symbol: str  # type: ignore[misc]
    title: str  # type: ignore[misc]
    evidence: type[Evidence]  # type: ignore[misc]

    def __init__(
        self,
        name: str = "",
        *,
        better: str = "up",
        bounds: tuple[float, float] = (float("-inf"), float("inf")),
        title: str = "",
        evidence: type[Evidence] | None = None,
    ) -> None:
        from equipoise.evidence.ranking import Ranking

        class_name = getattr(type(self), "name", None)
        self.symbol = name or (class_name if isinstance(class_name, str) else type(self).__name__)
        self.title = title or (type(self).__doc__ or self.symbol).strip().splitlines()[0]
        self.better = Direction(better)  # type: ignore[misc]
        self.bounds = bounds  # type: ignore[misc]
        self.evidence = evidence or Ranking

    @cached_property
    def name(self) -> str:
        """The name it was given."""
        return self.symbol

    def calculate(self, results: Any) -> Any:
        """One number per unit, or one number: to be written by the subclass."""
        raise UndefinedError(f"the metric {self.name} does not implement calculate")

    def measure(self, evidence: Any) -> MetricValue:
        """Run ``calculate`` and check that it returned one number, or one per unit."""
        try:
            answer = np.asarray(self.calculate(evidence), dtype=np.float64)
        except EquipoiseError:
            raise
        except Exception as error:  # a metric of the user may raise anything
            raise UndefinedError(
                f"the metric {self.name} failed: {type(error).__name__}: {error}", hint="fix its calculate method"
            ) from error
        if answer.ndim == 0:
            return MetricValue(float(answer))
        if answer.shape != (len(evidence),):
            raise UndefinedError(
                f"the metric {self.name} returned an array of shape {answer.shape} for {len(evidence)} units",
                hint="return one number, or one per unit in the order of unit_ids",
            )
        return MetricValue.mean(answer)


ENTRY_POINTS = "equipoise.metrics"


def metrics_of_packages() -> list[Any]:
    """The metrics that installed packages offer under ``equipoise.metrics``."""
    from importlib.metadata import entry_points

    return [metric for point in entry_points(group=ENTRY_POINTS) for metric in metrics_among([point.load()])]


def metrics_of_file(path: Path) -> list[Any]:
    """The metrics that a Python file defines."""
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
        metrics = metrics_among(definitions)
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


def metrics_among(values: list[Any]) -> list[Any]:
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
