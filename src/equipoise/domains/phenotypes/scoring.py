"""From the scores of a system to ranks of the expected terms, top terms, metrics, slices and details per case."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from equipoise.checks.base import ScoredResult, join_names, pluralize, run_checks
from equipoise.domains.phenotypes.config import PRIMARY, BenchmarkConfig, benchmark_metrics
from equipoise.domains.phenotypes.max_similarity import CutoffTies, with_max_similarity
from equipoise.errors import (
    EquipoiseError,
    MissingExtraError,
    NotFiniteError,
    ParameterError,
    PartialError,
    StoreError,
    UnknownNameError,
)
from equipoise.evidence.kernels.threshold_counts import count_above_and_tied
from equipoise.evidence.ranking import Ranking
from equipoise.evidence.segments import NOT_RETRIEVED
from equipoise.geometry.topk import top_columns
from equipoise.io.arrays import segment_indices, segment_offsets
from equipoise.runs.evaluate import evaluate
from equipoise.runs.manifest import STATUS_SETTINGS, Status
from equipoise.runs.unit_table import RetrievedItem, UnitContent
from equipoise.stats.result import DATA
from equipoise.stats.slices import Slice, slice_estimates
from equipoise.stats.verdict import UNIT_NOUN

if TYPE_CHECKING:
    from equipoise.domains.phenotypes.cases import ResolvedCases
    from equipoise.domains.phenotypes.similarity import TermSimilarity
    from equipoise.stats.result import Result
    from equipoise.types import Floats, Ints

MIN_DEPTH = 32
"""Minimum number of stored top terms per case; the largest cutoff if that is more."""

_FATAL_ERRORS = (MissingExtraError, ParameterError, StoreError, UnknownNameError)
"""Errors that would occur for every case, so they are raised at once."""


ScoreBlocks = Callable[[list[str]], Iterator[tuple[Mapping[str, NDArray[Any]], slice]]]
"""For texts, some at a time: the scores (texts, terms) of each system by name, and the slice of texts."""


class TermScorer(Protocol):
    """Anything that scores all terms of an ontology for texts."""

    def score_blocks(self, queries: Any) -> Iterator[tuple[slice, NDArray[Any]]]:
        """Slices of the queries with their scores (queries, terms); higher is better."""


@dataclass(frozen=True, eq=False)
class RetrievedTerms:
    """Full-depth ranks of the expected terms, the top terms of every case, and the failed cases.

    A failed case counts as a case without retrieved terms.
    """

    ranking: Ranking
    top_terms: Ints
    """The top terms, best first, equal scores by index; -1 for a failed case."""
    scores: Floats
    ranks: Floats
    """The rank of every expected term, in the order of the cases; infinity for a failed case."""
    failures: Mapping[str, EquipoiseError] = field(default_factory=dict)
    cutoff_ties: CutoffTies | None = None
    """All terms that tie with the last top term, for cases where some of them are not stored."""


class RankCollector:
    """Collects ranks and top terms from blocks of scores."""

    def __init__(self, resolved_cases: ResolvedCases, depth: int = MIN_DEPTH) -> None:
        terms = len(resolved_cases.ontology)
        self._resolved_cases, self._depth, self._terms = resolved_cases, min(depth, terms), terms
        self._rows: list[Ints] = []
        self._rankings: list[Ranking] = []
        self._first = np.full((len(resolved_cases.cases), self._depth), -1, dtype=np.int64)
        self._scores = np.full((len(resolved_cases.cases), self._depth), -np.inf)
        self._starts = segment_offsets(np.array([len(terms) for terms in resolved_cases.expected], dtype=np.int64))
        self._ranks = np.full(self._starts[-1], np.inf)
        self._cutoff_ties = CutoffTies(terms)

    def add_block(self, rows: Ints, scores: NDArray[Any]) -> None:
        """Scores (cases, terms) of the cases at these rows."""
        expected = [self._resolved_cases.expected[row] for row in rows]
        part = slice(0, len(rows))
        ids = self._resolved_cases.unit_ids[rows]
        self._rows.append(rows)
        self._rankings.append(
            Ranking.from_blocks(
                [(part, scores)], _padded_rows(expected), units=len(rows), corpus=self._terms, unit_ids=ids
            )
        )
        self._first[rows], self._scores[rows] = first, best = top_columns(scores, self._depth)
        for position, row in enumerate(rows.tolist()):
            tied = scores[position] == best[position, -1]
            if np.count_nonzero(tied) > np.count_nonzero(tied[first[position]]):
                self._cutoff_ties.add(row, tied)
        counts = np.array([len(terms) for terms in expected], dtype=np.int64)
        items = np.repeat(np.arange(len(rows)), counts)
        limits = scores[items, np.concatenate([np.zeros(0, dtype=np.int64), *expected])]
        above, tied = count_above_and_tied(scores, limits, counts)
        self._ranks[segment_indices(self._starts[rows], counts)] = above + 1.0 + tied / 2.0

    def finish(self, failures: Mapping[str, EquipoiseError]) -> RetrievedTerms:
        """The result for all cases in order, including failed ones."""
        rows = np.concatenate(self._rows) if self._rows else np.zeros(0, dtype=np.int64)
        missing_rows = np.setdiff1d(np.arange(len(self._resolved_cases.cases)), rows)
        parts = [*self._rankings, *([self._failed_ranking(missing_rows)] if len(missing_rows) else [])]
        ranking = Ranking.concatenated(parts).take(np.argsort(np.concatenate([rows, missing_rows])))
        return RetrievedTerms(ranking, self._first, self._scores, self._ranks, failures, self._cutoff_ties)

    def _failed_ranking(self, rows: Ints) -> Ranking:
        """The ranking of failed cases: no term was retrieved."""
        counts = np.array([len(self._resolved_cases.expected[row]) for row in rows], dtype=np.int64)
        total, pool = int(counts.sum()), np.full(len(rows), self._terms, dtype=np.int64)
        return Ranking.of_items(
            self._resolved_cases.unit_ids[rows],
            counts,
            gain=np.ones(total),
            above=np.full(total, NOT_RETRIEVED),
            tied=np.zeros(total, dtype=np.int64),
            depth=pool,
            candidates=pool,
        )


def rank_cases_jointly(
    score_blocks: ScoreBlocks, resolved_cases: ResolvedCases, names: Sequence[str], *, depth: int = MIN_DEPTH
) -> dict[str, RetrievedTerms]:
    """Rank the expected terms of all cases by several systems that share their scores.

    A failing case is recorded by id: after the first failure the remaining cases are scored one by one. If all
    cases fail, the first error is raised. An error that would occur for every case is raised at once.
    """
    collectors = {name: RankCollector(resolved_cases, depth) for name in names}
    texts, rows = resolved_cases.texts, np.arange(len(resolved_cases.cases))
    failures: dict[str, EquipoiseError] = {}
    done = 0
    try:
        for scores, part in score_blocks(texts):
            _add_block(collectors, rows[part], scores)
            done = part.stop
    except _FATAL_ERRORS:
        raise
    except Exception:  # a model of the user's own may raise anything; the case is found below
        for row in rows[done:]:
            case = resolved_cases.cases[row].id
            try:
                for scores, _ in score_blocks([texts[row]]):
                    _add_block(collectors, rows[row : row + 1], scores)
            except _FATAL_ERRORS:
                raise
            except Exception as error:
                failures[case] = _case_error(case, error)
    if len(failures) == len(texts):
        raise next(iter(failures.values())) from None
    return {name: collector.finish(failures) for name, collector in collectors.items()}


def _add_block(collectors: Mapping[str, RankCollector], rows: Ints, blocks: Mapping[str, NDArray[Any]]) -> None:
    for scores in blocks.values():
        if np.isnan(scores).any():
            raise NotFiniteError("a score is NaN", hint="check the vector of the text")
    for name, scores in blocks.items():
        collectors[name].add_block(rows, scores)


def _case_error(case: str, error: Exception) -> EquipoiseError:
    if isinstance(error, EquipoiseError):
        return error
    error_with_case = PartialError(
        f"case {case} failed with {type(error).__name__}: {error}", hint="the other cases are not affected"
    )
    error_with_case.__cause__ = error
    return error_with_case


def _padded_rows(expected: list[Ints]) -> Any:
    """Rows of unequal length as an array padded with -1."""
    width = max((len(terms) for terms in expected), default=0)
    rows = np.full((len(expected), max(width, 1)), -1, dtype=np.int64)
    for row, terms in enumerate(expected):
        rows[row, : len(terms)] = terms
    return rows


N_SHOWN_TERMS = 10
"""Number of top terms in the details of a case."""


def benchmark_result(
    retrieved: RetrievedTerms,
    resolved_cases: ResolvedCases,
    similarity: TermSimilarity,
    system: str,
    settings: BenchmarkConfig,
    chance: Floats,
) -> Result:
    """All metrics with intervals and chance levels.

    ``chance`` is the table of ``random_max_similarity``, which is the same for every system.
    """
    expected = [terms.tolist() for terms in resolved_cases.expected]
    ranking = with_max_similarity(
        retrieved.ranking,
        retrieved.top_terms,
        retrieved.scores,
        expected,
        similarity,
        cutoff_ties=retrieved.cutoff_ties,
        chance=chance,
    )
    metrics = benchmark_metrics(settings.ks, settings.metrics, settings.plugins)
    result = evaluate(ranking, metrics, system=system, config=settings.config)
    all_settings: dict[str, Any] = {DATA: dataset_settings(resolved_cases, similarity), UNIT_NOUN: "case"}
    if retrieved.failures:
        all_settings |= dict(zip(STATUS_SETTINGS, (str(Status.PARTIAL), failure_message(retrieved)), strict=True))
    result = replace(result, settings={**result.settings, **all_settings})
    return replace(result, findings=run_checks(ScoredResult(result, {metric.name: metric for metric in metrics})))


def dataset_settings(resolved_cases: ResolvedCases, similarity: TermSimilarity) -> dict[str, str]:
    """Settings that must be equal for two runs to be comparable."""
    return {
        "cases": resolved_cases.fingerprint,
        "ontology": resolved_cases.ontology.fingerprint,
        "similarity": similarity.name,
    }


def failure_message(retrieved: RetrievedTerms) -> str:
    if not retrieved.failures:
        return ""
    verdict = "counts as a miss" if len(retrieved.failures) == 1 else "count as misses"
    return f"{pluralize(len(retrieved.failures), 'case')} failed and {verdict}: {join_names(list(retrieved.failures))}"


def case_slices(result: Result, resolved_cases: ResolvedCases) -> tuple[Slice, ...]:
    """The primary metric on slices of the cases, by language and other properties."""
    if not any(resolved_cases.properties.values()):
        return ()
    return slice_estimates(result, PRIMARY, resolved_cases.properties)


def case_details(retrieved: RetrievedTerms, resolved_cases: ResolvedCases) -> dict[str | int, UnitContent]:
    """The text of every case, its expected terms and its top terms."""
    ontology = resolved_cases.ontology
    details: dict[str | int, UnitContent] = {}
    for index, case in enumerate(resolved_cases.cases):
        expected = set(resolved_cases.expected[index].tolist())
        items = [
            RetrievedItem(ontology.ids[term], ontology.labels[term], float(score), term in expected)
            for term, score in zip(
                retrieved.top_terms[index, :N_SHOWN_TERMS].tolist(),
                retrieved.scores[index, :N_SHOWN_TERMS].tolist(),
                strict=True,
            )
            if term >= 0
        ]
        details[case.id] = UnitContent(
            case.text,
            tuple(f"{ontology.ids[term]} {ontology.labels[term]}" for term in resolved_cases.expected[index].tolist()),
            resolved_cases.properties.get(case.id, {}),  # type: ignore[arg-type]
            tuple(items),
        )
    return details
