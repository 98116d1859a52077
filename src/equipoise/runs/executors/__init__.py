"""What an engine is: it maps a pure function over cells, and hands each back as it is finished."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Generic, Self, TypeVar

from equipoise.errors import ParameterError, UnknownNameError
from equipoise.runs.progress import ProgressCallback

Cell = TypeVar("Cell")
Shared = TypeVar("Shared")
Value = TypeVar("Value")

Function = Callable[[Cell, Shared, ProgressCallback], Value]
"""A pure function of a cell and of what all cells share; it tells a step when it begins one."""

MAX_CONSECUTIVE_FAILURES = 8
"""So many failures without a success between them say that no cell will succeed."""


@dataclass(frozen=True)
class Completed(Generic[Value]):
    """A cell that came to an end: what it gave, or why it gave nothing."""

    place: int
    """Where the cell stands among those that were given."""
    outcome: Value | Exception

    def value(self) -> Value:
        """What the cell gave; raises what went wrong with it.

        >>> Completed(0, 7).value()
        7
        """
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


class Executor(ABC):
    """Runs cells somewhere. Used with ``with``, so that what it holds there is let go.

    Nothing is kept here: whoever maps writes a finished cell down before asking for the next one, and leaves
    out what lies there already. Then whatever dies, no finished cell is lost, and the same call goes on.
    """

    name: str
    unit = "a piece of the work"
    """What people call a cell here, such as a model or a block of texts."""
    tell: ProgressCallback | None = None
    """Called with what happens to cells on their way, when it happens."""

    @abstractmethod
    def map(
        self,
        function: Function[Cell, Shared, Value],
        cells: Sequence[Cell],
        shared: Shared,
        *,
        step: ProgressCallback | None = None,
        cores: int = 1,
    ) -> Iterator[Completed[Value]]:
        """Every cell once, in the order in which they are finished.

        A cell that fails is handed back with its error, and the others go on. ``cores`` are those that one
        cell uses.
        """

    def in_order(self, work: Callable[[Cell], Value], items: Iterable[Cell]) -> Iterator[Value]:
        """What ``map`` of Python gives, from this engine; the first error is raised when its turn comes.

        For whoever splits work by a function alone, such as ``nearest_in_shards(..., over=engine.in_order)``.
        The function is shared, so that what is bound to it travels once.
        """
        early: dict[int, Completed[Value]] = {}
        turn = 0
        for each in self.map(_apply, list(items), work):
            early[each.place] = each
            while turn in early:
                yield early.pop(turn).value()
                turn += 1

    def as_finished(
        self, work: Callable[[Cell], Value], items: Sequence[Cell], *, cores: int = 1
    ) -> Iterator[tuple[int, Value]]:
        """The place of an item and its answer, in the order in which they are finished.

        An item that fails keeps no other from being handed over: the first error is raised when all others
        are there, or when nothing but failures comes.
        """
        failure: Exception | None = None
        in_a_row = 0
        for each in self.map(_apply, items, work, cores=cores):
            if isinstance(each.outcome, Exception):
                failure, in_a_row = failure or each.outcome, in_a_row + 1
                if in_a_row == MAX_CONSECUTIVE_FAILURES:
                    break
            else:
                in_a_row = 0
                yield each.place, each.outcome
        if failure is not None:
            raise failure

    @property
    def place(self) -> str:
        """Where the cells run, for people."""
        return "this process"

    @property
    def notes(self) -> tuple[str, ...]:
        """What happened to cells on their way."""
        return ()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let go of whatever is held."""
        return


def _apply(cell: Cell, work: Callable[[Cell], Value], step: ProgressCallback) -> Value:
    return work(cell)


# Cells in this process, one after the other.


class LocalExecutor(Executor):
    """Runs each cell when it is asked for; nothing is copied, so that anything may be a cell.

    >>> engine = LocalExecutor()
    >>> [each.value() for each in engine.map(lambda cell, shared, step: cell * shared, [1, 2], 10)]
    [10, 20]
    """

    name = "local"

    def map(
        self,
        function: Function[Cell, Shared, Value],
        cells: Sequence[Cell],
        shared: Shared,
        *,
        step: ProgressCallback | None = None,
        cores: int = 1,
    ) -> Iterator[Completed[Value]]:
        """Every cell in turn."""
        for place, cell in enumerate(cells):
            try:
                value = function(cell, shared, step or _silent)
            except Exception as error:  # whatever one cell does, the others go on
                yield Completed(place, error)
            else:
                yield Completed(place, value)


def _silent(text: str) -> None:
    """Nobody listens."""


# The engines by name.

EXECUTORS = ("local", "ray")


def executor(name: str = "local", address: str | None = None) -> Executor:
    """Create an executor by name. It is a context manager: use it in a ``with`` statement.

    Parameters
    ----------
    name
        ``local`` or ``ray``.
    address
        Address of a Ray cluster, such as ``ray://head:10001``.

    Returns
    -------
    Executor
        Maps pure functions over jobs, in this process or on the cluster.

    Examples
    --------
    >>> executor().place
    'this process'
    """
    if name not in EXECUTORS:
        raise UnknownNameError.of("engine", name, EXECUTORS, more=f"choose one of {', '.join(EXECUTORS)}")
    if name == "ray":
        from equipoise.runs.executors.ray import RayExecutor

        return RayExecutor(address)
    if address is not None:
        raise ParameterError(
            f"the address {address} is of no use to the engine local, which stays in this process",
            hint=f"--engine ray --address {address} runs on that cluster",
        )
    return LocalExecutor()
