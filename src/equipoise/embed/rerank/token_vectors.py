"""A vector for each token of a text, from a sentence-transformers model before it pools."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from equipoise.embed.batch import token_batches
from equipoise.embed.card import Card
from equipoise.embed.encoder import Vectors
from equipoise.embed.known import BY_ALIAS
from equipoise.embed.local.folder import ModelFolder
from equipoise.embed.local.hub import quiet_hub
from equipoise.embed.local.packaged import packaged
from equipoise.embed.local.torch_engine import hub_revision, torch_threads, weights_digest
from equipoise.embed.spec import Spec
from equipoise.errors import InputError, MissingExtraError, ParameterError, did_you_mean
from equipoise.types import need

OPTIONS = ("max_tokens", "threads")
BATCH_TOKENS = 4096


class TorchTokenEncoder:
    """The last hidden state of a transformer, without its special tokens."""

    def __init__(self, model: Any, card: Card, *, threads: int = 1) -> None:
        self.card = card
        self.identity = f"tokens {card.revision} window={card.max_tokens}"
        self._tokenizer, self._transformer = model.tokenizer, model[0].auto_model
        self._max_tokens, self._threads = card.max_tokens, threads

    def token_vectors(self, texts: Sequence[str]) -> list[Vectors]:
        """One array (tokens, dims) a text; what lies beyond the window has no vectors."""
        torch = need("torch", extra="st")
        ids = self._tokenizer(
            list(texts), truncation=self._max_tokens is not None, max_length=self._max_tokens,
            return_special_tokens_mask=True,
        )  # fmt: skip
        special = ids.pop("special_tokens_mask")
        found: list[Vectors] = [np.empty((0, 0), np.float32)] * len(texts)
        with torch_threads(self._threads), torch.inference_mode():
            for batch in token_batches([len(row) for row in ids["input_ids"]], BATCH_TOKENS):
                padded = self._tokenizer.pad(
                    {name: [rows[place] for place in batch] for name, rows in ids.items()},
                    return_tensors="pt",
                )
                hidden = self._transformer(**padded).last_hidden_state.float().numpy()
                for vectors, place in zip(hidden, batch, strict=True):
                    own = np.flatnonzero(np.array(special[place]) == 0)
                    found[place] = vectors[own]
        return found


def load_token_encoder(spec: Spec) -> TorchTokenEncoder:
    """The packaged MiniLM where no other is named, a folder, or a model of the hub."""
    for option in spec.options:
        if option not in OPTIONS:
            hint = did_you_mean(option, OPTIONS) or f"the options are {', '.join(OPTIONS)}"
            raise ParameterError(f"{spec.kind}: has no option {option!r}", hint=hint)
    spec.check_values()
    minilm = BY_ALIAS["minilm"]
    if spec.name in ("", minilm.alias, minilm.hub):
        weights = packaged("minilm")
        return _loaded(
            weights.folder / "model",
            spec,
            Card(
                weights.package.title,
                f"{spec.kind}:minilm",
                licence=weights.package.licence,
                origin=weights.origin,
                revision=weights.revision,
            ),
        )
    path = Path(spec.name).expanduser()
    if path.exists() or spec.name.startswith(("/", ".", "~")):
        folder = ModelFolder.open(path)
        folder.require_no_code(trusted=False)
        return _loaded(
            folder.path,
            spec,
            Card(path.name, str(spec), origin=f"folder {path}", revision=weights_digest(folder)),
        )
    return _loaded(None, spec, Card(spec.name, str(spec), origin="Hugging Face hub"))


def _loaded(folder: Path | None, spec: Spec, card: Card) -> TorchTokenEncoder:
    engine = need("sentence_transformers", extra="st")
    try:
        with quiet_hub(folder is None):
            model = engine.SentenceTransformer(str(folder or spec.name), device="cpu")
    except Exception as error:  # hub, file and configuration problems come as a dozen kinds
        reason = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
        if folder is not None:
            raise InputError(
                f"the model in {folder} cannot be loaded: {reason}", hint="save the model again"
            ) from error
        raise MissingExtraError(
            f"{spec.name} could not be loaded from the hub: {reason}",
            hint="check the name and the network, or name a folder; maxsim:minilm needs no network",
        ) from error
    max_tokens = spec.count("max_tokens") or model.max_seq_length
    facts = {
        **card.to_dict(),
        "dims": model.get_embedding_dimension(),
        "max_tokens": max_tokens,
        "revision": card.revision or hub_revision(model, f"{spec.name}@main"),
    }
    return TorchTokenEncoder(model, Card(**facts), threads=spec.count("threads") or 1)
