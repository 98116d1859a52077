"""The interface of a model backend: raw vectors and token counts for a batch of texts, and the model card."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import ParameterError, did_you_mean
from equipoise.geometry.shards import quantize_int8

if TYPE_CHECKING:
    from equipoise.models.registry import ModelSpec


class Role(StrEnum):
    """Whether a text is embedded as a query or a document; many models use a different prompt for each."""

    QUERY = "query"
    DOCUMENT = "document"


@dataclass(frozen=True, slots=True)
class ModelCard:
    """Metadata of a model for a comparison; an empty or None field is unknown."""

    name: str
    spec: str
    dims: int | None = None
    max_tokens: int | None = None
    licence: str = ""
    origin: str = ""
    revision: str = ""
    """The revision or the sha256 of the weights: two models that differ here are two models."""
    bytes_per_vector: float | None = None
    note: str = ""
    device: str = ""
    """Where it runs and in which precision, such as ``cuda:0 (float16)``; empty for the processor."""

    def to_dict(self) -> dict[str, Any]:
        """All facts as plain values."""
        return asdict(self)


Vectors = NDArray[np.float32]


class Encoder(ABC):
    """One engine with one model loaded.

    ``identity`` names everything that decides the vectors (engine, weights hash or revision, pooling,
    remote endpoint and model name), so that equal identities may share a cache.
    """

    card: ModelCard
    identity: str
    block_texts: int = 256
    """The number of texts of one call, which is the most that is lost when the process is killed."""
    symmetric: bool = False
    """Whether queries and documents differ in their prompts only."""
    cacheable: bool = True
    """Whether vectors may be cached: ``identity`` is permanent, and computing them is expensive."""
    pipelined: bool = False
    """Whether later blocks are computed while earlier ones are cached; a killed process then loses a few blocks."""
    normalizes: bool = False
    """Whether the model itself sets its vectors to length one."""
    prompts: Mapping[Role, str] = {}
    """The prompts from the files of the model, by role."""

    @abstractmethod
    def encode(self, texts: Sequence[str], role: Role) -> Vectors:
        """One row per text, in order, float32. Failures are raised."""

    def encode_blocks(self, blocks: Iterable[list[str]], role: Role) -> Iterator[tuple[int, EncodedBatch]]:
        """The number of each block and its vectors; an encoder that works on several at a time overrides this."""
        return enumerate(encode_with_token_counts(self, texts, role) for texts in blocks)

    def token_counts(self, texts: Sequence[str]) -> list[int] | None:
        """The length of each text in tokens of the model before truncation; None if unknown."""
        return None

    @property
    def price(self) -> float | None:
        """US dollars per million tokens: 0 for a local model, None for a service without a known price."""
        return 0.0

    def covers(self, texts: Sequence[str]) -> bool:
        """Whether every text can be encoded; a file of vectors may lack some."""
        return True

    def close(self) -> None:
        """Release memory, processes and connections."""
        return


@dataclass(frozen=True, slots=True)
class EncodedBatch:
    """Vectors of some texts, and each text's length in tokens before truncation if it is known."""

    vectors: Vectors
    counts: list[int] | None


class LocalEncoder(Encoder):
    """An encoder that returns vectors and token counts in one call."""

    symmetric = True

    @abstractmethod
    def encode_counted(self, texts: Sequence[str], role: Role) -> EncodedBatch:
        """One row per text, in order, float32, with the lengths of the texts."""

    def encode(self, texts: Sequence[str], role: Role) -> Vectors:
        """One row per text, in order, float32."""
        return self.encode_counted(texts, role).vectors


def encode_with_token_counts(encoder: Encoder, texts: Sequence[str], role: Role) -> EncodedBatch:
    """Vectors and lengths from any encoder, by one call if it supports that."""
    if isinstance(encoder, LocalEncoder):
        return encoder.encode_counted(texts, role)
    return EncodedBatch(encoder.encode(texts, role), encoder.token_counts(texts))


# Postprocessing of vectors: truncate dimensions, normalise, and store as float32, int8 or bits. Quantised vectors are
# returned as the float32 values of their stored form, so that every geometry can measure them. Nothing depends on the
# other vectors of a batch: a vector has one stored form.


class VectorDtype(StrEnum):
    """How a vector's numbers are stored."""

    FLOAT32 = "float32"
    FLOAT16 = "float16"
    INT8 = "int8"
    BINARY = "binary"


@dataclass(frozen=True, slots=True)
class VectorPostprocessing:
    """The steps after the model, in this order: ``dim``, ``normalize``, ``dtype``.

    Truncated vectors are normalised unless ``normalize=false`` is given; others are
    unchanged unless ``normalize=true`` is.
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
