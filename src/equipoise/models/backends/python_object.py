"""``py:module.attr`` or a Python object: any object with ``encode`` or ``embed`` is a model."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np

from equipoise.errors import InputError, ParameterError, ShapeError
from equipoise.models.backends.sentence_transformers import encoder_from_model, is_sentence_transformer
from equipoise.models.encoder import EncodedBatch, Encoder, LocalEncoder, ModelCard, Vectors
from equipoise.types import Role

if TYPE_CHECKING:
    from equipoise.models.registry import ModelSpec

OPTIONS = ("identity",)
"""``identity`` is the caller's word that equal names give equal vectors; without it nothing is cached."""

_CALLS = ("encode", "embed")
_ENCODE_BY_ROLE = {Role.QUERY: "encode_query", Role.DOCUMENT: "encode_document"}
_BY_ROLE = {Role.QUERY: "embed_query", Role.DOCUMENT: "embed_documents"}


class PythonObjectEncoder(LocalEncoder):
    """An object with ``encode(texts)`` or ``embed(texts)``, or with two methods by role.

    The two are ``encode_query`` and ``encode_document``, as in sentence-transformers, or those of LangChain.
    """

    def __init__(self, model: Any, card: ModelCard) -> None:
        self.card = card
        self._model = model

    def encode_counted(self, texts: Sequence[str], role: Role) -> EncodedBatch:
        """Call the object, and hold it to one row of numbers a text."""
        rows = self._call(list(texts), role)
        if rows.ndim != 2 or len(rows) != len(texts):
            raise ShapeError(
                f"{self.card.name} returned an array of shape {rows.shape} for {len(texts)} texts",
                hint="it must return one vector a text",
            )
        return EncodedBatch(rows, None)

    def _call(self, texts: list[str], role: Role) -> Vectors:
        if all(_has(self._model, name) for name in _ENCODE_BY_ROLE.values()):
            return _as_rows(getattr(self._model, _ENCODE_BY_ROLE[role])(texts))
        method = next((getattr(self._model, name) for name in _CALLS if _has(self._model, name)), None)
        if method is not None:
            return _as_rows(method(texts))
        if role is Role.QUERY:
            return _as_rows([self._model.embed_query(text) for text in texts])
        return _as_rows(self._model.embed_documents(texts))


def load(spec: ModelSpec) -> Encoder:
    """Import the object; a class is made without arguments, a function that returns a model is called."""
    model = _import_object(spec.name)
    if isinstance(model, type) or (callable(model) and not is_model(model)):
        model = model()
    return from_object(model, name=spec.name, spec=str(spec), identity=spec.options.get("identity", ""))


def from_object(model: object, *, name: str = "", spec: str = "", identity: str = "") -> Encoder:
    """Take any object that embeds."""
    if isinstance(model, Encoder):
        return model
    label = name or f"{type(model).__module__}.{type(model).__qualname__}"
    if not is_model(model):
        raise ParameterError(f"{label} has neither encode nor embed", hint="give it encode(texts) -> vectors")
    card = ModelCard(label, spec or f"py:{label}", origin="object")
    encoder = encoder_from_model(model, card) if is_sentence_transformer(model) else PythonObjectEncoder(model, card)
    encoder.cacheable = bool(identity)
    encoder.identity = f"object {identity or uuid4().hex}"
    return encoder


def is_model(model: object) -> bool:
    """Whether an object can embed."""
    pairs = (_ENCODE_BY_ROLE.values(), _BY_ROLE.values())
    return any(_has(model, name) for name in _CALLS) or any(all(_has(model, name) for name in pair) for pair in pairs)


def _has(model: object, name: str) -> bool:
    return not isinstance(model, str) and callable(getattr(model, name, None))


def _as_rows(output: Any) -> Vectors:
    """Arrays, tensors, lists and generators of vectors as one float32 matrix."""
    if callable(getattr(output, "detach", None)):
        output = output.detach().cpu().numpy()
    if not isinstance(output, np.ndarray):
        output = list(output)
    try:
        return np.asarray(output, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise ShapeError("the vectors of the model are not rows of numbers of one length") from error


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
