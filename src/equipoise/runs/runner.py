"""Shards searched on an engine, here or on a cluster; those that are finished are kept.

``nearest_in_shards`` and ``ranking_from_shards`` take ``over=``: how a function is applied to every shard.
``resumable_map`` makes one of an engine. The functions are pure and shards travel as paths, so the answer has the
same bytes as in this process; a file system that all machines see must hold the shards.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, is_dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.errors import EquipoiseError
from equipoise.evidence.base import pack_npz, unpack_npz
from equipoise.evidence.ranking_from_vectors import ShardCounts
from equipoise.geometry.search import Neighbors
from equipoise.geometry.shards import MappedRows, Shard
from equipoise.io.atomic import write_bytes

if TYPE_CHECKING:
    from equipoise.geometry.sharded_search import MapFunction
    from equipoise.runs.executors import Executor
    from equipoise.runs.progress import ProgressCallback

Answer = Neighbors | ShardCounts
Work = Callable[[Shard], Answer]
_KINDS: tuple[type[Answer], ...] = (Neighbors, ShardCounts)


def resumable_map(engine: Executor, keep: Path | str | None = None) -> MapFunction:
    """Create a map function over shards that runs on an executor and can be resumed.

    A shard that fails ends the call after all other shards are finished.

    Parameters
    ----------
    engine
        The executor, see ``executor``.
    keep
        Folder for finished shards. A shard that is stored there is not computed again, so repeating an interrupted call
        resumes it.

    Returns
    -------
    callable
        The argument ``over`` of ``nearest_in_shards`` and ``ranking_from_shards``.

    Examples
    --------
    >>> from equipoise.geometry.sharded_search import nearest_in_shards
    >>> from equipoise.runs.executors import LocalExecutor
    >>> nearest_in_shards(np.eye(2), [np.eye(2)], 1, over=resumable_map(LocalExecutor())).indices.tolist()
    [[0], [1]]
    """
    folder = None if keep is None else Path(keep)
    return partial(_mapped, engine, folder)


def _mapped(engine: Executor, folder: Path | None, work: Work, shards: Iterable[Shard]) -> Iterator[Answer]:
    """The answers in the order of the shards."""
    given = list(shards)
    files = [None if folder is None else folder / f"{_key(work, shard)}.npz" for shard in given]
    answers: dict[int, Answer] = {}
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    for place, file in enumerate(files):
        if file is not None and (kept := _kept(file)) is not None:
            answers[place] = kept
    open_places = [place for place in range(len(given)) if place not in answers]
    failures: list[Exception] = []
    for finished in engine.map(_one, [given[place] for place in open_places], work):
        place = open_places[finished.place]
        if isinstance(finished.outcome, Exception):
            failures.append(finished.outcome)
            continue
        answers[place] = finished.outcome
        if (file := files[place]) is not None:
            write_bytes(file, pack_npz(_arrays(finished.outcome)))
    if failures:
        raise failures[0]
    return iter([answers[place] for place in range(len(given))])


def _one(shard: Shard, work: Work, step: ProgressCallback) -> Answer:
    """One shard, as a cell of an engine."""
    return work(shard)


def _arrays(answer: Answer) -> dict[str, Any]:
    return {field.name: getattr(answer, field.name) for field in fields(answer)}


def _kept(file: Path) -> Answer | None:
    """The answer of an earlier call; None where there is none, or where it is damaged."""
    if not file.is_file():
        return None
    try:
        arrays = unpack_npz(file)
    except (EquipoiseError, OSError, ValueError, KeyError):
        return None
    for kind in _KINDS:
        if set(arrays) == {field.name for field in fields(kind)}:
            return kind(**arrays)
    return None


def _key(work: Work, shard: Shard) -> str:
    """What tells this work on this shard from any other: the function, all it is given, and the file."""
    digest = hashlib.sha256()
    _add(digest, work)
    _add(digest, shard)
    return digest.hexdigest()[:40]


def _add(digest: Any, value: Any) -> None:
    if isinstance(value, partial):
        value = (value.func.__qualname__, value.args, tuple(sorted(value.keywords.items())))
    if isinstance(value, np.ndarray):
        digest.update(f"{value.dtype.str}{value.shape}".encode())
        digest.update(np.ascontiguousarray(value).data)
    elif isinstance(value, MappedRows):
        found = os.stat(value.path)
        digest.update(f"{value}{found.st_size}{found.st_mtime_ns}".encode())
    elif is_dataclass(value):
        for field in fields(value):
            digest.update(field.name.encode())
            _add(digest, getattr(value, field.name))
    elif isinstance(value, tuple):
        for each in value:
            _add(digest, each)
    else:
        digest.update(f"{type(value).__name__} {value!r}\0".encode())
