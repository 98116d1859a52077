"""``st:``: sentence-transformers, from a folder or by its name on the hub."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from equipoise.errors import InputError, MissingExtraError, ParameterError
from equipoise.io.dataset import file_sha256
from equipoise.models.backends.model_files import (
    ModelFolder,
    find_packaged_model,
    is_installed,
    prompts_by_role,
)
from equipoise.models.backends.token_batches import MIN_POOL_CHARACTERS, TokenRunner
from equipoise.models.encoder import EncodedBatch, Encoder, LocalEncoder, ModelCard
from equipoise.models.registry import BY_HUB_NAME, ModelSpec, as_path
from equipoise.models.tokenizers import TruncatingTokenizer
from equipoise.types import Role, require_extra

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


@contextmanager
def suppress_hub_output(suppress: bool) -> Iterator[None]:
    """Load a model inside the block without output, if ``suppress`` is set.

    The library requests every file six times, over more than 20 seconds, before it looks into its cache. A
    hub that does not answer one question is taken for absent, so that the cache is looked into at once.
    """
    hub = require_extra("huggingface_hub", extra="st")
    log, constants = hub.utils.logging, hub.constants
    verbosity, offline = log.get_verbosity(), constants.HF_HUB_OFFLINE
    log.set_verbosity_error()
    try:
        if suppress and not offline:
            constants.HF_HUB_OFFLINE = not _hub_is_reachable()
        with no_progress_bars():
            yield
    finally:
        constants.HF_HUB_OFFLINE = offline
        log.set_verbosity(verbosity)


def _hub_is_reachable() -> bool:
    """Whether the hub responds, even with an error."""
    hub = require_extra("huggingface_hub", extra="st")
    try:
        hub.utils.get_session().head(hub.constants.ENDPOINT, timeout=HUB_TIMEOUT_SECONDS)
    except Exception:  # of httpx or of requests, as the version of the library has it
        return False
    return True


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
    path = as_path(spec.name)
    if path.exists() or spec.name.startswith(("/", ".", "~")):
        folder = ModelFolder.open(path)
        folder.require_no_code(trusted=spec.flag("trust_remote_code", False))
        card = ModelCard(
            path.name,
            str(spec),
            origin=f"folder {path}",
            revision=f"{weights_digest(folder)} settings:{folder.settings()}",
        )
        return _load_model(spec, path, card)
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
    with suppress_hub_output(folder is None):
        try:
            model = engine.SentenceTransformer(
                str(folder or spec.name),
                device=spec.options.get("device"),
                revision=spec.options.get("revision"),
                trust_remote_code=spec.flag("trust_remote_code", False),
            )
        except Exception as error:  # hub, file and configuration problems have many types
            raise _load_error(spec, folder, error) from error
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
    """A model in hand, with its prompts and its window as ``st:`` has them."""
    return SentenceTransformersEncoder(model, _with_model_sizes(card, model), threads=None)


def _with_model_sizes(card: ModelCard, model: Any) -> ModelCard:
    """The card with the dimensions and the window of the model."""
    window = model.max_seq_length
    dims = getattr(model, "get_embedding_dimension", None) or model.get_sentence_embedding_dimension
    return replace(card, dims=dims(), max_tokens=int(window) if window and window < 10**6 else None)


def _load_error(spec: ModelSpec, folder: Path | None, error: Exception) -> Exception:
    reason = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
    if "trust_remote_code" in str(error):
        return ParameterError(
            f"{spec.name} contains custom code, which is not run without permission",
            hint=f"read that code; then write st:{spec.name},trust_remote_code=true",
        )
    if folder is not None:
        return InputError(f"the model in {folder} cannot be loaded: {reason}", hint="save the model again")
    return MissingExtraError(
        f"{spec.name} could not be loaded from the hub: {reason}",
        hint="check the name and the network, or name a folder; minilm, use and wordllama need no network",
    )


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
