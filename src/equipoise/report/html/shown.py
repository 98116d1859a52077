"""What a template does with every value before it escapes it."""

from __future__ import annotations

from typing import Any

from equipoise.report.inert import inert


def shown_value(value: Any) -> Any:
    """A text without control characters; markup and whatever is no text stay as they are."""
    return inert(value) if isinstance(value, str) and not hasattr(value, "__html__") else value
