"""``cross-encoder:``: a model that reads query and document together, through sentence-transformers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from equipoise.embed.card import Card
from equipoise.embed.local.folder import ModelFolder
from equipoise.embed.local.hub import quiet_hub
from equipoise.embed.local.torch_engine import hub_revision, torch_threads, weights_digest
from equipoise.embed.rerank.rerank import Reranker
from equipoise.embed.retriever import fingerprint_of
from equipoise.embed.spec import Spec
from equipoise.errors import InputError, MissingExtraError, ParameterError, did_you_mean
from equipoise.types import Floats, need

OPTIONS = ("revision", "device", "trust_remote_code", "max_tokens", "batch", "threads")
BATCH = 32


class CrossEncoderReranker(Reranker):
    """The logit of a model with one label. A sigmoid would round the best ones to the same 1.0."""

    def __init__(self, model: Any, card: Card, *, batch: int = BATCH, threads: int = 1) -> None:
        labels = int(model.num_labels)
        if labels != 1:
            raise InputError(
                f"{card.name} has {labels} labels; a reranker gives one number",
                hint="use a model that was trained to rank",
            )
        self._model, self._card, self._batch, self._threads = model, card, batch, threads

    @classmethod
    def from_spec(cls, spec: Spec) -> CrossEncoderReranker:
        """From ``cross-encoder:NAME`` on the hub or ``cross-encoder:FOLDER``."""
        for option in spec.options:
            if option not in OPTIONS:
                hint = did_you_mean(option, OPTIONS) or f"the options are {', '.join(OPTIONS)}"
                raise ParameterError(f"cross-encoder: has no option {option!r}", hint=hint)
        spec.check_values()
        if not spec.name:
            raise ParameterError("cross-encoder: names no model", hint="write cross-encoder:NAME or a folder")
        path = Path(spec.name).expanduser()
        local = path.exists() or spec.name.startswith(("/", ".", "~"))
        revision = ""
        if local:
            folder = ModelFolder.open(path)
            folder.require_no_code(trusted=spec.flag("trust_remote_code", False))
            revision = weights_digest(folder)
        model = _loaded(spec, str(path) if local else spec.name, local)
        card = Card(
            path.name if local else spec.name,
            str(spec),
            max_tokens=model.max_seq_length,
            origin=f"folder {path}" if local else "Hugging Face hub",
            revision=revision or hub_revision(model, f"{spec.name}@{spec.options.get('revision', 'main')}"),
        )
        return cls(model, card, batch=spec.count("batch") or BATCH, threads=spec.count("threads") or 1)

    @property
    def card(self) -> Card:
        """What is known of the model."""
        return self._card

    @property
    def fingerprint(self) -> str:
        """The weights and the window."""
        card = self._card
        return fingerprint_of("cross-encoder 1", card.revision, str(card.max_tokens))

    def score(self, query: str, documents: Sequence[str]) -> Floats:
        """One query at a time."""
        return self.score_many([query], [documents])[0]

    def score_many(self, queries: Sequence[str], documents: Sequence[Sequence[str]]) -> list[Floats]:
        """All pairs in one run of batches; the library puts alike lengths together."""
        pairs = [(query, text) for query, own in zip(queries, documents, strict=True) for text in own]
        if not pairs:
            return [np.empty(0) for _ in queries]
        torch = need("torch", extra="st")
        with torch_threads(self._threads):
            logits = self._model.predict(
                pairs, batch_size=self._batch, show_progress_bar=False, activation_fn=torch.nn.Identity()
            )
        scores = np.asarray(logits, dtype=np.float64).reshape(len(pairs))
        return np.split(scores, np.cumsum([len(own) for own in documents])[:-1])


def _loaded(spec: Spec, name: str, local: bool) -> Any:
    engine = need("sentence_transformers", extra="st")
    try:
        with quiet_hub(not local):
            model = engine.CrossEncoder(
                name,
                device=spec.options.get("device", "cpu"),
                revision=spec.options.get("revision"),
                trust_remote_code=spec.flag("trust_remote_code", False),
            )
    except Exception as error:  # hub, file and configuration problems come as a dozen kinds
        reason = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
        if local:
            raise InputError(
                f"the model in {name} cannot be loaded: {reason}", hint="save the model again"
            ) from error
        raise MissingExtraError(
            f"{name} could not be loaded from the hub: {reason}",
            hint="check the name and the network, or name a folder; maxsim:minilm needs no network",
        ) from error
    if (max_tokens := spec.count("max_tokens")) is not None:
        model.max_seq_length = max_tokens
    return model
