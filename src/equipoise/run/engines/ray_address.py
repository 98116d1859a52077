"""Whether a Ray cluster answers at an address: Ray itself waits for minutes where none does."""

from __future__ import annotations

import re
import socket
import subprocess
import sys

from equipoise.errors import MissingExtraError, ParameterError

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
_TRIAL = (
    "import sys, ray\n"
    "ray.init(address=sys.argv[1], log_to_driver=False, logging_level='ERROR')\n"
    "ray.shutdown()\n"
)
_PLACE = re.compile(r"\[?(?P<host>[^\[\]/\s]+?)\]?(?::(?P<port>\d+))?$")


def refuse_absent(address: str) -> None:
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


def answers(address: str) -> bool:
    """Whether somebody listens there."""
    try:
        _knock(address, *host_and_port(address))
    except MissingExtraError:
        return False
    return True


def absent(address: str, reason: str, *, listens: bool = False) -> MissingExtraError:
    """The error for an address that leads nowhere, or where something listens and lets nobody in."""
    return MissingExtraError(
        f"no Ray cluster answers at {address}: {reason}", hint=_TOKEN if listens else _START
    )


def _knock(address: str, host: str, port: int) -> None:
    try:
        socket.create_connection((host, port), timeout=5).close()
    except OSError as error:
        raise absent(address, error.strerror or str(error) or "no answer") from error


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
        raise absent(address, f"nothing let us in within {SECONDS} seconds", listens=True) from error
    except subprocess.CalledProcessError as error:
        said = [line.strip() for line in error.stderr.splitlines() if line.strip()]
        raise absent(address, said[-1][:200] if said else "it refused us", listens=True) from error
