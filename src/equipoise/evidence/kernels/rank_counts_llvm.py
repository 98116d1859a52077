"""The compiled kernel: for each row what is above the target, what equals it, and which class is first.

Nearly all of it is known after one look, written in the vectors of LLVM. numba finds vectors by itself in
plain loops, but not in this one: a largest float has to mind NaN, and the lane in which it stood is lost.
Here each lane keeps its largest score, and two counts in one whole number. The largest score of all then
stands in one lane, where few places have to be searched for it. The row is looked at again, in the cache,
only where another score than the target's equals it or is NaN.

The compiled code is kept on disk until this file changes, so all that it is made of stands here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import llvmlite.binding
import llvmlite.ir
import numba.core.cgutils
import numba.extending
import numba.np.arrayobj
import numpy as np
from numpy.typing import NDArray

from equipoise.types import Bools, Ints

ir: Any = llvmlite.ir
types: Any = numba.types
intrinsic: Any = numba.extending.intrinsic
F = TypeVar("F", bound=Callable[..., Any])
compiled: Callable[[F], F] = cast(Any, numba.njit(cache=True, nogil=True))

STEP = 256 if llvmlite.binding.get_host_cpu_features().get("avx512f") else 128
"""Bytes looked at in one go: what is kept of them fills half of the registers."""

STEPS = 64
"""The most steps of one look: either count has to fit into half of a 32-bit number."""

_UNIT = 2
"""What a score adds to the lower count: LLVM makes two instructions of adding 1, one of this."""

_BIT, _INT, _LONG = ir.IntType(1), ir.IntType(32), ir.IntType(64)
_ONE = np.uint64(1)


class _Vectors:
    """Vectors of a step of scores and of counts as wide; what is kept are the largest scores and the counts.

    The low half of a count is for scores above the limit, the high half for those not below it, as is NaN.
    """

    def __init__(self, builder: Any, limit: Any) -> None:
        self.builder = builder
        self.size = 4 if limit.type == ir.FloatType() else 8
        self.lanes = STEP // self.size
        self.whole, self.half = ir.IntType(8 * self.size), 4 * self.size
        self.scores = ir.VectorType(limit.type, self.lanes)
        self.counts = ir.VectorType(self.whole, self.lanes)
        self.nothing = [self.all(self.scores, float("-inf")), self.all(self.counts, 0)]
        self.limit = self.spread(limit)

    def all(self, kind: Any, value: Any) -> Any:
        """A constant in all lanes."""
        return ir.Constant(kind, [value] * self.lanes)

    def spread(self, value: Any) -> Any:
        """A value in all lanes."""
        unset = ir.Constant(ir.VectorType(value.type, self.lanes), ir.Undefined)
        first = self.builder.insert_element(unset, value, _INT(0))
        return self.builder.shuffle_vector(first, unset, self.all(ir.VectorType(_INT, self.lanes), 0))

    def load(self, pointer: Any) -> Any:
        """The scores from here on."""
        return self.builder.load(self.builder.bitcast(pointer, self.scores.as_pointer()), align=self.size)

    def load_some(self, pointer: Any, inside: Any) -> Any:
        """The scores in the lanes inside; the others are not read."""
        kinds = [self.scores.as_pointer(), _INT, ir.VectorType(_BIT, self.lanes), self.scores]
        load = self.function(f"masked.load.v{self.lanes}f{self.whole.width}.p0", self.scores, kinds)
        place = self.builder.bitcast(pointer, self.scores.as_pointer())
        return self.builder.call(load, [place, _INT(self.size), inside, self.nothing[0]])

    def seen(self, kept: list[Any], score: Any, inside: Any = None) -> list[Any]:
        """What is kept after these scores, or after those in the lanes inside."""
        builder, (largest, counts) = self.builder, kept
        above = builder.fcmp_ordered(">", score, self.limit)
        left = builder.fcmp_unordered(">=", score, self.limit)
        for mask, one in ((above, _UNIT), (left, 1 << self.half)):
            more = builder.add(counts, self.all(self.counts, one))
            counts = builder.select(mask if inside is None else builder.and_(mask, inside), more, counts)
        return [builder.select(builder.fcmp_ordered(">", score, largest), score, largest), counts]

    def walk(self, pointer: Any, length: Any) -> list[Any]:
        """What is kept after all scores: whole steps, and the lanes of one more that are left over."""
        builder, start = self.builder, self.builder.block
        whole = builder.and_(length, _LONG(-self.lanes))
        head, body, after = (builder.append_basic_block() for _ in range(3))
        builder.branch(head)
        builder.position_at_end(head)
        begin = [_LONG(0), *self.nothing]
        at, *kept = now = [builder.phi(each.type) for each in begin]
        builder.cbranch(builder.icmp_signed("<", at, whole), body, after)
        builder.position_at_end(body)
        then = [builder.add(at, _LONG(self.lanes)), *self.seen(kept, self.load(builder.gep(pointer, [at])))]
        builder.branch(head)
        for value, first, following in zip(now, begin, then, strict=True):
            value.add_incoming(first, start)
            value.add_incoming(following, body)
        builder.position_at_end(after)
        lanes = ir.Constant(ir.VectorType(_INT, self.lanes), list(range(self.lanes)))
        rest = self.spread(builder.trunc(builder.sub(length, whole), _INT))
        inside = builder.icmp_signed("<", lanes, rest)
        return self.seen(kept, self.load_some(builder.gep(pointer, [whole]), inside), inside)

    def totals(self, counts: Any) -> tuple[Any, Any]:
        """How many scores of all lanes are above the limit, and how many are not below it."""
        builder, name = self.builder, f"vector.reduce.add.v{self.lanes}i{self.whole.width}"
        total = builder.call(self.function(name, self.whole, [self.counts]), [counts])
        low = builder.and_(total, self.whole((1 << self.half) - 1))
        above = builder.udiv(low, self.whole(_UNIT))
        return self.long(above), self.long(builder.lshr(total, self.whole(self.half)))

    def top(self, largest: Any) -> tuple[Any, Any]:
        """The largest score of all lanes, and a bit for each lane that has it."""
        builder, name = self.builder, f"vector.reduce.fmax.v{self.lanes}f{self.whole.width}"
        find = self.function(name, self.scores.element, [self.scores])
        top = builder.call(find, [largest], fastmath=("nnan", "nsz"))  # no lane has kept a NaN
        at = builder.fcmp_ordered("==", largest, self.spread(top))
        return top, self.long(builder.bitcast(at, ir.IntType(self.lanes)))

    def long(self, value: Any) -> Any:
        """A whole number in 64 bits."""
        return value if value.type == _LONG else self.builder.zext(value, _LONG)

    def function(self, name: str, result: Any, arguments: list[Any]) -> Any:
        """One of the functions that LLVM has for vectors."""
        kind = ir.FunctionType(result, arguments)
        insert: Any = numba.core.cgutils.get_or_insert_function
        return insert(self.builder.module, kind, f"llvm.{name}")


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def scan_row(typing: Any, row: Any, start: Any, stop: Any, limit: Any) -> Any:
    """Of ``row[start:stop]``, at most ``STEPS`` steps of scores side by side, nearly all there is to know.

    How many are above the limit, how many are not below it (NaN among them), the largest that is no NaN, and
    a bit for each lane that has it: lane ``l`` has the place ``start + l`` and each a step further.
    """
    told = types.Tuple((types.int64, types.int64, row.dtype, types.uint64))

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        scores, first, last, beside = values
        data = context.make_array(signature.args[0])(context, builder, scores).data
        vectors = _Vectors(builder, beside)
        largest, counts = vectors.walk(builder.gep(data, [first]), builder.sub(last, first))
        return context.make_tuple(builder, told, [*vectors.totals(counts), *vectors.top(largest)])

    return told(row, types.int64, types.int64, row.dtype), generate


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def lowest_bit(typing: Any, bits: Any) -> Any:
    """The place of the lowest bit that is set; one is."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.cttz(values[0], _BIT(1))

    return types.int64(types.uint64), generate


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def scores_at(typing: Any, address: Any, length: Any, like: Any) -> Any:
    """So many scores side by side from an address on, as an array of the type of another."""
    told = types.Array(like.dtype, 1, "C")

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        array = context.make_array(told)(context, builder)
        size = _LONG(like.dtype.bitwidth // 8)
        fill: Any = numba.np.arrayobj.populate_array
        pointer = builder.inttoptr(values[0], array.data.type)
        fill(array, data=pointer, shape=[values[1]], strides=[size], itemsize=size, meminfo=None)
        return array._getvalue()

    return told(types.int64, types.int64, like), generate


@compiled
def rank_rows(
    scores: tuple[int, int, int],
    like: NDArray[Any],
    targets: Ints,
    above: Ints,
    tied: Ints,
    predicted: Ints,
    shared: Bools,
    part: tuple[int, int],
) -> tuple[int, int]:
    """Fill the columns for a part of the rows, one at a time.

    Returns the first row that holds a NaN, or -1, and how many targets are tied.

    ``scores`` says where the first row begins, how far the next one is, and how many scores a row has. An
    array would say the same, but for each way in which one may lie there would be another kernel.
    """
    address, apart, width = scores
    stretch = STEPS * STEP // like.itemsize
    ties = 0
    if width <= stretch:  # a loop of its own, which is a tenth faster
        for i in range(part[0], part[1]):
            row = scores_at(address + i * apart, width, like)
            over, left, top, lanes = scan_row(row, 0, width, row[targets[i]])
            same = count_equal(row, row[targets[i]], left - over)
            if same == 0:
                return i, ties
            above[i], tied[i] = over, same - 1
            ties += same > 1
            predicted[i], shared[i] = first_max_index(row, top, lanes, 0, width)
        return -1, ties
    for i in range(part[0], part[1]):
        row = scores_at(address + i * apart, width, like)
        over, left, top, lanes, where, again = scan_segments(row, row[targets[i]], stretch)
        same = count_equal(row, row[targets[i]], left - over)
        if same == 0:
            return i, ties
        above[i], tied[i] = over, same - 1
        ties += same > 1
        first, twice = first_max_index(row, top, lanes, where, min(where + stretch, width))
        predicted[i], shared[i] = first, again or twice
    return -1, ties


@compiled
def scan_segments(row: NDArray[Any], limit: Any, stretch: int) -> tuple[int, int, Any, Any, int, bool]:
    """What one look tells, of a row that takes several; where its largest stands, and if in others too."""
    over, left, top, lanes = scan_row(row, 0, stretch, limit)
    where, again = 0, False
    for start in range(stretch, row.shape[0], stretch):
        more_over, more_left, best, its_lanes = scan_row(row, start, min(start + stretch, row.shape[0]), limit)
        over, left = over + more_over, left + more_left
        if best > top:
            top, lanes, where, again = best, its_lanes, start, False
        elif best == top:
            again = True
    return over, left, top, lanes, where, again


@compiled
def count_equal(row: NDArray[Any], limit: Any, same: int) -> int:
    """How many scores equal the limit, itself among them; 0 where one is NaN, which pass for equal so far."""
    if same == 1 and limit == limit:
        return 1
    equal, unknown = count_equal_and_nan(row, limit)
    return 0 if unknown else equal


def supports_dtype(dtype: Any) -> bool:
    """Whether the kernel is compiled for scores of this type."""
    kind_of: Any = numba.from_dtype
    kind = kind_of(dtype)
    return any(kinds[1].dtype == kind for kinds in cast(Any, rank_rows).overloads)


@compiled
def count_equal_and_nan(row: NDArray[Any], limit: Any) -> tuple[int, int]:
    """How many scores equal the limit, and how many are NaN."""
    equal, unknown = 0, 0
    for score in row:
        equal += score == limit
        unknown += score != score
    return equal, unknown


@compiled
def first_max_index(row: NDArray[Any], top: Any, lanes: Any, start: int, stop: int) -> tuple[int, bool]:
    """The first place of the largest score of a stretch, and whether it has another; the lanes have it.

    All places of the lane are asked: a loop that ends at the right one would be mispredicted in every row,
    and hold up the next. So no row is spared the search, not even where the target is known to be first.
    """
    step, lane = STEP // row.itemsize, start + lowest_bit(lanes)
    whole = (stop - start) // step
    found, nth = 0, 0
    for k in range(whole):
        here = row[lane + k * step] == top
        found += here
        nth += k if here else 0
    last = lane + whole * step
    here = (last < stop) & (row[min(last, stop - 1)] == top)
    found += here
    nth += whole if here else 0
    if found == 1 and lanes & (lanes - _ONE) == 0:
        return lane + nth * step, False
    first, other = first_and_last_index(row[start:stop], top)
    return start + first, first != other


@compiled
def first_and_last_index(row: NDArray[Any], top: Any) -> tuple[Any, Any]:
    """The first and the last place of a score that is there."""
    first, last = np.int32(row.shape[0]), np.int32(-1)
    for j in range(row.shape[0]):
        found = row[j] == top
        first = min(first, np.int32(j) if found else np.int32(2147483647))
        last = max(last, np.int32(j) if found else np.int32(-1))
    return first, last


# Rows shared out among threads: each takes the next few until none are left.


# The same look compiled by numba, where that is installed: the first look tells nearly everything.
