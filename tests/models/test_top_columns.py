"""The top k of sparse scores, compared with a full sort."""

from __future__ import annotations

import numpy as np
import pytest

from equipoise.geometry.topk import top_columns


def top_k_by_sorting(scores, k):
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return order, np.take_along_axis(scores, order, axis=1)


@pytest.mark.parametrize("k", [1, 3, 10])
@pytest.mark.parametrize("levels", [2, 50, 10**9])
@pytest.mark.parametrize("width", [20, 1000, 1003])
def test_top_columns_agree_with_a_stable_sort(k, levels, width):
    scores = np.random.default_rng(0).integers(0, levels, (30, width)).astype(float)
    indices, best = top_columns(scores, k)
    order, values = top_k_by_sorting(scores, k)
    assert indices.tolist() == order.tolist()
    assert best.tolist() == values.tolist()


@pytest.mark.parametrize("column", [0, 500, 4095, 4999])
def test_rows_of_zeros_with_one_hit_are_filled_from_the_left(column):
    scores = np.zeros((1, 5000))
    scores[0, column] = 1.0
    indices, _ = top_columns(scores, 4)
    assert indices[0].tolist() == [column, *[i for i in range(5) if i != column][:3]]


def test_high_scores_in_the_last_columns_are_found():
    scores = -np.arange(1.0, 4001.0)[None, :]
    scores[0, -3:] = -1.0
    indices, _ = top_columns(scores, 4)
    assert indices[0].tolist() == [0, 3997, 3998, 3999]
