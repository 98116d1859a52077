"""The same counts for tensors on another device: they are made there, and only counts travel.

On an NVIDIA GPU with Triton one fused kernel reads each score once; elsewhere the array's own library makes
four passes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.tasks.classify.placed import Columns, EndlessError, Placed, refuse_nan
from equipoise.types import Bools, Floats, Ints

_TIED_CELLS = 1 << 24
"""Scores of tied rows looked at together."""


class DeviceRows:
    """Places the targets of blocks of rows where these lie."""

    def __init__(self, columns: Columns, *, probabilities: bool = False) -> None:
        self.columns = columns
        self.probabilities = probabilities

    def needs_blocks(self, scores: Any) -> bool:
        """Whether memory for the scores is needed again: all but the fused kernel alone write copies."""
        from equipoise.tasks.classify.fused import is_fusible

        return self.probabilities or self.columns.span is None or not is_fusible(scores)

    def __call__(self, block: Any, targets: Ints) -> Placed:
        """Where the targets (places among the columns) of the block landed."""
        from equipoise.tasks.classify.fused import fused_counts, is_fusible

        counts = (fused_counts if is_fusible(block) else _separate_counts)(block, targets)
        above, tied, predicted, tied_top, largest = counts
        refuse_nan(largest)
        before = _before(block, targets, np.flatnonzero(tied), self.columns)
        shares = _softmax(block, targets, largest) if self.probabilities else (None, None)
        return Placed(above, tied, before, predicted, tied_top, *shares)


def _host(array: Any) -> NDArray[Any]:
    from array_api_compat import to_device

    return np.asarray(to_device(array, "cpu"))


def _separate_counts(block: Any, targets: Ints) -> tuple[Ints, Ints, Ints, Bools, NDArray[Any]]:
    """Above, tied, first class, whether it is tied, and the largest score, with the library's own passes."""
    from array_api_compat import array_namespace, device

    xp = array_namespace(block)
    limit = _limits(block, targets)
    largest = xp.max(block, axis=1, keepdims=True)
    above = _host(xp.count_nonzero(block > limit, axis=1))
    tied = _host(xp.count_nonzero(block == limit, axis=1)) - 1
    at_top = block == largest
    shared = _host(xp.count_nonzero(at_top, axis=1)) > 1
    # Which of several largest scores argmax names is not defined everywhere: the lowest is meant.
    column = xp.arange(block.shape[1], device=device(block))
    predicted = xp.argmax(block, axis=1)
    first = _host(predicted).astype(np.int64)
    for row in np.flatnonzero(shared).tolist():
        first[row] = int(xp.min(column[at_top[row, :]]))
    top = _host(xp.astype(largest[:, 0], xp.float64) if _is_narrow(xp, block) else largest[:, 0])
    return above.astype(np.int64), tied.astype(np.int64), first, shared, top


def _is_narrow(xp: Any, block: Any) -> bool:
    """Whether the numbers are of a kind that numpy may not know, such as bfloat16."""
    return bool(xp.isdtype(block.dtype, "real floating")) and block.dtype.itemsize < 4


def _limits(block: Any, targets: Ints) -> Any:
    """The score of the target of each row, as a column."""
    from array_api_compat import array_namespace, device

    xp = array_namespace(block)
    places = xp.asarray(targets, device=device(block))
    return xp.take_along_axis(block, xp.reshape(places, (-1, 1)), axis=1)


def _before(block: Any, targets: Ints, rows: Ints, columns: Columns) -> Ints:
    """How many of the scores equal to the target's an order by id puts first."""
    before = np.zeros(len(targets), dtype=np.int64)
    if not len(rows):
        return before
    from array_api_compat import array_namespace, device

    xp = array_namespace(block)
    order = xp.asarray(columns.order, device=device(block))
    step = max(1, _TIED_CELLS // block.shape[1])
    for start in range(0, len(rows), step):
        part = rows[start : start + step]
        some = xp.take(block, xp.asarray(part, device=device(block)), axis=0)
        own = xp.asarray(columns.order[targets[part]][:, None], device=device(block))
        later = (some == _limits(some, targets[part])) & (order[None, :] > own)
        before[part] = _host(xp.count_nonzero(later, axis=1))
    return before


def _softmax(block: Any, targets: Ints, largest: NDArray[Any]) -> tuple[Floats, Floats]:
    """The share of the largest score and of the target; a row of nothing but -inf is shared evenly."""
    from array_api_compat import array_namespace, device

    if np.isposinf(largest).any():
        raise EndlessError(int(np.argmax(np.isposinf(largest))))
    xp = array_namespace(block)
    hidden = np.isneginf(largest)
    kind = xp.float64 if block.dtype == xp.float64 else xp.float32
    shift = xp.asarray(np.where(hidden, 0.0, largest)[:, None], dtype=kind, device=device(block))
    sums = _host(xp.sum(xp.exp(xp.astype(block, kind) - shift), axis=1, dtype=xp.float64))
    own = _host(xp.exp(xp.astype(_limits(block, targets), kind) - shift))[:, 0].astype(np.float64)
    sums, own = np.where(hidden, block.shape[1], sums), np.where(hidden, 1.0, own)
    return 1.0 / sums, own / sums
