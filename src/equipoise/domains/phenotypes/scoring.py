"""What a system did on the cases: where the expected terms stand, and which terms it put first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from equipoise.checks.base import join_names, pluralize
from equipoise.config import StatsConfig
from equipoise.domains.phenotypes.config import PRIMARY, BenchmarkConfig, benchmark_metrics
from equipoise.domains.phenotypes.ontology.max_similarity import CutoffTies, with_max_similarity
from equipoise.errors import (
    EquipoiseError,
    MissingExtraError,
    NotFiniteError,
    ParameterError,
    PartialError,
    StoreError,
    UnknownNameError,
)
from equipoise.evidence.kernels.rank_counts import count_above_and_tied
from equipoise.evidence.ranking import Ranking
from equipoise.evidence.segments import NOT_RETRIEVED
from equipoise.geometry.topk import leading_columns_of
from equipoise.io.dag import segment_indices, segment_offsets
from equipoise.runs.evaluate import evaluate
from equipoise.runs.manifest import STATUS_SETTINGS, Status
from equipoise.runs.unit_table import RetrievedItem, UnitContent
from equipoise.stats.alignment import DATA
from equipoise.stats.slices import Slice, slice_estimates

if TYPE_CHECKING:
    from equipoise.domains.phenotypes.cases import ResolvedCases
    from equipoise.domains.phenotypes.ontology.similarity import TermSimilarity
    from equipoise.stats.result import Result
    from equipoise.types import Floats, Ints

MIN_DEPTH = 32
"""How many of the first terms of a case are kept, or as many as the largest cutoff where that is more."""

_NOT_OF_A_CASE = (MissingExtraError, ParameterError, StoreError, UnknownNameError)
"""What would fail for every case alike, so that it ends the work."""


ScoreBlocks = Callable[[list[str]], Iterator[tuple[Mapping[str, NDArray[Any]], slice]]]
"""For texts, some at a time: the scores (texts, terms) of each system by name, and the slice of texts."""


class TermScorer(Protocol):
    """Anything that scores all terms of an ontology for texts."""

    def score_blocks(self, queries: Any) -> Iterator[tuple[slice, NDArray[Any]]]:
        """Slices of the queries with their scores (queries, terms); higher is better."""


@dataclass(frozen=True, eq=False)
class RetrievedTerms:
    """Full-depth ranks of the expected terms, the first terms of every case, and the cases that failed.

    A failed case stays in: none of its terms was retrieved.
    """

    ranking: Ranking
    first: Ints
    """The first terms, best first, equal scores by their place in the ontology; -1 for a failed case."""
    scores: Floats
    ranks: Floats
    """The rank of every expected term, in the order of the truth; infinity for those of a failed case."""
    failures: Mapping[str, EquipoiseError] = field(default_factory=dict)
    tails: CutoffTies | None = None
    """All terms that tie with the last one kept, for the cases where some of them are not among the first."""


class RankCollector:
    """Takes scores as they come, some cases at a time, and keeps what the figures need."""

    def __init__(self, truth: ResolvedCases, depth: int = MIN_DEPTH) -> None:
        terms = len(truth.ontology)
        self._truth, self._depth, self._terms = truth, min(depth, terms), terms
        self._rows: list[Ints] = []
        self._rankings: list[Ranking] = []
        self._first = np.full((len(truth.cases), self._depth), -1, dtype=np.int64)
        self._scores = np.full((len(truth.cases), self._depth), -np.inf)
        self._starts = segment_offsets(np.array([len(terms) for terms in truth.expected], dtype=np.int64))
        self._ranks = np.full(self._starts[-1], np.inf)
        self._tails = CutoffTies(terms)

    def see(self, rows: Ints, scores: NDArray[Any]) -> None:
        """Scores (cases, terms) of the cases at these rows."""
        expected = [self._truth.expected[row] for row in rows]
        part = slice(0, len(rows))
        ids = self._truth.unit_ids[rows]
        self._rows.append(rows)
        self._rankings.append(
            Ranking.from_blocks([(part, scores)], _rows_of(expected), units=len(rows), corpus=self._terms, unit_ids=ids)
        )
        self._first[rows], self._scores[rows] = first, best = leading_columns_of(scores, self._depth)
        for place, row in enumerate(rows.tolist()):
            tied = scores[place] == best[place, -1]
            if np.count_nonzero(tied) > np.count_nonzero(tied[first[place]]):
                self._tails.keep(row, tied)
        counts = np.array([len(terms) for terms in expected], dtype=np.int64)
        items = np.repeat(np.arange(len(rows)), counts)
        limits = scores[items, np.concatenate([np.zeros(0, dtype=np.int64), *expected])]
        above, tied = count_above_and_tied(scores, limits, counts)
        self._ranks[segment_indices(self._starts[rows], counts)] = above + 1.0 + tied / 2.0

    def observed(self, failures: Mapping[str, EquipoiseError]) -> RetrievedTerms:
        """All cases in their order, those that failed among them."""
        seen = np.concatenate(self._rows) if self._rows else np.zeros(0, dtype=np.int64)
        lost = np.setdiff1d(np.arange(len(self._truth.cases)), seen)
        parts = [*self._rankings, *([self._lost(lost)] if len(lost) else [])]
        ranking = Ranking.concatenated(parts).take(np.argsort(np.concatenate([seen, lost])))
        return RetrievedTerms(ranking, self._first, self._scores, self._ranks, failures, self._tails)

    def _lost(self, rows: Ints) -> Ranking:
        """Cases whose terms were not retrieved at all."""
        counts = np.array([len(self._truth.expected[row]) for row in rows], dtype=np.int64)
        total, pool = int(counts.sum()), np.full(len(rows), self._terms, dtype=np.int64)
        return Ranking.of_items(
            self._truth.unit_ids[rows],
            counts,
            gain=np.ones(total),
            above=np.full(total, NOT_RETRIEVED),
            tied=np.zeros(total, dtype=np.int64),
            depth=pool,
            candidates=pool,
        )


def rank_cases(system: TermScorer, truth: ResolvedCases, *, depth: int = MIN_DEPTH) -> RetrievedTerms:
    """Ask a system about all cases; see ``rank_cases_jointly``."""
    return rank_cases_jointly(
        lambda texts: (({"": scores}, part) for part, scores in system.score_blocks(texts)),
        truth,
        [""],
        depth=depth,
    )[""]


def rank_cases_jointly(
    ask: ScoreBlocks, truth: ResolvedCases, names: Sequence[str], *, depth: int = MIN_DEPTH
) -> dict[str, RetrievedTerms]:
    """Ask about all cases once, for several systems that share the work.

    A case that cannot be answered is kept as a failure, by id: after the first one the remaining cases are
    asked one by one. When none can be answered the first failure is raised, and so is at once what would
    fail for every case alike.
    """
    observers = {name: RankCollector(truth, depth) for name in names}
    texts, rows = truth.texts, np.arange(len(truth.cases))
    failures: dict[str, EquipoiseError] = {}
    done = 0
    try:
        for found, part in ask(texts):
            _see(observers, rows[part], found)
            done = part.stop
    except _NOT_OF_A_CASE:
        raise
    except Exception:  # a model of the user's own may raise anything; the case is found below
        for row in rows[done:]:
            case = truth.cases[row].id
            try:
                for found, _ in ask([texts[row]]):
                    _see(observers, rows[row : row + 1], found)
            except _NOT_OF_A_CASE:
                raise
            except Exception as error:
                failures[case] = _told(case, error)
    if len(failures) == len(texts):
        raise next(iter(failures.values())) from None
    return {name: observer.observed(failures) for name, observer in observers.items()}


def _see(observers: Mapping[str, RankCollector], rows: Ints, found: Mapping[str, NDArray[Any]]) -> None:
    for scores in found.values():
        if np.isnan(scores).any():
            raise NotFiniteError("a score is no number (NaN)", hint="look at the vector of the text")
    for name, scores in found.items():
        observers[name].see(rows, scores)


def _told(case: str, error: Exception) -> EquipoiseError:
    if isinstance(error, EquipoiseError):
        return error
    told = PartialError(
        f"case {case} failed with {type(error).__name__}: {error}", hint="the other cases are not affected"
    )
    told.__cause__ = error
    return told


def _rows_of(expected: list[Ints]) -> Any:
    """Rows of unequal length as the ranking takes them: padded with -1."""
    width = max((len(terms) for terms in expected), default=0)
    rows = np.full((len(expected), max(width, 1)), -1, dtype=np.int64)
    for place, terms in enumerate(expected):
        rows[place, : len(terms)] = terms
    return rows


# From what a system did on the cases to its figures, slices and what people see of each case.

N_SHOWN_TERMS = 10
"""How many of the first terms of a case people see."""


def benchmark_result(
    seen: RetrievedTerms,
    truth: ResolvedCases,
    alike: TermSimilarity,
    system: str,
    settings: BenchmarkConfig,
    chance: Floats,
) -> Result:
    """Every figure with interval and chance; the evidence keeps the similarities.

    ``chance`` is what random terms would reach, which is the same for every system.
    """
    expected = [terms.tolist() for terms in truth.expected]
    ranking = with_max_similarity(
        seen.ranking, seen.first, seen.scores, expected, alike, tails=seen.tails, chance=chance
    )
    result = evaluate(
        ranking,
        benchmark_metrics(settings.ks),
        system=system,
        config=StatsConfig(
            ties=settings.ties,
            confidence_level=settings.confidence_level,
            n_resamples=settings.n_resamples,
            seed=settings.seed,
        ),
    )
    told: dict[str, Any] = {DATA: dataset_settings(truth, alike)}
    if seen.failures:
        told |= dict(zip(STATUS_SETTINGS, (str(Status.PARTIAL), failure_message(seen)), strict=True))
    return replace(result, settings={**result.settings, **told})


def dataset_settings(truth: ResolvedCases, alike: TermSimilarity) -> dict[str, str]:
    """What must be the same for two runs to be compared."""
    return {
        "cases": truth.fingerprint,
        "ontology": truth.ontology.fingerprint,
        "similarity": alike.measure.name,
    }


def failure_message(seen: RetrievedTerms) -> str:
    """Which cases could not be answered."""
    if not seen.failures:
        return ""
    verdict = "counts as a miss" if len(seen.failures) == 1 else "count as misses"
    return f"{pluralize(len(seen.failures), 'case')} failed and {verdict}: {join_names(list(seen.failures))}"


def case_slices(result: Result, truth: ResolvedCases, settings: BenchmarkConfig) -> tuple[Slice, ...]:
    """The primary figure on the parts of the cases, by language and every other property they have."""
    if not any(truth.properties.values()):
        return ()
    return slice_estimates(result, PRIMARY, truth.properties, seed=settings.seed)


def case_details(seen: RetrievedTerms, truth: ResolvedCases) -> dict[str | int, UnitContent]:
    """The text of every case, its expected terms, and the first terms that were found."""
    ontology = truth.ontology
    details: dict[str | int, UnitContent] = {}
    for place, case in enumerate(truth.cases):
        expected = set(truth.expected[place].tolist())
        found = [
            RetrievedItem(ontology.ids[term], ontology.labels[term], float(score), term in expected)
            for term, score in zip(
                seen.first[place, :N_SHOWN_TERMS].tolist(),
                seen.scores[place, :N_SHOWN_TERMS].tolist(),
                strict=True,
            )
            if term >= 0
        ]
        details[case.id] = UnitContent(
            case.text,
            tuple(f"{ontology.ids[term]} {ontology.labels[term]}" for term in truth.expected[place].tolist()),
            truth.properties.get(case.id, {}),  # type: ignore[arg-type]
            tuple(found),
        )
    return details
