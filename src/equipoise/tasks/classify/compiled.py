"""The same look compiled by numba, where that is installed: the first look tells nearly everything.

numpy makes a pass for each question. Compiled, one pass asks them all: what is above the target, what equals
it, and which score is the largest. That takes about as long as reading the array. Threads share the rows.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.evidence.columns import repeated
from equipoise.tasks.classify.host import HostRows, softmax
from equipoise.tasks.classify.placed import NotANumberError, Placed
from equipoise.tasks.classify.threads import shared_out
from equipoise.types import Floats, Ints, need

WORTH = 1 << 31
"""Scores from which on it pays to load numba and the kernel, which takes a second: half a nanosecond each."""

_KERNEL = "equipoise.tasks.classify.kernel"


def use_compiled(scores: NDArray[Any], wanted: bool | None = None) -> bool:
    """Whether the compiled kernel is to read the scores: it can, and it was asked for or pays by itself.

    It pays for very many scores, and for any once it is loaded for scores of that type.

    >>> use_compiled(np.zeros((2, 3), dtype=np.int8), True)
    False
    """
    able = (
        scores.dtype in (np.float32, np.float64)
        and scores.dtype.isnative
        and scores.flags.aligned
        and scores.strides[1] == scores.itemsize
    )
    kernel = sys.modules.get(_KERNEL)
    if wanted:
        if kernel is None:
            need("numba", extra="fast")
        return able
    if wanted is False or not able:
        return False
    if kernel is not None and kernel.knows(scores.dtype):
        return True
    return scores.size >= WORTH and find_spec("numba") is not None


class CompiledRows(HostRows):
    """Places the targets of blocks of rows by the compiled kernel."""

    def __call__(self, block: NDArray[Any], targets: Ints) -> Placed:
        """Where the targets (places among the columns) of the block landed."""
        from equipoise.tasks.classify.kernel import place

        rows, width = block.shape
        above, tied, predicted = (np.empty(rows, dtype=np.int64) for _ in range(3))
        shared = np.empty(rows, dtype=bool)
        scores = block.__array_interface__["data"][0], block.strides[0], width
        like = np.empty(0, dtype=block.dtype)

        def count(part: tuple[int, int]) -> tuple[int, int]:
            found: tuple[int, int] = place(scores, like, targets, above, tied, predicted, shared, part)
            return found

        lost, ties = zip(*shared_out(count, rows, width * block.itemsize), strict=True)
        if max(lost) >= 0:
            raise NotANumberError(min(row for row in lost if row >= 0))
        if any(ties):
            before = self.before(block, targets, tied)
        else:
            tied = before = repeated(np.int64(0), rows)
        shares: tuple[Floats | None, Floats | None] = (None, None)
        if self.probabilities:
            every = np.arange(rows)
            shares = softmax(block, block[every, predicted], block[every, targets])
        return Placed(above, tied, before, predicted, shared, *shares)
