"""Run independent jobs: reuse stored outputs, run the rest on an executor, store each output, collect failures.

Every evaluation of several models, embeddings, shards or blocks of texts is a list of jobs. A job function is
pure; the runner does everything else, so that killing and repeating a command resumes it, and one failing job
does not lose the others.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeVar

import numpy as np

from equipoise.errors import EquipoiseError, MissingExtraError, PartialError
from equipoise.geometry.shards import MappedRows
from equipoise.runs.executors import Executor, LocalExecutor
from equipoise.runs.progress_file import ProgressCallback, add_resume_note

if TYPE_CHECKING:
    from collections.abc import Callable

    from equipoise.geometry.sharded_search import MapFunction
    from equipoise.models.worker_pool import ExecutorMap

Inputs = TypeVar("Inputs")
Shared = TypeVar("Shared")
Output = TypeVar("Output")

OnFailure = Literal["continue", "finish"]
"""``continue``: a failure is a result. ``finish``: the other jobs are completed, then the first failure is raised."""

MAX_CONSECUTIVE_FAILURES = 8
"""With ``finish``, this many failures without a success between them end the run: no job will succeed."""


@dataclass(frozen=True)
class Job(Generic[Inputs]):
    """One independent computation.

    ``name`` is unique in a run; files, progress and failures use it. ``key`` is the ``resume_key`` of everything
    that determines the output. It is empty if only the worker knows it, for example because it contains the
    fingerprint of a model that has to be loaded first. A ``divisible`` job is too large for one worker: it runs in this
    process with ``context.executor`` set, and distributes its own work.
    """

    name: str
    inputs: Inputs
    key: str = ""
    divisible: bool = False


@dataclass(frozen=True)
class JobContext(Generic[Shared]):
    """The arguments of a job function besides its job.

    ``shared`` is sent once per run, not once per job. ``stored_key`` is the key of the stored output, empty if
    there is none. ``executor`` is set for a job that runs in this process and may distribute its own work.
    """

    shared: Shared
    stored_key: str
    progress: ProgressCallback
    executor: Executor | None = None


@dataclass(frozen=True)
class JobOutput(Generic[Output]):
    """The value of a job and its key. Without a value, the stored output has the same key and is loaded.

    A value without a key is stored, and computed again by the next run.
    """

    value: Output | None
    key: str = ""


@dataclass(frozen=True)
class StoredOutput(Generic[Output]):
    """An output that an earlier run stored, and its key."""

    key: str
    value: Output


class JobStore(Protocol[Output]):
    """One stored output per job name; see ``runs.experiment_folder.ArtifactStore``."""

    def check_writable(self) -> None:
        """Raise ``StoreError`` if outputs cannot be stored; called once, before any job starts."""

    def load(self, job: Job[Any]) -> StoredOutput[Output] | None:
        """The stored output; None if there is none, or if it is incomplete or unreadable."""

    def save(self, job: Job[Any], value: Output, *, key: str, seconds: float) -> None:
        """Store an output, atomically."""


@dataclass(frozen=True)
class JobResult(Generic[Output]):
    """The output of a job, or the exception that it raised."""

    index: int
    name: str
    output: Output | None = None
    key: str = ""
    exception: Exception | None = None
    resumed: bool = False
    seconds: float = 0.0

    @property
    def value(self) -> Output:
        """The output; raises the exception of a failed job."""
        if self.exception is not None:
            raise self.exception
        return self.output  # type: ignore[return-value]

    @property
    def error(self) -> EquipoiseError | None:
        """The failure as an ``EquipoiseError``: a model of the user may raise anything."""
        if self.exception is None or isinstance(self.exception, EquipoiseError):
            return self.exception
        kind = type(self.exception).__name__
        error = PartialError(
            f"{self.name} failed with {kind}: {self.exception}",
            hint="the model or its data raised this; other jobs are not affected",
        )
        error.__cause__ = self.exception
        return error


@dataclass(frozen=True)
class JobResults(Generic[Output]):
    """The results of all jobs, in the order of the jobs."""

    results: tuple[JobResult[Output], ...]

    @property
    def outputs(self) -> dict[str, Output]:
        """The outputs of the jobs that did not fail, by job name."""
        return {result.name: result.value for result in self.results if result.exception is None}

    @property
    def failures(self) -> dict[str, EquipoiseError]:
        """The errors of the jobs that failed, by job name."""
        return {result.name: result.error for result in self.results if result.error is not None}

    @property
    def resumed(self) -> tuple[str, ...]:
        """The jobs whose stored output was loaded."""
        return tuple(result.name for result in self.results if result.resumed)

    def raise_if_all_failed(self) -> None:
        """Raise the first failure if no job succeeded."""
        if self.results and not self.outputs:
            raise next(iter(self.failures.values()))


def run_jobs(
    function: Callable[[Job[Inputs], JobContext[Shared]], JobOutput[Output]],
    jobs: Sequence[Job[Inputs]],
    shared: Shared,
    **options: Any,
) -> JobResults[Output]:
    """Run all jobs and return their results in the order of the jobs; the options are those of ``iter_jobs``.

    >>> def square(job, context):
    ...     return JobOutput(job.inputs**2 + context.shared)
    >>> run_jobs(square, [Job("two", 2), Job("three", 3)], 1).outputs
    {'two': 5, 'three': 10}
    """
    results = sorted(iter_jobs(function, jobs, shared, **options), key=lambda result: result.index)
    return JobResults(tuple(results))


def iter_jobs(
    function: Callable[[Job[Inputs], JobContext[Shared]], JobOutput[Output]],
    jobs: Sequence[Job[Inputs]],
    shared: Shared,
    *,
    executor: Executor | None = None,
    store: JobStore[Output] | None = None,
    progress: ProgressCallback | None = None,
    on_failure: OnFailure = "continue",
    n_cores: int = 1,
    divisible: bool = False,
) -> Iterator[JobResult[Output]]:
    """Yield the result of each job as it completes, after it was stored.

    Parameters
    ----------
    function : from a job and a context to an output; pure, and picklable for a remote executor
    jobs : the jobs
    shared : the input that all jobs share
    executor : where the jobs run; this process by default
    store : stored outputs. A job whose key equals that of its stored output does not run
    progress : called at the start of each step of a job, and once for a job whose stored output is used
    on_failure : whether a failure is a result, or is raised after the other jobs. ``KeyboardInterrupt``, a lost
        cluster and an output that cannot be stored are raised at once
    n_cores : number of cores that one job uses
    divisible : whether a single job distributes its own work. It then runs in this process with
        ``context.executor`` set, or on the executor if a package is missing here
    """
    executor = executor or LocalExecutor()
    if store is not None:
        store.check_writable()
    loaded = [None if store is None else store.load(job) for job in jobs]
    stored = {index: output for index, output in enumerate(loaded) if output is not None}
    pending: list[int] = []
    for index, job in enumerate(jobs):
        if job.key and index in stored and stored[index].key == job.key:
            if progress is not None:
                progress(job.name)
            yield JobResult(index, job.name, stored[index].value, job.key, resumed=True)
        else:
            pending.append(index)
    items = [(jobs[index], stored[index].key if index in stored else "") for index in pending]
    first_failure: Exception | None = None
    n_consecutive = 0
    outcomes = _execute(executor, items, (function, shared), progress, n_cores, divisible)
    for completed in outcomes if store is None else _with_resume_note(outcomes):
        index = pending[completed.index]
        job = jobs[index]
        if isinstance(completed.outcome, Exception):
            first_failure, n_consecutive = first_failure or completed.outcome, n_consecutive + 1
            if on_failure == "continue":
                yield JobResult(index, job.name, exception=completed.outcome)
            elif n_consecutive == MAX_CONSECUTIVE_FAILURES:
                break
            continue
        n_consecutive = 0
        output, seconds = completed.outcome
        key = output.key or job.key
        if output.value is None and key and index in stored and stored[index].key == key:
            yield JobResult(index, job.name, stored[index].value, key, resumed=True, seconds=seconds)
            continue
        if store is not None:
            store.save(job, output.value, key=key, seconds=seconds)
        yield JobResult(index, job.name, output.value, key, seconds=seconds)
    if first_failure is not None and on_failure == "finish":
        raise first_failure


def _with_resume_note(outcomes: Iterator[Any]) -> Iterator[Any]:
    """The same outcomes, which are stored; an interrupt gets a note that the others can be computed later."""
    try:
        yield from outcomes
    except KeyboardInterrupt as interrupt:
        add_resume_note(interrupt)
        raise


def _execute(
    executor: Executor,
    items: Sequence[Any],
    shared: tuple[Any, Any],
    progress: ProgressCallback | None,
    n_cores: int,
    divisible: bool,
) -> Iterator[Any]:
    """Run the items on the executor; a single divisible one in this process, with the executor in its context."""
    if divisible and len(items) == 1 and executor.is_remote:
        completed = _run_divided(executor, items[0], shared, progress)
        if not isinstance(completed.outcome, MissingExtraError):
            yield completed
            return
    undivided = [index for index, (job, _) in enumerate(items) if not (job.divisible and executor.is_remote)]
    for completed in executor.map(
        _run_job, [items[index] for index in undivided], (*shared, None), progress=progress, n_cores=n_cores
    ):
        yield replace(completed, index=undivided[completed.index])
    for index in sorted(set(range(len(items))) - set(undivided)):
        yield replace(_run_divided(executor, items[index], shared, progress), index=index)


def _run_divided(executor: Executor, item: Any, shared: tuple[Any, Any], progress: ProgressCallback | None) -> Any:
    """Run an item in this process, with the executor in its context, which computes blocks of texts."""
    label, executor.item_label = executor.item_label, "a block of texts"
    try:
        (completed,) = LocalExecutor().map(_run_job, [item], (*shared, executor), progress=progress)
    finally:
        executor.item_label = label
    return completed


def _run_job(item: Any, shared: Any, progress: ProgressCallback) -> tuple[JobOutput[Any], float]:
    """Run one job where it was sent; returns its output and its seconds."""
    (job, stored_key), (function, common, executor) = item, shared
    start = perf_counter()
    output = function(job, JobContext(common, stored_key, progress, executor))
    return output, perf_counter() - start


# Plain map functions for the layers below, which have no executors: blocks of texts, shards of vectors.


def executor_map(executor: Executor, *, n_cores: int = 1) -> ExecutorMap:
    """A map function that yields the index and the value of each item as it completes."""
    return partial(_map_as_completed, executor, n_cores)


def resumable_map(executor: Executor, folder: Path | str | None = None) -> MapFunction:
    """Create a map function over shards that runs on an executor and can be resumed.

    A shard that fails ends the call after all other shards are finished. Shards are sent as paths, so all machines must
    have access to their files; the values do not depend on the executor.

    Parameters
    ----------
    executor
        The executor, see ``equipoise.shards.executor``.
    folder
        Folder for finished shards. A shard that is stored there is not computed again, so repeating an interrupted call
        resumes it.

    Returns
    -------
    callable
        A value for the argument ``map_function`` of ``nearest_in_shards`` and ``ranking_from_shards``.

    Examples
    --------
    >>> from equipoise.shards import executor, nearest_in_shards
    >>> with executor("local") as engine:
    ...     nearest_in_shards(np.eye(2), [np.eye(2)], 1, map_function=resumable_map(engine)).indices.tolist()
    [[0], [1]]
    """
    return partial(_map_in_order, executor, None if folder is None else Path(folder))


def _map_as_completed(
    executor: Executor, n_cores: int, work: Callable[[Any], Any], items: Sequence[Any]
) -> Iterator[tuple[int, Any]]:
    jobs = [Job(str(index), item) for index, item in enumerate(items)]
    for result in iter_jobs(_apply, jobs, work, executor=executor, on_failure="finish", n_cores=n_cores):
        yield result.index, result.value


def _map_in_order(
    executor: Executor, folder: Path | None, work: Callable[[Any], Any], items: Iterable[Any]
) -> Iterator[Any]:
    from equipoise.runs.experiment_folder import ArtifactStore

    jobs = [Job(str(index), item) for index, item in enumerate(items)]
    store = None
    if folder is not None:
        keys = [resume_key(work, job.inputs) for job in jobs]
        jobs = [Job(key, job.inputs, key) for job, key in zip(jobs, keys, strict=True)]
        store = ArtifactStore[Any](folder)
    results = run_jobs(_apply, jobs, work, executor=executor, store=store, on_failure="finish")
    return iter([result.value for result in results.results])


def _apply(job: Job[Any], context: JobContext[Callable[[Any], Any]]) -> JobOutput[Any]:
    return JobOutput(context.shared(job.inputs))


# Resume keys.


def resume_key(*parts: object) -> str:
    """SHA-256 of plain values, dataclasses, arrays, functions with their arguments, and files of shards.

    >>> resume_key("hash", 3) == resume_key("hash", 3) != resume_key("hash", "3")
    True
    """
    digest = hashlib.sha256()
    for part in parts:
        _update(digest, part)
    return digest.hexdigest()


def _update(digest: Any, value: Any) -> None:
    if isinstance(value, partial):
        value = (value.func, value.args, value.keywords)
    digest.update(f"{type(value).__name__}:".encode())
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        digest.update(f"{value.dtype.str}{value.shape}".encode())
        digest.update(np.ascontiguousarray(value).data)
    elif isinstance(value, MappedRows):
        status = os.stat(value.path)
        digest.update(f"{value}{status.st_size}{status.st_mtime_ns}".encode())
    elif is_dataclass(value):
        _update(digest, {field.name: getattr(value, field.name) for field in fields(value)})
    elif isinstance(value, Mapping):
        _update(digest, sorted(value.items(), key=lambda item: repr(item[0])))
    elif isinstance(value, set | frozenset):
        _update(digest, sorted(value, key=repr))
    elif isinstance(value, list | tuple | np.ndarray):
        digest.update(f"{len(value)} ".encode())
        for entry in value:
            _update(digest, entry)
    elif callable(value) and hasattr(value, "__qualname__"):
        digest.update(f"{value.__module__}.{value.__qualname__}\0".encode())
    else:
        digest.update(f"{value!r}\0".encode())
