"""``st:``: sentence-transformers, from a folder or by its name on the hub."""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import InputError, MissingExtraError, ParameterError
from equipoise.io.dataset import file_sha256
from equipoise.models.backends.model_files import ModelFolder, find_packaged_model, is_installed, prompts_by_role
from equipoise.models.encoder import EncodedBatch, Encoder, LocalEncoder, ModelCard, Role, Vectors
from equipoise.models.registry import BY_HUB_NAME, ModelSpec
from equipoise.models.tokenizers import TruncatingTokenizer
from equipoise.models.worker_pool import WorkerPool
from equipoise.progress import report_share
from equipoise.types import require_extra

CPU_BATCH_TOKENS, GPU_BATCH_TOKENS = 4096, 1 << 17
"""Tokens of one batch, padding included: what the caches of a core hold, and what fills a large GPU."""

PIECE_CHARACTERS = 1 << 15
"""Texts that one process tokenises at a time: about 10 ms of work."""

MIN_POOL_CHARACTERS = 1 << 20
"""Fewer characters than this are tokenised before processes have started."""

BLOCKS_AHEAD, BLOCKS_RUNNING = 4, 2
"""Blocks whose tokens are made ahead of the device, and blocks that are queued on it."""

MIN_COSINE = 0.9999
"""A lower precision is used only if every probe text keeps this cosine to its float32 vector."""

PROBE_TEXTS = (
    "Short text",
    "A longer sentence, with Capitals, numbers such as 3.14159 and an abbreviation (e.g. DNA).",
    "Größe, naïve café, 東京, привет: words of several languages in one text.",
    "The boiling point of a liquid depends on the pressure of the surrounding gas. " * 12,
)


