"""Items on the nodes of a Ray cluster; completed items are returned even if workers or nodes die."""

from __future__ import annotations

import logging
import os
import pickle
import warnings
from collections import deque
from collections.abc import Iterator, Sequence, Set
from contextlib import ExitStack, contextmanager, redirect_stdout, suppress
from dataclasses import dataclass, field
from io import StringIO
from math import inf
from time import monotonic, sleep
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from equipoise.checks.base import pluralize
from equipoise.errors import EquipoiseError, MissingExtraError, ParameterError, PartialError
from equipoise.runs.executors import Completed, Executor, Function, Item, Shared, Value, ignore_progress
from equipoise.runs.executors.ray_worker import (
    AUTO,
    CLIENT,
    LOCAL,
    LOOPBACK,
    NodeReply,
    WorkerEnvironment,
    WorkerReply,
    check_cluster,
    cluster_not_found,
    is_listening,
    loopback_only,
    suppress_ray_output,
    worker_entry_point,
)
from equipoise.types import install_command, require_extra

if TYPE_CHECKING:
    from equipoise.runs.progress_file import ProgressCallback

# A lost cluster: the many exceptions of Ray become one error.

AGAIN = "everything finished is kept: the same command goes on"


@contextmanager
def connection_errors(ray: Any) -> Iterator[None]:
    """For calls of Ray only; raises ``PartialError`` if the connection is lost.

    In Ray a closed channel is a ValueError, a dead raylet an OSError, and an interrupted client fails an
    assertion. Exceptions of a task and of one lost worker pass.
    """
    exceptions = ray.exceptions
    try:
        yield
    except (exceptions.RayTaskError, *worker_loss_errors(ray)):
        raise
    except (OSError, ValueError, AssertionError, RuntimeError, exceptions.RayError) as error:
        raise PartialError(f"the connection to the Ray cluster was lost: {error_summary(error)}", hint=AGAIN) from error


def worker_loss_errors(ray: Any) -> tuple[type[Exception], ...]:
    """The exceptions of Ray for one lost worker, node or value."""
    exceptions = ray.exceptions
    return (
        exceptions.WorkerCrashedError,
        exceptions.NodeDiedError,
        exceptions.ObjectLostError,
        exceptions.OutOfMemoryError,
    )


def cancel(ray: Any, references: Any) -> None:
    """Cancel tasks. Never connects: Ray's own call starts a cluster if there is none."""
    for reference in references:
        with suppress(Exception):  # another exception is being raised already
            if ray.is_initialized():
                ray.cancel(reference, force=True)


def silence_ray_logs() -> None:
    """Suppress Ray's warnings of lost connections: they become one message."""
    for name in [*logging.root.manager.loggerDict]:  # some of its modules have a level of their own
        if name.partition(".")[0] == "ray":
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)


