"""A comparison: paired differences of two or more systems, and which are significant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from enum import StrEnum
from functools import cached_property
from math import isfinite, isnan
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.config import DEFAULT_STATS, StatsConfig
from equipoise.errors import ParameterError, UndefinedError, UnknownNameError
from equipoise.io.tables import rows_to_frame
from equipoise.stats.alignment import AlignedResults, align_results, check_same_protocol
from equipoise.stats.contrasts import (
    NO_POWER,
    Contrast,
    MetricColumn,
    difference_bounds,
    unit_contrasts,
    why_not_testable,
)
from equipoise.stats.corpus_intervals import DEFINED_SHARE
from equipoise.stats.corrections import CORRECTIONS, adjust
from equipoise.stats.paired_tests import RANDOMISATION, TESTS, SumMetric, SwapTest, get_test
from equipoise.stats.power import adjustment, units_to_show_best, with_power
from equipoise.stats.resampled_contrasts import (
    LARGER_P,
    JointResamples,
    corpus_contrasts,
    get_bootstrap_errors,
    resample_jointly,
    resampled_scores,
    with_tuning_uncertainty,
)
from equipoise.stats.resampling import UNBOUNDED, id_order
from equipoise.stats.result import flat_scores
from equipoise.stats.tie_groups import TieGroups, rank_intervals, rank_intervals_from_resamples, tie_groups
from equipoise.stats.verdict import Vocabulary, verdict_text, why_uninformative
from equipoise.types import Direction, Finding, Floats, Ids, Ints

if TYPE_CHECKING:
    from equipoise.metrics.base import Metric
    from equipoise.stats.intervals import Bounds
    from equipoise.stats.power import PowerEstimate
    from equipoise.stats.result import Estimate, Result

UNEQUAL_TUNING = "EQ203"
"""The code of the finding that systems were tuned with unequal budgets, which every verdict mentions."""

NOT_ALIKE = f"They were not tuned on equal terms ({UNEQUAL_TUNING}), so a difference may be due to the tuning."


@dataclass(frozen=True)
class Comparison:
    """Systems on the same units: estimates, differences of every pair, and the order that they allow.

    Attributes
    ----------
    systems
        Names of the systems.
    metrics
        Names of the metrics.
    primary
        The metric that decides the order.
    better
        Whether higher or lower values of the primary metric are better.
    n
        Number of units.
    clusters
        Number of clusters, if units depend on each other.
    estimates
        Estimates by system and metric.
    contrasts
        Differences of every pair on every metric, with interval, p value and adjusted p value.
    scores
        Scores on the primary metric, over the units that are defined for every system.
    leader
        The system with the best score.
    bands
        The letters of each system; systems that share a letter are not significantly different.
    ranks
        The interval of the rank of each system.
    families
        By metric, which tests the p values were adjusted for.
    config
        The options of the statistics.
    findings
        Results of the checks.
    needed_for_best
        The number of units that would show the leader to be best, at 80 % power, if the observed differences are true.
    words
        What units and clusters are called, such as ``query`` and ``user``.
    """

    systems: tuple[str, ...]
    metrics: tuple[str, ...]
    primary: str
    better: Direction
    n: int
    clusters: int | None
    estimates: Mapping[str, Mapping[str, Estimate]] = field(repr=False)
    contrasts: tuple[Contrast, ...] = field(repr=False)
    scores: Mapping[str, float]
    leader: str | None
    bands: Mapping[str, tuple[str, ...]]
    ranks: Mapping[str, tuple[int, int]]
    families: Mapping[str, str]
    config: StatsConfig
    findings: tuple[Finding, ...] = ()
    needed_for_best: PowerEstimate = NO_POWER
    words: Vocabulary = field(default=Vocabulary(), repr=False)

    @property
    def alpha(self) -> float:
        """The significance level: 1 - ``confidence_level``."""
        return self.config.alpha

    @property
    def correction(self) -> str:
        """The correction for multiple comparisons."""
        return self.config.correction

    @property
    def family(self) -> str:
        """What the p values on the primary metric were corrected for."""
        return self.families[self.primary]

    @property
    def adjustment(self) -> str:
        """What the tests and the planning values on the primary metric are adjusted for, in a few words."""
        pairs = [contrast for contrast in self.contrasts if contrast.metric == self.primary]
        return adjustment(pairs, self.correction)

    @property
    def test(self) -> str:
        """The name of the test behind the p values on the primary metric."""
        return self.test_on(self.primary)

    @property
    def n_permutations(self) -> int | None:
        """The number of permutations behind the p values on the primary metric; None without permutations."""
        title = get_test(RANDOMISATION).title
        return self.config.n_permutations if self.test_on(self.primary) == title else None

    def test_on(self, metric: str) -> str:
        """The name of the test on a metric: the requested test, unless it was not possible."""
        tests = {contrast.test for contrast in self.contrasts if contrast.metric == metric and contrast.test}
        name = tests.pop() if len(tests) == 1 else self.config.test
        return get_test(name).title if name in TESTS else name

    @cached_property
    def order(self) -> tuple[str, ...]:
        """The systems from best to worst on the primary metric; those without a score last."""
        sign = -1 if self.better == Direction.UP else 1
        return tuple(sorted(self.systems, key=lambda name: (isnan(self.scores[name]), sign * self.scores[name])))

    @cached_property
    def tied_with_leader(self) -> tuple[str, ...]:
        """The systems that are not significantly different from the leader, best first."""
        if self.leader is None:
            return ()
        letters = set(self.bands[self.leader])
        return tuple(name for name in self.order if name != self.leader and letters & set(self.bands[name]))

    def bands_on(self, metric: str) -> Mapping[str, tuple[str, ...]]:
        """The letters of each system on a metric, as ``bands`` has them for the primary one."""
        if metric == self.primary:
            return self.bands
        if metric not in self.metrics:
            raise UnknownNameError.of("metric", metric, self.metrics)
        estimates = [self.estimates[name][metric] for name in self.systems]
        scores = np.array([estimate.value for estimate in estimates], dtype=np.float64)
        pairs = [contrast for contrast in self.contrasts if contrast.metric == metric]
        bands = _bands(self.systems, scores, pairs, estimates[0].better, self.alpha)
        return dict(zip(self.systems, bands.letters, strict=True))

    def contrast(self, a: str, b: str, metric: str | None = None) -> Contrast:
        """System ``a`` minus system ``b`` on a metric, by default the primary one."""
        metric = metric or self.primary
        for kind, name, names in (
            ("system", a, self.systems),
            ("system", b, self.systems),
            ("metric", metric, self.metrics),
        ):
            if name not in names:
                raise UnknownNameError.of(kind, name, names)
        for contrast in self.contrasts:
            if contrast.metric == metric and {contrast.a, contrast.b} == {a, b}:
                return contrast if contrast.a == a else contrast.reversed()
        raise ParameterError(f"{a} is not compared with itself", hint="name two systems")

    def families_of(self, metrics: Sequence[str]) -> str:
        """What the p values on these metrics were corrected for; metrics with the same family share a phrase."""
        metrics_by_phrase: dict[str, list[str]] = {}
        for metric in metrics:
            phrase = self.families[metric].replace(f" on {metric}", " on each metric", 1)
            metrics_by_phrase.setdefault(phrase, []).append(metric)
        if len(metrics_by_phrase) == 1 and len(metrics) > 1:
            return next(iter(metrics_by_phrase))
        return "; ".join(
            self.families[names[0]]
            if len(names) == 1
            else phrase.replace(" on each metric", f" on each of {', '.join(names)}", 1)
            for phrase, names in metrics_by_phrase.items()
        )

    def verdict(self, noun: str = "", words: Vocabulary | None = None) -> str:
        """Which system is best or which are tied, and how many units would decide it, in plain sentences.

        If all systems are at chance or at the ceiling, that comes first, and alone unless some of them are
        significantly different. Unequal tuning comes last. ``noun`` is what a unit is called; ``words`` has all
        names and the unit of the scores.
        """
        words = words or (Vocabulary(noun) if noun else self.words)
        return self.with_caveats(verdict_text(self, words), words)

    def with_caveats(self, text: str, words: Vocabulary) -> str:
        """A text on the result; before it, why the setup cannot compare the systems; after it, unequal tuning.

        The text is left out if the setup cannot compare the systems and no pair is significantly different.
        """
        sentences = [why_uninformative(self, words)]
        if not sentences[0] or self.any_significant:
            sentences.append(text)
        if any(finding.code == UNEQUAL_TUNING for finding in self.findings):
            sentences.append(NOT_ALIKE)
        return " ".join(filter(None, sentences))

    @property
    def any_significant(self) -> bool:
        """Whether some pair is significantly different on the primary metric."""
        return any(
            contrast.metric == self.primary and contrast.winner(self.alpha) is not None for contrast in self.contrasts
        )

    def to_frame(self, library: str = "pandas", *, pairs: bool = False) -> Any:
        """A data frame with one row per system and metric, or one row per pair of systems and metric.

        Parameters
        ----------
        library
            ``pandas``, ``polars`` or ``pyarrow``.
        pairs
            Whether the rows are paired differences (``a`` minus ``b``) with interval, p and adjusted p.
        """
        if pairs:
            names = ("metric", "a", "b", "difference", "p", "adjusted", "n", "wins", "ties", "losses")
            contrasts = ((pair, {name: _plain(getattr(pair, name)) for name in names}) for pair in self.contrasts)
            rows = [
                {**row, "low": _plain(pair.interval.low), "high": _plain(pair.interval.high)} for pair, row in contrasts
            ]
        else:
            letters = {metric: self.bands_on(metric) for metric in self.metrics}
            rows = [
                {"system": name, **self.estimates[name][metric].row(), "tie_group": "".join(letters[metric][name])}
                for name in self.order
                for metric in self.metrics
            ]
        return rows_to_frame(rows, library)

    def to_markdown(self) -> str:
        """A Markdown table of systems and metrics, with the verdict and a caption."""
        from equipoise.report.export.paper_table import as_markdown

        return as_markdown([], self)

    def to_latex(self) -> str:
        """A LaTeX table (booktabs) of systems and metrics, with a caption."""
        from equipoise.report.export.latex import as_latex

        return as_latex([], self)

    def to_dict(self, *, flat: bool = False) -> dict[str, Any]:
        """Everything as plain values for JSON; an unknown number is None, with its reason.

        With ``flat``, one level of numbers for experiment trackers: ``SYSTEM/METRIC``, with ``_low`` and ``_high``.
        """
        if flat:
            parts = [
                flat_scores(self.estimates[name][metric], f"{name}/") for name in self.order for metric in self.metrics
            ]
            return {**{key: number for part in parts for key, number in part.items()}, "units": self.n}
        plain: dict[str, Any] = _plain(
            {
                "systems": self.systems,
                "order": self.order,
                "metrics": self.metrics,
                "primary": self.primary,
                "better": self.better,
                "n": self.n,
                "clusters": self.clusters,
                "leader": self.leader,
                "tied_with_leader": self.tied_with_leader,
                "verdict": self.verdict(),
                "scores": self.scores,
                "bands": self.bands,
                "ranks": self.ranks,
                "estimates": self.estimates,
                "contrasts": self.contrasts,
                "families": self.families,
                "needed_for_best": self.needed_for_best,
                "test": self.config.test,
                "correction": self.correction,
                "confidence_level": self.config.confidence_level,
                "n_permutations": self.config.n_permutations,
                "n_resamples": self.config.n_resamples,
                "seed": self.config.seed,
                "findings": self.findings,
            }
        )
        return plain

    def __repr__(self) -> str:
        bands = ", ".join(f"{name} ({''.join(self.bands[name]) or '-'})" for name in self.order)
        return f"Comparison of {len(self.systems)} systems on {self.n} units by {self.primary}: {bands}"

    def _repr_html_(self) -> str:
        """A table of the systems for notebooks, and the findings below it."""
        from equipoise.report.notebook import comparison_html

        return comparison_html(self)


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
    first metric with per-unit values. Corpus-level metrics are resampled from the evidence where the
    results carry it and ``metric_objects`` holds the metric, and otherwise only listed.
    """
    pairing = align_results(results)
    check_same_protocol(pairing.results)
    names = _chosen(pairing, metrics, primary)
    columns = _columns(pairing, names, metric_objects or {})
    primary = primary or next(iter(columns), names[0])
    contrasts, resampled = _contrasts(pairing, names, columns, primary, config, metric_objects or {})
    alpha = config.alpha
    adjusted = {
        name: _adjust_contrasts(
            [contrast for contrast in contrasts if contrast.metric == name], config.correction, alpha
        )
        for name in names
    }
    return _comparison(pairing, columns.get(primary), primary, adjusted, resampled, config, alpha)


