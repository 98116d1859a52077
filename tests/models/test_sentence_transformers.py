"""``st:`` models: a tiny folder, prompts, threads, windows and an unreachable hub."""

from __future__ import annotations

import json
import logging
import shutil
import socket
import warnings
from pathlib import Path

import numpy as np
import pytest

from equipoise.errors import EquipoiseError, InputError, MissingExtraError, ParameterError
from equipoise.models.embedder import Embedder, embedder
from equipoise.models.encoder import Role

pytestmark = [pytest.mark.engines("torch", "sentence_transformers"), pytest.mark.slow]

TEXTS = [
    "the cat sat on the mat",
    "a dog",
    "fish",
    "the red tree ! under blue water the fish swims in the water",
]


def load(spec: str, **options: object) -> Embedder:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return embedder(spec, **options)


def test_folders_give_the_vectors_of_the_library(tiny_bert: Path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from sentence_transformers import SentenceTransformer

        library = SentenceTransformer(str(tiny_bert), device="cpu")
    model = load(f"st:{tiny_bert}")
    result = model.embed_report(TEXTS)
    np.testing.assert_allclose(result.vectors, library.encode(TEXTS), atol=1e-6)
    assert (model.dims, model.card.max_tokens) == (32, 16)
    assert result.report.tokens == sum(len(library.tokenizer(text)["input_ids"]) for text in TEXTS)


@pytest.mark.parametrize("kind", ["st", "onnx"])
def test_normalize_false_raises_for_models_that_normalise(tiny_bert: Path, kind: str):
    if kind == "onnx":
        pytest.importorskip("onnxruntime")
    with pytest.raises(ParameterError):
        load(f"{kind}:{tiny_bert},normalize=false")
    assert np.linalg.norm(load(f"{kind}:{tiny_bert},normalize=false,dim=8").embed(TEXTS), axis=1).max() < 1


def test_paths_are_specs(tiny_bert: Path):
    model = load(str(tiny_bert))
    assert model.spec.kind == "st"
    np.testing.assert_allclose(model.embed(TEXTS), load(f"st:{tiny_bert}").embed(TEXTS))


def test_prompts_of_the_folder_are_used_and_can_be_replaced(tiny_bert: Path, tmp_path: Path):
    folder = tmp_path / "prompted"
    shutil.copytree(tiny_bert, folder)
    settings = json.loads((folder / "config_sentence_transformers.json").read_text())
    settings["prompts"] = {"query": "red ", "document": "blue "}
    settings["default_prompt_name"] = "document"
    (folder / "config_sentence_transformers.json").write_text(json.dumps(settings))
    unprompted, prompted_model = load(f"st:{tiny_bert}"), load(f"st:{folder}")
    assert prompted_model.prompts == {Role.QUERY: "red ", Role.DOCUMENT: "blue "}
    for role, prompt in (("query", "red "), ("document", "blue ")):
        expected = unprompted.embed([prompt + text for text in TEXTS])
        np.testing.assert_allclose(prompted_model.embed(TEXTS, role), expected, atol=1e-6)
    without_prompts = load(f"st:{folder}", query_prompt="", document_prompt="")
    np.testing.assert_allclose(without_prompts.embed(TEXTS), unprompted.embed(TEXTS), atol=1e-6)
    assert prompted_model.fingerprint != unprompted.fingerprint


def prompted_model(tiny_bert: Path, prompts: dict[str, str], default: str | None = None):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from sentence_transformers import SentenceTransformer

        return SentenceTransformer(str(tiny_bert), device="cpu", prompts=prompts, default_prompt_name=default)


@pytest.mark.parametrize(
    ("prompts", "default"),
    [
        ({"query": "red ", "document": "blue "}, None),
        ({"query": "red ", "document": "blue "}, "query"),
        ({"query": "red "}, None),
        ({"query": "red ", "document": ""}, "query"),
        ({}, None),
    ],
    ids=str,
)
def test_objects_agree_with_their_saved_folder(tiny_bert: Path, tmp_path: Path, prompts, default):
    """The expected vectors are those of ``encode_query`` and ``encode_document``."""
    library = prompted_model(tiny_bert, prompts, default)
    library.save(str(tmp_path / "saved"))
    by_object, by_name = embedder(library), load(f"st:{tmp_path / 'saved'}")
    assert by_object.prompts == by_name.prompts
    for role, encode in (("query", library.encode_query), ("document", library.encode_document)):
        expected = encode(TEXTS)
        np.testing.assert_allclose(by_object.embed(TEXTS, role), expected, atol=1e-6)
        np.testing.assert_allclose(by_name.embed(TEXTS, role), expected, atol=1e-6)
    assert (by_object.dims, by_object.card.max_tokens) == (by_name.dims, by_name.card.max_tokens)
    assert not by_object.encoder.cacheable


def test_default_prompts_without_a_role_are_for_both_roles(tiny_bert: Path, tmp_path: Path):
    library = prompted_model(tiny_bert, {"search": "red "}, "search")
    library.save(str(tmp_path / "saved"))
    for model in (embedder(library), load(f"st:{tmp_path / 'saved'}")):
        for role in Role:
            np.testing.assert_allclose(model.embed(TEXTS, role), library.encode(TEXTS), atol=1e-6)


def test_prompts_of_an_object_can_be_replaced(tiny_bert: Path):
    library = prompted_model(tiny_bert, {"query": "red ", "document": "blue "})
    model = embedder(library, query_prompt="", document_prompt="the ")
    without_prompt = library.encode(TEXTS, prompt="")
    np.testing.assert_allclose(model.embed(TEXTS, "query"), without_prompt, atol=1e-6)
    expected = library.encode(TEXTS, prompt="the ")
    np.testing.assert_allclose(model.embed(TEXTS, "document"), expected, atol=1e-6)


def test_router_models_receive_the_role(tiny_bert: Path):
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import Dense, Router

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        modules = list(SentenceTransformer(str(tiny_bert), device="cpu").children())
        state = torch.random.get_rng_state()
        torch.manual_seed(0)
        router = Router({"query": [Dense(32, 8)], "document": [Dense(32, 8)]}, default_route="document")
        torch.random.set_rng_state(state)
        library = SentenceTransformer(modules=[*modules[:2], router], device="cpu")
    model = embedder(library, normalize=False)
    queries, documents = library.encode_query(TEXTS), library.encode_document(TEXTS)
    assert not np.allclose(queries, documents)
    np.testing.assert_allclose(model.embed(TEXTS, "query"), queries, atol=1e-6)
    np.testing.assert_allclose(model.embed(TEXTS, "document"), documents, atol=1e-6)


def test_the_thread_count_of_torch_is_restored(tiny_bert: Path):
    import torch

    n_threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        load(f"st:{tiny_bert}").embed(TEXTS)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(n_threads)


def test_max_tokens_is_an_option(tiny_bert: Path):
    result = load(f"st:{tiny_bert},max_tokens=4").embed_report(["the cat sat on the mat", "the cat ran"])
    np.testing.assert_allclose(result.vectors[0], result.vectors[1], atol=1e-6)
    assert (result.report.truncated, result.report.lost_tokens) == (2, 5)


def test_long_texts_are_embedded_by_their_beginning(tiny_bert: Path):
    model = load(f"st:{tiny_bert}")
    long_text = "the cat sat on the mat " * 10_000
    result = model.embed_report([long_text])
    np.testing.assert_allclose(result.vectors, model.embed([long_text[:300]]), atol=1e-6)
    assert result.report.lost_tokens == 60_002 - 16


def test_invalid_folders_raise_errors(tmp_path: Path):
    for spec, error_type, fragment in [
        (f"st:{tmp_path}", InputError, "holds no weights"),
        (f"st:{tmp_path / 'absent'}", InputError, "does not exist"),
        ("st:", ParameterError, "names no model"),
    ]:
        with pytest.raises(error_type, match=fragment):
            load(spec)
    (tmp_path / "model.safetensors").write_bytes(b"cut off")
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(InputError):
        load(f"st:{tmp_path}")


@pytest.fixture
def unreachable_hub(monkeypatch: pytest.MonkeyPatch):
    """A hub at a closed port."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    constants = pytest.importorskip("huggingface_hub.constants")
    monkeypatch.setattr(constants, "ENDPOINT", f"http://127.0.0.1:{port}")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    return constants


def test_unreachable_hubs_raise_missing_extra_error(unreachable_hub):
    with pytest.raises(MissingExtraError) as error:
        load("st:absent/no-such-model")
    assert "minilm" in error.value.hint


def test_unreachable_hubs_are_not_retried_and_log_nothing(unreachable_hub, monkeypatch, caplog):
    waits: list[float] = []
    monkeypatch.setattr("time.sleep", waits.append)
    log = logging.getLogger("huggingface_hub")
    monkeypatch.setattr(log, "propagate", True)
    level = log.level
    with pytest.raises(MissingExtraError):
        load("st:absent/no-such-model")
    assert waits == [], "no retries"
    assert caplog.records == []
    assert log.level == level
    assert unreachable_hub.HF_HUB_OFFLINE is False, "only the loading is offline"


def test_model_code_is_not_run_by_default(tiny_bert: Path, tmp_path: Path):
    folder = tmp_path / "with-code"
    shutil.copytree(tiny_bert, folder)
    config = json.loads((folder / "config.json").read_text())
    config |= {"auto_map": {"AutoModel": "own.Own", "AutoConfig": "own.OwnConfig"}, "model_type": "own-kind"}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "own.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()\n")
    with pytest.raises(EquipoiseError):
        load(f"st:{folder}")
    assert not (tmp_path / "ran").exists()


def test_the_device_is_not_part_of_the_spec(tiny_bert: Path) -> None:
    default_device, on_cpu = (
        embedder(f"st:{tiny_bert}", cache=False),
        embedder(f"st:{tiny_bert},device=cpu", cache=False),
    )
    assert default_device.card.spec == on_cpu.card.spec
    assert default_device.fingerprint == on_cpu.fingerprint
