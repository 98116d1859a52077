"""Folders for onnxruntime: model.onnx files, BERT weights and invalid folders."""

from __future__ import annotations

import json
import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest

from equipoise.errors import InputError, ParameterError
from equipoise.models.backends.onnx_bert import OnnxGraph
from equipoise.models.embedder import embedder

pytest.importorskip("onnxruntime")
tokenizers = pytest.importorskip("tokenizers")

TEXTS = ["the cat sat on the mat", "a dog", "fish", "the red tree ! under blue water the fish swims in"]
TABLE = np.arange(24, dtype=np.float32).reshape(6, 4)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A graph that looks up token vectors, so that every pooling has a known result."""
    graph = OnnxGraph()
    graph.node("Gather", [graph.tensor("table", TABLE), "input_ids"], "last_hidden_state")
    names = ("input_ids", "attention_mask", "token_type_ids")
    inputs = [(name, np.int64, ("texts", "tokens")) for name in names]
    model = graph.to_bytes(inputs, [("last_hidden_state", np.float32, ("texts", "tokens", 4))])
    (tmp_path / "model.onnx").write_bytes(model)
    vocabulary = {"[UNK]": 0, "a": 1, "b": 2, "c": 3, "d": 4, "[PAD]": 5}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.enable_padding(pad_id=5, pad_token="[PAD]")
    tokenizer.enable_truncation(3)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    return tmp_path


@pytest.mark.parametrize(
    ("pooling", "pool"),
    [
        ("mean", lambda rows: rows.mean(axis=0)),
        ("cls", lambda rows: rows[0]),
        ("max", lambda rows: rows.max(axis=0)),
    ],
)
def test_token_vectors_are_pooled_without_padding(folder: Path, pooling, pool):
    model = embedder(f"onnx:{folder},pooling={pooling}")
    vectors = model.embed(["a", "b c", "d d a", "d"])
    expected = [pool(TABLE[ids]) for ids in ([1], [2, 3], [4, 4, 1], [4])]
    np.testing.assert_allclose(vectors, expected, rtol=1e-6)


def test_the_window_is_that_of_the_tokenizer_and_truncation_is_counted(folder: Path):
    model = embedder(folder)
    result = model.embed_report(["a b c d d", "a b c"])
    np.testing.assert_allclose(result.vectors, [TABLE[[1, 2, 3]].mean(axis=0)] * 2)
    assert (model.card.max_tokens, result.report.truncated, result.report.lost_tokens) == (3, 1, 2)
    assert embedder(f"onnx:{folder},max_tokens=2").card.max_tokens == 2


def test_the_fingerprint_includes_the_configuration(folder: Path, tmp_path_factory):
    other = tmp_path_factory.mktemp("other") / "copy"
    shutil.copytree(folder, other)
    assert embedder(folder).fingerprint == embedder(other).fingerprint
    (other / "config.json").write_text("{}")
    assert embedder(folder).fingerprint != embedder(other).fingerprint


def test_bert_weights_give_the_vectors_of_torch(tiny_bert: Path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch_result = embedder(f"st:{tiny_bert}").embed_report(TEXTS)
    onnx_result = embedder(f"onnx:{tiny_bert}").embed_report(TEXTS)
    np.testing.assert_allclose(onnx_result.vectors, torch_result.vectors, atol=1e-5)
    assert onnx_result.report.lost_tokens == torch_result.report.lost_tokens


@pytest.mark.parametrize(
    ("change", "fragment"),
    [
        ({"model_type": "mpnet"}, "is a mpnet model"),
        ({"hidden_act": "relu"}, "with relu"),
        ({"num_hidden_layers": 3}, "lacks the weights encoder.layer.2"),
    ],
)
def test_unsupported_models_raise_input_error(tiny_bert: Path, tmp_path: Path, change, fragment):
    shutil.copytree(tiny_bert, tmp_path / "copy")
    config = json.loads((tiny_bert / "config.json").read_text())
    (tmp_path / "copy" / "config.json").write_text(json.dumps(config | change))
    with pytest.raises(InputError, match=fragment):
        embedder(f"onnx:{tmp_path / 'copy'}")


def test_missing_weights_and_damaged_models_raise_input_error(folder: Path, tmp_path_factory):
    empty = tmp_path_factory.mktemp("empty")
    for spec, fragment in [
        (f"onnx:{empty}", "holds no weights"),
        (f"onnx:{empty / 'absent'}", "does not exist"),
        (f"onnx:{folder / 'model.onnx'}", "is a file"),
    ]:
        with pytest.raises(InputError, match=fragment):
            embedder(spec)
    (empty / "model.onnx").write_bytes((folder / "model.onnx").read_bytes())
    with pytest.raises(InputError, match=r"tokenizer\.json"):
        embedder(empty)
    (folder / "model.onnx").write_bytes(b"not a graph")
    with pytest.raises(InputError):
        embedder(folder)


def test_invalid_options_raise_parameter_error(folder: Path):
    with pytest.raises(ParameterError, match="pooling is 'median'"):
        embedder(f"onnx:{folder},pooling=median")
    with pytest.raises(ParameterError):
        embedder("onnx:")
