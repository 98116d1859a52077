"""Embed a corpus into a .npy or .npz file with bounded memory, and resume after a failure.

Until the end, ``.NAME.part`` has the rows and ``.NAME.part.log`` one line per batch, next to the target:
how many rows, a digest of the texts that they stand for, and a checksum of the rows.
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
from equipoise.models.encode_texts import check_texts
from equipoise.types import Role

if TYPE_CHECKING:
    from equipoise.models.embedder import Embedder, EmbedStats
    from equipoise.models.encoder import Vectors

# Keys of the rows of a vector file: their texts if these are small enough, and their ids.

TEXT_BYTES = 256 << 20
"""How many bytes the texts may take as an array, whose entries are all as wide as the longest text."""

_BYTES_A_CHARACTER = 4


class RowKeys:
    """The keys of rows, gathered batch by batch in bounded memory.

    Texts are kept unless they exceed ``text_bytes``, or one of them occurs twice (a key
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
        """The names and entries of the arrays stored with the vectors; there is always one."""
        if self._texts is not None:
            yield "texts", list(self._texts)
        if self.given is not None:
            yield "ids", self.given
        elif self._texts is None:
            yield "ids", [str(number) for number in range(1, self._rows + 1)]


SUFFIXES = (".npy", ".npz")
_HEADER = 128
_COPIED = 1 << 20
_EPOCH = (1980, 1, 1, 0, 0, 0)
_BYTES_AT_ONCE = 16 << 20


class ResumableMatrixFile:
    """A matrix being written; ``head`` is what must be equal for an interrupted one to be continued."""

    def __init__(self, path: Path, head: dict[str, Any]) -> None:
        if path.suffix.casefold() not in SUFFIXES:
            raise ParameterError(f"{path} has a suffix that names no format", hint=f"use one of {', '.join(SUFFIXES)}")
        if path.is_dir():
            raise StoreError(f"{path} cannot be written: it is a folder", hint="name a file in it")
        self.path = path
        self.rows = 0
        self.dims: int | None = None
        self._head = head
        self._part = path.with_name(f".{path.name}.part")
        self._log = path.with_name(f".{path.name}.part.log")
        with _explained(path):
            self._stream: BinaryIO = open(self._part, "r+b" if self._part.exists() else "w+b")  # noqa: SIM115
        _lock(self._stream, path)
        self._batches = self._read_log()
        self._next = 0

    def take(self, digest: str) -> dict[str, Any] | None:
        """What the log says of the next batch, if it is the batch of these texts and its rows are whole.

        After the first batch that is not, everything that follows is written again.
        """
        if self._next >= len(self._batches):
            return None
        batch = self._batches[self._next]
        if batch.get("texts") == digest and self._rows_are_whole(batch):
            self._next += 1
            self.rows += batch["rows"]
            return batch
        self._drop_rest()
        return None

    def append(self, vectors: Vectors, digest: str, facts: dict[str, Any]) -> None:
        """Add the rows of a batch, then the line that vouches for them."""
        if self._next < len(self._batches):
            self._drop_rest()
        dims = vectors.shape[1]
        if self.dims is not None and dims != self.dims:
            raise StoreError(f"{self.path} has rows of {self.dims} dimensions and was given {dims}")
        data = np.ascontiguousarray(vectors, dtype="<f4").tobytes()
        line = {"rows": len(vectors), "texts": digest, "crc": zlib.crc32(data), **facts}
        with _explained(self.path):
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
        """Make the file: all rows, under its name, in one step."""
        with _explained(self.path):
            self._stream.truncate(self._end)
            self._stream.seek(0)
            self._stream.write(_npy_header("<f4", (self.rows, self.dims or 0)))
            self._stream.flush()
            os.fsync(self._stream.fileno())
            if self.path.suffix.casefold() == ".npz":
                self._zip(keys)
                self._part.unlink()
            else:
                if keys.given is not None:
                    write_text(self.path.with_suffix(".ids"), "".join(f"{each}\n" for each in keys.given))
                os.replace(self._part, self.path)
            self._log.unlink(missing_ok=True)
        self._stream.close()

    def close(self) -> None:
        """Leave what was written for another time; a file without a single row is removed."""
        if self._stream.closed:
            return
        with suppress(OSError):  # a full disk refuses what is left in the buffer once more
            self._stream.close()
        if not self.rows:
            with suppress(OSError):
                self._part.unlink(missing_ok=True)
                self._log.unlink(missing_ok=True)

    @property
    def _end(self) -> int:
        """Where the next row goes."""
        return _HEADER + self.rows * (self.dims or 0) * 4

    def _read_log(self) -> list[dict[str, Any]]:
        """The batches of an interrupted write of the same texts by the same model; a torn line ends them."""
        found: list[dict[str, Any]] = []
        try:
            lines = self._log.read_text(encoding="utf-8").splitlines()
            head = json.loads(lines[0])
            dims = head.pop("dims")
            if head != self._head or not isinstance(dims, int):
                return []
            self.dims = dims
            found.extend(json.loads(line) for line in lines[1:])
        except (OSError, ValueError, KeyError, IndexError, AttributeError, TypeError):
            pass
        return [each for each in found if isinstance(each.get("rows"), int)]

    def _rows_are_whole(self, batch: dict[str, Any]) -> bool:
        length = batch["rows"] * (self.dims or 0) * 4
        self._stream.seek(self._end)
        data = self._stream.read(length)
        return len(data) == length and zlib.crc32(data) == batch.get("crc")

    def _drop_rest(self) -> None:
        """Forget the batches that were not taken, in the log as well."""
        del self._batches[self._next :]
        if not self._batches:
            self.dims = None
            return
        lines = [{**self._head, "dims": self.dims}, *self._batches]
        with _explained(self.path):
            write_text(self._log, "".join(f"{json.dumps(line)}\n" for line in lines))

    def _zip(self, keys: RowKeys) -> None:
        """An archive of the rows and their keys, made piece by piece; equal input, equal bytes."""
        whole = self.path.with_name(f".{self.path.name}.zip.part")
        try:
            with zipfile.ZipFile(whole, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
                with archive.open(zipfile.ZipInfo("vectors.npy", _EPOCH), "w", force_zip64=True) as member:
                    self._stream.seek(0)
                    shutil.copyfileobj(self._stream, member, _COPIED)
                for name, strings in keys.arrays():
                    info = zipfile.ZipInfo(f"{name}.npy", _EPOCH)
                    # Every entry is as wide as the longest: mostly zeros.
                    info.compress_type = zipfile.ZIP_DEFLATED
                    with archive.open(info, "w", force_zip64=True) as member:
                        for piece in _string_bytes(strings):
                            member.write(piece)
            os.replace(whole, self.path)
        finally:
            whole.unlink(missing_ok=True)


def _npy_header(dtype: str, shape: tuple[int, ...]) -> bytes:
    """The header of an .npy file, always of the same length, so that it can be written last."""
    text = repr({"descr": dtype, "fortran_order": False, "shape": shape})
    length = _HEADER - 10
    return b"\x93NUMPY\x01\x00" + length.to_bytes(2, "little") + f"{text:<{length - 1}}\n".encode("latin-1")


def _string_bytes(strings: Sequence[str]) -> Iterator[bytes]:
    """An .npy file of strings, some at a time."""
    width = max(map(len, strings), default=1) or 1
    dtype = np.dtype(f"<U{width}")
    yield _npy_header(dtype.str, (len(strings),))
    step = max(1, _BYTES_AT_ONCE // dtype.itemsize)
    for start in range(0, len(strings), step):
        yield np.array(strings[start : start + step], dtype=dtype).tobytes()


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """What the operating system refuses, as a sentence."""
    try:
        yield
    except OSError as error:
        missing = not path.parent.is_dir()
        hint = f"make the folder first: mkdir -p {path.parent}" if missing else "choose another folder"
        raise write_error(path, error, hint=hint) from error


def _lock(stream: BinaryIO, path: Path) -> None:
    """Keep a second process from writing the same file; the lock ends with the process."""
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
"""A batch ends here even if it could take more texts."""

_COUNTS = ("truncated", "tokens", "lost_tokens")
_NO_MORE: Any = object()

Progress = Callable[[int], None]
"""Called with how many texts are done."""


@dataclass(frozen=True, slots=True)
class CorpusStats:
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
) -> CorpusStats:
    """Embed texts, however many, into an .npy or .npz file with one row a text.

    An .npz file can be used as a model, ``vectors:FILE``: it holds ``vectors``, ``ids`` where they are given,
    and ``texts`` while all differ and take at most 256 MiB as an array; with neither, ``ids`` are the numbers
    of the rows. The ids of an .npy file are in ``NAME.ids``. The file appears when it is complete. A run
    that was killed or failed leaves its finished part next to it, and the same call resumes from there.
    ``total`` is the number of texts, where it is known, for the error of a model that fails.
    """
    start = perf_counter()
    head = {"format": 1, "model": embedder.fingerprint, "role": str(role), "batch": batch}
    file = ResumableMatrixFile(Path(path), head)
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
    return CorpusStats(
        path=Path(path), texts=file.rows, dims=file.dims or 0, seconds=perf_counter() - start, **tally.counts
    )


class _Tally:
    """Counts of all batches; unknown in one is unknown in all."""

    def __init__(self) -> None:
        self.counts: dict[str, Any] = dict.fromkeys(("resumed", "from_cache", "embedded", "repeated", *_COUNTS), 0)

    def add(self, **more: int | None) -> None:
        for name, count in more.items():
            known = self.counts[name]
            self.counts[name] = None if known is None or count is None else known + count


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
    done = file.take(digest)
    if done is not None:
        tally.add(resumed=len(texts), **{name: done.get(name) for name in _COUNTS})
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
