"""What every request must be and every answer must say, before and after all pages.

A page from elsewhere can make a browser send requests to this machine. It is refused by the Host header,
which a script cannot forge (a name that points to 127.0.0.1 only since a moment ago still is that name), and
whatever it might get to load it may not read: no answer allows another origin.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]

LOCAL = ("127.0.0.1", "localhost")
METHODS = ("GET", "HEAD")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    b"content-security-policy": POLICY.encode(),
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-resource-policy": b"same-origin",
    b"cross-origin-opener-policy": b"same-origin",
    b"cache-control": b"no-cache",
}
"""On every answer, unless it brings its own."""


def guarded(app: App, port: int) -> App:
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
