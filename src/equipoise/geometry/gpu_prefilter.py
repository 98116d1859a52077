"""Exact top-k search on a CUDA device: prefilter on tensor cores in float16, then score the remaining points exactly.

A float16 product has a known error bound, so it gives an upper bound of every score. One kernel computes the
bounds of all pairs and stores them in float16, rounded up, with the upper and lower bounds of each block of 64 points.
With ``T``, the k-th largest lower bound of a block, a point whose upper bound is below ``T`` is none of the k
nearest. The few remaining points are scored in the precision of the points.

A column with much larger values than the others, such as the square of the norm in a distance, would dominate the
error bound. Up to two such columns are multiplied in float32 instead. Each query subtracts about its best score
from its bounds before they are rounded to float16, because float16 is most precise near 0.

Measured on an H200 for 10k x 1M x 384 (benchmarks/gpu.md): 23 to 25 ms for k = 100 and 29 to 34 ms for k = 1000, of
which the bounds take 18 to 20 and scoring 1 and 3 to 7.

Points of a block are ``n / 64`` rows apart, so that neighbouring rows, which are often similar, are in different
blocks. Queries with too many remaining points (many equal scores, or points whose norms differ by orders of magnitude)
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

BLOCK = 64
"""Points of one bound that the threshold is chosen from."""

MIN_BLOCKS_PER_K = 4
"""With fewer blocks than this times k, the k-th best block is a poor estimate of the k-th best point."""

MEMORY_FRACTION = 0.3
"""The share of the free memory of the device for the bounds of one pass."""

ABSENT = -6e4
"""The upper bound at positions of the layout without a point."""

MAX_BOUND = 2.0**13
"""Of wide terms: the sum of all terms must be in the range of float16."""

_TILE_ROWS, _TILE_COLUMNS, _TILE_DEPTH = 128, 256, 64
_WARPS, _STAGES = 8, 3
_ROWS_AT_ONCE = 1 << 18
_SUM_WIDTH = 128
_POINTS_PER_PROGRAM = 16
_SAMPLE = 4096
_MAX_WIDE_COLUMNS, _WIDE_RATIO = 2, 16.0
"""Columns that are multiplied in float32, and how much larger than the median their products are at least."""


def supports_prefilter(corpus: Any, k: int) -> bool:
    """Whether the corpus is on a CUDA device with Triton, and large enough for the number of neighbors."""
    if triton is None or not corpus.is_cuda or len(corpus) < MIN_BLOCKS_PER_K * k * BLOCK:
        return False
    import torch

    free, _ = torch.cuda.mem_get_info(corpus.device)
    return free > 3 * corpus.nelement() + 64 * len(corpus)


@dataclass(frozen=True)
class PrefilteredCorpus:
    """The corpus twice: as prepared for the product, and in float16 with the error bound of every point.

    ``upper`` is what the product lacks to be an upper bound: the largest error. ``slack`` is twice the largest error
    in each block: what an upper bound exceeds the score by, at most. Columns that are equal in all points change no
    order and are left out.
    """

    points: Any
    half: Any
    """The points in float16 and in the order of the layout, without the wide columns."""
    wide: Any
    """The wide columns of the points in float32: (number of columns, positions)."""
    upper: Any
    slack: Any
    columns: Any
    """The columns that are multiplied in float16."""
    wide_columns: Any
    wide_weights: Any
    """The wide columns of a query are those of the row times these weights."""

    @classmethod
    def of(cls, points: Any, queries: Any) -> PrefilteredCorpus:
        """Prepare a corpus for these queries: their sizes decide which columns are wide."""
        import torch

        columns, wide_columns = _split_columns(points, queries)
        norms = _norms(points, columns)
        scaled = queries * _query_factors(_norms(queries, torch.cat([columns, wide_columns])))[:, None]
        wide, weights, residual = _merge_columns(points[:, wide_columns].double().T)
        sizes = (weights @ scaled[:, wide_columns].double().T).abs().amax(dim=1) @ wide.abs()
        factor = min(_power_of_two(norms), MAX_BOUND * _power_of_two(sizes))
        depth = -(-max(1, len(columns)) // _TILE_DEPTH) * _TILE_DEPTH
        # Of the float32 sums, which begin with the error and the shift, and of the wide terms.
        error = depth * 2.0**-22 * (norms + 0.5 * (1 / factor + sizes.amax())) + 2.0**-21 * sizes
        error += residual + norms * float(_rounding_errors(scaled[:, columns]).amax())
        error += _scoring_error(points, scaled, columns)
        layout = _strided_layout(len(points), points.device)
        present = layout < len(points)
        rows = torch.where(present, layout, 0)
        half = torch.zeros((len(layout), depth), dtype=torch.float16, device=points.device)
        # A query of norm 1 or less turns the rounding error of a point into an error of the product that is no larger.
        error = factor * error[rows] + 1e-7
        for start in range(0, len(layout), _ROWS_AT_ONCE):
            part = slice(start, start + _ROWS_AT_ONCE)
            exact = points[rows[part]][:, columns] * factor
            half[part, : len(columns)] = exact.half()
            error[part] += _rounding_errors(exact)
        error = (1.001 * error).float()  # rounding may raise the norm of a query a little
        upper = torch.where(present, error, ABSENT)
        slack = 2 * torch.where(present, error, 0).view(-1, BLOCK).amax(dim=1)
        wide = (factor * wide).float()[:, rows].contiguous()
        return cls(points, half, wide, upper, slack, columns, wide_columns, weights)

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

        memory = MEMORY_FRACTION * torch.cuda.mem_get_info(self.half.device)[0]
        bytes_per_query = 2 * len(self.half) + 8 * len(self.half) // BLOCK
        return max(_TILE_ROWS, int(memory / bytes_per_query) // _TILE_ROWS * _TILE_ROWS)

    def _pass(self, queries: Any, k: int) -> tuple[Any, Any, Any]:
        import torch

        bounds, blocks, lower = self._bounds(queries)
        threshold = torch.topk(lower, k, dim=1, sorted=False).values.amin(dim=1)
        capacity = -(-(2 * k + 128) // 64) * 64
        survivors, counts = _positions_above(bounds, blocks, threshold, capacity)
        overflow = counts > capacity
        width = max(k, min(capacity, int(counts.amax())))
        candidates, scores = self._score(queries, survivors[:, :width], torch.where(overflow, 0, counts))
        rows, best = top_candidates(candidates, scores, k)
        return rows, best, overflow

    def scaled_queries(self, queries: Any) -> tuple[Any, Any]:
        """The queries in float16 for the product, padded, and their wide columns in float32: (columns, queries).

        Each query is scaled to a norm of at most 1; a positive factor does not change its order of points.
        """
        import torch

        scaled = queries * self.query_factors(queries)[:, None]
        padded = -(-len(queries) // _TILE_ROWS) * _TILE_ROWS
        half = torch.zeros((padded, self.half.shape[1]), dtype=torch.float16, device=queries.device)
        half[: len(queries), : len(self.columns)] = scaled[:, self.columns].half()
        wide = torch.zeros((len(self.wide), padded), dtype=torch.float32, device=queries.device)
        wide[:, : len(queries)] = (self.wide_weights @ scaled[:, self.wide_columns].double().T).float()
        return half, wide

    def query_factors(self, queries: Any) -> Any:
        """The power of two that scales each query."""
        import torch

        return _query_factors(_norms(queries, torch.cat([self.columns, self.wide_columns])))

    def _bounds(self, queries: Any) -> tuple[Any, Any, Any]:
        """Bounds of the scaled and shifted scores: upper ones of points and blocks, and lower ones of blocks."""
        import torch

        left, wide = self.scaled_queries(queries)
        bounds = torch.empty((len(left), len(self.half)), dtype=torch.float16, device=queries.device)
        blocks = torch.empty((len(left), len(self.half) // BLOCK), dtype=torch.float16, device=queries.device)
        lower = torch.empty_like(blocks)
        tiles = len(left) // _TILE_ROWS
        _bound_scores[(tiles * (len(self.half) // _TILE_COLUMNS),)](
            left,
            self.half,
            wide,
            self.wide,
            self.upper,
            self.slack,
            self._shifts(left, wide),
            bounds,
            blocks,
            lower,
            tiles,
            len(self.half),
            DEPTH=left.shape[1],
            WIDE=len(wide),
            ROWS=_TILE_ROWS,
            COLUMNS=_TILE_COLUMNS,
            STEP=_TILE_DEPTH,
            num_warps=_WARPS,
            num_stages=_STAGES,
        )
        return bounds[: len(queries)], blocks[: len(queries)], lower[: len(queries)]

    def _shifts(self, left: Any, wide: Any) -> Any:
        """Minus the approximate best score of each query, from a sample of the points."""
        import torch

        present = torch.nonzero(self.upper > ABSENT)[:, 0]
        sample = present[:: max(1, len(present) // _SAMPLE)]
        scores = (left @ self.half[sample].T).float() + wide.T @ self.wide[:, sample]
        return -scores.amax(dim=1)

    def _score(self, queries: Any, survivors: Any, counts: Any) -> tuple[Any, Any]:
        """The rows of the remaining points, and their scores in the precision of the points."""
        import torch

        count, width = survivors.shape
        candidates = torch.empty((count, width), dtype=torch.int64, device=queries.device)
        scores = torch.empty((count, width), dtype=queries.dtype, device=queries.device)
        _score_points[(count, -(-width // _POINTS_PER_PROGRAM))](
            queries,
            self.points,
            survivors,
            counts,
            candidates,
            scores,
            len(self.points),
            len(self.half) // BLOCK,
            survivors.stride(0),
            width,
            COLUMNS=queries.shape[1],
            DEPTH=_SUM_WIDTH,
            ITEMS=_POINTS_PER_PROGRAM,
            DOUBLE=queries.dtype == torch.float64,
            num_warps=4,
        )
        return candidates, scores


def _split_columns(points: Any, queries: Any) -> tuple[Any, Any]:
    """The columns to multiply in float16 and those to multiply in float32; columns with equal points are neither."""
    import torch

    varies = ~(points == points[:1]).all(dim=0)
    sizes = torch.where(varies, _column_sizes(points) * _column_sizes(queries), 0)
    median = sizes[varies].median() if bool(varies.any()) else 0
    largest = torch.topk(sizes, min(_MAX_WIDE_COLUMNS, len(sizes))).indices
    is_wide = torch.zeros_like(varies)
    is_wide[largest] = sizes[largest] > _WIDE_RATIO * median
    return torch.nonzero(varies & ~is_wide)[:, 0], torch.nonzero(is_wide)[:, 0]


def _merge_columns(wide: Any) -> tuple[Any, Any, Any]:
    """One row instead of two that depend linearly on each other, with the weights of both, and the largest error.

    With ``wide[1] = slope * wide[0] + constant``, a query needs ``wide[0]`` alone: the constant does not change its
    order of points. In the Poincare ball, the two are the squared norm and 1, divided by ``1 - |y|^2``.
    """
    import torch

    weights = torch.eye(len(wide), dtype=wide.dtype, device=wide.device)
    if len(wide) < 2:
        return wide, weights, 0.0
    centred = wide - wide.mean(dim=1, keepdim=True)
    slope = (centred[0] @ centred[1]) / (centred[0] @ centred[0])
    residual = (centred[1] - slope * centred[0]).abs().amax()
    if not residual <= 2.0**-20 * centred[1].abs().amax():
        return wide, weights, 0.0
    return wide[:1], torch.stack([torch.ones_like(slope), slope])[None, :], residual


def _column_sizes(rows: Any) -> Any:
    """The square root of the mean square of each column."""
    import torch

    parts = [torch.linalg.vector_norm(part, dim=0) for part in rows.split(_ROWS_AT_ONCE)]
    return torch.linalg.vector_norm(torch.stack(parts), dim=0) / sqrt(len(rows))


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


def _rounding_errors(rows: Any) -> Any:
    """The norm of what each row loses in float16."""
    import torch

    return torch.linalg.vector_norm(rows - rows.half(), dim=1)


def _scoring_error(points: Any, queries: Any, columns: Any) -> Any:
    """The largest error of the score of each point in the precision of the points.

    Sums are made in parts of ``_SUM_WIDTH`` terms, each as a tree. Columns that are not multiplied in float16 are
    bounded by themselves: the square of a norm next to ones would spoil a bound of the whole rows.
    """
    import torch

    rest = torch.ones(points.shape[1], dtype=torch.bool, device=points.device)
    rest[columns] = False
    terms = _norms(points, columns) * float(_norms(queries, columns).amax())
    for column in torch.nonzero(rest)[:, 0].tolist():
        terms = terms + points[:, column].abs() * float(queries[:, column].abs().amax())
    additions = _SUM_WIDTH.bit_length() + -(-points.shape[1] // _SUM_WIDTH) + 2
    return 2 * additions * torch.finfo(points.dtype).eps * terms


def _strided_layout(count: int, device: Any) -> Any:
    """The row at each position: blocks of 64 rows that are as far apart as possible; ``count`` or more is no row."""
    import torch

    per_tile = _TILE_COLUMNS // BLOCK
    blocks = -(-count // _TILE_COLUMNS) * per_tile
    return (torch.arange(BLOCK, device=device) * blocks + torch.arange(blocks, device=device)[:, None]).flatten()


def _positions_above(bounds: Any, blocks: Any, threshold: Any, capacity: int) -> tuple[Any, Any]:
    """For each query the positions whose bound reaches the threshold, at most ``capacity``, and how many there are."""
    import torch

    count = len(bounds)
    kept_blocks = torch.empty((count, capacity), dtype=torch.int32, device=bounds.device)
    survivors = torch.empty((count, capacity), dtype=torch.int32, device=bounds.device)
    counts = torch.empty(count, dtype=torch.int32, device=bounds.device)
    _select[(count,)](
        bounds,
        blocks,
        threshold,
        kept_blocks,
        survivors,
        counts,
        blocks.shape[1],
        capacity,
        STEP=1024,
        BLOCKS=32,
        num_warps=4,
    )
    return survivors, counts


def top_candidates(candidates: Any, scores: Any, k: int) -> tuple[Any, Any]:
    """The k best candidates of each row, best first; equal scores in the order of their points."""
    import torch

    best, order = scores.sort(dim=1, descending=True)
    rows = candidates.gather(1, order[:, :k])
    following = best[:, 1 : k + 1]
    equal = (following == best[:, : following.shape[1]]) & (following > float("-inf"))
    tied = torch.nonzero(equal.any(dim=1))[:, 0]
    best = best[:, :k].contiguous()
    if len(tied):
        by_row, order = candidates[tied].sort(dim=1)
        ranked, again = scores[tied].gather(1, order).sort(dim=1, descending=True, stable=True)
        rows[tied], best[tied] = by_row.gather(1, again)[:, :k], ranked[:, :k]
    return rows, best


if triton is not None:

    @triton.jit  # type: ignore[untyped-decorator, unused-ignore]
    def _rounded_up(bound):  # type: ignore[no-untyped-def]
        """A float16 that is not less by more than the error of very small ones; 2^-10 is twice the relative error."""
        return (bound + tl.abs(bound) * 0.0009765625).to(tl.float16)

    @triton.jit  # type: ignore[untyped-decorator, unused-ignore]
    def _bound_scores(  # type: ignore[no-untyped-def]
        queries,
        points,
        wide_queries,
        wide_points,
        upper,
        slack,
        shifts,
        bounds,
        blocks,
        lower,
        tiles,
        n_positions,
        DEPTH: tl.constexpr,
        WIDE: tl.constexpr,
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
        position = tile * COLUMNS + column
        # Added first, while the factors are loaded; with the wide terms this takes longer than at the end.
        bound = tl.load(upper + position)[None, :] + tl.load(shifts + row)[:, None]
        for _ in range(0, DEPTH, STEP):
            bound = tl.dot(tl.load(left), tl.load(right), bound)
            left += STEP
            right += STEP
        for nth in tl.static_range(WIDE):
            wide_left = tl.load(wide_queries + nth * (tiles * ROWS) + row)[:, None]
            bound += wide_left * tl.load(wide_points + nth * n_positions.to(tl.int64) + position)[None, :]
        row = row.to(tl.int64)
        block = tl.max(tl.reshape(bound, [ROWS, COLUMNS // 64, 64]), axis=2)
        block_column = tile * (COLUMNS // 64) + tl.arange(0, COLUMNS // 64)
        block_places = row[:, None] * (n_positions // 64) + block_column[None, :]
        tl.store(blocks + block_places, _rounded_up(block))
        tl.store(lower + block_places, -_rounded_up(tl.load(slack + block_column)[None, :] - block))
        tl.store(bounds + row[:, None] * n_positions + position[None, :], _rounded_up(bound))

    @triton.jit  # type: ignore[untyped-decorator, unused-ignore]
    def _select(  # type: ignore[no-untyped-def]
        bounds,
        blocks,
        threshold,
        kept_blocks,
        survivors,
        counts,
        n_blocks,
        capacity,
        STEP: tl.constexpr,
        BLOCKS: tl.constexpr,
    ):
        """One program lists the blocks of one query that reach its threshold, then the points in these blocks."""
        query = tl.program_id(0).to(tl.int64)
        limit = tl.load(threshold + query).to(tl.float32)
        lane = tl.arange(0, STEP)
        n_kept = tl.full([], 0, tl.int32)
        for start in range(0, n_blocks, STEP):
            block = start + lane
            bound = tl.load(blocks + query * n_blocks + block, mask=block < n_blocks, other=float("-inf"))
            keep = (bound.to(tl.float32) >= limit) & (block < n_blocks)
            place = n_kept + tl.cumsum(keep.to(tl.int32), axis=0) - 1
            tl.store(kept_blocks + query * capacity + place, block, mask=keep & (place < capacity))
            n_kept += tl.sum(keep.to(tl.int32))
        tl.debug_barrier()
        n_survivors = tl.full([], 0, tl.int32)
        for start in range(0, tl.minimum(n_kept, capacity), BLOCKS):
            place = start + tl.arange(0, BLOCKS)
            inside = place < tl.minimum(n_kept, capacity)
            block = tl.load(kept_blocks + query * capacity + place, mask=inside, other=0)
            position = block[:, None] * 64 + tl.arange(0, 64)[None, :]
            bound = tl.load(bounds + query * n_blocks * 64 + position)
            keep = inside[:, None] & (bound.to(tl.float32) >= limit)
            keep = tl.reshape(keep, [BLOCKS * 64])
            place = n_survivors + tl.cumsum(keep.to(tl.int32), axis=0) - 1
            position = tl.reshape(position, [BLOCKS * 64])
            tl.store(survivors + query * capacity + place, position, mask=keep & (place < capacity))
            n_survivors += tl.sum(keep.to(tl.int32))
        tl.store(counts + query, tl.where(n_kept > capacity, capacity + 1, n_survivors))

    @triton.jit  # type: ignore[untyped-decorator, unused-ignore]
    def _score_points(  # type: ignore[no-untyped-def]
        queries,
        points,
        survivors,
        counts,
        candidates,
        scores,
        n_points,
        n_blocks,
        survivor_stride,
        width,
        COLUMNS: tl.constexpr,
        DEPTH: tl.constexpr,
        ITEMS: tl.constexpr,
        DOUBLE: tl.constexpr,
    ):
        """One program scores ``ITEMS`` remaining points of one query; all queries score their first points first.

        Programs that run at the same time read points of the same part of the corpus, so that some are in the cache.
        """
        kind: tl.constexpr = tl.float64 if DOUBLE else tl.float32
        query = tl.program_id(0).to(tl.int64)
        place = tl.program_id(1) * ITEMS + tl.arange(0, ITEMS)
        inside = place < width
        real = inside & (place < tl.load(counts + query))
        position = tl.load(survivors + query * survivor_stride + place, mask=real, other=0)
        # Position p of the layout is row p // 64 + (p % 64) * n_blocks.
        point = (position // 64).to(tl.int64) + (position % 64).to(tl.int64) * n_blocks
        real = real & (point < n_points)
        total = tl.zeros([ITEMS, DEPTH], dtype=kind)
        for start in tl.static_range(0, COLUMNS, DEPTH):
            column = start + tl.arange(0, DEPTH)
            left = tl.load(queries + query * COLUMNS + column, mask=column < COLUMNS, other=0.0)
            right = tl.load(
                points + point[:, None] * COLUMNS + column[None, :],
                mask=real[:, None] & (column < COLUMNS)[None, :],
                other=0.0,
            )
            total += left[None, :] * right
        score = tl.where(real, tl.sum(total, axis=1), float("-inf"))
        tl.store(scores + query * width + place, score, mask=inside)
        tl.store(candidates + query * width + place, tl.where(real, point, n_points), mask=inside)
