"""What a score is held against: a figure that knows the truth, beside chance and between models."""

from __future__ import annotations

from collections.abc import Mapping

from equipoise.errors import EquipoiseError
from equipoise.metrics.parse import parse
from equipoise.recipes.concepts.measured import Measured
from equipoise.stats.comparison import compare_results
from equipoise.stats.contrast import Contrast
from equipoise.stats.family import adjust
from equipoise.stats.result import Result

CORRECTION = "holm"


def chance_p(measured: Mapping[str, Measured]) -> dict[str, dict[str, float]]:
    """By figure and model, the p of "no better than shuffled", corrected over the models."""
    first = next(iter(measured.values()))
    found = {}
    for figure in first.observed.luck:
        p = adjust([each.observed.luck[figure].p for each in measured.values()], CORRECTION)
        found[figure] = dict(zip(measured, map(float, p), strict=True))
    return found


def truth_contrasts(measured: Mapping[str, Measured], *, level: float = 0.95) -> tuple[Contrast, ...]:
    """Every pair of models on the figure that is held against the truth, corrected over the pairs."""
    first = next(iter(measured.values()))
    figure = first.blend.truth
    if len(measured) < 2 or figure not in first.observed.beside:
        return ()
    metric = first.observed.beside[figure].metric
    results = [_result_with(each, metric) for each in measured.values()]
    evidence = results[0].evidence
    (known,) = parse(metric, evidence=None if evidence is None else type(evidence))
    try:
        compared = compare_results(
            results, metrics=[metric], level=level, correction=CORRECTION, metric_objects={metric: known}
        )
    except EquipoiseError:  # what cannot be compared separates nobody
        return ()
    return compared.contrasts


def _result_with(measured: Measured, metric: str) -> Result:
    return next(each for each in measured.observed.results.values() if metric in each.estimates)
