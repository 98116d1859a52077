"""Cells on the machines of a Ray cluster; whatever dies there, what is finished has been handed back."""

from __future__ import annotations

import logging
import os
import pickle
import warnings
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stdout, suppress
from dataclasses import dataclass, field
from io import StringIO
from time import monotonic
from types import TracebackType
from typing import Any, Self

from equipoise.checks.base import counted
from equipoise.errors import EquipoiseError, MissingExtraError, ParameterError, PartialError
from equipoise.run.engines.base import Cell, Engine, Finished, Function, Shared, Value
from equipoise.run.engines.hush import hushed
from equipoise.run.engines.ray_address import CLIENT, absent, answers, refuse_absent
from equipoise.run.engines.ray_worker import Answer, Surroundings, answer
from equipoise.run.progress import Step
from equipoise.types import need

ATTEMPTS = 5
"""How often a cell is begun before we believe that it kills its workers."""
PATIENCE_SECONDS = 60.0
"""How long no machine may be large enough for a cell: nodes come and go."""
_HEADLESS_SECONDS = 20.0
"""How long a head may be gone: it may come back, but after a minute Ray ends the whole process."""
_LOOK_SECONDS = 5.0
_AHEAD = 16
"""Cells that wait at the cluster, so that no core waits for us."""
_KNOCKS = 2
_AGAIN = "everything finished is kept: the same command goes on"


@dataclass(slots=True)
class _Work:
    """A map under way: what waits here, and what the cluster has."""

    waiting: deque[tuple[int, int]]
    """Places of cells, and how often each was begun."""
    running: dict[Any, tuple[int, int]] = field(default_factory=dict)


