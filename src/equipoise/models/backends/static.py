"""``static:``: the mean of one vector per token. model2vec folders, and WordLlama from its package."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import InputError, ParameterError, ShapeError
from equipoise.io.dataset import file_sha256
from equipoise.models.backends.model_files import ModelFolder, find_packaged_model, read_safetensors
from equipoise.models.encoder import EncodedBatch, Encoder, LocalEncoder, ModelCard, Vectors, l2_normalize
from equipoise.models.registry import ModelSpec, as_path
from equipoise.models.tokenizers import TruncatingTokenizer

if TYPE_CHECKING:
    from equipoise.models.encoder import Role

OPTIONS = ("max_tokens",)
MODEL2VEC_WINDOW = 512
"""The default of model2vec."""

_ROW_BATCH = 4096


@dataclass(frozen=True, slots=True)
class TokenEmbeddingTable:
    """A vector for each token; ``weights`` and ``mapping`` are of models with a quantised vocabulary."""

    vectors: Vectors
    weights: Vectors | None = None
    mapping: NDArray[Any] | None = None

    def rows(self, ids: NDArray[np.int64]) -> Vectors:
        """The weighted vectors of tokens."""
        rows = self.vectors[ids if self.mapping is None else self.mapping[ids]]
        return rows if self.weights is None else rows * self.weights[ids, None]


class StaticEncoder(LocalEncoder):
    """The mean of the vectors of a text's tokens; unknown tokens are left out if the model does so."""

    block_texts = 4096

    def __init__(
        self,
        table: TokenEmbeddingTable,
        window: TruncatingTokenizer,
        card: ModelCard,
        *,
        unknown: int | None,
        unit_length: bool,
    ) -> None:
        self.card = card
        self.normalizes = unit_length
        self.identity = f"static {card.revision} unit={unit_length} window={window.max_tokens}"
        self._table = table
        self._window = window
        self._unknown = unknown
        self._unit = unit_length

    def encode_counted(self, texts: Sequence[str], role: Role) -> EncodedBatch:
        """Tokenise, gather, average."""
        cut = self._window.cut(texts)
        token_ids = cut.ids
        if self._unknown is not None:
            token_ids = [[token for token in ids if token != self._unknown] for ids in token_ids]
        lengths = np.fromiter(map(len, token_ids), np.int64, len(token_ids))
        if not lengths.all():
            empty_text = texts[int(np.argmin(lengths))]
            raise InputError(
                f"the vocabulary contains no token of the text {empty_text[:60]!r}",
                hint="leave the text out, or use another model",
            )
        means = self._means(token_ids, lengths)
        return EncodedBatch(l2_normalize(means) if self._unit else means, cut.counts)

    def token_counts(self, texts: Sequence[str]) -> list[int] | None:
        """Lengths in tokens of the model."""
        return self._window.cut(texts).counts

    def _means(self, ids: list[list[int]], lengths: NDArray[np.int64]) -> Vectors:
        """One sum per text, in a quarter of the time of ``reduceat``; long texts are summed in parts."""
        out = np.zeros((len(ids), self._table.vectors.shape[1]), dtype=np.float32)
        for total, token_ids in zip(out, ids, strict=True):
            for start in range(0, len(token_ids), _ROW_BATCH):
                total += self._table.rows(np.array(token_ids[start : start + _ROW_BATCH])).sum(axis=0)
        out /= lengths[:, None].astype(np.float32)
        return out


def load(spec: ModelSpec) -> Encoder:
    """WordLlama, or the model2vec model of a folder."""
    if spec.name == "wordllama":
        return _wordllama(spec)
    if not spec.name:
        raise ParameterError("static: names no model", hint="write static:FOLDER, or wordllama")
    return _model2vec(spec)


def _wordllama(spec: ModelSpec) -> Encoder:
    folder = find_packaged_model("wordllama")
    arrays = read_safetensors(folder.path("weights/l2_supercat_256.safetensors"))
    table = TokenEmbeddingTable(np.asarray(next(iter(arrays.values())), dtype=np.float32))
    max_tokens = spec.count("max_tokens")
    window = TruncatingTokenizer.from_file(
        folder.path("tokenizers/l2_supercat_tokenizer_config.json"),
        max_tokens,
        threads=spec.count("threads") or 1,
        special=False,
    )
    card = ModelCard(
        folder.package.title,
        str(spec),
        dims=table.vectors.shape[1],
        max_tokens=max_tokens,
        licence=folder.package.licence,
        origin=folder.origin,
        revision=folder.revision,
    )
    return StaticEncoder(table, window, card, unknown=None, unit_length=False)


def _model2vec(spec: ModelSpec) -> Encoder:
    folder = ModelFolder.open(as_path(spec.name))
    weights = folder.first("model.safetensors", "0_StaticEmbedding/model.safetensors")
    tokenizer = folder.first("tokenizer.json", "0_StaticEmbedding/tokenizer.json")
    if weights is None or tokenizer is None:
        missing = "weights (model.safetensors)" if weights is None else "tokenizer (tokenizer.json)"
        raise InputError(f"{folder.path} holds no {missing}", hint="save the model again")
    config = folder.config()
    window = TruncatingTokenizer.from_file(
        tokenizer,
        spec.count("max_tokens") or int(config.get("max_length") or MODEL2VEC_WINDOW),
        threads=spec.count("threads") or 1,
        special=False,
    )
    table = _table(weights)
    card = ModelCard(
        folder.path.name,
        str(spec),
        dims=table.vectors.shape[1],
        max_tokens=window.max_tokens,
        origin=f"folder {folder.path}",
        revision=f"sha256:{file_sha256(weights)} settings:{folder.settings()}",
    )
    unit_length = bool(config.get("normalize", folder.normalizes()))
    unknown = _unknown_token(folder, tokenizer)
    return StaticEncoder(table, window, card, unknown=unknown, unit_length=unit_length)


def _table(path: Path) -> TokenEmbeddingTable:
    arrays = read_safetensors(path)
    vectors = arrays.get("embeddings", arrays.get("embedding.weight"))
    if vectors is None or vectors.ndim != 2:
        raise ShapeError(f"{path} holds no table of token vectors called embeddings")
    weights = arrays.get("weights")
    return TokenEmbeddingTable(
        np.asarray(vectors, dtype=np.float32),
        None if weights is None else np.asarray(weights, dtype=np.float32),
        arrays.get("mapping"),
    )


def _unknown_token(folder: ModelFolder, tokenizer: Path) -> int | None:
    """The id of the token for words outside the vocabulary."""
    model = folder.json(str(tokenizer.relative_to(folder.path))).get("model", {})
    name, vocabulary = model.get("unk_token"), model.get("vocab")
    if isinstance(vocabulary, dict):
        token_id = vocabulary.get(name)
        return None if token_id is None else int(token_id)
    token_id = model.get("unk_id")
    return None if token_id is None else int(token_id)
