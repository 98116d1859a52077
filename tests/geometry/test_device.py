"""Search and ranks on a device equal those of the host for every block size, on a CPU and on a GPU."""

from __future__ import annotations

import numpy as np
import pytest

from equipoise.errors import MissingExtraError, UnknownNameError
from equipoise.evidence.ranking import Ranking
from equipoise.geometry import gpu_search
from equipoise.geometry.gpu_search import nearest_neighbors_gpu, top_k_gpu, torch_device
from equipoise.geometry.search import nearest_neighbors

pytestmark = pytest.mark.engines("torch")


@pytest.fixture(params=["cpu", "cuda"])
def device(request: pytest.FixtureRequest) -> str:
    if request.param == "cuda" and not pytest.importorskip("torch").cuda.is_available():
        pytest.skip("no GPU")
    return str(request.param)


GEOMETRIES = ["cosine", "dot", "euclidean", "poincare", "lorentz"]


def sample_points(geometry: str, count: int, seed: int, dims: int = 6) -> np.ndarray:
    """Valid points of the geometry; some rows are repeated."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(count, dims)) * 0.3
    if geometry == "poincare":
        rows /= 1.0 + np.linalg.norm(rows, axis=1, keepdims=True)
    if geometry == "lorentz":
        rows = np.concatenate([np.sqrt(1 + (rows**2).sum(1, keepdims=True)), rows], axis=1)
    rows[1::7] = rows[0]
    return rows


@pytest.mark.parametrize("geometry", GEOMETRIES)
@pytest.mark.parametrize("block_bytes", [None, 1, 5000])
def test_nearest_neighbours_equal_those_of_the_host(device: str, geometry: str, block_bytes: int | None) -> None:
    queries, corpus = sample_points(geometry, 23, 1), sample_points(geometry, 90, 2)
    on_device = nearest_neighbors_gpu(queries, corpus, 12, geometry=geometry, device=device, block_bytes=block_bytes)
    on_host = nearest_neighbors(queries, corpus, 12, geometry=geometry)
    np.testing.assert_array_equal(on_device.indices, on_host.indices)
    np.testing.assert_allclose(on_device.scores, on_host.scores, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("geometry", GEOMETRIES)
@pytest.mark.parametrize("block_size", [None, 1, 7])
def test_ranks_equal_those_of_the_host(
    device: str, geometry: str, block_size: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if block_size is not None:
        monkeypatch.setattr(gpu_search, "block_rows", lambda corpus, total, block_bytes: block_size)
    corpus = sample_points(geometry, 90, 3)
    rng = np.random.default_rng(4)
    relevant = [sorted({int(row) for row in rng.integers(0, 90, 1 + unit % 40)} - {unit}) for unit in range(90)]
    options = {"geometry": geometry, "exclude": np.arange(90)}
    on_device = Ranking.from_embeddings(corpus, corpus, relevant, device=device, **options)
    on_host = Ranking.from_embeddings(corpus, corpus, relevant, **options)
    for column in ("above", "tied", "before", "gain", "candidates"):
        np.testing.assert_array_equal(getattr(on_device, column), getattr(on_host, column))


def test_scores_tied_at_the_cutoff_are_in_row_order() -> None:
    neighbours = nearest_neighbors_gpu(np.ones((1, 2)), np.ones((9, 2)), 4, device="cpu")
    assert neighbours.indices.tolist() == [[0, 1, 2, 3]]


@pytest.mark.parametrize("values", ["distinct", "few", "equal"])
@pytest.mark.parametrize("columns", [512, 530, 1000])
def test_grouped_top_k_equals_a_full_sort(columns: int, values: str) -> None:
    rng = np.random.default_rng(columns)
    scores = {
        "distinct": rng.normal(size=(9, columns)),
        "few": rng.integers(0, 40, (9, columns)).astype(float),
        "equal": np.zeros((9, columns)),
    }[values]
    torch = pytest.importorskip("torch")
    indices, best_scores = top_k_gpu(torch.as_tensor(scores), 2)
    order = np.argsort(-scores, axis=1, kind="stable")[:, :2]
    np.testing.assert_array_equal(indices.numpy(), order)
    np.testing.assert_array_equal(best_scores.numpy(), np.take_along_axis(scores, order, axis=1))


@pytest.mark.parametrize("precision", ["tf32", "bf16"])
def test_scores_of_lower_precision_are_close_to_full_precision(precision: str) -> None:
    queries, corpus = (sample_points("cosine", size, 5).astype(np.float32) for size in (7, 40))
    on_device = nearest_neighbors_gpu(queries, corpus, 40, device="cpu", precision=precision)
    on_host = nearest_neighbors(queries, corpus, 40)
    np.testing.assert_allclose(on_device.scores, on_host.scores, atol=0.02)


def test_missing_and_unknown_devices_raise_errors() -> None:
    with pytest.raises(MissingExtraError, match="no device cuda:99"):
        torch_device("cuda:99")
    with pytest.raises(UnknownNameError, match="device"):
        torch_device("coda")
