"""What the rows of a file of vectors stand for: their texts while these are few enough, and their ids."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from equipoise.errors import DuplicateError

TEXT_BYTES = 256 << 20
"""How many bytes the texts may take as an array, whose entries are all as wide as the longest text."""

_BYTES_A_CHARACTER = 4


class RowKeys:
    """The keys of rows, gathered batch by batch in bounded memory.

    Texts are kept unless they are more than ``text_bytes`` take, one of them stands there twice (a key
    belongs to one row) or an array of strings would change one. Ids are those given; rows without either are
    numbered from 1.
    """

    def __init__(self, *, has_ids: bool, text_bytes: int = TEXT_BYTES) -> None:
        self.given: list[str] | None = [] if has_ids else None
        self._seen: set[str] = set()
        self._texts: dict[str, None] | None = {}
        self._text_bytes = text_bytes
        self._longest = 1
        self._rows = 0

    def add(self, texts: Sequence[str], ids: Sequence[str]) -> None:
        """Take the keys of the next rows."""
        self._rows += len(texts)
        if self.given is not None:
            for name in ids:
                if name in self._seen:
                    raise DuplicateError(f"two texts have the id {name[:60]!r}", hint="keep one of them")
                self._seen.add(name)
            self.given += ids
        if self._texts is not None:
            self._texts.update(dict.fromkeys(texts))
            self._longest = max(self._longest, max(map(len, texts), default=0))
            changed = any(text.endswith("\0") for text in texts)
            size = self._rows * self._longest * _BYTES_A_CHARACTER
            if changed or len(self._texts) != self._rows or size > self._text_bytes:
                self._texts = None

    def arrays(self) -> Iterator[tuple[str, Sequence[str]]]:
        """The names and entries of the arrays that go beside the vectors; there is always one."""
        if self._texts is not None:
            yield "texts", list(self._texts)
        if self.given is not None:
            yield "ids", self.given
        elif self._texts is None:
            yield "ids", [str(number) for number in range(1, self._rows + 1)]
