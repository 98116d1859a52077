"""Checks of the data: missing, undefined and unknown units, and invalid points."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from equipoise.checks.base import Check, Observation, ScoredResult, evidence_names, join_names, pluralize
from equipoise.evidence.ranking import Ranking
from equipoise.types import Severity


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


CHECKS: tuple[Check, ...] = (
    Check(
        code="EQ101",
        title="ids of the ground truth are missing from the run",
        severity=Severity.ISSUE,
        applies_to=ScoredResult,
        function=missing_units,
        why="""\
A unit of the ground truth without a result from the system scores 0. Leaving it out of the mean instead
would reward a system that returns nothing where it is weak, and two systems would be compared on different
questions. Frequent causes are an interrupted run, a filter, or ids that differ between files.""",
        hint="run what is missing, or check that run and ground truth use the same ids",
        example="""\
from equipoise import Ranking, evaluate
ranking = Ranking.from_runs({"q1": {"a": 1}, "q2": {"b": 1}}, {"q1": {"a": 0.9, "b": 0.1}})
evaluate(ranking, "MRR").findings""",
    ),
    Check(
        code="EQ104",
        title="undefined values",
        severity=Severity.NOTE,
        applies_to=ScoredResult,
        function=undefined_units,
        why="""\
A metric can be undefined for a unit, for example for a query without any relevant item. Such a unit
is excluded from the mean and counted separately. Other programs score it as 0, which lowers
every score by the same factor, or drop it without a message.""",
        hint="add the missing judgements, or remove these ids from the ground truth",
        example="""\
from equipoise import Ranking, evaluate
ranking = Ranking.from_runs({"q1": {"a": 1}, "q2": {"b": 0}}, {"q1": {"a": 0.9}, "q2": {"b": 0.8}})
evaluate(ranking, "MRR").findings""",
    ),
    Check(
        code="EQ106",
        title="ids of the run that are not in the ground truth",
        severity=Severity.TIP,
        applies_to=ScoredResult,
        function=unknown_units,
        why="""\
The run has units that the ground truth does not contain. They cannot be scored and change no
value. A few are normal if the ground truth is a sample; many mean that run and ground truth belong to different
splits, or that ids differ between files.""",
        hint="check that the run belongs to this ground truth, and that the ids match",
        example="""\
from equipoise import Ranking, evaluate
ranking = Ranking.from_runs({"q1": {"a": 1}}, {"q1": {"a": 0.9, "b": 0.2}, "q7": {"a": 0.4}})
evaluate(ranking, "MRR").findings""",
    ),
    Check(
        code="EQ109",
        title="invalid points in a geometry",
        severity=Severity.ISSUE,
        applies_to=ScoredResult,
        function=invalid_points,
        why="""\
A hyperbolic distance exists only between points of the model: inside the open ball for Poincare, on the upper sheet of
the hyperboloid for Lorentz. A zero vector has no direction, so its cosine is not defined, and a distance to NaN is
undefined. Programs that clamp such points silently score points that were never trained. Here they are counted and
listed, and not changed.""",
        hint="project the points during training, or embed these items again",
        example="""\
from equipoise import Ranking, evaluate
ranking = Ranking.from_embeddings([[0.1, 0.2]], [[0.1, 0.1], [0.0, 0.0]], [[0]])
evaluate(ranking, "MRR").findings""",
    ),
)
