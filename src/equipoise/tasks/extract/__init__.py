"""From texts to terms: cut into chunks, find candidates once, and choose among them as often as wanted."""

from equipoise.tasks.extract.candidates import Candidates, candidates, retrieved
from equipoise.tasks.extract.chunk import DEFAULT_CHUNKERS, Chunk, chunked
from equipoise.tasks.extract.document import Document
from equipoise.tasks.extract.predict import Extracted, Predictions, predict
from equipoise.tasks.extract.settings import Settings
from equipoise.tasks.extract.trace import GoldTerm, Stage, Traced, lost_by_stage, trace

__all__ = [
    "DEFAULT_CHUNKERS",
    "Candidates",
    "Chunk",
    "Document",
    "Extracted",
    "GoldTerm",
    "Predictions",
    "Settings",
    "Stage",
    "Traced",
    "candidates",
    "chunked",
    "lost_by_stage",
    "predict",
    "retrieved",
    "trace",
]
