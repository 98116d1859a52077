"""TREC runs and qrels as arrays: ids as 64-bit hashes and values as floats, without a Python object per field.

A block of lines is tokenised by the positions of its separators. An id is read eight bytes at a time and hashed: equal
ids have equal hashes, and two of n different ids share a hash with probability n**2 / 2**65.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import isfinite

import numpy as np
from numpy.typing import NDArray

from equipoise.io.run_files import TrecLayout
from equipoise.io.text import NotStreamableError
from equipoise.types import Bools, Floats, Ints

Hashes = NDArray[np.uint64]
Bytes = NDArray[np.uint8]

_GOLDEN, _FIRST, _SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
_WORD = 8
_TAIL_MASKS = np.array([(1 << 8 * size) - 1 for size in range(_WORD + 1)], dtype=np.uint64)
_LONGEST_NUMBER = 18
"""Digits that a 64-bit integer always holds; longer numbers are parsed by Python."""
_EXACT = 1 << 53
"""Below, integers are exact floats. Divided by a power of ten up to 10**22 they are rounded as Python does."""
_POWERS = 10.0 ** np.arange(_LONGEST_NUMBER + 1)


def mix(values: Hashes) -> Hashes:
    """The finalizer of splitmix64: a bijection of 64-bit integers whose bits all depend on all bits."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(_FIRST)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(_SECOND)
    return values ^ (values >> np.uint64(31))


def hash_fields(data: Bytes, starts: Ints, lengths: Ints) -> Hashes:
    """The hash of each field; ``data`` has at least eight bytes after the last field."""
    words: Hashes = np.ndarray((len(data) - _WORD + 1,), "<u8", data, strides=(1,))  # one at every byte
    hashes = lengths.astype(np.uint64) * np.uint64(_GOLDEN)
    for offset in range(0, int(lengths.max(initial=0)), _WORD):
        if (lengths > offset).all():
            tail = np.minimum(lengths - offset, _WORD)
            hashes = mix(hashes ^ (words[starts + offset] & _TAIL_MASKS[tail]))
        else:
            rows = np.flatnonzero(lengths > offset)
            tail = np.minimum(lengths[rows] - offset, _WORD)
            hashes[rows] = mix(hashes[rows] ^ (words[starts[rows] + offset] & _TAIL_MASKS[tail]))
    return hashes


def hash_ids(ids: Sequence[str]) -> Hashes:
    """The hash of each id, equal to that of the same id in a file."""
    encoded = [each.encode("utf-8", "surrogatepass") for each in ids]
    lengths = np.fromiter(map(len, encoded), np.int64, len(encoded))
    data = np.frombuffer(b"".join(encoded) + bytes(_WORD), dtype=np.uint8)
    return hash_fields(data, np.cumsum(lengths) - lengths, lengths)


def pair_keys(query_hashes: Hashes, doc_hashes: Hashes) -> Hashes:
    """One hash per pair of query and document."""
    return mix(query_hashes ^ np.uint64(_GOLDEN)) + doc_hashes


@dataclass(frozen=True, slots=True)
class TrecColumns:
    """Lines of a TREC file: hashes of query and document, values, and the end of each field (lines, fields)."""

    data: Bytes
    ends: Ints
    queries: Hashes
    docs: Hashes
    values: Floats

    def __len__(self) -> int:
        return len(self.ends)

    def first_lines(self) -> Ints:
        """The first line of each run of lines with the same query."""
        return np.concatenate([[0], np.flatnonzero(self.queries[1:] != self.queries[:-1]) + 1])

    def query_ids(self, lines: Ints) -> list[str]:
        """The query ids of these lines."""
        raw = self.data.tobytes()
        starts = np.where(lines > 0, self.ends[lines - 1, -1] + 1, 0).tolist()
        return [raw[start:end].decode("utf-8") for start, end in zip(starts, self.ends[lines, 0].tolist(), strict=True)]

    def doc(self, line: int) -> bytes:
        """The document id of a line; bytes of UTF-8 have the order of their characters."""
        return self.data[self.ends[line, 1] + 1 : self.ends[line, 2]].tobytes()

    def split(self, line: int) -> tuple[TrecColumns, bytes]:
        """The lines before this one, and the bytes of the others."""
        head = TrecColumns(self.data, self.ends[:line], self.queries[:line], self.docs[:line], self.values[:line])
        return head, self.data[self.ends[line - 1, -1] + 1 : -_WORD].tobytes()


