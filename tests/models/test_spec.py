"""Model specs: aliases, paths, options, quoting and errors."""

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
def test_specs_are_parsed(text, kind, name, options):
    spec = parse_spec(text)
    assert (spec.kind, spec.name, dict(spec.options), spec.text) == (kind, name, options, text)


@pytest.mark.parametrize("hub_model", HUB_MODELS, ids=lambda hub_model: hub_model.alias)
def test_aliases_work_with_and_without_st(hub_model):
    assert parse_spec(f"st:{hub_model.alias}").name == hub_model.hub
    assert parse_spec(hub_model.alias).kind == ALIASES[hub_model.alias][0]


def test_e5_and_bge_have_their_prompts():
    prompts = {hub_model.alias: (hub_model.query_prompt, hub_model.document_prompt) for hub_model in HUB_MODELS}
    assert prompts["e5-base"] == ("query: ", "passage: ")
    assert prompts["bge-base"] == ("Represent this sentence for searching relevant passages: ", "")
    assert prompts["minilm"] == ("", "")


NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
OPTION_KEYS = st.from_regex(r"[a-z_][a-z0-9_]{0,5}", fullmatch=True)


@given(st.sampled_from(KINDS), NAMES, st.dictionaries(OPTION_KEYS, NAMES, max_size=3))
def test_specs_are_parsed_from_their_text(kind, name, options):
    spec = ModelSpec(kind, name, options)
    aliases = {aliases.alias for aliases in HUB_MODELS}
    if kind != "st" or name not in aliases:
        assert parse_spec(str(spec)) == spec


@given(st.text(max_size=30) | st.from_regex(r"(st|vectors|py|sum)?:?[a-z/.~\"]*(,[a-z]+=[^,]*)*", fullmatch=True))
def test_any_text_is_a_spec_or_raises(text):
    try:
        kind = parse_spec(text).kind
    except EquipoiseError:
        return
    assert kind in KINDS


@pytest.mark.parametrize(
    ("text", "error_type", "hint"),
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
def test_invalid_specs_raise_errors_with_a_hint(text, error_type, hint):
    with pytest.raises(error_type) as error:
        parse_spec(text)
    assert hint in error.value.hint


def test_folders_are_recognised_by_their_files(tmp_path: Path):
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
def test_static_models_are_recognised_by_their_configuration(tmp_path: Path, files, kind):
    for name, content in files.items():
        (tmp_path / name).write_text(json.dumps(content))
    assert parse_spec(str(tmp_path)).kind == kind


def test_options_are_parsed_as_numbers_and_flags():
    spec = ModelSpec("st", "x", {"dim": "64", "normalize": "Yes", "threads": "0", "trust_remote_code": "maybe"})
    assert spec.count("dim") == 64
    assert spec.count("absent") is None
    assert spec.flag("normalize", False)
    assert not spec.flag("absent", False)
    with pytest.raises(ParameterError, match="threads is '0'"):
        spec.count("threads")
    with pytest.raises(ParameterError, match="trust_remote_code is 'maybe'"):
        spec.flag("trust_remote_code", False)


def test_with_options_adds_and_replaces_options():
    spec = parse_spec("minilm,dim=64").with_options(normalize=False, dtype=None, dim=32)
    assert dict(spec.options) == {"dim": "32", "normalize": "false"}
    assert str(spec) == "onnx:minilm,dim=32,normalize=false"
