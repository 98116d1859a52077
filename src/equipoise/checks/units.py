"""Checks of the units: those that are missing, undefined, unknown, or not shared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from equipoise.checks.base import Complaint, counted, kept, listed
from equipoise.checks.subjects import Scored, UnitSets
from equipoise.evidence.sets import Sets


def missing_units(scored: Scored) -> Iterator[Complaint]:
    """EQ101: units with something to find, for which the system delivered nothing."""
    evidence, ranking = scored.result.evidence, scored.ranking
    if ranking is not None:
        absent = (ranking.depth == 0) & (ranking.counts > 0)
    elif isinstance(evidence, Sets):
        absent = evidence.missing
    else:
        return
    units = scored.result.unit_ids[absent].tolist()
    if units:
        scores = "it scores" if len(units) == 1 else "they score"
        yield Complaint(
            scored.system,
            f"{len(units):,} of {counted(len(absent), 'unit')} of the truth got no answer, and {scores} 0: "
            f"{listed(units)}",
            kept(units),
        )


def undefined_units(scored: Scored) -> Iterator[Complaint]:
    """EQ104: units for which a metric has no value; metrics that miss the same units share a complaint."""
    groups: dict[bytes, list[str]] = {}
    for name, values in scored.result.per_unit.items():
        gone = np.isnan(values)
        if gone.any():
            groups.setdefault(gone.tobytes(), []).append(name)
    for names in groups.values():
        gone = np.isnan(scored.result.per_unit[names[0]])
        units = scored.result.unit_ids[gone].tolist()
        metric = scored.metrics.get(names[0])
        why = f" ({metric.undefined})" if metric is not None else ""
        yield Complaint(
            scored.system,
            f"{len(units):,} of {counted(len(gone), 'unit')} have no value of {listed(names)}{why} "
            f"and are left out of the mean: {listed(units)}",
            kept(units),
        )


def unknown_units(scored: Scored) -> Iterator[Complaint]:
    """EQ106: units that the system answered and the truth does not know."""
    units = getattr(scored.result.evidence, "unknown_units", ())
    if units:
        yield Complaint(
            scored.system,
            f"{counted(len(units), 'unit')} of the run {'is' if len(units) == 1 else 'are'} not in the truth "
            f"and could not be scored: {listed(units)}",
            kept(units),
        )


def unpaired_units(sets: UnitSets) -> Iterator[Complaint]:
    """EQ204: systems that were not measured on the units of the first one."""
    systems = list(sets.systems.items())
    for second, there in systems[1:]:
        first, here = systems[0]
        only_first, only_second = _without(here, there), _without(there, here)
        if only_first or only_second:
            yield Complaint(
                f"{first}, {second}",
                f"{counted(len(only_first), 'unit')} only in {first} ({listed(only_first) or 'none'}), "
                f"{len(only_second):,} only in {second} ({listed(only_second) or 'none'})",
                (
                    *(f"only in {first}: {unit}" for unit in kept(only_first)),
                    *(f"only in {second}: {unit}" for unit in kept(only_second)),
                ),
            )


def _without(units: Sequence[object], others: Sequence[object]) -> list[object]:
    """The units that are not among the others, in their order."""
    known = set(others)
    return [unit for unit in units if unit not in known]
