"""Scoring as another library would: a result like any other, marked so that it is not compared with ours."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from equipoise.checks.like.chance import chance_under
from equipoise.checks.like.conventions import Conventions
from equipoise.checks.like.material import Material
from equipoise.checks.like.measure import figure_under
from equipoise.checks.like.notes import notes
from equipoise.checks.like.presets import OWN, Preset, preset_named
from equipoise.evidence.ranking import Ranking
from equipoise.metrics.base import Metric
from equipoise.metrics.catalogue import Catalogue
from equipoise.metrics.parse import parse
from equipoise.stats.result import Result
from equipoise.types import Finding

DEFAULTS = ("nDCG@10",)
OF_ANY_SCORER = ("EQ106", "EQ110", "EQ302", "EQ303")
"""Findings that hold whoever scores; the others tell what equipoise does with missing and empty queries.

Ties (EQ301) are among the others: their range is that of our own metric, not of the library's.
"""


def score_like(
    run: Any,
    qrels: Any,
    metrics: str | Metric[Any] | Iterable[str | Metric[Any]] = DEFAULTS,
    *,
    like: str | Preset,
    system: str = "system",
    corpus_size: int | None = None,
    clusters: Any = None,
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
    catalogue: Catalogue | None = None,
) -> Result:
    """What a library would print for a run, with our intervals, counts and chance levels beside it.

    ``run`` and ``qrels`` are dicts of dicts or paths. The units are the judged queries; those that the
    library leaves out count as undefined. ``clusters`` is an id a unit, in their order or by id. The settings
    name the preset, its conventions and what the library itself would have stumbled over; results under
    different presets are not compared with each other.

    >>> result = score_like({"q": {"a": 0.5, "b": 0.5}}, {"q": {"a": 1}}, "MRR", like="trec_eval")
    >>> result["MRR"].value, result.settings["like"]
    (0.5, 'trec_eval')
    """
    preset = preset_named(like)
    material = Material.of(run, qrels, corpus_size=corpus_size)
    chosen = parse(metrics, evidence=Ranking, catalogue=catalogue)
    rules = {metric.name: preset.rules(metric) for metric in chosen}
    figures = {metric.name: figure_under(material, metric, rules[metric.name]) for metric in chosen}
    from equipoise.stats.tabled import result_of_values

    result = result_of_values(
        system,
        material.units,
        # The last bit of a sum may lie beyond the bound.
        {name: np.clip(figure.per_unit, 0.0, 1.0) for name, figure in figures.items()},
        chance={
            metric.name: chance_under(material, metric, rules[metric.name], seed=seed) for metric in chosen
        },
        clusters=[clusters[unit] for unit in material.units] if isinstance(clusters, Mapping) else clusters,
        level=level,
        resamples=resamples,
        seed=seed,
        settings=_settings(preset, rules, notes(preset, chosen, material)),
    )
    printed = {
        name: replace(estimate, value=figures[name].value) for name, estimate in result.estimates.items()
    }
    return _with_findings(replace(result, estimates=printed), material, chosen, preset)


def _settings(preset: Preset, rules: dict[str, Conventions], seen: Sequence[str]) -> dict[str, Any]:
    return {
        # Comparisons refuse results whose equal scores were treated differently; a preset is one treatment.
        "ties": f"like {preset.name}",
        "like": preset.name,
        "like_version": preset.version,
        "like_entry": preset.entry,
        "conventions": {name: conventions.to_dict() for name, conventions in rules.items()},
        "notes": list(seen),
    }


def _with_findings(
    result: Result, material: Material, metrics: Sequence[Metric[Any]], preset: Preset
) -> Result:
    from equipoise.checks.catalogue import examine
    from equipoise.checks.scores import TIES
    from equipoise.checks.subjects import Scored

    plain = Ranking.from_runs(material.truth, material.run, corpus_size=material.corpus_size)
    plain = replace(plain, unknown_units=material.unjudged)
    scored = Scored(replace(result, evidence=plain), {metric.name: metric for metric in metrics})
    told = OF_ANY_SCORER if preset.name != OWN else (*OF_ANY_SCORER, TIES)
    found: tuple[Finding, ...] = tuple(each for each in examine(scored) if each.code in told)
    return replace(result, findings=found)
