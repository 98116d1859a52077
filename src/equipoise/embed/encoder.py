"""What an adapter provides: raw vectors for a batch of texts, and how long the texts are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from equipoise.embed.card import Card
from equipoise.types import Role

Vectors = NDArray[np.float32]


class Encoder(ABC):
    """One engine with one model loaded.

    ``identity`` names everything that decides the vectors (engine, weights hash or revision, pooling,
    remote endpoint and model name), so that equal identities may share a cache.
    """

    card: Card
    identity: str
    block_texts: int = 256
    """How many texts one call takes; what is lost at most when the process is killed."""
    symmetric: bool = False
    """Whether queries and documents get the same vector but for their prompts."""
    cacheable: bool = True
    """Whether ``identity`` names the vectors for good, and keeping them is worth the disk."""
    normalizes: bool = False
    """Whether the model itself sets its vectors to length one."""
    prompts: Mapping[Role, str] = {}
    """What the model's own files say must stand before a text."""

    @abstractmethod
    def encode(self, texts: Sequence[str], role: Role) -> Vectors:
        """One row a text, in order, float32. A failure is raised; it never becomes a vector."""

    def token_counts(self, texts: Sequence[str]) -> list[int] | None:
        """The length of each text in the model's own tokens before truncation; None when unknown."""
        return None

    def close(self) -> None:
        """Let go of memory, processes and connections."""
        return