def _contrasts(
    pairing: AlignedResults,
    names: Sequence[str],
    columns: Mapping[str, MetricColumn],
    primary: str,
    config: StatsConfig,
    metric_by_name: Mapping[str, Metric[Any]],
) -> tuple[list[Contrast], dict[str, JointResamples | None]]:
    """All pairs on all metrics, and the resampled scores of metrics that are not means."""
    if primary in columns:
        _check_testable(columns[primary], pairing.clusters, config.test)
    results = {result.system: result for result in pairing.results}
    contrasts = with_tuning_uncertainty(
        unit_contrasts(list(columns.values()), pairing.systems, pairing.clusters, config), results
    )
    resampled: dict[str, JointResamples | None] = {}
    for name in names:
        if name not in columns:
            resampled[name] = _joint(pairing, metric_by_name.get(name), config)
            corpus_metrics = corpus_contrasts(
                [result.estimates[name] for result in pairing.results],
                pairing.systems,
                resampled[name],
                confidence_level=config.confidence_level,
                bounds=difference_bounds(_bounds(pairing, name, metric_by_name)) or UNBOUNDED,
            )
            contrasts += with_tuning_uncertainty(corpus_metrics, results)
    return contrasts, resampled


def _comparison(
    pairing: AlignedResults,
    column: MetricColumn | None,
    primary: str,
    contrasts: Mapping[str, Sequence[Contrast]],
    resampled: Mapping[str, JointResamples | None],
    config: StatsConfig,
    alpha: float,
) -> Comparison:
    """The order, the bands and the ranks that the (adjusted) contrasts allow."""
    names, systems, results = tuple(contrasts), pairing.systems, pairing.results
    better = results[0].estimates[primary].better
    estimates = np.array([result.estimates[primary].value for result in results], dtype=np.float64)
    scores = estimates if column is None else _complete_means(column.values, column.weights, estimates)
    bands = _bands(systems, scores, contrasts[primary], better, alpha)
    tuned_scores = resampled_scores(results, primary, scores)
    ranks = _ranks(tuned_scores, column, resampled.get(primary), len(systems), better, pairing.clusters, config)
    best = bands.order[0]
    leader = None if np.isnan(scores[best]) else systems[best]
    return Comparison(
        systems=systems,
        metrics=names,
        primary=primary,
        better=better,
        n=len(pairing),
        clusters=None if pairing.clusters is None else len(set(pairing.clusters.tolist())),
        estimates={result.system: {name: result.estimates[name] for name in names} for result in results},
        contrasts=tuple(contrast for name in names for contrast in contrasts[name]),
        scores=dict(zip(systems, scores.tolist(), strict=True)),
        leader=leader,
        bands=dict(zip(systems, bands.letters, strict=True)),
        ranks={name: (int(low), int(high)) for name, (low, high) in zip(systems, ranks, strict=True)},
        families={name: _family(name, contrasts[name], config.correction, results) for name in names},
        config=config,
        needed_for_best=units_to_show_best(contrasts[primary], leader, config.correction, alpha)
        if leader
        else NO_POWER,
        words=Vocabulary.nouns(results),
    )


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


