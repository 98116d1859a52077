"""What a system did on the cases: where the expected terms stand, and which terms it put first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from equipoise.embed.lexical.leading import leading_columns
from equipoise.errors import (
    EquipoiseError,
    MissingExtraError,
    NotFiniteError,
    ParameterError,
    PartialError,
    StoreError,
    UnknownNameError,
)
from equipoise.evidence.counting import above_and_tied
from equipoise.evidence.placement import NEVER, spans, starts_of
from equipoise.evidence.ranking import Ranking
from equipoise.ontology.tails import Tails
from equipoise.recipes.phenotypes.truth import Truth
from equipoise.types import Floats, Ints

KEPT = 32
"""How many of the first terms of a case are kept, or as many as the largest cutoff where that is more."""

_NOT_OF_A_CASE = (MissingExtraError, ParameterError, StoreError, UnknownNameError)
"""What would fail for every case alike, so that it ends the work."""


Ask = Callable[[list[str]], Iterator[tuple[Mapping[str, NDArray[Any]], slice]]]
"""For texts, some at a time: the scores (texts, terms) of each system by name, and the slice of texts."""


class Scorer(Protocol):
    """Anything that scores all terms of an ontology for texts."""

    def score_blocks(self, queries: Any) -> Iterator[tuple[slice, NDArray[Any]]]:
        """Slices of the queries with their scores (queries, terms); higher is better."""


@dataclass(frozen=True, eq=False)
class Observed:
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
    tails: Tails | None = None
    """All terms that tie with the last one kept, for the cases where some of them are not among the first."""


class Observer:
    """Takes scores as they come, some cases at a time, and keeps what the figures need."""

    def __init__(self, truth: Truth, depth: int = KEPT) -> None:
        terms = len(truth.ontology)
        self._truth, self._depth, self._terms = truth, min(depth, terms), terms
        self._rows: list[Ints] = []
        self._rankings: list[Ranking] = []
        self._first = np.full((len(truth.cases), self._depth), -1, dtype=np.int64)
        self._scores = np.full((len(truth.cases), self._depth), -np.inf)
        self._starts = starts_of(np.array([len(terms) for terms in truth.expected], dtype=np.int64))
        self._ranks = np.full(self._starts[-1], np.inf)
        self._tails = Tails(terms)

    def see(self, rows: Ints, scores: NDArray[Any]) -> None:
        """Scores (cases, terms) of the cases at these rows."""
        expected = [self._truth.expected[row] for row in rows]
        part = slice(0, len(rows))
        ids = self._truth.unit_ids[rows]
        self._rows.append(rows)
        self._rankings.append(
            Ranking.from_blocks(
                [(part, scores)], _rows_of(expected), units=len(rows), corpus=self._terms, unit_ids=ids
            )
        )
        self._first[rows], self._scores[rows] = first, best = leading_columns(scores, self._depth)
        for place, row in enumerate(rows.tolist()):
            tied = scores[place] == best[place, -1]
            if np.count_nonzero(tied) > np.count_nonzero(tied[first[place]]):
                self._tails.keep(row, tied)
        counts = np.array([len(terms) for terms in expected], dtype=np.int64)
        items = np.repeat(np.arange(len(rows)), counts)
        limits = scores[items, np.concatenate([np.zeros(0, dtype=np.int64), *expected])]
        above, tied = above_and_tied(scores, limits, counts)
        self._ranks[spans(self._starts[rows], counts)] = above + 1.0 + tied / 2.0

    def observed(self, failures: Mapping[str, EquipoiseError]) -> Observed:
        """All cases in their order, those that failed among them."""
        seen = np.concatenate(self._rows) if self._rows else np.zeros(0, dtype=np.int64)
        lost = np.setdiff1d(np.arange(len(self._truth.cases)), seen)
        parts = [*self._rankings, *([self._lost(lost)] if len(lost) else [])]
        ranking = Ranking.concatenated(parts).take(np.argsort(np.concatenate([seen, lost])))
        return Observed(ranking, self._first, self._scores, self._ranks, failures, self._tails)

    def _lost(self, rows: Ints) -> Ranking:
        """Cases whose terms were not retrieved at all."""
        counts = np.array([len(self._truth.expected[row]) for row in rows], dtype=np.int64)
        total, pool = int(counts.sum()), np.full(len(rows), self._terms, dtype=np.int64)
        return Ranking.of_items(
            self._truth.unit_ids[rows],
            counts,
            gain=np.ones(total),
            above=np.full(total, NEVER),
            tied=np.zeros(total, dtype=np.int64),
            depth=pool,
            candidates=pool,
        )


def observe(system: Scorer, truth: Truth, *, depth: int = KEPT) -> Observed:
    """Ask a system about all cases; see ``observe_all``."""
    return observe_all(
        lambda texts: (({"": scores}, part) for part, scores in system.score_blocks(texts)),
        truth,
        [""],
        depth=depth,
    )[""]


def observe_all(ask: Ask, truth: Truth, names: Sequence[str], *, depth: int = KEPT) -> dict[str, Observed]:
    """Ask about all cases once, for several systems that share the work.

    A case that cannot be answered is kept as a failure, by id: after the first one the remaining cases are
    asked one by one. When none can be answered the first failure is raised, and so is at once what would
    fail for every case alike.
    """
    observers = {name: Observer(truth, depth) for name in names}
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


def _see(observers: Mapping[str, Observer], rows: Ints, found: Mapping[str, NDArray[Any]]) -> None:
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
