"""Which module answers to which kind of spec, and what must be installed for it."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module

from equipoise.embed.encoder import Encoder
from equipoise.embed.spec import Spec
from equipoise.errors import ParameterError, did_you_mean


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of model: ``load(spec) -> Encoder`` in ``module``; ``module`` is empty for lexical systems."""

    kind: str
    title: str
    module: str
    extra: str
    offline: bool
    """Whether it works without a network and a key once the weights are there."""


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
        Kind("py", "any importable object with encode or embed", "python_object", "", True),
        Kind("hash", "hashed words: the floor that any model must beat", "hash", "", True),
        Kind("tfidf", "character n-grams, TF-IDF", "", "lexical", True),
        Kind("bm25", "BM25", "", "lexical", True),
        Kind("sum", "the sum of two systems' scores", "", "", True),
        Kind("rrf", "reciprocal rank fusion of systems", "", "", True),
    )
}

SHARED_OPTIONS = (
    "dim", "dtype", "normalize", "query_prompt", "document_prompt", "threads", "processes",
)  # fmt: skip
"""Options that every encoder has, since the Embedder and not the adapter answers to them."""


def load_encoder(spec: Spec) -> Encoder:
    """Load the model that a spec names, through its adapter's ``load(spec)``.

    An adapter lists its own options in ``OPTIONS``; any other is refused with a did-you-mean.
    """
    kind = REGISTRY[spec.kind]
    if not kind.module:
        raise ParameterError(
            f"{spec} makes rankings, not vectors",
            hint=f"use retriever({str(spec)!r}), or a model that embeds",
        )
    module = import_module(f"equipoise.embed.adapters.{kind.module}")
    own = getattr(module, "OPTIONS", None)
    if own is not None:
        _refuse_unknown(spec, (*SHARED_OPTIONS, *own))
    encoder: Encoder = module.load(spec)
    return encoder


def _refuse_unknown(spec: Spec, known: tuple[str, ...]) -> None:
    for option in spec.options:
        if option not in known:
            hint = did_you_mean(option, known) or f"the options are {', '.join(sorted(known))}"
            raise ParameterError(f"{spec.kind}: has no option {option!r}", hint=hint)
