"""The device that was asked for: whether it is there, and whether anything would run on it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from equipoise.embed.retriever import is_fusion, kind_of
from equipoise.errors import ParameterError
from equipoise.geometry.device import torch_device

ON_DEVICE = ("st",)
"""The kinds of models that a device can be chosen for."""
JUDGE_ON_DEVICE = "cross-encoder"
"""The kind of judges that a device can be chosen for."""


def runs_on_device(model: Any) -> bool:
    """Whether a model can be put on a device: a spec of the right kind, named by itself.

    >>> runs_on_device("st:BAAI/bge-base-en-v1.5"), runs_on_device("minilm"), runs_on_device("sum:use+tfidf:")
    (True, False, False)
    """
    return isinstance(model, str) and not is_fusion(model) and kind_of(model) in ON_DEVICE


def judges_on_device(reranker: Any) -> bool:
    """Whether a judge can be put on a device.

    >>> judges_on_device("cross-encoder:folder"), judges_on_device(True), judges_on_device(None)
    (True, False, False)
    """
    return isinstance(reranker, str) and reranker.startswith(JUDGE_ON_DEVICE)


def refuse_idle_device(device: str | None, models: Iterable[Any], reranker: Any) -> None:
    """Refuse a device that is not there, and a GPU that nothing would run on."""
    if device is None:
        return
    where = torch_device(device)
    if where.type == "cpu" or judges_on_device(reranker) or any(map(runs_on_device, models)):
        return
    raise ParameterError(
        "none of these models runs on a GPU",
        hint="a device is for models of the kind st:, by themselves, and for a judge of the kind "
        f"{JUDGE_ON_DEVICE}:; leave --gpu and --device out",
    )
