"""The examples in the docstrings run as they are printed."""

from __future__ import annotations

import doctest
import linecache
from importlib import import_module
from pathlib import Path

import pytest

import equipoise

PACKAGE = Path(equipoise.__file__).parent
FILES = [path for path in sorted(PACKAGE.rglob("*.py")) if ">>> " in path.read_text(encoding="utf-8")]


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@pytest.mark.parametrize("name", [*map(module_name, FILES)])
def test_examples_print_what_they_show(name: str) -> None:
    linecache.clearcache()  # doctest looks at every file in it, once per docstring
    assert doctest.testmod(import_module(name)).failed == 0
