"""Target ranks from a score matrix: validate the arguments, choose a kernel, count block by block.

For scores ``s`` of shape (rows, classes) and the target column ``t[i]`` of row ``i``::

    above[i] = #{j : s[i, j] > s[i, t[i]]}
    tied[i]  = #{j != t[i] : s[i, j] == s[i, t[i]]}

The expected rank under random tie breaking is ``above + tied / 2 + 1``. Nothing is sorted.

| array | kernel | 20,000 x 1,000 float32 | 5,000 x 50,000 float32 |
|---|---|---|---|
| host memory | ``NumpyRankCounter`` | 0.0126 s | 0.0974 s |
| host memory, many scores, llvmlite installed | ``LlvmRankCounter``, one thread | 0.00176 s | 0.0293 s |
| another device | ``GpuRankCounter`` | see benchmarks/gpu.md | |

Sorting with torch (topk and argsort) takes 2.85 s and 17.9 s (benchmarks/README.md, section places).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import InputError, NotFiniteError, ParameterError, ShapeError
from equipoise.evidence.base import as_host_array
from equipoise.evidence.kernels.rank_counts import (
    ClassColumns,
    NumpyRankCounter,
    RankCounts,
)
from equipoise.evidence.kernels.rank_counts_llvm import (
    LlvmRankCounter,
    all_columns,
    count_if_compiled,
    should_use_llvm,
)
from equipoise.evidence.kernels.threshold_counts import InvalidScoreError
from equipoise.evidence.labels import as_class_labels
from equipoise.evidence.ranking import Ranking
from equipoise.io.arrays import MappedPages

if TYPE_CHECKING:
    from equipoise.evidence.kernels.rank_counts_gpu import GpuRankCounter
    from equipoise.types import Bools, Ids, Ints


def check_score_matrix(scores: Any) -> Any:
    """Check that the scores are a (units, classes) matrix of real numbers; the data are not moved."""
    scores = as_host_array(scores)
    if len(scores.shape) != 2:
        raise ShapeError(
            f"the scores have shape {tuple(scores.shape)}; two dimensions are needed, units x classes",
            hint="give one row per unit: scores.reshape(-1, classes)",
        )
    if isinstance(scores, np.ndarray) and scores.dtype.kind not in "fiub":
        raise InputError(f"the scores are {scores.dtype}, not real numbers", hint="give a matrix of numbers")
    if not scores.shape[1]:
        raise ShapeError("the scores have no columns", hint="give one column per class")
    return scores


def class_codes(codes: Any, width: int, name: str) -> Ints:
    """Sorted unique class codes from one code or several; each code is a column number."""
    if codes is None:
        return np.zeros(0, dtype=np.int64)
    values = list(codes) if isinstance(codes, Iterable) else [codes]
    unique = np.unique(np.asarray(values))
    if unique.size and unique.dtype.kind not in "iu":
        raise ParameterError(f"the {name} classes are {unique.dtype} values", hint="give column numbers: 0 or [0, 1]")
    for code in unique[(unique < 0) | (unique >= width)]:
        raise ParameterError(
            f"the {name} class {code} is none of the {width} columns", hint=f"classes are 0 to {width - 1}"
        )
    return unique.astype(np.int64)


def candidate_columns(padding: Any, width: int) -> ClassColumns:
    """The columns that can be predicted: all except padding."""
    dropped = class_codes(padding, width, "padding")
    if len(dropped) == width:
        raise ParameterError(
            f"all {width} classes are padding; no class is left to predict",
            hint="name only the columns that are not classes",
        )
    return ClassColumns(np.delete(np.arange(width), dropped)) if len(dropped) else all_columns(width)


def check_targets(targets: Any, rows: int, width: int, columns: ClassColumns) -> Ints:
    """One class code per row; each must be a candidate column."""
    codes = as_class_labels(targets, "targets")
    if codes.dtype == object:
        raise InputError("the targets are names, not columns of the scores", hint="for example [3, 0, 7]")
    if len(codes) != rows:
        raise ShapeError(f"there are {len(codes)} targets for {rows} rows of scores", hint="give one target per row")
    plain = codes.astype(np.int64)
    if rows and plain.view(np.uint64).max() >= width:  # a negative code is a very large unsigned integer
        wrong = (codes < 0) | (codes >= width)
        row = int(np.argmax(wrong))
        raise InputError(
            f"target {codes[row]} of row {row} is not one of the {width} classes ({int(wrong.sum())} such targets)",
            hint=f"classes are columns of the scores, 0 to {width - 1}",
        )
    if len(columns.codes) < width:
        _check_no_padding_targets(plain, ~np.isin(plain, columns.codes))
    return plain


def _check_no_padding_targets(codes: Ints, padded: Bools) -> None:
    if not padded.any():
        return
    row, count = int(np.argmax(padded)), int(padded.sum())
    rows = "every row is padding" if count == len(codes) else f"{count} of {len(codes)} rows are padding"
    raise InputError(
        f"{rows}: the target of row {row} is the padding class {codes[row]}",
        hint=f"remove such rows: keep = targets != {codes[row]}; scores[keep], targets[keep]",
    )


def check_cutoffs(ks: Iterable[int], classes: int) -> tuple[int, ...]:
    """Check that each cutoff is an integer from 1 to the number of classes, without duplicates."""
    cutoffs = tuple(ks)
    for k in cutoffs:
        if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
            raise ParameterError(f"k = {k!r} is not a cutoff", hint="cutoffs are integers of at least 1")
        if k > classes:
            raise ParameterError(
                f"k = {k} is more than the {classes} classes: every model would score 1",
                hint=f"choose cutoffs up to {classes}",
            )
    if len(set(cutoffs)) < len(cutoffs):
        raise ParameterError(f"a cutoff is named twice among {cutoffs}", hint="name each once")
    return tuple(int(k) for k in cutoffs)


NUMPY_BLOCK_BYTES = 4 << 20
"""Bytes of scores per block for the numpy kernel: a block stays in the cache between its passes."""
COMPILED_BLOCK_BYTES = 1 << 26
"""Bytes per block for the compiled kernel, which needs one pass; bounds how much of a mapped file is in
memory, for any number of threads."""
DEVICE_BLOCK_BYTES = 1 << 28
"""Bytes per block on another device; bounds the memory of the comparisons."""


@dataclass(frozen=True, slots=True)
class TargetRanks:
    """The rank counts of the target of each row among the candidate columns, and the targets."""

    counts: RankCounts
    true: Ints
    columns: ClassColumns

    @property
    def classes(self) -> int:
        """The number of classes that can be predicted."""
        return len(self.columns.codes)

    @property
    def predicted(self) -> Ints:
        """The class with the largest score in each row."""
        return self.columns.codes_of(self.counts.predicted)

    def ranking(self, unit_ids: Ids | None = None) -> Ranking:
        """The counts as a ``Ranking``; without ids the units are 0, 1, 2, ..."""
        counts = self.counts
        return Ranking.of_targets(
            unit_ids, above=counts.above, tied=counts.tied, before=counts.before, candidates=self.classes
        )


def rank_targets(
    scores: Any,
    targets: Any,
    *,
    padding: Any = None,
    ks: Iterable[int] = (),
    block_bytes: int | None = None,
    probabilities: bool = False,
    compiled: bool | None = None,
) -> TargetRanks:
    """Count the scores above and tied with the target of each row; ``classify`` documents the parameters."""
    if padding is None and ks == () and block_bytes is None and not probabilities and compiled is not False:
        counts = count_if_compiled(scores, targets)
        if counts is not None:
            return TargetRanks(counts, targets.copy(), all_columns(scores.shape[1]))
    scores = check_score_matrix(scores)
    rows, width = (int(size) for size in scores.shape)
    columns = candidate_columns(padding, width)
    check_cutoffs(ks, len(columns.codes))
    true = check_targets(targets, rows, width, columns)
    counts = _count_blocks(scores, columns.indices_of(true), columns, _BlockPlan(block_bytes, probabilities, compiled))
    return TargetRanks(counts, true, columns)


@dataclass(frozen=True)
class _BlockPlan:
    """Options that determine the kernel and the size of a block."""

    block_bytes: int | None
    probabilities: bool
    compiled: bool | None

    def kernel(
        self, scores: Any, columns: ClassColumns, *, mapped: bool
    ) -> tuple[NumpyRankCounter | GpuRankCounter, int]:
        """The kernel for these scores, and the number of rows per block."""
        rows, row_bytes = len(scores), int(scores.shape[1]) * scores.dtype.itemsize

        def rows_per_block(default_bytes: int) -> int:
            return max(1, min((self.block_bytes or default_bytes) // row_bytes, rows))

        if not isinstance(scores, np.ndarray):
            from equipoise.evidence.kernels.rank_counts_gpu import GpuRankCounter  # imports triton

            counter = GpuRankCounter(columns, probabilities=self.probabilities)
            one_block = self.block_bytes is None and not counter.needs_blocks(scores)
            return counter, max(1, rows) if one_block else rows_per_block(DEVICE_BLOCK_BYTES)
        if columns.span is not None and should_use_llvm(scores[:, columns.span], self.compiled):
            one_block = self.block_bytes is None and not (self.probabilities or mapped)
            default_bytes = NUMPY_BLOCK_BYTES if self.probabilities else COMPILED_BLOCK_BYTES
            size = max(1, rows) if one_block else rows_per_block(default_bytes)
            return LlvmRankCounter(columns, size, probabilities=self.probabilities), size
        size = rows_per_block(NUMPY_BLOCK_BYTES)
        return NumpyRankCounter(columns, size, probabilities=self.probabilities), size


def _count_blocks(scores: Any, targets: Ints, columns: ClassColumns, plan: _BlockPlan) -> RankCounts:
    """The counts of all rows, one block at a time."""
    pages = MappedPages(scores) if isinstance(scores, np.ndarray) else None
    counter, step = plan.kernel(scores, columns, mapped=pages is not None and pages.mapping is not None)
    if 0 < len(targets) <= step:
        return _count_block(counter, _candidate_scores(scores, columns), targets, 0)
    counts = RankCounts.empty(len(targets), probabilities=plan.probabilities)
    for start in range(0, len(targets), step):
        part = slice(start, min(start + step, len(targets)))
        block = scores[part]
        counts.put(part, _count_block(counter, _candidate_scores(block, columns), targets[part], start))
        if pages is not None:
            pages.drop(block)
    return counts


def _count_block(counter: NumpyRankCounter | GpuRankCounter, block: Any, targets: Ints, start: int) -> RankCounts:
    """The counts of one block; errors name the row in the whole matrix."""
    try:
        return counter(block, targets)
    except InvalidScoreError as error:
        raise score_error(start + error.row, infinite=error.infinite) from None


def _candidate_scores(block: Any, columns: ClassColumns) -> Any:
    """The candidate columns of a block; a view if the columns are contiguous."""
    if columns.span is not None:
        return block[:, columns.span]
    if isinstance(block, np.ndarray):
        candidates: NDArray[Any] = block.take(columns.codes, axis=1)
        return candidates
    from array_api_compat import array_namespace, device

    xp = array_namespace(block)
    return xp.take(block, xp.asarray(columns.codes, device=device(block)), axis=1)


def take_rows(scores: Any, rows: Ints) -> Any:
    """Some rows of an array, on its device."""
    if isinstance(scores, np.ndarray):
        return scores[rows]
    from array_api_compat import array_namespace, device

    xp = array_namespace(scores)
    return xp.take(scores, xp.asarray(rows, device=device(scores)), axis=0)


def score_error(row: int, *, infinite: bool = False) -> NotFiniteError:
    """The error for a row with NaN, or with infinity where a softmax was requested."""
    if infinite:
        return NotFiniteError(
            f"the scores of row {row} contain an infinite value, which has no softmax",
            hint="probabilities need finite scores; -inf may exclude a class",
        )
    return NotFiniteError(
        f"the scores of row {row} contain NaN",
        hint="a model that returns NaN cannot be scored; declare columns that are not classes as padding",
    )
