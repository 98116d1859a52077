"""The compiled rank kernel: numba with hand-written LLVM vector code for the inner loop.

For each row of scores (rows, width), float32 or float64, and its target: the scores above the target, the scores
equal to it, and the index of the largest score. One pass over the row does nearly all of this. Each SIMD lane
keeps its largest score and two counts packed into one integer: above in the low half, not below in the high half.
The index of the maximum is then searched in the one lane that holds it. A second pass over the row, which is in
the cache, is needed only if another score equals the target's or is NaN.

Reason for LLVM code: numba does not vectorise this loop, because a float maximum must handle NaN and the lane of
the maximum is lost. Measured on 20,000 x 1,000 float32: 0.0034 s, against 0.0147 s for three plain numba loops and
0.0025 s for numpy's maximum of the array (benchmarks/README.md, section places).

numba caches the compiled code on disk until this file changes, so all code of the kernel is in this file.
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

BYTES_PER_STEP = 256 if llvmlite.binding.get_host_cpu_features().get("avx512f") else 128
"""Bytes per step of the loop: the state of one step fills half of the vector registers."""

MAX_STEPS = 64
"""Maximum steps per scan: each count must fit into half of a 32-bit integer."""

_ABOVE_INCREMENT = 2
"""Increment of the lower count: LLVM emits two instructions for adding 1, one for adding 2."""

_BIT, _INT, _LONG = ir.IntType(1), ir.IntType(32), ir.IntType(64)
_ONE = np.uint64(1)


class _Vectors:
    """Emits LLVM code for vectors of one step; the loop state is the largest score and the counts of each lane.

    The low half of a count is for scores above the limit, the high half for scores not below it (NaN included).
    """

    def __init__(self, builder: Any, limit: Any) -> None:
        self.builder = builder
        self.size = 4 if limit.type == ir.FloatType() else 8
        self.lanes = BYTES_PER_STEP // self.size
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
        """Load one step of scores."""
        return self.builder.load(self.builder.bitcast(pointer, self.scores.as_pointer()), align=self.size)

    def load_some(self, pointer: Any, inside: Any) -> Any:
        """Load the scores of the lanes in the mask; the others are not read."""
        kinds = [self.scores.as_pointer(), _INT, ir.VectorType(_BIT, self.lanes), self.scores]
        load = self.function(f"masked.load.v{self.lanes}f{self.whole.width}.p0", self.scores, kinds)
        address = self.builder.bitcast(pointer, self.scores.as_pointer())
        return self.builder.call(load, [address, _INT(self.size), inside, self.nothing[0]])

    def update(self, state: list[Any], score: Any, inside: Any = None) -> list[Any]:
        """The loop state after these scores, or after those of the lanes in the mask."""
        builder, (largest, counts) = self.builder, state
        above = builder.fcmp_ordered(">", score, self.limit)
        left = builder.fcmp_unordered(">=", score, self.limit)
        for mask, one in ((above, _ABOVE_INCREMENT), (left, 1 << self.half)):
            more = builder.add(counts, self.all(self.counts, one))
            counts = builder.select(mask if inside is None else builder.and_(mask, inside), more, counts)
        return [builder.select(builder.fcmp_ordered(">", score, largest), score, largest), counts]

    def walk(self, pointer: Any, length: Any) -> list[Any]:
        """The state after all scores: full steps, then a masked step for the remainder."""
        builder, start = self.builder, self.builder.block
        vector_length = builder.and_(length, _LONG(-self.lanes))
        head, body, after = (builder.append_basic_block() for _ in range(3))
        builder.branch(head)
        builder.position_at_end(head)
        begin = [_LONG(0), *self.nothing]
        at, *state = now = [builder.phi(value.type) for value in begin]
        builder.cbranch(builder.icmp_signed("<", at, vector_length), body, after)
        builder.position_at_end(body)
        then = [builder.add(at, _LONG(self.lanes)), *self.update(state, self.load(builder.gep(pointer, [at])))]
        builder.branch(head)
        for value, first, following in zip(now, begin, then, strict=True):
            value.add_incoming(first, start)
            value.add_incoming(following, body)
        builder.position_at_end(after)
        lanes = ir.Constant(ir.VectorType(_INT, self.lanes), list(range(self.lanes)))
        rest = self.spread(builder.trunc(builder.sub(length, vector_length), _INT))
        inside = builder.icmp_signed("<", lanes, rest)
        return self.update(state, self.load_some(builder.gep(pointer, [vector_length]), inside), inside)

    def totals(self, counts: Any) -> tuple[Any, Any]:
        """How many scores of all lanes are above the limit, and how many are not below it."""
        builder, name = self.builder, f"vector.reduce.add.v{self.lanes}i{self.whole.width}"
        total = builder.call(self.function(name, self.whole, [self.counts]), [counts])
        low = builder.and_(total, self.whole((1 << self.half) - 1))
        above = builder.udiv(low, self.whole(_ABOVE_INCREMENT))
        return self.long(above), self.long(builder.lshr(total, self.whole(self.half)))

    def top(self, largest: Any) -> tuple[Any, Any]:
        """The largest score of all lanes, and a bit mask of the lanes that have it."""
        builder, name = self.builder, f"vector.reduce.fmax.v{self.lanes}f{self.whole.width}"
        find = self.function(name, self.scores.element, [self.scores])
        top = builder.call(find, [largest], fastmath=("nnan", "nsz"))  # no lane holds NaN
        at = builder.fcmp_ordered("==", largest, self.spread(top))
        return top, self.long(builder.bitcast(at, ir.IntType(self.lanes)))

    def long(self, value: Any) -> Any:
        """The integer extended to 64 bits."""
        return value if value.type == _LONG else self.builder.zext(value, _LONG)

    def function(self, name: str, result: Any, arguments: list[Any]) -> Any:
        """An LLVM vector intrinsic."""
        kind = ir.FunctionType(result, arguments)
        insert: Any = numba.core.cgutils.get_or_insert_function
        return insert(self.builder.module, kind, f"llvm.{name}")


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def scan_row(typing: Any, row: Any, start: Any, stop: Any, limit: Any) -> Any:
    """Scan ``row[start:stop]``, contiguous scores of at most ``MAX_STEPS`` steps.

    Returns the number of scores above the limit, the number not below it (NaN included), the largest score that
    is not NaN, and a bit mask of the lanes that have it. Lane ``l`` holds the indices ``start + l + k * step``.
    """
    result = types.Tuple((types.int64, types.int64, row.dtype, types.uint64))

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        scores, first, last, threshold = values
        data = context.make_array(signature.args[0])(context, builder, scores).data
        vectors = _Vectors(builder, threshold)
        largest, counts = vectors.walk(builder.gep(data, [first]), builder.sub(last, first))
        return context.make_tuple(builder, result, [*vectors.totals(counts), *vectors.top(largest)])

    return result(row, types.int64, types.int64, row.dtype), generate


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def lowest_bit(typing: Any, bits: Any) -> Any:
    """The index of the lowest set bit; at least one bit must be set."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.cttz(values[0], _BIT(1))

    return types.int64(types.uint64), generate


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def scores_at(typing: Any, address: Any, length: Any, like: Any) -> Any:
    """An array of ``length`` contiguous scores at an address, with the dtype of ``like``."""
    array_type = types.Array(like.dtype, 1, "C")

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        array = context.make_array(array_type)(context, builder)
        size = _LONG(like.dtype.bitwidth // 8)
        fill: Any = numba.np.arrayobj.populate_array
        pointer = builder.inttoptr(values[0], array.data.type)
        fill(array, data=pointer, shape=[values[1]], strides=[size], itemsize=size, meminfo=None)
        return array._getvalue()

    return array_type(types.int64, types.int64, like), generate


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
    """Fill the output columns for the rows of ``part``.

    Returns the first row that contains NaN, or -1, and the number of tied targets.

    ``scores`` is (address of the first row, bytes between rows, scores per row). With an array instead, numba
    would compile one kernel per memory layout.
    """
    address, stride, width = scores
    stretch = MAX_STEPS * BYTES_PER_STEP // like.itemsize
    ties = 0
    if width <= stretch:  # a separate loop is 10 % faster
        for i in range(part[0], part[1]):
            row = scores_at(address + i * stride, width, like)
            higher, left, top, lanes = scan_row(row, 0, width, row[targets[i]])
            same = count_equal(row, row[targets[i]], left - higher)
            if same == 0:
                return i, ties
            above[i], tied[i] = higher, same - 1
            ties += same > 1
            predicted[i], shared[i] = first_max_index(row, top, lanes, 0, width)
        return -1, ties
    for i in range(part[0], part[1]):
        row = scores_at(address + i * stride, width, like)
        higher, left, top, lanes, position, again = scan_segments(row, row[targets[i]], stretch)
        same = count_equal(row, row[targets[i]], left - higher)
        if same == 0:
            return i, ties
        above[i], tied[i] = higher, same - 1
        ties += same > 1
        first, twice = first_max_index(row, top, lanes, position, min(position + stretch, width))
        predicted[i], shared[i] = first, again or twice
    return -1, ties


@compiled
def scan_segments(row: NDArray[Any], limit: Any, stretch: int) -> tuple[int, int, Any, Any, int, bool]:
    """Scan a row longer than one scan allows; also the segment of its maximum, and whether others have it too."""
    above, left, top, lanes = scan_row(row, 0, stretch, limit)
    position, again = 0, False
    for start in range(stretch, row.shape[0], stretch):
        more_over, more_left, best, its_lanes = scan_row(row, start, min(start + stretch, row.shape[0]), limit)
        above, left = above + more_over, left + more_left
        if best > top:
            top, lanes, position, again = best, its_lanes, start, False
        elif best == top:
            again = True
    return above, left, top, lanes, position, again


@compiled
def count_equal(row: NDArray[Any], limit: Any, same: int) -> int:
    """How many scores equal the limit, including itself; 0 if a score is NaN, which ``scan_row`` counts as equal."""
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
    """The first index of the maximum of a segment, and whether it occurs again; ``lanes`` marks its lanes.

    All indices of the lane are compared: leaving the loop early would cause a branch misprediction in every row.
    """
    step, lane = BYTES_PER_STEP // row.itemsize, start + lowest_bit(lanes)
    n_steps = (stop - start) // step
    position, nth = 0, 0
    for k in range(n_steps):
        here = row[lane + k * step] == top
        position += here
        nth += k if here else 0
    last = lane + n_steps * step
    here = (last < stop) & (row[min(last, stop - 1)] == top)
    position += here
    nth += n_steps if here else 0
    if position == 1 and lanes & (lanes - _ONE) == 0:
        return lane + nth * step, False
    first, other = first_and_last_index(row[start:stop], top)
    return start + first, first != other


@compiled
def first_and_last_index(row: NDArray[Any], top: Any) -> tuple[Any, Any]:
    """The first and the last index of a score that occurs in the row."""
    first, last = np.int32(row.shape[0]), np.int32(-1)
    for j in range(row.shape[0]):
        is_top = row[j] == top
        first = min(first, np.int32(j) if is_top else np.int32(2147483647))
        last = max(last, np.int32(j) if is_top else np.int32(-1))
    return first, last
