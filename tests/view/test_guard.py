"""Requests are limited to this machine and to reading, and every response has security headers."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

PATHS = ("/", "/runs.json", "/style.css", "/view.js", "/nothing", "/report?run=bm25", "/report?run=no")
PATHS += ("/export?run=bm25&to=csv", "/report?run=bm25&run=other")


def send_raw(port: int, request: bytes) -> bytes:
    """Send a raw request and return the raw response."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(request)
        response = b""
        while chunk := connection.recv(65536):
            response += chunk
        return response


def test_the_server_listens_on_the_loopback_address_only(viewer) -> None:
    assert viewer.get().status == 200
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", viewer.port), timeout=5)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST"])
def test_requests_with_a_local_host_name_are_accepted(viewer, host: str) -> None:
    assert viewer.get(Host=f"{host}:{viewer.port}").status == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:{port}",
        "127.0.0.1",
        "localhost:1",
        "127.0.0.1:{port}.evil.example",
        "evil.example:80@127.0.0.1:{port}",
        "127.0.0.1.evil.example:{port}",
        "[::1]:{port}",
        "0.0.0.0:{port}",
    ],
)
@pytest.mark.parametrize("path", ["/", "/runs.json", "/report?run=bm25"])
def test_other_host_names_are_rejected_against_dns_rebinding(viewer, host: str, path: str) -> None:
    response = viewer.get(path, Host=host.format(port=viewer.port))
    assert response.status == 421
    assert b"bm25" not in response.body


@pytest.mark.parametrize("hosts", [[], ["127.0.0.1:{port}", "evil.example"], ["evil.example", "127.0.0.1:{port}"]])
def test_missing_or_repeated_host_headers_are_rejected(viewer, hosts: list[str]) -> None:
    lines = "".join(f"Host: {host.format(port=viewer.port)}\r\n" for host in hosts)
    for version in ("1.0", "1.1"):
        response = send_raw(viewer.port, f"GET / HTTP/{version}\r\n{lines}Connection: close\r\n\r\n".encode())
        assert response.split()[1] in (b"421", b"400")
        assert b"bm25" not in response


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND"])
@pytest.mark.parametrize("path", ["/", "/report?run=bm25", "/nothing"])
def test_only_get_and_head_are_allowed(viewer, method: str, path: str) -> None:
    response = viewer.get(path, method=method)
    assert response.status == 405
    assert response.headers["allow"] == "GET, HEAD"


def test_head_returns_the_headers_of_get_without_a_body(viewer) -> None:
    get_response, head_response = viewer.get("/runs.json"), viewer.get("/runs.json", method="HEAD")
    assert (head_response.status, head_response.body) == (200, b"")
    assert head_response.headers["content-length"] == get_response.headers["content-length"]


@pytest.mark.parametrize("path", PATHS)
def test_every_response_has_strict_security_headers(viewer, path: str) -> None:
    headers = viewer.get(path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "base-uri 'none'" in policy
    assert "unsafe" not in policy
    assert "*" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cross-origin-resource-policy"] == "same-origin"


@pytest.mark.parametrize("path", PATHS)
def test_cross_origin_reading_is_not_allowed(viewer, path: str) -> None:
    headers = viewer.get(path, Origin="https://evil.example").headers
    assert not [name for name in headers if name.startswith("access-control")]


def test_web_socket_upgrades_are_rejected(viewer) -> None:
    response = send_raw(
        viewer.port,
        f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{viewer.port}\r\n"
        "Upgrade: websocket\r\nConnection: Upgrade, close\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n".encode(),
    )
    assert b" 101 " not in response


def test_servers_for_different_folders_are_independent(tmp_path: Path, serve, store) -> None:
    store(tmp_path / "one" / "a")
    store(tmp_path / "two" / "b")
    first, second = serve(tmp_path / "one"), serve(tmp_path / "two")
    assert [row["run"] for row in first.get("/runs.json").json["runs"]] == ["a"]
    assert second.get("/report?run=a").status == 404
    assert second.get(Host=f"127.0.0.1:{first.port}").status == 421
