"""MaxOntSim of near misses, and its chance level."""

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
    """The score of each unit."""
    return parse_metrics(f"MaxOntSim@{k}")[0].per_unit(ranking)


def test_a_hit_scores_one_and_a_miss_its_largest_similarity_to_an_expected_term():
    ontology = ontology_of(PARENTS)
    r, x, p, q, s = (ontology.index_of(name) for name in "rxpqs")
    lin = term_similarity(ontology)
    retrieved = np.array([[r, q, p], [s, q, x]])
    expected = [[p], [p, s]]
    ranking = Ranking.from_lists(retrieved, expected, corpus_size=len(ontology))
    ranking_with_similarity = with_max_similarity(ranking, retrieved, None, expected, lin)
    sibling = lin.pairs(np.array([p]), np.array([q]))[0]
    np.testing.assert_allclose(max_ont_sim(ranking_with_similarity, 1), [0.0, 1.0])
    np.testing.assert_allclose(max_ont_sim(ranking_with_similarity, 2), [sibling, 1.0])
    np.testing.assert_allclose(max_ont_sim(ranking_with_similarity, 3), [1.0, 1.0])


@st.composite
def random_results(draw):
    """An ontology, and lists of a few terms with tied scores and different lengths."""
    ontology = draw(ontologies().filter(lambda drawn_ontology: len(drawn_ontology) > 2))
    size, depth = len(ontology), draw(st.integers(1, min(4, len(ontology))))
    n_units = draw(st.integers(1, 3))
    rows, scores, expected = [], [], []
    for _ in range(n_units):
        terms = draw(st.permutations(range(size)))[:depth]
        n_kept = draw(st.integers(1, depth))
        rows.append([*terms[:n_kept], *[-1] * (depth - n_kept)])
        sorted_scores = sorted(draw(st.lists(st.integers(0, 2), min_size=n_kept, max_size=n_kept)), reverse=True)
        scores.append([*map(float, sorted_scores), *[-np.inf] * (depth - n_kept)])
        expected.append(draw(st.lists(st.integers(0, size - 1), min_size=1, max_size=2, unique=True)))
    return ontology, np.array(rows), np.array(scores), expected


@settings(max_examples=60)
@given(random_results(), st.sampled_from(["lin", "edge", "hybrid"]), st.integers(1, 4))
def test_scores_without_ties_equal_a_plain_loop(results, measure, k):
    ontology, rows, _, expected = results
    similarity = term_similarity(ontology, measure)
    lists = [[term for term in row if term >= 0] for row in rows.tolist()]
    ranking = Ranking.from_lists(lists, expected, corpus_size=len(ontology))
    scores = max_ont_sim(with_max_similarity(ranking, rows, None, expected, similarity), k)
    expected_scores = [
        similarity.between(np.array(e), np.array(row[:k])).max() for row, e in zip(lists, expected, strict=True)
    ]
    np.testing.assert_allclose(scores, expected_scores, atol=1e-12)


@settings(max_examples=60)
@given(random_results(), st.integers(1, 4))
def test_ties_are_resolved_per_unit_and_lie_between_the_best_and_the_worst_order(results, k):
    ontology, rows, scores, expected = results
    similarity = term_similarity(ontology)
    lists = [[term for term in row if term >= 0] for row in rows.tolist()]
    list_scores = [row[: len(terms_of_unit)] for row, terms_of_unit in zip(scores.tolist(), lists, strict=True)]
    ranking = Ranking.from_lists(lists, expected, scores=list_scores, corpus_size=len(ontology))
    ranking_with_similarity = with_max_similarity(ranking, rows, scores, expected, similarity)
    values = max_ont_sim(ranking_with_similarity, k)
    single_values = [max_ont_sim(ranking_with_similarity.take(np.array([unit])), k)[0] for unit in range(len(rows))]
    np.testing.assert_allclose(values, single_values)
    low, high = (max_ont_sim(ranking_with_similarity.ordered(rule), k) for rule in ("pessimistic", "optimistic"))
    assert (values >= low - 1e-12).all()
    assert (values <= high + 1e-12).all()


@st.composite
def tied_results(draw):
    """An ontology, a score with few levels for every term, expected terms, and the length of a list."""
    ontology = draw(ontologies().filter(lambda drawn_ontology: len(drawn_ontology) > 2))
    size = len(ontology)
    scores = np.array(draw(st.lists(st.integers(0, 2), min_size=size, max_size=size)), dtype=float)
    expected = draw(st.lists(st.integers(0, size - 1), min_size=1, max_size=2, unique=True))
    return ontology, scores, expected, draw(st.integers(1, size))


def gains_of_all_orders(scores, gains, k):
    """The gains of the first k terms under every order of tied scores: all subsets of the tied group at the cutoff."""
    limit = np.sort(scores)[::-1][k - 1]
    gains_above_limit = gains[scores > limit]
    tied_gains = gains[scores == limit]
    return [max([*gains_above_limit, *subset]) for subset in combinations(tied_gains, k - len(gains_above_limit))]


