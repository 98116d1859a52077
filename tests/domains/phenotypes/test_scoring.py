"""Where expected terms stand is counted, whatever fails on the way."""

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


class Scores:
    """A system whose scores are known; texts in ``broken`` make it fail."""

    def __init__(self, table: dict[str, NDArray[Any]], broken: Sequence[str] = (), rows: int = 2) -> None:
        self.table, self.broken, self.rows = table, broken, rows

    def score_blocks(self, queries: Sequence[str]) -> Iterator[tuple[slice, NDArray[Any]]]:
        for start in range(0, len(queries), self.rows):
            part = slice(start, min(start + self.rows, len(queries)))
            if any(text in self.broken for text in queries[part]):
                raise RuntimeError("the service hung up")
            yield part, np.array([self.table[text] for text in queries[part]])


def system(truth: ResolvedCases, seed: int, *, levels: int = 5, **options: Any) -> Scores:
    """Random scores of a few levels, so that many are equal."""
    rng = np.random.default_rng(seed)
    table = {text: rng.integers(0, levels, len(truth.ontology)).astype(float) for text in truth.texts}
    return Scores(table, **options)


def rank_cases(scorer: TermScorer, truth: ResolvedCases) -> RetrievedTerms:
    """The ranks of the expected terms by one system."""

    def ask(texts: list[str]) -> Iterator[tuple[dict[str, NDArray[Any]], slice]]:
        yield from (({"": scores}, part) for part, scores in scorer.score_blocks(texts))

    return rank_cases_jointly(ask, truth, [""])[""]


def slow_ranks(scores: NDArray[Any], terms: NDArray[Any]) -> list[float]:
    """The mean place of a term over all orders of equals, by counting."""
    return [1 + sum(other > scores[term] for other in scores) + (sum(scores == scores[term]) - 1) / 2 for term in terms]


@given(seed=st.integers(0, 50), rows=st.integers(1, 7))
def test_ranks_are_those_of_slow_counting_however_the_blocks_fall(
    seed: int, rows: int, ontology: Ontology, some_cases: tuple[Case, ...]
) -> None:
    truth = resolve_cases(some_cases, ontology)
    scorer = system(truth, seed, rows=rows)
    retrieved = rank_cases(scorer, truth)
    expected = [slow_ranks(scorer.table[text], terms) for text, terms in zip(truth.texts, truth.expected, strict=True)]
    assert retrieved.ranks.tolist() == [rank for own in expected for rank in own]
    assert retrieved.ranking.ranks.tolist() == [rank for own in expected for rank in sorted(own)]
    assert retrieved.ranking.unit_ids.tolist() == [case.id for case in some_cases]


def test_a_case_that_fails_stays_in_as_a_miss(ontology: Ontology, some_cases: tuple[Case, ...]) -> None:
    truth = resolve_cases(some_cases, ontology)
    retrieved = rank_cases(system(truth, 1, broken=["Makrozephalie"]), truth)
    assert list(retrieved.failures) == ["c"]
    assert "RuntimeError: the service hung up" in retrieved.failures["c"].message
    assert retrieved.ranking.unit_ids.tolist() == list("abcdef")
    assert retrieved.ranking.above[retrieved.ranking.unit_of == 2].tolist() == [NOT_RETRIEVED]
    assert (retrieved.top_terms[2] == -1).all()
    whole = rank_cases(system(truth, 1), truth)
    kept = [0, 1, 3, 4, 5]
    assert _same(retrieved, whole, kept)


def _same(one: RetrievedTerms, other: RetrievedTerms, rows: list[int]) -> bool:
    index = np.array(rows)
    left, right = one.ranking.take(index), other.ranking.take(index)
    return left.ranks.tolist() == right.ranks.tolist() and (one.top_terms[index] == other.top_terms[index]).all()


def test_scores_that_are_no_numbers_are_a_failure_and_never_a_first_place(
    ontology: Ontology, some_cases: tuple[Case, ...]
) -> None:
    truth = resolve_cases(some_cases, ontology)
    scorer = system(truth, 3)
    scorer.table["Polydaktylie"] = np.full(len(ontology), np.nan)
    retrieved = rank_cases(scorer, truth)
    assert list(retrieved.failures) == ["e"]
    assert not retrieved.ranking.retrieved[retrieved.ranking.unit_of == 4].any()


def test_when_nothing_can_be_answered_the_reason_is_raised(ontology: Ontology, some_cases: tuple[Case, ...]) -> None:
    truth = resolve_cases(some_cases, ontology)
    with pytest.raises(PartialError):
        rank_cases(system(truth, 1, broken=truth.texts), truth)


def test_what_would_fail_for_every_case_ends_the_work_at_once(ontology: Ontology, some_cases: tuple[Case, ...]) -> None:
    class Absent(Scores):
        asked = 0

        def score_blocks(self, queries: Sequence[str]) -> Iterator[tuple[slice, NDArray[Any]]]:
            self.asked += 1
            raise MissingExtraError("no such engine", hint="install it")
            yield

    absent = Absent({})
    with pytest.raises(MissingExtraError):
        rank_cases(absent, resolve_cases(some_cases, ontology))
    assert absent.asked == 1
