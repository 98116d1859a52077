"""The web application of the viewer: its URLs, request handlers and responses."""

from __future__ import annotations

import asyncio
import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from concurrent.futures import Future
from dataclasses import asdict, dataclass
from functools import lru_cache
from html import unescape
from importlib.resources import files
from pathlib import Path
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from equipoise import __version__
from equipoise.errors import EquipoiseError, PairingError, RunNotFoundError, UnknownNameError
from equipoise.report.build_view import build_view, compare_runs, read_runs
from equipoise.report.export import FORMATS, UNIT_CSV, ExportFormat
from equipoise.report.html import charts
from equipoise.report.html.render import PageLinks, render_html, shown_value
from equipoise.view.results import ResultsFolder, RunList, RunSelection

if TYPE_CHECKING:
    from equipoise.runs.run_folder import StoredRun
    from equipoise.stats.comparison import Comparison

# Long computations: each is done once, in the background, and cached.

ResultT = TypeVar("ResultT")


class BackgroundCache(Generic[ResultT]):
    """A cache of the last results by key; a failure is cached like any other result."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._lock = Lock()
        self._futures: OrderedDict[str, Future[ResultT]] = OrderedDict()

    def get_or_start(self, key: str, make: Callable[[], ResultT]) -> Future[ResultT]:
        """The result with this key; its computation starts unless it has been started before."""
        with self._lock:
            future = self._futures.get(key)
            if future is None:
                future = self._futures[key] = in_background(make)
            self._futures.move_to_end(key)
            while len(self._futures) > self._size:
                self._futures.popitem(last=False)
        return future


def in_background(make: Callable[[], ResultT]) -> Future[ResultT]:
    """Compute in a daemon thread, which does not delay the end of the program.

    >>> in_background(lambda: 2 + 2).result()
    4
    """
    future: Future[ResultT] = Future()

    def work() -> None:
        try:
            future.set_result(make())
        except BaseException as error:
            future.set_exception(error)

    Thread(target=work, daemon=True).start()
    return future


FILES = {**FORMATS, "units": UNIT_CSV}
"""The files that can be downloaded, by their names in URLs."""

# Links that the viewer adds to a report page: the list of runs, other systems and metrics, and downloads.


def page_links(choice: RunSelection, metrics: Sequence[str]) -> PageLinks:
    """The links of the page of these runs; the first metric is the one that orders the systems."""
    forms = {name: form for name, form in FILES.items() if len(choice.rows) == 1 or not form.is_single}
    hidden = [(f"Hide {row.label}", choice.hiding(row)) for row in choice.rows if len(choice.rows) > 1]
    shown = [(f"Show {row.label}", choice.showing(row)) for row in choice.others]
    return PageLinks(
        home=f"/?{choice.query()}",
        system_links=tuple((title, f"/report?{other.query()}") for title, other in [*hidden, *shown]),
        sort_links=tuple((name, f"/report?{choice.query(primary=name)}") for name in metrics[1:]),
        files=tuple((form.title, f"/export?{choice.query(to=name)}") for name, form in forms.items()),
    )


# Report pages and files of selected runs, cached until a run changes.

PAGES = 16
GATHERED = 1
"""Runs with all their units take much memory, so only the last requested ones are kept."""


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
        self._loaded: BackgroundCache[LoadedRuns] = BackgroundCache(GATHERED)
        self._pages: BackgroundCache[bytes] = BackgroundCache(PAGES)

    def report(self, choice: RunSelection) -> Future[bytes]:
        """The page that ``eq report`` writes, with a link to the list."""

        def make() -> bytes:
            loaded = self._load_runs(choice)
            page = build_view(loaded.runs, loaded.comparison)
            return _to_utf8(render_html(page, links=page_links(choice, loaded.metrics)))

        return self._pages.get_or_start(f"report {choice.version}", make)

    def file(self, choice: RunSelection, form: ExportFormat) -> Future[bytes]:
        """The runs in an export format."""

        def make() -> bytes:
            loaded = self._load_runs(choice)
            return _to_utf8(form.function(loaded.runs, loaded.comparison))

        return self._pages.get_or_start(f"{form.filename} {choice.version}", make)

    def _load_runs(self, choice: RunSelection) -> LoadedRuns:
        def make() -> LoadedRuns:
            primary = choice.primary or None
            runs = read_runs(choice.named, primary)
            return LoadedRuns(runs, compare_runs(runs, primary=primary))

        return self._loaded.get_or_start(choice.version, make).result()


def _to_utf8(text: str) -> bytes:
    """UTF-8; bytes of file names that are not text are escaped."""
    return text.encode("utf-8", "backslashreplace")


LARGE_PAGE_VALUES = 4_000
"""With more values than this (units times systems) the browser gets a page to wait on."""
WAIT_SECONDS = 1.0
"""Seconds before it gets it."""


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
        return not_modified(request, version) or viewer_page(
            render("runs.html", run_list=run_list, root=str(self.root.resolve()), program=f"equipoise {__version__}"),
            version,
        )

    async def state(self, request: Request) -> Response:
        """The list as JSON; its version tells the script whether to update the page."""
        run_list = await self._run_list()
        return not_modified(request, run_list.version) or data(state_of(run_list), run_list.version)

    async def report(self, request: Request) -> Response:
        """The report of one run, or of several and their comparison."""
        choice = await self._choice(request)
        known = not_modified(request, choice.version)
        if known is not None:
            return known
        content = await _wait_briefly(self.pages.report(choice), choice)
        if content is None:
            return pending_page(choice.units, len(choice.rows))
        return report_page(content, choice.version)

    async def export(self, request: Request) -> Response:
        """The chosen runs as a file."""
        choice = await self._choice(request)
        name = request.query_params.get("to", "")
        if name not in FILES:
            raise UnknownNameError.of("form", name, FILES, more=f"there are {', '.join(FILES)}")
        form = FILES[name]
        content = await asyncio.wrap_future(self.pages.file(choice, form))
        return file(content, form.filename, form.media, choice.version)

    async def style(self, request: Request) -> Response:
        """The style sheet of the list."""
        return Response(style(), media_type="text/css")

    async def script(self, request: Request) -> Response:
        """The script of the list."""
        return Response(asset("view.js"), media_type="text/javascript")

    async def _run_list(self) -> RunList:
        return await asyncio.wrap_future(in_background(self.library.run_list))

    async def _choice(self, request: Request) -> RunSelection:
        params = request.query_params
        return RunSelection.of(await self._run_list(), params.getlist("run"), params.get("primary", ""))


def state_of(run_list: RunList) -> dict[str, Any]:
    """The list as plain values."""
    under_way = [asdict(run) | {"folder": run.folder.as_posix()} for run in run_list.under_way]
    return {
        "version": run_list.version,
        "runs": [row.to_dict() for row in run_list.rows],
        "under_way": under_way,
        "note": run_list.note,
    }


async def _wait_briefly(page: Future[bytes], choice: RunSelection) -> bytes | None:
    """The content, or None if it is not finished in time; the computation then continues and is cached."""
    waiting = asyncio.wrap_future(page)
    if choice.units * len(choice.rows) <= LARGE_PAGE_VALUES:
        return await waiting
    done, _ = await asyncio.wait({waiting}, timeout=WAIT_SECONDS)
    return waiting.result() if done else None


async def _handle_our_error(request: Request, error: Exception) -> Response:
    if not isinstance(error, EquipoiseError):
        raise error
    return error_response(error)


async def _handle_not_found(request: Request, error: Exception) -> Response:
    return not_found()


async def _handle_unexpected(request: Request, error: Exception) -> Response:
    return server_error()


# Responses: pages, data, files and errors.

# The pages of the viewer, from templates that escape all values.

PACKAGE = "equipoise.view"


def render(template: str, **values: Any) -> str:
    """A template filled in."""
    text: str = _environment().get_template(template).render(**values)
    return text


@lru_cache(maxsize=1)
def style() -> str:
    """The style sheets of the report and of the list of runs."""
    report = (files("equipoise.report.html") / "style.css").read_text(encoding="utf-8")
    return charts.chart_style() + report + asset("view.css")


@lru_cache(maxsize=2)
def asset(name: str) -> str:
    """A file that comes with the viewer."""
    return (files(PACKAGE) / name).read_text(encoding="utf-8")


@lru_cache(maxsize=1)
def _environment() -> Any:
    import jinja2

    return jinja2.Environment(
        loader=jinja2.PackageLoader(PACKAGE, "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=shown_value,
    )


# Checks of every request, and headers of every response.

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]

LOCAL = ("127.0.0.1", "localhost")
METHODS = ("GET", "HEAD")
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    b"content-security-policy": CONTENT_SECURITY_POLICY.encode(),
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-resource-policy": b"same-origin",
    b"cross-origin-opener-policy": b"same-origin",
    b"cache-control": b"no-cache",
}
"""Headers of every response that does not set them."""


def with_security_headers(app: App, port: int) -> App:
    """The application behind the checks: only this host, only reading, and safe headers on everything."""
    hosts = {f"{name}:{port}".encode() for name in LOCAL}
    if port == 80:
        hosts |= {name.encode() for name in LOCAL}

    async def guard(scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return None
        host_headers = [value.lower() for name, value in scope["headers"] if name == b"host"]
        if len(host_headers) != 1 or host_headers[0] not in hosts:
            return await _send_error(send, 421, "This server answers only to 127.0.0.1 and localhost.\n")
        if scope["method"] not in METHODS:
            allowed = (b"allow", ", ".join(METHODS).encode())
            return await _send_error(send, 405, "Results are only read here, never changed.\n", allowed)
        return await app(scope, receive, _with_headers(send))

    return guard


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        # A browser replaces the stored headers of a page, such as its own policy, by those of a 304 response.
        if message["type"] == "http.response.start" and message["status"] != 304:
            headers = list(message.get("headers", ()))
            present = {name.lower() for name, _ in headers}
            message["headers"] = headers + [header for header in HEADERS.items() if header[0] not in present]
        await send(message)

    return sending


async def _send_error(send: Send, status: int, sentence: str, *headers: tuple[bytes, bytes]) -> None:
    text = sentence.encode()
    about = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(text)).encode())]
    sending = _with_headers(send)
    await sending({"type": "http.response.start", "status": status, "headers": [*about, *headers]})
    await sending({"type": "http.response.body", "body": text})


_META = re.compile(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">')
_HEAD = 4000
"""The policy of a page is within its first characters."""
AGAIN = "2"
"""Seconds after which a browser reloads the page of a report in progress."""


def not_modified(request: Request, version: str) -> Response | None:
    """A 304 response if the browser has this version; otherwise None."""
    header = request.headers.get("if-none-match", "")
    if tag(version) in (entity_tag.strip().removeprefix("W/") for entity_tag in header.split(",")):
        return Response(status_code=304, headers={"etag": tag(version)})
    return None


def tag(version: str) -> str:
    """A version as an ETag header value."""
    return f'"{version}"'


def viewer_page(text: str, version: str = "") -> Response:
    """A page of the viewer itself."""
    return Response(text, media_type="text/html", headers={"etag": tag(version)} if version else None)


def report_page(content: bytes, version: str) -> Response:
    """A report with its own content security policy, which allows its styles and scripts by hash."""
    headers = {"etag": tag(version), "content-security-policy": policy_of(content)}
    return Response(content, media_type="text/html", headers=headers)


def policy_of(page: bytes) -> str:
    """The content security policy of a page, with the directives that only a header can have.

    >>> policy_of(b'<meta http-equiv="Content-Security-Policy" content="img-src data:">')
    "img-src data:; frame-ancestors 'none'"
    """
    match = _META.search(page[:_HEAD].decode("utf-8", "replace"))
    return CONTENT_SECURITY_POLICY if match is None else f"{unescape(match[1])}; frame-ancestors 'none'"


def data(content: dict[str, Any], version: str) -> Response:
    """Data for the script of the list, and for other programs."""
    return JSONResponse(content, headers={"etag": tag(version)})


def file(content: bytes, filename: str, media: str, version: str) -> Response:
    """A file to save."""
    disposition = f'attachment; filename="{filename}"'
    return Response(content, media_type=media, headers={"etag": tag(version), "content-disposition": disposition})


def pending_page(units: int, systems: int) -> Response:
    """A page that reloads itself until the report is finished."""
    text = render("making.html", units=units, systems=systems)
    return Response(text, status_code=202, media_type="text/html", headers={"refresh": AGAIN})


def error_response(error: EquipoiseError) -> Response:
    """The message and the hint of an error, as in the terminal."""
    status = status_of(error)
    facts = {"message": error.message, "excerpt": error.excerpt, "hint": error.hint, "code": error.code}
    return _message_page(status, TITLES.get(status, "This cannot be shown"), **facts)


def _message_page(status: int, title: str, **facts: str) -> Response:
    text = render("message.html", title=title, **{"excerpt": "", "hint": "", "code": ""} | facts)
    return Response(text, status_code=status, media_type="text/html")


def status_of(error: EquipoiseError) -> int:
    """404 for unknown names, 409 for runs that cannot be compared, 422 for other errors.

    >>> status_of(PairingError("other units"))
    409
    """
    if isinstance(error, RunNotFoundError):
        return 404
    return 409 if isinstance(error, PairingError) else 422


TITLES = {404: "There is no such run", 409: "These runs cannot be compared"}


def not_found() -> Response:
    """The response to unknown addresses."""
    return _message_page(404, "Nothing here", message="there is no page at this address")


def server_error() -> Response:
    """The response to unexpected errors; the terminal shows the traceback."""
    hint = "the terminal that runs eq view says more; please report it"
    return _message_page(500, "Something went wrong", message="this is a fault of equipoise", hint=hint)
