"""Checks of a requested device: it must exist and be used by one of the models."""

from __future__ import annotations

import pytest

from equipoise.domains.phenotypes.config import check_device_is_used
from equipoise.errors import MissingExtraError, ParameterError, UnknownNameError

pytestmark = pytest.mark.engines("torch")


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """A simulated GPU."""
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)


@pytest.mark.parametrize("models", [["tfidf:"], ["minilm", "use"], ["sum:use+tfidf:"], [object()]])
def test_a_gpu_that_no_model_uses_is_an_error(gpu: None, models: list[object]) -> None:
    for reranker in (None, True, "maxsim:minilm"):
        with pytest.raises(ParameterError, match="GPU") as error_info:
            check_device_is_used("cuda", models, reranker)
        assert "st:" in error_info.value.hint


def test_a_gpu_for_one_model_or_the_reranker_is_accepted(gpu: None) -> None:
    check_device_is_used("cuda:0", ["tfidf:", "st:some/model"], None)
    check_device_is_used("cuda", ["bge-base"], None)
    check_device_is_used("cuda", ["tfidf:"], "cross-encoder:folder")


def test_an_unknown_device_is_an_error_for_all_models(gpu: None) -> None:
    for models in (["tfidf:"], ["st:some/model"]):
        with pytest.raises(MissingExtraError, match="cuda:1"):
            check_device_is_used("cuda:1", models, None)
        with pytest.raises(UnknownNameError, match="'nonsense'"):
            check_device_is_used("nonsense", models, None)


def test_no_device_and_the_cpu_are_always_accepted() -> None:
    check_device_is_used(None, ["tfidf:"], None)
    check_device_is_used("cpu", ["tfidf:"], None)
