"""What is known of a model: name, origin, size, limits, licence."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Card:
    """The facts that a comparison needs beside the scores; an empty or None field is unknown."""

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

    def to_dict(self) -> dict[str, Any]:
        """All facts as plain values."""
        return asdict(self)