@settings(max_examples=150)
@given(tied_results(), st.sampled_from(["lin", "edge"]))
def test_ties_at_the_cutoff_score_the_mean_the_best_or_the_worst_of_all_orders(results, measure):
    ontology, scores, expected, depth = results
    similarity = term_similarity(ontology, measure)
    gains = similarity.between(np.array(expected), np.arange(len(ontology))).max(axis=0)
    gains[expected] = 1.0
    order = np.argsort(-scores, kind="stable")[:depth]
    cutoff_ties = CutoffTies(len(ontology))
    is_tied = scores == scores[order[-1]]
    if is_tied.sum() > is_tied[order].sum():
        cutoff_ties.add(0, is_tied)
    ranking = Ranking.from_scores(scores[None], [expected])
    ranking_with_similarity = with_max_similarity(
        ranking, order[None], scores[order][None], [expected], similarity, cutoff_ties=cutoff_ties
    )
    names = sorted(range(len(ontology)), key=str, reverse=True)
    by_id = sorted(names, key=lambda term: -scores[term])
    for k in range(1, depth + 1):
        values = gains_of_all_orders(scores, gains, k)
        for rule, expected_value in (("expected", np.mean(values)), ("optimistic", max(values)),
                           ("pessimistic", min(values)), ("by_id", max(gains[by_id[:k]]))):  # fmt: skip
            assert max_ont_sim(ranking_with_similarity.ordered(rule), k)[0] == pytest.approx(expected_value), (rule, k)


@settings(max_examples=40)
@given(ontologies(), st.data())
def test_constant_scores_have_the_chance_level_at_every_depth(ontology, data):
    size = len(ontology)
    expected = [data.draw(st.lists(st.integers(0, size - 1), min_size=1, max_size=2, unique=True))] * 2
    depth = data.draw(st.integers(1, size))
    lists = np.tile(np.arange(depth), (2, 1))
    cutoff_ties = CutoffTies(size)
    for unit in range(2):
        cutoff_ties.add(unit, np.ones(size, dtype=bool))
    ranking = Ranking.from_scores(np.zeros((2, size)), expected)
    ranking_with_similarity = with_max_similarity(
        ranking, lists, np.zeros(lists.shape), expected, term_similarity(ontology), cutoff_ties=cutoff_ties
    )
    stored = Ranking.concatenated(
        [
            ranking_with_similarity.take(np.array([1])),
            Ranking.from_arrays(ranking_with_similarity.take(np.array([0])).to_arrays()),
        ]
    )
    for k in range(1, depth + 1):
        np.testing.assert_allclose(max_ont_sim(stored, k), ranking_with_similarity.random_near[:, k - 1])


def test_a_cutoff_beyond_the_known_depth_is_an_error():
    ontology = ontology_of(PARENTS)
    ranking = Ranking.from_scores(np.array([[0.6, 0.5, 0.4, 0.3, 0.2, 0.1]]), [[5]])
    ranking_with_similarity = with_max_similarity(
        ranking, np.array([[0, 1]]), np.array([[0.6, 0.5]]), [[5]], term_similarity(ontology)
    )
    assert np.isfinite(max_ont_sim(ranking_with_similarity, 2)).all()
    with pytest.raises(UndefinedError, match="first 2"):
        max_ont_sim(ranking_with_similarity, 3)


@settings(max_examples=40)
@given(ontologies(), st.data())
def test_chance_is_the_mean_over_all_subsets(ontology, data):
    size = len(ontology)
    expected = data.draw(st.lists(st.integers(0, size - 1), min_size=1, max_size=2, unique=True))
    similarity = term_similarity(ontology, "edge")
    best = similarity.between(np.array(expected), np.arange(size)).max(axis=0)
    depth = min(3, size)
    table = random_max_similarity(similarity, [expected], depth)
    for k in range(1, depth + 1):
        expected_value = np.mean([max(best[list(subset)]) for subset in combinations(range(size), k)])
        assert table[0, k - 1] == pytest.approx(expected_value)


def test_the_chance_level_covers_all_terms_and_is_kept_by_saving_and_taking(tmp_path):
    ontology = ontology_of(PARENTS)
    retrieved, expected = np.array([[0, 1], [2, 3], [4, 5]]), [[3], [4], []]
    ranking = Ranking.from_lists(retrieved, expected, corpus_size=len(ontology))
    edge = term_similarity(ontology, "edge")
    ranking_with_similarity = with_max_similarity(ranking, retrieved, None, expected, edge)
    metric, rng = parse_metrics("MaxOntSim@2")[0], np.random.default_rng(0)
    table = random_max_similarity(edge, expected, 2)
    assert metric.chance(ranking_with_similarity, rng) == pytest.approx(np.nanmean(table[:, 1]))
    ranking_with_similarity.save(tmp_path / "near.npz")
    loaded = Ranking.load(tmp_path / "near.npz").take(np.array([1]))
    assert metric.chance(loaded, rng) == pytest.approx(table[1, 1])
    joined = Ranking.concatenated([loaded, ranking_with_similarity.take(np.array([0]))])
    assert metric.chance(joined, rng) == pytest.approx(table[[1, 0], 1].mean())
    assert metric.chance(with_max_similarity(ranking, retrieved, None, expected, edge, chance=table), rng) == (
        metric.chance(ranking_with_similarity, rng)
    )


def test_without_a_chance_table_the_evidence_is_shuffled():
    ontology = ontology_of(PARENTS)
    retrieved, expected = np.array([[0, 1]]), [[3]]
    ranking = Ranking.from_lists(retrieved, expected, corpus_size=len(ontology))
    ranking_with_similarity = with_max_similarity(
        ranking, retrieved, None, expected, term_similarity(ontology), chance=False
    )
    assert ranking_with_similarity.random_near is None
    assert 0 < parse_metrics("MaxOntSim@1")[0].chance(ranking_with_similarity, np.random.default_rng(0)) < 1


def test_invalid_lists_are_errors():
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
