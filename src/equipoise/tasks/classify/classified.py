"""From a matrix of scores to a ranking and to labels, block by block, each row looked at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import NotFiniteError
from equipoise.evidence.columns import unique_ids
from equipoise.evidence.labels import Labels
from equipoise.evidence.ranking import Ranking
from equipoise.tasks.classify.compiled import CompiledRows, use_compiled
from equipoise.tasks.classify.device import DeviceRows
from equipoise.tasks.classify.guard import (
    candidate_columns,
    checked_cutoffs,
    checked_scores,
    checked_targets,
    class_codes,
)
from equipoise.tasks.classify.host import HostRows
from equipoise.tasks.classify.pages import Pages
from equipoise.tasks.classify.placed import Columns, EndlessError, NotANumberError, Placed
from equipoise.types import Bools, Floats, Ints

CUTOFFS = (1, 3, 5, 10)
HOST_BLOCK = 4 << 20
"""Bytes of scores looked at in one go in host memory: they stay in the cache between the looks."""
COMPILED_BLOCK = 1 << 26
"""The same for the compiled kernel, which looks at rows one by one; it bounds what of a file is in memory,
however many threads share it."""
DEVICE_BLOCK = 1 << 28
"""The same on another device, where it bounds the memory that comparisons need."""


@dataclass(frozen=True)
class Classified:
    """What a matrix of scores says of its units.

    ``ranking`` holds where the target of each unit landed among the ``classes`` candidates, ``labels`` which
    class came first. ``answerable`` marks units whose target was seen in training, ``confidence`` is the
    softmax of the first class and ``target_probability`` that of the target, where they were asked for.
    """

    ranking: Ranking
    labels: Labels
    answerable: Bools
    classes: int
    confidence: Floats | None = None
    target_probability: Floats | None = None

    def __len__(self) -> int:
        return len(self.ranking)

    @classmethod
    def joined(cls, parts: Sequence[Classified]) -> Classified:
        """The rows of all parts, one part after another."""
        labels = [part.labels for part in parts]
        shares = [
            None if any(each is None for each in column) else np.concatenate(column)
            for column in zip(*((part.confidence, part.target_probability) for part in parts), strict=True)
        ]
        return cls(
            ranking=Ranking.concatenated([part.ranking for part in parts]),
            labels=Labels(
                np.concatenate([each.unit_ids for each in labels]),
                np.concatenate([each.true for each in labels]),
                np.concatenate([each.predicted for each in labels]),
                labels[0].classes,
                np.concatenate([part.tied_top for part in parts]),
            ),
            answerable=np.concatenate([part.answerable for part in parts]),
            classes=parts[0].classes,
            confidence=shares[0],
            target_probability=shares[1],
        )

    @property
    def tied_top(self) -> Bools:
        """Which units have several classes with the largest score; the lowest code was predicted there."""
        tied = self.labels.tied_top
        return np.zeros(len(self), dtype=bool) if tied is None else tied

    def take(self, index: Ints) -> Classified:
        """The units at ``index``, in that order."""
        shares = (
            None if each is None else each[index] for each in (self.confidence, self.target_probability)
        )
        return Classified(
            self.ranking.take(index),
            self.labels.take(index),
            self.answerable[index],
            self.classes,
            *shares,
        )

    def with_ids(self, unit_ids: Any) -> Classified:
        """The same units under other ids."""
        ids = unique_ids(unit_ids, len(self))
        return replace(
            self, ranking=replace(self.ranking, unit_ids=ids), labels=replace(self.labels, unit_ids=ids)
        )


def classify(
    scores: Any,
    targets: Any,
    *,
    padding: Any = None,
    unseen: Any = None,
    unit_ids: Any = None,
    ks: Iterable[int] = (),
    block_bytes: int | None = None,
    probabilities: bool = False,
    compiled: bool | None = None,
) -> Classified:
    """Where the target of each row landed and which class came first, from one read of the scores.

    ``scores`` is a (units, classes) matrix of logits or probabilities: numpy, also memory-mapped and larger
    than memory, or torch on any device, where it stays. ``targets`` is a column a row. Columns in ``padding``
    are no classes; targets in ``unseen`` were not seen in training and are marked as not answerable. ``ks``
    are cutoffs to be refused if there are fewer classes. Equal scores are counted, not ordered. ``compiled``
    asks for numba's kernel in host memory, which takes little more time than reading. It is compiled once, in
    seconds, and loaded in one; so by itself only the largest matrices use it (2^31 scores), and those that
    come after. Its threads share large matrices, as many as there are cores or as OMP_NUM_THREADS says. The
    counts are the same.

    >>> found = classify(np.array([[9.0, 1.0, 2.0], [9.0, 3.0, 3.0]]), [2, 2], padding=0)
    >>> found.ranking.above.tolist(), found.ranking.tied.tolist(), found.labels.predicted.tolist()
    ([0, 0], [0, 1], [2, 1])
    """
    scores = checked_scores(scores)
    rows, width = (int(size) for size in scores.shape)
    columns = candidate_columns(padding, width)
    classes = len(columns.codes)
    checked_cutoffs(ks, classes)
    true = checked_targets(targets, rows, width, columns)
    hidden = class_codes(unseen, width, "unseen")
    placed = _placed(scores, columns.places(true), columns, _Way(block_bytes, probabilities, compiled))
    ranking = Ranking.of_targets(
        None if unit_ids is None else unique_ids(unit_ids, rows),
        above=placed.above,
        tied=placed.tied,
        before=placed.before,
        candidates=classes,
    )
    first = columns.named(placed.predicted)
    return Classified(
        ranking=ranking,
        labels=Labels(ranking.unit_ids, true, first, np.arange(width), placed.tied_top),
        answerable=~np.isin(true, hidden) if len(hidden) else np.ones(rows, dtype=bool),
        classes=classes,
        confidence=placed.confidence,
        target_probability=placed.target_probability,
    )


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
