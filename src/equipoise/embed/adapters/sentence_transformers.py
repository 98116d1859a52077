"""``st:``: sentence-transformers, from a folder or by the name it has on the hub."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from equipoise.embed.card import Card
from equipoise.embed.encoder import Encoder
from equipoise.embed.known import BY_HUB_NAME
from equipoise.embed.local.encoder import Encoded, LocalEncoder
from equipoise.embed.local.folder import ModelFolder, prompts_by_role
from equipoise.embed.local.hub import quiet_hub
from equipoise.embed.local.packaged import is_installed, packaged
from equipoise.embed.local.torch_engine import hub_revision, torch_threads, weights_digest
from equipoise.embed.local.window import Window
from equipoise.embed.spec import Spec, as_path
from equipoise.errors import InputError, MissingExtraError, ParameterError
from equipoise.types import Role, need

OPTIONS = ("revision", "device", "trust_remote_code", "max_tokens", "batch")
BATCH = 32


class SentenceTransformersEncoder(LocalEncoder):
    """The library's own ``encode``, on as many threads as were asked for and no more.

    ``threads`` of None leaves torch as it is.
    """

    def __init__(self, model: Any, card: Card, *, threads: int | None, batch: int = BATCH) -> None:
        self.card = card
        self.identity = f"st {card.revision} window={card.max_tokens}"
        self.prompts = prompts_by_role(
            getattr(model, "prompts", None) or {}, getattr(model, "default_prompt_name", None)
        )
        self.normalizes = any(type(module).__name__ == "Normalize" for module in model.children())
        self._model = model
        self._threads = threads
        self._batch = batch
        self._window = _window(model, card.max_tokens, threads or 1)
        # Models with a part for each role must be told which; versions before 5 have no such models.
        self._calls = {
            Role.QUERY: getattr(model, "encode_query", model.encode),
            Role.DOCUMENT: getattr(model, "encode_document", model.encode),
        }

    def encode_counted(self, texts: Sequence[str], role: Role) -> Encoded:
        """The prompt is in the text already, so the library is told to add none."""
        heads = list(texts) if self._window is None else [self._window.head(text) for text in texts]
        with nullcontext() if self._threads is None else torch_threads(self._threads):
            vectors = self._calls[role](
                heads, batch_size=self._batch, prompt="", show_progress_bar=False, convert_to_numpy=True
            )
        return Encoded(np.asarray(vectors, dtype=np.float32), self.token_counts(texts))

    def token_counts(self, texts: Sequence[str]) -> list[int] | None:
        """Lengths by the model's own tokenizer, where it is one that can be asked."""
        return None if self._window is None else self._window.cut(texts).counts


def load(spec: Spec) -> Encoder:
    """From a folder, from an installed package, or from the hub."""
    if not spec.name:
        raise ParameterError("st: names no model", hint="write st:NAME or st:FOLDER")
    known = BY_HUB_NAME.get(spec.name)
    if (
        known is not None
        and known.alias == "minilm"
        and "revision" not in spec.options
        and is_installed("minilm")
    ):
        found = packaged("minilm")
        card = Card(spec.name, str(spec), licence=known.licence, origin=found.origin, revision=found.revision)
        return _loaded(spec, found.folder / "model", card)
    path = as_path(spec.name)
    if path.exists() or spec.name.startswith(("/", ".", "~")):
        folder = ModelFolder.open(path)
        folder.require_no_code(trusted=spec.flag("trust_remote_code", False))
        card = Card(
            path.name,
            str(spec),
            origin=f"folder {path}",
            revision=f"{weights_digest(folder)} settings:{folder.settings()}",
        )
        return _loaded(spec, path, card)
    card = Card(spec.name, str(spec), licence=known.licence if known else "", origin="Hugging Face hub")
    return _loaded(spec, None, card)


def _loaded(spec: Spec, folder: Path | None, card: Card) -> Encoder:
    engine = need("sentence_transformers", extra="st")
    with quiet_hub(folder is None):
        try:
            model = engine.SentenceTransformer(
                str(folder or spec.name),
                device=spec.options.get("device"),
                revision=spec.options.get("revision"),
                trust_remote_code=spec.flag("trust_remote_code", False),
            )
        except Exception as error:  # hub, file and configuration problems come as a dozen kinds
            raise _explained(spec, folder, error) from error
    if (max_tokens := spec.count("max_tokens")) is not None:
        model.max_seq_length = max_tokens
    asked = f"{spec.name}@{spec.options.get('revision', 'main')}"
    card = replace(_sized(card, model), revision=card.revision or hub_revision(model, asked))
    return SentenceTransformersEncoder(
        model, card, threads=spec.count("threads") or 1, batch=spec.count("batch") or BATCH
    )


def is_sentence_transformer(model: object) -> bool:
    """Whether an object is a model of the library; the library is not loaded to find out."""
    library = sys.modules.get("sentence_transformers")
    return library is not None and isinstance(model, library.SentenceTransformer)


def of_object(model: Any, card: Card) -> SentenceTransformersEncoder:
    """A model in hand, with its prompts and its window as ``st:`` has them."""
    return SentenceTransformersEncoder(model, _sized(card, model), threads=None)


def _sized(card: Card, model: Any) -> Card:
    """The card with the dimensions and the window of the model."""
    window = model.max_seq_length
    dims = getattr(model, "get_embedding_dimension", None) or model.get_sentence_embedding_dimension
    return replace(card, dims=dims(), max_tokens=int(window) if window and window < 10**6 else None)


def _explained(spec: Spec, folder: Path | None, error: Exception) -> Exception:
    reason = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
    if "trust_remote_code" in str(error):
        return ParameterError(
            f"{spec.name} brings code of its own, which is not run unasked",
            hint=f"read that code; then write st:{spec.name},trust_remote_code=true",
        )
    if folder is not None:
        return InputError(f"the model in {folder} cannot be loaded: {reason}", hint="save the model again")
    return MissingExtraError(
        f"{spec.name} could not be loaded from the hub: {reason}",
        hint="check the name and the network, or name a folder; minilm, use and wordllama need no network",
    )


def _window(model: Any, max_tokens: int | None, threads: int) -> Window | None:
    """A window over a copy of the tokenizer: the library's own keeps its settings."""
    tokenizer = getattr(model.tokenizer, "backend_tokenizer", model.tokenizer)
    if not callable(getattr(tokenizer, "to_str", None)):
        return None
    engine = need("tokenizers", extra="st")
    return Window(engine.Tokenizer.from_str(tokenizer.to_str()), max_tokens, threads=threads)
