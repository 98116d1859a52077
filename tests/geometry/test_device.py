"""Search and ranks on a device are those of the host, whatever the block: on the processor, and on a GPU."""

from __future__ import annotations

import numpy as np
import pytest

from equipoise.errors import MissingExtraError, UnknownNameError
from equipoise.evidence.ranking import Ranking
from equipoise.geometry.gpu_search import nearest_neighbors_gpu, top_k_gpu, torch_device
from equipoise.geometry.search import nearest_neighbors

pytestmark = pytest.mark.engines("torch")


@pytest.fixture(params=["cpu", "cuda"])
def device(request: pytest.FixtureRequest) -> str:
    if request.param == "cuda" and not pytest.importorskip("torch").cuda.is_available():
        pytest.skip("no GPU")
    return str(request.param)


GEOMETRIES = ["cosine", "dot", "euclidean", "poincare", "lorentz"]


def points(geometry: str, count: int, seed: int, dims: int = 6) -> np.ndarray:
    """Points that are valid in the geometry, a few of them twice."""
    rng = np.random.default_rng(seed)
    found = rng.normal(size=(count, dims)) * 0.3
    if geometry == "poincare":
        found /= 1.0 + np.linalg.norm(found, axis=1, keepdims=True)
    if geometry == "lorentz":
        found = np.concatenate([np.sqrt(1 + (found**2).sum(1, keepdims=True)), found], axis=1)
    found[1::7] = found[0]
    return found


@pytest.mark.parametrize("geometry", GEOMETRIES)
@pytest.mark.parametrize("block_bytes", [None, 1, 5000])
def test_the_nearest_are_those_of_the_host(device: str, geometry: str, block_bytes: int | None) -> None:
    queries, corpus = points(geometry, 23, 1), points(geometry, 90, 2)
    mine = nearest_neighbors_gpu(queries, corpus, 12, geometry=geometry, device=device, block_bytes=block_bytes)
    hosts = nearest_neighbors(queries, corpus, 12, geometry=geometry)
    np.testing.assert_array_equal(mine.indices, hosts.indices)
    np.testing.assert_allclose(mine.scores, hosts.scores, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("geometry", GEOMETRIES)
@pytest.mark.parametrize("block_bytes", [None, 1, 5000])
def test_ranks_are_those_of_the_host(device: str, geometry: str, block_bytes: int | None) -> None:
    corpus = points(geometry, 90, 3)
    rng = np.random.default_rng(4)
    relevant = [sorted({int(integer) for integer in rng.integers(0, 90, 1 + unit % 40)} - {unit}) for unit in range(90)]
    options = {"geometry": geometry, "exclude": np.arange(90)}
    mine = Ranking.from_embeddings(corpus, corpus, relevant, device=device, block_bytes=block_bytes, **options)
    hosts = Ranking.from_embeddings(corpus, corpus, relevant, **options)
    for column in ("above", "tied", "before", "gain", "candidates"):
        np.testing.assert_array_equal(getattr(mine, column), getattr(hosts, column))


def test_equal_scores_at_the_end_of_the_list_are_taken_in_the_order_of_their_rows() -> None:
    found = nearest_neighbors_gpu(np.ones((1, 2)), np.ones((9, 2)), 4, device="cpu")
    assert found.indices.tolist() == [[0, 1, 2, 3]]


@pytest.mark.parametrize("values", ["distinct", "few", "equal"])
@pytest.mark.parametrize("columns", [512, 530, 1000])
def test_the_best_of_groups_are_the_best_of_all(columns: int, values: str) -> None:
    rng = np.random.default_rng(columns)
    scores = {
        "distinct": rng.normal(size=(9, columns)),
        "few": rng.integers(0, 40, (9, columns)).astype(float),
        "equal": np.zeros((9, columns)),
    }[values]
    torch = pytest.importorskip("torch")
    indices, found = top_k_gpu(torch.as_tensor(scores), 2)
    order = np.argsort(-scores, axis=1, kind="stable")[:, :2]
    np.testing.assert_array_equal(indices.numpy(), order)
    np.testing.assert_array_equal(found.numpy(), np.take_along_axis(scores, order, axis=1))


@pytest.mark.parametrize("precision", ["tf32", "bf16"])
def test_coarser_products_are_near_the_full_ones(precision: str) -> None:
    queries, corpus = (points("cosine", size, 5).astype(np.float32) for size in (7, 40))
    mine = nearest_neighbors_gpu(queries, corpus, 40, device="cpu", precision=precision)
    hosts = nearest_neighbors(queries, corpus, 40)
    np.testing.assert_allclose(mine.scores, hosts.scores, atol=0.02)


def test_a_device_that_is_not_there_is_named() -> None:
    with pytest.raises(MissingExtraError, match="no device cuda:99"):
        torch_device("cuda:99")
    with pytest.raises(UnknownNameError, match="device"):
        torch_device("coda")
