"""Static models: folders of model2vec, compared with the library."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from equipoise.errors import InputError, ParameterError, ShapeError
from equipoise.models.embedder import embedder
from marked import marked

tokenizers = pytest.importorskip("tokenizers")
safetensors = pytest.importorskip("safetensors.numpy")

VOCABULARY = {word: number for number, word in enumerate(["[UNK]", "the", "cat", "sat", "on", "mat", "dog"])}
TEXTS = ["the cat sat", "dog", "the dog , unknown words , sat on the mat", "the the the"]


def tokenizer():
    word_tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(VOCABULARY, unk_token="[UNK]"))
    word_tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    return word_tokenizer


@pytest.fixture(params=["plain", "normalized", "quantised vocabulary", "plain, of no stated type"])
@marked(pytest.mark.engines("model2vec"))
def folder(request, tmp_path: Path) -> Path:
    """A model as model2vec saves it."""
    model2vec = pytest.importorskip("model2vec")
    rng = np.random.default_rng(0)
    quantised = request.param.startswith("quantised")
    model = model2vec.StaticModel(
        rng.standard_normal((3 if quantised else len(VOCABULARY), 5)).astype(np.float32),
        tokenizer(),
        config=None if "no stated type" in request.param else {"model_type": "model2vec"},
        normalize=not request.param.startswith("plain"),
        weights=rng.random(len(VOCABULARY)).astype(np.float32) if quantised else None,
        token_mapping=np.array([0, 1, 2, 0, 1, 2, 0]) if quantised else None,
    )
    model.save_pretrained(tmp_path / "model")
    return tmp_path / "model"


@pytest.mark.engines("model2vec")
def test_model2vec_folders_give_the_vectors_of_the_library(folder: Path):
    model2vec = pytest.importorskip("model2vec")
    library = model2vec.StaticModel.from_pretrained(folder)
    model = embedder(folder)
    assert model.spec.kind == "static"
    np.testing.assert_allclose(model.embed(TEXTS), library.encode(TEXTS), atol=1e-6)
    assert model.card.max_tokens == 512


def test_normalize_false_raises_for_models_that_normalise(folder: Path):
    normalizes = json.loads((folder / "config.json").read_text())["normalize"]
    if not normalizes:
        assert not np.allclose(np.linalg.norm(embedder(folder, normalize=False).embed(TEXTS), axis=1), 1)
        return
    with pytest.raises(ParameterError):
        embedder(folder, normalize=False)
    assert embedder(folder, normalize=False, dim=2).dims == 2


def save_model(folder: Path, **arrays: np.ndarray) -> Path:
    folder.mkdir(exist_ok=True)
    tokenizer().save(str(folder / "tokenizer.json"))
    safetensors.save_file(arrays, folder / "model.safetensors")
    return folder


TABLE = np.arange(14, dtype=np.float32).reshape(7, 2)


def test_many_long_texts_agree_with_the_mean_of_their_token_vectors(tmp_path: Path):
    folder = save_model(tmp_path, embeddings=TABLE)
    rng = np.random.default_rng(1)
    words = list(VOCABULARY)[1:]
    texts = [" ".join(rng.choice(words, size)) for size in rng.integers(1, 9000, 12)]
    vectors = embedder(f"static:{folder},max_tokens=100000").embed(texts)
    expected = [TABLE[[VOCABULARY[word] for word in text.split()]].mean(axis=0) for text in texts]
    np.testing.assert_allclose(vectors, expected, rtol=1e-4)


def test_texts_of_unknown_words_raise_input_error(tmp_path: Path):
    with pytest.raises(InputError, match="text 'zebra'"):
        embedder(f"static:{save_model(tmp_path, embeddings=TABLE)}").embed(["the cat", "zebra"])


def test_truncation_is_counted(tmp_path: Path):
    model = embedder(f"static:{save_model(tmp_path, embeddings=TABLE)},max_tokens=2")
    result = model.embed_report(["the cat sat on the mat", "dog"])
    np.testing.assert_allclose(result.vectors[0], TABLE[[1, 2]].mean(axis=0))
    assert (result.report.truncated, result.report.lost_tokens) == (1, 4)


def test_incomplete_folders_raise_errors(tmp_path: Path):
    with pytest.raises(ParameterError):
        embedder("static:")
    with pytest.raises(InputError):
        embedder(f"static:{tmp_path}")
    save_model(tmp_path, something=TABLE)
    with pytest.raises(ShapeError):
        embedder(f"static:{tmp_path}")
    (tmp_path / "model.safetensors").write_bytes(b"cut")
    with pytest.raises(InputError):
        embedder(f"static:{tmp_path}")
    (tmp_path / "tokenizer.json").unlink()
    with pytest.raises(InputError):
        embedder(f"static:{tmp_path}")
