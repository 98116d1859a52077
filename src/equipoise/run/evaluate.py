"""The two verbs of the program: evaluate one system, compare several."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from equipoise.checks.catalogue import examine
from equipoise.checks.subjects import LineUp
from equipoise.checks.tuning import TuningBudgets, Windows
from equipoise.evidence.base import Evidence
from equipoise.evidence.ranking import Ranking
from equipoise.metrics.catalogue import Catalogue
from equipoise.run.lineup import Options, line_up
from equipoise.run.scoring import Metrics, evaluate, tie_policy
from equipoise.stats.comparison import Comparison, compare_results
from equipoise.stats.result import Result
from equipoise.types import Finding, Ties

__all__ = ["compare", "evaluate"]


def compare(
    systems: Mapping[str, Evidence | Result] | Sequence[Result],
    metrics: Metrics | None = None,
    *,
    primary: str | None = None,
    test: str = "randomisation",
    correction: str = "holm",
    ties: Ties | str = Ties.EXPECTED,
    clusters: Any = None,
    level: float = 0.95,
    flips: int = 10_000,
    resamples: int = 2000,
    seed: int = 0,
    chance: bool = True,
    catalogue: Catalogue | None = None,
) -> Comparison:
    """Compare two or more systems, pair by pair, on the same units.

    ``systems`` maps names to evidence or to results, or is a sequence of results. The order and the tie
    bands are made on ``primary``, by default the first metric. Systems that were not measured on the
    same units are refused with the difference, and so are results that say of themselves that the data or
    the rule was another. Unequal tuning is a finding. Results are used as they are; one that lacks a metric
    or the clusters is scored again from its evidence.

    >>> a, b = (Ranking.from_ranks(ranks, candidates=9) for ranks in ([1] * 9, [1, 2, 3] * 3))
    >>> compare({"a": a, "b": b}, "MRR").leader
    'a'
    """
    options = Options(tie_policy(ties), clusters, level, resamples, seed, chance, catalogue)
    lined_up = line_up(systems, metrics, primary, options)
    comparison = compare_results(
        [_as_measured(result) for result in lined_up.results],
        metrics=lined_up.names,
        primary=lined_up.primary,
        test=test,
        correction=correction,
        level=level,
        flips=flips,
        resamples=resamples,
        seed=seed,
        metric_objects=lined_up.metrics,
    )
    of_systems = tuple(finding for result in lined_up.results for finding in result.findings)
    found = (*_of_terms(lined_up.results), *of_systems, *examine(comparison))
    return replace(comparison, findings=tuple(dict.fromkeys(found)))


def _of_terms(results: Sequence[Result]) -> Iterator[Finding]:
    """What is wrong with comparing these results, as far as they say how they were measured."""
    yield from examine(TuningBudgets.of_results(results))
    yield from examine(Windows.of_results(results))
    yield from examine(LineUp.of_results(results))


def _as_measured(result: Result) -> Result:
    """The result with its equal scores in the order they were measured in: resampling measures again."""
    evidence, ties = result.evidence, result.settings.get("ties")
    if isinstance(evidence, Ranking) and ties is not None:
        return replace(result, evidence=evidence.ordered(ties))
    return result
