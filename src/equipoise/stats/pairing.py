"""Compare results: pair the systems unit by unit, contrast every pair of systems, and order the systems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import isfinite, isnan, nan, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.config import DEFAULT_STATS, StatsConfig
from equipoise.errors import DuplicateError, PairingError, ParameterError, UndefinedError, UnknownNameError
from equipoise.evidence.ranking import Ranking
from equipoise.stats.bootstrap_mean import UNBOUNDED, ResamplingUnits, difference_intervals
from equipoise.stats.comparison import Comparison, Contrast
from equipoise.stats.complete_units import complete_units, on_complete_units
from equipoise.stats.estimate import value_bounds
from equipoise.stats.intervals import t_interval
from equipoise.stats.multiple_comparisons import adjust, correction_text
from equipoise.stats.paired_tests import TESTS, get_test, run_test, why_untestable
from equipoise.stats.power import with_power
from equipoise.stats.result import DATA, MATCHER
from equipoise.stats.verdict import Vocabulary, plural, unit_noun
from equipoise.types import Direction, Floats, Ids, Ints

if TYPE_CHECKING:
    from equipoise.evidence.base import Evidence
    from equipoise.metrics.base import Metric
    from equipoise.stats.intervals import Bounds
    from equipoise.stats.result import Result

SHOWN = 5


@dataclass(frozen=True)
class AlignedResults:
    """Results of several systems on the same units; ``orders`` sorts each into the order of the first."""

    results: tuple[Result, ...]
    orders: tuple[Ints, ...]
    clusters: Ids | None
    systems: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.results[0].unit_ids)

    def has_parts(self, metric: str) -> bool:
        """Whether every system has per-unit values of the metric."""
        return all(metric in result.per_unit for result in self.results)

    def per_unit(self, metric: str) -> Floats:
        """Per-unit values of all systems: shape (units, systems)."""
        return np.column_stack(
            [
                np.asarray(result.per_unit[metric], dtype=np.float64)[order]
                for result, order in zip(self.results, self.orders, strict=True)
            ]
        )

    def weights(self, metric: str) -> Floats | None:
        """How much each unit counts; the systems must agree, or a difference of means has no pairs."""
        weighted = [metric in result.weights for result in self.results]
        if not any(weighted):
            return None
        if all(weighted):
            columns = [
                np.asarray(result.weights[metric], dtype=np.float64)[order]
                for result, order in zip(self.results, self.orders, strict=True)
            ]
            if all(np.allclose(columns[0], column, equal_nan=True) for column in columns[1:]):
                return columns[0]
        words = Vocabulary.nouns(self.results)
        raise PairingError(
            f"the {words.plural} have different weights for {metric} in the systems {_list_values(self.systems)}",
            hint=f"score every system on the same truth, so that the {words.plural} have the same weights",
        )

    def evidence(self) -> list[Evidence] | None:
        """The evidence of every system with its units in the same order, ties ordered by the rule of the result.

        None if a system has no evidence.
        """
        aligned = []
        for result, order in zip(self.results, self.orders, strict=True):
            evidence, ties = result.evidence, result.settings.get("ties")
            if evidence is None or len(evidence) != len(self):
                return None
            aligned.append((evidence.ordered(ties) if ties and isinstance(evidence, Ranking) else evidence).take(order))
        return aligned


def align_results(results: Sequence[Result]) -> AlignedResults:
    """Align results by unit id; unequal sets of units are an error that lists the difference.

    Two results with the same units in another order are put in order, never joined on what they share.
    """
    if len(results) < 2:
        raise ParameterError(
            f"a comparison needs at least two systems; {len(results)} was given", hint="add another run"
        )
    names = [result.system for result in results]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise DuplicateError(f"two results are called {repeated[0]!r}", hint="give each system a different name")
    first = results[0]
    positions = _positions(first)
    orders = [np.arange(len(positions))]
    for other in results[1:]:
        other_positions = _positions(other)
        if positions.keys() != other_positions.keys():
            raise _unequal(first, other, positions, other_positions)
        orders.append(np.fromiter((other_positions[unit] for unit in positions), np.int64, len(positions)))
    return AlignedResults(tuple(results), tuple(orders), _shared_clusters(results, orders), tuple(names))


def _positions(result: Result) -> dict[object, int]:
    """The index of each unit; keys are Python values, so that 1 and numpy's 1 are the same unit."""
    units = result.unit_ids.tolist()
    positions = {unit: position for position, unit in enumerate(units)}
    if len(positions) < len(units):
        repeated = next(unit for position, unit in enumerate(units) if positions[unit] != position)
        raise DuplicateError(f"{result.system} has the {unit_noun([result])} {repeated!r} more than once")
    return positions


