"""What the page says first: the title, what the runs come to, and which of them are not complete."""

from __future__ import annotations

from equipoise.checks.base import counted
from equipoise.report.page.model import System
from equipoise.report.page.subject import Subject, letter
from equipoise.stats.numbers import figure, percent, shared_decimals, span

NAMED = 3


def systems(subject: Subject) -> tuple[System, ...]:
    """Every system with its letter."""
    return tuple(
        System(run.result.system, letter(place), run.caution) for place, run in enumerate(subject.runs)
    )


def title(subject: Subject) -> str:
    """What was measured, on how much."""
    units = counted(len(subject.units), "unit")
    if len(subject.names) == 1:
        return f"{subject.names[0]} by {subject.primary} on {units}"
    return f"{len(subject.names)} systems by {subject.primary} on {units}"


def subtitle(subject: Subject) -> str:
    """The data and the time, as far as the manifests know them."""
    data = dict.fromkeys(name for run in subject.runs for name in run.manifest.datasets)
    days = sorted({run.manifest.finished[:10] for run in subject.runs if run.manifest.finished})
    names = ", ".join(list(data)[:NAMED]) + (f" and {len(data) - NAMED} more" if len(data) > NAMED else "")
    when = " to ".join(dict.fromkeys((days[0], days[-1]))) if days else ""
    return ". ".join(part for part in (names and f"Data: {names}", when and f"Measured {when}") if part)


def verdict(subject: Subject) -> str:
    """Two sentences: of the comparison, or on what one run alone can say."""
    if subject.comparison is not None:
        return subject.comparison.verdict()
    own = subject.estimates(subject.primary)[0]
    places = shared_decimals([own.interval])
    luck = figure(own.chance, places, reason="not computed")
    return (
        f"{subject.names[0]} scores {figure(own.value, places)} on {subject.primary} "
        f"({percent(own.interval.level)} interval {span(own.interval, places)}; chance {luck}) "
        f"over {counted(own.n, 'unit')}. "
        "One run alone cannot say whether another system would do better: report it together with one."
    )


def cautions(subject: Subject) -> tuple[str, ...]:
    """A sentence for every run that is not complete."""
    return tuple(run.caution for run in subject.runs if run.caution)
