"""Exact search on a GPU: blocks of queries against the full corpus.

The size of a block depends on the free memory of the device. Only results are copied to the host. Products have
the precision of the points; a lower precision must be requested by name.
"""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from equipoise.errors import MissingExtraError, ParameterError, UnknownNameError
from equipoise.geometry.gpu_prefilter import PrefilteredCorpus, supports_prefilter
from equipoise.geometry.search import Neighbors, check_vectors, find_duplicate_rows
from equipoise.types import Ints, require_extra

if TYPE_CHECKING:
    from equipoise.geometry.base import Geometry

PRECISIONS = ("full", "tf32", "bf16")
"""Of the products: as the points are; 10 bits of fraction in each factor; 7 bits."""

MEMORY_FRACTION = 0.4
"""The share of the free memory for a block of scores: comparing and selecting need as much again."""

DEVICE_TYPES = ("cuda", "mps", "xpu", "cpu")
"""Kinds of devices that hold numbers; torch has names for others that do not."""

_GROUP = 64
"""Adjacent columns that are represented by their largest score."""

_ROWS_PER_COPY = 1 << 18

_HOST_BYTES = 1 << 29
"""Bytes of a block if the device is the CPU."""


def torch_device(name: Any) -> Any:
    """The device with this name; an error if there is none."""
    check_device_name(name)
    torch = require_extra("torch", extra="torch")
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise _unknown(name) from error
    if device.type not in DEVICE_TYPES:
        raise _unknown(name)
    available = {
        "cuda": lambda: torch.cuda.is_available() and (device.index or 0) < torch.cuda.device_count(),
        "mps": torch.backends.mps.is_available,
        "xpu": torch.xpu.is_available,
    }
    if not available.get(device.type, lambda: True)():
        raise MissingExtraError(f"there is no device {device}", hint="leave --device out, or give cpu")
    return device


@lru_cache(maxsize=1)
def has_cuda_device() -> bool:
    """Whether the CUDA driver reports a device that this process may use; torch is not imported to find out."""
    if os.environ.get("CUDA_VISIBLE_DEVICES", "0").strip() in ("", "-1"):
        return False
    try:
        driver = ctypes.CDLL("nvcuda.dll" if os.name == "nt" else "libcuda.so.1")
    except OSError:
        return False
    count = ctypes.c_int(0)
    return driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0 and count.value > 0


def check_device_name(name: Any) -> None:
    """Raise an error for a string that names no device; torch is not needed for that."""
    if isinstance(name, str) and not re.fullmatch(rf"({'|'.join(DEVICE_TYPES)})(:\d+)?", name):
        raise _unknown(name)


def _unknown(name: Any) -> UnknownNameError:
    # No name that is near: "gpu" is near "cpu".
    return UnknownNameError(f"no device is called {str(name)!r}", hint="write cuda, cuda:1, mps or cpu")


@dataclass(frozen=True)
class GpuSearch:
    """A prepared corpus on a device; copies of a point take the score of the first.

    ``position`` gives the distinct point of each corpus row.
    """

    geometry: Geometry
    corpus: Any
    position: Any
    total: int
    precision: str = "full"

    @classmethod
    def of(
        cls, queries: ArrayLike, corpus: ArrayLike, geometry: str | Geometry, device: Any, precision: str
    ) -> tuple[GpuSearch, Any]:
        """The prepared corpus and the prepared queries on the device."""
        if precision not in PRECISIONS:
            raise UnknownNameError.of("precision", precision, PRECISIONS)
        torch_target = torch_device(device)
        import torch

        space, left, right = check_vectors(queries, corpus, geometry)
        copies = find_duplicate_rows(right)
        distinct = copies.distinct
        prepared = space.prepare_corpus(right)
        rows = prepared.rows if prepared.scale is None else prepared.rows * prepared.scale[:, None]
        unique_rows = _padded_tensor(rows[distinct], torch_target)
        position = None
        if len(distinct) < len(right):
            number = np.zeros(len(right), dtype=np.int64)
            number[distinct] = np.arange(len(distinct))
            position = torch.as_tensor(number[copies.first], device=torch_target)
        search = cls(space, unique_rows, position, len(right), precision)
        return search, _padded_tensor(space.prepare_queries(left), torch_target)

    def prefiltered_nearest(self, queries: Any, indices: Any, scores: Any) -> Any:
        """Fill in the nearest points by the prefiltered search where it applies; returns the queries left to do.

        None is every query: a lower precision was requested, or the device or the corpus does not allow a prefilter.
        """
        k = indices.shape[1]
        if self.precision != "full" or not len(queries) or not supports_prefilter(self.corpus, k):
            return None
        points = self.corpus if self.position is None else self.corpus[self.position]
        indices[:], scores[:], todo = PrefilteredCorpus.of(points, queries).nearest(queries, k)
        return todo

    def blocks(self, queries: Any, block_bytes: int | None = None) -> Iterator[tuple[slice, Any]]:
        """Rows of queries with their scores against every corpus row, higher is nearer; on the device."""
        rows = block_rows(self.corpus, self.total, block_bytes)
        corpus = self.corpus.bfloat16() if self.precision == "bf16" else self.corpus
        with _products(self.precision):
            for start in range(0, len(queries), rows):
                part = slice(start, min(start + rows, len(queries)))
                scores = _product(queries[part].to(corpus.dtype), corpus, self.corpus.dtype)
                yield part, scores if self.position is None else scores[:, self.position]


