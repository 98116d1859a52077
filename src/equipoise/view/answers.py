"""Answers of the viewer: pages, data, files, and sentences where something cannot be shown."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from equipoise.errors import AbsentRunError, EquipoiseError, PairingError
from equipoise.view.guard import POLICY
from equipoise.view.markup import rendered

_META = re.compile(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">')
_HEAD = 4000
"""The policy of a page stands within its first characters."""
AGAIN = "2"
"""Seconds after which a browser asks again for what is being made."""


def unchanged(request: Request, version: str) -> Response | None:
    """An empty answer for a browser that has this version already."""
    asked = request.headers.get("if-none-match", "")
    if tag(version) in (each.strip().removeprefix("W/") for each in asked.split(",")):
        return Response(status_code=304, headers={"etag": tag(version)})
    return None


def tag(version: str) -> str:
    """A version as it stands in a header."""
    return f'"{version}"'


def own_page(text: str, version: str = "") -> Response:
    """A page of the viewer itself."""
    return Response(text, media_type="text/html", headers={"etag": tag(version)} if version else None)


def report_page(content: bytes, version: str) -> Response:
    """A report, under the policy that it brings: its own styles and scripts by their hashes, no others."""
    headers = {"etag": tag(version), "content-security-policy": policy_of(content)}
    return Response(content, media_type="text/html", headers=headers)


def policy_of(page: bytes) -> str:
    """The policy inside a page, made stricter by what only a header can say.

    >>> policy_of(b'<meta http-equiv="Content-Security-Policy" content="img-src data:">')
    "img-src data:; frame-ancestors 'none'"
    """
    found = _META.search(page[:_HEAD].decode("utf-8", "replace"))
    return POLICY if found is None else f"{unescape(found[1])}; frame-ancestors 'none'"


def data(content: dict[str, Any], version: str) -> Response:
    """Data for the script of the list, and for other programs."""
    return JSONResponse(content, headers={"etag": tag(version)})


def file(content: bytes, filename: str, media: str, version: str) -> Response:
    """A file to save."""
    disposition = f'attachment; filename="{filename}"'
    return Response(
        content, media_type=media, headers={"etag": tag(version), "content-disposition": disposition}
    )


def being_made(units: int, systems: int) -> Response:
    """A page to wait on; the browser asks again by itself."""
    text = rendered("making.html", units=units, systems=systems)
    return Response(text, status_code=202, media_type="text/html", headers={"refresh": AGAIN})


def refusal(error: EquipoiseError) -> Response:
    """The sentence and the hint of an error, as they would stand in a terminal."""
    text = rendered(
        "message.html",
        title=TITLES.get(status_of(error), "This cannot be shown"),
        sentence=error.sentence,
        excerpt=error.excerpt,
        hint=error.hint,
        code=error.code,
    )
    return Response(text, status_code=status_of(error), media_type="text/html")


def status_of(error: EquipoiseError) -> int:
    """404 for what is not there, 409 for runs that do not go together, 422 for the rest.

    >>> status_of(PairingError("other units"))
    409
    """
    if isinstance(error, AbsentRunError):
        return 404
    return 409 if isinstance(error, PairingError) else 422


TITLES = {404: "There is no such run", 409: "These runs cannot be compared"}


def nothing_here() -> Response:
    """For addresses that lead nowhere."""
    sentence = "there is no page at this address"
    text = rendered("message.html", title="Nothing here", sentence=sentence, excerpt="", hint="", code="")
    return Response(text, status_code=404, media_type="text/html")


def fault() -> Response:
    """For what should not have happened; what it was stands in the terminal."""
    text = rendered(
        "message.html",
        title="Something went wrong",
        sentence="this is a fault of equipoise",
        excerpt="",
        hint="the terminal that runs eq view says more; please report it",
        code="",
    )
    return Response(text, status_code=500, media_type="text/html")
