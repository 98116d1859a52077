"""Checks of the data: missing, undefined and unknown units, and invalid points."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from equipoise.checks.base import Observation, ScoredResult, declared_checks, evidence_names, join_names, pluralize
from equipoise.evidence.ranking import Ranking


def missing_units(scored: ScoredResult) -> Iterator[Observation]:
    """EQ101: units with relevant items for which the system returned nothing."""
    evidence = scored.result.evidence
    if isinstance(evidence, Ranking):
        absent = (evidence.depth == 0) & (evidence.counts > 0)
    elif (absent := getattr(evidence, "missing", None)) is None:
        return
    units = scored.result.unit_ids[absent].tolist()
    if units:
        scores = "has no result, so it scores" if len(units) == 1 else "have no result, so they score"
        yield Observation(
            scored.result.system,
            f"{len(units):,} of {pluralize(len(absent), 'id')} of the ground truth {scores} 0: {join_names(units)}",
            evidence_names(units),
        )


def undefined_units(scored: ScoredResult) -> Iterator[Observation]:
    """EQ104: units without a value of a metric; metrics that lack the same units share an observation."""
    groups: dict[bytes, list[str]] = {}
    for name, values in scored.result.per_unit.items():
        undefined = np.isnan(values)
        if undefined.any():
            groups.setdefault(undefined.tobytes(), []).append(name)
    for names in groups.values():
        undefined = np.isnan(scored.result.per_unit[names[0]])
        units = scored.result.unit_ids[undefined].tolist()
        metric = scored.metrics.get(names[0])
        why = f" ({metric.undefined})" if metric is not None else ""
        yield Observation(
            scored.result.system,
            f"{len(units):,} of {pluralize(len(undefined), 'value')} of {join_names(names)} are undefined{why} "
            f"and excluded from the mean: {join_names(units)}",
            evidence_names(units),
            "" if metric is None else metric.undefined_hint,
        )


def unknown_units(scored: ScoredResult) -> Iterator[Observation]:
    """EQ106: units of the run that are not in the ground truth."""
    units = getattr(scored.result.evidence, "unknown_units", ())
    if units:
        yield Observation(
            scored.result.system,
            f"{pluralize(len(units), 'id')} of the run {'is' if len(units) == 1 else 'are'} not in the ground truth "
            f"and were not scored: {join_names(units)}",
            evidence_names(units),
        )


def invalid_points(scored: ScoredResult) -> Iterator[Observation]:
    """EQ109: points outside the ball, off the hyperboloid, not finite, or of zero length.

    A ranking made from embeddings no longer has the points; it has a message about those that were invalid.
    """
    message = getattr(scored.result.evidence, "invalid_points", "")
    if message:
        yield Observation(scored.result.system, message, tuple(message.split("; ")))


CHECKS = declared_checks(
    "equipoise.checks",
    {
        "EQ101": (ScoredResult, missing_units),
        "EQ104": (ScoredResult, undefined_units),
        "EQ106": (ScoredResult, unknown_units),
        "EQ109": (ScoredResult, invalid_points),
    },
)
