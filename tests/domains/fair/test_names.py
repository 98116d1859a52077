"""The names of embedding-eval in ``equipoise.fair``."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from embedding_server import DIMS, serving, vector
from equipoise import fair
from equipoise.errors import ParameterError
from equipoise.models.backends.model_files import find_packaged_model, is_installed
from fair_sample import document, pairs
from marked import marked


@pytest.fixture(scope="module")
@marked(pytest.mark.engines("sentence_transformers"))
def minilm() -> Any:
    pytest.importorskip("sentence_transformers")
    if not is_installed("minilm"):
        pytest.skip("the weights of MiniLM are not installed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fair.SentenceTransformerEmbedding(model="minilm")


def test_the_components_of_embedding_eval_work_together(minilm: Any) -> None:
    texts = [chunk.text for chunk in fair.FixedSizeChunker(8, 2, "words").chunk("The cat sat on the mat. " * 2)]
    vectors = minilm.embed_documents(texts)
    assert vectors.shape == (len(texts), minilm.dimensions)
    store = fair.InMemoryVectorStore()
    store.connect()
    store.create_collection("test", dimensions=minilm.dimensions)
    store.upsert("test", list("abc")[: len(texts)], vectors, texts=texts)
    results = store.search("test", minilm.embed_query("Where is the cat?"), top_k=1)
    score = fair.BinaryEvaluator().evaluate("Where is the cat?", "the mat", [results[0].text or ""])
    assert score.score == 1.0


@pytest.mark.engines("embedding_eval")
def test_the_vectors_equal_those_of_embedding_eval(minilm: Any) -> None:
    module = pytest.importorskip("embedding_eval.adapters.embedding")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = module.SentenceTransformerEmbedding(
            str(find_packaged_model("minilm").folder / "model"), device="cpu"
        )
    texts = ["rye bread", "a much longer text about wheat"]
    np.testing.assert_allclose(minilm.embed_documents(texts), expected.embed_texts(texts), atol=1e-6)
    np.testing.assert_allclose(minilm.embed_query("rye"), expected.embed_query("rye"), atol=1e-6)


def test_a_model_object_can_be_compared(minilm: Any) -> None:
    text = document(12)
    config = fair.FairConfig(tokenizer="words")
    result = fair.optimize_model(minilm, text, pairs(text, 6), [64], [0], [1], config=config)
    assert (result.model_spec, result.dimensions) == (minilm.card.spec, 384)


@pytest.fixture
@marked(pytest.mark.slow)
def service(monkeypatch: pytest.MonkeyPatch) -> Any:
    pytest.importorskip("openai")
    with serving() as running:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-not-a-real-key")
        monkeypatch.setenv("OPENAI_BASE_URL", running.url)
        yield running


def test_openai_models_have_the_same_methods(service: Any) -> None:
    with fair.OpenAIEmbedding(model="tiny") as model:
        np.testing.assert_array_equal(model.embed_documents(["rye", "oats"]), [vector("rye"), vector("oats")])
        np.testing.assert_array_equal(model.embed_query("rye"), vector("rye"))
        assert model.dimensions == DIMS


def test_a_key_in_the_code_is_an_error_that_does_not_print_it() -> None:
    with pytest.raises(ParameterError) as error:
        fair.OpenAIEmbedding(api_key="sk-secret")
    assert "sk-secret" not in error.value.render()
