"""Geometries by name, with the synonyms under which people know them."""

from __future__ import annotations

from equipoise.errors import UnknownNameError
from equipoise.geometry.base import Geometry
from equipoise.geometry.spaces import Cosine, Dot, Euclidean, Lorentz, Poincare

GEOMETRIES: dict[str, type[Geometry]] = {
    space.name: space for space in (Cosine, Dot, Euclidean, Poincare, Lorentz)
}

SYNONYMS: dict[str, str] = {
    "cos": "cosine",
    "cosine_similarity": "cosine",
    "angular": "cosine",
    "dot_product": "dot",
    "inner_product": "dot",
    "inner": "dot",
    "ip": "dot",
    "mips": "dot",
    "l2": "euclidean",
    "euclid": "euclidean",
    "flat": "euclidean",
    "poincare_ball": "poincare",
    "hyperbolic_poincare": "poincare",
    "poincaré": "poincare",
    "hyperboloid": "lorentz",
    "hyperbolic_lorentz": "lorentz",
    "lorentzian": "lorentz",
}


def geometry(name: str | Geometry) -> Geometry:
    """The geometry that answers to a name or a synonym, with curvature 1; a geometry is returned as it is.

    Case, hyphens and spaces do not matter.

    >>> geometry("Hyperbolic-Poincare")
    Poincare(curvature=1.0)
    """
    if isinstance(name, Geometry):
        return name
    folded = str(name).strip().casefold().replace("-", "_").replace(" ", "_")
    space = GEOMETRIES.get(SYNONYMS.get(folded, folded))
    if space is None:
        raise UnknownNameError.of(
            "geometry", str(name), [*GEOMETRIES, *SYNONYMS], more=f"known: {', '.join(GEOMETRIES)}"
        )
    return space()
