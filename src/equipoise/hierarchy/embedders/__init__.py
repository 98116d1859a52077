"""Embedders of trees by name: trained in flat or hyperbolic space, built, random, or of texts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from equipoise.errors import ParameterError, UnknownNameError
from equipoise.hierarchy.embedders.base import TreeEmbedder
from equipoise.hierarchy.embedders.combinatorial import Combinatorial
from equipoise.hierarchy.embedders.trained import Euclidean, Lorentz, Poincare
from equipoise.hierarchy.embedders.untrained import Random, Text

EMBEDDERS: dict[str, type] = {
    each.name: each for each in (Euclidean, Poincare, Lorentz, Combinatorial, Random)
}
"""Embedders by name; ``text:MODEL`` stands for any text model besides."""

_TEXT = "text"

__all__ = [
    "EMBEDDERS",
    "Combinatorial",
    "Euclidean",
    "Lorentz",
    "Poincare",
    "Random",
    "Text",
    "TreeEmbedder",
    "embedder",
    "folded",
]


def embedder(name: str, **options: Any) -> TreeEmbedder:
    """The embedder that answers to a name, with its options; ``text:MODEL`` takes any spec of a text model.

    >>> embedder("lorentz", epochs=10).geometry
    'lorentz'
    """
    kind, _, model = name.partition(":")
    if kind.strip().casefold() == _TEXT:
        if not model:
            raise ParameterError("text: names no model", hint="write text:MODEL; eq ls models lists them")
        return _made(name, lambda: Text(model, **options), options)
    found = EMBEDDERS.get(folded(name))
    if found is None:
        more = f"known: {', '.join(EMBEDDERS)}, {_TEXT}:MODEL"
        raise UnknownNameError.of("tree embedder", name, [*EMBEDDERS, _TEXT], more=more)
    return _made(name, lambda: found(**options), options)


def folded(name: str) -> str:
    """An embedder's name as it is known; that of a text model stays as it is written.

    >>> folded(" Lorentz")
    'lorentz'
    """
    plain = name.strip()
    return plain.casefold() if plain.casefold() in EMBEDDERS else plain


def _made(name: str, make: Callable[[], TreeEmbedder], options: dict[str, Any]) -> TreeEmbedder:
    try:
        return make()
    except TypeError as error:
        raise ParameterError(
            f"the {name} embedder does not take {', '.join(options)}", hint="leave the option out"
        ) from error
