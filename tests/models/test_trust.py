"""Model specs from files: allowed specs and specs that need the consent of the user."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from equipoise.errors import FormatError, UntrustedError
from equipoise.models.backends.model_files import ModelFolder
from equipoise.models.registry import MODEL_KINDS, spec_from_file

DATA_ONLY_SPECS = [
    "use", "minilm", "st:BAAI/bge-base-en-v1.5,dim=256", "onnx:folder", "static:wordllama", "hash,dim=8",
    "bm25:", "tfidf:", "vectors:v.npz", "sum:use+tfidf:", "rrf,k=20:minilm,dim=128+bm25:",
    "minilm,store=faiss:hnsw", "st:a/b,trust_remote_code=false",
]  # fmt: skip
CODE_SPECS = [
    "py:evil.Model", "PY:evil.Model", 'py:"evil.Model"', "st:a/b,trust_remote_code=true",
    "st:a/b,trust_remote_code=1", "st:a/b,trust_remote_code=YES", "sum:use+py:evil.Model",
    "rrf,k=3:bm25:+st:a/b,trust_remote_code=true",
]  # fmt: skip
SERVER_SPECS = [
    "openai:m", "openai:m,base_url=http://evil.example/v1", "litellm:openai/m,base_url=http://evil.example",
    "cohere:embed-v4.0", "voyage:voyage-3", "sum:bm25:+openai:m,base_url=http://evil.example/v1",
    "minilm,store=pgvector:postgresql://evil.example/db", "minilm,store=qdrant:http://evil.example",
    "minilm,store=chroma:folder",
]  # fmt: skip
KEY_SPECS = [
    "openai:m,base_url=http://evil.example/v1,key_env=AWS_SECRET_ACCESS_KEY",
    "sum:bm25:+openai:m,key_env=AWS_SECRET_ACCESS_KEY",
]


@pytest.mark.parametrize("spec", DATA_ONLY_SPECS)
def test_specs_that_only_read_data_are_allowed(spec: str) -> None:
    assert spec_from_file(spec, "tuned.json") == spec


@pytest.mark.parametrize("spec", [*CODE_SPECS, *SERVER_SPECS, *KEY_SPECS])
def test_specs_with_code_servers_or_keys_raise_untrusted_error(spec: str) -> None:
    with pytest.raises(UntrustedError) as error:
        spec_from_file(spec, "tuned.json")
    assert error.value.code == "E320"
    assert "tuned.json" in error.value.message


@pytest.mark.parametrize("spec", [*CODE_SPECS, *SERVER_SPECS])
def test_trusted_files_may_name_code_and_servers(spec: str) -> None:
    assert spec_from_file(spec, "tuned.json", trust=True) == spec


@pytest.mark.parametrize("spec", KEY_SPECS)
def test_key_variables_of_trusted_files_raise_untrusted_error(spec: str) -> None:
    with pytest.raises(UntrustedError):
        spec_from_file(spec, "tuned.json", trust=True)


@pytest.mark.parametrize("kind", MODEL_KINDS)
def test_kinds_are_offline_or_untrusted(kind: str) -> None:
    """A kind of model is untrusted unless it is declared to work offline."""
    if kind in ("sum", "rrf"):
        return
    if MODEL_KINDS[kind].offline and kind != "py":
        spec_from_file(f"{kind}:name", "tuned.json")
    else:
        with pytest.raises(UntrustedError):
            spec_from_file(f"{kind}:name", "tuned.json")


@pytest.mark.parametrize("value", [None, 3, ["use"], {"use": 1}])
def test_other_types_raise_format_error(value: object) -> None:
    with pytest.raises(FormatError):
        spec_from_file(value, "tuned.json")


def test_folders_with_custom_classes_need_trust(tmp_path: Path) -> None:
    modules = [{"type": "sentence_transformers.models.Transformer"}, {"type": "evil.Module"}]
    (tmp_path / "modules.json").write_text(json.dumps(modules))
    folder = ModelFolder.open(tmp_path)
    with pytest.raises(UntrustedError):
        folder.require_no_code(trusted=False)
    folder.require_no_code(trusted=True)
    (tmp_path / "modules.json").write_text(json.dumps(modules[:1]))
    folder.require_no_code(trusted=False)
