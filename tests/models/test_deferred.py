"""Packaged models are loaded when the first text is encoded, unless their files have changed."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from equipoise.models import embedder as embedder_module
from equipoise.models.backends.model_files import PACKAGES, is_installed
from equipoise.models.embedder import DeferredEncoder, embedder, open_encoder
from equipoise.models.registry import load_encoder, parse_spec

pytestmark = pytest.mark.engines("tokenizers")
SPEC = parse_spec("wordllama")


@pytest.fixture(autouse=True)
def temporary_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not is_installed("wordllama"):
        pytest.skip("the weights of WordLlama are not installed")
    monkeypatch.setenv("EQUIPOISE_CACHE", str(tmp_path / "cache"))


def test_models_are_loaded_lazily_the_second_time(monkeypatch: pytest.MonkeyPatch) -> None:
    first = open_encoder(SPEC)
    second = open_encoder(SPEC)
    assert not isinstance(first, DeferredEncoder)
    assert isinstance(second, DeferredEncoder)
    for name in ("card", "identity", "symmetric", "cacheable", "normalizes", "block_texts", "prompts"):
        assert getattr(second, name) == getattr(first, name), name
    second.close()
    assert "loaded" not in vars(second)
    model = embedder("wordllama")
    np.testing.assert_array_equal(
        model.embed(["rye", "wheat"]), embedder("wordllama", cache=False).embed(["rye", "wheat"])
    )
    assert second.token_counts(["rye bread"]) == first.token_counts(["rye bread"])


def test_cached_vectors_need_no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = embedder("wordllama").embed(["rye"])
    embedder("wordllama").embed(["rye"])
    monkeypatch.setattr(embedder_module, "load_encoder", lambda spec: pytest.fail("the model was loaded"))
    np.testing.assert_array_equal(embedder("wordllama").embed(["rye"]), vectors)


def test_other_options_changed_files_and_no_cache_load_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    open_encoder(SPEC)
    assert not isinstance(open_encoder(SPEC.with_options(max_tokens=8)), DeferredEncoder)
    assert not isinstance(open_encoder(parse_spec("hash")), DeferredEncoder)
    file_name = next(iter(PACKAGES["wordllama"].files))
    true_stat = Path.stat

    def stat_with_another_size(path: Path, **options: bool) -> os.stat_result:
        status = true_stat(path, **options)
        if not str(path).endswith(file_name):
            return status
        return os.stat_result([*status[:6], status.st_size + 1, *status[7:]])

    monkeypatch.setattr(Path, "stat", stat_with_another_size)
    monkeypatch.setattr(embedder_module, "load_encoder", lambda spec: load_encoder(parse_spec("hash")))
    assert not isinstance(open_encoder(SPEC), DeferredEncoder)
    monkeypatch.undo()
    monkeypatch.setenv("EQUIPOISE_CACHE", "off")
    assert not isinstance(open_encoder(SPEC), DeferredEncoder)
