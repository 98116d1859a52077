"""Modules whose names are imported when they are first used, so that importing the module itself is cheap (PEP 562)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import NamedTuple


class LazyModule(NamedTuple):
    """The three module attributes that make a module lazy."""

    getattr: Callable[[str], object]
    dir: Callable[[], list[str]]
    all: list[str]


def lazy_module(module: str, public_names: Mapping[str, str]) -> LazyModule:
    """The ``__getattr__``, ``__dir__`` and ``__all__`` of a module with these public names.

    Parameters
    ----------
    module
        The name of the module, usually ``__name__``.
    public_names
        The module that defines each public name. A submodule is defined by itself: ``{"fair": "equipoise.fair"}``.

    >>> lazy_module("json", {"JSONDecoder": "json.decoder"}).getattr("JSONDecoder")
    <class 'json.decoder.JSONDecoder'>
    """

    def get_attribute(name: str) -> object:
        defined_in = public_names.get(name)
        if defined_in is None:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        definition = import_module(defined_in)
        value: object = definition if defined_in == f"{module}.{name}" else getattr(definition, name)
        setattr(sys.modules[module], name, value)
        return value

    names = sorted(public_names)
    return LazyModule(get_attribute, names.copy, names)
