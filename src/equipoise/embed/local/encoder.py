"""What the engines on this machine share: texts are tokenised once, for vectors and for lengths."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from equipoise.embed.encoder import Encoder, Vectors
from equipoise.types import Role


@dataclass(frozen=True, slots=True)
class Encoded:
    """Vectors of some texts, and each text's length in tokens before truncation where it is known."""

    vectors: Vectors
    counts: list[int] | None


class LocalEncoder(Encoder):
    """An encoder whose vectors and token counts come out of the same call."""

    symmetric = True

    @abstractmethod
    def encode_counted(self, texts: Sequence[str], role: Role) -> Encoded:
        """One row a text, in order, float32, with the lengths of the texts."""

    def encode(self, texts: Sequence[str], role: Role) -> Vectors:
        """One row a text, in order, float32."""
        return self.encode_counted(texts, role).vectors


def encode_counted(encoder: Encoder, texts: Sequence[str], role: Role) -> Encoded:
    """Vectors and lengths from any encoder, by one call where it offers that."""
    if isinstance(encoder, LocalEncoder):
        return encoder.encode_counted(texts, role)
    return Encoded(encoder.encode(texts, role), encoder.token_counts(texts))
