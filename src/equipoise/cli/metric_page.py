"""The page about a metric, all of it read off its declaration."""

from __future__ import annotations

from dataclasses import MISSING, fields
from inspect import cleandoc
from typing import Any, Literal, get_args, get_origin, get_type_hints

from equipoise.cli.ls import bounds_text
from equipoise.cli.namesakes import fitting
from equipoise.metrics.base import BaseMetric, Metric
from equipoise.metrics.catalogue import Catalogue
from equipoise.report.facts import Page
from equipoise.report.formula import readable
from equipoise.report.worked import worked
from equipoise.types import Direction

TIES = {
    "ranking": "the expectation over all orders of equal scores; or --ties by_id, optimistic, pessimistic",
    "labels": "a tie for the largest score goes to the lowest class, and is reported",
}


def metric_pages(name: str, catalogue: Catalogue) -> list[Page]:
    """A page for every metric that the name fits; none when nothing is called so."""
    return [_page(metric) for metric in fitting(name, catalogue)]


def _page(metric: Metric[Any]) -> Page:
    direction = "larger" if metric.better == Direction.UP else "smaller"
    # A metric of a user's own inherits words about built-in ones, which may not hold for it.
    own = isinstance(metric, BaseMetric)
    unit = "" if own else f" ({metric.unit})"
    return Page(
        f"{metric.name}  {metric.title}",
        _definition(metric),
        {
            "formula": readable(metric.formula),
            "range": f"{bounds_text(metric.bounds)}{unit}; {direction} is better",
            "evidence": metric.evidence.kind,
            "undefined": "" if own else metric.undefined,
            "ties": "" if own else TIES.get(metric.evidence.kind, ""),
            "chance": _sentence(type(metric).chance.__doc__),
            "parameters": _parameters(metric),
            "also read as": ", ".join(metric.aliases),
            "source": metric.cite,
        },
        {"Example": worked(metric)},
    )


def _definition(metric: Metric[Any]) -> str:
    return cleandoc(type(metric).__doc__ or metric.title).split(">>>")[0].strip().replace("``", "")


def _sentence(text: str | None) -> str:
    return " ".join((text or "").split(">>>")[0].split()).replace("``", "")


def _parameters(metric: Metric[Any]) -> str:
    """``k (none), norm (min, or R)``: each parameter with its default and other choices."""
    if isinstance(metric, BaseMetric):
        return ""
    types = get_type_hints(type(metric))
    described = []
    for field in fields(metric):  # type: ignore[arg-type]
        if field.name == "k":
            described.append("k, the cutoff")
            continue
        kind = types[field.name]
        choices = " | ".join(map(str, get_args(kind))) if get_origin(kind) is Literal else ""
        default = "" if field.default is MISSING else f" (default {field.default})"
        described.append(f"{field.name}{'=' + choices if choices else ''}{default}")
    return ", ".join(described)
