"""``eq view``: start the viewer on 127.0.0.1."""

from __future__ import annotations

import errno
import os
import socket
import sys
from functools import partial
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

import click

from equipoise.cli import options, output
from equipoise.cli.output import Output, pass_output
from equipoise.errors import EquipoiseError, ParameterError, StoreError
from equipoise.runs.manifest import hint_for_file
from equipoise.types import require_extra

if TYPE_CHECKING:
    import uvicorn

    from equipoise.io.text import PathLike

ADDRESS = "127.0.0.1"
SHUTDOWN_SECONDS = 1
"""Seconds that requests have to finish when the server stops."""


def check_results_folder(path: PathLike) -> Path:
    """The folder to show; an error if there is none."""
    root = Path(path)
    if not root.exists():
        raise StoreError(
            f"there is no folder {path}",
            hint="give the folder of your runs; eq score -o FOLDER writes some",
        )
    if not root.is_dir():
        raise StoreError(f"{path} is a file, not a folder of runs", hint=hint_for_file(root))
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
    """The URL of the server."""
    return f"http://{ADDRESS}:{listening.getsockname()[1]}/"


def make_server(root: Path, listening: socket.socket) -> uvicorn.Server:
    """A server of a results folder; ``run(sockets=[...])`` starts it."""
    import uvicorn

    from equipoise.view.app import make_app

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
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
    )
    return uvicorn.Server(config)


def _refusal(port: int, error: OSError) -> EquipoiseError:
    free = "--port 0 chooses a free one"
    if error.errno == errno.EADDRINUSE:
        return ParameterError(f"port {port} is used by another program", hint=free)
    if error.errno == errno.EACCES:
        return ParameterError(f"port {port} is reserved by the system", hint=free)
    return ParameterError(f"port {port} cannot be opened: {error.strerror}", hint=free)


# ``eq view``: all results in a browser.

HELP = """
\b
  eq view
  eq view results/ --port 8000 --no-browser

Show every run in the folder RESULTS (default: results) in a browser: filter, sort and open runs, compare two
or more, follow one that is running, and download tables. The server listens on 127.0.0.1 only and changes no
file. Ctrl-C stops it.
"""


@options.command(help=HELP, short_help="Show all results in a browser.")
@click.argument("results", default="results")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    show_default=True,
    help="The port; 0 chooses a free one.",
)
@click.option("--browser/--no-browser", default=True, show_default=True, help="Open a browser.")
@partial(options.output_options, json_help="Print the address of the server as JSON.")
@pass_output
def view(out: Output, results: str, port: int, browser: bool) -> int:
    """See ``HELP``."""
    for engine in ("starlette", "uvicorn"):
        require_extra(engine, extra="view")

    root = check_results_folder(results)
    with open_socket(port) as listening:
        server = make_server(root, listening)
        address = address_of(listening)
        if out.json:
            out.data({"url": address, "results": str(root)})
        else:
            out.text(address)
        sys.stdout.flush()
        out.note(f"showing {results}; Ctrl-C stops the server")
        if browser:
            Thread(target=_open, args=(address,), daemon=True).start()
        server.run(sockets=[listening])
    return output.DONE


def _open(address: str) -> None:
    """Open the page. Without a browser, the printed address remains."""
    import webbrowser

    webbrowser.open(address)
