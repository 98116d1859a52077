"""Embedding models by the names that users of embedding-eval know; everything in them is ``embed.model``."""

from __future__ import annotations

from collections.abc import Sequence

from equipoise.embed.encoder import Vectors
from equipoise.embed.model import Embedder, embedder
from equipoise.embed.spec import parse_spec
from equipoise.errors import ParameterError
from equipoise.types import Role


class _Embedding(Embedder):
    """An embedder with the source's further names; vectors are rows of an array, not lists."""

    def __init__(self, spec: str, **options: object) -> None:
        made = embedder(parse_spec(spec).with_options(**options))
        super().__init__(made.encoder, made.spec, cache=made.cache)

    @property
    def model_name(self) -> str:
        """The name of the model at its makers'."""
        return self.spec.name

    @property
    def dimensions(self) -> int:
        """The length of the vectors."""
        return self.dims

    def embed_text(self, text: str) -> Vectors:
        """One text as one vector, with no prompt before it."""
        vector: Vectors = self.embed_texts([text])[0]
        return vector

    def embed_texts(self, texts: Sequence[str], input_type: Role | str | None = None) -> Vectors:
        """Texts as queries or documents; as neither, with no prompt before them, where nothing is said."""
        if input_type is not None:
            return self.embed(texts, input_type)
        bare = Embedder(self.encoder, self.spec.with_options(document_prompt=""), cache=self.cache)
        return bare.embed(texts)


class SentenceTransformerEmbedding(_Embedding):
    """A model of sentence-transformers, by its short name, its name on the hub, or its folder.

    The vectors have length one; with ``normalize_embeddings=False`` they are as the model makes them.
    """

    def __init__(
        self,
        model: str = "bge-base",
        device: str | None = None,
        normalize_embeddings: bool = True,
        trust_remote_code: bool = False,
    ) -> None:
        super().__init__(
            f"st:{model}",
            device=device,
            normalize=normalize_embeddings or None,
            trust_remote_code=trust_remote_code or None,
        )

    @property
    def max_seq_length(self) -> int | None:
        """How many tokens the model reads of a text."""
        return self.card.max_tokens


class OpenAIEmbedding(_Embedding):
    """A model at OpenAI, or at the server that OPENAI_BASE_URL names."""

    def __init__(
        self, model: str = "text-embedding-3-small", dimensions: int | None = None, api_key: str | None = None
    ) -> None:
        if api_key is not None:
            raise ParameterError(
                "a key was given, and keys are read from the environment only",
                hint="export OPENAI_API_KEY=...",
            )
        super().__init__(f"openai:{model}", dimensions=dimensions)

    @property
    def model_name(self) -> str:
        """The name of the model, with the service before it."""
        return f"openai:{self.spec.name}"