def _padded_tensor(rows: Any, device: Any) -> Any:
    """The rows on the device, with zeros up to a multiple of 16 bytes: kernels read aligned rows faster."""
    import torch

    count, dim = rows.shape
    dtype, multiple = torch.as_tensor(rows[:0]).dtype, max(1, 16 // rows.dtype.itemsize)
    padded = torch.zeros((count, -(-dim // multiple) * multiple), dtype=dtype, device=device)
    for start in range(0, count, _ROWS_PER_COPY):
        part = slice(start, start + _ROWS_PER_COPY)
        padded[part, :dim] = torch.as_tensor(np.ascontiguousarray(rows[part]), device=device)
    return padded


def _product(left: Any, right: Any, dtype: Any) -> Any:
    """The scores in the type of the points; coarse factors are added up in 32 bits where possible."""
    import torch

    if left.dtype == dtype:
        return left @ right.T
    if left.is_cuda and dtype == torch.float32:
        return torch.mm(left, right.T, out_dtype=dtype)
    return (left @ right.T).to(dtype)


def block_rows(corpus: Any, total: int, block_bytes: int | None) -> int:
    """The number of queries whose scores fit into the free memory of the device, at least one."""
    if block_bytes is not None and block_bytes < 1:
        raise ParameterError(f"block_bytes is {block_bytes}; it must be 1 or more")
    memory = block_bytes or int(MEMORY_FRACTION * free_bytes(corpus.device))
    return max(1, memory // max(1, total * corpus.element_size()))


def free_bytes(device: Any) -> int:
    """The free memory of a device; a small part of it if the device shares the memory of the host."""
    import torch

    return int(torch.cuda.mem_get_info(device)[0]) if device.type == "cuda" else _HOST_BYTES


def nearest_neighbors_gpu(
    queries: ArrayLike,
    corpus: ArrayLike,
    k: int,
    *,
    geometry: str | Geometry = "cosine",
    device: Any = "cuda",
    precision: str = "full",
    block_bytes: int | None = None,
) -> Neighbors:
    """The k nearest corpus points of every query, as ``search.nearest`` gives them, found on a device.

    Scores agree with the host's to rounding: the product there adds in another order.
    """
    import torch

    if k < 1:
        raise ParameterError(f"k is {k}; it must be 1 or more")
    search, left = GpuSearch.of(queries, corpus, geometry, device, precision)
    k = min(k, search.total)
    indices = torch.empty((len(left), k), dtype=torch.int64, device=left.device)
    scores = torch.empty((len(left), k), dtype=left.dtype, device=left.device)
    todo = search.prefiltered_nearest(left, indices, scores)
    for part, block in search.blocks(left if todo is None else left[todo], block_bytes):
        rows = part if todo is None else todo[part]
        indices[rows], scores[rows] = top_k_gpu(block, k)
    return Neighbors(_host(indices), _host(scores))


def top_k_gpu(block: Any, k: int) -> tuple[Any, Any]:
    """The k largest of each row; equal ones in the order of their columns, also at the end of the list.

    The k largest are in the k groups of neighbouring columns that have the largest maxima. One pass over
    all scores finds these groups, and only their scores are selected from.
    """
    import torch

    groups = block.shape[1] // _GROUP
    if groups < 4 * k:
        return _from_whole_rows(block, k)
    body = block[:, : groups * _GROUP].unflatten(1, (groups, _GROUP))
    peaks = body.amax(dim=2)
    top_groups = torch.topk(peaks, k, dim=1).indices.sort(dim=1).values
    lane = torch.arange(_GROUP, device=block.device)
    chosen = body.gather(1, top_groups[:, :, None].expand(-1, -1, _GROUP)).flatten(1)
    columns = (top_groups[:, :, None] * _GROUP + lane).flatten(1)
    remainder = torch.arange(groups * _GROUP, block.shape[1], device=block.device)
    chosen = torch.cat([chosen, block[:, groups * _GROUP :]], dim=1)
    columns = torch.cat([columns, remainder.expand(len(block), -1)], dim=1)
    positions, scores = _sorted_top_k(chosen, k)
    indices = columns.gather(1, positions)
    least = scores[:, -1:]
    has_ties = ((chosen >= least).sum(dim=1) > k) | ((peaks >= least).sum(dim=1) > k)
    rows = torch.nonzero(has_ties)[:, 0]
    if len(rows):
        indices[rows], scores[rows] = _sorted_whole(block[rows], k)
    return indices, scores


def _from_whole_rows(block: Any, k: int) -> tuple[Any, Any]:
    import torch

    indices, scores = _sorted_top_k(block, k)
    rows = torch.nonzero((block >= scores[:, -1:]).sum(dim=1) > k)[:, 0]
    if len(rows):
        indices[rows], scores[rows] = _sorted_whole(block[rows], k)
    return indices, scores


def _sorted_top_k(block: Any, k: int) -> tuple[Any, Any]:
    """The k largest, best first; which of those that equal the last are taken is arbitrary."""
    import torch

    scores, indices = torch.topk(block, k, dim=1)
    # By columns first, so that the stable order by score keeps that of the columns among equals.
    indices, order = indices.sort(dim=1)
    scores, again = scores.gather(1, order).sort(dim=1, descending=True, stable=True)
    return indices.gather(1, again), scores


def _sorted_whole(block: Any, k: int) -> tuple[Any, Any]:
    scores, columns = block.sort(dim=1, descending=True, stable=True)
    return columns[:, :k], scores[:, :k]


def _host(values: Any) -> Any:
    return values.cpu().numpy()


@contextmanager
def _products(precision: str) -> Iterator[None]:
    """Matrix products without reduced precision, unless requested; restores the setting afterwards."""
    import torch

    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def index_tensor(values: Ints, device: Any) -> Any:
    """Integers as a tensor on the device."""
    import torch

    return torch.as_tensor(values, device=device)
