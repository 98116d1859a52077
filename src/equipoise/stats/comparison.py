"""A comparison: paired differences of two or more systems, and which are significant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from math import isnan, nan
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.config import DEFAULT_STATS, StatsConfig
from equipoise.errors import ParameterError, UnknownNameError
from equipoise.io.tables import rows_to_frame
from equipoise.stats.formatting import p_in_sentence
from equipoise.stats.multiple_comparisons import adjust, correction_text, p_heading, rank_intervals, tie_groups
from equipoise.stats.paired_tests import RANDOMISATION, TESTS, get_test
from equipoise.stats.power import PowerEstimate, smallest_p, units_to_show_best
from equipoise.stats.result import flat_scores
from equipoise.stats.verdict import Vocabulary, verdict_text
from equipoise.types import Direction, Finding, json_value, nan_equal

if TYPE_CHECKING:
    from pathlib import Path

    from equipoise.report.charts.chart import Chart
    from equipoise.stats.complete_units import MissingScores
    from equipoise.stats.intervals import Interval
    from equipoise.stats.result import Estimate

NO_POWER = PowerEstimate(nan, "power is computed only for metrics that are means over queries or other items")


@nan_equal
@dataclass(frozen=True, slots=True)
class Contrast:
    """System ``a`` minus system ``b`` on the units where both are defined.

    ``wins`` counts the units on which a is better, whichever direction that is. ``adjusted`` is p corrected
    for the family; both are NaN if there is no test, for the reason in ``reason``. ``test`` names the
    paired test, or the resampling for a metric that is not a mean over units. ``sd`` is the standard
    error of the difference times sqrt(n), and ``units_per_block`` the mean size of a cluster. ``detectable``
    and ``needed`` are for the test of this pair within its family (``stats.power``), at 80 % power;
    ``needed`` assumes that the observed difference is the true one, which is often smaller.
    """

    metric: str
    a: str
    b: str
    better: Direction
    difference: float
    interval: Interval
    p: float
    adjusted: float
    n: int
    undefined: int
    wins: int | None = None
    ties: int | None = None
    losses: int | None = None
    sd: float | None = None
    units_per_block: float = 1.0
    detectable: PowerEstimate = NO_POWER
    needed: PowerEstimate = NO_POWER
    reason: str = ""
    test: str = ""

    def reversed(self) -> Contrast:
        """The contrast with ``a`` and ``b`` exchanged."""
        return replace(
            self,
            a=self.b,
            b=self.a,
            difference=0.0 - self.difference,  # not -0.0 for equal systems
            interval=self.interval.mirrored(),
            wins=self.losses,
            losses=self.wins,
        )

    @property
    def counts(self) -> str:
        """Wins, ties and losses as text."""
        return "n/a" if self.wins is None else f"{self.wins}/{self.ties}/{self.losses}"

    def winner(self, alpha: float = DEFAULT_STATS.alpha) -> str | None:
        """The better system if the difference is significant, else None."""
        if not self.adjusted < alpha or self.difference == 0:
            return None
        return self.a if (self.difference > 0) == (self.better == Direction.UP) else self.b


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
        Number of clusters with a value of the primary metric, if units depend on each other.
    estimates
        Estimates by system and metric, over the units on which all systems have a value of the metric.
    contrasts
        Differences of every pair on every metric, with interval, p value and adjusted p value.
    scores
        Scores on the primary metric, in the same order of units for all systems.
    families
        By metric, which tests the p values were adjusted for.
    config
        The options of the statistics.
    missing
        By metric, the systems that lack values on some units that others have, and on how many.
    findings
        Results of the checks.
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
    families: Mapping[str, str]
    config: StatsConfig
    missing: MissingScores = field(default_factory=dict, repr=False)
    findings: tuple[Finding, ...] = ()
    words: Vocabulary = field(default=Vocabulary(), repr=False)

    @property
    def n_scored(self) -> int:
        """The number of units that ``scores`` are over: those with a value of the primary metric."""
        counts = [contrast.n for contrast in self.contrasts if contrast.metric == self.primary and contrast.n]
        return min(counts, default=self.n)

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
        return self._family(self.primary)

    def _family(self, metric: str) -> str:
        """What the p values on a metric were corrected for, without the test if it is that of the primary metric."""
        return self.families[metric].replace(f", p from the {self.test}", "", 1)

    @property
    def adjustment(self) -> str:
        """What the tests and the planning values on the primary metric are adjusted for, in a few words."""
        n_tests = self._n_tests
        return correction_text(self.correction, n_tests) if n_tests > 1 else "one test"

    @property
    def is_adjusted(self) -> bool:
        """Whether the p values on the primary metric are adjusted: not those of a single pair."""
        return self.p_heading != "p"

    @property
    def p_heading(self) -> str:
        """The heading of a column of adjusted p values, which says whether there was something to adjust for."""
        return p_heading(self.correction, self._n_tests)

    def adjusted_p(self, contrast: Contrast) -> str:
        """The p value of a pair in a sentence; it is called adjusted only if there was something to adjust for."""
        p = p_in_sentence(contrast.adjusted)
        return f"adjusted {p}" if self.is_adjusted else p

    @property
    def _n_tests(self) -> int:
        """The number of pairs that were tested on the primary metric."""
        return sum(contrast.metric == self.primary and not isnan(contrast.p) for contrast in self.contrasts)

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
    def scored(self) -> tuple[str, ...]:
        """The systems with a score on the primary metric, best first."""
        return tuple(name for name in self.order if not isnan(self.scores[name]))

    @cached_property
    def leader(self) -> str | None:
        """The system with the best score; None if no system has one."""
        return next(iter(self.scored), None)

    @cached_property
    def ranks(self) -> Mapping[str, tuple[int, int]]:
        """The interval of the rank of each system on the primary metric, from the same tests as the tie bands."""
        return self.ranks_on(self.primary)

    def ranks_on(self, metric: str) -> Mapping[str, tuple[int, int]]:
        """The rank intervals on a metric, as ``ranks`` has them for the primary one."""
        at = {name: position for position, name in enumerate(self.systems)}
        signs = np.zeros((len(at), len(at)), dtype=np.int64)
        for contrast in self.contrasts:
            if contrast.metric == metric and (winner := contrast.winner(self.alpha)) is not None:
                loser = contrast.b if winner == contrast.a else contrast.a
                signs[at[loser], at[winner]], signs[at[winner], at[loser]] = 1, -1
        intervals: list[list[int]] = rank_intervals(signs).tolist()
        return {name: (low, high) for name, (low, high) in zip(self.systems, intervals, strict=True)}

    @cached_property
    def tied_with_leader(self) -> tuple[str, ...]:
        """The systems whose difference from the leader was tested and is not significant, best first."""
        return tuple(
            name
            for name in self.scored[1:]
            if name not in self.untested and self.contrast(self.scored[0], name).winner(self.alpha) is None
        )

    @cached_property
    def untested(self) -> Mapping[str, str]:
        """Why the difference of a system from the leader was not tested, by system, best first."""
        contrasts = {name: self.contrast(self.scored[0], name) for name in self.scored[1:]}
        return {name: contrast.reason for name, contrast in contrasts.items() if isnan(contrast.p)}

    def untested_reason(self, metric: str) -> str:
        """Why no pair was tested on a metric; empty if a pair was."""
        contrasts = [contrast for contrast in self.contrasts if contrast.metric == metric]
        reasons = dict.fromkeys(contrast.reason for contrast in contrasts)
        return "; ".join(reasons) if all(isnan(contrast.p) for contrast in contrasts) else ""

    @property
    def contenders(self) -> tuple[str, ...]:
        """The leader and the systems that are not significantly worse."""
        return () if self.leader is None else (self.leader, *self.tied_with_leader)

    @cached_property
    def could_be_best(self) -> tuple[str, ...]:
        """The leader, and the tied systems for which the interval of the difference from it includes 0, best first.

        That interval is not adjusted for the number of pairs, so that a system does not become a candidate only because
        others were added.
        """
        if self.leader is None:
            return ()
        intervals = [(name, self.contrast(self.leader, name).interval) for name in self.tied_with_leader]
        return (self.leader, *(name for name, interval in intervals if interval.covers(0.0) or not interval.known))

    @cached_property
    def bands(self) -> Mapping[str, tuple[str, ...]]:
        """The letters of each system on the primary metric; those that share one are not significantly different."""
        return self.bands_on(self.primary)

    def bands_on(self, metric: str) -> Mapping[str, tuple[str, ...]]:
        """The letters of each system on a metric, as ``bands`` has them for the primary one; none without a test."""
        if metric not in self.metrics:
            raise UnknownNameError.of("metric", metric, self.metrics)
        scores = [
            self.scores[name] if metric == self.primary else self.estimates[name][metric].value for name in self.systems
        ]
        at = {name: position for position, name in enumerate(self.systems)}
        p = np.full((len(at), len(at)), nan)
        for contrast in self.contrasts:
            if contrast.metric == metric and not isnan(contrast.p):
                is_significant = contrast.winner(self.alpha) is not None
                p[at[contrast.a], at[contrast.b]] = contrast.adjusted if is_significant else 1.0
        better = self.estimates[self.systems[0]][metric].better
        letters = tie_groups(scores, p, better=better, alpha=self.alpha)
        return dict(zip(self.systems, letters, strict=True))

    @cached_property
    def needed_for_best(self) -> PowerEstimate:
        """The units that would show the leader to be best, at 80 % power, if the observed differences are true."""
        pairs = [contrast for contrast in self.contrasts if contrast.metric == self.primary]
        return units_to_show_best(pairs, self.leader, self.correction, self.alpha) if self.leader else NO_POWER

    def is_undecidable(self, contrast: Contrast) -> bool:
        """Whether a pair cannot be significant on so few units, whatever their scores."""
        return self.smallest_adjusted(contrast) >= self.alpha

    def smallest_adjusted(self, contrast: Contrast) -> float:
        """The smallest adjusted p of a pair on the primary metric: that of the smallest p values of all pairs."""
        return self._smallest_adjusted[frozenset((contrast.a, contrast.b))]

    @cached_property
    def _smallest_adjusted(self) -> Mapping[frozenset[str], float]:
        pairs = [contrast for contrast in self.contrasts if contrast.metric == self.primary]
        smallest = [nan if isnan(contrast.p) else smallest_p(contrast) for contrast in pairs]
        adjusted = adjust(smallest, self.correction).tolist()
        return {frozenset((contrast.a, contrast.b)): p for contrast, p in zip(pairs, adjusted, strict=True)}

    @cached_property
    def undecided(self) -> tuple[Contrast, ...]:
        """The tested pairs that are not significantly different on the primary metric, best systems first."""
        pairs = (self.contrast(a, b) for a, b in combinations(self.scored, 2))
        return tuple(pair for pair in pairs if not isnan(pair.p) and pair.winner(self.alpha) is None)

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
            phrase = self._family(metric).replace(f" on {metric}", " on each metric", 1)
            metrics_by_phrase.setdefault(phrase, []).append(metric)
        if len(metrics_by_phrase) == 1 and len(metrics) > 1:
            return next(iter(metrics_by_phrase))
        return "; ".join(
            self._family(names[0])
            if len(names) == 1
            else phrase.replace(" on each metric", f" on each of {', '.join(names)}", 1)
            for phrase, names in metrics_by_phrase.items()
        )

    def verdict(self, noun: str = "", words: Vocabulary | None = None) -> str:
        """Which system is best or which are tied, and how many units would decide it, in plain sentences.

        If all systems are at chance or at the ceiling, that is stated first, and nothing else unless some of them are
        significantly different. Unequal tuning comes last. ``noun`` is what a unit is called; ``words`` has all
        names and the unit of the scores.
        """
        return verdict_text(self, words or (Vocabulary(noun) if noun else self.words))

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
            ends = ("low", "high")
            rows = [
                {name: json_value(getattr(pair, name)) for name in names}
                | {end: json_value(getattr(pair.interval, end)) for end in ends}
                for pair in self.contrasts
            ]
        else:
            letters = {metric: self.bands_on(metric) for metric in self.metrics}
            rows = [
                {"system": name, **self.estimates[name][metric].row(), "tie_group": "".join(letters[metric][name])}
                for name in self.order
                for metric in self.metrics
            ]
        return rows_to_frame(rows, library)

    def report(self, path: str | Path) -> Path:
        """Write one HTML page with the decision, all tables and the chart of the paired differences.

        Examples
        --------
        >>> comparison.report("report.html")  # doctest: +SKIP
        """
        from equipoise.report.publish import write_comparison

        return write_comparison(self, path)

    def plot(self, path: str | Path | None = None) -> Chart:
        """The chart of the paired differences, which Jupyter shows; with ``path`` it is written as SVG, too.

        Examples
        --------
        >>> comparison.plot("differences.svg")  # doctest: +SKIP
        """
        from equipoise.report.publish import difference_plot

        return difference_plot(self, path)

    def to_markdown(self) -> str:
        """A Markdown table of systems and metrics, with the verdict and a caption."""
        from equipoise.report.export.paper_table import as_markdown

        return as_markdown([], self)

    def to_latex(self) -> str:
        """A LaTeX table (booktabs) of systems and metrics, with a caption."""
        from equipoise.report.export.paper_table import as_latex

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
        plain: dict[str, Any] = json_value(
            {
                "systems": self.systems,
                "order": self.order,
                "metrics": self.metrics,
                "primary": self.primary,
                "better": self.better,
                "n": self.n,
                "n_scored": self.n_scored,
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
                "missing": self.missing,
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
        return f"Comparison of {len(self.systems)} systems on {self.words.units(self.n)} by {self.primary}: {bands}"

    def _repr_html_(self) -> str:
        """A table of the systems for notebooks, and the findings below it."""
        from equipoise.report.tables import comparison_html

        return comparison_html(self)
