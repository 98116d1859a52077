"""Checks of the units: those that are missing, undefined, unknown, or not shared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from equipoise.checks.base import (
    Check,
    NamedPoints,
    Observation,
    ScoredResult,
    UnitSets,
    evidence_names,
    join_names,
    pluralize,
)
from equipoise.evidence.sets import Sets
from equipoise.types import Severity


def missing_units(scored: ScoredResult) -> Iterator[Observation]:
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
        yield Observation(
            scored.system,
            f"{len(units):,} of {pluralize(len(absent), 'unit')} of the truth got no answer, and {scores} 0: "
            f"{join_names(units)}",
            evidence_names(units),
        )


def undefined_units(scored: ScoredResult) -> Iterator[Observation]:
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
        yield Observation(
            scored.system,
            f"{len(units):,} of {pluralize(len(gone), 'unit')} have no value of {join_names(names)}{why} "
            f"and are left out of the mean: {join_names(units)}",
            evidence_names(units),
            "" if metric is None else metric.undefined_hint,
        )


def unknown_units(scored: ScoredResult) -> Iterator[Observation]:
    """EQ106: units that the system answered and the truth does not know."""
    units = getattr(scored.result.evidence, "unknown_units", ())
    if units:
        yield Observation(
            scored.system,
            f"{pluralize(len(units), 'unit')} of the run {'is' if len(units) == 1 else 'are'} not in the truth "
            f"and could not be scored: {join_names(units)}",
            evidence_names(units),
        )


def unpaired_units(sets: UnitSets) -> Iterator[Observation]:
    """EQ204: systems that were not measured on the units of the first one."""
    systems = list(sets.systems.items())
    for second, there in systems[1:]:
        first, here = systems[0]
        only_first, only_second = _without(here, there), _without(there, here)
        if only_first or only_second:
            yield Observation(
                f"{first}, {second}",
                f"{pluralize(len(only_first), 'unit')} only in {first} ({join_names(only_first) or 'none'}), "
                f"{len(only_second):,} only in {second} ({join_names(only_second) or 'none'})",
                (
                    *(f"only in {first}: {unit}" for unit in evidence_names(only_first)),
                    *(f"only in {second}: {unit}" for unit in evidence_names(only_second)),
                ),
            )


def _without(units: Sequence[object], others: Sequence[object]) -> list[object]:
    """The units that are not among the others, in their order."""
    known = set(others)
    return [unit for unit in units if unit not in known]


UNIT_CHECKS: tuple[Check, ...] = (
    Check(
        code="EQ101",
        title="units of the truth are missing from the run",
        severity=Severity.ISSUE,
        applies_to=ScoredResult,
        function=missing_units,
        why="""\
A unit that has a right answer but no answer from the system scores 0. Leaving it out of the mean instead
would reward a system for staying silent where it is weak, and two systems would be compared on different
questions. Often the cause is harmless: an interrupted run, a filter, ids that are spelled in two ways.""",
        hint="run the missing units, or see whether their ids are spelled alike in run and truth",
        example="""\
from equipoise import Ranking, evaluate
ranking = Ranking.from_runs({"q1": {"a": 1}, "q2": {"b": 1}}, {"q1": {"a": 0.9, "b": 0.1}})
evaluate(ranking, "MRR").findings""",
    ),
    Check(
        code="EQ104",
        title="units without a value",
        severity=Severity.NOTE,
        applies_to=ScoredResult,
        function=undefined_units,
        why="""\
A unit for which a metric has no value, such as a query without any relevant item, can be answered
neither well nor badly. It is undefined: left out of the mean, and counted beside it. Other programs
count such units as 0, which lowers every score by the same factor, or drop them without a word.""",
        hint="add the missing judgements, or leave these units out of the truth",
        example="""\
from equipoise import Ranking, evaluate
ranking = Ranking.from_runs({"q1": {"a": 1}, "q2": {"b": 0}}, {"q1": {"a": 0.9}, "q2": {"b": 0.8}})
evaluate(ranking, "MRR").findings""",
    ),
    Check(
        code="EQ106",
        title="units of the run that the truth does not know",
        severity=Severity.TIP,
        applies_to=ScoredResult,
        function=unknown_units,
        why="""\
The run answers units that the truth does not contain. Nothing can be said about them and they change no
figure. A few are normal when the truth is a sample; many mean that run and truth belong to different
splits, or that ids are spelled in two ways.""",
        hint="see whether the run belongs to this truth, and whether the ids are spelled alike",
        example="""\
from equipoise import Ranking, evaluate
ranking = Ranking.from_runs({"q1": {"a": 1}}, {"q1": {"a": 0.9, "b": 0.2}, "q7": {"a": 0.4}})
evaluate(ranking, "MRR").findings""",
    ),
    Check(
        code="EQ204",
        title="systems that were measured on different units",
        severity=Severity.ISSUE,
        applies_to=UnitSets,
        function=unpaired_units,
        why="""\
Two systems are compared on the same units, each unit with itself: the difficulty of the units then
cancels out, and far fewer of them are needed. Comparing on the units that both happen to share would
hide exactly those that one of them failed on. So unequal sets are refused, and this finding lists the
difference.""",
        hint="score every system on the whole truth; a unit that a run misses scores 0 there",
        example="""\
from equipoise.checks.registry import run_checks
from equipoise.checks.base import UnitSets
from equipoise.types import Severity
run_checks(UnitSets({"bm25": ["q1", "q2"], "dense": ["q2", "q3"]}))""",
    ),
)


# Checks of embedded points: whether they are points of their geometry at all.


def invalid_points(thing: NamedPoints | ScoredResult) -> Iterator[Observation]:
    """EQ109: points outside the ball, off the hyperboloid, not finite, or without a direction.

    Of a ranking made from embeddings, the points are gone; it carries a sentence about those that were wrong.
    """
    yield from _of_vectors(thing) if isinstance(thing, NamedPoints) else _of_ranking(thing)


def _of_vectors(embedded: NamedPoints) -> Iterator[Observation]:
    validity = embedded.geometry.check(embedded.vectors)
    for fault in validity.faults:
        yield Observation(
            embedded.name,
            f"{len(fault.rows):,} of {validity.points:,} points {fault}",
            evidence_names([f"row {row}" for row in fault.rows.tolist()]),
            fault.hint,
        )


def _of_ranking(scored: ScoredResult) -> Iterator[Observation]:
    sentence = getattr(scored.ranking, "invalid_points", "")
    if sentence:
        yield Observation(scored.system, sentence)


POINTS_CHECKS: tuple[Check, ...] = (
    Check(
        code="EQ109",
        title="points that are invalid in their geometry",
        severity=Severity.ISSUE,
        applies_to=NamedPoints | ScoredResult,
        function=invalid_points,
        why="""\
A hyperbolic distance exists only between points of the model: inside the open ball for Poincare, on the
upper sheet of the hyperboloid for Lorentz. A zero vector has no direction, so its cosine is not defined,
and NaN is near nothing. Programs that clamp such points in silence report figures of other points than
the ones that were trained. Here they are counted and named, and nothing is moved.""",
        hint="project the points when they are trained, or embed these items again",
        example="""\
from equipoise.checks.registry import run_checks
from equipoise.checks.base import NamedPoints
from equipoise.geometry.spaces import geometry
from equipoise.types import Severity
run_checks(NamedPoints("accounts", [[0.1, 0.2], [0.9, 0.8]], geometry("poincare")))""",
    ),
)


CHECKS: tuple[Check, ...] = (*UNIT_CHECKS, *POINTS_CHECKS)
