"""One model in several processes: each loads it for itself and takes the next block of texts.

A worker is a fresh interpreter (``equipoise.embed.local.worker``) that talks through pipes, so the caller's
script is not run again, as it would be by a spawned pool, and a worker ends when its parent does.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from itertools import islice
from queue import SimpleQueue
from typing import Any

from equipoise.embed.local.encoder import Encoded, LocalEncoder
from equipoise.embed.spec import Spec
from equipoise.errors import EquipoiseError
from equipoise.types import Role


class Workers(LocalEncoder):
    """The same vectors as the model in one process, made by several."""

    def __init__(self, spec: Spec, processes: int) -> None:
        self._workers = [_Worker(spec) for _ in range(processes)]
        self._threads = ThreadPoolExecutor(processes, thread_name_prefix="equipoise-worker")
        self._idle: SimpleQueue[_Worker] = SimpleQueue()
        try:
            traits, *_ = [worker.receive() for worker in self._workers]
        except BaseException:
            self.close()
            raise
        for name, value in traits.items():
            setattr(self, name, value)
        for worker in self._workers:
            self._idle.put(worker)

    def encode_counted(self, texts: Sequence[str], role: Role) -> Encoded:
        """One block, by whichever worker is free."""
        encoded: Encoded = self._ask(list(texts), role)
        return encoded

    def token_counts(self, texts: Sequence[str]) -> list[int] | None:
        """Lengths, by whichever worker is free."""
        counts: list[int] | None = self._ask(list(texts), None)
        return counts

    def encode_blocks(self, blocks: Iterable[list[str]], role: Role) -> Iterator[tuple[int, Encoded]]:
        """Blocks by number, in the order in which they are done; few are in flight at a time."""
        numbered = enumerate(blocks)
        running: dict[Future[Any], int] = {}
        try:
            while True:
                for number, texts in islice(numbered, 2 * len(self._workers) - len(running)):
                    running[self._threads.submit(self._ask, texts, role)] = number
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
        for worker in self._workers:
            worker.close()
        self._threads.shutdown(wait=True, cancel_futures=True)

    def _ask(self, texts: list[str], role: Role | None) -> Any:
        worker = self._idle.get()
        try:
            return worker.ask((texts, role))
        finally:
            self._idle.put(worker)


class _Worker:
    """The parent's end of one process."""

    def __init__(self, spec: Spec) -> None:
        path = os.pathsep.join(each or os.getcwd() for each in sys.path)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "equipoise.embed.local.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": path},
        )
        self._send(spec)

    def ask(self, question: Any) -> Any:
        """Send and wait for the answer."""
        self._send(question)
        return self.receive()

    def receive(self) -> Any:
        """The next answer; an error of the worker is raised here."""
        assert self._process.stdout is not None
        try:
            answer = pickle.load(self._process.stdout)
        except (EOFError, pickle.UnpicklingError, OSError, ValueError) as error:
            code = self._process.poll()
            raise EquipoiseError(
                f"a worker process ended early (exit status {code})",
                hint="out of memory? use fewer processes; with processes=1 the error shows itself",
            ) from error
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def close(self) -> None:
        """Close the pipe, which the worker takes as the end; make sure that it does."""
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

    def _send(self, question: Any) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # the reader of the answer explains a dead worker
            pickle.dump(question, self._process.stdin, protocol=5)
            self._process.stdin.flush()
