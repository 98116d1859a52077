"""Checks of embedded points: whether they are points of their geometry at all."""

from __future__ import annotations

from collections.abc import Iterator

from equipoise.checks.base import Check, Complaint, kept
from equipoise.checks.subjects import Embedded, Scored
from equipoise.types import Severity


def invalid_points(thing: Embedded | Scored) -> Iterator[Complaint]:
    """EQ109: points outside the ball, off the hyperboloid, not finite, or without a direction.

    Of a ranking made from embeddings, the points are gone; it carries a sentence about those that were wrong.
    """
    yield from _of_vectors(thing) if isinstance(thing, Embedded) else _of_ranking(thing)


def _of_vectors(embedded: Embedded) -> Iterator[Complaint]:
    validity = embedded.geometry.check(embedded.vectors)
    for fault in validity.faults:
        yield Complaint(
            embedded.name,
            f"{len(fault.rows):,} of {validity.points:,} points {fault}",
            kept([f"row {row}" for row in fault.rows.tolist()]),
            fault.remedy,
        )


def _of_ranking(scored: Scored) -> Iterator[Complaint]:
    sentence = getattr(scored.ranking, "invalid_points", "")
    if sentence:
        yield Complaint(scored.system, sentence)


CHECKS: tuple[Check, ...] = (
    Check(
        code="EQ109",
        title="points that are invalid in their geometry",
        severity=Severity.ISSUE,
        applies_to=Embedded | Scored,
        function=invalid_points,
        why="""\
A hyperbolic distance exists only between points of the model: inside the open ball for Poincare, on the
upper sheet of the hyperboloid for Lorentz. A zero vector has no direction, so its cosine is not defined,
and NaN is near nothing. Programs that clamp such points in silence report figures of other points than
the ones that were trained. Here they are counted and named, and nothing is moved.""",
        remedy="project the points when they are trained, or embed these items again",
        example="""\
from equipoise.checks.catalogue import examine
from equipoise.checks.subjects import Embedded
from equipoise.geometry import geometry
from equipoise.types import Severity
examine(Embedded("accounts", [[0.1, 0.2], [0.9, 0.8]], geometry("poincare")))""",
    ),
)
