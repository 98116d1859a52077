"""Static models: folders of model2vec against the library itself."""

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
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(VOCABULARY, unk_token="[UNK]"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    return made


@pytest.fixture(params=["plain", "normalized", "quantised vocabulary", "plain, of no stated type"])
@marked(pytest.mark.engines("model2vec"))
def folder(request, tmp_path: Path) -> Path:
    """A model as model2vec saves it."""
    model2vec = pytest.importorskip("model2vec")
    rng = np.random.default_rng(0)
    small = request.param.startswith("quantised")
    model = model2vec.StaticModel(
        rng.standard_normal((3 if small else len(VOCABULARY), 5)).astype(np.float32),
        tokenizer(),
        config=None if "no stated type" in request.param else {"model_type": "model2vec"},
        normalize=not request.param.startswith("plain"),
        weights=rng.random(len(VOCABULARY)).astype(np.float32) if small else None,
        token_mapping=np.array([0, 1, 2, 0, 1, 2, 0]) if small else None,
    )
    model.save_pretrained(tmp_path / "model")
    return tmp_path / "model"


@pytest.mark.engines("model2vec")
def test_a_model2vec_folder_gives_the_librarys_vectors(folder: Path):
    model2vec = pytest.importorskip("model2vec")
    library = model2vec.StaticModel.from_pretrained(folder)
    ours = embedder(folder)
    assert ours.spec.kind == "static"
    np.testing.assert_allclose(ours.embed(TEXTS), library.encode(TEXTS), atol=1e-6)
    assert ours.card.max_tokens == 512


def test_a_model_that_normalises_itself_cannot_be_told_not_to(folder: Path):
    own = json.loads((folder / "config.json").read_text())["normalize"]
    if not own:
        assert not np.allclose(np.linalg.norm(embedder(folder, normalize=False).embed(TEXTS), axis=1), 1)
        return
    with pytest.raises(ParameterError):
        embedder(folder, normalize=False)
    assert embedder(folder, normalize=False, dim=2).dims == 2


def save(folder: Path, **arrays: np.ndarray) -> Path:
    folder.mkdir(exist_ok=True)
    tokenizer().save(str(folder / "tokenizer.json"))
    safetensors.save_file(arrays, folder / "model.safetensors")
    return folder


TABLE = np.arange(14, dtype=np.float32).reshape(7, 2)


def test_many_long_texts_are_summed_in_parts(tmp_path: Path):
    folder = save(tmp_path, embeddings=TABLE)
    rng = np.random.default_rng(1)
    words = list(VOCABULARY)[1:]
    texts = [" ".join(rng.choice(words, size)) for size in rng.integers(1, 9000, 12)]
    found = embedder(f"static:{folder},max_tokens=100000").embed(texts)
    wanted = [TABLE[[VOCABULARY[word] for word in text.split()]].mean(axis=0) for text in texts]
    np.testing.assert_allclose(found, wanted, rtol=1e-4)


def test_a_text_of_unknown_words_has_no_vector_and_is_named(tmp_path: Path):
    with pytest.raises(InputError, match="text 'zebra'"):
        embedder(f"static:{save(tmp_path, embeddings=TABLE)}").embed(["the cat", "zebra"])


def test_the_window_cuts_and_is_counted(tmp_path: Path):
    model = embedder(f"static:{save(tmp_path, embeddings=TABLE)},max_tokens=2")
    done = model.embed_report(["the cat sat on the mat", "dog"])
    np.testing.assert_allclose(done.vectors[0], TABLE[[1, 2]].mean(axis=0))
    assert (done.report.truncated, done.report.lost_tokens) == (1, 4)


def test_folders_that_lack_something_are_sentences(tmp_path: Path):
    with pytest.raises(ParameterError):
        embedder("static:")
    with pytest.raises(InputError):
        embedder(f"static:{tmp_path}")
    save(tmp_path, something=TABLE)
    with pytest.raises(ShapeError):
        embedder(f"static:{tmp_path}")
    (tmp_path / "model.safetensors").write_bytes(b"cut")
    with pytest.raises(InputError):
        embedder(f"static:{tmp_path}")
    (tmp_path / "tokenizer.json").unlink()
    with pytest.raises(InputError):
        embedder(f"static:{tmp_path}")
