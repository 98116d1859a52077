"""The examples in docstrings give the printed output, and every public function documents its parameters."""

from __future__ import annotations

import doctest
import inspect
import linecache
import re
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import equipoise
from loading import script

PACKAGE = Path(equipoise.__file__).parent
FILES = [path for path in sorted(PACKAGE.rglob("*.py")) if ">>> " in path.read_text(encoding="utf-8")]
PUBLIC_MODULES = [f"equipoise.{name}".rstrip(".") for name in script("write_stubs").MODULES]


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@pytest.mark.parametrize("name", [*map(module_name, FILES)])
def test_docstring_examples_give_the_printed_output(name: str) -> None:
    linecache.clearcache()  # doctest checks every file of the cache for each docstring
    assert doctest.testmod(import_module(name)).failed == 0


def missing_sections(function: Callable[..., Any]) -> Iterator[str]:
    """The sections that are missing in the numpydoc docstring of a function."""
    docstring = inspect.getdoc(function) or ""
    sections = dict(re.findall(r"^(\w+)\n-{3,}\n(.*?)(?=^\w+\n-{3,}\n|\Z)", docstring, re.MULTILINE | re.DOTALL))
    lines = re.findall(r"^\S.*", sections.get("Parameters", ""), re.MULTILINE)
    documented = [name.lstrip("*") for line in lines for name in line.split(", ")]
    if documented != [*inspect.signature(function).parameters]:
        yield f"{function.__name__}: parameters"
    if not sections.get("Returns"):
        yield f"{function.__name__}: return value"
    if ">>> " not in sections.get("Examples", ""):
        yield f"{function.__name__}: example"


@pytest.mark.parametrize("module", PUBLIC_MODULES)
def test_public_functions_document_parameters_result_and_example(module: str) -> None:
    public = import_module(module)
    functions = [value for name in public.__all__ if inspect.isfunction(value := getattr(public, name))]
    assert functions
    assert [missing for function in functions for missing in missing_sections(function)] == []
