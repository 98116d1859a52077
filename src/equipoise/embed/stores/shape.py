"""What a stored collection holds, and whether it is what was asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from equipoise.errors import ParameterError, UnknownNameError


@dataclass(frozen=True, slots=True)
class Shape:
    """Dimensions, geometry, and the approximate index where there is one."""

    dims: int
    geometry: str
    index: str = ""


def agreed(
    collection: str,
    found: Mapping[str, Shape],
    dims: int | None,
    geometry: str,
    place: str,
    *,
    index: str = "",
) -> tuple[Shape, bool]:
    """The shape to open a collection with, and whether it is new; without ``dims`` it must be there."""
    there = found.get(collection)
    if there is None:
        if dims is None:
            raise UnknownNameError.of(
                f"collection of {place}",
                collection,
                found,
                more="dims=... creates it, with that many dimensions",
            )
        return Shape(dims, geometry, index), True
    for what, wanted, held in (("dimensions", dims, there.dims), ("index", index or None, there.index)):
        if wanted is not None and wanted != held:
            raise ParameterError(
                f"the collection {collection!r} of {place} has {held or 'no'} {what}, not {wanted}",
                hint="open it as it is, or choose another name",
            )
    if dims is not None and geometry != there.geometry:
        raise ParameterError(
            f"the collection {collection!r} of {place} is {there.geometry}, not {geometry}",
            hint=f"open it with geometry={there.geometry!r}, or choose another name",
        )
    return there, False
