"""Markers for fixtures, which pytest does not support."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import pytest

F = TypeVar("F", bound=Callable[..., Any])


def marked(*marks: pytest.MarkDecorator) -> Callable[[F], F]:
    """Mark every test that uses the fixture below; ``tests/conftest.py`` reads it."""

    def decorate(function: F) -> F:
        function.marks = marks  # type: ignore[attr-defined]
        return function

    return decorate
