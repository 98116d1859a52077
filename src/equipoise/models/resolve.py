"""The models of a comparison: unique names, and an early error for an unknown one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from os import PathLike, fspath
from typing import Any

from equipoise.errors import DuplicateError, ParameterError
from equipoise.models.backends.python_object import is_model
from equipoise.models.embedder import Embedder
from equipoise.models.fusion import parse_fusion
from equipoise.models.memory_cache import dense_models
from equipoise.models.registry import ModelSpec, parse_spec
from equipoise.models.retriever import Retriever, is_fusion, retriever


def resolve_models(models: Any) -> dict[str, Any]:
    """The models by name: specs as they are written, objects by their cards or types.

    >>> list(resolve_models(["minilm", "bm25:"]))
    ['minilm', 'bm25:']
    """
    model_list = [models] if isinstance(models, str) or not isinstance(models, Iterable) else list(models)
    if not model_list:
        raise ParameterError("no model was named", hint="eq ls models lists what works here")
    by_name: dict[str, Any] = {}
    for model in model_list:
        name = _name(model)
        if name in by_name:
            raise DuplicateError(f"the model {name} is named twice", hint="name each model once")
        by_name[name] = model
    return by_name


@contextmanager
def open_retriever(model: Any, *, cache: Any = None, threads: int = 1) -> Iterator[Retriever]:
    """The model as a system that retrieves; this may take a while, and may fail.

    Models that were loaded here are released afterwards; a model given as an object is unchanged.
    """
    system = retriever(model, cache=cache, threads=threads)
    try:
        yield system
    finally:
        if isinstance(model, str | PathLike | ModelSpec):
            for dense_model in dense_models(system):
                dense_model.close()


def _name(model: Any) -> str:
    if isinstance(model, str | PathLike):
        text = fspath(model)
        for part in _parts(str(text)):
            parse_spec(part)
        return str(text).strip()
    if isinstance(model, ModelSpec):
        return str(model)
    if isinstance(model, Retriever | Embedder):
        return model.card.spec
    if is_model(model):
        return f"py:{type(model).__module__}.{type(model).__qualname__}"
    raise ParameterError(
        f"a {type(model).__name__} is not a model",
        hint="give a spec such as minilm, or an object with encode(texts)",
    )


def _parts(text: str) -> Sequence[str]:
    return parse_fusion(text)[2] if is_fusion(text) else (text,)
