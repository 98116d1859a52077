"""Both ends of a Ray cluster: the function that runs on a worker, and the connection to the cluster."""

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

# On a worker: one item, with the working directory and the settings of the caller.

SENT = ("EQUIPOISE_CACHE", "EQUIPOISE_CACHE_BYTES")
"""Environment variables that are sent to workers. Keys of services are not: each node has its own."""


@dataclass(frozen=True, slots=True)
class WorkerEnvironment:
    """The caller: its version, its working directory and its settings."""

    version: str = __version__
    folder: str = field(default_factory=os.getcwd)
    environment: Mapping[str, str] = field(
        default_factory=lambda: {name: os.environ[name] for name in SENT if name in os.environ}
    )


@dataclass(frozen=True)
class WorkerReply:
    """The value of an item or its exception, and the steps that it reported."""

    outcome: Any
    steps: tuple[str, ...] = ()
    unfit: bool = False
    """Whether no item at all can run on this node."""


def run_item(sent: bytes, shared: bytes, caller: bytes) -> WorkerReply:
    """Run the pickled function on the pickled item; an exception is a reply too."""
    steps: list[str] = []
    node = platform.node()
    try:
        _adopt_environment(pickle.loads(caller), node)
    except Exception as error:  # another version may not even have the same classes
        return WorkerReply(_portable(error), unfit=True)
    try:
        function, item = _unpickle(sent, node)
        outcome = function(item, _unpickle(shared, node), steps.append)
    except Exception as error:  # any exception is sent back to the caller
        outcome = _portable(error)
    return WorkerReply(outcome, tuple(steps))


def _adopt_environment(caller: WorkerEnvironment, node: str) -> None:
    """Use the working directory and the settings of the caller, so that relative paths mean the same.

    Only version numbers are compared: two development states of one version count as equal.
    """
    if caller.version != __version__:
        raise MissingExtraError(
            f"the node {node} has equipoise {__version__}, and the caller has {caller.version}",
            hint="install the same version on every node",
        )
    os.environ.update(caller.environment)
    with suppress(OSError):  # a machine without a shared disk has no such folder
        os.chdir(caller.folder)


def _unpickle(sent: bytes, node: str) -> Any:
    """The object that was sent; an error if this node lacks a package that it needs."""
    try:
        return pickle.loads(sent)
    except ImportError as error:
        raise MissingExtraError(
            f"the node {node} lacks a package that the job needs: {error}",
            hint="install the same packages on every node",
        ) from error


