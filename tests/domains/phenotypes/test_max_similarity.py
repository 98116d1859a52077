"""Near misses: what MaxOntSim earns from them, and what chance would."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.domains.phenotypes.max_similarity import (
    CutoffTies,
    random_max_similarity,
    with_max_similarity,
)
from equipoise.domains.phenotypes.similarity import term_similarity
from equipoise.errors import InputError, ParameterError, ShapeError, UndefinedError
from equipoise.evidence.ranking import Ranking
from equipoise.metrics.parser import parse_metrics
from small_ontologies import ontologies, ontology_of

PARENTS = {"r": [], "x": ["r"], "y": ["r"], "p": ["x"], "q": ["x"], "s": ["y"]}


def max_ont_sim(ranking: Ranking, k: int) -> np.ndarray:
    """The figure of each unit."""
    return parse_metrics(f"MaxOntSim@{k}")[0].per_unit(ranking)


def test_a_hit_earns_one_and_a_miss_its_largest_similarity_to_an_expected_term():
    ontology = ontology_of(PARENTS)
    r, x, p, q, s = (ontology.index_of(name) for name in "rxpqs")
    lin = term_similarity(ontology)
    retrieved = np.array([[r, q, p], [s, q, x]])
    expected = [[p], [p, s]]
    ranking = Ranking.from_lists(retrieved, expected, corpus_size=len(ontology))
    near = with_max_similarity(ranking, retrieved, None, expected, lin)
    sibling = lin.pairs(np.array([p]), np.array([q]))[0]
    np.testing.assert_allclose(max_ont_sim(near, 1), [0.0, 1.0])
    np.testing.assert_allclose(max_ont_sim(near, 2), [sibling, 1.0])
    np.testing.assert_allclose(max_ont_sim(near, 3), [1.0, 1.0])


@st.composite
def searches(draw):
    """An ontology, and lists of a few terms with scores that tie, some lists shorter than others."""
    ontology = draw(ontologies().filter(lambda each: len(each) > 2))
    size, depth = len(ontology), draw(st.integers(1, min(4, len(ontology))))
    units = draw(st.integers(1, 3))
    rows, scores, expected = [], [], []
    for _ in range(units):
        listed = draw(st.permutations(range(size)))[:depth]
        kept = draw(st.integers(1, depth))
        rows.append([*listed[:kept], *[-1] * (depth - kept)])
        ordered = sorted(draw(st.lists(st.integers(0, 2), min_size=kept, max_size=kept)), reverse=True)
        scores.append([*map(float, ordered), *[-np.inf] * (depth - kept)])
        expected.append(draw(st.lists(st.integers(0, size - 1), min_size=1, max_size=2, unique=True)))
    return ontology, np.array(rows), np.array(scores), expected


@settings(max_examples=60)
@given(searches(), st.sampled_from(["lin", "edge", "hybrid"]), st.integers(1, 4))
def test_distinct_scores_earn_what_a_loop_over_the_list_finds(search, measure, k):
    ontology, rows, _, expected = search
    bound = term_similarity(ontology, measure)
    lists = [[each for each in row if each >= 0] for row in rows.tolist()]
    ranking = Ranking.from_lists(lists, expected, corpus_size=len(ontology))
    found = max_ont_sim(with_max_similarity(ranking, rows, None, expected, bound), k)
    slow = [bound.between(np.array(e), np.array(row[:k])).max() for row, e in zip(lists, expected, strict=True)]
    np.testing.assert_allclose(found, slow, atol=1e-12)


@settings(max_examples=60)
@given(searches(), st.integers(1, 4))
def test_ties_are_decided_unit_by_unit_and_lie_between_the_best_and_the_worst_order(search, k):
    ontology, rows, scores, expected = search
    bound = term_similarity(ontology)
    lists = [[each for each in row if each >= 0] for row in rows.tolist()]
    trimmed = [row[: len(kept)] for row, kept in zip(scores.tolist(), lists, strict=True)]
    ranking = Ranking.from_lists(lists, expected, scores=trimmed, corpus_size=len(ontology))
    near = with_max_similarity(ranking, rows, scores, expected, bound)
    found = max_ont_sim(near, k)
    alone = [max_ont_sim(near.take(np.array([unit])), k)[0] for unit in range(len(rows))]
    np.testing.assert_allclose(found, alone)
    low, high = (max_ont_sim(near.ordered(rule), k) for rule in ("pessimistic", "optimistic"))
    assert (found >= low - 1e-12).all()
    assert (found <= high + 1e-12).all()


@st.composite
def tied_scores(draw):
    """An ontology, a score of few levels for every term, expected terms, and the length of a list."""
    ontology = draw(ontologies().filter(lambda each: len(each) > 2))
    size = len(ontology)
    scores = np.array(draw(st.lists(st.integers(0, 2), min_size=size, max_size=size)), dtype=float)
    expected = draw(st.lists(st.integers(0, size - 1), min_size=1, max_size=2, unique=True))
    return ontology, scores, expected, draw(st.integers(1, size))


def every_order(scores, gains, k):
    """What the first k earn under every order of equal scores, by drawing from the group that k cuts."""
    limit = np.sort(scores)[::-1][k - 1]
    sure = gains[scores > limit]
    group = gains[scores == limit]
    return [max([*sure, *drawn]) for drawn in combinations(group, k - len(sure))]


@settings(max_examples=150)
@given(tied_scores(), st.sampled_from(["lin", "edge"]))
def test_ties_that_run_past_the_list_earn_the_mean_the_best_or_the_worst_of_all_orders(search, measure):
    ontology, scores, expected, depth = search
    bound = term_similarity(ontology, measure)
    gains = bound.between(np.array(expected), np.arange(len(ontology))).max(axis=0)
    gains[expected] = 1.0
    order = np.argsort(-scores, kind="stable")[:depth]
    cutoff_ties = CutoffTies(len(ontology))
    tied = scores == scores[order[-1]]
    if tied.sum() > tied[order].sum():
        cutoff_ties.add(0, tied)
    ranking = Ranking.from_scores(scores[None], [expected])
    near = with_max_similarity(ranking, order[None], scores[order][None], [expected], bound, cutoff_ties=cutoff_ties)
    names = sorted(range(len(ontology)), key=str, reverse=True)
    by_id = sorted(names, key=lambda term: -scores[term])
    for k in range(1, depth + 1):
        values = every_order(scores, gains, k)
        for rule, slow in (("expected", np.mean(values)), ("optimistic", max(values)),
                           ("pessimistic", min(values)), ("by_id", max(gains[by_id[:k]]))):  # fmt: skip
            assert max_ont_sim(near.ordered(rule), k)[0] == pytest.approx(slow), (rule, k)


@settings(max_examples=40)
@given(ontologies(), st.data())
def test_equal_scores_earn_the_chance_level_however_short_the_list(ontology, data):
    size = len(ontology)
    expected = [data.draw(st.lists(st.integers(0, size - 1), min_size=1, max_size=2, unique=True))] * 2
    depth = data.draw(st.integers(1, size))
    lists = np.tile(np.arange(depth), (2, 1))
    cutoff_ties = CutoffTies(size)
    for unit in range(2):
        cutoff_ties.add(unit, np.ones(size, dtype=bool))
    ranking = Ranking.from_scores(np.zeros((2, size)), expected)
    near = with_max_similarity(
        ranking, lists, np.zeros(lists.shape), expected, term_similarity(ontology), cutoff_ties=cutoff_ties
    )
    stored = Ranking.concatenated([near.take(np.array([1])), Ranking.from_arrays(near.take(np.array([0])).to_arrays())])
    for k in range(1, depth + 1):
        np.testing.assert_allclose(max_ont_sim(stored, k), near.random_near[:, k - 1])


def test_a_cutoff_beyond_what_is_known_is_refused():
    ontology = ontology_of(PARENTS)
    ranking = Ranking.from_scores(np.array([[0.6, 0.5, 0.4, 0.3, 0.2, 0.1]]), [[5]])
    near = with_max_similarity(ranking, np.array([[0, 1]]), np.array([[0.6, 0.5]]), [[5]], term_similarity(ontology))
    assert np.isfinite(max_ont_sim(near, 2)).all()
    with pytest.raises(UndefinedError, match="that of the first 2 is known"):
        max_ont_sim(near, 3)


@settings(max_examples=40)
@given(ontologies(), st.data())
def test_chance_is_the_mean_over_all_draws(ontology, data):
    size = len(ontology)
    expected = data.draw(st.lists(st.integers(0, size - 1), min_size=1, max_size=2, unique=True))
    bound = term_similarity(ontology, "edge")
    best = bound.between(np.array(expected), np.arange(size)).max(axis=0)
    depth = min(3, size)
    table = random_max_similarity(bound, [expected], depth)
    for k in range(1, depth + 1):
        slow = np.mean([max(best[list(drawn)]) for drawn in combinations(range(size), k)])
        assert table[0, k - 1] == pytest.approx(slow)


def test_the_chance_level_rests_on_all_terms_and_survives_storing_and_taking(tmp_path):
    ontology = ontology_of(PARENTS)
    retrieved, expected = np.array([[0, 1], [2, 3], [4, 5]]), [[3], [4], []]
    ranking = Ranking.from_lists(retrieved, expected, corpus_size=len(ontology))
    edge = term_similarity(ontology, "edge")
    near = with_max_similarity(ranking, retrieved, None, expected, edge)
    metric, rng = parse_metrics("MaxOntSim@2")[0], np.random.default_rng(0)
    table = random_max_similarity(edge, expected, 2)
    assert metric.chance(near, rng) == pytest.approx(np.nanmean(table[:, 1]))
    near.save(tmp_path / "near.npz")
    again = Ranking.load(tmp_path / "near.npz").take(np.array([1]))
    assert metric.chance(again, rng) == pytest.approx(table[1, 1])
    joined = Ranking.concatenated([again, near.take(np.array([0]))])
    assert metric.chance(joined, rng) == pytest.approx(table[[1, 0], 1].mean())
    assert metric.chance(with_max_similarity(ranking, retrieved, None, expected, edge, chance=table), rng) == (
        metric.chance(near, rng)
    )


def test_without_the_table_of_chance_the_evidence_is_shuffled():
    ontology = ontology_of(PARENTS)
    retrieved, expected = np.array([[0, 1]]), [[3]]
    ranking = Ranking.from_lists(retrieved, expected, corpus_size=len(ontology))
    near = with_max_similarity(ranking, retrieved, None, expected, term_similarity(ontology), chance=False)
    assert near.random_near is None
    assert 0 < parse_metrics("MaxOntSim@1")[0].chance(near, np.random.default_rng(0)) < 1


def test_bad_lists_are_sentences():
    ontology = ontology_of(PARENTS)
    retrieved, expected = np.array([[0, 1]]), [[3]]
    ranking = Ranking.from_lists(retrieved, expected, corpus_size=len(ontology))
    lin = term_similarity(ontology)
    with pytest.raises(ParameterError, match="resnik"):
        with_max_similarity(ranking, retrieved, None, expected, term_similarity(ontology, "resnik"))
    with pytest.raises(ShapeError, match=r"1 units.*1 lists.*2"):
        with_max_similarity(ranking, retrieved, None, [[3], [2]], lin)
    with pytest.raises(InputError):
        with_max_similarity(ranking, retrieved, np.array([[0.1, 0.2]]), expected, lin)
    with pytest.raises(ShapeError):
        with_max_similarity(ranking, retrieved, np.array([[0.1]]), expected, lin)
