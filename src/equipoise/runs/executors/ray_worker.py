"""Whether a Ray cluster answers at an address: Ray itself waits for minutes where none does."""

from __future__ import annotations

import os
import pickle
import platform
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from threading import ExceptHookArgs, current_thread
from traceback import walk_tb
from typing import Any, NamedTuple, TextIO, cast

from equipoise import __version__
from equipoise.errors import EquipoiseError, MissingExtraError, ParameterError
from equipoise.types import require_extra

# What runs on a worker of a cluster: one cell, in surroundings as they are where it was sent from.

SENT = ("EQUIPOISE_CACHE", "EQUIPOISE_CACHE_BYTES")
"""What a worker is told of the environment. Keys of services are not sent: a node has its own."""


@dataclass(frozen=True, slots=True)
class WorkerEnvironment:
    """Where a command was typed: its version, its folder, and its settings."""

    version: str = __version__
    folder: str = field(default_factory=os.getcwd)
    environment: Mapping[str, str] = field(
        default_factory=lambda: {name: os.environ[name] for name in SENT if name in os.environ}
    )


@dataclass(frozen=True)
class WorkerReply:
    """What a cell gave or why it failed, and the steps that it told."""

    outcome: Any
    steps: tuple[str, ...] = ()
    unfit: bool = False
    """Whether no cell at all can run on this machine."""


def run_item(sent: bytes, held: bytes, typed: bytes) -> WorkerReply:
    """Run the pickled function on the pickled cell; an error is an answer too, and crosses whole."""
    steps: list[str] = []
    node = platform.node()
    try:
        _settle(pickle.loads(typed), node)
    except Exception as error:  # another version may not even have the same surroundings
        return WorkerReply(_portable(error), unfit=True)
    try:
        function, cell = _unpacked(sent, node)
        outcome = function(cell, _unpacked(held, node), steps.append)
    except Exception as error:  # whatever it is, whoever sent the cell wants to hear of it
        outcome = _portable(error)
    return WorkerReply(outcome, tuple(steps))


def _settle(typed: WorkerEnvironment, node: str) -> None:
    """Take over folder and settings: a relative path means what it meant where it was typed.

    Only the number of the version is compared: two states of one version under development pass for equal.
    """
    if typed.version != __version__:
        raise MissingExtraError(
            f"the node {node} has equipoise {__version__}, and the command was typed with {typed.version}",
            hint="install the same version on every node",
        )
    os.environ.update(typed.environment)
    with suppress(OSError):  # a machine that shares no files has no such folder
        os.chdir(typed.folder)


def _unpacked(sent: bytes, node: str) -> Any:
    """What was sent, when this machine has what it is made of."""
    try:
        return pickle.loads(sent)
    except ImportError as error:
        raise MissingExtraError(
            f"the node {node} lacks what a cell is made of: {error}",
            hint="install the same packages on every node",
        ) from error


def _portable(error: Exception) -> Exception:
    """The error itself where it can travel, or one of ours that quotes it."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # an exception may refuse to be pickled in any way it likes
        return EquipoiseError(f"{type(error).__name__}: {error}")
    return error


# The first lines that run on a worker: they need nothing but Ray, so that a node without us can say so.

Begin = Callable[[bytes, bytes, bytes], tuple[str, str, "WorkerReply | str"]]
"""A pickled cell, what is shared, and surroundings; gives the node's id and name, and what came of it."""


class NodeReply(NamedTuple):
    """What came back of a cell, and from which node."""

    node: str
    """Its id, by which Ray knows it."""
    host: str
    answer: WorkerReply | str
    """A sentence, where the node could not even begin."""


def worker_entry_point() -> Begin:
    """The function that begins a cell; it stands in no module, so that it travels as it is written here.

    A function of a module would be looked up there, and a worker that lacks the module only dies of it,
    without a word on which node that was.
    """

    def begin(sent: bytes, held: bytes, typed: bytes) -> tuple[str, str, WorkerReply | str]:
        import platform

        import ray

        node, host = ray.get_runtime_context().get_node_id(), platform.node()
        try:
            # Looked up on the worker: a reference to this module's own name would be resolved before this runs.
            from equipoise.runs.executors.ray_worker import run_item
        except Exception as error:  # an installation may be broken in any way
            return node, host, f"{type(error).__name__}: {error}"
        return node, host, run_item(sent, held, typed)

    return begin


SECONDS = 30
"""How long a cluster may take to let somebody in."""

CLIENT, CLIENT_PORT = "ray://", 10001
AUTO, LOCAL = "auto", "local"
"""Addresses that Ray looks up by itself: the cluster of this machine, and one that it begins."""

