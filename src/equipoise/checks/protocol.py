"""Checks of the protocol: whether a run is what its figures take it for."""

from __future__ import annotations

from collections.abc import Iterator

from equipoise.checks.base import Complaint, counted
from equipoise.checks.subjects import LineUp
from equipoise.embed.retriever import has_lexical_baseline
from equipoise.stats.result import Result

PARTIAL_RUN = "EQ206"


def partial_run(result: Result) -> Iterator[Complaint]:
    """EQ206: a result that was read from a run directory which is not complete."""
    status = result.settings.get("status", "complete")
    if status != "complete":
        reason = result.settings.get("status_reason") or "no reason was recorded"
        yield Complaint(
            result.system,
            f"the run is {status}: {reason}",
            (f"{counted(len(result.unit_ids), 'unit')} in the run directory",),
        )


def no_lexical_baseline(line_up: LineUp) -> Iterator[Complaint]:
    """EQ107: models are compared with each other, and with nothing that only looks at words."""
    if len(line_up.specs) > 1 and not has_lexical_baseline(line_up.specs):
        yield Complaint(
            ", ".join(line_up.specs),
            "no system that only looks at words is compared with these models",
            (f"{counted(len(line_up.specs), 'system')} compared",),
        )
