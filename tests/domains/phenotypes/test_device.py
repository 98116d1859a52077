"""A device that was asked for: there, and of use to one of the models, or refused."""

from __future__ import annotations

import pytest

from equipoise.domains.phenotypes.config import check_device_is_used
from equipoise.errors import MissingExtraError, ParameterError, UnknownNameError

pytestmark = pytest.mark.engines("torch")


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """One GPU, as far as anyone asks."""
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)


@pytest.mark.parametrize("models", [["tfidf:"], ["minilm", "use"], ["sum:use+tfidf:"], [object()]])
def test_a_gpu_that_no_model_runs_on_is_refused(gpu: None, models: list[object]) -> None:
    for reranker in (None, True, "maxsim:minilm"):
        with pytest.raises(ParameterError, match="GPU") as caught:
            check_device_is_used("cuda", models, reranker)
        assert "st:" in caught.value.hint


def test_a_gpu_that_one_model_or_the_judge_runs_on_is_taken(gpu: None) -> None:
    check_device_is_used("cuda:0", ["tfidf:", "st:some/model"], None)
    check_device_is_used("cuda", ["bge-base"], None)
    check_device_is_used("cuda", ["tfidf:"], "cross-encoder:folder")


def test_a_device_is_looked_for_whatever_the_models_are(gpu: None) -> None:
    for models in (["tfidf:"], ["st:some/model"]):
        with pytest.raises(MissingExtraError, match="cuda:1"):
            check_device_is_used("cuda:1", models, None)
        with pytest.raises(UnknownNameError, match="'nonsense'"):
            check_device_is_used("nonsense", models, None)


def test_no_device_and_the_processor_are_always_there() -> None:
    check_device_is_used(None, ["tfidf:"], None)
    check_device_is_used("cpu", ["tfidf:"], None)
