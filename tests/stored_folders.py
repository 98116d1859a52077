"""Folders of results as they lie on the disk, but for times: two that were made alike are equal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def stored(folder: Path) -> dict[str, Any]:
    """Every file of a comparison as it is, but for times and the words of the command."""
    found: dict[str, Any] = {}
    for path in sorted(folder.rglob("*")):
        # view.json has the measured rates in its texts.
        if not path.is_file() or path.suffix in (".png", ".svg") or path.name == "view.json":
            continue
        name = str(path.relative_to(folder))
        found[name] = _timeless(json.loads(path.read_text())) if _has_times(path) else path.read_bytes()
    assert len(found) > 5
    return found


def _has_times(path: Path) -> bool:
    return path.name in ("manifest.json", "results.json")


MEASURED = ("started", "finished", "command", "seconds", "seconds_with_cache", "optimization_time_seconds")


def _timeless(content: dict[str, Any]) -> str:
    return json.dumps(_without_measurements(content))


def _without_measurements(value: Any) -> Any:
    """The content without times, rates and the command."""
    if isinstance(value, list):
        return [_without_measurements(item) for item in value]
    if not isinstance(value, dict):
        return value
    kept = {name: item for name, item in value.items() if name not in MEASURED and not name.endswith("_per_second")}
    return {name: _without_measurements(item) for name, item in kept.items()}
