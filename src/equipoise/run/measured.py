"""A stored result with the metrics that someone asks for now: those it lacks are scored from its evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from equipoise.errors import ParameterError, UnknownNameError
from equipoise.metrics.catalogue import Catalogue
from equipoise.metrics.parse import parse
from equipoise.run.scoring import evaluate
from equipoise.stats.result import Result


def with_metrics(result: Result, metrics: Sequence[str], *, catalogue: Catalogue | None = None) -> Result:
    """The result with these metrics and no others, in this order.

    A metric that the result has stays as it is, also where only the result knows its name. Ties, clusters,
    level and seed are those of the first time.

    >>> from equipoise.evidence.ranking import Ranking
    >>> result = evaluate(Ranking.from_ranks([1, 2, 4], candidates=9), ["MRR", "HR@1"])
    >>> with_metrics(result, ["HR@{1,3}"]).names
    ('HR@1', 'HR@3')
    """
    names = list(dict.fromkeys(name for each in metrics for name in _names(result, each, catalogue)))
    lacking = [name for name in names if name not in result.estimates]
    whole = _scored(result, lacking, catalogue) if lacking else result
    return replace(
        whole,
        estimates={name: whole.estimates[name] for name in names},
        per_unit={name: column for name, column in whole.per_unit.items() if name in names},
        weights={name: column for name, column in whole.weights.items() if name in names},
    )


def _names(result: Result, expression: str, catalogue: Catalogue | None) -> list[str]:
    """The canonical names of a spelling; a name that only the result knows stands for itself."""
    kind = None if result.evidence is None else type(result.evidence)
    try:
        return [metric.name for metric in parse(expression, evidence=kind, catalogue=catalogue)]
    except (UnknownNameError, ParameterError):
        if expression not in result.estimates:
            raise
        return [expression]


def _scored(result: Result, names: Sequence[str], catalogue: Catalogue | None) -> Result:
    """The result and these metrics; what else it says of itself stays."""
    if result.evidence is None:
        raise UnknownNameError.of(
            f"metric of {result.system}", names[0], result.names, more=f"it has {', '.join(result.names)}"
        )
    kept = {name: result.settings[name] for name in _HOW if name in result.settings}
    more = evaluate(
        result.evidence,
        names,
        system=result.system,
        clusters=result.clusters,
        catalogue=catalogue,
        **kept,
    )
    return replace(
        result,
        estimates={**result.estimates, **more.estimates},
        per_unit={**result.per_unit, **more.per_unit},
        weights={**result.weights, **more.weights},
    )


_HOW = ("ties", "level", "resamples", "seed")
"""The settings of a result that say how it was scored."""
