"""Encode in other processes or on a cluster: each worker loads the model and takes the next block of texts.

A worker is a new interpreter with pipes: the script of the caller is not run again, as by a spawned pool, and a worker
ends with its parent.
"""

from __future__ import annotations

import os
import pickle
import platform
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import islice
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

from equipoise.errors import EquipoiseError, MissingExtraError
from equipoise.models.encoder import EncodedBatch, Encoder, LocalEncoder, encode_with_token_counts
from equipoise.models.registry import ModelSpec, load_encoder

if TYPE_CHECKING:
    from equipoise.models.embedder import Embedder
    from equipoise.models.encoder import Role, Vectors


class WorkerJob(Protocol):
    """The job of a worker process: ``open`` loads its resource, and returns facts about it and a function."""

    def open(self) -> tuple[Any, Callable[[Any], Any]]:
        """Called once in the process."""


class WorkerPool:
    """Processes that have opened the same job; a request goes to an idle one."""

    def __init__(self, job: WorkerJob, processes: int) -> None:
        self.processes = processes
        self._workers = [_Worker(job) for _ in range(processes)]
        self._threads = ThreadPoolExecutor(processes, thread_name_prefix="equipoise-worker")
        self._idle: SimpleQueue[_Worker] = SimpleQueue()
        try:
            self.facts, *_ = [worker.receive() for worker in self._workers]
        except BaseException:
            self.close()
            raise
        for worker in self._workers:
            self._idle.put(worker)

    def submit(self, request: Any) -> Future[Any]:
        """The future of the response to a request."""
        return self._threads.submit(self.call, request)

    def call(self, request: Any) -> Any:
        """The response to a request."""
        worker = self._idle.get()
        try:
            return worker.call(request)
        finally:
            self._idle.put(worker)

    def close(self) -> None:
        """End the processes."""
        for worker in self._workers:
            worker.close()
        self._threads.shutdown(wait=True, cancel_futures=True)


class WorkerPoolEncoder(LocalEncoder):
    """A model in several processes; the vectors are the same."""

    def __init__(self, spec: ModelSpec, processes: int) -> None:
        self._pool = WorkerPool(EncoderJob(spec), processes)
        for name, value in self._pool.facts.items():
            setattr(self, name, value)

    def encode_counted(self, texts: Sequence[str], role: Role) -> EncodedBatch:
        """Encode one block in an idle worker."""
        encoded: EncodedBatch = self._pool.call((list(texts), role))
        return encoded

    def token_counts(self, texts: Sequence[str]) -> list[int] | None:
        """Count tokens in an idle worker."""
        counts: list[int] | None = self._pool.call((list(texts), None))
        return counts

    def encode_blocks(self, blocks: Iterable[list[str]], role: Role) -> Iterator[tuple[int, EncodedBatch]]:
        """Blocks by number, in the order in which they are done; few are in flight at a time."""
        numbered = enumerate(blocks)
        running: dict[Future[Any], int] = {}
        try:
            while True:
                for number, texts in islice(numbered, 2 * self._pool.processes - len(running)):
                    running[self._pool.submit((texts, role))] = number
                if not running:
                    return
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    yield running.pop(future), future.result()
        finally:
            for future in running:
                future.cancel()

    def close(self) -> None:
        """End the processes."""
        self._pool.close()


class _Worker:
    """The parent's end of one process."""

    def __init__(self, job: WorkerJob) -> None:
        path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "equipoise.models.worker_pool"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": path},
        )
        self._send(job)

    def call(self, request: Any) -> Any:
        """Send a request and wait for the result."""
        self._send(request)
        return self.receive()

    def receive(self) -> Any:
        """The next response; an error of the worker is raised here."""
        assert self._process.stdout is not None
        try:
            answer = pickle.load(self._process.stdout)
        except (EOFError, pickle.UnpicklingError, OSError, ValueError) as error:
            code = self._process.poll()
            raise EquipoiseError(
                f"a worker process ended early (exit status {code})",
                hint="out of memory? use fewer processes; processes=1 shows the error",
            ) from error
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def close(self) -> None:
        """Close the pipe, which ends the worker, and wait for it."""
        with suppress(OSError):
            if self._process.stdin is not None:
                self._process.stdin.close()
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def _send(self, request: Any) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # the reader of the answer explains a dead worker
            pickle.dump(request, self._process.stdin, protocol=5)
            self._process.stdin.flush()


# The worker process: opens one job and answers requests on standard input.

TRAITS = ("card", "identity", "block_texts", "symmetric", "cacheable", "normalizes", "prompts")
"""What the parent must know of the model without loading it."""


