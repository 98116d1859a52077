"""Text files read in blocks of whole lines, so that a file of any size takes little memory."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from typing import BinaryIO

from equipoise.data.expand import gunzipped
from equipoise.data.text import BOM, STDIN, PathLike

BLOCK_BYTES = 1 << 18
LONGEST_LINE = 1 << 20
_GZIP_MAGIC = b"\x1f\x8b"


class NotStreamableError(Exception):
    """A file cannot be read in blocks; reading it whole works, or says what is wrong and where."""


def line_blocks(path: PathLike) -> Iterator[bytes]:
    """Whole lines of a UTF-8 file, plain or gzipped, about ``BLOCK_BYTES`` at a time.

    A byte order mark is dropped. Only regular files are opened, since a pipe could not be read once more.
    Whatever is unusual raises ``NotStreamableError``: a file that cannot be opened, another encoding, a NUL
    byte, a very long line.
    """
    try:
        if os.fspath(path) == STDIN or not stat.S_ISREG(os.stat(path).st_mode):
            raise NotStreamableError(f"{path} is not a regular file")
        with open(path, "rb") as file:
            zipped = file.read(len(_GZIP_MAGIC)) == _GZIP_MAGIC
            file.seek(0)
            if zipped:
                yield from _blocks(gunzipped(str(path), file, os.fstat(file.fileno()).st_size))
            else:
                yield from _blocks(file)
    except (OSError, ValueError) as error:
        raise NotStreamableError(str(error)) from error


def _blocks(stream: BinaryIO) -> Iterator[bytes]:
    rest, start = b"", True
    while block := stream.read(BLOCK_BYTES):
        end = block.rfind(b"\n") + 1
        if not end:
            rest += block
            if len(rest) > LONGEST_LINE:
                raise NotStreamableError(f"a line has more than {LONGEST_LINE} bytes")
            continue
        yield _checked(rest + block[:end], start)
        rest, start = block[end:], False
    if rest:
        yield _checked(rest, start)


def _checked(block: bytes, start: bool) -> bytes:
    if start:
        block = block.removeprefix(BOM)
    if not block.isascii():
        block.decode("utf-8")  # lines are whole, so no character is cut
    if b"\0" in block:
        raise NotStreamableError("there is a NUL byte")
    return block
