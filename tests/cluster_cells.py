"""Cells for tests of engines: they stand in a module of their own, since workers import them by name."""

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
from equipoise.runs.progress import ProgressCallback
from equipoise.types import require_extra

PATIENCE_SECONDS = 60.0


def square(cell: int, shared: int, step: ProgressCallback) -> int:
    """The square of a number and something more; even numbers come late."""
    step(f"square {cell}")
    time.sleep(0.2 * (cell % 2 == 0))
    return cell * cell + shared


def complain(cell: str, shared: str, step: ProgressCallback) -> str:
    """Fails in the way that the cell names."""
    if cell == "ours":
        raise InputError("the cell is bad", hint="take another", excerpt="here")
    if cell == "theirs":
        raise KeyError("lost")
    if cell == "stubborn":
        raise StubbornError(threading.Lock())
    return cell


def lacking(cell: str, shared: None, step: ProgressCallback) -> None:
    """Needs a package that nobody has."""
    require_extra("no_such_package", extra="some")


class StubbornError(Exception):
    """An exception that cannot be pickled."""


def die(cell: tuple[str, int], shared: Path, step: ProgressCallback) -> str:
    """Kills its own process until it has been begun so many times."""
    name, times = cell
    with open(shared / name, "a") as file:
        file.write("begun\n")
    if begun(shared / name) <= times:
        os.kill(os.getpid(), signal.SIGKILL)
    return name


def begun(file: Path) -> int:
    """How often a cell was begun."""
    return len(file.read_text().splitlines()) if file.exists() else 0


def wait_for(file: Path) -> None:
    """Wait until a file is there; not for ever."""
    wait_until(file.exists)


def wait_until(holds: Callable[[], bool]) -> None:
    """Wait until something holds; not for ever."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        if time.monotonic() > end:
            raise TimeoutError("it never came")
        time.sleep(0.02)


def at_the_gate() -> None:
    """Write down the node that this runs on, and wait until a file is there."""
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
        """A vector a text."""
        return np.asarray(self._model.embedder.embed(texts))


class Patient(Plain):
    """A model that makes no vector before the gate is open."""

    def encode(self, texts: list[str]) -> np.ndarray:
        """Vectors, once the gate is open."""
        at_the_gate()
        return super().encode(texts)


class Stuck(Plain):
    """A model that waits before the gate only with the text "stuck"."""

    def encode(self, texts: list[str]) -> np.ndarray:
        """Vectors, of most texts at once."""
        if "stuck" in texts:
            at_the_gate()
        return super().encode(texts)
