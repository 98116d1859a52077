"""What a model reads of a text: token ids within its window, and how long the text truly is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from equipoise.embed.chunk.tokens import stretches
from equipoise.errors import InputError
from equipoise.types import need

LONG = 1 << 15
"""A text of more characters is tokenised a stretch at a time, so that memory stays small."""


@dataclass(frozen=True, slots=True)
class Cut:
    """Token ids that fit the window, special tokens included, and the lengths before cutting."""

    ids: list[list[int]]
    counts: list[int]


class Window:
    """A tokenizer with the number of tokens that its model reads; None reads everything."""

    def __init__(
        self, tokenizer: Any, max_tokens: int | None, *, threads: int = 1, special: bool = True
    ) -> None:
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
    ) -> Window:
        """The window over a ``tokenizer.json``."""
        engine = need("tokenizers", extra="local")
        try:
            tokenizer = engine.Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises bare Exception for missing and damaged files
            raise InputError(f"{path} is no readable tokenizer", hint="save the tokenizer again") from error
        return cls(tokenizer, max_tokens, threads=threads, special=special)

    def cut(self, texts: Sequence[str]) -> Cut:
        """Ids and lengths of each text; the special tokens stay in place when a text is cut."""
        whole = [text if len(text) <= LONG else "" for text in texts]
        ids = self._encode(whole, special=self._special)
        counts = [len(each) for each in ids]
        for place, text in enumerate(texts):
            if len(text) > LONG:
                ids[place], counts[place] = self._cut_long(text)
            elif self.max_tokens is not None and counts[place] > self.max_tokens:
                ids[place] = ids[place][: self.max_tokens - len(self._suffix)] + self._suffix
        return Cut(ids, counts)

    def head(self, text: str) -> str:
        """As much of a long text as the model can read, for engines that tokenise by themselves."""
        if self.max_tokens is None or len(text) <= LONG:
            return text
        seen = 0
        for part in stretches(text):
            seen += len(self._encode([text[part]], special=False)[0])
            if seen >= self.max_tokens:
                return text[: part.stop]
        return text

    def _cut_long(self, text: str) -> tuple[list[int], int]:
        frame = len(self._prefix) + len(self._suffix)
        room = None if self.max_tokens is None else self.max_tokens - frame
        body: list[int] = []
        count = frame
        for part in stretches(text):
            piece = self._encode([text[part]], special=False)[0]
            count += len(piece)
            body += piece if room is None else piece[: max(room - len(body), 0)]
        return [*self._prefix, *body, *self._suffix], count

    def _encode(self, texts: Sequence[str], *, special: bool) -> list[list[int]]:
        encode = self._tokenizer.encode_batch_fast
        if self._threads > 1:
            return [each.ids for each in encode(texts, add_special_tokens=special)]
        # A batch of one never wakes the library's thread pool, and no global switch has to be touched.
        return [encode([text], add_special_tokens=special)[0].ids for text in texts]

    def _frame(self) -> tuple[list[int], list[int]]:
        """The special tokens before and after a text, read off an example."""
        bare, framed = (self._encode(["a"], special=special)[0] for special in (False, True))
        for start in range(len(framed) - len(bare) + 1):
            if framed[start : start + len(bare)] == bare:
                return framed[:start], framed[start + len(bare) :]
        return [], []
