"""Extraction scores, compared with Python sets, and soft scores, compared with all matchings."""

from __future__ import annotations

from itertools import permutations
from math import isnan, nan

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.errors import ParameterError, UndefinedError
from equipoise.evidence.sets import AFFIRMED, Sets
from equipoise.metrics.sets import METRICS, SetF1, SetPrecision, SetRecall

ENTRIES = st.sets(st.tuples(st.sampled_from("abcd"), st.sampled_from([AFFIRMED, "negated"])), max_size=4)
CORPORA = st.lists(st.tuples(ENTRIES, ENTRIES), min_size=1, max_size=5)
MODES = ["strict", "present", "id"]
AVERAGES = ["micro", "macro", "weighted"]


def sets_of_corpus(corpus) -> Sets:
    return Sets.of(*({f"d{i}": row[side] for i, row in enumerate(corpus)} for side in (0, 1)))


def entries_of_mode(entries, mode):
    if mode == "present":
        return {entry for entry in entries if entry[1] == AFFIRMED}
    return {(term, "") for term, _ in entries} if mode == "id" else entries


def ratio(numerator, denominator):
    return numerator / denominator if denominator else nan


def ratios(hits, gold, predicted):
    return {"P": ratio(hits, predicted), "R": ratio(hits, gold), "F1": ratio(2 * hits, gold + predicted)}


def reference_scores(counts, average):
    """Precision, recall and F1 from (hits, gold, predicted) of each document."""
    if average == "micro":
        return ratios(*(sum(column) for column in zip(*counts, strict=True)))
    scores = {}
    for symbol in ("P", "R", "F1"):
        rows = [(ratios(*row)[symbol], row[1] if average == "weighted" else 1) for row in counts]
        rows = [(value, weight) for value, weight in rows if not isnan(value)]
        scores[symbol] = ratio(sum(v * w for v, w in rows), sum(w for _, w in rows))
    return scores


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("average", AVERAGES)
@given(corpus=CORPORA)
@settings(max_examples=40)
def test_scores_agree_with_python_sets(mode, average, corpus):
    entry_pairs = [(entries_of_mode(gold, mode), entries_of_mode(predicted, mode)) for gold, predicted in corpus]
    expected = reference_scores([(len(g & p), len(g), len(p)) for g, p in entry_pairs], average)
    for kind in METRICS:
        value = kind(average=average, mode=mode).measure(sets_of_corpus(corpus)).value
        assert value == pytest.approx(expected[kind.symbol], abs=1e-12, nan_ok=True)


def similarity(one: str, other: str) -> float:
    return 1.0 if one == other else {"ab": 0.9, "ba": 0.8, "ac": 0.3, "cd": 0.9, "db": 0.5}.get(one + other, 0.0)


def best_matching(gold, predicted) -> float:
    """The highest total similarity over all one-to-one matchings, by enumeration."""
    shorter, longer = sorted((list(gold), list(predicted)), key=len)
    swapped = shorter != list(gold)

    def pair_credit(one, other):
        g, p = (other, one) if swapped else (one, other)
        return similarity(g[0], p[0]) if g[1] == p[1] else 0.0

    return max(
        sum(pair_credit(one, other) for one, other in zip(shorter, permutation, strict=True))
        for permutation in permutations(longer, len(shorter))
    )


def with_similarity(sets: Sets) -> Sets:
    return sets.with_credit(lambda gold, predicted: [[similarity(g, p) for p in predicted] for g in gold])


@pytest.mark.parametrize("mode", MODES)
@given(corpus=CORPORA)
@settings(max_examples=40)
def test_soft_scores_agree_with_the_best_of_all_matchings(mode, corpus):
    entry_pairs = [(entries_of_mode(gold, mode), entries_of_mode(predicted, mode)) for gold, predicted in corpus]
    expected = reference_scores([(best_matching(g, p), len(g), len(p)) for g, p in entry_pairs], "micro")
    for kind in METRICS:
        value = kind(mode=mode, soft=True).measure(with_similarity(sets_of_corpus(corpus))).value
        assert value == pytest.approx(expected[kind.symbol], abs=1e-12, nan_ok=True)


