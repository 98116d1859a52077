"""A process that holds one model and answers questions on its standard input; see ``workers``."""

from __future__ import annotations

import os
import pickle
import signal
import sys
from typing import Any, BinaryIO

from equipoise.embed.encoder import Encoder
from equipoise.embed.local.encoder import encode_counted
from equipoise.embed.registry import load_encoder
from equipoise.errors import EquipoiseError

TRAITS = ("card", "identity", "block_texts", "symmetric", "cacheable", "normalizes", "prompts")
"""What the parent must know of the model without loading it."""


def main() -> None:
    """Load the model that the first message names, then answer until the pipe closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what an interrupt means
    questions = sys.stdin.buffer
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what a library prints must not mix with answers
    try:
        encoder = load_encoder(pickle.load(questions))
    except Exception as error:
        _answer(answers, _portable(error))
        return
    _answer(answers, {name: getattr(encoder, name) for name in TRAITS})
    while True:
        try:
            texts, role = pickle.load(questions)
        except EOFError:
            break
        _answer(answers, _answered(encoder, texts, role))
    encoder.close()


def _answered(encoder: Encoder, texts: list[str], role: Any) -> Any:
    """Vectors with lengths where there is a role, lengths alone where there is none."""
    try:
        return encoder.token_counts(texts) if role is None else encode_counted(encoder, texts, role)
    except Exception as error:
        return _portable(error)


def _portable(error: Exception) -> EquipoiseError:
    """An error that the parent can read, whatever package it came from."""
    if isinstance(error, EquipoiseError):
        return error
    return EquipoiseError(f"a worker failed: {type(error).__name__}: {error}", hint="try processes=1")


def _answer(stream: BinaryIO, answer: Any) -> None:
    pickle.dump(answer, stream, protocol=5)
    stream.flush()


if __name__ == "__main__":
    main()
