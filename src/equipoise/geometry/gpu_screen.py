"""Exact top-k search on a CUDA device: screen on tensor cores in float16, then score the survivors exactly.

A float16 product has a known error bound, so it gives an upper bound of every score. One kernel computes the
bounds of all pairs and stores only the largest of each group of 2 points and of each block of 64: the matrix of
scores is never written. With ``T``, the k-th largest lower bound, a group whose upper bound is below ``T`` holds
none of the k nearest. The few remaining groups are scored in the precision of the points.

Measured on an H200 for 10k x 1M x 384 float32 (benchmarks/gpu.md): 23 ms for k = 100 and 33 ms for k = 1000, of which
the bounds take 18 and scoring 1 and 7. Groups of 8 points store a quarter of the bounds and score four times as many
points: 24 and 52 ms.

Points of a block are ``n / 64`` rows apart, so that neighbouring rows, which are often similar, are in different
blocks. Queries with too many survivors (many equal scores, or points whose norms differ by orders of magnitude)
are left to the full product.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import frexp, sqrt
from typing import Any

try:  # installed with torch for CUDA
    import triton  # type: ignore[import-not-found, import-untyped, unused-ignore]
    import triton.language as tl  # type: ignore[import-not-found, import-untyped, unused-ignore]
except ImportError:
    triton = None

GROUP, BLOCK = 2, 64
"""Points of one stored bound, and of one bound that the threshold is chosen from."""

MIN_BLOCKS_PER_K = 4
"""With fewer blocks than this times k, the k-th best block says little about the k-th best point."""

MEMORY_FRACTION = 0.3
"""Of the free memory of the device that the bounds of one pass may take."""

_TILE_ROWS, _TILE_COLUMNS, _TILE_DEPTH = 128, 256, 64
_ROWS_AT_ONCE = 1 << 18
_SUM_WIDTH = 128
_MAX_CONSTANT_COLUMNS = 4
_HALF, _HALF_SUBNORMAL = 2.0**-11, 2.0**-25
"""The largest rounding errors of float16: relative, and absolute for very small numbers."""


def supports_screen(corpus: Any, k: int) -> bool:
    """Whether the corpus is on a CUDA device with Triton, and large enough for the number of neighbors."""
    if triton is None or not corpus.is_cuda or len(corpus) < MIN_BLOCKS_PER_K * k * BLOCK:
        return False
    import torch

    free, _ = torch.cuda.mem_get_info(corpus.device)
    return free > 3 * corpus.nelement() + 64 * len(corpus)


@dataclass(frozen=True)
class ScreenedCorpus:
    """The corpus twice: as prepared for the product, and in float16 with the error bound of every point.

    ``upper`` is what the product lacks to be an upper bound: the error, and what does not depend on the query.
    ``slack`` is twice the largest error in each block: what an upper bound exceeds the score by, at most.
    """

    points: Any
    half: Any
    upper: Any
    slack: Any
    columns: Any
    """The columns that are multiplied; the others are the same for all queries or for all points."""
    query_factor: float | None
    """The factor of all queries; None scales each query by itself."""

    @classmethod
    def of(cls, points: Any, queries: Any) -> ScreenedCorpus:
        """Prepare a corpus for these queries: they decide which columns are constant, and the scale."""
        import torch

        constant, columns = _constant_columns(points, queries)
        query_factor = _power_of_two(_norms(queries, columns)) if bool(constant.any()) else None
        norms = _norms(points, columns)
        factor = _power_of_two(norms)
        added = factor * (query_factor or 1.0)
        offset = (points @ constant * added).float()
        depth = -(-max(1, len(columns)) // _TILE_DEPTH) * _TILE_DEPTH
        error = _screening_error((norms * factor).float(), depth) + 2.0**-20 * (points.abs() @ constant.abs() * added)
        error = (error + _scoring_error(points, queries, columns, factor, query_factor)).float()
        layout = _strided_layout(len(points), points.device)
        half = torch.zeros((len(layout), depth), dtype=torch.float16, device=points.device)
        for start in range(0, len(layout), _ROWS_AT_ONCE):
            part = slice(start, start + _ROWS_AT_ONCE)
            rows = points[layout[part].clamp(max=len(points) - 1)]
            half[part, : len(columns)] = (rows[:, columns] * factor).half()
        present = layout < len(points)
        rows = torch.where(present, layout, 0)
        upper = torch.where(present, (offset + error)[rows], float("-inf"))
        slack = 2 * torch.where(present, error[rows], 0).view(-1, BLOCK).amax(dim=1)
        return cls(points, half, upper, slack, columns, query_factor)

    def nearest(self, queries: Any, k: int) -> tuple[Any, Any, Any]:
        """The k nearest rows of each query with their scores, best first, and which queries are left to do."""
        import torch

        rows = torch.empty((len(queries), k), dtype=torch.int64, device=queries.device)
        scores = torch.empty((len(queries), k), dtype=queries.dtype, device=queries.device)
        open_queries = torch.zeros(len(queries), dtype=torch.bool, device=queries.device)
        step = self._queries_per_pass()
        for start in range(0, len(queries), step):
            part = slice(start, start + step)
            rows[part], scores[part], open_queries[part] = self._pass(queries[part], k)
        return rows, scores, torch.nonzero(open_queries)[:, 0]

    def _queries_per_pass(self) -> int:
        import torch

        room = MEMORY_FRACTION * torch.cuda.mem_get_info(self.half.device)[0]
        bounds = len(self.half) // GROUP + 2 * len(self.half) // BLOCK
        return max(_TILE_ROWS, int(room / (4 * bounds)) // _TILE_ROWS * _TILE_ROWS)

    def _pass(self, queries: Any, k: int) -> tuple[Any, Any, Any]:
        import torch

        groups, blocks = self._bounds(queries)
        threshold = torch.topk(blocks - self.slack, k, dim=1, sorted=False).values.amin(dim=1)
        capacity = -(-(2 * k + 128) // 64) * 64
        survivors, counts = _survivors(groups, blocks, threshold, capacity)
        overflow = counts > capacity
        width = max(k // GROUP + 1, min(capacity, int(counts.amax())))
        candidates, scores = self._score(queries, survivors[:, :width], torch.where(overflow, 0, counts))
        rows, best = top_candidates(candidates, scores, k)
        return rows, best, overflow

    def _bounds(self, queries: Any) -> tuple[Any, Any]:
        """Upper bounds of the scaled scores: the largest of each group and of each block, one row per query."""
        import torch

        count, depth = len(queries), self.half.shape[1]
        padded = -(-count // _TILE_ROWS) * _TILE_ROWS
        left = torch.zeros((padded, depth), dtype=torch.float16, device=queries.device)
        left[:count, : len(self.columns)] = (queries * self._factors(queries))[:, self.columns].half()
        n_groups, n_blocks = len(self.half) // GROUP, len(self.half) // BLOCK
        groups = torch.empty((padded, n_groups), dtype=torch.float32, device=queries.device)
        blocks = torch.empty((padded, n_blocks), dtype=torch.float32, device=queries.device)
        tiles = padded // _TILE_ROWS
        _screen[(tiles * (len(self.half) // _TILE_COLUMNS),)](
            left,
            self.half,
            self.upper,
            groups,
            blocks,
            tiles,
            n_groups,
            n_blocks,
            DEPTH=depth,
            GROUP=GROUP,
            ROWS=_TILE_ROWS,
            COLUMNS=_TILE_COLUMNS,
            STEP=_TILE_DEPTH,
            num_warps=8,
            num_stages=3,
        )
        return groups[:count], blocks[:count]

    def _factors(self, queries: Any) -> Any:
        """The factor that gives a query a norm of at most 1; a positive factor does not change its order of points."""
        if self.query_factor is not None:
            return self.query_factor
        return _query_factors(_norms(queries, self.columns))[:, None]

    def _score(self, queries: Any, survivors: Any, counts: Any) -> tuple[Any, Any]:
        """The rows of all points in the surviving groups, and their scores in the precision of the points."""
        import torch

        count, width = survivors.shape
        candidates = torch.empty((count, width * GROUP), dtype=torch.int64, device=queries.device)
        scores = torch.empty((count, width * GROUP), dtype=queries.dtype, device=queries.device)
        per_program = 64 // GROUP
        _score_groups[(count, -(-width // per_program))](
            queries,
            self.points,
            survivors,
            counts,
            candidates,
            scores,
            len(self.points),
            len(self.half) // BLOCK,
            queries.shape[1],
            survivors.stride(0),
            width,
            DEPTH=_SUM_WIDTH,
            GROUP=GROUP,
            GROUPS=per_program,
            WIDE=queries.dtype == torch.float64,
            num_warps=4,
        )
        return candidates, scores


def _constant_columns(points: Any, queries: Any) -> tuple[Any, Any]:
    """The queries' values in columns that are the same for all of them (0 elsewhere), and the columns to multiply.

    Distances put the squares of the norms in such columns; in float16 they would dominate the error bound.
    """
    import torch

    same_queries = (queries == queries[:1]).all(dim=0)
    if int(same_queries.sum()) > _MAX_CONSTANT_COLUMNS:
        same_queries = torch.zeros_like(same_queries)
    same_points = (points == points[:1]).all(dim=0)
    return torch.where(same_queries, queries[0], 0), torch.nonzero(~same_queries & ~same_points)[:, 0]


def _norms(rows: Any, columns: Any) -> Any:
    import torch

    parts = rows.split(_ROWS_AT_ONCE)
    return torch.cat([torch.linalg.vector_norm(part[:, columns], dim=1) for part in parts])


def _power_of_two(norms: Any) -> float:
    """The factor that scales the largest norm to between 1/2 and 1."""
    largest = float(norms.amax())
    return 2.0 ** -frexp(largest)[1] if largest > 0 else 1.0


def _query_factors(norms: Any) -> Any:
    import torch

    return torch.ldexp(torch.ones_like(norms), -torch.frexp(norms).exponent)


def _screening_error(norms: Any, depth: int) -> Any:
    """The largest error of a product in float16 with a query of norm at most 1."""
    # Both factors are rounded once; sums in float32 may lose a few units in the last place per term.
    relative = 2 * _HALF + _HALF**2 + depth * 2.0**-22
    return relative * norms + 2 * sqrt(depth) * _HALF_SUBNORMAL * (1 + norms)


def _scoring_error(points: Any, queries: Any, columns: Any, factor: float, query_factor: float | None) -> Any:
    """The largest error of the scores in the precision of the points, in the scale of the bounds.

    Sums are made in parts of ``_SUM_WIDTH`` terms, each as a tree. Columns that are not multiplied in the screen
    are bounded by themselves: the square of a norm next to ones would spoil a bound of the whole rows.
    """
    import torch

    factors = query_factor or _query_factors(_norms(queries, columns))
    rest = torch.ones(points.shape[1], dtype=torch.bool, device=points.device)
    rest[columns] = False
    terms = _norms(points, columns) * float((_norms(queries, columns) * factors).amax())
    for column in torch.nonzero(rest)[:, 0].tolist():
        terms = terms + points[:, column].abs() * float((queries[:, column].abs() * factors).amax())
    additions = _SUM_WIDTH.bit_length() + -(-points.shape[1] // _SUM_WIDTH) + 2
    return 2 * additions * torch.finfo(points.dtype).eps * factor * terms


def _strided_layout(count: int, device: Any) -> Any:
    """The row at each position: blocks of 64 rows that are as far apart as possible; ``count`` or more is no row."""
    import torch

    per_tile = _TILE_COLUMNS // BLOCK
    blocks = -(-count // _TILE_COLUMNS) * per_tile
    return (torch.arange(BLOCK, device=device) * blocks + torch.arange(blocks, device=device)[:, None]).flatten()


def _survivors(groups: Any, blocks: Any, threshold: Any, capacity: int) -> tuple[Any, Any]:
    """For each query the groups whose bound reaches the threshold, at most ``capacity``, and how many there are."""
    import torch

    count = len(groups)
    kept_blocks = torch.empty((count, capacity), dtype=torch.int32, device=groups.device)
    survivors = torch.zeros((count, capacity), dtype=torch.int32, device=groups.device)
    counts = torch.empty(count, dtype=torch.int32, device=groups.device)
    _select[(count,)](
        groups,
        blocks,
        threshold,
        kept_blocks,
        survivors,
        counts,
        groups.stride(0),
        blocks.stride(0),
        blocks.shape[1],
        capacity,
        STEP=1024,
        BLOCKS=8 * GROUP,
        PER_BLOCK=BLOCK // GROUP,
        num_warps=4,
    )
    return survivors, counts


def top_candidates(candidates: Any, scores: Any, k: int) -> tuple[Any, Any]:
    """The k best candidates of each row, best first; equal scores in the order of their points."""
    import torch

    best, places = torch.topk(scores, k, dim=1)
    rows = candidates.gather(1, places)
    rows, order = rows.sort(dim=1)
    best, order = best.gather(1, order).sort(dim=1, descending=True, stable=True)
    rows = rows.gather(1, order)
    crowded = torch.nonzero((scores >= best[:, -1:]).sum(dim=1) > k)[:, 0]
    if len(crowded):
        by_row, order = candidates[crowded].sort(dim=1)
        ranked, again = scores[crowded].gather(1, order).sort(dim=1, descending=True, stable=True)
        rows[crowded], best[crowded] = by_row.gather(1, again)[:, :k], ranked[:, :k]
    return rows, best


if triton is not None:

    @triton.jit  # type: ignore[untyped-decorator, unused-ignore]
    def _screen(  # type: ignore[no-untyped-def]
        queries,
        points,
        upper,
        groups,
        blocks,
        tiles,
        n_groups,
        n_blocks,
        DEPTH: tl.constexpr,
        GROUP: tl.constexpr,
        ROWS: tl.constexpr,
        COLUMNS: tl.constexpr,
        STEP: tl.constexpr,
    ):
        """One program bounds ``ROWS`` queries x ``COLUMNS`` points; programs of the same points are adjacent."""
        program = tl.program_id(0)
        row = (program % tiles) * ROWS + tl.arange(0, ROWS)
        tile = (program // tiles).to(tl.int64)
        column = tl.arange(0, COLUMNS)
        step = tl.arange(0, STEP)
        left = queries + row[:, None] * DEPTH + step[None, :]
        right = points + tile * (COLUMNS * DEPTH) + column[None, :] * DEPTH + step[:, None]
        bounds = tl.zeros([ROWS, COLUMNS], dtype=tl.float32)
        for _ in range(0, DEPTH, STEP):
            bounds = tl.dot(tl.load(left), tl.load(right), bounds)
            left += STEP
            right += STEP
        bounds += tl.load(upper + tile * COLUMNS + column)[None, :]
        group = tl.max(tl.reshape(bounds, [ROWS, COLUMNS // GROUP, GROUP]), axis=2)
        group_column = tile * (COLUMNS // GROUP) + tl.arange(0, COLUMNS // GROUP)
        tl.store(groups + row[:, None].to(tl.int64) * n_groups + group_column[None, :], group)
        block = tl.max(tl.reshape(group, [ROWS, COLUMNS // 64, 64 // GROUP]), axis=2)
        block_column = tile * (COLUMNS // 64) + tl.arange(0, COLUMNS // 64)
        tl.store(blocks + row[:, None].to(tl.int64) * n_blocks + block_column[None, :], block)

    @triton.jit  # type: ignore[untyped-decorator, unused-ignore]
    def _select(  # type: ignore[no-untyped-def]
        groups,
        blocks,
        threshold,
        kept_blocks,
        survivors,
        counts,
        group_stride,
        block_stride,
        n_blocks,
        capacity,
        STEP: tl.constexpr,
        BLOCKS: tl.constexpr,
        PER_BLOCK: tl.constexpr,
    ):
        """One program lists the blocks of one query that reach its threshold, then the groups in these blocks."""
        query = tl.program_id(0).to(tl.int64)
        limit = tl.load(threshold + query)
        lane = tl.arange(0, STEP)
        n_kept = tl.full([], 0, tl.int32)
        for start in range(0, n_blocks, STEP):
            block = start + lane
            bound = tl.load(blocks + query * block_stride + block, mask=block < n_blocks, other=float("-inf"))
            keep = (bound >= limit) & (block < n_blocks)
            place = n_kept + tl.cumsum(keep.to(tl.int32), axis=0) - 1
            tl.store(kept_blocks + query * capacity + place, block, mask=keep & (place < capacity))
            n_kept += tl.sum(keep.to(tl.int32))
        tl.debug_barrier()
        n_survivors = tl.full([], 0, tl.int32)
        item = tl.arange(0, BLOCKS * PER_BLOCK)
        for start in range(0, tl.minimum(n_kept, capacity), BLOCKS):
            place = start + item // PER_BLOCK
            inside = place < tl.minimum(n_kept, capacity)
            block = tl.load(kept_blocks + query * capacity + place, mask=inside, other=0)
            group = block * PER_BLOCK + item % PER_BLOCK
            bound = tl.load(groups + query * group_stride + group, mask=inside, other=float("-inf"))
            keep = inside & (bound >= limit)
            place = n_survivors + tl.cumsum(keep.to(tl.int32), axis=0) - 1
            tl.store(survivors + query * capacity + place, group, mask=keep & (place < capacity))
            n_survivors += tl.sum(keep.to(tl.int32))
        tl.store(counts + query, tl.where(n_kept > capacity, capacity + 1, n_survivors))

    @triton.jit  # type: ignore[untyped-decorator, unused-ignore]
    def _score_groups(  # type: ignore[no-untyped-def]
        queries,
        points,
        survivors,
        counts,
        candidates,
        scores,
        n_points,
        n_blocks,
        n_columns,
        survivor_stride,
        width,
        DEPTH: tl.constexpr,
        GROUP: tl.constexpr,
        GROUPS: tl.constexpr,
        WIDE: tl.constexpr,
    ):
        """One program scores the points of ``GROUPS`` surviving groups of one query."""
        kind: tl.constexpr = tl.float64 if WIDE else tl.float32
        query = tl.program_id(0).to(tl.int64)
        item = tl.arange(0, GROUPS * GROUP)
        place = tl.program_id(1) * GROUPS + item // GROUP
        inside = place < width
        real = place < tl.load(counts + query)
        group = tl.load(survivors + query * survivor_stride + place, mask=inside & real, other=0)
        # Position p of the layout is row p // 64 + (p % 64) * n_blocks.
        position = group * GROUP + item % GROUP
        point = (position // 64).to(tl.int64) + (position % 64).to(tl.int64) * n_blocks
        real = real & inside & (point < n_points)
        total = tl.zeros([GROUPS * GROUP], dtype=kind)
        step = tl.arange(0, DEPTH)
        for start in range(0, n_columns, DEPTH):
            column = start + step
            left = tl.load(queries + query * n_columns + column, mask=column < n_columns, other=0.0)
            right = tl.load(
                points + point[:, None] * n_columns + column[None, :],
                mask=real[:, None] & (column < n_columns)[None, :],
                other=0.0,
            )
            total += tl.sum(left[None, :] * right, axis=1)
        target = query * (width * GROUP) + tl.program_id(1) * (GROUPS * GROUP) + item
        tl.store(scores + target, tl.where(real, total, float("-inf")), mask=inside)
        tl.store(candidates + target, tl.where(real, point, n_points), mask=inside)
