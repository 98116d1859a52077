"""Rerankers on sentence-transformers: ``cross-encoder:``, and ``maxsim:`` with late interaction."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

import numpy as np

from equipoise.errors import InputError, ParameterError, check_options
from equipoise.models.backends.model_files import ModelFolder, find_packaged_model
from equipoise.models.backends.python_object import object_name
from equipoise.models.backends.sentence_transformers import hub_revision, loading, torch_threads, weights_digest
from equipoise.models.encode_texts import split_by_size, token_batches
from equipoise.models.encoder import ModelCard, Vectors, l2_normalize
from equipoise.models.registry import BY_ALIAS, ModelSpec
from equipoise.models.rerank import Reranker
from equipoise.models.retriever import content_fingerprint
from equipoise.progress import ignore_shares, portion, report_share
from equipoise.types import Floats, require_extra

CROSS_ENCODER_OPTIONS = ("revision", "device", "trust_remote_code", "max_tokens", "batch", "threads")
CROSS_ENCODER_BATCH_SIZE = 32
KEPT_BYTES = 512 * 2**20
"""The memory for token vectors of documents that later queries may need again."""
OFFLINE_RERANKER = "maxsim:minilm needs no network"


class CrossEncoderReranker(Reranker):
    """The logit of a model with one label. A sigmoid would round the best ones to the same 1.0."""

    pairwise = True

    def __init__(
        self, load: Callable[[], Any], card: ModelCard, *, batch: int = CROSS_ENCODER_BATCH_SIZE, threads: int = 1
    ) -> None:
        self._load, self._card, self._batch, self._threads = load, card, batch, threads

    @cached_property
    def _model(self) -> Any:
        """The model, loaded at the first pair that has no cached score."""
        return self._load()

    @classmethod
    def from_spec(cls, spec: ModelSpec) -> CrossEncoderReranker:
        """From ``cross-encoder:NAME`` on the hub or ``cross-encoder:FOLDER``."""
        check_options("cross-encoder:", spec.options, CROSS_ENCODER_OPTIONS)
        spec.check_values()
        if not spec.name:
            raise ParameterError("cross-encoder: names no model", hint="write cross-encoder:NAME or a folder")
        options = {"batch": spec.count("batch") or CROSS_ENCODER_BATCH_SIZE, "threads": spec.count("threads") or 1}
        folder = ModelFolder.named(spec.name)
        if folder is None:
            model = _load_cross_encoder(spec, spec.name, spec.count("max_tokens"))
            revision = hub_revision(model, f"{spec.name}@{spec.options.get('revision', 'main')}")
            card = ModelCard(
                spec.name, str(spec), max_tokens=model.max_seq_length, origin="Hugging Face hub", revision=revision
            )
            return cls(lambda: model, card, **options)
        folder.require_no_code(trusted=spec.flag("trust_remote_code", False))
        path, max_tokens = folder.path, spec.count("max_tokens") or folder.max_tokens()
        revision = weights_digest(folder)
        card = ModelCard(path.name, str(spec), max_tokens=max_tokens, origin=f"folder {path}", revision=revision)
        _check_one_label(path.name, _n_labels(folder.config()))
        return cls(lambda: _load_cross_encoder(spec, str(path), max_tokens, local=True), card, **options)

    @classmethod
    def of_model(cls, model: Any) -> CrossEncoderReranker:
        """From a ``CrossEncoder`` object. Its weights may change, so its fingerprint is new every time."""
        if not callable(getattr(model, "predict", None)) or not hasattr(model, "num_labels"):
            raise ParameterError(
                f"a {type(model).__name__} is not a reranker",
                hint="give a spec such as maxsim:minilm, or a CrossEncoder object",
            )
        name = object_name(model)
        window = getattr(model, "max_seq_length", None) or getattr(model, "max_length", None)
        card = ModelCard(name, f"py:{name}", max_tokens=window, origin="object", revision=f"object {uuid4().hex}")
        _check_one_label(name, int(model.num_labels))
        return cls(lambda: model, card)

    @property
    def card(self) -> ModelCard:
        """What is known of the model."""
        return self._card

    @property
    def fingerprint(self) -> str:
        """The weights and the window."""
        card = self._card
        return content_fingerprint("cross-encoder 1", card.revision, str(card.max_tokens))

    def score_many(self, queries: Sequence[str], documents: Sequence[Sequence[str]]) -> list[Floats]:
        """All pairs in one run of batches; the library groups texts of similar length."""
        pairs = [(query, text) for query, texts in zip(queries, documents, strict=True) for text in texts]
        if not pairs:
            return [np.empty(0) for _ in queries]
        torch = require_extra("torch", extra="st")
        with torch_threads(self._threads):
            logits = self._model.predict(
                pairs, batch_size=self._batch, show_progress_bar=False, activation_fn=torch.nn.Identity()
            )
        scores = np.asarray(logits, dtype=np.float64).reshape(len(pairs))
        return np.split(scores, np.cumsum([len(texts) for texts in documents])[:-1])


def _n_labels(config: Mapping[str, Any]) -> int:
    """The number of labels; a configuration without names has two, and a model that does not classify gets one."""
    classifies = any(name.endswith("ForSequenceClassification") for name in config.get("architectures") or ())
    return len(config.get("id2label") or ("", "")) if classifies else 1


def _check_one_label(name: str, labels: int) -> None:
    if labels != 1:
        raise InputError(
            f"{name} has {labels} labels; a reranker gives one number", hint="use a model that was trained to rank"
        )


def _load_cross_encoder(spec: ModelSpec, name: str, max_tokens: int | None, *, local: bool = False) -> Any:
    engine = require_extra("sentence_transformers", extra="st")
    trusted_spec = f"cross-encoder:{spec.name},trust_remote_code=true"
    with loading(name, from_hub=not local, offline=OFFLINE_RERANKER, trusted_spec=trusted_spec):
        model = engine.CrossEncoder(
            name,
            device=spec.options.get("device", "cpu"),
            revision=spec.options.get("revision"),
            trust_remote_code=spec.flag("trust_remote_code", False),
        )
    _check_one_label(name, int(model.num_labels))
    if max_tokens is not None:
        model.max_seq_length = max_tokens
    return model


# MaxSim: the sum over query tokens of the similarity to the nearest document token.

_MAX_CHARACTERS = 1 << 21
"""Documents whose token vectors are held at a time: some 500,000 tokens, under a GB for 384 dimensions."""


class TokenEncoder(Protocol):
    """What late interaction needs of a model: a vector for each token of a text, without special tokens."""

    card: ModelCard
    identity: str

    def token_vectors(self, texts: Sequence[str]) -> list[Vectors]:
        """One array (tokens, dims) per text."""


class MaxSimReranker(Reranker):
    """The mean over the query's tokens of the largest cosine with a token of the document; in [-1, 1]."""

    pairwise = True

    def __init__(self, encoder: TokenEncoder) -> None:
        self._encoder = encoder
        self._kept: dict[str, Vectors] = {}
        self._kept_bytes = 0

    @classmethod
    def from_spec(cls, spec: ModelSpec) -> MaxSimReranker:
        """From ``maxsim:``, which takes MiniLM, or ``maxsim:NAME``."""

        return cls(load_token_encoder(spec))

    @property
    def card(self) -> ModelCard:
        """What is known of the model."""
        card = self._encoder.card
        return replace(card, name=f"MaxSim of {card.name}", note="late interaction of tokens")

    @property
    def fingerprint(self) -> str:
        """The model's identity."""
        return content_fingerprint("maxsim 1", self._encoder.identity)

    def score_many(self, queries: Sequence[str], documents: Sequence[Sequence[str]]) -> list[Floats]:
        """Each distinct document of a group of queries is embedded once; the first ones are kept for later calls."""
        with ignore_shares():
            query_vectors = _normalized_rows(self._encoder, list(dict.fromkeys(queries)))
        scores: list[Floats] = []
        for group in _document_groups(documents):
            with portion(group.start / len(documents), group.stop / len(documents)):
                document_vectors = self._document_vectors(
                    list(dict.fromkeys(text for texts in documents[group] for text in texts))
                )
            for query, texts in zip(queries[group], documents[group], strict=True):
                scores.append(_max_sims(query_vectors[query], [document_vectors[text] for text in texts]))
        return scores

    def _document_vectors(self, texts: list[str]) -> dict[str, Vectors]:
        """The token vectors of documents; those of several models that are reranked are mostly the same."""
        new = _normalized_rows(self._encoder, [text for text in texts if text not in self._kept])
        vectors = {text: self._kept[text] if text in self._kept else new[text] for text in texts}
        for text, rows in new.items():
            if self._kept_bytes + rows.nbytes <= KEPT_BYTES:
                self._kept[text] = rows
                self._kept_bytes += rows.nbytes
        return vectors