def _unequal(
    first: Result, other: Result, positions: dict[object, int], other_positions: dict[object, int]
) -> PairingError:
    missing = [unit for unit in positions if unit not in other_positions]
    extra = [unit for unit in other_positions if unit not in positions]
    sides = ((missing, first.system), (extra, other.system))
    noun = unit_noun([first, other])
    items = plural("item" if noun == "unit" else noun)
    return PairingError(
        f"{first.system} and {other.system} were not measured on the same {items}: "
        + ", ".join(f"{len(units)} only in {name}" for units, name in sides),
        hint=f"{_missing_hint(first, other, items)} (eq explain EQ204)",
        excerpt="\n".join(f"only in {name}: {_list_values(units)}" for units, name in sides if units),
    )


def _missing_hint(first: Result, other: Result, items: str) -> str:
    """How to get the same units, called ``items``, which depends on where the scores are from."""
    kinds = {None if result.evidence is None else result.evidence.kind for result in (first, other)}
    if kinds == {Ranking.kind}:
        return f"score every system on all {items}; one that a run misses scores 0"
    if kinds == {None}:
        return f"add the scores of the missing {items}, or leave them out of every table of scores"
    return f"score every system on all {items}"


def _shared_clusters(results: Sequence[Result], orders: Sequence[Ints]) -> Ids | None:
    """The cluster labels of the results; results with labels must agree."""
    clusterings = [
        (result.system, np.asarray(result.clusters)[order])
        for result, order in zip(results, orders, strict=True)
        if result.clusters is not None
    ]
    for name, labels in clusterings[1:]:
        if labels.tolist() != clusterings[0][1].tolist():
            raise PairingError(
                f"{clusterings[0][0]} and {name} put the same items in different clusters",
                hint="use one cluster key for all systems",
            )
    return clusterings[0][1] if clusterings else None


def _list_values(values: Sequence[object]) -> str:
    text = ", ".join(str(value) for value in values[:SHOWN])
    return text + (f" and {len(values) - SHOWN} more" if len(values) > SHOWN else "")


_DIGITS = 12


def check_same_protocol(results: Sequence[Result]) -> None:
    """Raise ``PairingError`` for results on other data, or with another matcher, whose units have the same names.

    >>> from equipoise.stats.estimate import result_from_values
    >>> one, other = (result_from_values(name, ["q1", "q2"], {"HR": [1, 0]}, settings={"matcher": rule})
    ...               for name, rule in (("a", "words"), ("b", "embedding-eval")))
    >>> check_same_protocol([one, other])
    Traceback (most recent call last):
    equipoise.errors.PairingError: a was measured with the matcher words and b with embedding-eval
    """
    matched = [(result.system, result.settings[MATCHER]) for result in results if result.settings.get(MATCHER)]
    for system, matcher in matched[1:]:
        if matcher != matched[0][1]:
            raise PairingError(
                f"{matched[0][0]} was measured with the matcher {matched[0][1]} and {system} with {matcher}",
                hint="measure both with one rule, and compare those runs",
            )
    for part in dict.fromkeys(part for result in results for part in _data(result)):
        digests = [(result, _data(result)[part]) for result in results if part in _data(result)]
        for other, digest in digests[1:]:
            if digest != digests[0][1]:
                raise _other_data(part, digests[0], (other, digest))


def _data(result: Result) -> Mapping[str, Any]:
    data = result.settings.get(DATA)
    return data if isinstance(data, Mapping) else {}


