"""Jobs for the tests of engines, in a separate module because workers import them by name."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from equipoise.errors import InputError
from equipoise.models.retriever import retriever
from equipoise.runs.progress_file import ProgressCallback
from equipoise.types import require_extra

TIMEOUT_SECONDS = 60.0


def square(job: int, shared: int, step: ProgressCallback) -> int:
    """Return the square of a number plus a constant; even numbers finish later."""
    step(f"square {job}")
    time.sleep(0.2 * (job % 2 == 0))
    return job * job + shared


def fail_as_named(job: str, shared: str, step: ProgressCallback) -> str:
    """Raise the exception that the job names."""
    if job == "input-error":
        raise InputError("the job is bad", hint="take another", excerpt="here")
    if job == "key-error":
        raise KeyError("lost")
    if job == "stubborn":
        raise StubbornError(threading.Lock())
    return job


def require_missing_package(job: str, shared: None, step: ProgressCallback) -> None:
    """Require a package that does not exist."""
    require_extra("no_such_package", extra="some")


class StubbornError(Exception):
    """An exception that cannot be pickled."""


def kill_worker(job: tuple[str, int], shared: Path, step: ProgressCallback) -> str:
    """Kill the process of the worker until the job has been started a given number of times."""
    name, n_kills = job
    with open(shared / name, "a") as file:
        file.write("started\n")
    if count_starts(shared / name) <= n_kills:
        os.kill(os.getpid(), signal.SIGKILL)
    return name


def count_starts(file: Path) -> int:
    """How often a job was started."""
    return len(file.read_text().splitlines()) if file.exists() else 0


def wait_for(file: Path) -> None:
    """Wait until a file exists, at most TIMEOUT_SECONDS."""
    wait_until(file.exists)


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds, at most TIMEOUT_SECONDS."""
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError("the condition did not hold in time")
        time.sleep(0.02)


def wait_for_gate() -> None:
    """Write the id of the node to a file, and wait until the file ``gate`` exists."""
    if not Path("gate").exists():
        import ray

        Path(".node").write_text(ray.get_runtime_context().get_node_id())
        Path(".node").rename("node")
        wait_for(Path("gate"))


class Plain:
    """A model of hashed words."""

    def __init__(self) -> None:
        self._model: Any = retriever("hash,dim=16")

    def encode(self, texts: list[str]) -> np.ndarray:
        """One vector per text."""
        return np.asarray(self._model.embedder.embed(texts))


class Patient(Plain):
    """A model that waits for the file ``gate`` before it embeds."""

    def encode(self, texts: list[str]) -> np.ndarray:
        """Embed after the file ``gate`` exists."""
        wait_for_gate()
        return super().encode(texts)


class Stuck(Plain):
    """A model that waits for the file ``gate`` only for the text "stuck"."""

    def encode(self, texts: list[str]) -> np.ndarray:
        """Embed; wait for the file ``gate`` first for the text "stuck"."""
        if "stuck" in texts:
            wait_for_gate()
        return super().encode(texts)
