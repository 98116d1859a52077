"""The server of the viewer: one socket on 127.0.0.1, and nothing else."""

from __future__ import annotations

import errno
import os
import socket
from pathlib import Path

import uvicorn

from equipoise.data.text import PathLike
from equipoise.errors import EquipoiseError, ParameterError, StoreError
from equipoise.view.app import make_app

ADDRESS = "127.0.0.1"
FAREWELL = 1
"""Seconds that requests get to finish when the server is told to end."""


def results_folder(path: PathLike) -> Path:
    """The folder to show, or a sentence that says why it cannot be shown."""
    root = Path(path)
    if not root.exists():
        raise StoreError(
            f"there is no folder {path}",
            hint="name the folder that holds your runs; eq score -o FOLDER writes some",
        )
    if not root.is_dir():
        raise StoreError(f"{path} is a file, not a folder of runs", hint="name the folder that it lies in")
    return root


def open_socket(port: int) -> socket.socket:
    """A socket that listens on this port of this machine only; port 0 takes a free one."""
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        if os.name == "posix":  # elsewhere this option would let two servers share a port
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((ADDRESS, port))
        listening.listen(128)
    except OSError as error:
        listening.close()
        raise _refusal(port, error) from error
    return listening


def address_of(listening: socket.socket) -> str:
    """Where a browser finds it."""
    return f"http://{ADDRESS}:{listening.getsockname()[1]}/"


def server_of(root: Path, listening: socket.socket) -> uvicorn.Server:
    """A server over a results folder, for the socket; ``run(sockets=[...])`` starts it."""
    config = uvicorn.Config(
        make_app(root, listening.getsockname()[1]),
        loop="asyncio",
        http="h11",
        ws="none",
        lifespan="off",
        log_level="error",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=FAREWELL,
    )
    return uvicorn.Server(config)


def _refusal(port: int, error: OSError) -> EquipoiseError:
    free = "--port 0 takes a free one"
    if error.errno == errno.EADDRINUSE:
        return ParameterError(f"port {port} is taken by another program", hint=free)
    if error.errno == errno.EACCES:
        return ParameterError(f"port {port} is reserved by the system", hint=free)
    return ParameterError(f"port {port} cannot be opened: {error.strerror}", hint=free)