def _columns(
    pairing: AlignedResults, names: Sequence[str], metric_by_name: Mapping[str, Metric[Any]]
) -> dict[str, MetricColumn]:
    """The metrics of which every system has per-unit values."""
    return {
        name: MetricColumn(
            name,
            pairing.results[0].estimates[name].better,
            pairing.per_unit(name),
            pairing.weights(name),
            _bounds(pairing, name, metric_by_name),
        )
        for name in names
        if pairing.has_parts(name)
    }


def _bounds(pairing: AlignedResults, name: str, metric_by_name: Mapping[str, Metric[Any]]) -> Bounds:
    """The values of a metric that are possible on this evidence."""
    if name not in metric_by_name:
        return UNBOUNDED
    reaches = [
        metric_by_name[name].bounds_on(result.evidence) for result in pairing.results if result.evidence is not None
    ]
    if len(reaches) < len(pairing.results):
        return metric_by_name[name].bounds
    return min(low for low, _ in reaches), max(high for _, high in reaches)


def _check_testable(primary: MetricColumn, clusters: Ids | None, test: str) -> None:
    """A test that the primary metric cannot take is a mistake; on the others it only leaves a gap."""
    reason = why_not_testable(primary, clusters, test)
    if reason:
        raise UndefinedError(f"{reason}, so it cannot test {primary.metric}", hint="use the test 'randomisation'")


