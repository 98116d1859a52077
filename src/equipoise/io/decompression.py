"""Decompression with a limit: a small file may expand to more than the memory holds.

A file may expand to ``RATIO`` times its size, at least to ``FLOOR`` and at most to ``CEILING`` bytes. Text
and tables compress to between a third and a thirtieth; deflate reaches 1,032. The environment variable
``EQUIPOISE_MAX_DECOMPRESSED_GB`` replaces the limit.
"""

from __future__ import annotations

import io
import os
from math import isfinite
from typing import Any, BinaryIO
from zipfile import ZipFile

from equipoise.errors import ExpansionError, InputError, ParameterError

VARIABLE = "EQUIPOISE_MAX_DECOMPRESSED_GB"
RATIO = 50
FLOOR = 100 * 10**6
ARRAYS_FLOOR = 10**9
"""Arrays of zeros or of one value compress by 1,000, so that they may expand further."""
CEILING = 8 * 10**9
_GB = 10**9
_BLOCK = 1 << 20


def expansion_limit(compressed: int, floor: int = FLOOR) -> int:
    """How many bytes a file of ``compressed`` bytes may expand to.

    >>> expansion_limit(1_000), expansion_limit(10_000_000)
    (100000000, 500000000)
    """
    setting = os.environ.get(VARIABLE, "")
    if setting:
        return _parse_limit(setting)
    return max(floor, min(CEILING, RATIO * compressed))


def gunzip(name: str, data: bytes) -> bytes:
    """The content of gzipped bytes."""
    stream = open_gzip(name, io.BytesIO(data), len(data))
    return b"".join(iter(lambda: stream.read(_BLOCK), b""))


def open_gzip(name: str, stream: BinaryIO, compressed: int) -> BinaryIO:
    """The content of a gzipped stream of ``compressed`` bytes, as a stream."""
    return io.BufferedReader(_Gunzipped(name, stream, compressed), _BLOCK)


class _Gunzipped(io.RawIOBase):
    """A gzipped stream that ends in an error where its content exceeds the limit."""

    def __init__(self, name: str, stream: BinaryIO, compressed: int) -> None:
        import gzip

        self._name, self._compressed = name, compressed
        self._left = expansion_limit(compressed)
        self._content = gzip.GzipFile(fileobj=stream)

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer with the next decompressed bytes."""
        import zlib

        try:
            count = self._content.readinto(buffer)
        except (OSError, EOFError, zlib.error) as error:
            raise InputError(
                f"{self._name} is a damaged gzip file: {error}",
                hint=f"gzip -t {self._name} tests it; fetch or write it again",
            ) from error
        self._left -= count
        if self._left < 0:
            raise _too_large(self._name, self._compressed)
        return count


def check_archive(name: str, archive: ZipFile, compressed: int, floor: int = FLOOR) -> None:
    """Raise an error for a zip archive that would expand beyond the limit.

    The sizes are those that the archive states; ``zipfile`` reads no more of a member than is stated.
    """
    if sum(member.file_size for member in archive.infolist()) > expansion_limit(compressed, floor):
        raise _too_large(name, compressed, floor)


def check_size(name: str, expanded: int, compressed: int) -> None:
    """Raise an error for a file of another format that states an expanded size beyond the limit."""
    if expanded > expansion_limit(compressed, ARRAYS_FLOOR):
        raise _too_large(name, compressed, ARRAYS_FLOOR)


def _too_large(name: str, compressed: int, floor: int = FLOOR) -> ExpansionError:
    limit = expansion_limit(compressed, floor)
    return ExpansionError(
        f"{name} has {compressed:,} bytes and expands to more than {limit:,} bytes, the limit for its size",
        hint=f"if you trust the file, set {VARIABLE} to a limit in gigabytes, for example {VARIABLE}=20",
    )


def _parse_limit(text: str) -> int:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not (isfinite(value) and value > 0):
        raise ParameterError(f"{VARIABLE} is {text!r}, which is not a number of gigabytes", hint="for example 20")
    return int(value * _GB)
