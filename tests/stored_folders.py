"""Folders of results as they lie on the disk, but for times: two that were made alike are equal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def stored(folder: Path) -> dict[str, Any]:
    """Every file of a comparison as it is, but for times and the words of the command."""
    found: dict[str, Any] = {}
    for path in sorted(folder.rglob("*")):
        if not path.is_file() or path.suffix in (".png", ".svg"):
            continue
        name = str(path.relative_to(folder))
        found[name] = _timeless(json.loads(path.read_text())) if _has_times(path) else path.read_bytes()
    assert len(found) > 5
    return found


def _has_times(path: Path) -> bool:
    return path.name in ("manifest.json", "results.json")


def _timeless(content: dict[str, Any]) -> str:
    for name in ("started", "finished", "command"):
        content.pop(name, None)
    for name in ("seconds", "seconds_with_cache"):
        content.get("cost", {}).pop(name, None)
    for model in content.get("models", []):
        model.pop("optimization_time_seconds")
    return json.dumps(content)