def _other_data(part: str, one: tuple[Result, Any], other: tuple[Result, Any]) -> PairingError:
    excerpt = "\n".join(f"{part} of {result.system}: {str(digest)[:_DIGITS]}" for result, digest in (one, other))
    return PairingError(
        f"{one[0].system} and {other[0].system} were not measured on the same {part}, "
        f"though their {Vocabulary.nouns([one[0], other[0]]).plural} have the same names",
        hint="run both on the same data, and compare those runs",
        excerpt=excerpt,
    )


# Differences are processed in stacks of at most 32 MB.
STACK_CELLS = 4_000_000
DIFFERENCE_REACH = 1.0
"""The assumed maximum distance of differences from their mean, in multiples of the largest observed deviation.

Most differences are 0 and the others are few, so the sample often lacks the largest. Where 5 % of 100 hits
move one way, Student's t covers 88 %, and 1 covers 96 %. Where 5 % move one way and 1 % the other, BCa covers
89 %, and 1 covers 97 %. With 2, intervals of differences in all units cover 98 to 99 %.
"""


@dataclass(frozen=True, slots=True)
class MetricColumn:
    """A metric with per-unit values of all systems.

    ``bounds`` are those of a difference of two values. ``untestable`` is why the requested test cannot be run on the
    metric; empty if it can.
    """

    metric: str
    better: Direction
    values: Floats
    weights: Floats | None
    bounds: Bounds
    untestable: str = ""


def _column(pairing: AlignedResults, metric: str, bounds: Bounds, test: str) -> MetricColumn:
    values, weights = pairing.per_unit(metric), pairing.weights(metric)
    untestable = why_untestable(test, values, clusters=pairing.clusters, weights=weights)
    better = pairing.results[0].estimates[metric].better
    return MetricColumn(metric, better, values, weights, bounds, untestable)


def unit_contrasts(
    columns: Sequence[MetricColumn], systems: Sequence[str], clusters: Ids | None, config: StatsConfig
) -> list[Contrast]:
    """Every pair of systems on every metric, as few passes over the random signs as memory allows.

    p and interval of a contrast do not depend on which others are made with it.
    """
    pairs = list(combinations(range(len(systems)), 2))
    contrasts: list[Contrast] = []
    for stack in _stacks(columns, len(pairs)):
        differences = np.column_stack([column.values[:, i] - column.values[:, j] for column in stack for i, j in pairs])
        labels = [(column, systems[i], systems[j]) for column in stack for i, j in pairs]
        contrasts += _stacked_contrasts(differences, labels, stack[0].weights, clusters, config)
    return contrasts


def _stacks(columns: Sequence[MetricColumn], pairs: int) -> list[list[MetricColumn]]:
    """Metrics that one call can test: unweighted, with the same test, and within the memory bound."""
    stacks: list[list[MetricColumn]] = []
    for column in columns:
        first = stacks[-1][0] if stacks else None
        is_similar = first is not None and first.weights is None and first.untestable == column.untestable
        if is_similar and column.weights is None and (len(stacks[-1]) + 1) * pairs * len(column.values) <= STACK_CELLS:
            stacks[-1].append(column)
        else:
            stacks.append([column])
    return stacks


def _stacked_contrasts(
    differences: Floats,
    labels: Sequence[tuple[MetricColumn, str, str]],
    weights: Floats | None,
    clusters: Ids | None,
    config: StatsConfig,
) -> list[Contrast]:
    """Contrasts of columns that share their weights and have the same test."""
    reason = labels[0][0].untestable
    p = np.full(len(labels), nan)
    if not reason:
        p = run_test(
            config.test,
            differences,
            weights=weights,
            clusters=clusters,
            n_permutations=config.n_permutations,
            rng=config.rng(0),
        )
    units = ResamplingUnits.of(differences, weights, clusters)
    means, errors, blocks = units.means, units.standard_errors, units.counts
    intervals = difference_intervals(
        differences,
        weights=weights,
        clusters=clusters,
        limits=[column.bounds for column, _, _ in labels],
        reach=DIFFERENCE_REACH,
        config=config,
        rng=config.rng(1),
    )
    if get_test(config.test) is TESTS["t"] and not reason:
        # The interval of the test excludes 0 if and only if p is significant.
        intervals = [
            t_interval(float(means[at]), float(errors[at]), int(blocks[at]) - 1, config.confidence_level)
            if interval.known
            else interval
            for at, interval in enumerate(intervals)
        ]
    contrasts = []
    for at, (column, a, b) in enumerate(labels):
        n, difference = int(units.n_units[at]), float(means[at])
        wins, losses = _win_loss_counts(differences[:, at], column.better)
        why = reason or ("" if n else "no value is defined for both")
        contrasts.append(
            Contrast(
                metric=column.metric,
                a=a,
                b=b,
                better=column.better,
                difference=difference,
                interval=intervals[at],
                p=float(p[at]),
                adjusted=nan,
                n=n,
                undefined=len(differences) - n,
                reason=why or ("" if p[at] == p[at] else "the differences have no spread"),
                wins=wins,
                ties=n - wins - losses,
                losses=losses,
                sd=unit_sd(difference, float(errors[at]), n),
                units_per_block=n / int(blocks[at]) if blocks[at] else 1.0,
                test="" if reason else config.test,
            )
        )
    return contrasts


