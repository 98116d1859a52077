"""``st:`` up to the loading: a tiny folder, its prompts and threads, and what the hub's absence says."""

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
from equipoise.types import Role

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


def test_a_folder_gives_the_librarys_own_vectors(tiny_bert: Path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from sentence_transformers import SentenceTransformer

        library = SentenceTransformer(str(tiny_bert), device="cpu")
    model = load(f"st:{tiny_bert}")
    done = model.embed_report(TEXTS)
    np.testing.assert_allclose(done.vectors, library.encode(TEXTS), atol=1e-6)
    assert (model.dims, model.card.max_tokens) == (32, 16)
    assert done.report.tokens == sum(len(library.tokenizer(text)["input_ids"]) for text in TEXTS)


@pytest.mark.parametrize("kind", ["st", "onnx"])
def test_a_last_step_that_normalises_cannot_be_undone(tiny_bert: Path, kind: str):
    if kind == "onnx":
        pytest.importorskip("onnxruntime")
    with pytest.raises(ParameterError):
        load(f"{kind}:{tiny_bert},normalize=false")
    assert np.linalg.norm(load(f"{kind}:{tiny_bert},normalize=false,dim=8").embed(TEXTS), axis=1).max() < 1


def test_a_bare_path_is_enough(tiny_bert: Path):
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
    plain, prompted = load(f"st:{tiny_bert}"), load(f"st:{folder}")
    assert prompted.prompts == {Role.QUERY: "red ", Role.DOCUMENT: "blue "}
    for role, prompt in (("query", "red "), ("document", "blue ")):
        wanted = plain.embed([prompt + text for text in TEXTS])
        np.testing.assert_allclose(prompted.embed(TEXTS, role), wanted, atol=1e-6)
    silent = load(f"st:{folder}", query_prompt="", document_prompt="")
    np.testing.assert_allclose(silent.embed(TEXTS), plain.embed(TEXTS), atol=1e-6)
    assert prompted.fingerprint != plain.fingerprint


def prompted(tiny_bert: Path, prompts: dict[str, str], default: str | None = None):
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
def test_an_object_is_the_model_that_its_folder_is(tiny_bert: Path, tmp_path: Path, prompts, default):
    """The oracle is the library's own way to embed queries and documents."""
    library = prompted(tiny_bert, prompts, default)
    library.save(str(tmp_path / "saved"))
    by_object, by_name = embedder(library), load(f"st:{tmp_path / 'saved'}")
    assert by_object.prompts == by_name.prompts
    for role, encode in (("query", library.encode_query), ("document", library.encode_document)):
        wanted = encode(TEXTS)
        np.testing.assert_allclose(by_object.embed(TEXTS, role), wanted, atol=1e-6)
        np.testing.assert_allclose(by_name.embed(TEXTS, role), wanted, atol=1e-6)
    assert (by_object.dims, by_object.card.max_tokens) == (by_name.dims, by_name.card.max_tokens)
    assert not by_object.encoder.cacheable


def test_a_default_prompt_of_no_role_is_for_both(tiny_bert: Path, tmp_path: Path):
    library = prompted(tiny_bert, {"search": "red "}, "search")
    library.save(str(tmp_path / "saved"))
    for model in (embedder(library), load(f"st:{tmp_path / 'saved'}")):
        for role in Role:
            np.testing.assert_allclose(model.embed(TEXTS, role), library.encode(TEXTS), atol=1e-6)


def test_prompts_of_an_object_can_be_replaced(tiny_bert: Path):
    library = prompted(tiny_bert, {"query": "red ", "document": "blue "})
    model = embedder(library, query_prompt="", document_prompt="the ")
    plain = library.encode(TEXTS, prompt="")
    np.testing.assert_allclose(model.embed(TEXTS, "query"), plain, atol=1e-6)
    wanted = library.encode(TEXTS, prompt="the ")
    np.testing.assert_allclose(model.embed(TEXTS, "document"), wanted, atol=1e-6)


def test_a_model_with_a_part_for_each_role_is_told_the_role(tiny_bert: Path):
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import Dense, Router

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        parts = list(SentenceTransformer(str(tiny_bert), device="cpu").children())
        state = torch.random.get_rng_state()
        torch.manual_seed(0)
        router = Router({"query": [Dense(32, 8)], "document": [Dense(32, 8)]}, default_route="document")
        torch.random.set_rng_state(state)
        library = SentenceTransformer(modules=[*parts[:2], router], device="cpu")
    model = embedder(library, normalize=False)
    queries, documents = library.encode_query(TEXTS), library.encode_document(TEXTS)
    assert not np.allclose(queries, documents)
    np.testing.assert_allclose(model.embed(TEXTS, "query"), queries, atol=1e-6)
    np.testing.assert_allclose(model.embed(TEXTS, "document"), documents, atol=1e-6)


def test_torchs_thread_count_is_left_as_it_was(tiny_bert: Path):
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        load(f"st:{tiny_bert}").embed(TEXTS)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_a_narrower_window_is_an_option(tiny_bert: Path):
    done = load(f"st:{tiny_bert},max_tokens=4").embed_report(["the cat sat on the mat", "the cat ran"])
    np.testing.assert_allclose(done.vectors[0], done.vectors[1], atol=1e-6)
    assert (done.report.truncated, done.report.lost_tokens) == (2, 5)


def test_a_very_long_text_is_what_its_beginning_is(tiny_bert: Path):
    model = load(f"st:{tiny_bert}")
    long = "the cat sat on the mat " * 10_000
    done = model.embed_report([long])
    np.testing.assert_allclose(done.vectors, model.embed([long[:300]]), atol=1e-6)
    assert done.report.lost_tokens == 60_002 - 16


def test_folders_without_a_model_are_sentences(tmp_path: Path):
    for spec, kind, sentence in [
        (f"st:{tmp_path}", InputError, "holds no weights"),
        (f"st:{tmp_path / 'absent'}", InputError, "does not exist"),
        ("st:", ParameterError, "names no model"),
    ]:
        with pytest.raises(kind, match=sentence):
            load(spec)
    (tmp_path / "model.safetensors").write_bytes(b"cut off")
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(InputError):
        load(f"st:{tmp_path}")


@pytest.fixture
def absent_hub(monkeypatch: pytest.MonkeyPatch):
    """A hub at a port where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    constants = pytest.importorskip("huggingface_hub.constants")
    monkeypatch.setattr(constants, "ENDPOINT", f"http://127.0.0.1:{port}")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    return constants


def test_a_hub_that_cannot_be_reached_is_a_sentence(absent_hub):
    with pytest.raises(MissingExtraError) as caught:
        load("st:nobody/no-such-model-anywhere")
    assert "minilm" in caught.value.hint


def test_a_hub_that_does_not_answer_is_asked_once_and_its_log_kept_still(absent_hub, monkeypatch, caplog):
    slept: list[float] = []
    monkeypatch.setattr("time.sleep", slept.append)
    log = logging.getLogger("huggingface_hub")
    monkeypatch.setattr(log, "propagate", True)
    before = log.level
    with pytest.raises(MissingExtraError):
        load("st:nobody/no-such-model-anywhere")
    assert slept == [], "nothing is tried again"
    assert caplog.records == []
    assert log.level == before
    assert absent_hub.HF_HUB_OFFLINE is False, "only our own loading is done without the hub"


def test_code_of_a_model_is_not_run_unasked(tiny_bert: Path, tmp_path: Path):
    folder = tmp_path / "with-code"
    shutil.copytree(tiny_bert, folder)
    config = json.loads((folder / "config.json").read_text())
    config |= {"auto_map": {"AutoModel": "own.Own", "AutoConfig": "own.OwnConfig"}, "model_type": "own-kind"}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "own.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()\n")
    with pytest.raises(EquipoiseError):
        load(f"st:{folder}")
    assert not (tmp_path / "ran").exists()


def test_where_a_model_runs_is_not_part_of_its_name(tiny_bert: Path) -> None:
    here, there = (
        embedder(f"st:{tiny_bert}", cache=False),
        embedder(f"st:{tiny_bert},device=cpu", cache=False),
    )
    assert here.card.spec == there.card.spec
    assert here.fingerprint == there.fingerprint