def _joint(pairing: AlignedResults, metric: Metric[Any] | None, config: StatsConfig) -> JointResamples | None:
    evidence = pairing.evidence()
    if metric is None or evidence is None:
        return None
    order = id_order(pairing.results[0].unit_ids)
    evidence = [part.take(order) for part in evidence]
    clusters = None if pairing.clusters is None else pairing.clusters[order]
    swaps = None
    if config.test == RANDOMISATION and isinstance(metric, SumMetric):
        addends = [metric.addends(part) for part in evidence]
        swaps = SwapTest.of(metric, addends, clusters, config.n_permutations, config.rng(4))
    return resample_jointly(
        metric,
        evidence,
        clusters=clusters,
        n_resamples=config.n_resamples,
        rng=config.rng(2),
        swaps=swaps,
    )


def _adjust_contrasts(contrasts: Sequence[Contrast], correction: str, alpha: float) -> list[Contrast]:
    adjusted = adjust([contrast.p for contrast in contrasts], correction)
    planned = with_power(contrasts, correction, alpha)
    return [replace(contrast, adjusted=float(p)) for contrast, p in zip(planned, adjusted, strict=True)]


def _family(metric: str, contrasts: Sequence[Contrast], correction: str, results: Sequence[Result]) -> str:
    """The caption of a metric's p values: their family, correction and test."""
    tested = sum(not isnan(contrast.p) for contrast in contrasts)
    if tested == 0:
        return f"no pair tested on {metric}"
    tests = {contrast.test for contrast in contrasts if contrast.test} - set(TESTS)
    suffix = "".join(f", p from the {test}" for test in sorted(tests))
    if sum(get_bootstrap_errors(result, metric) is not None for result in results) > 1:
        suffix += f", {LARGER_P}"
    if tested == 1:
        return f"one pair on {metric}{suffix}, nothing to correct for"
    title = CORRECTIONS[correction][1]
    return f"{title} over the {tested} pairs on {metric}{suffix}"