class RayEngine(Engine):
    """Runs cells as Ray tasks: at an address, on the cluster of this machine, or on one begun for it.

    Ray never repeats a task by itself; a cell whose worker or node dies is begun again here, so that it is
    known how often. A slow cell keeps nobody from being handed back; it is not begun twice, since embedding
    may be paid for.
    """

    name = "ray"

    def __init__(self, address: str | None = None) -> None:
        self.address = address or os.environ.get("RAY_ADDRESS") or None
        self._losses: list[str] = []
        self._ray: Any = None
        self._open = ExitStack()
        self._head: str | None = None

    def __enter__(self) -> Self:
        """Connect; the error says what is missing where nothing answers."""
        self._ray = need("ray", extra="ray")
        if self._ray.is_initialized():
            self._refuse_another()
            self._open.enter_context(hushed())
            return self
        if self.address is not None:
            refuse_absent(self.address)
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # what runs here is nobody else's business
        with ExitStack() as opened:
            opened.enter_context(hushed())
            self._connect()
            opened.callback(self._leave)
            # A client knows the head by the address that it came in by: others may not lead there.
            client = self.address is not None and self.address.startswith(CLIENT)
            self._head = self.address if client else self._ray.get_runtime_context().gcs_address
            self._open = opened.pop_all()
        return self

    def _connect(self) -> None:
        for chance in range(_KNOCKS):
            try:
                with warnings.catch_warnings(action="ignore"):  # Ray warns of what we say below
                    self._ray.init(address=self.address, log_to_driver=False, logging_level=logging.ERROR)
            except (ConnectionError, RuntimeError, ImportError, self._ray.exceptions.RayError) as error:
                if isinstance(error, ConnectionAbortedError) and chance + 1 < _KNOCKS:
                    continue  # the head forks a server for each client, which may fail once and not again
                place, known = self.address or "this machine", self.address is not None
                raise absent(place, _reason(error), listens=known) from error
            return

    def _leave(self) -> None:
        # What Ray has not printed yet of dead nodes, it prints now.
        with redirect_stdout(StringIO()):
            self._ray.shutdown()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave the cluster; one that was begun here ends."""
        self._open.close()

    @property
    def place(self) -> str:
        """How large the cluster is."""
        nodes = [node for node in self._ray.nodes() if node["Alive"]]
        cores = int(sum(node["Resources"].get("CPU", 0) for node in nodes))
        return f"{counted(cores, 'core')} on {counted(len(nodes), 'node')} of a Ray cluster"

    @property
    def notes(self) -> tuple[str, ...]:
        """The cells that were begun again."""
        return tuple(self._losses)

    def map(
        self,
        function: Function[Cell, Shared, Value],
        cells: Sequence[Cell],
        shared: Shared,
        *,
        step: Step | None = None,
        cores: int = 1,
    ) -> Iterator[Finished[Value]]:
        """Every cell as a task; the steps of a cell are told when it is finished."""
        if self._ray is None:
            raise ParameterError(
                "the engine ray is not connected", hint="write: with engine('ray', address) as running: ..."
            )
        ray = self._ray
        task = ray.remote(num_cpus=cores, max_retries=0, scheduling_strategy="SPREAD")(answer)
        with _sendable():
            held = ray.put(shared)
        typed = Surroundings()
        work = _Work(deque((place, 1) for place in range(len(cells))))
        try:
            while work.waiting or work.running:
                while work.waiting and len(work.running) < self._window(cores):
                    place, attempt = work.waiting.popleft()
                    try:
                        sent = _packed(function, cells[place])
                    except ParameterError as error:
                        yield Finished(place, error)
                        continue
                    work.running[task.remote(sent, held, typed)] = place, attempt
                for place, found in self._answers(work, cores):
                    for text in found.steps:
                        (step or _silent)(text)
                    yield Finished(place, found.outcome)
        except (ConnectionError, ray.exceptions.RaySystemError) as error:
            raise PartialError("the Ray cluster went away", hint=_AGAIN) from error
        finally:
            for reference in work.running:
                with suppress(
                    ConnectionError, ray.exceptions.RayError
                ):  # a cluster that is gone runs nothing
                    ray.cancel(reference, force=True)

    def _answers(self, work: _Work, cores: int) -> Iterator[tuple[int, Answer]]:
        """What has come back since, waiting for the first; what was lost waits again."""
        for reference in self._ready(work, cores):
            place, attempt = work.running.pop(reference)
            try:
                yield place, self._ray.get(reference)
            except self._lost as error:
                if attempt < ATTEMPTS:
                    self._losses.append(f"a cell was begun again: {_first_line(error)}")
                    work.waiting.appendleft((place, attempt + 1))
                else:
                    yield place, Answer(_gave_up(error), (), "")
            except self._ray.exceptions.RayTaskError as error:
                yield place, Answer(_unable(error), (), "")

    def _ready(self, work: _Work, cores: int) -> list[Any]:
        """The first that is finished; waits, as long as there is something to wait for."""
        fits = heard = monotonic()
        while work.running:
            ready, _ = self._ray.wait(list(work.running), num_returns=1, timeout=_LOOK_SECONDS)
            if ready:
                return ready
            now = monotonic()
            if self._head_answers():
                heard = now
                fits = now if self._largest() >= cores else fits
            elif now - heard > _HEADLESS_SECONDS:
                raise ConnectionError("its head does not answer")
            if now - fits > PATIENCE_SECONDS:
                raise PartialError(
                    f"no node of the Ray cluster has {counted(cores, 'core')}, "
                    f"and none came within {PATIENCE_SECONDS:.0f} seconds",
                    hint=f"add a node, or ask for fewer threads; {_AGAIN}",
                )
        return []

    def _head_answers(self) -> bool:
        """Whether the head is there. To ask Ray would be to wait: without its head it ends the process."""
        return self._head is None or answers(self._head)

    @property
    def _lost(self) -> tuple[type[Exception], ...]:
        """What Ray says of a worker, a node or a value that is gone."""
        told = self._ray.exceptions
        return (told.WorkerCrashedError, told.NodeDiedError, told.ObjectLostError, told.OutOfMemoryError)

    def _largest(self) -> float:
        alive = (node for node in self._ray.nodes() if node["Alive"])
        return max((node["Resources"].get("CPU", 0.0) for node in alive), default=0.0)

    def _window(self, cores: int) -> int:
        return _AHEAD + int(2 * self._ray.cluster_resources().get("CPU", 0) // cores)

    def _refuse_another(self) -> None:
        """Whoever uses Ray already is served there, unless something else was asked for."""
        here = self._ray.get_runtime_context().gcs_address
        if self.address not in (None, "auto", here):
            raise ParameterError(
                f"this process is in the Ray cluster at {here} already, and not at {self.address}",
                hint="leave the address out, or call ray.shutdown() first",
            )


def _packed(function: Any, cell: Any) -> bytes:
    """The two as bytes; also functions that no module holds, such as those of a notebook."""
    with _sendable():
        packed: bytes = need("ray.cloudpickle", extra="ray").dumps((function, cell))
    return packed


@contextmanager
def _sendable() -> Iterator[None]:
    try:
        yield
    except (TypeError, AttributeError, pickle.PicklingError) as error:
        raise ParameterError(
            f"what was given cannot be sent to another machine: {str(error).splitlines()[0]}",
            hint="name a model by its spec, or use the engine local",
        ) from error


def _gave_up(error: Exception) -> EquipoiseError:
    return PartialError(
        f"its worker died {ATTEMPTS} times: {_first_line(error)}",
        hint="where memory was short, more threads a cell let fewer cells share a machine",
    )


def _unable(error: Exception) -> EquipoiseError:
    """A worker could not even begin: it has no equipoise, or another one."""
    cause = str(getattr(error, "cause", error)).strip().splitlines()
    return MissingExtraError(
        f"a worker cannot run equipoise: {cause[-1].strip() if cause else type(error).__name__}",
        hint="install the same version on every node: pip install 'equipoise[ray]'",
    )


def _reason(error: Exception) -> str:
    """What Ray says in several lines, in one; of a traceback, its last."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    return (lines[-1] if any("Traceback" in line for line in lines) else " ".join(lines))[:300]


def _first_line(error: Exception) -> str:
    said = str(error).strip() or type(error).__name__
    return said.splitlines()[0].partition(". ")[0]


def _silent(text: str) -> None:
    """Nobody listens."""