@dataclass(frozen=True)
class EncoderJob:
    """Load a model; a request is texts and a role, or None instead of a role for their lengths alone."""

    spec: ModelSpec

    def open(self) -> tuple[dict[str, Any], Callable[[tuple[list[str], Any]], Any]]:
        """The traits of the model, and the function that encodes."""
        encoder = load_encoder(self.spec)

        def answer(request: tuple[list[str], Any]) -> Any:
            texts, role = request
            return encoder.token_counts(texts) if role is None else encode_with_token_counts(encoder, texts, role)

        return {name: getattr(encoder, name) for name in TRAITS}, answer


def main() -> None:
    """Open the job of the first message, then answer until the pipe closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what an interrupt means
    questions = sys.stdin.buffer
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # output of libraries must not mix with responses
    try:
        facts, work = pickle.load(questions).open()
    except Exception as error:
        _answer(answers, _portable(error))
        return
    _answer(answers, facts)
    while True:
        try:
            request = pickle.load(questions)
        except EOFError:
            return
        try:
            answer = work(request)
        except Exception as error:
            answer = _portable(error)
        _answer(answers, answer)


def _portable(error: Exception) -> EquipoiseError:
    """An error that the parent can read, without the package that defines it."""
    if isinstance(error, EquipoiseError):
        return error
    return EquipoiseError(f"a worker failed: {type(error).__name__}: {error}", hint="try processes=1")


def _answer(stream: BinaryIO, answer: Any) -> None:
    pickle.dump(answer, stream, protocol=5)
    stream.flush()


if __name__ == "__main__":
    main()


# Remote encoding: the model is loaded on the node, and the vectors are returned.

ExecutorMap = Callable[[Callable[[Any], Any], Sequence[Any]], Iterator[tuple[int, Any]]]
"""Applies a pure function to every item; yields the index of an item and its result as they are finished."""


def encode_remote(
    model: Embedder, blocks: Sequence[list[str]], role: Role, map_function: ExecutorMap
) -> Iterator[tuple[int, EncodedBatch]]:
    """The number of a block and its vectors, in the order of completion."""
    return map_function(partial(_encode_block, _portable_model(model), role), blocks)


def embed_parts(
    model: Embedder, parts: Sequence[Sequence[str]], map_function: ExecutorMap | None
) -> Iterator[tuple[int, Vectors]]:
    """The number of each part of a corpus and its final vectors, without the vector cache; remote if mapped."""
    from equipoise.models.embedder import Embedder

    if map_function is not None:
        return map_function(partial(_embed_part, _portable_model(model), model.spec), parts)
    uncached = Embedder(model.encoder, model.spec, cache=None)
    return enumerate(uncached.embed(part) for part in parts)


@dataclass(frozen=True)
class PortableModel:
    """A model given by name is loaded on each node; a model object is sent.

    An identity of "" is any: the model does not say which one it is.
    """

    encoder: Encoder | None
    spec: bytes = b""
    identity: str = ""

    def load(self) -> Encoder:
        """The model on this node, if its identity matches."""
        if self.encoder is not None:
            return self.encoder
        try:
            encoder = _load_model(self.spec)
        except EquipoiseError as error:  # it was loaded on the calling machine, so something is missing here
            raise MissingExtraError(
                f"the node {platform.node()} cannot load the model: {error.message}",
                hint="install the same packages and models on every node",
            ) from error
        if self.identity and encoder.identity != self.identity:
            raise MissingExtraError(
                f"{encoder.card.name} on the node {platform.node()} differs from the one where the command was started",
                hint="install the same version of the model on every node",
            )
        return encoder


def _portable_model(model: Embedder) -> PortableModel:
    spec, encoder = model.spec, model.encoder
    if not spec.text:
        return PortableModel(encoder)
    packed = pickle.dumps(spec.without(["processes"]))
    return PortableModel(None, packed, encoder.identity if encoder.cacheable else "")


def _encode_block(model: PortableModel, role: Role, texts: list[str]) -> EncodedBatch:
    return encode_with_token_counts(model.load(), texts, role)


def _embed_part(model: PortableModel, spec: ModelSpec, texts: Sequence[str]) -> Vectors:
    from equipoise.models.embedder import Embedder

    return Embedder(model.load(), spec, cache=None).embed(texts)


@lru_cache(maxsize=1)
def _load_model(packed: bytes) -> Encoder:
    """The model of a spec, loaded once per process."""
    return load_encoder(pickle.loads(packed))
