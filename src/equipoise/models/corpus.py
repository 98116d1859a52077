"""Embed a corpus into a .npy or .npz file with bounded memory, and resume after a failure.

Until the end, ``.NAME.part`` next to the target has the rows, and ``.NAME.part.log`` one line per batch: the
number of rows, a digest of their texts, and a checksum of the rows.
"""

from __future__ import annotations

import json
import os
import shutil
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import blake2b
from itertools import zip_longest
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from equipoise.errors import DuplicateError, InputError, ParameterError, StoppedError, StoreError
from equipoise.io.atomic import write_error, write_text
from equipoise.models.encode_texts import check_texts, split_by_size
from equipoise.models.encoder import Role

if TYPE_CHECKING:
    from equipoise.models.embedder import Embedder, EmbedStats
    from equipoise.models.encoder import Vectors

# Keys of the rows of a vector file: their texts if these are small enough, and their ids.

TEXT_BYTES = 256 << 20
"""Maximum size of the texts as an array, whose entries are all as wide as the longest text."""

_BYTES_PER_CHARACTER = 4


class RowKeys:
    """The keys of rows, collected batch by batch in bounded memory.

    Texts are keys unless they exceed ``text_bytes``, one of them occurs twice, or an array of strings would
    change one. Rows without ids and texts are numbered from 1.
    """

    def __init__(self, *, has_ids: bool, text_bytes: int = TEXT_BYTES) -> None:
        self.ids: list[str] | None = [] if has_ids else None
        self._unique_ids: set[str] = set()
        self._texts: dict[str, None] | None = {}
        self._text_bytes = text_bytes
        self._longest = 1
        self._rows = 0

    def add(self, texts: Sequence[str], ids: Sequence[str]) -> None:
        """Add the keys of the next rows."""
        self._rows += len(texts)
        if self.ids is not None:
            for name in ids:
                if name in self._unique_ids:
                    raise DuplicateError(f"two texts have the id {name[:60]!r}", hint="keep one of them")
                self._unique_ids.add(name)
            self.ids += ids
        if self._texts is not None:
            self._texts.update(dict.fromkeys(texts))
            self._longest = max(self._longest, max(map(len, texts), default=0))
            changed = any(text.endswith("\0") for text in texts)
            size = self._rows * self._longest * _BYTES_PER_CHARACTER
            if changed or len(self._texts) != self._rows or size > self._text_bytes:
                self._texts = None

    def arrays(self) -> Iterator[tuple[str, Sequence[str]]]:
        """The names and entries of the arrays stored with the vectors; there is always one."""
        if self._texts is not None:
            yield "texts", list(self._texts)
        if self.ids is not None:
            yield "ids", self.ids
        elif self._texts is None:
            yield "ids", [str(number) for number in range(1, self._rows + 1)]


SUFFIXES = (".npy", ".npz")
_HEADER = 128
_COPIED = 1 << 20
_EPOCH = (1980, 1, 1, 0, 0, 0)
_BYTES_AT_ONCE = 16 << 20


