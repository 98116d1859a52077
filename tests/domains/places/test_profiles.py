"""Accuracy over k, shares of ranks, and the confusion of the most frequent classes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import confusion_matrix

from equipoise.domains.places.metrics import (
    accuracy_curve,
    confusion_counts,
    rank_distribution,
    rank_histogram,
)
from equipoise.errors import UndefinedError
from equipoise.evidence.labels import Labels
from equipoise.evidence.ranking import Ranking
from equipoise.metrics.ranking import hit_rate

scores = st.lists(st.lists(st.integers(0, 3), min_size=6, max_size=6), min_size=1, max_size=12)


@given(scores)
def test_the_accuracy_curve_is_the_hit_rate_at_every_cutoff(rows: list[list[int]]) -> None:
    ranking = Ranking.from_scores(np.array(rows, dtype=float), [0] * len(rows))
    expected = [hit_rate(ranking, k).mean() for k in range(1, 7)]
    assert accuracy_curve(ranking, 50).tolist() == pytest.approx(expected)
    assert rank_distribution(ranking).sum() == pytest.approx(1.0)


@given(scores, st.sampled_from([(1,), (1, 2, 3), (2, 4, 9)]))
def test_the_shares_of_rank_classes_add_up_to_one(rows: list[list[int]], edges: tuple[int, ...]) -> None:
    ranking = Ranking.from_scores(np.array(rows, dtype=float), [0] * len(rows))
    histogram = rank_histogram(ranking, edges)
    assert histogram.shares.sum() == pytest.approx(1.0)
    assert histogram.shares[0] == pytest.approx(hit_rate(ranking, edges[0]).mean())
    assert len(histogram.names) == len(histogram.shares)


def test_a_place_that_was_not_retrieved_has_no_rank() -> None:
    ranking = Ranking.from_lists([[1, 2], [3, 4]], [[2], [9]], corpus_size=10)
    assert rank_distribution(ranking).tolist() == [0, 0.5] + [0] * 8
    histogram = rank_histogram(ranking)
    assert (histogram.lost, histogram.shares.sum()) == (0.5, 0.5)


def test_rank_shares_need_one_relevant_place_per_unit() -> None:
    with pytest.raises(UndefinedError):
        rank_distribution(Ranking.from_lists([[1, 2]], [[1, 2]]))


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), min_size=1, max_size=60), st.integers(1, 9))
def test_confusion_counts_are_a_submatrix_of_the_whole_matrix(pairs: list[tuple[int, int]], max_classes: int) -> None:
    true, predicted = zip(*pairs, strict=True)
    confusion = confusion_counts(Labels.of(list(true), list(predicted)), max_classes)
    codes = [int(name) for name in confusion.classes]
    whole = confusion_matrix(true, predicted, labels=range(8))
    assert confusion.counts[:, :-1].tolist() == whole[np.ix_(codes, codes)].tolist()
    totals = confusion.counts.sum(axis=1)
    assert totals.tolist() == whole.sum(axis=1)[codes].tolist()
    assert totals.sum() + confusion.other == len(pairs)
    left_out = [int(whole[code].sum()) for code in range(8) if code not in codes]
    assert max(left_out, default=0) <= min(totals)
