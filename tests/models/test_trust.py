"""What a file may name as a model, and what only the user may."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from equipoise.errors import FormatError, UntrustedError
from equipoise.models.backends.model_files import ModelFolder
from equipoise.models.registry import MODEL_KINDS
from equipoise.models.resolve import spec_from_file

HARMLESS = [
    "use", "minilm", "st:BAAI/bge-base-en-v1.5,dim=256", "onnx:folder", "static:wordllama", "hash,dim=8",
    "bm25:", "tfidf:", "vectors:v.npz", "sum:use+tfidf:", "rrf,k=20:minilm,dim=128+bm25:",
    "minilm,store=faiss:hnsw", "st:a/b,trust_remote_code=false",
]  # fmt: skip
CODE = [
    "py:evil.Model", "PY:evil.Model", 'py:"evil.Model"', "st:a/b,trust_remote_code=true",
    "st:a/b,trust_remote_code=1", "st:a/b,trust_remote_code=YES", "sum:use+py:evil.Model",
    "rrf,k=3:bm25:+st:a/b,trust_remote_code=true",
]  # fmt: skip
SECRETS = [
    "openai:m", "openai:m,base_url=http://evil.example/v1", "litellm:openai/m,base_url=http://evil.example",
    "cohere:embed-v4.0", "voyage:voyage-3", "sum:bm25:+openai:m,base_url=http://evil.example/v1",
    "minilm,store=pgvector:postgresql://evil.example/db", "minilm,store=qdrant:http://evil.example",
    "minilm,store=chroma:folder",
]  # fmt: skip
KEYS = [
    "openai:m,base_url=http://evil.example/v1,key_env=AWS_SECRET_ACCESS_KEY",
    "sum:bm25:+openai:m,key_env=AWS_SECRET_ACCESS_KEY",
]


@pytest.mark.parametrize("spec", HARMLESS)
def test_a_file_may_name_a_model_that_only_reads_data(spec: str) -> None:
    assert spec_from_file(spec, "tuned.json") == spec


@pytest.mark.parametrize("spec", [*CODE, *SECRETS, *KEYS])
def test_a_file_may_not_name_code_servers_or_keys(spec: str) -> None:
    with pytest.raises(UntrustedError) as caught:
        spec_from_file(spec, "tuned.json")
    assert caught.value.code == "E320"
    assert "tuned.json" in caught.value.message


@pytest.mark.parametrize("spec", [*CODE, *SECRETS])
def test_a_file_that_the_user_trusts_may(spec: str) -> None:
    assert spec_from_file(spec, "tuned.json", trust=True) == spec


@pytest.mark.parametrize("spec", KEYS)
def test_no_file_chooses_the_variable_that_is_sent_as_a_key(spec: str) -> None:
    with pytest.raises(UntrustedError):
        spec_from_file(spec, "tuned.json", trust=True)


@pytest.mark.parametrize("kind", MODEL_KINDS)
def test_a_kind_is_either_offline_or_untrusted(kind: str) -> None:
    """A new kind of model is untrusted unless it says that it works without a network and a key."""
    if kind in ("sum", "rrf"):
        return
    if MODEL_KINDS[kind].offline and kind != "py":
        spec_from_file(f"{kind}:name", "tuned.json")
    else:
        with pytest.raises(UntrustedError):
            spec_from_file(f"{kind}:name", "tuned.json")


@pytest.mark.parametrize("value", [None, 3, ["use"], {"use": 1}])
def test_what_is_no_text_is_no_model(value: object) -> None:
    with pytest.raises(FormatError):
        spec_from_file(value, "tuned.json")


def test_a_folder_with_classes_of_its_own_runs_only_when_asked(tmp_path: Path) -> None:
    modules = [{"type": "sentence_transformers.models.Transformer"}, {"type": "evil.Module"}]
    (tmp_path / "modules.json").write_text(json.dumps(modules))
    folder = ModelFolder.open(tmp_path)
    with pytest.raises(UntrustedError):
        folder.require_no_code(trusted=False)
    folder.require_no_code(trusted=True)
    (tmp_path / "modules.json").write_text(json.dumps(modules[:1]))
    folder.require_no_code(trusted=False)
