"""``eq score --like``: score as another library does, with intervals, chance levels and notes on its limits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.config import DEFAULT_STATS, StatsConfig
from equipoise.evidence.ranking import Ranking
from equipoise.metrics.parser import parse_metrics
from equipoise.reproduce.emulation import RunAndQrels, excluded_queries, per_query_under, score_under
from equipoise.reproduce.presets import (
    EMPTY,
    EQUIPOISE,
    FRACTIONS,
    NEGATIVE,
    OTHER_QUERIES,
    TIES,
    UNJUDGED,
    Preset,
    get_preset,
    metric_form,
)
from equipoise.reproduce.tie_orders import PICK, SORT, is_tied
from equipoise.stats.formatting import format_value
from equipoise.stats.verdict import UNIT_NOUN

if TYPE_CHECKING:
    from equipoise.metrics.base import Metric
    from equipoise.metrics.parser import MetricCatalogue
    from equipoise.reproduce.presets import Conventions
    from equipoise.stats.result import Result
    from equipoise.types import Finding, Floats


DRAWN_LISTS, FEWEST_LISTS = 60_000, 10
"""The number of random lists in total, and per query at least, if relevant items have different grades."""
NEGLIGIBLE = 1e-12

Gains = tuple[float, ...]


def chance_level_under(inputs: RunAndQrels, metric: Metric[Any], conventions: Conventions, *, seed: int = 0) -> float:
    """The mean score of random rankings over the queries that count."""
    if conventions.unretrieved == "unseen":
        values = _random_list_scores(inputs, metric, conventions, np.random.default_rng([seed, 0]))
    else:
        values = per_query_under(inputs.ranking(conventions).with_constant_scores(), metric, conventions)
    values[excluded_queries(inputs, conventions)] = np.nan
    counted = values[~np.isnan(values)]
    return float(np.mean(counted)) if len(counted) else float("nan")


def _random_list_scores(
    inputs: RunAndQrels, metric: Metric[Any], conventions: Conventions, rng: np.random.Generator
) -> Floats:
    """Per query, the mean over random lists of the same length."""
    # Random scores have no ties and no meaningful sign.
    free = replace(conventions, ties="expected", nonpositive="kept")
    full_ranking = inputs.ranking(replace(free, unretrieved="counted"))
    lists = inputs.compared(free)
    n_lists = max(DRAWN_LISTS // len(inputs.units), FEWEST_LISTS)
    cases: dict[tuple[int, Gains], int] = {}
    units, list_ids, weights = [], [], []
    for at, unit in enumerate(inputs.units):
        gains = full_ranking.gain[full_ranking.starts[at] : full_ranking.starts[at + 1]]
        gains = gains if metric.symbol == "nDCG" else np.ones(len(gains))
        length = len(lists.get(unit, ()))
        for weight, listed in _listed_gains(gains, length, int(full_ranking.candidates[at]), n_lists, rng):
            units.append(at)
            list_ids.append(cases.setdefault((length, listed), len(cases)))
            weights.append(weight)
    scores = per_query_under(_all_tied(list(cases)), metric, free)
    values = np.zeros(len(inputs.units))
    np.add.at(values, units, np.array(weights) * scores[list_ids])
    return values


def _listed_gains(
    gains: Floats, length: int, candidates: int, n_lists: int, rng: np.random.Generator
) -> Iterator[tuple[float, Gains]]:
    """The relevant items in a random list, with their probability."""
    if not len(gains) or length >= candidates:
        yield 1.0, tuple(sorted(gains.tolist()))
        return
    if np.ptp(gains) == 0:
        from scipy.stats import hypergeom

        counts = np.arange(min(len(gains), length) + 1)
        for number, weight in zip(counts, hypergeom.pmf(counts, candidates, len(gains), length), strict=True):
            if weight > NEGLIGIBLE:
                yield float(weight), (float(gains[0]),) * int(number)
        return
    for number in rng.hypergeometric(len(gains), candidates - len(gains), length, n_lists):
        yield 1 / n_lists, tuple(sorted(rng.permutation(gains)[:number].tolist()))


def _all_tied(cases: Sequence[tuple[int, Gains]]) -> Ranking:
    """Lists of known length and relevant items, in which all scores are tied."""
    truth = {
        f"{at}": {f"{position}": gain for position, gain in enumerate(listed)} for at, (_, listed) in enumerate(cases)
    }
    lengths = np.array([length for length, _ in cases], dtype=np.int64)
    return replace(Ranking.from_runs(truth, {}), candidates=lengths, depth=lengths).with_constant_scores()


PLACES = 4


def limitation_notes(preset: Preset, metrics: Sequence[Metric[Any]], inputs: RunAndQrels) -> list[str]:
    """One message per property of the data that the library handles differently or not at all."""
    notes = []
    for name, limitation in preset.limitations.items():
        affected = [metric for metric in metrics if not limitation.forms or metric_form(metric) in limitation.forms]
        if name == TIES:
            notes += [_tie_order_note(limitation.message, inputs, metric, preset.rules(metric)) for metric in affected]
        elif affected and _PRESENT[name](inputs):
            notes.append(limitation.message)
    return [sentence for sentence in notes if sentence]


def _tie_order_note(sentence: str, inputs: RunAndQrels, metric: Metric[Any], rules: Conventions) -> str:
    """A note that the order of tied scores is undefined, and its effect on the score."""
    if rules.ties not in ("input", SORT, PICK) or not any(map(is_tied, inputs.compared(rules).values())):
        return ""
    # Fewer hits can raise a mean over hits, so the best order is not an upper bound.
    if rules.norm == "hits" and metric.symbol == "MAP" and getattr(metric, "k", None) is not None:
        return f"{metric.name}: {sentence}"
    low, high = (score_under(inputs, metric, replace(rules, ties=ties)).value for ties in ("pessimistic", "optimistic"))
    if not low < high:
        return ""
    return (
        f"{metric.name}: {sentence}; any order gives between {format_value(low, PLACES)} and "
        f"{format_value(high, PLACES)}"
    )


_PRESENT: Mapping[str, Callable[[RunAndQrels], bool]] = {
    UNJUDGED: lambda inputs: bool(inputs.unjudged),
    FRACTIONS: lambda inputs: any(gain != int(gain) for gain in inputs.gains),
    NEGATIVE: lambda inputs: any(gain < 0 for gain in inputs.gains),
    EMPTY: lambda inputs: any(not any(gain > 0 for gain in gains.values()) for gains in inputs.truth.values()),
    OTHER_QUERIES: lambda inputs: bool(inputs.unjudged) or not inputs.answered.all(),
}
"""Whether the run or the qrels have a property that makes a library stumble."""


DEFAULT_METRICS = ("nDCG@10",)
SCORER_INDEPENDENT_CODES = ("EQ106", "EQ110", "EQ302", "EQ303")
"""Findings that do not depend on the scorer; the others describe how equipoise handles missing and empty queries.

