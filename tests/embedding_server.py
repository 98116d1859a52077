"""A real HTTP server with the protocols of OpenAI, Cohere and Voyage, and with configurable failures."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np

DIMS = 8

Trick = Callable[["Handler", dict[str, Any]], None]
"""Handles one request in place of the correct response."""


def vector(text: str, role: str = "") -> np.ndarray:
    """The vector that the server returns for a text."""
    seed = int.from_bytes(hashlib.sha256(f"{role}|{text}".encode()).digest()[:8], "little")
    return np.random.default_rng(seed).normal(size=DIMS).astype(np.float32)


@dataclass
class Service:
    """The address of the server, the requests it received, and the failures it uses for the next requests."""

    url: str = ""
    tricks: list[Trick] = field(default_factory=list)
    always: Trick | None = None
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def asked(self) -> list[str]:
        """All texts of all requests."""
        return [text for request in self.requests for text in inputs(request)]


def inputs(request: dict[str, Any]) -> list[str]:
    """The texts of a request, in any of the protocols."""
    texts = request.get("input", request.get("texts", []))
    return [texts] if isinstance(texts, str) else list(texts)


class Handler(BaseHTTPRequestHandler):
    """Records a request, then sends the correct response unless a failure is queued."""

    protocol_version = "HTTP/1.1"
    service: Service

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.service.lock:
            self.service.requests.append(request)
            self.service.headers.append({name.casefold(): value for name, value in self.headers.items()})
            self.service.paths.append(self.path)
            trick = self.service.tricks.pop(0) if self.service.tricks else self.service.always
        try:
            (trick or honest)(self, request)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def answer(self, value: Any, status: int = 200, **headers: str) -> None:
        """Send JSON."""
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        for name, content in headers.items():
            self.send_header(name.replace("_", "-"), content)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: Any) -> None:
        """Write no log."""


def items(request: dict[str, Any]) -> list[dict[str, Any]]:
    """The correct vectors, in the requested encoding."""
    role = str(request.get("input_type", ""))
    rows = [vector(text, role) for text in inputs(request)]
    is_base64 = request.get("encoding_format") == "base64"
    return [
        {
            "object": "embedding",
            "index": index,
            "embedding": base64.b64encode(row.tobytes()).decode() if is_base64 else row.tolist(),
        }
        for index, row in enumerate(rows)
    ]


def reply(request: dict[str, Any], data: list[dict[str, Any]]) -> dict[str, Any]:
    """A response body of the OpenAI protocol."""
    tokens = sum(len(text.split()) for text in inputs(request))
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "data": data, "model": request.get("model"), "usage": usage}


def honest(handler: Handler, request: dict[str, Any]) -> None:
    """The right vectors."""
    if "texts" in request:
        role = str(request.get("input_type", ""))
        rows = [vector(text, role).tolist() for text in inputs(request)]
        tokens = {"billed_units": {"input_tokens": sum(len(text.split()) for text in inputs(request))}}
        handler.answer({"id": "1", "embeddings": {"float": rows}, "texts": inputs(request), "meta": tokens})
    else:
        handler.answer(reply(request, items(request)))


def status(code: int, message: str = "no", **headers: str) -> Trick:
    """A response with this status."""
    return lambda handler, request: handler.answer({"error": {"message": message}}, code, **headers)


def data(change: Callable[[list[dict[str, Any]]], Any]) -> Trick:
    """A response whose list of vectors is changed."""
    return lambda handler, request: handler.answer(reply(request, change(items(request))))


def cut_off(handler: Handler, request: dict[str, Any]) -> None:
    """Half of the response, then a closed connection."""
    body = json.dumps(reply(request, items(request))).encode()
    handler.send_response(200)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body[: len(body) // 2])
    handler.close_connection = True


def half_json(handler: Handler, request: dict[str, Any]) -> None:
    """A response of the declared length that is not valid JSON."""
    handler.answer(json.dumps(reply(request, items(request))).encode()[:-40])


def slow(seconds: float) -> Trick:
    """The correct response, after a delay."""

    def respond_late(handler: Handler, request: dict[str, Any]) -> None:
        time.sleep(seconds)
        honest(handler, request)

    return respond_late


def at_most(texts: int, characters: int, code: int = 413, message: str = "too large") -> Trick:
    """Reject requests with more texts, or with a longer text."""

    def respond_within_limits(handler: Handler, request: dict[str, Any]) -> None:
        given = inputs(request)
        if len(given) > texts or max(map(len, given)) > characters:
            status(code, message)(handler, request)
        else:
            honest(handler, request)

    return respond_within_limits


@contextmanager
def serving() -> Iterator[Service]:
    """A server on a free port of this machine."""
    service = Service()
    handler = type("Bound", (Handler,), {"service": service})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    service.url = f"http://127.0.0.1:{server.server_port}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield service
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
