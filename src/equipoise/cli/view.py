"""``eq view``: all results in a browser, live while one is running."""

from __future__ import annotations

import sys
from threading import Thread

import click

from equipoise.cli import exits, options
from equipoise.cli.output import Output, pass_output
from equipoise.types import need

HELP = """
\b
  eq view
  eq view results/ --port 8000 --no-browser

Show every run below the folder RESULTS in a browser: filter and sort them, open one, compare any two or
more, watch one that is running, take figures away. The server listens on 127.0.0.1 only and changes
nothing. Ctrl-C ends it.
"""


@click.command(help=HELP, short_help="Look at results in a browser.")
@click.argument("results", default="results")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    show_default=True,
    help="The port to listen on; 0 takes a free one.",
)
@click.option("--browser/--no-browser", default=True, show_default=True, help="Open a browser.")
@options.output_options
@pass_output
def view(out: Output, results: str, port: int, browser: bool) -> int:
    """See ``HELP``."""
    for engine in ("starlette", "uvicorn"):
        need(engine, extra="view")
    from equipoise.view.server import address_of, open_socket, results_folder, server_of

    root = results_folder(results)
    with open_socket(port) as listening:
        server = server_of(root, listening)
        address = address_of(listening)
        if out.json:
            out.data({"url": address, "results": str(root)})
        else:
            out.text(address)
        sys.stdout.flush()
        out.note(f"showing {results}; Ctrl-C ends it")
        if browser:
            Thread(target=_open, args=(address,), daemon=True).start()
        server.run(sockets=[listening])
    return exits.DONE


def _open(address: str) -> None:
    """Show the page; where there is no browser, the address was printed."""
    import webbrowser

    webbrowser.open(address)
