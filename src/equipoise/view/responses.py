"""HTTP responses of the viewer: pages, data, files and errors."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, MutableMapping
from functools import lru_cache
from html import unescape
from importlib.resources import files
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from equipoise.errors import EquipoiseError, PairingError, RunNotFoundError
from equipoise.report.html import charts
from equipoise.report.html.render import shown_value

# The viewer's own pages, from templates that escape whatever they are given.

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


# What every request must be and every answer must say, before and after all pages.

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
"""On every answer, unless it brings its own."""


def with_security_headers(app: App, port: int) -> App:
    """The application behind the checks: only this host, only reading, and safe headers on everything."""
    hosts = {f"{name}:{port}".encode() for name in LOCAL}
    if port == 80:
        hosts |= {name.encode() for name in LOCAL}

    async def guard(scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return None
        given = [value.lower() for name, value in scope["headers"] if name == b"host"]
        if len(given) != 1 or given[0] not in hosts:
            return await _refuse(send, 421, "This server answers only to 127.0.0.1 and localhost.\n")
        if scope["method"] not in METHODS:
            allowed = (b"allow", ", ".join(METHODS).encode())
            return await _refuse(send, 405, "Results are only read here, never changed.\n", allowed)
        return await app(scope, receive, _with_headers(send))

    return guard


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            own = list(message.get("headers", ()))
            there = {name.lower() for name, _ in own}
            message["headers"] = own + [each for each in HEADERS.items() if each[0] not in there]
        await send(message)

    return sending


async def _refuse(send: Send, status: int, sentence: str, *headers: tuple[bytes, bytes]) -> None:
    text = sentence.encode()
    about = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(text)).encode())]
    sending = _with_headers(send)
    await sending({"type": "http.response.start", "status": status, "headers": [*about, *headers]})
    await sending({"type": "http.response.body", "body": text})


_META = re.compile(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">')
_HEAD = 4000
"""The policy of a page is within its first characters."""
AGAIN = "2"
"""Seconds after which a browser asks again for what is being made."""


def not_modified(request: Request, version: str) -> Response | None:
    """A 304 response if the browser has this version; otherwise None."""
    asked = request.headers.get("if-none-match", "")
    if tag(version) in (each.strip().removeprefix("W/") for each in asked.split(",")):
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
    found = _META.search(page[:_HEAD].decode("utf-8", "replace"))
    return CONTENT_SECURITY_POLICY if found is None else f"{unescape(found[1])}; frame-ancestors 'none'"


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
    text = render(
        "message.html",
        title=TITLES.get(status_of(error), "This cannot be shown"),
        message=error.message,
        excerpt=error.excerpt,
        hint=error.hint,
        code=error.code,
    )
    return Response(text, status_code=status_of(error), media_type="text/html")


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
    sentence = "there is no page at this address"
    text = render("message.html", title="Nothing here", message=sentence, excerpt="", hint="", code="")
    return Response(text, status_code=404, media_type="text/html")


def server_error() -> Response:
    """The response to unexpected errors; the terminal shows the traceback."""
    text = render(
        "message.html",
        title="Something went wrong",
        message="this is a fault of equipoise",
        excerpt="",
        hint="the terminal that runs eq view says more; please report it",
        code="",
    )
    return Response(text, status_code=500, media_type="text/html")
