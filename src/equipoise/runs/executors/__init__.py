"""Executors: they apply a pure function to items, in this process or on a cluster, and nothing else."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Generic, Self, TypeVar

from equipoise.errors import ParameterError, UnknownNameError
from equipoise.runs.progress_file import ProgressCallback

Item = TypeVar("Item")
Shared = TypeVar("Shared")
Value = TypeVar("Value")

Function = Callable[[Item, Shared, ProgressCallback], Value]
"""A pure function of an item and of what all items share; it reports the start of each step."""


@dataclass(frozen=True)
class Completed(Generic[Value]):
    """The outcome of one item: its value, or the exception that it raised."""

    index: int
    """The position of the item in the input."""
    outcome: Value | Exception

    def value(self) -> Value:
        """The value; raises the exception of a failed item.

        >>> Completed(0, 7).value()
        7
        """
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


class Executor(ABC):
    """Applies functions to items. A context manager, so that its resources are released.

    An executor stores nothing. The caller stores each outcome before it asks for the next one, and leaves out
    items that are stored already (see ``runs.runner``).
    """

    name: str
    is_remote = True
    """Whether items are sent to other processes or machines."""
    item_label = "a job"
    """What an item is, in messages: a model, a block of texts."""
    on_message: ProgressCallback | None = None
    """Called with a message when an item is started again, or a node is excluded."""

    @abstractmethod
    def map(
        self,
        function: Function[Item, Shared, Value],
        items: Sequence[Item],
        shared: Shared,
        *,
        progress: ProgressCallback | None = None,
        n_cores: int = 1,
    ) -> Iterator[Completed[Value]]:
        """The outcome of every item, in the order in which they complete.

        The exception of an item is its outcome, and the other items continue. ``n_cores`` is the number of
        cores that one item uses.
        """

    @property
    def description(self) -> str:
        """Where the items run."""
        return "this process"

    @property
    def messages(self) -> tuple[str, ...]:
        """The items that were started again, and the nodes that were excluded."""
        return ()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Release all resources."""
        return


class LocalExecutor(Executor):
    """Applies the function in this process, one item at a time, when its outcome is requested. Nothing is copied.

    >>> [done.value() for done in LocalExecutor().map(lambda item, shared, progress: item * shared, [1, 2], 10)]
    [10, 20]
    """

    name = "local"
    is_remote = False

    def map(
        self,
        function: Function[Item, Shared, Value],
        items: Sequence[Item],
        shared: Shared,
        *,
        progress: ProgressCallback | None = None,
        n_cores: int = 1,
    ) -> Iterator[Completed[Value]]:
        """The items one after another."""
        for index, item in enumerate(items):
            try:
                value = function(item, shared, progress or ignore_progress)
            except Exception as error:  # one failing item must not stop the others
                yield Completed(index, error)
            else:
                yield Completed(index, value)


def ignore_progress(text: str) -> None:
    """The progress callback that does nothing."""


def check_device(device: str | None, engine: Executor | None) -> None:
    """Raise an error for a device with a remote executor; can be called before any work starts."""
    if device is not None and engine is not None and engine.is_remote:
        raise ParameterError(
            f"the device {device} can only be used on this machine, and the engine {engine.name} uses the CPUs of "
            "its nodes",
            hint=f"leave out --device {device}, or --engine {engine.name}",
        )


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
    >>> executor().description
    'this process'
    """
    if name not in EXECUTORS:
        raise UnknownNameError.of("engine", name, EXECUTORS, more=f"choose one of {', '.join(EXECUTORS)}")
    if name == "ray":
        from equipoise.runs.executors.ray import RayExecutor

        return RayExecutor(address)
    if address is not None:
        raise ParameterError(
            f"the address {address} cannot be used with the engine local, which runs in this process",
            hint=f"--engine ray --address {address} runs on that cluster",
        )
    return LocalExecutor()