def _win_loss_counts(differences: Floats, better: Direction) -> tuple[int, int]:
    """On how many units the first system is better, and on how many worse."""
    gains = differences if better == Direction.UP else -differences
    slack = 1e-12 * np.nanmax(np.abs(gains), initial=0.0)
    return int((gains > slack).sum()), int((gains < -slack).sum())


def unit_sd(difference: float, error: float, units: float) -> float:
    """The standard deviation of one unit's difference, from the standard error of their mean."""
    # A standard error from equal differences is rounding error, not a spread.
    return error * sqrt(units) if not error <= 1e-12 * abs(difference) else 0.0


def compare_results(
    results: Sequence[Result],
    *,
    metrics: Sequence[str] | None = None,
    primary: str | None = None,
    config: StatsConfig = DEFAULT_STATS,
    metric_objects: Mapping[str, Metric[Any]] | None = None,
) -> Comparison:
    """Compare two or more systems, pair by pair, on the same units.

    Metrics with per-unit values get a paired test and a paired bootstrap; p is corrected over the pairs of
    each metric by itself. The order, the tie bands and the ranks are made on ``primary``, by default the
    first metric with per-unit values. All systems are scored and tested on the units on which each of
    them has a value of the metric. Corpus-level metrics are resampled from the evidence where the results
    carry it and ``metric_objects`` holds the metric, and otherwise only listed.
    """
    known = metric_objects or {}
    pairing = align_results(results)
    check_same_protocol(pairing.results)
    names = _chosen(pairing, metrics, primary)
    pairing, missing = on_complete_units(pairing, names, known, config)
    results = pairing.results
    bounds = {name: _difference_bounds(results, name, known.get(name)) for name in names}
    columns = {name: _column(pairing, name, bounds[name], config.test) for name in names if pairing.has_parts(name)}
    primary = primary or next(iter(columns), names[0])
    column = columns.get(primary)
    if column is not None and column.untestable:  # other metrics are left without a test
        raise UndefinedError(f"{column.untestable}, so it cannot test {primary}", hint="use the test 'randomisation'")
    contrasts = _contrasts(pairing, columns, bounds, known, config)
    adjusted = {
        name: _adjusted([contrast for contrast in contrasts if contrast.metric == name], bounds[name], config)
        for name in names
    }
    return Comparison(
        systems=pairing.systems,
        metrics=tuple(names),
        primary=primary,
        better=results[0].estimates[primary].better,
        n=len(pairing),
        clusters=None if pairing.clusters is None else _n_clusters(pairing.clusters, column),
        estimates={result.system: {name: result.estimates[name] for name in names} for result in results},
        contrasts=tuple(contrast for name in names for contrast in adjusted[name]),
        scores=dict(zip(pairing.systems, _scores(results, primary, column), strict=True)),
        families={name: _family(name, adjusted[name], config.correction, results) for name in names},
        config=config,
        missing=missing,
        words=Vocabulary.nouns(results),
    )


