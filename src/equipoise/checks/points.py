"""Checks of embedded points: whether they are points of their geometry at all."""

from __future__ import annotations

from collections.abc import Iterator

from equipoise.checks.base import Complaint, kept
from equipoise.checks.subjects import Embedded


def invalid_points(embedded: Embedded) -> Iterator[Complaint]:
    """EQ109: points outside the ball, off the hyperboloid, not finite, or without a direction."""
    validity = embedded.geometry.check(embedded.vectors)
    for fault in validity.faults:
        yield Complaint(
            embedded.name,
            f"{len(fault.rows):,} of {validity.points:,} points {fault}",
            kept([f"row {row}" for row in fault.rows.tolist()]),
            fault.remedy,
        )
