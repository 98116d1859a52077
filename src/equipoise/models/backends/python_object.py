"""``py:module.attr`` or a Python object: models of other libraries, objects with ``encode``, and functions of texts."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from inspect import isawaitable, signature
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np

from equipoise.errors import InputError, ParameterError, ShapeError
from equipoise.models.backends.sentence_transformers import encoder_from_model, is_sentence_transformer
from equipoise.models.encoder import EncodedBatch, Encoder, LocalEncoder, ModelCard, Role, Vectors

if TYPE_CHECKING:
    from equipoise.models.registry import ModelSpec

OPTIONS = ("identity",)
"""``identity`` names the model for the cache: equal identities give equal vectors. Without it nothing is cached."""


@dataclass(frozen=True, slots=True)
class CallingConvention:
    """The methods of a library that embed queries and documents, and whether the query method takes one text."""

    library: str
    query: str
    document: str
    one_query: bool = False

    def fits(self, model: object) -> bool:
        """Whether the object has both methods."""
        return _has(model, self.query) and _has(model, self.document)


CONVENTIONS = (
    CallingConvention("sentence-transformers", "encode_query", "encode_document"),
    CallingConvention("LlamaIndex", "get_query_embedding", "get_text_embedding_batch", one_query=True),
    CallingConvention("LangChain", "embed_query", "embed_documents", one_query=True),
    CallingConvention("fastembed", "query_embed", "passage_embed"),
    CallingConvention("model2vec and others", "encode", "encode"),
    CallingConvention("others", "embed", "embed"),
)
"""The conventions, in the order in which they are tried: methods by role first."""


class PythonObjectEncoder(LocalEncoder):
    """An object with the methods of one of ``CONVENTIONS``, or a function of a list of texts; either may be async."""

    def __init__(self, model: Any, card: ModelCard) -> None:
        self.card = card
        self._model = model
        self._convention = next((convention for convention in CONVENTIONS if convention.fits(model)), None)
        names = {self._convention.query, self._convention.document} if self._convention else set()
        for method in [getattr(model, name) for name in sorted(names)] or [model]:
            _check_takes_texts_alone(method, card.name)

    def encode_counted(self, texts: Sequence[str], role: Role) -> EncodedBatch:
        """Call the object; it must return one row of numbers per text."""
        rows = self._call(list(texts), role)
        if rows.ndim != 2 or len(rows) != len(texts):
            raise ShapeError(
                f"{self.card.name} returned an array of shape {rows.shape} for {len(texts)} texts",
                hint="it must return one vector per text",
            )
        return EncodedBatch(rows, None)

    def _call(self, texts: list[str], role: Role) -> Vectors:
        if self._convention is None:
            return _as_rows(self._model(texts))
        name = self._convention.query if role is Role.QUERY else self._convention.document
        method = getattr(self._model, name)
        if role is Role.QUERY and self._convention.one_query:
            return _as_rows([_await_result(method(text)) for text in texts])
        return _as_rows(method(texts))


def load(spec: ModelSpec) -> Encoder:
    """Import the object; a class is made without arguments, a function that returns a model is called."""
    model = _import_object(spec.name)
    if isinstance(model, type) or (is_function(model) and not _takes_texts(model)):
        model = model()
    return from_object(model, name=spec.name, spec=str(spec), identity=spec.options.get("identity", ""))


def from_object(model: object, *, name: str = "", spec: str = "", identity: str = "") -> Encoder:
    """Take any object that embeds."""
    if isinstance(model, Encoder):
        return model
    label = name or object_name(model)
    if not is_model(model):
        raise ParameterError(
            f"{label} has neither encode nor embed", hint="give it encode(texts), or pass a function of texts"
        )
    card = ModelCard(label, spec or f"py:{label}", origin="object")
    encoder = encoder_from_model(model, card) if is_sentence_transformer(model) else PythonObjectEncoder(model, card)
    encoder.cacheable = bool(identity)
    encoder.identity = f"object {identity or uuid4().hex}"
    return encoder


def is_model(model: object) -> bool:
    """Whether an object can embed: it has the methods of a known library, or it is a function.

    >>> is_model(lambda texts: [[1.0] for _ in texts]), is_model(3)
    (True, False)
    """
    return any(convention.fits(model) for convention in CONVENTIONS) or is_function(model)


def is_function(model: object) -> bool:
    """Whether an object is a function, a method, or a partial function."""
    return isinstance(model, FunctionType | MethodType | partial)


def object_name(model: object) -> str:
    """The module and name of a function or class, and the model name that the object states.

    >>> object_name(is_model)
    'equipoise.models.backends.python_object.is_model'
    """
    named: Any = model.func if isinstance(model, partial) else model
    if not is_function(named):
        named = type(model)
    stated = next((value for name in _MODEL_NAMES if isinstance(value := getattr(model, name, None), str)), "")
    return f"{named.__module__}.{named.__qualname__}{f' ({stated})' if stated else ''}"


_MODEL_NAMES = ("model_name", "model_id", "model", "base_model_name")


def _takes_texts(function: Any) -> bool:
    """Whether a function needs an argument: then it embeds, otherwise it returns a model."""
    parameters = signature(function).parameters.values()
    return any(p.default is p.empty and p.kind is not p.VAR_KEYWORD for p in parameters)


def _check_takes_texts_alone(method: Any, name: str) -> None:
    """Raise ``ParameterError`` if a method needs other arguments than the texts, as ``encode`` of mteb 2 does."""
    try:
        signature(method).bind([])
    except TypeError as error:
        called = getattr(method, "__name__", "the model")
        raise ParameterError(
            f"{called} of {name} cannot be called with a list of texts alone: {error}",
            hint="pass a function of the texts, such as lambda texts: model.encode(texts, ...)",
        ) from error
    except ValueError:  # a compiled function without a signature
        return


def _has(model: object, name: str) -> bool:
    return not isinstance(model, str) and callable(getattr(model, name, None))


def _as_rows(output: Any) -> Vectors:
    """Arrays, tensors, lists and generators of vectors as one float32 matrix."""
    output = _await_result(output)
    if callable(getattr(output, "detach", None)):
        output = output.detach().cpu().numpy()
    if not isinstance(output, np.ndarray):
        output = list(output)
    try:
        return np.asarray(output, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise ShapeError("the vectors of the model are not rows of numbers of one length") from error


def _await_result(output: Any) -> Any:
    """The result of an async function, and any other value unchanged."""
    if not isawaitable(output):
        return output
    import asyncio
    from concurrent.futures import ThreadPoolExecutor

    async def result() -> Any:
        return await output

    # In another thread, because a notebook has a running loop in this one.
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, result()).result()


def _import_object(name: str) -> Any:
    module, _, attribute = name.rpartition(".")
    if not module or not attribute:
        raise ParameterError(f"py:{name} names no attribute of a module", hint="write py:module.attr")
    try:
        with _working_folder_importable():
            return _attribute(module, attribute)
    except (ImportError, AttributeError) as error:
        raise InputError(
            f"py:{name} cannot be imported: {error}", hint="run where the module is, or set PYTHONPATH"
        ) from error


def _attribute(module: str, attribute: str) -> Any:
    try:
        return getattr(importlib.import_module(module), attribute)
    except ModuleNotFoundError:
        # module.Class.attr: the last parts may be attributes rather than modules
        parent, _, middle = module.rpartition(".")
        if not parent:
            raise
        return getattr(_attribute(parent, middle), attribute)


@contextmanager
def _working_folder_importable() -> Iterator[None]:
    """Add the working folder to the path: installed commands omit it, and user modules are usually there."""
    sys.path.insert(0, "")
    try:
        yield
    finally:
        sys.path.remove("")
