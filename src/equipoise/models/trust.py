"""Check specs that come from files: they must not run code or use credentials.

A file may come from another person. Code that reads the spec of a model from one, such as a tuning, a
manifest, an index or a cache, passes it through ``spec_from_file`` before anything opens it. A spec that the
user typed, or that a program passes in Python, is trusted and is not checked here.
"""

from __future__ import annotations

from equipoise.errors import FormatError, UntrustedError
from equipoise.io.text import PathLike, display_path
from equipoise.models.fusion import parse_fusion
from equipoise.models.registry import MODEL_KINDS, ModelSpec, parse_spec
from equipoise.models.retriever import is_fusion

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
    danger = "" if trust else _danger(spec)
    if danger:
        raise UntrustedError(
            f"{display_path(file)} names the model {spec}, which {danger}", hint=f"{typed}, or add --trust"
        )


def _danger(spec: ModelSpec) -> str:
    """What opening the spec could do to the user; empty where it only reads data."""
    kind = MODEL_KINDS[spec.kind]
    if kind.runs_code or spec.options.get("trust_remote_code", "false").casefold() != "false":
        return "runs code"
    if not kind.offline or "base_url" in spec.options:
        return "sends texts and a key to a server"
    if spec.options.get("store", "memory").partition(":")[0] not in _LOCAL_STORES:
        return "opens a store"
    return ""