def _complete_means(parts: Floats, weights: Floats | None, estimates: Floats) -> Floats:
    """Each system's score over the units that are defined for all systems with defined units."""
    values = estimates.copy()
    defined = ~np.isnan(parts)
    scored = defined.any(axis=0)
    complete = defined[:, scored].all(axis=1)
    if complete.any() and scored.any():
        share = None if weights is None else weights[complete]
        values[scored] = np.average(parts[np.ix_(complete, scored)], axis=0, weights=share)
    values[~scored] = np.nan
    return values


def _bands(
    systems: Sequence[str], scores: Floats, contrasts: Sequence[Contrast], better: Direction, alpha: float
) -> TieGroups:
    at = {name: position for position, name in enumerate(systems)}
    p = np.full((len(systems), len(systems)), np.nan)
    for contrast in contrasts:
        p[at[contrast.a], at[contrast.b]] = p[at[contrast.b], at[contrast.a]] = contrast.adjusted
    return tie_groups(scores, p, better=better, alpha=alpha)


def _ranks(
    tuned_scores: Floats | None,
    column: MetricColumn | None,
    resampled: JointResamples | None,
    n_systems: int,
    better: Direction,
    clusters: Ids | None,
    config: StatsConfig,
) -> Ints:
    """Rank intervals from the resampled scores of tuned systems, from per-unit values, or from corpus resamples."""
    if tuned_scores is not None:
        return rank_intervals_from_resamples(tuned_scores, better=better, confidence_level=config.confidence_level)
    if column is not None:
        return rank_intervals(
            column.values,
            better=better,
            weights=column.weights,
            clusters=clusters,
            confidence_level=config.confidence_level,
            n_resamples=config.n_resamples,
            rng=config.rng(3),
        )
    if resampled is not None:
        resamples = resampled.centred
        complete = resamples[~np.isnan(resamples).any(axis=1)]
        if len(complete) >= DEFINED_SHARE * len(resamples):
            return rank_intervals_from_resamples(complete, better=better, confidence_level=config.confidence_level)
    return np.tile(np.array([1, n_systems]), (n_systems, 1))


def _plain(value: Any) -> Any:
    """A value converted to JSON types."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return value if isfinite(value) else None
    return str(value) if isinstance(value, StrEnum) else value
