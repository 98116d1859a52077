"""Prefilter bounds include every exact score, and the prefiltered search equals the exact search."""

from __future__ import annotations

import numpy as np
import pytest

from equipoise.geometry.gpu_search import GpuSearch, has_cuda_device, nearest_neighbors_gpu, top_k_gpu

pytestmark = pytest.mark.engines("torch")

GEOMETRIES = ["cosine", "dot", "euclidean", "poincare", "lorentz"]


def sample_points(geometry: str, count: int, seed: int, dims: int) -> np.ndarray:
    """Valid points of the geometry with norms of several orders of magnitude; some rows are repeated."""
    rng = np.random.default_rng(seed)
    rows = (rng.normal(size=(count, dims)) * 10.0 ** rng.uniform(-2, 0, size=(count, 1))).astype(np.float32)
    if geometry == "poincare":
        rows /= 1.0 + np.linalg.norm(rows, axis=1, keepdims=True)
    if geometry == "lorentz":
        rows = rows.astype(np.float64)
        rows = np.concatenate([np.sqrt(1 + (rows**2).sum(1, keepdims=True)), rows], axis=1)
    rows[5 : count // 2 : 7] = rows[3]
    return rows


@pytest.mark.parametrize("geometry", GEOMETRIES)
@pytest.mark.parametrize("dims", [3, 70])
def test_bounds_enclose_every_exact_score(geometry: str, dims: int) -> None:
    from equipoise.geometry.gpu_prefilter import ABSENT, BLOCK, PrefilteredCorpus

    search, queries = GpuSearch.of(
        sample_points(geometry, 9, 1, dims), sample_points(geometry, 700, 2, dims), geometry, "cpu", "full"
    )
    prefiltered = PrefilteredCorpus.of(search.corpus, queries)
    half, wide = prefiltered.scaled_queries(queries)
    products = half.double() @ prefiltered.half.double().T + wide.double().T @ prefiltered.wide.double()
    bounds = (products + prefiltered.upper)[: len(queries)].numpy()
    n_blocks = len(prefiltered.half) // BLOCK
    position = np.arange(len(prefiltered.half))
    row = position // BLOCK + (position % BLOCK) * n_blocks
    present = row < len(search.corpus)
    assert sorted(row[present]) == list(range(len(search.corpus)))
    assert (bounds[:, ~present] <= 0.5 * ABSENT).all()
    # The scores in the scale of the bounds, without the terms common to all points of a query.
    columns = [*prefiltered.columns.tolist(), *prefiltered.wide_columns.tolist()]
    exact = queries[:, columns].double() @ search.corpus[:, columns].double().T
    wide_points = search.corpus[:, prefiltered.wide_columns].double()
    if len(prefiltered.wide) < len(prefiltered.wide_columns):  # merged: the second is the first plus a constant
        constant = (wide_points[:, 1] - prefiltered.wide_weights[0, 1] * wide_points[:, 0]).mean()
        exact -= constant * queries[:, prefiltered.wide_columns[1]].double()[:, None]
    scaled = exact * prefiltered.query_factors(queries)[:, None] * _corpus_factor(search.corpus, prefiltered)
    scaled = scaled.numpy()[:, row[present]]
    slack = prefiltered.slack.numpy()[position // BLOCK][present]
    assert (bounds[:, present] >= scaled).all()
    assert (bounds[:, present] - slack <= scaled).all()


def _corpus_factor(corpus: object, prefiltered: object) -> float:
    from equipoise.geometry.gpu_prefilter import _norms, _power_of_two

    return _power_of_two(_norms(corpus, prefiltered.columns))


@pytest.mark.parametrize("geometry", ["euclidean", "poincare", "lorentz"])
def test_columns_of_squared_norms_are_not_rounded_to_float16(geometry: str) -> None:
    from equipoise.geometry.gpu_prefilter import PrefilteredCorpus

    search, queries = GpuSearch.of(
        sample_points(geometry, 9, 1, 70), sample_points(geometry, 700, 2, 70), geometry, "cpu", "full"
    )
    prefiltered = PrefilteredCorpus.of(search.corpus, queries)
    expected = {"euclidean": [70], "poincare": [70, 71], "lorentz": [0]}
    assert prefiltered.wide_columns.tolist() == expected[geometry]
    assert len(prefiltered.wide) == 1


def test_tied_scores_are_in_the_order_of_their_points() -> None:
    import torch

    from equipoise.geometry.gpu_prefilter import top_candidates

    rng = np.random.default_rng(0)
    scores = rng.integers(0, 6, (50, 20)).astype(np.float64)
    candidates = np.array([rng.permutation(100)[:20] for _ in range(50)])
    expected = [np.lexsort((row, -values))[:7] for row, values in zip(candidates, scores, strict=True)]
    rows, best = top_candidates(torch.as_tensor(candidates), torch.as_tensor(scores), 7)
    np.testing.assert_array_equal(rows, np.take_along_axis(candidates, np.array(expected), 1))
    np.testing.assert_array_equal(best, np.take_along_axis(scores, np.array(expected), 1))


@pytest.mark.skipif(not has_cuda_device(), reason="no GPU")
@pytest.mark.parametrize("geometry", GEOMETRIES)
@pytest.mark.parametrize("k", [1, 10, 300])
def test_the_prefiltered_search_equals_the_exact_search(geometry: str, k: int) -> None:
    queries, corpus = sample_points(geometry, 130, 1, 48), sample_points(geometry, 100_000, 2, 48)
    nearest = nearest_neighbors_gpu(queries, corpus, k, geometry=geometry)
    search, query_rows = GpuSearch.of(queries, corpus, geometry, "cuda", "full")
    for query_slice, block in search.blocks(query_rows):
        indices, scores = (values.cpu().numpy() for values in top_k_gpu(block, k))
        tolerance = 1e-6 * max(1.0, float(np.abs(scores).max()))
        np.testing.assert_allclose(nearest.scores[query_slice], scores, rtol=0, atol=tolerance)
        differs = nearest.indices[query_slice] != indices
        # Other points are returned only where scores are equal to rounding.
        assert np.abs(nearest.scores[query_slice] - scores)[differs].max(initial=0.0) <= tolerance
