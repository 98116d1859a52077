"""Names of models: aliases, paths, options, quoting, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.errors import EquipoiseError, InputError, ParameterError, UnknownNameError
from equipoise.models.registry import ALIASES, HUB_MODELS, KINDS, ModelSpec, parse_spec


@pytest.mark.parametrize(
    ("text", "kind", "name", "options"),
    [
        ("st:BAAI/bge-base-en-v1.5", "st", "BAAI/bge-base-en-v1.5", {}),
        ("openai:text-embedding-3-small,dim=256", "openai", "text-embedding-3-small", {"dim": "256"}),
        ("openai:nomic-embed-text:v1.5", "openai", "nomic-embed-text:v1.5", {}),
        ("litellm:azure/a,b", "litellm", "azure/a,b", {}),
        ("ST:bge-small", "st", "BAAI/bge-small-en-v1.5", {}),
        ("bge-base,dim=64", "st", "BAAI/bge-base-en-v1.5", {"dim": "64"}),
        ("st:x,query_prompt=query: ", "st", "x", {"query_prompt": "query: "}),
        ('st:x,query_prompt="a,b=c",dim=3', "st", "x", {"query_prompt": "a,b=c", "dim": "3"}),
        (
            "openai:m,base_url=http://localhost:11434/v1",
            "openai",
            "m",
            {"base_url": "http://localhost:11434/v1"},
        ),
        ("minilm", "onnx", "minilm", {}),
        ("st:minilm", "st", "sentence-transformers/all-MiniLM-L6-v2", {}),
        ("wordllama", "static", "wordllama", {}),
        ("use", "use", "", {}),
        ("bm25", "bm25", "", {}),
        ("BAAI/bge-base-en-v1.5", "st", "BAAI/bge-base-en-v1.5", {}),
    ],
)
def test_a_spec_is_read_as_it_is_meant(text, kind, name, options):
    spec = parse_spec(text)
    assert (spec.kind, spec.name, dict(spec.options), spec.text) == (kind, name, options, text)


@pytest.mark.parametrize("known", HUB_MODELS, ids=lambda known: known.alias)
def test_every_alias_works_bare_and_behind_st(known):
    assert parse_spec(f"st:{known.alias}").name == known.hub
    assert parse_spec(known.alias).kind == ALIASES[known.alias][0]


def test_e5_and_bge_have_the_prompts_of_their_makers():
    prompts = {known.alias: (known.query_prompt, known.document_prompt) for known in HUB_MODELS}
    assert prompts["e5-base"] == ("query: ", "passage: ")
    assert prompts["bge-base"] == ("Represent this sentence for searching relevant passages: ", "")
    assert prompts["minilm"] == ("", "")


NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
KEYS = st.from_regex(r"[a-z_][a-z0-9_]{0,5}", fullmatch=True)


@given(st.sampled_from(KINDS), NAMES, st.dictionaries(KEYS, NAMES, max_size=3))
def test_what_is_written_is_read_back(kind, name, options):
    spec = ModelSpec(kind, name, options)
    known = {known.alias for known in HUB_MODELS}
    if kind != "st" or name not in known:
        assert parse_spec(str(spec)) == spec


@given(st.text(max_size=30) | st.from_regex(r"(st|vectors|py|sum)?:?[a-z/.~\"]*(,[a-z]+=[^,]*)*", fullmatch=True))
def test_any_text_is_a_spec_or_a_sentence(text):
    try:
        kind = parse_spec(text).kind
    except EquipoiseError:
        return
    assert kind in KINDS


@pytest.mark.parametrize(
    ("text", "kind", "hint"),
    [
        ("minilmm", UnknownNameError, "did you mean minilm"),
        ("bge-bse", UnknownNameError, "did you mean bge-base"),
        ("opnai:x", UnknownNameError, "did you mean openai?"),
        ("some/model", UnknownNameError, "st:some/model loads it from the hub"),
        ("", InputError, "eq ls models"),
        ("st:a,dim=1,dim=2", ParameterError, "keep one"),
        ('st:a,query_prompt="never ends', ParameterError, '"..."'),
        ("./no/such/folder", InputError, "check the path"),
    ],
)
def test_what_cannot_be_a_model_is_refused_with_a_hint(text, kind, hint):
    with pytest.raises(kind) as caught:
        parse_spec(text)
    assert hint in caught.value.hint


def test_a_folder_is_recognised_by_what_is_in_it(tmp_path: Path):
    kinds = {"onnx": "model.onnx", "st": "modules.json", "plain": "config.json"}
    for name, file in kinds.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / file).write_text("{}")
    (tmp_path / "static").mkdir()
    (tmp_path / "static" / "config.json").write_text(json.dumps({"model_type": "model2vec"}))
    (tmp_path / "empty").mkdir()
    assert [parse_spec(str(tmp_path / name)).kind for name in (*kinds, "static")] == [
        "onnx",
        "st",
        "st",
        "static",
    ]
    assert parse_spec(str(tmp_path / "x.npz")).kind == "vectors"
    with pytest.raises(InputError):
        parse_spec(str(tmp_path / "empty"))


STATIC = [{"idx": 0, "name": "0", "path": ".", "type": "sentence_transformers.models.StaticEmbedding"}]


@pytest.mark.parametrize(
    ("files", "kind"),
    [
        ({"config.json": {"max_length": 512, "normalize": False, "embedding_dtype": "float32"}}, "static"),
        ({"config.json": {}, "modules.json": STATIC}, "static"),
        ({"modules.json": STATIC, "config_sentence_transformers.json": {}}, "st"),
        ({"config.json": {"max_length": 512, "hidden_size": 32}}, "st"),
        ({"config.json": [], "modules.json": {"type": "StaticEmbedding"}}, "st"),
    ],
)
def test_a_static_model_is_known_by_its_keys_or_its_module(tmp_path: Path, files, kind):
    for name, content in files.items():
        (tmp_path / name).write_text(json.dumps(content))
    assert parse_spec(str(tmp_path)).kind == kind


def test_options_are_numbers_and_flags_or_sentences():
    spec = ModelSpec("st", "x", {"dim": "64", "normalize": "Yes", "threads": "0", "trust_remote_code": "maybe"})
    assert spec.count("dim") == 64
    assert spec.count("absent") is None
    assert spec.flag("normalize", False)
    assert not spec.flag("absent", False)
    with pytest.raises(ParameterError, match="threads is '0'"):
        spec.count("threads")
    with pytest.raises(ParameterError, match="trust_remote_code is 'maybe'"):
        spec.flag("trust_remote_code", False)


def test_further_options_join_the_given_ones():
    spec = parse_spec("minilm,dim=64").with_options(normalize=False, dtype=None, dim=32)
    assert dict(spec.options) == {"dim": "32", "normalize": "false"}
    assert str(spec) == "onnx:minilm,dim=32,normalize=false"
