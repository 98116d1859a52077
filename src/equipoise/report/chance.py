"""The chance level as people read it; where the number of candidates is unknown it is only a bound."""

from __future__ import annotations

from collections.abc import Iterable
from math import isnan

from equipoise.checks.scores import UNKNOWN_CANDIDATES
from equipoise.stats.numbers import figure
from equipoise.stats.result import Estimate
from equipoise.types import Direction, Finding

BOUND_NOTE = (
    "With <= or >= it is only a bound: nobody said how many documents could have been retrieved, and "
    "luck does worse among more of them (--corpus-size)."
)


def bounded_systems(findings: Iterable[Finding]) -> set[str]:
    """The systems whose chance levels count only the items that were retrieved or judged relevant."""
    return {finding.subject for finding in findings if finding.code == UNKNOWN_CANDIDATES}


def chance_text(estimate: Estimate, places: int, *, bounded: bool) -> str:
    """The figure; with more candidates luck would do worse, so that of a smaller pool is a bound."""
    text = figure(estimate.chance, places)
    return f"{bound_sign(estimate.better)}{text}" if bounded and not isnan(estimate.chance) else text


def bound_sign(better: Direction) -> str:
    """On which side of the bound the true chance level lies."""
    return "<= " if better == Direction.UP else ">= "
