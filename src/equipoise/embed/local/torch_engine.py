"""What models on torch share: threads and bars set for a call and put back, weights by their hash."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from equipoise.embed.local.folder import ModelFolder
from equipoise.embed.local.packaged import sha256_of
from equipoise.errors import InputError
from equipoise.types import need


@contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """Let torch use ``count`` threads inside the block; it has one number for the whole process."""
    torch = need("torch", extra="st")
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def no_progress_bars() -> Iterator[None]:
    """Let nothing be drawn on the terminal while a model is loaded inside the block."""
    logging = need("transformers.utils.logging", extra="st")
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


def weights_digest(folder: ModelFolder) -> str:
    """What the weights are; a folder without any is refused before a library tries the network."""
    files = sorted(
        each for kind in ("*.safetensors", "*.bin", "*.pt", "*.onnx") for each in folder.path.rglob(kind)
    )
    if not files:
        raise InputError(
            f"{folder.path} holds no weights: no .safetensors or .bin file",
            hint="name the folder that the model was saved to",
        )
    return "sha256:" + "+".join(sha256_of(each) for each in files)


def hub_revision(model: Any, asked: str) -> str:
    """The commit that a model of the hub was loaded from, or what was asked for where it does not say."""
    config = getattr(getattr(model[0], "auto_model", None), "config", None)
    return str(getattr(config, "_commit_hash", None) or asked)
