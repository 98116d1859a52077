"""What decides which candidates become predictions; nothing here asks for anything to be embedded again."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from equipoise.errors import ParameterError

NUM_RESULTS = 10
CHUNK_THRESHOLD = 0.7
MIN_CONFIDENCE = 0.0
TOP_TERM_ONLY = False


@dataclass(frozen=True)
class Settings:
    """How candidates become predictions: see ``predict``."""

    num_results: int = NUM_RESULTS
    chunk_threshold: float = CHUNK_THRESHOLD
    min_confidence: float = MIN_CONFIDENCE
    top_term_only: bool = TOP_TERM_ONLY
    assertions: bool = True

    def checked(self, depth: int) -> Settings:
        """The same settings, when ``depth`` stored candidates a chunk are enough for them."""
        if not 1 <= self.num_results <= depth:
            raise ParameterError(
                f"num_results is {self.num_results} and {depth} candidates a chunk are stored",
                hint=f"choose 1 to {depth}, or retrieve more candidates",
            )
        for name in ("chunk_threshold", "min_confidence"):
            if getattr(self, name) != getattr(self, name):
                raise ParameterError(f"{name} is no number (NaN)", hint="give a score, such as 0.7")
        return self

    def record(self) -> dict[str, Any]:
        """The settings by name, for a manifest."""
        return asdict(self)