def _contrasts(
    pairing: AlignedResults,
    columns: Mapping[str, MetricColumn],
    bounds: Mapping[str, Bounds],
    known: Mapping[str, Metric[Any]],
    config: StatsConfig,
) -> list[Contrast]:
    """Every pair on every metric."""
    contrasts = unit_contrasts(list(columns.values()), pairing.systems, pairing.clusters, config)
    for name in bounds:
        if name not in columns:
            from equipoise.stats.corpus_metrics import corpus_contrasts, resample_jointly

            joint = resample_jointly(known.get(name), pairing, config)
            contrasts += corpus_contrasts(pairing, name, joint, config.confidence_level, bounds[name])
    if any(result.errors for result in pairing.results):
        from equipoise.stats.tuning_uncertainty import with_tuning_uncertainty

        contrasts = with_tuning_uncertainty(contrasts, pairing.results)
    return contrasts


def _chosen(pairing: AlignedResults, metrics: Sequence[str] | None, primary: str | None) -> list[str]:
    """The metrics to compare: the requested ones, else all that every system has; the primary among them."""
    shared = [
        name for name in pairing.results[0].estimates if all(name in result.estimates for result in pairing.results)
    ]
    names = list(dict.fromkeys(shared if metrics is None else metrics))
    if primary is not None and primary not in names:
        names.insert(0, primary)
    for name in names:
        if name not in shared:
            raise UnknownNameError.of(
                "metric of all these results", name, shared, more=f"they share {', '.join(shared) or 'none'}"
            )
    if not names:
        raise ParameterError("the results share no metric", hint="score every system with the same metrics")
    return names


def _difference_bounds(results: Sequence[Result], name: str, metric: Metric[Any] | None) -> Bounds:
    """The bounds of a difference of two values of the metric, as far as metric, evidence or values tell them."""
    if metric is None:
        ranges = [value_bounds(result.per_unit[name]) for result in results if name in result.per_unit]
    else:
        ranges = [metric.bounds_on(result.evidence) for result in results if result.evidence is not None]
    if len(ranges) < len(results):
        ranges = [UNBOUNDED if metric is None else metric.bounds]
    width = max(high for _, high in ranges) - min(low for low, _ in ranges)
    return (-width, width) if isfinite(width) else UNBOUNDED


def _adjusted(contrasts: Sequence[Contrast], bounds: Bounds, config: StatsConfig) -> list[Contrast]:
    """The contrasts of one metric within the bounds of differences, with adjusted p values and planning values."""
    adjusted = adjust([contrast.p for contrast in contrasts], config.correction)
    planned = with_power(contrasts, config.correction, config.alpha, largest=bounds[1])
    return [
        replace(contrast, adjusted=float(p), interval=contrast.interval.clipped(bounds))
        for contrast, p in zip(planned, adjusted, strict=True)
    ]


def _family(metric: str, contrasts: Sequence[Contrast], correction: str, results: Sequence[Result]) -> str:
    """The caption of a metric's p values: their family, correction and test."""
    tested = sum(not isnan(contrast.p) for contrast in contrasts)
    if tested == 0:
        reasons = "; ".join(dict.fromkeys(contrast.reason for contrast in contrasts))
        return f"no pair tested on {metric} ({reasons})"
    tests = {contrast.test for contrast in contrasts if contrast.test} - set(TESTS)
    suffix = "".join(f", p from the {test}" for test in sorted(tests))
    family = f"{correction_text(correction, tested)} on {metric}"
    if tested == 1:
        family = f"one pair on {metric}, so no correction"
    if sum(metric in result.errors for result in results) > 1:
        which = "the" if tested == 1 else "each"
        suffix += f"; {which} p value is the larger of the randomisation and the bootstrap p value"
    return f"{family}{suffix}"


def _scores(results: Sequence[Result], primary: str, column: MetricColumn | None) -> list[float]:
    """The score of each system; means of the aligned values, so that they do not depend on the order of the units."""
    estimates = [result.estimates[primary].value for result in results]
    if column is None:
        return estimates
    complete = complete_units(column.values)
    if not complete.any():
        return [nan] * len(estimates)
    share = None if column.weights is None else column.weights[complete]
    means: list[float] = np.average(column.values[complete], axis=0, weights=share).tolist()
    return means


def _n_clusters(labels: Ids, column: MetricColumn | None) -> int:
    """The number of clusters with a unit on which all systems are compared; the others are not resampled."""
    if column is not None:
        labels = labels[complete_units(column.values)]
    return len(set(labels.tolist()))