@dataclass(frozen=True, slots=True)
class TokenBlock:
    """The token ids of some texts, one text after another; lengths after, and counts before truncation."""

    ids: NDArray[np.int32]
    lengths: NDArray[np.int64]
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, window: TruncatingTokenizer, texts: Sequence[str]) -> TokenBlock:
        """Tokenise the texts."""
        cut = window.cut(texts)
        lengths = np.fromiter(map(len, cut.ids), np.int64, len(cut.ids))
        ids = np.fromiter(chain.from_iterable(cut.ids), np.int32, int(lengths.sum()))
        return cls(ids, lengths, np.array(cut.counts, dtype=np.int64))

    @classmethod
    def joined(cls, blocks: Sequence[TokenBlock]) -> TokenBlock:
        """Several blocks as one."""
        return cls(
            np.concatenate([block.ids for block in blocks]),
            np.concatenate([block.lengths for block in blocks]),
            np.concatenate([block.counts for block in blocks]),
        )

    def batches(self, max_tokens: int) -> Iterator[slice]:
        """Parts of the texts, which are ordered by length; padded, a part has at most ``max_tokens``."""
        start = 0
        while start < len(self.lengths):
            size = max(1, max_tokens // max(1, int(self.lengths[start])))
            yield slice(start, start + size)
            start += size

    def longest_first(self) -> tuple[TokenBlock, NDArray[np.int64], NDArray[np.int64]]:
        """The block with its lengths in descending order, the texts in that order, and where their ids begin."""
        order = np.argsort(-self.lengths, kind="stable")
        starts = np.cumsum(self.lengths) - self.lengths
        return TokenBlock(self.ids, self.lengths[order], self.counts), order, starts[order]


@dataclass(frozen=True)
class TokenizerJob:
    """The content of a ``tokenizer.json`` and the window, for a tokenizing process."""

    content: str
    max_tokens: int | None

    def open(self) -> tuple[None, Any]:
        """Load the tokenizer; the function takes texts and returns their tokens."""
        os.environ["TOKENIZERS_PARALLELISM"] = "false"
        engine = require_extra("tokenizers", extra="st")
        # More than one thread is the batch call of the library, which is faster also without its thread pool.
        window = TruncatingTokenizer(engine.Tokenizer.from_str(self.content), self.max_tokens, threads=2)
        return None, lambda texts: TokenBlock.of(window, texts)


class TokenRunner:
    """The modules of a model, called with token ids.

    ``pad`` is the id of padding; attention ignores it. The vectors are those of the library's ``encode``:
    ``agrees`` checks that once, and models with other inputs are left to the library.
    """

    def __init__(self, model: Any, window: TruncatingTokenizer, tokenizer: Any) -> None:
        self._model = model
        self._window = window
        self._tokenizer = tokenizer
        self._pad = int(getattr(model.tokenizer, "pad_token_id", None) or 0)
        self._types = "token_type_ids" in getattr(model.tokenizer, "model_input_names", ())
        self._pool: WorkerPool | None = None

    @property
    def on_gpu(self) -> bool:
        """Whether the model is on a CUDA device."""
        return bool(self._model.device.type == "cuda")

    def agrees(self) -> bool:
        """Whether the vectors of the probe texts are those of the library."""
        try:
            expected = self._model.encode(list(PROBE_TEXTS), prompt="", show_progress_bar=False)
            vectors = self.encode(PROBE_TEXTS).vectors
        except Exception:  # a model with other inputs may raise anything
            return False
        return vectors.shape == expected.shape and bool(np.allclose(vectors, expected, rtol=1e-3, atol=1e-4))

    def lower_precision(self) -> str:
        """Set the weights to float16 or bfloat16 if the probe texts keep their vectors; returns the precision."""
        import torch

        full = self.encode(PROBE_TEXTS).vectors
        for precision in ("float16", "bfloat16"):
            self._model.to(getattr(torch, precision))
            if _least_cosine(full, self.encode(PROBE_TEXTS).vectors) >= MIN_COSINE:
                return precision
            self._model.to(torch.float32)
        return "float32"

    def encode(self, texts: Sequence[str]) -> EncodedBatch:
        """One row per text, in order."""
        return self._finish(self._launch(TokenBlock.of(self._window, texts)))

    def encode_blocks(self, blocks: Iterable[list[str]]) -> Iterator[tuple[int, EncodedBatch]]:
        """Blocks in order: while one is on the device, the tokens of the next ones are made."""
        numbered = enumerate(blocks)
        ahead: deque[tuple[int, list[Future[Any]]]] = deque()
        running: deque[tuple[int, _Running]] = deque()
        while True:
            while len(ahead) < BLOCKS_AHEAD and (item := next(numbered, None)) is not None:
                ahead.append((item[0], self._tokenize(item[1])))
            if ahead and len(running) < BLOCKS_RUNNING:
                number, pieces = ahead.popleft()
                running.append((number, self._launch(TokenBlock.joined([piece.result() for piece in pieces]))))
            elif running:
                number, batch = running.popleft()
                yield number, self._finish(batch)
            else:
                return

    def close(self) -> None:
        """End the tokenizing processes."""
        if self._pool is not None:
            self._pool.close()
            self._pool = None

    def _tokenize(self, texts: list[str]) -> list[Future[Any]]:
        if self._pool is None:
            job = TokenizerJob(self._tokenizer.to_str(), self._window.max_tokens)
            self._pool = WorkerPool(job, max(1, (os.cpu_count() or 2) - 1))
        pieces = max(1, sum(map(len, texts)) // PIECE_CHARACTERS)
        step = -(-len(texts) // pieces)
        return [self._pool.submit(texts[start : start + step]) for start in range(0, len(texts), step)]

    def _launch(self, tokens: TokenBlock) -> _Running:
        """Queue all batches of a block; on a GPU nothing is waited for."""
        import torch

        device = self._model.device
        tokens, order, starts = tokens.longest_first()
        ids = self._to_device(tokens.ids)
        order, starts, lengths = self._to_device(np.stack([order, starts, tokens.lengths]))
        rows: Any = None
        with torch.inference_mode():
            for batch in tokens.batches(GPU_BATCH_TOKENS if self.on_gpu else CPU_BATCH_TOKENS):
                token = torch.arange(int(tokens.lengths[batch.start]), device=device)
                present = token < lengths[batch, None]
                padded = ids[torch.where(present, starts[batch, None] + token, 0)].long()
                features = {"input_ids": padded.masked_fill(~present, self._pad), "attention_mask": present.long()}
                if self._types:
                    features["token_type_ids"] = torch.zeros_like(padded)
                vectors = self._model(features)["sentence_embedding"].float()
                if rows is None:
                    rows = torch.empty((len(tokens.lengths), vectors.shape[1]), dtype=torch.float32, device=device)
                rows[order[batch]] = vectors
                if not self.on_gpu:
                    report_share(batch.stop, len(tokens.lengths))
            if not self.on_gpu:
                return _Running(rows, tokens.counts, None)
            host = torch.empty(rows.shape, dtype=torch.float32, pin_memory=True)
            host.copy_(rows, non_blocking=True)
            done = torch.cuda.Event()  # type: ignore[no-untyped-call, unused-ignore]
            done.record()
            return _Running(host, tokens.counts, done)

    def _finish(self, running: _Running) -> EncodedBatch:
        if running.done is not None:
            running.done.synchronize()
        return EncodedBatch(running.rows.numpy(), running.counts.tolist())

    def _to_device(self, array: NDArray[Any]) -> Any:
        import torch

        tensor = torch.from_numpy(array)
        return tensor.pin_memory().to(self._model.device, non_blocking=True) if self.on_gpu else tensor


@dataclass(frozen=True, slots=True)
class _Running:
    """Vectors on their way to the host; they are there when ``done`` is."""

    rows: Any
    counts: NDArray[np.int64]
    done: Any


def _least_cosine(left: Vectors, right: Vectors) -> float:
    norms = np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1)
    cosines = np.einsum("ij,ij->i", left, right, dtype=np.float64) / norms
    return float(np.nan_to_num(cosines, nan=-1.0).min())


# Models of sentence-transformers.

# Shared by torch models: threads and progress bars for one call, and a hash of the weights.


@contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """Let torch use ``count`` threads inside the block; it has one number for the whole process."""
    torch = require_extra("torch", extra="st")
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def no_progress_bars() -> Iterator[None]:
    """Suppress progress bars while a model is loaded inside the block."""
    logging = require_extra("transformers.utils.logging", extra="st")
    was_enabled = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if was_enabled:
            logging.enable_progress_bar()


def weights_digest(folder: ModelFolder) -> str:
    """A digest of the weights; a folder without any is an error before a library tries the network."""
    files = sorted(file for kind in ("*.safetensors", "*.bin", "*.pt", "*.onnx") for file in folder.path.rglob(kind))
    if not files:
        raise InputError(
            f"{folder.path} holds no weights: no .safetensors or .bin file",
            hint="name the folder that the model was saved to",
        )
    return "sha256:" + "+".join(file_sha256(file) for file in files)


def hub_revision(model: Any, requested: str) -> str:
    """The commit that a model of the hub was loaded from, or the requested revision if it is unknown."""
    config = getattr(getattr(model[0], "auto_model", None), "config", None)
    return str(getattr(config, "_commit_hash", None) or requested)


# Load from the hub without progress bars, logs, or retries if it cannot be reached.

HUB_TIMEOUT_SECONDS = 10.0
"""Seconds that the hub has to answer at all."""


def _hub_is_reachable() -> bool:
    """Whether the hub responds, even with an error."""
    hub = require_extra("huggingface_hub", extra="st")
    try:
        hub.utils.get_session().head(hub.constants.ENDPOINT, timeout=HUB_TIMEOUT_SECONDS)
    except Exception:  # of httpx or of requests, as the version of the library has it
        return False
    return True


@contextmanager
def loading(name: str, *, from_hub: bool, offline: str, trusted_spec: str = "") -> Iterator[None]:
    """Load a model inside the block: without output, and with errors of the library as ours.

    The library requests every file six times, over more than 20 seconds, before it uses its cache. If the hub does
    not answer a first request, the cache is used at once. ``offline`` names the models that need no network,
    ``trusted_spec`` is the spec that allows custom code.
    """
    hub = require_extra("huggingface_hub", extra="st")
    log, constants = hub.utils.logging, hub.constants
    verbosity, was_offline = log.get_verbosity(), constants.HF_HUB_OFFLINE
    log.set_verbosity_error()
    try:
        if from_hub and not was_offline:
            constants.HF_HUB_OFFLINE = not _hub_is_reachable()
        with no_progress_bars():
            yield
    except Exception as error:  # hub, file and configuration problems have many types
        reason = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
        if trusted_spec and "trust_remote_code" in str(error):
            raise ParameterError(
                f"{name} contains custom code, which is not run without permission",
                hint=f"read that code; then write {trusted_spec}",
            ) from error
        if not from_hub:
            raise InputError(f"the model in {name} cannot be loaded: {reason}", hint="save the model again") from error
        raise MissingExtraError(
            f"{name} could not be loaded from the hub: {reason}",
            hint=f"check the name and the network, or name a folder; {offline}",
        ) from error
    finally:
        constants.HF_HUB_OFFLINE = was_offline
        log.set_verbosity(verbosity)


OPTIONS = ("revision", "device", "trust_remote_code", "max_tokens", "batch", "precision")
BATCH_SIZE = 32
"""Texts per batch where the library's own ``encode`` is used."""

PLAIN_MODULES = {"Transformer", "Pooling", "Dense", "LayerNorm", "Dropout", "Normalize"}
"""Modules that treat queries and documents equally and take nothing but tokens."""

GPU_BLOCK_TEXTS = 4096
PRECISIONS = ("float32", "float16", "bfloat16")


class SentenceTransformersEncoder(LocalEncoder):
    """A model of the library on token ids; models with other inputs are left to the library's ``encode``.

    ``threads`` of None leaves torch as it is. ``precision`` is that of the weights.
    """

    def __init__(
        self,
        model: Any,
        card: ModelCard,
        *,
        threads: int | None,
        batch: int = BATCH_SIZE,
        precision: str = "float32",
    ) -> None:
        self.prompts = prompts_by_role(
            getattr(model, "prompts", None) or {}, getattr(model, "default_prompt_name", None)
        )
        self.normalizes = any(type(module).__name__ == "Normalize" for module in model.children())
        self._model = model
        self._threads = threads
        self._batch = batch
        self._window = _window(model, card.max_tokens, threads or 1)
        # Models with a part for each role need the role; versions before 5 have no such models.
        self._calls = {
            Role.QUERY: getattr(model, "encode_query", model.encode),
            Role.DOCUMENT: getattr(model, "encode_document", model.encode),
        }
        with self._limited_threads():
            self._runner = _token_runner(model, self._window)
            if precision == "auto":
                precision = self._runner.lower_precision() if self._runner and self._runner.on_gpu else "float32"
        self.card = _with_device(card, model, precision)
        self.identity = f"st {card.revision} window={card.max_tokens}"
        if precision != "float32":
            self.identity += f" precision={precision}"
        if self._runner is not None and self._runner.on_gpu:
            self.block_texts = GPU_BLOCK_TEXTS
            self.pipelined = True

    def encode_counted(self, texts: Sequence[str], role: Role) -> EncodedBatch:
        """The prompt is in the text already, so the library must not add one."""
        with self._limited_threads():
            if self._runner is not None:
                return self._runner.encode(texts)
            heads = list(texts) if self._window is None else [self._window.head(text) for text in texts]
            vectors = self._calls[role](
                heads, batch_size=self._batch, prompt="", show_progress_bar=False, convert_to_numpy=True
            )
        return EncodedBatch(np.asarray(vectors, dtype=np.float32), self.token_counts(texts))

    def encode_blocks(self, blocks: Iterable[list[str]], role: Role) -> Iterator[tuple[int, EncodedBatch]]:
        """Blocks in order; on a GPU, other processes tokenise the next ones meanwhile."""
        if self._runner is None or not self._runner.on_gpu:
            return super().encode_blocks(blocks, role)
        listed = list(blocks)
        if sum(len(text) for texts in listed for text in texts) < MIN_POOL_CHARACTERS:
            return super().encode_blocks(listed, role)
        return self._runner.encode_blocks(listed)

    def token_counts(self, texts: Sequence[str]) -> list[int] | None:
        """Lengths by the tokenizer of the model, if it is available."""
        return None if self._window is None else self._window.cut(texts).counts

    def close(self) -> None:
        """End the tokenizing processes."""
        if self._runner is not None:
            self._runner.close()

    def _limited_threads(self) -> AbstractContextManager[None]:
        return nullcontext() if self._threads is None else torch_threads(self._threads)


def _token_runner(model: Any, window: TruncatingTokenizer | None) -> TokenRunner | None:
    """How to run the model on token ids, if that gives the vectors of the library."""
    modules = [type(module).__name__ for module in model.children()]
    has_plain_modules = modules[:1] == ["Transformer"] and set(modules) <= PLAIN_MODULES
    if window is None or not has_plain_modules or getattr(model, "truncate_dim", None):
        return None
    runner = TokenRunner(model, window, _backend_tokenizer(model))
    return runner if runner.agrees() else None


def _with_device(card: ModelCard, model: Any, precision: str) -> ModelCard:
    """The card with the device and the precision, if the device is not the processor."""
    device = str(getattr(model, "device", "cpu"))
    return card if device == "cpu" else replace(card, device=f"{device} ({precision})")


def load(spec: ModelSpec) -> Encoder:
    """From a folder, from an installed package, or from the hub."""
    if not spec.name:
        raise ParameterError("st: names no model", hint="write st:NAME or st:FOLDER")
    hub_model = BY_HUB_NAME.get(spec.name)
    if (
        hub_model is not None
        and hub_model.alias == "minilm"
        and "revision" not in spec.options
        and is_installed("minilm")
    ):
        return load_packaged_minilm(spec)
    folder = ModelFolder.named(spec.name)
    if folder is not None:
        folder.require_no_code(trusted=spec.flag("trust_remote_code", False))
        card = ModelCard(
            folder.path.name,
            str(spec),
            origin=f"folder {folder.path}",
            revision=f"{weights_digest(folder)} settings:{folder.settings()}",
        )
        return _load_model(spec, folder.path, card)
    card = ModelCard(spec.name, str(spec), licence=hub_model.licence if hub_model else "", origin="Hugging Face hub")
    return _load_model(spec, None, card)


def load_packaged_minilm(spec: ModelSpec) -> Encoder:
    """MiniLM from its package."""
    files = find_packaged_model("minilm")
    name = spec.name if spec.kind == "st" else files.package.title
    card = ModelCard(name, str(spec), licence=files.package.licence, origin=files.origin, revision=files.revision)
    return _load_model(spec, files.folder / "model", card)


def _load_model(spec: ModelSpec, folder: Path | None, card: ModelCard) -> Encoder:
    engine = require_extra("sentence_transformers", extra="st")
    name = str(folder or spec.name)
    offline = "use, wordllama and an installed minilm need no network"
    trusted_spec = f"st:{spec.name},trust_remote_code=true"
    with loading(name, from_hub=folder is None, offline=offline, trusted_spec=trusted_spec):
        model = engine.SentenceTransformer(
            name,
            device=spec.options.get("device"),
            revision=spec.options.get("revision"),
            trust_remote_code=spec.flag("trust_remote_code", False),
        )
    if (max_tokens := spec.count("max_tokens")) is not None:
        model.max_seq_length = max_tokens
    requested = f"{spec.name}@{spec.options.get('revision', 'main')}"
    card = replace(_with_model_sizes(card, model), revision=card.revision or hub_revision(model, requested))
    return SentenceTransformersEncoder(
        model,
        card,
        threads=spec.count("threads") or 1,
        batch=spec.count("batch") or BATCH_SIZE,
        precision=_set_precision(model, spec),
    )


def _set_precision(model: Any, spec: ModelSpec) -> str:
    """Convert the weights to the requested precision; without a request, the encoder chooses one on a GPU."""
    precision = spec.options.get("precision")
    if precision is None:
        return "auto"
    if precision not in PRECISIONS:
        raise ParameterError(f"precision is {precision!r} in {spec}", hint=f"it is one of {', '.join(PRECISIONS)}")
    model.to(getattr(require_extra("torch", extra="st"), precision))
    return precision


def is_sentence_transformer(model: object) -> bool:
    """Whether an object is a model of the library; the library is not loaded to find out."""
    library = sys.modules.get("sentence_transformers")
    return library is not None and isinstance(model, library.SentenceTransformer)


def encoder_from_model(model: Any, card: ModelCard) -> SentenceTransformersEncoder:
    """A loaded model, with prompts and window as for ``st:``."""
    return SentenceTransformersEncoder(model, _with_model_sizes(card, model), threads=None)


def _with_model_sizes(card: ModelCard, model: Any) -> ModelCard:
    """The card with the dimensions and the window of the model."""
    window = model.max_seq_length
    dims = getattr(model, "get_embedding_dimension", None) or model.get_sentence_embedding_dimension
    return replace(card, dims=dims(), max_tokens=int(window) if window and window < 10**6 else None)


def _window(model: Any, max_tokens: int | None, threads: int) -> TruncatingTokenizer | None:
    """A window over a copy of the tokenizer: the settings of the library's tokenizer are not changed."""
    tokenizer = _backend_tokenizer(model)
    if not callable(getattr(tokenizer, "to_str", None)):
        return None
    engine = require_extra("tokenizers", extra="st")
    return TruncatingTokenizer(engine.Tokenizer.from_str(tokenizer.to_str()), max_tokens, threads=threads)


def _backend_tokenizer(model: Any) -> Any:
    """The tokenizer of the Rust library, if the model has one."""
    return getattr(model.tokenizer, "backend_tokenizer", model.tokenizer)