def _max_sims(query: Vectors, documents: Sequence[Vectors]) -> Floats:
    """One product with the tokens of all documents, then the maximum over those of each."""
    if not documents:
        return np.empty(0)
    lengths = np.array([len(document) for document in documents])
    if len(query) == 0:
        return np.zeros(len(documents))
    # A document without tokens gets a zero vector, whose cosine with any other is 0.
    filled = [document if len(document) else np.zeros((1, query.shape[1]), np.float32) for document in documents]
    starts = np.cumsum(np.maximum(lengths, 1)) - np.maximum(lengths, 1)
    cosines = query @ np.concatenate(filled).T
    largest: Any = np.maximum.reduceat(cosines, starts, axis=1)
    return largest.mean(axis=0, dtype=np.float64)


def _normalized_rows(encoder: TokenEncoder, texts: list[str]) -> dict[str, Vectors]:
    return (
        {text: l2_normalize(vectors) for text, vectors in zip(texts, encoder.token_vectors(texts), strict=True)}
        if texts
        else {}
    )


def _document_groups(documents: Sequence[Sequence[str]]) -> Iterator[slice]:
    """Slices of queries whose documents fit in memory."""
    sizes = [sum(map(len, texts)) for texts in documents]
    for group in split_by_size(range(len(documents)), sizes.__getitem__, len(documents), _MAX_CHARACTERS):
        yield slice(group[0], group[-1] + 1)


