"""The web application of the viewer: its URLs and request handlers."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from equipoise import __version__
from equipoise.errors import EquipoiseError, UnknownNameError
from equipoise.report.build import build_view, compare_runs, read_runs
from equipoise.report.export import export
from equipoise.report.html.render import PageLinks, render_html
from equipoise.report.publish import DOWNLOAD_FORMATS
from equipoise.view import responses
from equipoise.view.responses import App, asset, render, style, with_security_headers
from equipoise.view.results import ResultsFolder, RunList, RunSelection

if TYPE_CHECKING:
    from equipoise.runs.store import StoredRun
    from equipoise.stats.comparison import Comparison

# Things that take long to make: made once, in the background, and kept while they are asked for.

Made = TypeVar("Made")


class BackgroundCache(Generic[Made]):
    """A cache of the last results by key; a failure is cached like any other result."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._lock = Lock()
        self._futures: OrderedDict[str, Future[Made]] = OrderedDict()

    def ask(self, key: str, make: Callable[[], Made]) -> Future[Made]:
        """The result with this key; its computation starts unless it has been started before."""
        with self._lock:
            future = self._futures.get(key)
            if future is None:
                future = self._futures[key] = in_background(make)
            self._futures.move_to_end(key)
            while len(self._futures) > self._size:
                self._futures.popitem(last=False)
        return future


def in_background(make: Callable[[], Made]) -> Future[Made]:
    """Compute in a daemon thread, which does not delay the end of the program.

    >>> in_background(lambda: 2 + 2).result()
    4
    """
    future: Future[Made] = Future()

    def work() -> None:
        try:
            future.set_result(make())
        except BaseException as error:
            future.set_exception(error)

    Thread(target=work, daemon=True).start()
    return future


# The export formats, with the names of their files.


@dataclass(frozen=True, slots=True)
class ExportFormat:
    """A format of ``report.export`` as a file; ``units``: one row per unit; ``alone``: one system only."""

    to: str
    title: str
    filename: str
    media: str
    units: bool = False
    alone: bool = False


FILES = {
    **{to: ExportFormat(to, title, filename, media) for to, title, filename, media in DOWNLOAD_FORMATS},
    "units": ExportFormat("csv", "CSV of every unit", "units.csv", "text/csv", units=True),
    "trec": ExportFormat("trec", "TREC run", "run.trec", "text/plain", alone=True),
}
"""The forms by what an address calls them."""


def export_formats(systems: int) -> dict[str, ExportFormat]:
    """The formats that are available for this number of systems.

    >>> "trec" in export_formats(1), "trec" in export_formats(2)
    (True, False)
    """
    return {name: form for name, form in FILES.items() if systems == 1 or not form.alone}


# What the viewer adds to a report page: the way back, other metrics to order by, and files to take away.


def page_links(choice: RunSelection, metrics: Sequence[str]) -> PageLinks:
    """The links of the page of these runs; the first metric is the one that orders the systems."""
    forms = export_formats(len(choice.rows))
    hidden = [(f"Hide {row.label}", choice.hiding(row)) for row in choice.rows if len(choice.rows) > 1]
    shown = [(f"Show {row.label}", choice.showing(row)) for row in choice.others]
    return PageLinks(
        home=f"/?{choice.query()}",
        system_links=tuple((title, f"/report?{other.query()}") for title, other in [*hidden, *shown]),
        sort_links=tuple((name, f"/report?{choice.query(primary=name)}") for name in metrics[1:]),
        files=tuple((form.title, f"/export?{choice.query(to=name)}") for name, form in forms.items()),
    )


# Report pages and files of chosen runs, each made once for as long as the runs stay as they are.

PAGES = 16
GATHERED = 1
"""Runs with all their units take much memory, so only the last ones asked for are kept."""


