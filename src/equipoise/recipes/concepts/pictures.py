"""Placeholder until the charts are drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def draw(folder: Path, found: Any) -> list[Path]:
    """Nothing yet."""
    return []
