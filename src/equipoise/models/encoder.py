"""The interface of a model backend: raw vectors and token counts for a batch of texts, and the model card."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from equipoise.types import Role


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
    """How many texts one call takes; what is lost at most when the process is killed."""
    symmetric: bool = False
    """Whether queries and documents get the same vector but for their prompts."""
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
        """One row a text, in order, float32. A failure is raised; it never becomes a vector."""

    def encode_blocks(self, blocks: Iterable[list[str]], role: Role) -> Iterator[tuple[int, EncodedBatch]]:
        """The number of each block and its vectors; an encoder that works on several at a time overrides this."""
        return enumerate(encode_with_token_counts(self, texts, role) for texts in blocks)

    def token_counts(self, texts: Sequence[str]) -> list[int] | None:
        """The length of each text in tokens of the model before truncation; None if unknown."""
        return None

    def close(self) -> None:
        """Let go of memory, processes and connections."""
        return


@dataclass(frozen=True, slots=True)
class EncodedBatch:
    """Vectors of some texts, and each text's length in tokens before truncation where it is known."""

    vectors: Vectors
    counts: list[int] | None


class LocalEncoder(Encoder):
    """An encoder whose vectors and token counts come out of the same call."""

    symmetric = True

    @abstractmethod
    def encode_counted(self, texts: Sequence[str], role: Role) -> EncodedBatch:
        """One row a text, in order, float32, with the lengths of the texts."""

    def encode(self, texts: Sequence[str], role: Role) -> Vectors:
        """One row a text, in order, float32."""
        return self.encode_counted(texts, role).vectors


def encode_with_token_counts(encoder: Encoder, texts: Sequence[str], role: Role) -> EncodedBatch:
    """Vectors and lengths from any encoder, by one call where it offers that."""
    if isinstance(encoder, LocalEncoder):
        return encoder.encode_counted(texts, role)
    return EncodedBatch(encoder.encode(texts, role), encoder.token_counts(texts))
