"""What may be scored: matrices of numbers, targets that are classes, cutoffs that can fail."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from equipoise.errors import InputError, ParameterError, ShapeError
from equipoise.evidence.from_scores import on_host
from equipoise.evidence.labels import class_names
from equipoise.tasks.classify.placed import Columns
from equipoise.types import Bools, Ints


def checked_scores(scores: Any) -> Any:
    """A matrix of real numbers with one row a unit and one column a class, where it lies."""
    scores = on_host(scores)
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
        raise ParameterError(
            f"the {what} classes are {found.dtype} values", hint="give column numbers: 0 or [0, 1]"
        )
    for code in found[(found < 0) | (found >= width)]:
        raise ParameterError(
            f"the {what} class {code} is none of the {width} columns", hint=f"classes are 0 to {width - 1}"
        )
    return found.astype(np.int64)


def candidate_columns(padding: Any, width: int) -> Columns:
    """The columns that are classes."""
    dropped = class_codes(padding, width, "padding")
    if len(dropped) == width:
        raise ParameterError(
            f"all {width} classes are padding, and nothing is left to predict",
            hint="name only the columns that are no class",
        )
    every = np.arange(width)
    return Columns(np.delete(every, dropped) if len(dropped) else every)


def checked_targets(targets: Any, rows: int, width: int, columns: Columns) -> Ints:
    """One class code a row, each of a class that can be predicted."""
    codes = class_names(targets, "targets")
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


def checked_cutoffs(ks: Iterable[int], classes: int) -> tuple[int, ...]:
    """Cutoffs that a model can miss: from 1 to the number of classes.

    >>> checked_cutoffs((1, 3, 5, 10), 1000)
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