def parse_columns(block: bytes, layout: TrecLayout) -> TrecColumns | None:
    """The columns of complete lines, None if all are blank; ``NotStreamableError`` if anything is wrong with a line."""
    data, ends = _tokenized(block, layout)
    if ends is None:
        block = _with_single_blanks(block, layout)
        if not block:
            return None
        data, ends = _tokenized(block, layout)
        if ends is None:
            raise NotStreamableError("there is a control character")
    starts = np.concatenate([[0], ends[:-1, -1] + 1])
    docs, values = ends[:, 1] + 1, ends[:, layout.value - 1] + 1
    return TrecColumns(
        data,
        ends,
        hash_fields(data, starts, ends[:, 0] - starts),
        hash_fields(data, docs, ends[:, 2] - docs),
        _parse_values(data, values, ends[:, layout.value] - values),
    )


def complete_lists(blocks: Iterable[bytes], layout: TrecLayout) -> Iterator[TrecColumns]:
    """The lines of a file in parts; each part ends at the end of a list, so that no list is in two parts."""
    rest, minimum = b"", 0
    for block in blocks:
        rest += block
        if len(rest) < minimum:
            continue
        columns = parse_columns(rest, layout)
        if columns is None:
            rest = b""
            continue
        last = int(columns.first_lines()[-1])
        if last:
            head, rest = columns.split(last)
            yield head
        minimum = 2 * len(rest)  # a list of many blocks is not parsed again with each of them
    if rest and (columns := parse_columns(rest, layout)) is not None:
        yield columns


def _tokenized(block: bytes, layout: TrecLayout) -> tuple[Bytes, Ints | None]:
    """The bytes, and the end of each field if all fields are separated by one blank and lines end with LF."""
    if b"\r" in block:
        block = block.replace(b"\r\n", b"\n")
    if not block.endswith(b"\n"):
        block += b"\n"
    data = np.frombuffer(block + bytes(_WORD), dtype=np.uint8)
    separators = np.flatnonzero(data[:-_WORD] <= ord(" "))
    n_fields = len(block[: block.index(b"\n")].split())
    if n_fields not in layout.widths or len(separators) % n_fields:
        return data, None
    ends = separators.reshape(-1, n_fields)
    kinds = data[ends]
    blanks = kinds[:, :-1]
    regular = (
        separators[0] > 0
        and (np.diff(separators) > 1).all()
        and (kinds[:, -1] == ord("\n")).all()
        and ((blanks == ord(" ")) | (blanks == ord("\t"))).all()
    )
    return data, ends if regular else None


def _with_single_blanks(block: bytes, layout: TrecLayout) -> bytes:
    """The same lines with one blank between fields, without blank lines, and with a tag."""
    rows = list(filter(None, map(bytes.split, block.splitlines())))
    if not layout.widths.issuperset(map(len, rows)):
        raise NotStreamableError("a line has another number of fields")
    width = max(layout.widths)
    return b"".join(b" ".join([*row, *[b"-"] * (width - len(row))]) + b"\n" for row in rows)


def _parse_values(data: Bytes, starts: Ints, lengths: Ints) -> Floats:
    """The numbers as Python reads them; underscores and what is not finite raise ``NotStreamableError``."""
    mantissa = np.zeros(len(starts), dtype=np.int64)
    decimals = np.zeros(len(starts), dtype=np.int64)
    after_dot: Bools = np.zeros(len(starts), dtype=bool)
    negative = data[starts] == ord("-")
    plain = lengths <= _LONGEST_NUMBER
    uniform = int(lengths.min())
    for offset in range(min(int(lengths.max()), _LONGEST_NUMBER)):
        characters = data[np.minimum(starts + offset, len(data) - 1)]
        digits = characters - np.uint8(ord("0"))
        is_digit, is_dot = digits < 10, characters == ord(".")
        inside = None if offset < uniform else lengths > offset
        other = ~is_digit & ~(is_dot & ~after_dot)
        if offset == 0:
            other &= ~negative
        if inside is not None:
            is_digit, is_dot, other = is_digit & inside, is_dot & inside, other & inside
        plain &= ~other
        if is_digit.all():
            mantissa = mantissa * 10 + digits
            decimals += after_dot
        elif is_digit.any():
            mantissa = np.where(is_digit, mantissa * 10 + digits, mantissa)
            decimals += is_digit & after_dot
        after_dot |= is_dot
    plain &= (mantissa < _EXACT) & (lengths > negative.astype(np.int64) + after_dot)
    values = mantissa / _POWERS[decimals]
    values[negative] *= -1.0
    for row in np.flatnonzero(~plain).tolist():
        values[row] = _parse_value(data[starts[row] : starts[row] + lengths[row]].tobytes())
    return values


def _parse_value(field: bytes) -> float:
    try:
        value = float(field)
    except ValueError as error:
        raise NotStreamableError("a value is not a number") from error
    # Python reads 1_000 as a number; a file that says so is more likely to be damaged.
    if b"_" in field or not isfinite(value):
        raise NotStreamableError("a value is not a finite number")
    return value