# Token vectors of a sentence-transformers model before pooling.

TOKEN_ENCODER_OPTIONS = ("max_tokens", "threads")
BATCH_TOKENS = 4096


class TorchTokenEncoder:
    """The last hidden state of a transformer, without its special tokens."""

    def __init__(self, load: Callable[[], Any], card: ModelCard, *, threads: int = 1) -> None:
        self.card = card
        self.identity = f"tokens {card.revision} window={card.max_tokens}"
        self._load, self._max_tokens, self._threads = load, card.max_tokens, threads

    @cached_property
    def _model(self) -> Any:
        """The model, loaded at the first text."""
        return self._load()

    def token_vectors(self, texts: Sequence[str]) -> list[Vectors]:
        """One array (tokens, dims) per text; tokens beyond the window have no vectors."""
        torch = require_extra("torch", extra="st")
        tokenizer, transformer = self._model.tokenizer, self._model[0].auto_model
        ids = tokenizer(
            list(texts), truncation=self._max_tokens is not None, max_length=self._max_tokens,
            return_special_tokens_mask=True,
        )  # fmt: skip
        special = ids.pop("special_tokens_mask")
        token_vectors: list[Vectors] = [np.empty((0, 0), np.float32)] * len(texts)
        lengths = [len(row) for row in ids["input_ids"]]
        n_done, n_tokens = 0, sum(lengths)
        with torch_threads(self._threads), torch.inference_mode():
            for batch in token_batches(lengths, BATCH_TOKENS):
                padded = tokenizer.pad(
                    {name: [rows[index] for index in batch] for name, rows in ids.items()},
                    return_tensors="pt",
                )
                hidden = transformer(**padded).last_hidden_state.float().numpy()
                for vectors, index in zip(hidden, batch, strict=True):
                    token_rows = np.flatnonzero(np.array(special[index]) == 0)
                    token_vectors[index] = vectors[token_rows]
                n_done += sum(lengths[index] for index in batch)
                report_share(n_done, n_tokens)
        return token_vectors


def load_token_encoder(spec: ModelSpec) -> TorchTokenEncoder:
    """The packaged MiniLM where no other is named, a folder, or a model of the hub."""
    check_options(f"{spec.kind}:", spec.options, TOKEN_ENCODER_OPTIONS)
    spec.check_values()
    minilm = BY_ALIAS["minilm"]
    if spec.name in ("", minilm.alias, minilm.hub):
        weights = find_packaged_model("minilm")
        card = ModelCard(
            weights.package.title,
            f"{spec.kind}:minilm",
            licence=weights.package.licence,
            origin=weights.origin,
            revision=weights.revision,
        )
        return _torch_token_encoder(ModelFolder.open(weights.folder / "model"), spec, card)
    folder = ModelFolder.named(spec.name)
    if folder is not None:
        folder.require_no_code(trusted=False)
        origin = f"folder {folder.path}"
        card = ModelCard(folder.path.name, str(spec), origin=origin, revision=weights_digest(folder))
        return _torch_token_encoder(folder, spec, card)
    model = _load_sentence_transformer(None, spec)
    card = ModelCard(
        spec.name,
        str(spec),
        dims=model.get_embedding_dimension(),
        max_tokens=spec.count("max_tokens") or model.max_seq_length,
        origin="Hugging Face hub",
        revision=hub_revision(model, f"{spec.name}@main"),
    )
    return TorchTokenEncoder(lambda: model, card, threads=spec.count("threads") or 1)


def _torch_token_encoder(folder: ModelFolder, spec: ModelSpec, card: ModelCard) -> TorchTokenEncoder:
    """The encoder of a folder; the model is loaded at the first text."""
    max_tokens = spec.count("max_tokens") or folder.max_tokens()
    card = replace(card, dims=folder.config().get("hidden_size"), max_tokens=max_tokens)
    load = partial(_load_sentence_transformer, folder.path, spec)
    return TorchTokenEncoder(load, card, threads=spec.count("threads") or 1)


def _load_sentence_transformer(folder: Path | None, spec: ModelSpec) -> Any:
    engine = require_extra("sentence_transformers", extra="st")
    name = str(folder or spec.name)
    with loading(name, from_hub=folder is None, offline=OFFLINE_RERANKER):
        return engine.SentenceTransformer(name, device="cpu")
