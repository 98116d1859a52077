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

    @property
    def flags(self) -> str:
        """What asks ``eq phenotypes extraction run`` for these settings.

        >>> Settings(chunk_threshold=0.5, top_term_only=True).flags
        '--chunk-threshold 0.5 --top-term-only'
        """
        usual = Settings()
        words = [
            f"--{name.replace('_', '-')} {value:g}"
            for name in ("num_results", "chunk_threshold", "min_confidence")
            if (value := getattr(self, name)) != getattr(usual, name)
        ]
        return " ".join([*words, *(["--top-term-only"] if self.top_term_only else [])])


FOR_NOTES = Settings(chunk_threshold=0.5, top_term_only=True)
"""What serves people who read one note: on the sample notes tfidf: has a micro F1 of .77 so, and .37 by the
ten terms of each piece that a measurement looks at. The threshold is between what is best for English (0.6)
and for German terms found by way of English ones (0.4)."""
