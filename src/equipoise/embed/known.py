"""Well-known models and their short names: prompts, dimensions, window, licence."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Known:
    """What the makers of a hub model say of it; the prompts belong before each query and document."""

    alias: str
    hub: str
    dims: int
    max_tokens: int
    licence: str
    query_prompt: str = ""
    document_prompt: str = ""


_BGE_QUERY = "Represent this sentence for searching relevant passages: "

KNOWN = (
    Known("bge-base", "BAAI/bge-base-en-v1.5", 768, 512, "MIT", _BGE_QUERY),
    Known("bge-small", "BAAI/bge-small-en-v1.5", 384, 512, "MIT", _BGE_QUERY),
    Known("e5-base", "intfloat/e5-base-v2", 768, 512, "MIT", "query: ", "passage: "),
    Known("minilm", "sentence-transformers/all-MiniLM-L6-v2", 384, 256, "Apache-2.0"),
    Known("mpnet", "sentence-transformers/all-mpnet-base-v2", 768, 384, "Apache-2.0"),
)

BY_HUB_NAME = {known.hub: known for known in KNOWN}
BY_ALIAS = {known.alias: known for known in KNOWN}

BARE: dict[str, tuple[str, str]] = {
    **{known.alias: ("st", known.hub) for known in KNOWN},
    "minilm": ("onnx", "minilm"),
    "minilm-int8": ("onnx", "minilm-int8"),
    "wordllama": ("static", "wordllama"),
    "use": ("use", ""),
    "bm25": ("bm25", ""),
    "tfidf": ("tfidf", ""),
    "hash": ("hash", ""),
}
"""Names that need no kind before them, and what they stand for."""