_START = "ray start --head starts one and prints its address; from a machine outside it is ray://head:10001"
_TOKEN = (
    "something listens there: a cluster that asks for a token wants RAY_AUTH_MODE=token here, and the token "
    "of its head in RAY_AUTH_TOKEN or in ~/.ray/auth_token"
)
_TRIAL = "import sys, ray\nray.init(address=sys.argv[1], log_to_driver=False, logging_level='ERROR')\nray.shutdown()\n"
_PLACE = re.compile(r"\[?(?P<host>[^\[\]/\s]+?)\]?(?::(?P<port>\d+))?$")


def check_cluster(address: str) -> None:
    """Say within seconds that no cluster answers there."""
    if address != AUTO:
        _knock(address, *host_and_port(address))
    if not address.startswith(CLIENT):  # a client gives up by itself, and a second one would cost seconds
        _try(address)


def host_and_port(address: str) -> tuple[str, int]:
    """The two parts of an address.

    >>> host_and_port("ray://head"), host_and_port("10.0.0.1:6379")
    (('head', 10001), ('10.0.0.1', 6379))
    """
    found = _PLACE.match(address.removeprefix(CLIENT))
    port = found["port"] or (CLIENT_PORT if address.startswith(CLIENT) else None) if found else None
    if found is None or port is None or not 0 < int(port) < 1 << 16:
        raise ParameterError(
            f"{address!r} is no address of a Ray cluster",
            hint="write ray://head:10001, or host:6379 on a machine of the cluster",
        )
    return found["host"], int(port)


def is_listening(address: str) -> bool:
    """Whether somebody listens there."""
    try:
        _knock(address, *host_and_port(address))
    except MissingExtraError:
        return False
    return True


def cluster_not_found(address: str, reason: str, *, listens: bool = False) -> MissingExtraError:
    """The error for an address that leads nowhere, or where something listens and lets nobody in."""
    return MissingExtraError(f"no Ray cluster answers at {address}: {reason}", hint=_TOKEN if listens else _START)


def _knock(address: str, host: str, port: int) -> None:
    try:
        socket.create_connection((host, port), timeout=5).close()
    except OSError as error:
        raise cluster_not_found(address, error.strerror or str(error) or "no answer") from error


def _try(address: str) -> None:
    """Connect once in a process of its own: where something else listens, Ray hangs or ends the process."""
    try:
        subprocess.run(
            [sys.executable, "-c", _TRIAL, address],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=True,
        )
    except subprocess.TimeoutExpired as error:
        raise cluster_not_found(address, f"nothing let us in within {SECONDS} seconds", listens=True) from error
    except subprocess.CalledProcessError as error:
        said = [line.strip() for line in error.stderr.splitlines() if line.strip()]
        raise cluster_not_found(address, said[-1][:200] if said else "it refused us", listens=True) from error


# Both outputs without what Ray's own threads print there: one is for results, the other for our words.

RAYS = "ray_"
"""How the names of its threads begin."""
_THEIRS = ("grpc", "ray")
"""Packages whose threads may die of a connection that is lost."""


class _Hushed:
    """A stream that takes nothing from Ray's threads, and everything from all others."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return len(text) if current_thread().name.startswith(RAYS) else self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def suppress_ray_output() -> Iterator[None]:
    """Keep Ray from both: when a node dies, it prints the node's log, and when a head does, tracebacks."""
    stream, hook = sys.stdout, threading.excepthook

    def unless_theirs(args: ExceptHookArgs, /) -> None:
        modules = (str(frame.f_globals.get("__name__")) for frame, _ in walk_tb(args.exc_traceback))
        if not any(module.partition(".")[0] in _THEIRS for module in modules):
            hook(args)

    sys.stdout, threading.excepthook = cast(TextIO, _Hushed(stream)), unless_theirs
    try:
        yield
    finally:
        sys.stdout, threading.excepthook = stream, hook


# Ray on the loopback interface: a cluster that is begun for one command is for no other machine.

LOOPBACK = "127.0.0.1"
VARIABLE = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"


@contextmanager
def loopback_only() -> Iterator[None]:
    """Ray clusters that are begun in here listen on 127.0.0.1 alone.

    Left to itself, Ray listens on all interfaces under Linux, and anybody who reaches its ports may run code.
    ``ray.init(_node_ip_address="127.0.0.1")`` does not help: Ray replaces it by the address of the machine.
    It does listen on loopback alone where it believes that there can be no cluster, as on macOS. That is one
    constant, read from the environment when Ray is imported; its child processes read the variable.
    """
    constants: Any = require_extra("ray._private.ray_constants", extra="ray")
    constant, environment = getattr(constants, "ENABLE_RAY_CLUSTER", True), os.environ.get(VARIABLE)
    constants.ENABLE_RAY_CLUSTER = False
    os.environ[VARIABLE] = "0"
    try:
        yield
    finally:
        constants.ENABLE_RAY_CLUSTER = constant
        if environment is None:
            del os.environ[VARIABLE]
        else:
            os.environ[VARIABLE] = environment
