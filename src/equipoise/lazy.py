"""Packages whose names are imported when they are first used, so that importing the package costs nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module


def lazy_attributes(package: str, homes: Mapping[str, str]) -> Callable[[str], object]:
    """The ``__getattr__`` of a package: it imports a name from its home at the first use, and keeps it.

    >>> lazy_attributes("json", {"JSONDecoder": "json.decoder"})("JSONDecoder")
    <class 'json.decoder.JSONDecoder'>
    """

    def attribute(name: str) -> object:
        home = homes.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value: object = getattr(import_module(home), name)
        setattr(sys.modules[package], name, value)
        return value

    return attribute