def _portable(error: Exception) -> Exception:
    """The exception itself if it can be pickled, or one of ours that quotes it."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # pickling an exception may fail in any way
        return EquipoiseError(f"{type(error).__name__}: {error}")
    return error


# The first lines that run on a worker need only Ray, so that a node without equipoise can report that.

Begin = Callable[[bytes, bytes, bytes], tuple[str, str, "WorkerReply | str"]]
"""From a pickled item, the shared input and the caller to the id and name of the node, and the reply."""


class NodeReply(NamedTuple):
    """The reply to an item, and the node that it came from."""

    node: str
    """The id of the node in Ray."""
    host: str
    answer: WorkerReply | str
    """A message if the node could not start the item."""


def worker_entry_point() -> Begin:
    """The function that starts an item. It is a closure, so that its code is sent.

    A function of a module would be imported on the worker. A worker without the module would end without naming its
    node.
    """

    def start(sent: bytes, shared: bytes, caller: bytes) -> tuple[str, str, WorkerReply | str]:
        import platform

        import ray

        node, host = ray.get_runtime_context().get_node_id(), platform.node()
        try:
            # Imported here: a reference to the name in this module would be resolved before this function runs.
            from equipoise.runs.executors.ray_worker import run_item
        except Exception as error:  # an installation may be broken in any way
            return node, host, f"{type(error).__name__}: {error}"
        return node, host, run_item(sent, shared, caller)

    return start


SECONDS = 30
"""Timeout of a connection to a cluster."""

CLIENT, CLIENT_PORT = "ray://", 10001
AUTO, LOCAL = "auto", "local"
"""Addresses that Ray resolves itself: the cluster of this machine, and a new one."""

_START = "ray start --head starts one and prints its address; from a machine outside it is ray://head:10001"
_TOKEN = (
    "something listens there: a cluster that requires a token needs RAY_AUTH_MODE=token here, and the token "
    "of its head in RAY_AUTH_TOKEN or in ~/.ray/auth_token"
)
_TRIAL = "import sys, ray\nray.init(address=sys.argv[1], log_to_driver=False, logging_level='ERROR')\nray.shutdown()\n"
_PLACE = re.compile(r"\[?(?P<host>[^\[\]/\s]+?)\]?(?::(?P<port>\d+))?$")


def check_cluster(address: str) -> None:
    """Raise an error within seconds if no cluster answers at the address; Ray itself waits for minutes."""
    if address != AUTO:
        _check_port(address, *host_and_port(address))
    if not address.startswith(CLIENT):  # a client has its own timeout, and a second one takes seconds
        _try_connection(address)


def host_and_port(address: str) -> tuple[str, int]:
    """The two parts of an address.

    >>> host_and_port("ray://head"), host_and_port("10.0.0.1:6379")
    (('head', 10001), ('10.0.0.1', 6379))
    """
    match = _PLACE.match(address.removeprefix(CLIENT))
    port = match["port"] or (CLIENT_PORT if address.startswith(CLIENT) else None) if match else None
    if match is None or port is None or not 0 < int(port) < 1 << 16:
        raise ParameterError(
            f"{address!r} is not the address of a Ray cluster",
            hint="write ray://head:10001, or host:6379 on a machine of the cluster",
        )
    return match["host"], int(port)


def is_listening(address: str) -> bool:
    """Whether the port of the address is open."""
    try:
        _check_port(address, *host_and_port(address))
    except MissingExtraError:
        return False
    return True


def cluster_not_found(address: str, reason: str, *, listens: bool = False) -> MissingExtraError:
    """The error for an address that does not accept the connection."""
    return MissingExtraError(f"no Ray cluster answers at {address}: {reason}", hint=_TOKEN if listens else _START)


def _check_port(address: str, host: str, port: int) -> None:
    try:
        socket.create_connection((host, port), timeout=5).close()
    except OSError as error:
        raise cluster_not_found(address, error.strerror or str(error) or "no answer") from error


def _try_connection(address: str) -> None:
    """Connect once in another process: where something else listens, Ray hangs or ends the process."""
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
        raise cluster_not_found(address, f"no connection within {SECONDS} seconds", listens=True) from error
    except subprocess.CalledProcessError as error:
        output = [line.strip() for line in error.stderr.splitlines() if line.strip()]
        raise cluster_not_found(
            address, output[-1][:200] if output else "it rejected the connection", listens=True
        ) from error


# Standard output and thread errors without those of Ray's own threads.

RAY_THREADS = "ray_"
"""The prefix of the names of its threads."""
_RAY_PACKAGES = ("grpc", "ray")
"""Packages whose threads may end with an error when the connection is lost."""


class _StreamWithoutRay:
    """A stream that drops what Ray's threads write."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return len(text) if current_thread().name.startswith(RAY_THREADS) else self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def suppress_ray_output() -> Iterator[None]:
    """Suppress what Ray prints when a node or the head ends: its log and tracebacks."""
    stream, hook = sys.stdout, threading.excepthook

    def hook_without_ray(args: ExceptHookArgs, /) -> None:
        modules = (str(frame.f_globals.get("__name__")) for frame, _ in walk_tb(args.exc_traceback))
        if not any(module.partition(".")[0] in _RAY_PACKAGES for module in modules):
            hook(args)

    sys.stdout, threading.excepthook = cast(TextIO, _StreamWithoutRay(stream)), hook_without_ray
    try:
        yield
    finally:
        sys.stdout, threading.excepthook = stream, hook


# Ray on the loopback interface: no other machine can reach a cluster that is started for one command.

LOOPBACK = "127.0.0.1"
VARIABLE = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"


@contextmanager
def loopback_only() -> Iterator[None]:
    """Ray clusters that are started in this context listen on 127.0.0.1 only.

    By default Ray listens on all interfaces under Linux, and everyone who can reach its ports can run code.
    ``ray.init(_node_ip_address="127.0.0.1")`` does not help: Ray replaces it by the address of the machine.
    It listens on loopback only where it assumes that there can be no cluster, as on macOS. That is one
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
