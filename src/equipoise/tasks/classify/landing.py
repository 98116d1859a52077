"""Where the targets of a matrix of scores landed, block by block, each row looked at once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import NotFiniteError
from equipoise.evidence.ranking import Ranking
from equipoise.tasks.classify.compiled import CompiledRows, use_compiled
from equipoise.tasks.classify.device import DeviceRows
from equipoise.tasks.classify.guard import (
    candidate_columns,
    checked_cutoffs,
    checked_scores,
    checked_targets,
)
from equipoise.tasks.classify.host import HostRows
from equipoise.tasks.classify.pages import Pages
from equipoise.tasks.classify.placed import Columns, EndlessError, NotANumberError, Placed
from equipoise.types import Ids, Ints

HOST_BLOCK = 4 << 20
"""Bytes of scores looked at in one go in host memory: they stay in the cache between the looks."""
COMPILED_BLOCK = 1 << 26
"""The same for the compiled kernel, which looks at rows one by one; it bounds what of a file is in memory,
however many threads share it."""
DEVICE_BLOCK = 1 << 28
"""The same on another device, where it bounds the memory that comparisons need."""


@dataclass(frozen=True, slots=True)
class Landed:
    """Where the target of each row landed among the columns that are classes, and the target itself."""

    placed: Placed
    true: Ints
    columns: Columns

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


def landed(
    scores: Any,
    targets: Any,
    *,
    padding: Any = None,
    ks: Iterable[int] = (),
    block_bytes: int | None = None,
    probabilities: bool = False,
    compiled: bool | None = None,
) -> Landed:
    """Where the target of each row landed, and nothing besides; see ``classify`` for what is asked."""
    scores = checked_scores(scores)
    rows, width = (int(size) for size in scores.shape)
    columns = candidate_columns(padding, width)
    checked_cutoffs(ks, len(columns.codes))
    true = checked_targets(targets, rows, width, columns)
    placed = _placed(scores, columns.places(true), columns, _Way(block_bytes, probabilities, compiled))
    return Landed(placed, true, columns)


@dataclass(frozen=True)
class _Way:
    """How the rows are to be looked at."""

    block_bytes: int | None
    probabilities: bool
    compiled: bool | None

    def look(self, scores: Any, columns: Columns, *, mapped: bool) -> tuple[HostRows | DeviceRows, int]:
        """What looks at a block of rows, and how many these are."""
        rows, row_bytes = len(scores), int(scores.shape[1]) * scores.dtype.itemsize

        def step(usual: int) -> int:
            return max(1, min((self.block_bytes or usual) // row_bytes, rows))

        if not isinstance(scores, np.ndarray):
            look = DeviceRows(columns, probabilities=self.probabilities)
            whole = self.block_bytes is None and not look.needs_blocks(scores)
            return look, max(1, rows) if whole else step(DEVICE_BLOCK)
        if columns.span is not None and use_compiled(scores[:, columns.span], self.compiled):
            whole = self.block_bytes is None and not (self.probabilities or mapped)
            size = max(1, rows) if whole else step(HOST_BLOCK if self.probabilities else COMPILED_BLOCK)
            return CompiledRows(columns, size, probabilities=self.probabilities), size
        size = step(HOST_BLOCK)
        return HostRows(columns, size, probabilities=self.probabilities), size


def _placed(scores: Any, targets: Ints, columns: Columns, way: _Way) -> Placed:
    """All rows, a block at a time."""
    pages = Pages(scores) if isinstance(scores, np.ndarray) else None
    look, step = way.look(scores, columns, mapped=pages is not None and pages.mapping is not None)
    if isinstance(look, HostRows) and 0 < len(targets) <= step:
        return _seen(look, _only(scores, columns), targets, 0)
    found = Placed.empty(len(targets), probabilities=way.probabilities)
    for start in range(0, len(targets), step):
        part = slice(start, min(start + step, len(targets)))
        block = scores[part]
        found.put(part, _seen(look, _only(block, columns), targets[part], start))
        if pages is not None:
            pages.drop(block)
    return found


def _seen(look: HostRows | DeviceRows, block: Any, targets: Ints, start: int) -> Placed:
    """What a block shows; rows of bad scores are named by their place in the whole."""
    try:
        return look(block, targets)
    except NotANumberError as error:
        raise _no_number(start + error.row) from None
    except EndlessError as error:
        raise _endless(start + error.row) from None


def _only(block: Any, columns: Columns) -> Any:
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
