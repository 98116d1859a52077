"""Ranks of expected terms, and cases that fail."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from equipoise.domains.phenotypes.cases import Case, ResolvedCases, resolve_cases
from equipoise.domains.phenotypes.ontology import Ontology
from equipoise.domains.phenotypes.scoring import RetrievedTerms, TermScorer, rank_cases_jointly
from equipoise.errors import MissingExtraError, PartialError
from equipoise.evidence.segments import NOT_RETRIEVED


class TableScorer:
    """A system with given scores; it fails for the texts in ``broken``."""

    def __init__(self, table: dict[str, NDArray[Any]], broken: Sequence[str] = (), rows: int = 2) -> None:
        self.table, self.broken, self.rows = table, broken, rows

    def score_blocks(self, queries: Sequence[str]) -> Iterator[tuple[slice, NDArray[Any]]]:
        for start in range(0, len(queries), self.rows):
            part = slice(start, min(start + self.rows, len(queries)))
            if any(text in self.broken for text in queries[part]):
                raise RuntimeError("the service failed")
            yield part, np.array([self.table[text] for text in queries[part]])


def random_scorer(resolved: ResolvedCases, seed: int, *, levels: int = 5, **options: Any) -> TableScorer:
    """Random scores with few levels, so that many are tied."""
    rng = np.random.default_rng(seed)
    table = {text: rng.integers(0, levels, len(resolved.ontology)).astype(float) for text in resolved.texts}
    return TableScorer(table, **options)


def rank_cases(scorer: TermScorer, resolved: ResolvedCases) -> RetrievedTerms:
    """The ranks of the expected terms by one system."""

    def score_blocks(texts: list[str]) -> Iterator[tuple[dict[str, NDArray[Any]], slice]]:
        yield from (({"": scores}, part) for part, scores in scorer.score_blocks(texts))

    return rank_cases_jointly(score_blocks, resolved, [""])[""]


def reference_ranks(scores: NDArray[Any], terms: NDArray[Any]) -> list[float]:
    """The mean rank of a term over all orders of tied scores, by counting."""
    return [1 + sum(other > scores[term] for other in scores) + (sum(scores == scores[term]) - 1) / 2 for term in terms]


@given(seed=st.integers(0, 50), rows=st.integers(1, 7))
def test_ranks_equal_the_reference_for_any_block_size(
    seed: int, rows: int, ontology: Ontology, some_cases: tuple[Case, ...]
) -> None:
    resolved = resolve_cases(some_cases, ontology)
    scorer = random_scorer(resolved, seed, rows=rows)
    retrieved = rank_cases(scorer, resolved)
    expected = [
        reference_ranks(scorer.table[text], terms)
        for text, terms in zip(resolved.texts, resolved.expected, strict=True)
    ]
    assert retrieved.ranks.tolist() == [rank for ranks in expected for rank in ranks]
    assert retrieved.ranking.ranks.tolist() == [rank for ranks in expected for rank in sorted(ranks)]
    assert retrieved.ranking.unit_ids.tolist() == [case.id for case in some_cases]


def test_a_failed_case_counts_as_a_miss(ontology: Ontology, some_cases: tuple[Case, ...]) -> None:
    resolved = resolve_cases(some_cases, ontology)
    retrieved = rank_cases(random_scorer(resolved, 1, broken=["Makrozephalie"]), resolved)
    assert list(retrieved.failures) == ["c"]
    assert "RuntimeError: the service failed" in retrieved.failures["c"].message
    assert retrieved.ranking.unit_ids.tolist() == list("abcdef")
    assert retrieved.ranking.above[retrieved.ranking.unit_of == 2].tolist() == [NOT_RETRIEVED]
    assert (retrieved.top_terms[2] == -1).all()
    complete = rank_cases(random_scorer(resolved, 1), resolved)
    rows = [0, 1, 3, 4, 5]
    assert _equal_rows(retrieved, complete, rows)


def _equal_rows(first: RetrievedTerms, second: RetrievedTerms, rows: list[int]) -> bool:
    index = np.array(rows)
    left, right = first.ranking.take(index), second.ranking.take(index)
    return left.ranks.tolist() == right.ranks.tolist() and (first.top_terms[index] == second.top_terms[index]).all()


def test_scores_that_are_not_numbers_are_a_failure_and_not_a_first_rank(
    ontology: Ontology, some_cases: tuple[Case, ...]
) -> None:
    resolved = resolve_cases(some_cases, ontology)
    scorer = random_scorer(resolved, 3)
    scorer.table["Polydaktylie"] = np.full(len(ontology), np.nan)
    retrieved = rank_cases(scorer, resolved)
    assert list(retrieved.failures) == ["e"]
    assert not retrieved.ranking.retrieved[retrieved.ranking.unit_of == 4].any()


def test_the_first_failure_is_raised_if_all_cases_fail(ontology: Ontology, some_cases: tuple[Case, ...]) -> None:
    resolved = resolve_cases(some_cases, ontology)
    with pytest.raises(PartialError):
        rank_cases(random_scorer(resolved, 1, broken=resolved.texts), resolved)


def test_an_error_of_the_system_stops_the_evaluation_immediately(
    ontology: Ontology, some_cases: tuple[Case, ...]
) -> None:
    class MissingEngineScorer(TableScorer):
        n_calls = 0

        def score_blocks(self, queries: Sequence[str]) -> Iterator[tuple[slice, NDArray[Any]]]:
            self.n_calls += 1
            raise MissingExtraError("no such engine", hint="install it")
            yield

    scorer = MissingEngineScorer({})
    with pytest.raises(MissingExtraError):
        rank_cases(scorer, resolve_cases(some_cases, ontology))
    assert scorer.n_calls == 1
