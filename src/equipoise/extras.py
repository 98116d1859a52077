"""The command that installs an optional dependency."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any


def install_command(extra: str) -> str:
    """The pip command that adds an extra to this installation, from the same source."""
    return f"pip install {_requirement(extra, _direct_url())}"


def _direct_url() -> dict[str, Any]:
    """Where pip installed this package from, if not from an index (PEP 610)."""
    from importlib import metadata

    try:
        text = metadata.distribution("equipoise").read_text("direct_url.json")
    except metadata.PackageNotFoundError:
        return {}
    return dict(json.loads(text)) if text else {}


def _requirement(extra: str, origin: dict[str, Any]) -> str:
    """The requirement for pip, quoted for a shell.

    >>> print(_requirement("report", {}))
    'equipoise[report]'
    >>> print(_requirement("report", {"url": "file:///home/me/equipoise", "dir_info": {"editable": True}}))
    -e '/home/me/equipoise[report]'
    >>> git = {"url": "https://host/e.git", "vcs_info": {"vcs": "git", "commit_id": "1a2b"}}
    >>> print(_requirement("report", git))
    'equipoise[report] @ git+https://host/e.git@1a2b'
    """
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    address = urlsplit(origin.get("url", ""))
    if address.scheme == "file":
        path = Path(url2pathname(address.path))
        here = "." if path == Path.cwd() else str(path)
        editable = "-e " if origin.get("dir_info", {}).get("editable") else ""
        return editable + shlex.quote(f"{here}[{extra}]")
    if "vcs_info" in origin:
        revision = origin["vcs_info"]
        return shlex.quote(f"equipoise[{extra}] @ {revision['vcs']}+{origin['url']}@{revision['commit_id']}")
    return shlex.quote(f"equipoise[{extra}]")