def error_summary(error: Exception) -> str:
    """A message of several lines in one; the last line of a traceback."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    return (lines[-1] if any("Traceback" in line for line in lines) else " ".join(lines))[:300]


def first_line(error: Exception) -> str:
    """The first sentence of a message."""
    message = str(error).strip() or type(error).__name__
    return message.splitlines()[0].partition(". ")[0]


ATTEMPTS = 5
"""The number of starts of an item before it is assumed to end its workers."""
NODE_TIMEOUT_SECONDS = 60.0
"""How long no node may be large enough for an item: nodes come and go."""
_HEADLESS_SECONDS = 20.0
"""How long the head may be unreachable: it may return, but after a minute Ray ends the whole process."""
_LOOK_SECONDS = 5.0
_POLL_SECONDS = 0.5
_AHEAD = 16
"""Items that wait at the cluster, so that no core is idle."""
_CONNECT_ATTEMPTS = 2
_NODE = "ray.io/node-id"
"""The label of the id of a node in Ray."""


@dataclass(slots=True)
class _PendingItem:
    """An item that is not completed: how often it was started, and which nodes could not run it."""

    index: int
    attempt: int = 1
    excluded: set[str] = field(default_factory=set)


@dataclass(slots=True)
class _PendingWork:
    """The items of one map: those that wait here, and those that the cluster has."""

    n_cores: int
    waiting: deque[_PendingItem]
    running: dict[Any, _PendingItem] = field(default_factory=dict)


class RayExecutor(Executor):
    """Runs items as Ray tasks: at an address, on the cluster of this machine, or on one that is started for it.

    Ray does not retry by itself. An item whose worker or node died is started again here, a limited number of
    times. A slow item is not started twice, because embedding may cost money.
    """

    name = "ray"

    def __init__(self, address: str | None = None) -> None:
        self.address = address or os.environ.get("RAY_ADDRESS") or None
        self._messages: list[str] = []
        self._unfit: set[str] = set()
        self._connection_lost = self._started_cluster = False
        self._cores, self._counted = 0.0, -inf
        self._ray: Any = None
        self._open = ExitStack()
        self._head: str | None = None

    def __enter__(self) -> Self:
        """Connect; if nothing answers, the error says what is missing."""
        # Without this, any call after a lost connection starts a new cluster in this process.
        os.environ.setdefault("RAY_ENABLE_AUTO_CONNECT", "0")
        self._ray = require_extra("ray", extra="ray")
        if self._ray.is_initialized():
            self._check_same_cluster()
            self._open.enter_context(suppress_ray_output())
            return self
        if self.address not in (None, LOCAL):
            check_cluster(self.address)
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # no usage statistics are sent
        with ExitStack() as opened:
            opened.enter_context(suppress_ray_output())
            self._started_cluster = not self._connected(opened)
            silence_ray_logs()
            opened.callback(self._leave)
            # A client reaches the head at the address that it used; other addresses may be unreachable.
            client = self.address is not None and self.address.startswith(CLIENT)
            self._head = self.address if client else self._ray.get_runtime_context().gcs_address
            if self._started_cluster and not str(self._head).startswith(f"{LOOPBACK}:"):
                self._report(f"the Ray cluster that was started here is open to other machines, at {self._head}")
            self._open = opened.pop_all()
        return self

    def _connected(self, opened: ExitStack) -> bool:
        """Connect to an existing cluster (True), or start one on the loopback interface (False)."""
        if self.address != LOCAL:
            try:
                self._connect(self.address or AUTO)
                return True
            except MissingExtraError as error:
                if self.address is not None or not isinstance(error.__cause__, ConnectionError):
                    raise
        opened.enter_context(loopback_only())
        self._connect(LOCAL, include_dashboard=False)
        return False

    def _connect(self, address: str, **options: Any) -> None:
        for attempt in range(_CONNECT_ATTEMPTS):
            try:
                with warnings.catch_warnings(action="ignore"):  # the error below says the same
                    self._ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, **options)
            except Exception as error:  # Ray raises a plain Exception if a node does not start in time
                if isinstance(error, ConnectionAbortedError) and attempt + 1 < _CONNECT_ATTEMPTS:
                    continue  # the head forks a server for each client, which may fail once and not again
                address = self.address or "this machine"
                raise cluster_not_found(address, error_summary(error), listens=self.address is not None) from error
            return

    def _leave(self) -> None:
        # Ray prints what it has not yet printed of dead nodes.
        with redirect_stdout(StringIO()), suppress(*([Exception] if self._connection_lost else [])):
            self._ray.shutdown()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Disconnect; a cluster that was started here ends."""
        self._open.close()

    @property
    def description(self) -> str:
        """The size of the cluster."""
        nodes = self._nodes()
        cores = int(sum(node["Resources"].get("CPU", 0) for node in nodes))
        return f"{pluralize(cores, 'core')} on {pluralize(len(nodes), 'node')} of a Ray cluster"

    @property
    def messages(self) -> tuple[str, ...]:
        """The items that were started again, and the nodes that were excluded."""
        return tuple(self._messages)

    def map(
        self,
        function: Function[Item, Shared, Value],
        items: Sequence[Item],
        shared: Shared,
        *,
        progress: ProgressCallback | None = None,
        n_cores: int = 1,
    ) -> Iterator[Completed[Value]]:
        """Every item as a task; the steps of an item are reported when it completes."""
        if self._ray is None:
            raise ParameterError(
                "the engine ray is not connected", hint="write: with executor('ray', address) as engine: ..."
            )
        packed, caller = _pickle(shared), pickle.dumps(WorkerEnvironment())
        with self._connection():
            task = self._ray.remote(num_cpus=n_cores, max_retries=0, scheduling_strategy="SPREAD")
            task, shared_reference = task(worker_entry_point()), self._ray.put(packed)
        work = _PendingWork(n_cores, deque(_PendingItem(index) for index in range(len(items))))
        try:
            while work.waiting or work.running:
                while work.waiting and len(work.running) < self._window(n_cores):
                    item = work.waiting.popleft()
                    try:
                        sent = _pickle((function, items[item.index]))
                    except ParameterError as error:
                        yield Completed(item.index, error)
                        continue
                    with self._connection():
                        sending = task.options(**self._placement(item))
                        work.running[sending.remote(sent, shared_reference, caller)] = item
                for index, reply in self._replies(work):
                    for text in reply.steps:
                        (progress or ignore_progress)(text)
                    yield Completed(index, reply.outcome)
        finally:
            # A cluster that was started here ends with its tasks; Ray may abort while it cancels running ones.
            if not self._connection_lost and not self._started_cluster:
                cancel(self._ray, work.running)

    def _replies(self, work: _PendingWork) -> Iterator[tuple[int, WorkerReply]]:
        """The replies that arrived, waiting for the first; lost items wait again."""
        for reference in self._ready(work):
            item = work.running.pop(reference)
            try:
                with self._connection():
                    node_reply = NodeReply(*self._ray.get(reference))
            except worker_loss_errors(self._ray) as error:
                if item.attempt == ATTEMPTS:
                    yield item.index, WorkerReply(_too_many_failures(error))
                    continue
                self._report(f"{self.item_label} is started again: {first_line(error)}")
                item.attempt += 1
                work.waiting.appendleft(item)
            except self._ray.exceptions.RayTaskError as error:
                yield item.index, WorkerReply(_worker_start_error("a worker", error_summary(error)))
            else:
                reply = node_reply.answer
                if isinstance(reply, str):
                    reply = WorkerReply(_worker_start_error(f"the node {node_reply.host}", reply), unfit=True)
                if self._can_retry(node_reply.node, reply, item, work.n_cores):
                    work.waiting.appendleft(item)
                else:
                    yield item.index, reply

    def _can_retry(self, node: str, reply: WorkerReply, item: _PendingItem, n_cores: int) -> bool:
        """Whether the node lacks a package that the item needs, and another node may have it."""
        if not isinstance(reply.outcome, MissingExtraError):
            return False
        item.excluded.add(node)
        if reply.unfit:
            if node not in self._unfit:
                self._report(f"{reply.outcome.message}; nothing more is sent there")
            self._unfit.add(node)
        return self._largest(item.excluded) >= n_cores

    def _placement(self, item: _PendingItem) -> dict[str, Any]:
        """The options of a task that keep it from nodes which cannot run it."""
        excluded = sorted(self._unfit | item.excluded)
        return {"label_selector": {_NODE: f"!in({','.join(excluded)})"}} if excluded else {}

    def _ready(self, work: _PendingWork) -> list[Any]:
        """The first completed tasks; waits for them."""
        last_fit = monotonic()
        while work.running:
            with self._connection():
                finished, _ = self._ray.wait(list(work.running), num_returns=1, timeout=_LOOK_SECONDS)
            if finished:
                return list(finished)
            largest, now = self._largest(), monotonic()
            last_fit = now if largest >= work.n_cores else last_fit
            if now - last_fit > NODE_TIMEOUT_SECONDS:
                raise PartialError(
                    f"no node of the Ray cluster has {pluralize(work.n_cores, 'core')}, "
                    f"and none came within {NODE_TIMEOUT_SECONDS:.0f} seconds",
                    hint=f"add a node, or ask for fewer threads; {AGAIN}",
                )
        return []

    @contextmanager
    def _connection(self) -> Iterator[None]:
        try:
            with connection_errors(self._ray):
                yield
        except PartialError:
            self._connection_lost = True
            raise

    def _report(self, text: str) -> None:
        self._messages.append(text)
        if self.on_message is not None:
            self.on_message(text)

    def _await_head(self) -> None:
        """Wait until the head answers. Ray itself would wait for a minute, and then end this process."""
        until = monotonic() + _HEADLESS_SECONDS
        while self._head is not None and not is_listening(self._head):
            with self._connection():
                if monotonic() > until:
                    raise ConnectionError("its head does not answer")
            sleep(_POLL_SECONDS)

    def _nodes(self) -> list[dict[str, Any]]:
        """The nodes that are alive."""
        self._await_head()
        with self._connection():
            return [node for node in self._ray.nodes() if node["Alive"]]

    def _largest(self, excluded: Set[str] = frozenset()) -> float:
        """The largest number of cores of a node that can run items."""
        fit = (node for node in self._nodes() if node["NodeID"] not in self._unfit | excluded)
        return max((node["Resources"].get("CPU", 0.0) for node in fit), default=0.0)

    def _window(self, n_cores: int) -> int:
        """The number of items that the cluster should have; it may grow, so its size is queried regularly."""
        if monotonic() > self._counted + _LOOK_SECONDS:
            self._cores = sum(node["Resources"].get("CPU", 0.0) for node in self._nodes())
            self._counted = monotonic()
        return _AHEAD + int(2 * self._cores // n_cores)

    def _check_same_cluster(self) -> None:
        """A process that is already connected stays in its cluster; a request for another one is an error."""
        current = self._ray.get_runtime_context().gcs_address
        if self.address not in (None, "auto", current):
            raise ParameterError(
                f"this process is already connected to the Ray cluster at {current}, not {self.address}",
                hint="leave the address out, or call ray.shutdown() first",
            )


def _pickle(value: Any) -> bytes:
    """An object as bytes; also functions that are not in a module, such as those of a notebook."""
    try:
        data: bytes = require_extra("ray.cloudpickle", extra="ray").dumps(value)
    except (TypeError, AttributeError, pickle.PicklingError) as error:
        raise ParameterError(
            f"an input cannot be sent to another machine: {str(error).splitlines()[0]}",
            hint="name a model by its spec, or use the engine local",
        ) from error
    return data


def _too_many_failures(error: Exception) -> EquipoiseError:
    return PartialError(
        f"its worker died {ATTEMPTS} times: {first_line(error)}",
        hint="if memory was short: with more threads per job, fewer jobs share a node",
    )


def _worker_start_error(node: str, reason: str) -> EquipoiseError:
    """A worker could not start: it has no equipoise, or another version."""
    return MissingExtraError(
        f"{node} cannot run equipoise: {reason}",
        hint=f"install the same version on every node: {install_command('ray')}",
    )
