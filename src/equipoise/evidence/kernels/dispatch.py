"""Where the targets of a matrix of scores landed, block by block, each row looked at once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import InputError, NotFiniteError, ParameterError, ShapeError
from equipoise.evidence.kernels.rank_counts import (
    ClassColumns,
    HostRows,
    InfiniteScoreError,
    NanTargetError,
    RankCounts,
)
from equipoise.evidence.kernels.rank_counts_compiled import LlvmRankCounter, should_use_llvm
from equipoise.evidence.kernels.rank_counts_gpu import GpuRankCounter
from equipoise.evidence.labels import as_class_labels
from equipoise.evidence.ranking import Ranking
from equipoise.evidence.ranking_from_scores import as_host_array
from equipoise.io.arrays import MappedPages

if TYPE_CHECKING:
    from equipoise.types import Bools, Ids, Ints

# What may be scored: matrices of numbers, targets that are classes, cutoffs that can fail.


def check_score_matrix(scores: Any) -> Any:
    """A matrix of real numbers with one row a unit and one column a class, where it lies."""
    scores = as_host_array(scores)
    if len(scores.shape) != 2:
        raise ShapeError(
            f"the scores have shape {tuple(scores.shape)}; two dimensions are needed, units x classes",
            hint="give one row a unit: scores.reshape(-1, classes)",
        )
    if isinstance(scores, np.ndarray) and scores.dtype.kind not in "fiub":
        raise InputError(f"the scores are {scores.dtype}, not real numbers", hint="give a matrix of numbers")
    if not scores.shape[1]:
        raise ShapeError("the scores have no columns", hint="give one column a class")
    return scores


def class_codes(codes: Any, width: int, what: str) -> Ints:
    """Class codes from one of them or several, each a column."""
    if codes is None:
        return np.zeros(0, dtype=np.int64)
    given = [codes] if isinstance(codes, int | np.integer) else codes
    found = np.unique(np.asarray(list(given) if isinstance(given, Iterable) else [given]))
    if found.size and found.dtype.kind not in "iu":
        raise ParameterError(f"the {what} classes are {found.dtype} values", hint="give column numbers: 0 or [0, 1]")
    for code in found[(found < 0) | (found >= width)]:
        raise ParameterError(
            f"the {what} class {code} is none of the {width} columns", hint=f"classes are 0 to {width - 1}"
        )
    return found.astype(np.int64)


def candidate_columns(padding: Any, width: int) -> ClassColumns:
    """The columns that are classes."""
    dropped = class_codes(padding, width, "padding")
    if len(dropped) == width:
        raise ParameterError(
            f"all {width} classes are padding, and nothing is left to predict",
            hint="name only the columns that are no class",
        )
    every = np.arange(width)
    return ClassColumns(np.delete(every, dropped) if len(dropped) else every)


def check_targets(targets: Any, rows: int, width: int, columns: ClassColumns) -> Ints:
    """One class code a row, each of a class that can be predicted."""
    codes = as_class_labels(targets, "targets")
    if codes.dtype == object:
        raise InputError("the targets are names, not columns of the scores", hint="for example [3, 0, 7]")
    if len(codes) != rows:
        raise ShapeError(f"there are {len(codes)} targets for {rows} rows of scores", hint="give one a row")
    plain = codes.astype(np.int64)
    if rows and plain.view(np.uint64).max() >= width:  # negative numbers are very large ones there
        wrong = (codes < 0) | (codes >= width)
        row = int(np.argmax(wrong))
        raise InputError(
            f"target {codes[row]} of row {row} is none of the {width} classes ({int(wrong.sum())} such)",
            hint=f"classes are columns of the scores, 0 to {width - 1}",
        )
    if len(columns.codes) < width:
        _refuse_padding(plain, ~np.isin(plain, columns.codes))
    return plain


def _refuse_padding(codes: Ints, padded: Bools) -> None:
    if not padded.any():
        return
    row, count = int(np.argmax(padded)), int(padded.sum())
    rows = "every row is padding" if count == len(codes) else f"{count} of {len(codes)} rows are padding"
    raise InputError(
        f"{rows}: the target of row {row} is the padding class {codes[row]}",
        hint=f"leave such rows out: keep = targets != {codes[row]}; scores[keep], targets[keep]",
    )


def check_cutoffs(ks: Iterable[int], classes: int) -> tuple[int, ...]:
    """Cutoffs that a model can miss: from 1 to the number of classes.

    >>> check_cutoffs((1, 3, 5, 10), 1000)
    (1, 3, 5, 10)
    """
    cutoffs = tuple(ks)
    for k in cutoffs:
        if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
            raise ParameterError(f"k = {k!r} is no cutoff", hint="cutoffs are whole numbers from 1 on")
        if k > classes:
            raise ParameterError(
                f"k = {k} is more than the {classes} classes: everyone would score 1",
                hint=f"choose cutoffs up to {classes}",
            )
    if len(set(cutoffs)) < len(cutoffs):
        raise ParameterError(f"a cutoff is named twice among {cutoffs}", hint="name each once")
    return tuple(int(k) for k in cutoffs)


HOST_BLOCK = 4 << 20
"""Bytes of scores looked at in one go in host memory: they stay in the cache between the looks."""
COMPILED_BLOCK = 1 << 26
"""The same for the compiled kernel, which looks at rows one by one; it bounds what of a file is in memory,
however many threads share it."""
DEVICE_BLOCK = 1 << 28
"""The same on another device, where it bounds the memory that comparisons need."""


@dataclass(frozen=True, slots=True)
class TargetRanks:
    """Where the target of each row landed among the columns that are classes, and the target itself."""

    placed: RankCounts
    true: Ints
    columns: ClassColumns

    @property
    def classes(self) -> int:
        """How many classes can be predicted."""
        return len(self.columns.codes)

    @property
    def predicted(self) -> Ints:
        """The class that came first in each row."""
        return self.columns.named(self.placed.predicted)

    def ranking(self, unit_ids: Ids | None = None) -> Ranking:
        """The same as evidence; units without ids are 0, 1, 2, ..."""
        placed = self.placed
        return Ranking.of_targets(
            unit_ids, above=placed.above, tied=placed.tied, before=placed.before, candidates=self.classes
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
    """Where the target of each row landed, and nothing besides; see ``classify`` for what is asked."""
    scores = check_score_matrix(scores)
    rows, width = (int(size) for size in scores.shape)
    columns = candidate_columns(padding, width)
    check_cutoffs(ks, len(columns.codes))
    true = check_targets(targets, rows, width, columns)
    placed = _placed(scores, columns.places(true), columns, _Way(block_bytes, probabilities, compiled))
    return TargetRanks(placed, true, columns)


@dataclass(frozen=True)
class _Way:
    """How the rows are to be looked at."""

    block_bytes: int | None
    probabilities: bool
    compiled: bool | None

    def look(self, scores: Any, columns: ClassColumns, *, mapped: bool) -> tuple[HostRows | GpuRankCounter, int]:
        """What looks at a block of rows, and how many these are."""
        rows, row_bytes = len(scores), int(scores.shape[1]) * scores.dtype.itemsize

        def step(usual: int) -> int:
            return max(1, min((self.block_bytes or usual) // row_bytes, rows))

        if not isinstance(scores, np.ndarray):
            look = GpuRankCounter(columns, probabilities=self.probabilities)
            whole = self.block_bytes is None and not look.needs_blocks(scores)
            return look, max(1, rows) if whole else step(DEVICE_BLOCK)
        if columns.span is not None and should_use_llvm(scores[:, columns.span], self.compiled):
            whole = self.block_bytes is None and not (self.probabilities or mapped)
            size = max(1, rows) if whole else step(HOST_BLOCK if self.probabilities else COMPILED_BLOCK)
            return LlvmRankCounter(columns, size, probabilities=self.probabilities), size
        size = step(HOST_BLOCK)
        return HostRows(columns, size, probabilities=self.probabilities), size


def _placed(scores: Any, targets: Ints, columns: ClassColumns, way: _Way) -> RankCounts:
    """All rows, a block at a time."""
    pages = MappedPages(scores) if isinstance(scores, np.ndarray) else None
    look, step = way.look(scores, columns, mapped=pages is not None and pages.mapping is not None)
    if isinstance(look, HostRows) and 0 < len(targets) <= step:
        return _seen(look, _only(scores, columns), targets, 0)
    found = RankCounts.empty(len(targets), probabilities=way.probabilities)
    for start in range(0, len(targets), step):
        part = slice(start, min(start + step, len(targets)))
        block = scores[part]
        found.put(part, _seen(look, _only(block, columns), targets[part], start))
        if pages is not None:
            pages.drop(block)
    return found


def _seen(look: HostRows | GpuRankCounter, block: Any, targets: Ints, start: int) -> RankCounts:
    """What a block shows; rows of bad scores are named by their place in the whole."""
    try:
        return look(block, targets)
    except NanTargetError as error:
        raise _no_number(start + error.row) from None
    except InfiniteScoreError as error:
        raise _endless(start + error.row) from None


def _only(block: Any, columns: ClassColumns) -> Any:
    """The candidates of a block; a view where they stand side by side."""
    if columns.span is not None:
        return block[:, columns.span]
    if isinstance(block, np.ndarray):
        kept: NDArray[Any] = block.take(columns.codes, axis=1)
        return kept
    from array_api_compat import array_namespace, device

    xp = array_namespace(block)
    return xp.take(block, xp.asarray(columns.codes, device=device(block)), axis=1)


def _no_number(row: int) -> NotFiniteError:
    return NotFiniteError(
        f"the scores of row {row} hold a value that is no number (NaN)",
        hint="a model that gives NaN cannot be scored; name columns that are no class as padding",
    )


def _endless(row: int) -> NotFiniteError:
    return NotFiniteError(
        f"the scores of row {row} hold an infinite value, which has no softmax",
        hint="probabilities need finite scores; -inf may hide a class",
    )
