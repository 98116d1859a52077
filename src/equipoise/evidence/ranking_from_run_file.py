"""Rankings from TREC run files that are read in parts, so that memory does not grow with the run.

Lines become arrays without a Python object per field: ids are 64-bit hashes, values are floats. A block of lines is
tokenised by the positions of its separators. An id is read eight bytes at a time and hashed: equal ids have equal
hashes, and two of n different ids share a hash with probability n**2 / 2**65.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import InputError
from equipoise.evidence.kernels.threshold_counts import count_above_and_tied, count_in_sorted_rows
from equipoise.evidence.ranking import Ranking
from equipoise.evidence.segments import NOT_RETRIEVED, candidate_counts
from equipoise.io.arrays import segment_indices, segment_offsets
from equipoise.io.run_files import QRELS, RUN, UNTAGGED_RUN, TrecLayout, trec_blocks
from equipoise.io.text import NotStreamableError
from equipoise.types import Bools, Floats, Ids, Ints

Hashes = NDArray[np.uint64]
Bytes = NDArray[np.uint8]

_GOLDEN, _FIRST, _SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
_WORD = 8
_TAIL_MASKS = np.append(np.uint64(256) ** np.arange(_WORD, dtype=np.uint64) - np.uint64(1), np.uint64(2**64 - 1))
"""The masks of the first 0 to 8 bytes of a word."""
_LONGEST_NUMBER = 18
"""Digits that a 64-bit integer always holds; longer numbers are parsed by Python."""
_EXACT = 1 << 53
"""Below, integers are exact floats. Divided by a power of ten up to 10**22 they are rounded as Python does."""
_POWERS = 10.0 ** np.arange(_LONGEST_NUMBER + 1)
_PART_SCORES = 1 << 20
"""Cells of the padded matrix of lists that are ranked together."""


@dataclass(frozen=True, slots=True)
class QrelsArrays:
    """Relevance judgements as arrays: items by unit, each with the hash of unit and item, and its gain.

    ``sorted_units`` are the hashes of the units in ascending order, ``unit_order`` the positions of the units in that
    order.
    """

    unit_ids: Ids
    starts: Ints
    keys: Hashes
    gains: Floats
    sorted_units: Hashes
    unit_order: Ints

    @classmethod
    def read(cls, path: str | Path) -> QrelsArrays | None:
        """From a file of TREC qrels; None if it has another format or an error."""
        # Buffers that grow, because many small arrays would fragment the memory.
        query_bytes, doc_bytes, gain_bytes, first_bytes = (bytearray() for _ in range(4))
        names: list[str] = []
        try:
            for block in trec_blocks(path, qrels=True):
                columns = parse_columns(block, QRELS)
                if columns is None:
                    continue
                first = columns.first_lines()
                names += columns.query_ids(first)
                query_bytes += columns.queries.data
                doc_bytes += columns.docs.data
                gain_bytes += columns.values.data
                first_bytes += columns.queries[first].data
        except (NotStreamableError, InputError):
            return None
        if not names:
            return None
        queries, docs = np.frombuffer(query_bytes, np.uint64), np.frombuffer(doc_bytes, np.uint64)
        gains = np.frombuffer(gain_bytes, np.float64)
        hashes, first = np.unique(np.frombuffer(first_bytes, np.uint64), return_index=True)
        # Units are in the order of their first line; the items of a unit are in the order of their lines.
        order = np.argsort(first)
        unit_ids = np.array(names, dtype=object)[first[order]]
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        unit = rank[np.searchsorted(hashes, queries)]
        by_unit = np.argsort(unit, kind="stable")
        keys = pair_keys(queries, docs)[by_unit]
        return cls._checked(unit_ids, np.bincount(unit, minlength=len(unit_ids)), keys, gains[by_unit], hashes[order])

    @classmethod
    def of_dicts(cls, qrels: Mapping[str, Mapping[str, float]]) -> QrelsArrays | None:
        """From dicts of dicts; None if an id is not a string or a gain is not a number."""
        try:
            counts = np.fromiter(map(len, qrels.values()), np.int64, len(qrels))
            units = hash_ids(list(qrels))
            docs = hash_ids([item for items in qrels.values() for item in items])
            gains = np.array([gain for items in qrels.values() for gain in items.values()], dtype=np.float64)
        except (TypeError, ValueError, AttributeError, OverflowError):
            return None
        unit_ids = np.array(list(qrels), dtype=object)
        return cls._checked(unit_ids, counts, pair_keys(np.repeat(units, counts), docs), gains, units)

    @classmethod
    def _checked(cls, unit_ids: Ids, counts: Ints, keys: Hashes, gains: Floats, units: Hashes) -> QrelsArrays | None:
        """None if an item is assessed twice for a unit, or a gain is NaN."""
        ascending = np.sort(keys)
        if (ascending[1:] == ascending[:-1]).any() or np.isnan(gains).any() or not len(unit_ids):
            return None
        order = np.argsort(units)
        return cls(unit_ids, segment_offsets(counts.astype(np.int64)), keys, gains, units[order], order)

    def find_units(self, hashes: Hashes) -> Ints:
        """The position of each unit; -1 for unknown ones."""
        return _find(hashes, self.sorted_units, self.unit_order)


def streamed_ranking(
    judgements: QrelsArrays | None, path: str | Path, *, tag: str | None = None, corpus_size: int | None = None
) -> Ranking | None:
    """The ranking of a TREC run file, read in constant memory; None if that is not possible.

    Only one block of lists is in memory at a time, in addition to the judgements and the counts. The result is None
    if the lines of a query are not contiguous, the file has another format, or it contains an error: then the
    complete file must be read. Both ways give the same ranking.
    """
    if judgements is None:
        return None
    counts = _RankCounts(judgements)
    try:
        for columns in complete_lists(trec_blocks(path), RUN if tag is None else UNTAGGED_RUN):
            counts.add(columns)
    except (NotStreamableError, InputError):
        return None
    return counts.ranking(corpus_size) if counts.n_lines else None


class _RankCounts:
    """The ranks of all items of the qrels, filled in part by part."""

    def __init__(self, qrels: QrelsArrays) -> None:
        self.qrels = qrels
        self.above = np.full(len(qrels.keys), NOT_RETRIEVED, dtype=np.int64)
        self.tied = np.zeros(len(qrels.keys), dtype=np.int64)
        self.before = np.zeros(len(qrels.keys), dtype=np.int64)
        self.depth = np.zeros(len(qrels.unit_ids), dtype=np.int64)
        self.unknown: set[str] = set()
        self.n_lines = 0

    def add(self, columns: TrecColumns) -> None:
        """Rank the items of these lists; ``NotStreamableError`` if a list or an item occurs twice."""
        first = columns.first_lines()
        lengths = np.diff(first, append=len(columns))
        keys = pair_keys(columns.queries, columns.docs)
        order = np.argsort(keys)
        ascending = keys[order]
        if (ascending[1:] == ascending[:-1]).any():
            raise NotStreamableError("a list has a document twice")
        units = self.qrels.find_units(columns.queries[first])
        if (units < 0).any():
            self._add_unknown(columns.query_ids(first[units < 0]))
        first, lengths, units = first[units >= 0], lengths[units >= 0], units[units >= 0]
        if self.depth[units].any() or len(np.unique(units)) != len(units):
            raise NotStreamableError("a query is in two places")
        self.depth[units] = lengths
        self.n_lines += len(columns)
        counts = np.diff(self.qrels.starts)[units]
        items = segment_indices(self.qrels.starts[units], counts)
        lines = _find(self.qrels.keys[items], ascending, order)
        ends = np.cumsum(counts)
        for part in _matrix_parts(lengths):
            chosen = slice(int(ends[part.start] - counts[part.start]), int(ends[part.stop - 1]))
            self._count(columns, first[part], lengths[part], counts[part], items[chosen], lines[chosen])

    def _add_unknown(self, units: list[str]) -> None:
        expected = len(self.unknown) + len(units)
        self.unknown.update(units)
        if len(self.unknown) != expected:
            raise NotStreamableError("a query is in two places")

    def _count(self, columns: TrecColumns, first: Ints, lengths: Ints, counts: Ints, items: Ints, lines: Ints) -> None:
        """Count the scores above and equal to those of the items; ``lines`` are their lines, -1 if not retrieved."""
        width = int(lengths.max())
        inside: Bools = np.arange(width) < lengths[:, None]
        matrix = np.full((len(first), width), np.nan)
        matrix[inside] = columns.values[segment_indices(first, lengths)]
        scores = np.where(lines >= 0, columns.values[lines], np.nan)
        list_of_item = np.repeat(np.arange(len(first)), counts)
        relevant = self.qrels.gains[items] > 0
        # An assessed pool has hundreds of items per list that are not relevant.
        for chosen, count in ((relevant, count_above_and_tied), (~relevant, count_in_sorted_rows)):
            if chosen.any():
                per_list = np.bincount(list_of_item[chosen], minlength=len(first)).astype(np.int64)
                above, tied = count(matrix, scores[chosen], per_list)
                above[lines[chosen] < 0] = NOT_RETRIEVED
                self.above[items[chosen]], self.tied[items[chosen]] = above, tied
        for index in np.flatnonzero(self.tied[items]).tolist():
            row = list_of_item[index]
            equal = np.flatnonzero(matrix[row] == scores[index]) + first[row]
            doc_id = columns.doc(int(lines[index]))
            self.before[items[index]] = sum(columns.doc(line) > doc_id for line in equal.tolist())

    def ranking(self, corpus_size: int | None) -> Ranking:
        """The ranking of all units of the qrels, in their order."""
        relevant = self.qrels.gains > 0
        candidates = None if corpus_size is None else candidate_counts(corpus_size, self.depth)
        ranking = self._part(relevant, candidates)
        other = None if relevant.all() else self._part(~relevant, ranking.candidates)
        return replace(ranking, unknown_units=tuple(sorted(self.unknown)), nonrelevant=other)

    def _part(self, chosen: Bools, candidates: Ints | None) -> Ranking:
        qrels = self.qrels
        items = slice(None) if chosen.all() else chosen  # a slice does not copy
        return Ranking.of_items(
            qrels.unit_ids,
            np.diff(np.concatenate([[0], np.cumsum(chosen)])[qrels.starts]),
            gain=qrels.gains[items],
            above=self.above[items],
            tied=self.tied[items],
            before=self.before[items],
            depth=self.depth,
            candidates=candidates,
        )


def _find(hashes: Hashes, ascending: Hashes, positions: Ints) -> Ints:
    """The position of each hash; -1 for those that are not among the sorted hashes."""
    index = np.minimum(np.searchsorted(ascending, hashes), len(ascending) - 1)
    return np.where(ascending[index] == hashes, positions[index], -1)


def _matrix_parts(lengths: Ints) -> Iterator[slice]:
    """Slices of consecutive lists whose padded matrix has at most ``_PART_SCORES`` cells, or of one list."""
    start, widest = 0, 0
    if len(lengths) * int(lengths.max(initial=0)) <= _PART_SCORES:
        if len(lengths):
            yield slice(0, len(lengths))
        return
    for index, length in enumerate(lengths.tolist()):
        widest = max(widest, length)
        if widest * (index + 1 - start) > _PART_SCORES and index > start:
            yield slice(start, index)
            start, widest = index, length
    yield slice(start, len(lengths))


# Lines of a TREC file as arrays.


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
    encoded = [doc_id.encode("utf-8", "surrogatepass") for doc_id in ids]
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
    remainder, minimum = b"", 0
    for block in blocks:
        remainder += block
        if len(remainder) < minimum:
            continue
        columns = parse_columns(remainder, layout)
        if columns is None:
            remainder = b""
            continue
        last = int(columns.first_lines()[-1])
        if last:
            head, remainder = columns.split(last)
            yield head
        minimum = 2 * len(remainder)  # a list of many blocks is not parsed again with each of them
    if remainder and (columns := parse_columns(remainder, layout)) is not None:
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