def test_two_near_misses_may_score_higher_than_one_hit():
    sets = Sets.of({"d": ["a", "b"]}, {"d": ["a", "b"]})
    two_near_misses = Sets.of({"d": ["a", "c"]}, {"d": ["b", "a"]}).with_credit(
        lambda gold, predicted: np.full((2, 2), 0.9)
    )
    assert SetRecall(soft=True).measure(with_similarity(sets)).value == 1.0
    assert SetRecall(soft=True).measure(two_near_misses).value == pytest.approx(0.95)


@given(CORPORA)
@settings(max_examples=40)
def test_soft_scores_equal_exact_scores_without_credit_and_are_never_lower(corpus):
    sets = sets_of_corpus(corpus)
    without_credit = sets.with_credit(lambda gold, predicted: np.zeros((len(gold), len(predicted))))
    for kind in METRICS:
        exact = kind().measure(sets).value
        assert kind(soft=True).measure(without_credit).value == pytest.approx(exact, abs=1e-12, nan_ok=True)
        assert isnan(exact) or kind(soft=True).measure(with_similarity(sets)).value >= exact - 1e-12


def test_soft_scores_without_credit_raise_undefined_error():
    with pytest.raises(UndefinedError):
        SetF1(soft=True).measure(Sets.of({"d": ["a"]}, {"d": ["a"]}))


def test_zero_over_zero_is_undefined_and_excluded():
    sets = Sets.of(
        {"empty": [], "missed": ["a"], "spurious": [], "correct": ["b"]}, {"spurious": ["x"], "correct": ["b"]}
    )
    per_unit = {kind.symbol: kind(average="macro").measure(sets).per_unit for kind in METRICS}
    np.testing.assert_array_equal(per_unit["P"], [nan, nan, 0, 1])
    np.testing.assert_array_equal(per_unit["R"], [nan, 0, nan, 1])
    np.testing.assert_array_equal(per_unit["F1"], [nan, 0, 0, 1])
    assert SetPrecision(average="macro").measure(sets).value == 0.5
    empty = Sets.of({"d": []}, {"d": []})
    without_gold = Sets.of({"d": []}, {"d": ["x"]})
    for kind in METRICS:
        for average in AVERAGES:
            assert isnan(kind(average=average).measure(empty).value)
        assert isnan(kind(average="weighted").measure(without_gold).value)


def test_only_averages_over_documents_have_per_unit_values():
    sets = Sets.of({"d": ["a", "b"], "e": ["c"]}, {"d": ["a"], "e": ["c"]})
    assert SetF1().measure(sets).per_unit is None
    assert SetF1(average="macro").measure(sets).weights is None
    assert SetF1(average="weighted").measure(sets).weights.tolist() == [2, 1]


@given(CORPORA, st.integers(0, 99))
@settings(max_examples=40)
def test_scores_ignore_the_order_of_documents_and_stay_within_bounds(corpus, seed):
    sets = with_similarity(sets_of_corpus(corpus))
    permuted = sets.take(np.random.default_rng(seed).permutation(len(sets)))
    for kind in METRICS:
        for average in AVERAGES:
            metric = kind(average=average, soft=True)
            value = metric.measure(sets).value
            assert metric.measure(permuted).value == pytest.approx(value, abs=1e-12, nan_ok=True)
            assert isnan(value) or 0 <= value <= 1


def test_weighted_recall_is_micro_recall():
    sets = Sets.of({"d": ["a", "b"], "e": ["c"]}, {"d": ["a"], "e": ["x"]})
    micro, weighted = (SetRecall(average=average).measure(sets).value for average in ("micro", "weighted"))
    assert micro == pytest.approx(weighted) == pytest.approx(1 / 3)


def test_chance_recall_is_the_relative_frequency_of_the_terms():
    rng = np.random.default_rng(0)
    gold = {f"d{i}": set(rng.choice(list("abcdefghij"), size=2, replace=False)) for i in range(300)}
    sets = Sets.of(gold, gold)
    assert SetRecall().measure(sets).value == 1.0
    assert SetRecall().chance(sets, rng) == pytest.approx(0.2, abs=0.02)


def test_unknown_parameters_raise_parameter_error():
    with pytest.raises(ParameterError, match="'mean'"):
        SetF1(average="mean")
    with pytest.raises(ParameterError, match="'loose'"):
        SetF1(mode="loose")


def test_names_show_the_parameters_that_differ_from_the_default():
    assert str(SetF1(average="macro", mode="id", soft=True)) == "F1(average=macro,mode=id,soft)"
