"""A block of the cache: some hundred vectors packed into one blob, each row under its own checksum."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from equipoise.embed.encoder import Vectors
from equipoise.types import Bools, Ints

STORED = np.dtype("<f4")
DIGEST = 16
_CRC = np.dtype("<u4")

Keys = NDArray[np.int64]
"""One row a text: its digest, read as two integers. The first is what the cache looks it up by."""


def keys_of(identity: str, variant: str, texts: Sequence[str]) -> Keys:
    """The digests of texts under a model and a variant of its use; any other word gives other digests.

    >>> one, other = keys_of("m", "query", ["a"]), keys_of("m", "document", ["a"])
    >>> bool((one == keys_of("m", "query", ["a"])).all()), bool((one == other).any())
    (True, False)
    """
    fields = "".join(f"{len(field)}:{field}" for field in (identity, variant, str(STORED)))
    prefix = blake2b(fields.encode("utf-8", "surrogatepass"), digest_size=DIGEST).digest()
    digests = [
        blake2b(prefix + text.encode("utf-8", "surrogatepass"), digest_size=DIGEST).digest() for text in texts
    ]
    return np.frombuffer(b"".join(digests), dtype="<i8").reshape(-1, 2).astype(np.int64, copy=False)


def pack(keys: Keys, vectors: Vectors) -> bytes:
    """Digests, checksums and little-endian float32 rows, one after the other."""
    names = np.ascontiguousarray(keys, dtype="<i8")
    rows = np.ascontiguousarray(vectors, dtype=STORED)
    return b"".join([names.tobytes(), _checksums(names, rows).tobytes(), rows.tobytes()])


def unpack(body: bytes, rows: int, dims: int, places: Ints, keys: Keys) -> tuple[Vectors, Bools]:
    """The vectors at these places of a block, and which of them are what they should be.

    A row is refused when it bears another digest, fails its checksum or is not finite; all of them are when
    the block has another length than its shape demands.
    """
    if len(body) != bytes_needed(rows, dims) or places.max(initial=0) >= rows:
        return np.zeros((len(places), dims), dtype=np.float32), np.zeros(len(places), dtype=np.bool_)
    names = np.frombuffer(body, dtype="<i8", count=2 * rows).reshape(rows, 2)[places]
    checksums = np.frombuffer(body, dtype=_CRC, count=rows, offset=DIGEST * rows)[places]
    vectors = np.frombuffer(body, dtype=STORED, offset=(DIGEST + _CRC.itemsize) * rows)
    chosen = vectors.reshape(rows, dims)[places]
    sound = (names == keys).all(axis=1) & (checksums == _checksums(names, chosen))
    return chosen.astype(np.float32, copy=False), sound & np.isfinite(chosen).all(axis=1)


def bytes_needed(rows: int, dims: int) -> int:
    """The length of a block of this shape."""
    return rows * (DIGEST + _CRC.itemsize + dims * STORED.itemsize)


def _checksums(names: NDArray[np.int64], rows: NDArray[np.float32]) -> NDArray[np.uint32]:
    """Each row's CRC-32 over its digest and its values, so that neither can be swapped for another's."""
    crc = zlib.crc32
    return np.array(
        [crc(row, crc(name)) for name, row in zip(names, rows, strict=True)],
        dtype=_CRC,
    )
