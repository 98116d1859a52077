"""The application: addresses, and what each of them shows."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from dataclasses import asdict
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from equipoise.errors import EquipoiseError, UnknownNameError
from equipoise.version import __version__
from equipoise.view import answers
from equipoise.view.choice import Choice
from equipoise.view.files import FILES
from equipoise.view.guard import App, guarded
from equipoise.view.kept import in_background
from equipoise.view.markup import asset, rendered, style
from equipoise.view.pages import Pages
from equipoise.view.shelf import Library, Shelf

LONG = 20_000
"""With more units than this the browser gets a page to wait on."""
PATIENCE = 1.0
"""Seconds before it gets it."""

Endpoint = Callable[[Request], Awaitable[Response]]


def make_app(root: Path, port: int) -> App:
    """The viewer of one results folder, for a server that listens on this port of 127.0.0.1."""
    viewer = Viewer(root)
    routes = [
        Route("/", viewer.runs),
        Route("/runs.json", viewer.state),
        Route("/report", viewer.report),
        Route("/export", viewer.export),
        Route("/style.css", viewer.style),
        Route("/view.js", viewer.script),
    ]
    app = Starlette(routes=routes, exception_handlers={404: _absent, 405: _absent, Exception: _fault})
    app.add_exception_handler(EquipoiseError, _refused)
    app.router.redirect_slashes = False
    return guarded(app, port)


class Viewer:
    """What stands behind the addresses. Whatever takes long happens in the background."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.library = Library(root)
        self.pages = Pages()

    async def runs(self, request: Request) -> Response:
        """The list of all runs."""
        shelf = await self._shelf()
        version = f"{shelf.version}-{__version__}"
        return answers.unchanged(request, version) or answers.own_page(
            rendered("runs.html", shelf=shelf, root=str(self.root), program=f"equipoise {__version__}"),
            version,
        )

    async def state(self, request: Request) -> Response:
        """The same as data; its version tells the list whether to draw itself anew."""
        shelf = await self._shelf()
        return answers.unchanged(request, shelf.version) or answers.data(state_of(shelf), shelf.version)

    async def report(self, request: Request) -> Response:
        """The report of one run, or of several and their comparison."""
        choice = await self._choice(request)
        known = answers.unchanged(request, choice.version)
        if known is not None:
            return known
        content = await _patiently(self.pages.report(choice), choice)
        if content is None:
            return answers.being_made(choice.units, len(choice.rows))
        return answers.report_page(content, choice.version)

    async def export(self, request: Request) -> Response:
        """The chosen runs as a file."""
        choice = await self._choice(request)
        name = request.query_params.get("to", "")
        if name not in FILES:
            raise UnknownNameError.of("form", name, FILES, more=f"there are {', '.join(FILES)}")
        form = FILES[name]
        content = await asyncio.wrap_future(self.pages.file(choice, form))
        return answers.file(content, form.filename, form.media, choice.version)

    async def style(self, request: Request) -> Response:
        """The style sheet of the list."""
        return Response(style(), media_type="text/css")

    async def script(self, request: Request) -> Response:
        """The script of the list."""
        return Response(asset("view.js"), media_type="text/javascript")

    async def _shelf(self) -> Shelf:
        return await asyncio.wrap_future(in_background(self.library.shelf))

    async def _choice(self, request: Request) -> Choice:
        asked = request.query_params
        return Choice.of(await self._shelf(), asked.getlist("run"), asked.get("primary", ""))


def state_of(shelf: Shelf) -> dict[str, Any]:
    """The list as plain values."""
    under_way = [asdict(each) | {"folder": each.folder.as_posix()} for each in shelf.under_way]
    return {
        "version": shelf.version,
        "runs": [row.to_dict() for row in shelf.rows],
        "under_way": under_way,
        "note": shelf.note,
    }


async def _patiently(made: Future[bytes], choice: Choice) -> bytes | None:
    """What is being made; None where it is large and takes its time. It is made on, and kept."""
    waiting = asyncio.wrap_future(made)
    if choice.units <= LONG:
        return await waiting
    done, _ = await asyncio.wait({waiting}, timeout=PATIENCE)
    return waiting.result() if done else None


async def _refused(request: Request, error: Exception) -> Response:
    if not isinstance(error, EquipoiseError):
        raise error
    return answers.refusal(error)


async def _absent(request: Request, error: Exception) -> Response:
    return answers.nothing_here()


async def _fault(request: Request, error: Exception) -> Response:
    return answers.fault()