@dataclass(frozen=True)
class LoadedRuns:
    """Runs and, if there are several, their comparison."""

    runs: tuple[StoredRun, ...]
    comparison: Comparison | None

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics that can order the runs, the primary one first."""
        if self.comparison is None:
            return self.runs[0].result.names
        return tuple(dict.fromkeys((self.comparison.primary, *self.comparison.metrics)))


class PageCache:
    """The pages and files that are finished or in progress."""

    def __init__(self) -> None:
        self._load_runsed: BackgroundCache[LoadedRuns] = BackgroundCache(GATHERED)
        self._made: BackgroundCache[bytes] = BackgroundCache(PAGES)

    def report(self, choice: RunSelection) -> Future[bytes]:
        """The page that ``eq report`` writes, with a link to the list."""

        def make() -> bytes:
            loaded = self._load_runs(choice)
            page = build_view(loaded.runs, loaded.comparison)
            return _to_utf8(render_html(page, links=page_links(choice, loaded.metrics)))

        return self._made.ask(f"report {choice.version}", make)

    def file(self, choice: RunSelection, form: ExportFormat) -> Future[bytes]:
        """The runs in an export format."""

        def make() -> bytes:
            loaded = self._load_runs(choice)
            return _to_utf8(export(loaded.runs, loaded.comparison, form.to, units=form.units))

        return self._made.ask(f"{form.filename} {choice.version}", make)

    def _load_runs(self, choice: RunSelection) -> LoadedRuns:
        def make() -> LoadedRuns:
            primary = choice.primary or None
            runs = read_runs(choice.named, primary)
            return LoadedRuns(runs, compare_runs(runs, primary=primary))

        return self._load_runsed.ask(choice.version, make).result()


def _to_utf8(text: str) -> bytes:
    """UTF-8; bytes of file names that are not text are escaped."""
    return text.encode("utf-8", "backslashreplace")


LARGE_RUN_UNITS = 20_000
"""With more units than this the browser gets a page to wait on."""
WAIT_SECONDS = 1.0
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
    app = Starlette(
        routes=routes,
        exception_handlers={404: _handle_not_found, 405: _handle_not_found, Exception: _handle_unexpected},
    )
    app.add_exception_handler(EquipoiseError, _handle_our_error)
    app.router.redirect_slashes = False
    return with_security_headers(app, port)


class Viewer:
    """The request handlers. Long computations run in the background."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.library = ResultsFolder(root)
        self.pages = PageCache()

    async def runs(self, request: Request) -> Response:
        """The list of all runs."""
        run_list = await self._run_list()
        version = f"{run_list.version}-{__version__}"
        return responses.not_modified(request, version) or responses.viewer_page(
            render("runs.html", run_list=run_list, root=str(self.root), program=f"equipoise {__version__}"),
            version,
        )

    async def state(self, request: Request) -> Response:
        """The list as JSON; its version tells the script whether to update the page."""
        run_list = await self._run_list()
        return responses.not_modified(request, run_list.version) or responses.data(state_of(run_list), run_list.version)

    async def report(self, request: Request) -> Response:
        """The report of one run, or of several and their comparison."""
        choice = await self._choice(request)
        known = responses.not_modified(request, choice.version)
        if known is not None:
            return known
        content = await _wait_briefly(self.pages.report(choice), choice)
        if content is None:
            return responses.pending_page(choice.units, len(choice.rows))
        return responses.report_page(content, choice.version)

    async def export(self, request: Request) -> Response:
        """The chosen runs as a file."""
        choice = await self._choice(request)
        name = request.query_params.get("to", "")
        if name not in FILES:
            raise UnknownNameError.of("form", name, FILES, more=f"there are {', '.join(FILES)}")
        form = FILES[name]
        content = await asyncio.wrap_future(self.pages.file(choice, form))
        return responses.file(content, form.filename, form.media, choice.version)

    async def style(self, request: Request) -> Response:
        """The style sheet of the list."""
        return Response(style(), media_type="text/css")

    async def script(self, request: Request) -> Response:
        """The script of the list."""
        return Response(asset("view.js"), media_type="text/javascript")

    async def _run_list(self) -> RunList:
        return await asyncio.wrap_future(in_background(self.library.run_list))

    async def _choice(self, request: Request) -> RunSelection:
        asked = request.query_params
        return RunSelection.of(await self._run_list(), asked.getlist("run"), asked.get("primary", ""))


def state_of(run_list: RunList) -> dict[str, Any]:
    """The list as plain values."""
    under_way = [asdict(run) | {"folder": run.folder.as_posix()} for run in run_list.under_way]
    return {
        "version": run_list.version,
        "runs": [row.to_dict() for row in run_list.rows],
        "under_way": under_way,
        "note": run_list.note,
    }


async def _wait_briefly(made: Future[bytes], choice: RunSelection) -> bytes | None:
    """The content, or None if it is not finished in time; the computation then continues and is cached."""
    waiting = asyncio.wrap_future(made)
    if choice.units <= LARGE_RUN_UNITS:
        return await waiting
    done, _ = await asyncio.wait({waiting}, timeout=WAIT_SECONDS)
    return waiting.result() if done else None


async def _handle_our_error(request: Request, error: Exception) -> Response:
    if not isinstance(error, EquipoiseError):
        raise error
    return responses.error_response(error)


async def _handle_not_found(request: Request, error: Exception) -> Response:
    return responses.not_found()


async def _handle_unexpected(request: Request, error: Exception) -> Response:
    return responses.server_error()
