"""``onnx:``: a folder with model.onnx and tokenizer.json, or with the weights of a BERT, through onnxruntime.

No torch is needed. ``minilm`` and ``minilm-int8`` name models in packages.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import InputError, ParameterError
from equipoise.geometry.gpu_search import has_cuda_device
from equipoise.io.dataset import file_sha256
from equipoise.models.backends.model_files import PACKAGES, ModelFolder, find_packaged_model, read_safetensors
from equipoise.models.backends.onnx_bert import HIDDEN, IDS, LENGTHS, BertConfig, bert_graph, serialize_bert
from equipoise.models.encode_texts import token_batches
from equipoise.models.encoder import EncodedBatch, Encoder, LocalEncoder, ModelCard, Role, Vectors, l2_normalize
from equipoise.models.registry import ModelSpec, as_path
from equipoise.models.tokenizers import TruncatingTokenizer
from equipoise.progress import report_share
from equipoise.types import require_extra

OPTIONS = ("pooling", "max_tokens", "batch_tokens", "device", "precision")
PRECISIONS = ("float32", "int8")
BATCH_TOKENS = 384
"""Padded tokens run at once: enough to keep the processor busy, few enough to fit in its cache."""

Ids = NDArray[np.int32]
Forward = Callable[[Ids, Ids], Vectors]
"""From token ids and the length of each row to (texts, tokens, dims), or to (texts, dims) when pooled."""


@dataclass(frozen=True, slots=True)
class OnnxSession:
    """A loaded graph; ``batch_tokens`` is 0 where a vector would depend on its neighbours."""

    forward: Forward
    weights: str
    batch_tokens: int
    dims: int | None = None
    int8: bool = False


class OnnxEncoder(LocalEncoder):
    """A transformer run by onnxruntime, pooled to one vector per text."""

    block_texts = 128

    def __init__(
        self,
        engine: OnnxSession,
        window: TruncatingTokenizer,
        card: ModelCard,
        *,
        pooling: str,
        unit_length: bool,
        pad: int,
    ):
        self.card = card
        self.normalizes = unit_length
        precision = " int8" if engine.int8 else ""
        self.identity = f"onnx {card.revision} {pooling} unit={unit_length} window={window.max_tokens}{precision}"
        self._engine = engine
        self._window = window
        self._pool = _POOLINGS[pooling]
        self._unit = unit_length
        self._pad = pad

    def encode_counted(self, texts: Sequence[str], role: Role) -> EncodedBatch:
        """Tokenise once, run batches of similar length, pool."""
        cut = self._window.cut(texts)
        rows: list[Vectors] = [np.empty(0, np.float32)] * len(texts)
        lengths = [len(ids) for ids in cut.ids]
        n_done, n_tokens = 0, sum(lengths)
        for batch in token_batches(lengths, self._engine.batch_tokens):
            vectors = self._run([cut.ids[index] for index in batch])
            for index, vector in zip(batch, vectors, strict=True):
                rows[index] = vector
            n_done += sum(lengths[index] for index in batch)
            report_share(n_done, n_tokens)
        return EncodedBatch(np.stack(rows), cut.counts)

    def token_counts(self, texts: Sequence[str]) -> list[int] | None:
        """Lengths in tokens of the model, special tokens included."""
        return self._window.cut(texts).counts

    def _run(self, batch: list[list[int]]) -> Vectors:
        lengths = np.fromiter(map(len, batch), np.int32, len(batch))
        ids = np.full((len(batch), int(lengths.max())), self._pad, dtype=np.int32)
        for row, tokens in zip(ids, batch, strict=True):
            row[: len(tokens)] = tokens
        out = self._engine.forward(ids, lengths)
        pooled = out if out.ndim == 2 else self._pool(out, lengths)
        return l2_normalize(pooled) if self._unit else pooled


def load(spec: ModelSpec) -> Encoder:
    """The model of a folder, or one in a package; MiniLM runs in torch if there is a GPU."""
    if spec.name == "minilm" and _runs_on_gpu(spec):
        from equipoise.models.backends.sentence_transformers import load_packaged_minilm

        return load_packaged_minilm(spec)
    _require_cpu(spec)
    if spec.name in PACKAGES and spec.name.startswith("minilm"):
        return _load_packaged(spec)
    if not spec.name:
        raise ParameterError("onnx: names no model", hint="write onnx:FOLDER, or minilm")
    folder = ModelFolder.open(as_path(spec.name))
    graph = folder.first("model.onnx", "onnx/model.onnx")
    weights = folder.first("model.safetensors")
    if graph is None and weights is None:
        raise InputError(
            f"{folder.path} holds no weights: neither model.onnx nor model.safetensors",
            hint="name the folder that the model was saved or exported to",
        )
    if folder.first("tokenizer.json") is None:
        raise InputError(
            f"{folder.path} holds no tokenizer: tokenizer.json is missing",
            hint="save the model's tokenizer into the folder",
        )
    engine = _from_bert(folder, spec) if graph is None else _from_graph(graph, spec)
    revision = f"{engine.weights} settings:{folder.settings()}"
    card = ModelCard(folder.path.name, str(spec), origin=f"folder {folder.path}", revision=revision)
    return _encoder(spec, folder, engine, card)


def _runs_on_gpu(spec: ModelSpec) -> bool:
    """Whether a GPU was requested, or there is one, with torch to use it, and the processor was not requested."""
    if "device" in spec.options or _is_int8(spec):
        return spec.options.get("device", "cpu") != "cpu"
    return find_spec("torch") is not None and find_spec("sentence_transformers") is not None and has_cuda_device()


def _require_cpu(spec: ModelSpec) -> None:
    """onnxruntime runs on the processor, in float32, or in int8 where the processor multiplies it exactly."""
    if spec.options.get("device", "cpu") != "cpu" or spec.options.get("precision", "float32") not in PRECISIONS:
        raise ParameterError(
            f"{spec} runs on the CPU, in float32 or int8", hint="st:FOLDER,device=cuda runs a model on a GPU"
        )
    if _is_int8(spec) and not has_int8_products():
        raise ParameterError(f"{spec} needs a CPU with VNNI or dotprod instructions", hint="leave precision out")


def _is_int8(spec: ModelSpec) -> bool:
    return spec.options.get("precision") == "int8"


@cache
def has_int8_products() -> bool:
    """Without these instructions, sums of two products are rounded to 16 bits."""
    try:
        flags = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.machine().casefold() in ("arm64", "aarch64")
    return "vnni" in flags or "asimddp" in flags


def _load_packaged(spec: ModelSpec) -> Encoder:
    """MiniLM; the int8 package has no tokenizer, so that of the other package is used."""
    base = find_packaged_model("minilm", wanted_by=spec.name)
    weights = base if spec.name == "minilm" else find_packaged_model(spec.name)
    folder = ModelFolder.open(base.folder / "model")
    if spec.name == "minilm":
        engine = _from_bert(folder, spec, digest=weights.revision)
    else:
        engine = _from_graph(weights.path("model.onnx"), spec, digest=weights.revision)
    package = weights.package
    card = ModelCard(
        package.title,
        str(spec),
        licence=package.licence,
        origin=weights.origin,
        revision=weights.revision,
        note="English",
    )
    return _encoder(spec, folder, engine, card)


def _encoder(spec: ModelSpec, folder: ModelFolder, engine: OnnxSession, card: ModelCard) -> Encoder:
    pooling = spec.options.get("pooling") or folder.pooling() or "mean"
    if pooling not in _POOLINGS:
        raise ParameterError(f"pooling is {pooling!r} in {spec}", hint=f"it is one of {', '.join(_POOLINGS)}")
    max_tokens = spec.count("max_tokens") or folder.max_tokens()
    tokenizer = folder.path / "tokenizer.json"
    window = TruncatingTokenizer.from_file(tokenizer, max_tokens, threads=spec.count("threads") or 1)
    dims = engine.dims or _probe_dims(engine)
    card = replace(card, dims=dims, max_tokens=max_tokens, device="cpu (int8)" if engine.int8 else "")
    return OnnxEncoder(engine, window, card, pooling=pooling, unit_length=folder.normalizes(), pad=folder.pad_id())


def _probe_dims(engine: OnnxSession) -> int:
    """The dimensions of a graph that does not declare them."""
    out = engine.forward(np.zeros((1, 1), np.int32), np.ones(1, np.int32))
    return int(out.shape[-1])


def _from_graph(path: Path, spec: ModelSpec, *, digest: str = "") -> OnnxSession:
    """A model.onnx as it is: inputs by their usual names, the output of token or text vectors."""
    if _is_int8(spec):
        raise ParameterError(f"{path} has its own precision", hint="leave precision out")
    session = _session(spec, str(path))
    names = {tensor.name: tensor.type for tensor in session.get_inputs()}
    if "input_ids" not in names:
        raise InputError(f"{path} has no input called input_ids", hint=f"its inputs are {', '.join(names)}")
    outputs = [tensor.name for tensor in session.get_outputs()]
    output = next((name for name in ("sentence_embedding", "last_hidden_state") if name in outputs), outputs[0])

    def forward(ids: Ids, lengths: Ids) -> Vectors:
        mask = np.arange(ids.shape[1]) < lengths[:, None]
        inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        feed = {name: inputs[name].astype(_DTYPES[kind]) for name, kind in names.items() if name in inputs}
        return np.asarray(session.run([output], feed)[0], dtype=np.float32)

    # Activations are quantised by the range of the batch: with a batch of one, vectors do not influence each other.
    depends = b"DynamicQuantize" in path.read_bytes()
    tokens = 0 if depends else spec.count("batch_tokens") or BATCH_TOKENS
    return OnnxSession(forward, digest or f"sha256:{file_sha256(path)}", tokens)


def _from_bert(folder: ModelFolder, spec: ModelSpec, *, digest: str = "") -> OnnxSession:
    """The weights of a BERT, in a graph built here."""
    path = folder.path / "model.safetensors"
    shape = BertConfig.of(folder.config(), str(folder.path))
    arrays = read_safetensors(path)
    weights = {name.removeprefix("bert."): np.asarray(array, np.float32) for name, array in arrays.items()}
    try:
        graph = bert_graph(weights, shape, int8=_is_int8(spec))
    except KeyError as error:
        raise InputError(f"{path} lacks the weights {error.args[0]}", hint="save the model again") from error
    session = _session(spec, serialize_bert(graph, shape), outside=graph.outside)

    def forward(ids: Ids, lengths: Ids) -> Vectors:
        # The arrays of the graph belong to Python: the closure keeps them as long as the session exists.
        _ = graph
        return np.asarray(session.run([HIDDEN], {IDS: ids, LENGTHS: lengths})[0])

    tokens = spec.count("batch_tokens") or BATCH_TOKENS
    return OnnxSession(forward, digest or f"sha256:{file_sha256(path)}", tokens, shape.dims, _is_int8(spec))


def _session(spec: ModelSpec, model: str | bytes, *, outside: dict[str, NDArray[Any]] | None = None) -> Any:
    engine = require_extra("onnxruntime", extra="local")
    options = engine.SessionOptions()
    options.intra_op_num_threads = spec.count("threads") or 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    if outside:
        options.graph_optimization_level = engine.GraphOptimizationLevel.ORT_DISABLE_ALL
        values = [engine.OrtValue.ortvalue_from_numpy(array) for array in outside.values()]
        options.add_external_initializers(list(outside), values)
    try:
        return engine.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # the engine's errors share no base class that it exports
        subject = model if isinstance(model, str) else "the graph"
        reason = str(error).splitlines()[0]
        raise InputError(f"{subject} cannot be run by onnxruntime: {reason}", hint="export it again") from error


def _mean(tokens: Vectors, lengths: Ids) -> Vectors:
    mask = (np.arange(tokens.shape[1]) < lengths[:, None]).astype(np.float32)
    sums = np.matmul(mask[:, None, :], tokens)[:, 0, :]
    return np.asarray(sums / lengths[:, None].astype(np.float32))


def _first(tokens: Vectors, lengths: Ids) -> Vectors:
    return tokens[:, 0, :]


def _largest(tokens: Vectors, lengths: Ids) -> Vectors:
    outside = np.arange(tokens.shape[1]) >= lengths[:, None]
    return np.asarray(np.where(outside[:, :, None], np.float32(-np.inf), tokens).max(axis=1))


_POOLINGS: dict[str, Callable[[Vectors, Ids], Vectors]] = {"mean": _mean, "cls": _first, "max": _largest}
_DTYPES = {"tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(float)": np.float32}