Ties (EQ301) are among the others: their range is that of our metric, not of the library's.
"""


def score_like(
    run: Any,
    qrels: Any,
    metrics: str | Metric[Any] | Iterable[str | Metric[Any]] = DEFAULT_METRICS,
    *,
    like: str | Preset,
    system: str = "system",
    corpus_size: int | None = None,
    config: StatsConfig = DEFAULT_STATS,
    catalogue: MetricCatalogue | None = None,
) -> Result:
    """The score that a library prints for a run, with our intervals, counts and chance levels.

    ``run`` and ``qrels`` are dicts of dicts or paths. The units are the queries of the qrels; those that the
    library leaves out count as undefined. ``clusters`` has one id per unit, in their order or by id. The settings
    name the preset, its conventions and the limits of the library; results under
    different presets are not compared with each other.
    """
    preset = get_preset(like)
    inputs = RunAndQrels.of(run, qrels, corpus_size=corpus_size)
    chosen = parse_metrics(metrics, evidence=Ranking, catalogue=catalogue)
    rules = {metric.name: preset.rules(metric) for metric in chosen}
    scores = {metric.name: score_under(inputs, metric, rules[metric.name]) for metric in chosen}
    from equipoise.stats.estimate import result_from_values

    result = result_from_values(
        system,
        inputs.units,
        # The last bit of a sum may exceed the bound.
        {name: np.clip(score.per_unit, 0.0, 1.0) for name, score in scores.items()},
        chance={
            metric.name: chance_level_under(inputs, metric, rules[metric.name], seed=config.seed) for metric in chosen
        },
        config=config,
        settings=_settings(preset, rules, limitation_notes(preset, chosen, inputs)),
    )
    printed = {name: replace(estimate, value=scores[name].value) for name, estimate in result.estimates.items()}
    return _with_findings(replace(result, estimates=printed), inputs, chosen, preset)


def _settings(preset: Preset, rules: dict[str, Conventions], used_notes: Sequence[str]) -> dict[str, Any]:
    return {
        UNIT_NOUN: "query",
        # Comparisons reject results with different treatment of ties; a preset is one treatment.
        "ties": f"like {preset.name}",
        "like": preset.name,
        "like_version": preset.version,
        "like_entry": preset.entry,
        "conventions": {name: conventions.to_dict() for name, conventions in rules.items()},
        "notes": list(used_notes),
    }


def _with_findings(result: Result, inputs: RunAndQrels, metrics: Sequence[Metric[Any]], preset: Preset) -> Result:
    from equipoise.checks.base import ScoredResult, run_checks
    from equipoise.checks.scores import TIES

    plain = Ranking.from_runs(inputs.truth, inputs.run, corpus_size=inputs.corpus_size)
    plain = replace(plain, unknown_units=inputs.unjudged)
    scored = ScoredResult(replace(result, evidence=plain), {metric.name: metric for metric in metrics})
    codes = SCORER_INDEPENDENT_CODES if preset.name != EQUIPOISE else (*SCORER_INDEPENDENT_CODES, TIES)
    findings: tuple[Finding, ...] = tuple(finding for finding in run_checks(scored) if finding.code in codes)
    return replace(result, findings=findings)
