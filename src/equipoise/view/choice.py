"""Which runs a request asks for, and by which metric they are to be ordered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

from equipoise.errors import AbsentRunError, ParameterError, StoreError
from equipoise.version import __version__
from equipoise.view.row import UNREADABLE, Row
from equipoise.view.shelf import Shelf, digest


@dataclass(frozen=True)
class Choice:
    """Rows of the list, each once, and the metric that decides, where one was named."""

    rows: tuple[Row, ...]
    primary: str = ""

    @classmethod
    def of(cls, shelf: Shelf, keys: Sequence[str], primary: str = "") -> Choice:
        """The rows with these keys. Only what the list has can be asked for, whatever a key says."""
        known = shelf.by_key
        if not keys:
            raise ParameterError("no run was chosen", hint="tick one run or more in the list")
        for key in keys:
            if key not in known:
                raise AbsentRunError.of("run", key, known, more="it may have been moved or removed")
            if known[key].status == UNREADABLE:
                raise StoreError(f"the run {key} cannot be shown: {known[key].note}")
        return cls(tuple(known[key] for key in dict.fromkeys(keys)), primary)

    @property
    def version(self) -> str:
        """Changes whenever a chosen run does, or the program that shows it."""
        return digest(repr([(row.key, row.fingerprint) for row in self.rows]) + self.primary + __version__)

    @property
    def units(self) -> int:
        """How many units all of them have together."""
        return sum(row.units for row in self.rows)

    @property
    def named(self) -> list[tuple[str, Path]]:
        """Every run with a name of its own: namesakes are told apart by where they lie."""
        times = Counter(row.system for row in self.rows)
        return [(f"{row.system} ({row.key})" if times[row.system] > 1 else "", row.path) for row in self.rows]

    def query(self, **more: str) -> str:
        """The same choice in an address."""
        primary = {"primary": self.primary} if self.primary else {}
        return urlencode([*(("run", row.key) for row in self.rows), *{**primary, **more}.items()])
