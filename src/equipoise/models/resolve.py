"""The models of a comparison: unique names, early errors for unknown specs, and checks of specs that files name."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from equipoise.errors import DuplicateError, FormatError, ParameterError, UntrustedError
from equipoise.io.text import PathLike, display_path
from equipoise.models.backends.python_object import is_model, object_name
from equipoise.models.dense import dense_models
from equipoise.models.embedder import Embedder
from equipoise.models.fusion import parse_fusion
from equipoise.models.registry import MODEL_KINDS, ModelSpec, parse_spec
from equipoise.models.retriever import Retriever, is_fusion, retriever


def resolve_models(models: Any) -> dict[str, Any]:
    """The models by name: specs as they are written, objects by their cards or types; a dict gives the names.

    >>> list(resolve_models(["minilm", "bm25:"])), list(resolve_models({"lexical": "bm25:"}))
    (['minilm', 'bm25:'], ['lexical'])
    """
    if isinstance(models, Mapping):
        for model in models.values():
            _name(model)  # raises for what is not a model
        return {str(name): model for name, model in models.items()}
    model_list = (
        [models] if isinstance(models, str) or is_model(models) or not isinstance(models, Iterable) else list(models)
    )
    if not model_list:
        raise ParameterError("no model was given", hint="eq ls models lists what works here")
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
        if isinstance(model, str | os.PathLike | ModelSpec):
            for dense_model in dense_models(system):
                dense_model.close()


def _name(model: Any) -> str:
    if isinstance(model, str | os.PathLike):
        text = os.fspath(model)
        for part in _parts(str(text)):
            parse_spec(part)
        return str(text).strip()
    if isinstance(model, ModelSpec):
        return str(model)
    if isinstance(model, Retriever | Embedder):
        return model.card.spec
    if is_model(model):
        return f"py:{object_name(model)}"
    raise ParameterError(
        f"a {type(model).__name__} is not a model",
        hint="give a spec such as minilm, an object with encode(texts), or a function of texts",
    )


def _parts(text: str) -> Sequence[str]:
    return parse_fusion(text)[2] if is_fusion(text) else (text,)


# Specs that come from files must not run code or use credentials: a file may come from another person. Code that
# reads the spec of a model from a tuning, a manifest, an index or a cache passes it through ``spec_from_file``. A spec
# that the user typed, or that a program passes in Python, is trusted.

_LOCAL_STORES = ("memory", "faiss")
"""Stores that live in this process: they open no file and no connection."""


def spec_from_file(text: object, file: PathLike, *, trust: bool = False) -> str:
    """The spec of a model that a file names, when it runs no code and takes no credentials.

    ``trust`` means that the user vouches for the file; even then the file may not choose which variable
    of the environment is sent as a key.

    >>> spec_from_file("sum:use+tfidf:", "tuned.json")
    'sum:use+tfidf:'
    """
    if not isinstance(text, str):
        raise FormatError(
            f"{display_path(file)} names a model by {text!r}, which is not a string", hint="write it again"
        )
    for part in parse_fusion(text)[2] if is_fusion(text) else [text]:
        _check(parse_spec(part), file, trust)
    return text


def _check(spec: ModelSpec, file: PathLike, trust: bool) -> None:
    typed = f"if you trust it, name the model yourself: {spec}"
    if "key_env" in spec.options:
        raise UntrustedError(
            f"{display_path(file)} names the variable {spec.options['key_env']} to be sent as a key",
            hint=typed,
        )
    warning = "" if trust else _warning(spec)
    if warning:
        raise UntrustedError(
            f"{display_path(file)} names the model {spec}, which {warning}", hint=f"{typed}, or add --trust"
        )


def _warning(spec: ModelSpec) -> str:
    """What opening the spec could do to the user; empty where it only reads data."""
    kind = MODEL_KINDS[spec.kind]
    if kind.runs_code or spec.options.get("trust_remote_code", "false").casefold() != "false":
        return "runs code"
    if not kind.offline or "base_url" in spec.options:
        return "sends texts and a key to a server"
    if spec.options.get("store", "memory").partition(":")[0] not in _LOCAL_STORES:
        return "opens a store"
    return ""