class ResumableMatrixFile:
    """A matrix that is being written; an interrupted one is resumed if its ``head`` is equal."""

    def __init__(self, path: Path, head: dict[str, Any]) -> None:
        if path.suffix.casefold() not in SUFFIXES:
            raise ParameterError(f"{path} has an unknown file extension", hint=f"use one of {', '.join(SUFFIXES)}")
        if path.is_dir():
            raise StoreError(f"{path} cannot be written: it is a folder", hint="name a file in it")
        self.path = path
        self.rows = 0
        self.dims: int | None = None
        self._head = head
        self._part = path.with_name(f".{path.name}.part")
        self._log = path.with_name(f".{path.name}.part.log")
        with _write_errors(path):
            self._stream: BinaryIO = open(self._part, "r+b" if self._part.exists() else "w+b")  # noqa: SIM115
        _lock(self._stream, path)
        self._batches = self._read_log()
        self._next = 0

    def take(self, digest: str) -> dict[str, Any] | None:
        """The log entry of the next batch, if it has these texts and its rows are complete.

        After the first batch that has not, all following batches are written again.
        """
        if self._next >= len(self._batches):
            return None
        batch = self._batches[self._next]
        if batch.get("texts") == digest and self._rows_are_complete(batch):
            self._next += 1
            self.rows += batch["rows"]
            return batch
        self._drop_rest()
        return None

    def append(self, vectors: Vectors, digest: str, facts: dict[str, Any]) -> None:
        """Add the rows of a batch, then its line in the log."""
        if self._next < len(self._batches):
            self._drop_rest()
        dims = vectors.shape[1]
        if self.dims is not None and dims != self.dims:
            raise StoreError(f"{self.path} has rows of {self.dims} dimensions, and a batch has {dims}")
        data = np.ascontiguousarray(vectors, dtype="<f4").tobytes()
        line = {"rows": len(vectors), "texts": digest, "crc": zlib.crc32(data), **facts}
        with _write_errors(self.path):
            if self.dims is None:
                self.dims = dims
                self._log.write_text(f"{json.dumps({**self._head, 'dims': dims})}\n", encoding="utf-8")
            self._stream.seek(self._end)
            self._stream.truncate()
            self._stream.write(data)
            self._stream.flush()
            with open(self._log, "a", encoding="utf-8") as log:
                log.write(f"{json.dumps(line)}\n")
        self.rows += len(vectors)
        self._batches.append(line)
        self._next = len(self._batches)

    def finish(self, keys: RowKeys) -> None:
        """Write the file with all rows in one step."""
        with _write_errors(self.path):
            self._stream.truncate(self._end)
            self._stream.seek(0)
            self._stream.write(_npy_header("<f4", (self.rows, self.dims or 0)))
            self._stream.flush()
            os.fsync(self._stream.fileno())
            if self.path.suffix.casefold() == ".npz":
                self._zip(keys)
                self._part.unlink()
            else:
                if keys.ids is not None:
                    write_text(self.path.with_suffix(".ids"), "".join(f"{row_id}\n" for row_id in keys.ids))
                os.replace(self._part, self.path)
            self._log.unlink(missing_ok=True)
        self._stream.close()

    def close(self) -> None:
        """Close the file and keep its rows for another call; a file without rows is removed."""
        if self._stream.closed:
            return
        with suppress(OSError):  # on a full disk the rest of the buffer fails again
            self._stream.close()
        if not self.rows:
            with suppress(OSError):
                self._part.unlink(missing_ok=True)
                self._log.unlink(missing_ok=True)

    @property
    def _end(self) -> int:
        """The position of the next row."""
        return _HEADER + self.rows * (self.dims or 0) * 4

    def _read_log(self) -> list[dict[str, Any]]:
        """The batches of an interrupted write of the same texts by the same model, up to a truncated line."""
        batches: list[dict[str, Any]] = []
        try:
            lines = self._log.read_text(encoding="utf-8").splitlines()
            head = json.loads(lines[0])
            dims = head.pop("dims")
            if head != self._head or not isinstance(dims, int):
                return []
            self.dims = dims
            batches.extend(json.loads(line) for line in lines[1:])
        except (OSError, ValueError, KeyError, IndexError, AttributeError, TypeError):
            pass
        return [batch for batch in batches if isinstance(batch.get("rows"), int)]

    def _rows_are_complete(self, batch: dict[str, Any]) -> bool:
        length = batch["rows"] * (self.dims or 0) * 4
        self._stream.seek(self._end)
        data = self._stream.read(length)
        return len(data) == length and zlib.crc32(data) == batch.get("crc")

    def _drop_rest(self) -> None:
        """Drop the batches that were not taken, in the log as well."""
        del self._batches[self._next :]
        if not self._batches:
            self.dims = None
            return
        lines = [{**self._head, "dims": self.dims}, *self._batches]
        with _write_errors(self.path):
            write_text(self._log, "".join(f"{json.dumps(line)}\n" for line in lines))

    def _zip(self, keys: RowKeys) -> None:
        """An archive of the rows and their keys, written in blocks; equal input gives equal bytes."""
        part = self.path.with_name(f".{self.path.name}.zip.part")
        try:
            with zipfile.ZipFile(part, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
                with archive.open(zipfile.ZipInfo("vectors.npy", _EPOCH), "w", force_zip64=True) as member:
                    self._stream.seek(0)
                    shutil.copyfileobj(self._stream, member, _COPIED)
                for name, strings in keys.arrays():
                    info = zipfile.ZipInfo(f"{name}.npy", _EPOCH)
                    # Every entry is as wide as the longest: mostly zeros.
                    info.compress_type = zipfile.ZIP_DEFLATED
                    with archive.open(info, "w", force_zip64=True) as member:
                        for block in _string_bytes(strings):
                            member.write(block)
            os.replace(part, self.path)
        finally:
            part.unlink(missing_ok=True)


def _npy_header(dtype: str, shape: tuple[int, ...]) -> bytes:
    """The header of an .npy file, always of the same length, so that it can be written last."""
    text = repr({"descr": dtype, "fortran_order": False, "shape": shape})
    length = _HEADER - 10
    return b"\x93NUMPY\x01\x00" + length.to_bytes(2, "little") + f"{text:<{length - 1}}\n".encode("latin-1")


def _string_bytes(strings: Sequence[str]) -> Iterator[bytes]:
    """The blocks of an .npy file of strings."""
    width = max(map(len, strings), default=1) or 1
    dtype = np.dtype(f"<U{width}")
    yield _npy_header(dtype.str, (len(strings),))
    step = max(1, _BYTES_AT_ONCE // dtype.itemsize)
    for start in range(0, len(strings), step):
        yield np.array(strings[start : start + step], dtype=dtype).tobytes()


@contextmanager
def _write_errors(path: Path) -> Iterator[None]:
    """Turn errors of the operating system into our errors."""
    try:
        yield
    except OSError as error:
        missing = not path.parent.is_dir()
        hint = f"make the folder first: mkdir -p {path.parent}" if missing else "choose another folder"
        raise write_error(path, error, hint=hint) from error


def _lock(stream: BinaryIO, path: Path) -> None:
    """Prevent a second process from writing the same file; the lock ends with the process."""
    try:
        import fcntl
    except ImportError:  # Windows
        return
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        stream.close()
        raise StoreError(
            f"{path} is being written by another process", hint="wait for it, or choose another name"
        ) from error


BATCH = 2048
BATCH_CHARACTERS = 4_000_000
"""Maximum number of characters of a batch."""

_COUNTS = ("truncated", "tokens", "lost_tokens")
_MISSING: Any = object()

Progress = Callable[[int], None]
"""Called with the number of texts that are done."""


@dataclass(frozen=True, slots=True)
class CorpusStats:
    """The path of the file, the numbers of texts and tokens, and the time.

    ``resumed`` texts were written by an earlier call; of the others, duplicates within a batch count as
    ``repeated``. A count of None is unknown.
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
) -> CorpusStats:
    """Embed any number of texts into an .npy or .npz file with one row per text.

    An .npz file can be used as a model, ``vectors:FILE``: it has ``vectors``, ``ids`` if there are any, and
    ``texts`` if all differ and take at most 256 MiB as an array; with neither, ``ids`` are row numbers. The ids
    of an .npy file are in ``NAME.ids``. The file appears when it is complete. A call that was killed or failed
    leaves its finished part next to it, and the same call resumes from there. ``total`` is the number of texts,
    if it is known, for the error of a model that fails.
    """
    start = perf_counter()
    head = {"format": 1, "model": embedder.fingerprint, "role": str(role), "batch": batch}
    file = ResumableMatrixFile(Path(path), head)
    tally = _Tally()
    keys = RowKeys(has_ids=ids is not None)
    try:
        for pairs in split_by_size(_paired(texts, ids), lambda pair: len(pair[0]), batch, BATCH_CHARACTERS):
            batch_texts = [text for text, _ in pairs]
            keys.add(batch_texts, [name for _, name in pairs])
            _embed_batch(batch_texts, embedder, role, file, tally, progress)
        if not file.rows:
            raise InputError("there are no texts to embed", hint="check that the file or list is not empty")
        file.finish(keys)
    except StoppedError as error:
        raise error.counted(file.rows + error.done, total) from None
    finally:
        file.close()
    return CorpusStats(
        path=Path(path), texts=file.rows, dims=file.dims or 0, seconds=perf_counter() - start, **tally.counts
    )


class _Tally:
    """Sums over batches; unknown if one is unknown."""

    def __init__(self) -> None:
        self.counts: dict[str, Any] = dict.fromkeys(("resumed", "from_cache", "embedded", "repeated", *_COUNTS), 0)

    def add(self, **counts: int | None) -> None:
        for name, count in counts.items():
            total = self.counts[name]
            self.counts[name] = None if total is None or count is None else total + count


def _embed_batch(
    texts: list[str],
    embedder: Embedder,
    role: Role | str,
    file: ResumableMatrixFile,
    tally: _Tally,
    progress: Progress | None,
) -> None:
    digest = _digest(texts)
    before = file.rows
    stored = file.take(digest)
    if stored is not None:
        tally.add(resumed=len(texts), **{name: stored.get(name) for name in _COUNTS})
    else:
        check_texts(texts, start=before)
        embedded = embedder.embed_report(texts, role, progress=_within(progress, before, len(texts)))
        report = embedded.report
        file.append(embedded.vectors, digest, {name: getattr(report, name) for name in _COUNTS})
        tally.add(**_counts(report))
    if progress is not None:
        progress(file.rows)


def _counts(report: EmbedStats) -> dict[str, int | None]:
    return {
        "from_cache": report.from_cache,
        "embedded": report.embedded,
        "repeated": report.texts - report.distinct,
        **{name: getattr(report, name) for name in _COUNTS},
    }


def _within(progress: Progress | None, before: int, texts: int) -> Callable[[int, int], None] | None:
    """Progress within a batch in texts; the model counts distinct texts."""
    if progress is None:
        return None
    return lambda done, total: progress(before + texts * done // max(total, 1))


def _paired(texts: Iterable[str], ids: Iterable[str] | None) -> Iterator[tuple[str, str]]:
    if ids is None:
        yield from ((text, "") for text in texts)
        return
    for text, name in zip_longest(texts, ids, fillvalue=_MISSING):
        if text is _MISSING or name is _MISSING:
            raise InputError(f"there are more {'ids than texts' if text is _MISSING else 'texts than ids'}")
        if "\n" in name or "\r" in name or name.endswith("\0"):
            raise InputError(f"the id {name[:60]!r} has a line end or a NUL", hint="an id is on one line")
        yield text, name


def _digest(texts: list[str]) -> str:
    """A digest of these texts in their order."""
    digest = blake2b(digest_size=16)
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()
