"""Checks of embedded points: whether they are points of their geometry at all."""

from __future__ import annotations

from collections.abc import Iterator

from equipoise.checks.base import Complaint, kept
from equipoise.checks.subjects import Embedded, Scored


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
