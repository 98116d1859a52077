"""Contents of result folders without times: equal for two runs with the same settings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def stored(folder: Path) -> dict[str, Any]:
    """The content of every file of a comparison, without times and without the command."""
    contents: dict[str, Any] = {}
    for path in sorted(folder.rglob("*")):
        # view.json has the measured rates in its texts.
        if not path.is_file() or path.suffix in (".png", ".svg") or path.name == "view.json":
            continue
        name = str(path.relative_to(folder))
        contents[name] = (
            _dump_without_measurements(json.loads(path.read_text())) if _has_times(path) else path.read_bytes()
        )
    assert len(contents) > 5
    return contents


def _has_times(path: Path) -> bool:
    return path.name in ("manifest.json", "results.json")


MEASURED = ("started", "finished", "command", "seconds", "seconds_with_cache", "optimization_time_seconds")


def _dump_without_measurements(content: dict[str, Any]) -> str:
    return json.dumps(_without_measurements(content))


def _without_measurements(value: Any) -> Any:
    """The content without times, rates and the command."""
    if isinstance(value, list):
        return [_without_measurements(item) for item in value]
    if not isinstance(value, dict):
        return value
    deterministic_items = {
        name: item for name, item in value.items() if name not in MEASURED and not name.endswith("_per_second")
    }
    return {name: _without_measurements(item) for name, item in deterministic_items.items()}
