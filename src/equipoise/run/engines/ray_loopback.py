"""Ray on the loopback interface: a cluster that is begun for one command is for no other machine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from equipoise.types import need

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
    constants: Any = need("ray._private.ray_constants", extra="ray")
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
