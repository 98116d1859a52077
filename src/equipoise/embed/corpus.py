"""Any number of texts, embedded into a file: memory stays bounded, and a killed run goes on where it was."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from itertools import zip_longest
from pathlib import Path
from time import perf_counter
from typing import Any

from equipoise.embed.batch import checked
from equipoise.embed.model import Embedder, EmbedReport
from equipoise.embed.rowfile import RowFile
from equipoise.embed.rowkeys import RowKeys
from equipoise.errors import InputError, StoppedError
from equipoise.types import Role

BATCH = 2048
BATCH_CHARACTERS = 4_000_000
"""A batch ends here even if it could take more texts."""

_COUNTS = ("truncated", "tokens", "lost_tokens")
_NO_MORE: Any = object()

Progress = Callable[[int], None]
"""Called with how many texts are done."""


@dataclass(frozen=True, slots=True)
class CorpusReport:
    """What was written where, and what it took.

    ``resumed`` texts had been written by an earlier run of the same command; of the others, the repetitions
    within a batch count as ``repeated``. A count that is None is unknown.
    """

    path: Path
    texts: int
    dims: int
    resumed: int
    from_cache: int
    embedded: int
    repeated: int
    truncated: int | None
    tokens: int | None
    lost_tokens: int | None
    seconds: float

    def __str__(self) -> str:
        if self.embedded:
            parts = [f"embedded {self.embedded:,} of {self.texts:,} texts"]
            if self.from_cache:
                parts.append(f"{self.from_cache:,} from the cache")
        else:
            parts = ["embedded nothing"]
            if self.from_cache:
                count = self.from_cache + self.repeated
                parts.append(f"{'all ' if not self.resumed else ''}{count:,} from the cache")
        if self.resumed:
            parts.append(f"{self.resumed:,} from the interrupted run")
        if self.repeated and self.embedded:
            parts.append(f"{self.repeated:,} repeated")
        return ", ".join(parts)


def embed_to_file(
    texts: Iterable[str],
    embedder: Embedder,
    path: Path | str,
    *,
    role: Role | str = Role.DOCUMENT,
    ids: Iterable[str] | None = None,
    batch: int = BATCH,
    total: int | None = None,
    progress: Progress | None = None,
) -> CorpusReport:
    """Embed texts, however many, into an .npy or .npz file with one row a text.

    An .npz file can be used as a model, ``vectors:FILE``: it holds ``vectors``, ``ids`` where they are given,
    and ``texts`` while all differ and take at most 256 MiB as an array; with neither, ``ids`` are the numbers
    of the rows. An .npy file gets ids beside it, as ``NAME.ids``. The file appears when it is whole. A run
    that was killed, or that failed, leaves what it has done beside it, and the same call goes on from there.
    ``total`` is the number of texts, where it is known, for the error of a model that fails.
    """
    start = perf_counter()
    head = {"format": 1, "model": embedder.fingerprint, "role": str(role), "batch": batch}
    file = RowFile(Path(path), head)
    tally = _Tally()
    keys = RowKeys(has_ids=ids is not None)
    try:
        for some in _batches(_paired(texts, ids), batch):
            given = [text for text, _ in some]
            keys.add(given, [name for _, name in some])
            _embed_batch(given, embedder, role, file, tally, progress)
        if not file.rows:
            raise InputError("there are no texts to embed", hint="check that the file or list is not empty")
        file.finish(keys)
    except StoppedError as error:
        raise error.counted(file.rows + error.done, total) from None
    finally:
        file.close()
    return CorpusReport(
        path=Path(path), texts=file.rows, dims=file.dims or 0, seconds=perf_counter() - start, **tally.counts
    )


class _Tally:
    """Counts of all batches; unknown in one is unknown in all."""

    def __init__(self) -> None:
        self.counts: dict[str, Any] = dict.fromkeys(
            ("resumed", "from_cache", "embedded", "repeated", *_COUNTS), 0
        )

    def add(self, **more: int | None) -> None:
        for name, count in more.items():
            known = self.counts[name]
            self.counts[name] = None if known is None or count is None else known + count


def _embed_batch(
    texts: list[str],
    embedder: Embedder,
    role: Role | str,
    file: RowFile,
    tally: _Tally,
    progress: Progress | None,
) -> None:
    digest = _digest(texts)
    before = file.rows
    done = file.take(digest)
    if done is not None:
        tally.add(resumed=len(texts), **{name: done.get(name) for name in _COUNTS})
    else:
        checked(texts, start=before)
        embedded = embedder.embed_report(texts, role, progress=_within(progress, before, len(texts)))
        report = embedded.report
        file.append(embedded.vectors, digest, {name: getattr(report, name) for name in _COUNTS})
        tally.add(**_counts(report))
    if progress is not None:
        progress(file.rows)


def _counts(report: EmbedReport) -> dict[str, int | None]:
    return {
        "from_cache": report.from_cache,
        "embedded": report.embedded,
        "repeated": report.texts - report.distinct,
        **{name: getattr(report, name) for name in _COUNTS},
    }


def _within(progress: Progress | None, before: int, texts: int) -> Callable[[int, int], None] | None:
    """Progress inside a batch, in texts: the model counts distinct ones."""
    if progress is None:
        return None
    return lambda done, total: progress(before + texts * done // max(total, 1))


def _paired(texts: Iterable[str], ids: Iterable[str] | None) -> Iterator[tuple[str, str]]:
    if ids is None:
        yield from ((text, "") for text in texts)
        return
    for text, name in zip_longest(texts, ids, fillvalue=_NO_MORE):
        if text is _NO_MORE or name is _NO_MORE:
            raise InputError(f"there are more {'ids than texts' if text is _NO_MORE else 'texts than ids'}")
        if "\n" in name or "\r" in name or name.endswith("\0"):
            raise InputError(f"the id {name[:60]!r} holds a line end or a NUL", hint="ids stand on one line")
        yield text, name


def _batches(pairs: Iterable[tuple[str, str]], most: int) -> Iterator[list[tuple[str, str]]]:
    batch: list[tuple[str, str]] = []
    characters = 0
    for pair in pairs:
        if batch and (len(batch) == most or characters + len(pair[0]) > BATCH_CHARACTERS):
            yield batch
            batch, characters = [], 0
        batch.append(pair)
        characters += len(pair[0])
    if batch:
        yield batch


def _digest(texts: list[str]) -> str:
    """What tells these texts from any others, in their order."""
    digest = blake2b(digest_size=16)
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()
