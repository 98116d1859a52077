"""A griffe extension: how docstrings and signatures are shown in the API reference."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import griffe

FIRST_EXAMPLE = re.compile(r"^>>> ", re.MULTILINE)
LONGEST_DEFAULT = 40


class ApiReference(griffe.Extension):
    """Marks doctests as examples, and shows the values of default constants."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Insert the heading that the numpydoc parser expects before doctests."""
        docstring = obj.docstring
        if docstring is None or "Examples\n---" in docstring.value:
            return
        docstring.value = FIRST_EXAMPLE.sub("Examples\n--------\n>>> ", docstring.value, count=1)

    def on_package(self, *, pkg: griffe.Module, loader: griffe.GriffeLoader, **_: Any) -> None:
        """Change the signatures of the whole package, when all constants are known."""
        for obj in _members(pkg):
            if isinstance(obj, griffe.Function | griffe.Class):
                for parameter in obj.parameters:
                    parameter.default = _value(parameter.default, loader.modules_collection)
            if isinstance(obj, griffe.Attribute):  # the fields of a dataclass become parameters after this
                obj.value = _value(obj.value, loader.modules_collection)


def _members(obj: griffe.Module | griffe.Class) -> Iterator[griffe.Object]:
    for member in obj.members.values():
        if isinstance(member, griffe.Object):
            yield member
            if isinstance(member, griffe.Module | griffe.Class):
                yield from _members(member)


def _value(default: Any, modules: griffe.ModulesCollection) -> Any:
    """Return the value of a constant such as ``N_RESAMPLES`` or ``Ties.EXPECTED``, and anything else unchanged."""
    if not isinstance(default, griffe.ExprName | griffe.ExprAttribute):
        return default
    try:
        constant = modules[default.canonical_path]
        constant = constant.final_target if constant.is_alias else constant
    except (KeyError, griffe.AliasResolutionError):
        return default
    is_short = isinstance(constant, griffe.Attribute) and len(str(constant.value)) <= LONGEST_DEFAULT
    return _value(constant.value, modules) if is_short else default
