"""Postprocessing of vectors: truncate dimensions, normalise, and store as float32, int8 or bits.

Quantised vectors are returned as the float32 values of their stored form, so that every geometry
can measure them. Nothing depends on the other vectors of a batch: a vector has one stored form.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np

from equipoise.errors import ParameterError, did_you_mean
from equipoise.geometry.shards import quantize_int8

if TYPE_CHECKING:
    from equipoise.models.encoder import Vectors
    from equipoise.models.registry import ModelSpec


class VectorDtype(StrEnum):
    """How a vector's numbers are stored."""

    FLOAT32 = "float32"
    FLOAT16 = "float16"
    INT8 = "int8"
    BINARY = "binary"


@dataclass(frozen=True, slots=True)
class VectorPostprocessing:
    """The steps after the model, in this order: ``dim``, ``normalize``, ``dtype``.

    Truncated vectors are normalised unless ``normalize=false`` is given; others stay as the
    model made them unless ``normalize=true`` is.
    """

    dim: int | None = None
    normalize: bool = False
    dtype: VectorDtype = VectorDtype.FLOAT32

    @classmethod
    def of(cls, spec: ModelSpec) -> VectorPostprocessing:
        """The steps of a spec."""
        dim = spec.count("dim")
        name = spec.options.get("dtype", VectorDtype.FLOAT32)
        if name not in list(VectorDtype):
            dtypes = [str(dtype) for dtype in VectorDtype]
            hint = did_you_mean(name, dtypes) or f"dtype is one of {', '.join(dtypes)}"
            raise ParameterError(f"dtype is {name!r} in {spec}", hint=hint)
        return cls(dim, spec.flag("normalize", dim is not None), VectorDtype(name))

    def dims(self, raw: int) -> int:
        """The number of dimensions after truncation."""
        if self.dim is not None and self.dim > raw:
            raise ParameterError(
                f"dim={self.dim} asks for more than the {raw} dimensions of the model",
                hint=f"dim is at most {raw}",
            )
        return self.dim or raw

    def bytes_per_vector(self, raw: int) -> float:
        """Bytes per stored vector: int8 adds a float32 scale, binary takes one bit per dimension."""
        dims = self.dims(raw)
        match self.dtype:
            case VectorDtype.FLOAT16:
                return 2.0 * dims
            case VectorDtype.INT8:
                return dims + 4.0
            case VectorDtype.BINARY:
                return float((dims + 7) // 8)
            case _:
                return 4.0 * dims

    def __call__(self, raw: Vectors) -> Vectors:
        """The finished vectors; unchanged if there is nothing to do."""
        vectors = raw[:, : self.dims(raw.shape[1])]
        if self.normalize:
            vectors = l2_normalize(vectors)
        match self.dtype:
            case VectorDtype.FLOAT16:
                return vectors.astype(np.float16).astype(np.float32)
            case VectorDtype.INT8:
                return int8_roundtrip(vectors)
            case VectorDtype.BINARY:
                return binary_roundtrip(vectors, unit_length=self.normalize)
            case _:
                return np.ascontiguousarray(vectors)


def l2_normalize(vectors: Vectors) -> Vectors:
    """Each vector at length one; zero vectors are unchanged."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(norms > 0, norms, np.float32(1)), dtype=np.float32)


def int8_roundtrip(vectors: Vectors) -> Vectors:
    """Integers from -127 to 127, scaled by the largest coordinate of each vector."""
    quantized, steps = quantize_int8(vectors)
    return quantized * steps


def binary_roundtrip(vectors: Vectors, *, unit_length: bool) -> Vectors:
    """The sign of each coordinate: 1 above zero, -1 otherwise; scaled to length one if requested."""
    size = np.float32(1 / np.sqrt(vectors.shape[1])) if unit_length else np.float32(1)
    return np.where(vectors > 0, size, -size)
