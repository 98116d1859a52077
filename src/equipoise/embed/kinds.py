"""Every kind of model: what it is, which module answers to it, and what must be installed for it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of model: ``load(spec) -> Encoder`` in ``module``; ``module`` is empty for lexical systems."""

    kind: str
    title: str
    module: str
    extra: str
    offline: bool
    """Whether it works without a network and a key once the weights are there."""
    runs_code: bool = False
    """Whether its name is code to be imported."""


REGISTRY: dict[str, Kind] = {
    kind.kind: kind
    for kind in (
        Kind("st", "sentence-transformers, a hub name or a folder", "sentence_transformers", "st", True),
        Kind("onnx", "a folder with model.onnx and tokenizer.json", "onnx", "local", True),
        Kind("static", "token vectors averaged: model2vec folders, WordLlama", "static", "local", True),
        Kind("use", "USE-multilingual v3, 16 languages", "use", "local", True),
        Kind("openai", "the OpenAI protocol, any base_url", "openai", "openai", False),
        Kind("litellm", "any provider that litellm knows", "litellm", "litellm", False),
        Kind("cohere", "Cohere, through litellm", "litellm", "litellm", False),
        Kind("voyage", "Voyage, through litellm", "litellm", "litellm", False),
        Kind("vectors", "precomputed vectors: npy, npz, parquet", "vectors", "", True),
        Kind("py", "any importable object with encode or embed", "python_object", "", True, True),
        Kind("hash", "hashed words: the floor that any model must beat", "hash", "", True),
        Kind("tfidf", "character n-grams, TF-IDF", "", "lexical", True),
        Kind("bm25", "BM25", "", "lexical", True),
        Kind("sum", "the sum of two systems' scores", "", "", True),
        Kind("rrf", "reciprocal rank fusion of systems", "", "", True),
    )
}
