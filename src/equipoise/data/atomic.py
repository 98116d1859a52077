"""Writing files whole or not at all."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from equipoise.data.text import PathLike, shown
from equipoise.errors import InputError, StoreError


def write_text(path: PathLike, text: str) -> None:
    """Replace a file by this text in one step; a name that ends in .gz is compressed.

    Whoever reads the path meanwhile sees the old content or the new, never a part, and equal texts
    give equal bytes.
    """
    try:
        data = text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InputError(
            f"{shown(path)} cannot be written: the text holds half of a surrogate pair",
            hint="the input was decoded with the wrong encoding",
        ) from error
    write_bytes(path, _compressed(data) if Path(path).suffix == ".gz" else data)


def write_bytes(path: PathLike, data: bytes) -> None:
    """Replace a file by these bytes in one step."""
    target = Path(path)
    part = target.with_name(f".{target.name}.{os.urandom(4).hex()}.part")
    try:
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, "it is a folder")
        try:
            with open(part, "wb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(part, target)
        finally:
            part.unlink(missing_ok=True)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        hint = "" if target.parent.is_dir() else f"make the folder first: mkdir -p {target.parent}"
        raise StoreError(f"{shown(path)} cannot be written: {reason}", hint=hint) from error


def _compressed(data: bytes) -> bytes:
    import gzip

    return gzip.compress(data, mtime=0)
