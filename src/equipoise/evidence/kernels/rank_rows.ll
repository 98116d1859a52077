; Rank counts of one target per row. rank_counts_llvm.py replaces the words that begin with $ and compiles this.
;
; The result is the first row that contains NaN or has a target outside of the row, or -1. Threads call this together:
; each takes chunks of rows from the counter next_row and has a histogram of its own, of width + 1 counts: the rows
; without ties by the number of scores above the target, and last the rows with ties.
;
; Scores are read once, in order, from addresses that are multiples of a cache line, $A scores: offsets count from the
; line in which the row begins, and skip is the row's offset. What is read is copied to a buffer of one segment, with
; -inf before and after the row. If a row fits into a segment, the loop reads one row and counts in the row before it,
; which is in the other buffer: the target's score, which is needed first, is then in the cache. A longer row is
; counted while it is read, and is not copied.

define i64 @rank_rows(ptr %scores, i64 %stride, i64 %width, i64 %rows, i64 %chunk, ptr %targets, ptr %above, ptr %tied,
                      ptr %predicted, ptr %shared, ptr %histogram, ptr %next_row) {
  %is_short = icmp sle i64 %width, $SHORT
  br i1 %is_short, label %short, label %long
short:
  %of_short = call i64 @rank(i1 true, ptr %scores, i64 %stride, i64 %width, i64 %rows, i64 %chunk, ptr %targets,
      ptr %above, ptr %tied, ptr %predicted, ptr %shared, ptr %histogram, ptr %next_row)
  ret i64 %of_short
long:
  %of_long = call i64 @rank(i1 false, ptr %scores, i64 %stride, i64 %width, i64 %rows, i64 %chunk, ptr %targets,
      ptr %above, ptr %tied, ptr %predicted, ptr %shared, ptr %histogram, ptr %next_row)
  ret i64 %of_long
}

define internal i64 @rank(i1 %is_short, ptr %scores, i64 %stride, i64 %width, i64 %rows, i64 %chunk, ptr %targets,
                          ptr %above, ptr %tied, ptr %predicted, ptr %shared, ptr %histogram, ptr %next_row)
    alwaysinline {
entry:
  %buffer.0 = alloca [$BUFFERS x i8], align 4096
  %buffer.1 = getelementptr i8, ptr %buffer.0, i64 $BUFFER
  %widest = add i64 %width, $A
  %extent = sub i64 %widest, 1              ; the offsets that a row may need, for any skip
  %lag = zext i1 %is_short to i64
  %full.stop = and i64 %width, -$N
  %full.0 = sub i64 %full.stop, $N
  %full = call i64 @llvm.smax.i64(i64 %full.0, i64 0)
  %width.32 = trunc i64 %width to i32
  %width.0 = insertelement $L poison, i32 %width.32, i32 0
  %widths = shufflevector $L %width.0, $L poison, $L zeroinitializer
  br label %next_chunk

next_chunk:
  %first = atomicrmw add ptr %next_row, i64 %chunk monotonic
  %chunk.stop = add i64 %first, %chunk
  %last = call i64 @llvm.smin.i64(i64 %chunk.stop, i64 %rows)
  %final = sub i64 %last, 1
  %before_first = sub i64 %first, %lag
  %rows_left = icmp slt i64 %first, %rows
  br i1 %rows_left, label %next_row_of_chunk, label %finished

next_row_of_chunk:                         ; reads the row "next" and counts in row i, which is the same if lag is 0
  %i = phi i64 [%before_first, %next_chunk], [%i.1, %advance]
  %read = phi ptr [%buffer.0, %next_chunk], [%fill, %advance]
  %fill = phi ptr [%buffer.1, %next_chunk], [%read, %advance]
  %skip.before = phi i64 [0, %next_chunk], [%skip, %advance]
  %top.before = phi $T [$MINUS_INF, %next_chunk], [%top.1, %advance]
  %lanes.before = phi i64 [1, %next_chunk], [%lanes.1, %advance]
  %inside = icmp slt i64 %i, %last
  br i1 %inside, label %row_start, label %next_chunk

row_start:
  %i.next = add i64 %i, %lag
  %next = call i64 @llvm.smin.i64(i64 %i.next, i64 %final)
  %next.offset = mul i64 %next, %stride
  %next.row = getelementptr i8, ptr %scores, i64 %next.offset
  %next.address = ptrtoint ptr %next.row to i64
  %skip.bytes = and i64 %next.address, 63
  %skip = udiv exact i64 %skip.bytes, $B
  %back = sub i64 0, %skip
  %line = getelementptr $T, ptr %next.row, i64 %back

  %counted = call i64 @llvm.smax.i64(i64 %i, i64 %first)
  %offset = mul i64 %counted, %stride
  %row = getelementptr i8, ptr %scores, i64 %offset
  %target.at = getelementptr i64, ptr %targets, i64 %counted
  %target = load i64, ptr %target.at
  %is_column = icmp ult i64 %target, %width
  br i1 %is_column, label %row_scan, label %bad_row

row_scan:
  %row.skip = select i1 %is_short, i64 %skip.before, i64 %skip
  %copy = getelementptr $T, ptr %read, i64 %skip.before
  %limit.in = select i1 %is_short, ptr %copy, ptr %row
  %limit.at = getelementptr $T, ptr %limit.in, i64 %target
  %limit = load $T, ptr %limit.at
  %limit.0 = insertelement $V poison, $T %limit, i32 0
  %limits = shufflevector $V %limit.0, $V poison, $L zeroinitializer
  br label %segment

segment:
  %start = phi i64 [0, %row_scan], [%stop, %segment_done]
  %n_above = phi i64 [0, %row_scan], [%n_above.1, %segment_done]
  %n_left = phi i64 [0, %row_scan], [%n_left.1, %segment_done]
  %top = phi $T [$MINUS_INF, %row_scan], [%top.1, %segment_done]
  %lanes = phi i64 [1, %row_scan], [%lanes.1, %segment_done]
  %position = phi i64 [0, %row_scan], [%position.1, %segment_done]
  %again = phi i1 [false, %row_scan], [%again.1, %segment_done]
  %segment.stop = add i64 %start, $SEGMENT
  %stop = call i64 @llvm.smin.i64(i64 %segment.stop, i64 %extent)
  br label %step

step:                                      ; for all lanes: the largest score, and packed counts
  %j = phi i64 [%start, %segment], [%j.1, %compare]
  %largest = phi $V [$ALL_MINUS_INF, %segment], [%largest.1, %compare]
  %counts = phi $C [zeroinitializer, %segment], [%counts.1, %compare]
  %s.at = getelementptr $T, ptr %line, i64 %j
  %j.full = sub i64 %j, $N
  %is_full = icmp ult i64 %j.full, %full
  br i1 %is_full, label %load_all, label %load_some

load_all:
  %s.all = load $V, ptr %s.at, align 64
  br label %count

load_some:                                 ; the scores from offset skip to skip + width
  %j.row = sub i64 %j, %skip
  %j.32 = trunc i64 %j.row to i32
  %j.0 = insertelement $L poison, i32 %j.32, i32 0
  %j.v = shufflevector $L %j.0, $L poison, $L zeroinitializer
  %columns = add $L %j.v, $INDICES
  %mask = icmp ult $L %columns, %widths
  %s.some = call $V @llvm.masked.load.$VN.p0(ptr %s.at, i32 64, $M %mask, $V $ALL_MINUS_INF)
  br label %count

count:
  %s = phi $V [%s.all, %load_all], [%s.some, %load_some]
  %larger = fcmp ogt $V %s, %largest
  %largest.1 = select $M %larger, $V %s, $V %largest
  br i1 %is_short, label %copy_step, label %compare

copy_step:
  %fill.at = getelementptr $T, ptr %fill, i64 %j
  store $V %s, ptr %fill.at, align 64
  %read.at = getelementptr $T, ptr %read, i64 %j
  %s.before = load $V, ptr %read.at, align 64
  br label %compare

compare:
  %c = phi $V [%s.before, %copy_step], [%s, %count]
  %gt = fcmp ogt $V %c, %limits
  %ge = fcmp uge $V %c, %limits
  %c.gt = add $C %counts, $ALL_TWO
  %c.1 = select $M %gt, $C %c.gt, $C %counts
  %c.ge = add $C %c.1, $ALL_HIGH
  %counts.1 = select $M %ge, $C %c.ge, $C %c.1
  %j.1 = add i64 %j, $N
  %j.more = icmp slt i64 %j.1, %stop
  br i1 %j.more, label %step, label %segment_done

segment_done:
  %total = call $I @llvm.vector.reduce.add.$CN($C %counts.1)
  %low = and $I %total, $LOW_MASK
  %seg.above.i = lshr $I %low, 1
  %seg.left.i = lshr $I %total, $HALF
  %seg.above = $EXTEND $I %seg.above.i to i64
  %seg.left = $EXTEND $I %seg.left.i to i64
  %seg.top = call nnan nsz $T @llvm.vector.reduce.fmax.$VN($V %largest.1)
  %seg.top.0 = insertelement $V poison, $T %seg.top, i32 0
  %seg.tops = shufflevector $V %seg.top.0, $V poison, $L zeroinitializer
  %seg.has = fcmp oeq $V %largest.1, %seg.tops
  %seg.bits = bitcast $M %seg.has to $MASK_INT
  %seg.lanes = $EXTEND_MASK $MASK_INT %seg.bits to i64
  %n_above.1 = add i64 %n_above, %seg.above
  %n_left.1 = add i64 %n_left, %seg.left
  %is_first = icmp eq i64 %start, 0
  %is_higher.0 = fcmp ogt $T %seg.top, %top
  %is_higher = or i1 %is_higher.0, %is_first
  %is_equal = fcmp oeq $T %seg.top, %top
  %again.0 = or i1 %again, %is_equal
  %again.1 = select i1 %is_higher, i1 false, i1 %again.0
  %top.1 = select i1 %is_higher, $T %seg.top, $T %top
  %lanes.1 = select i1 %is_higher, i64 %seg.lanes, i64 %lanes
  %position.1 = select i1 %is_higher, i64 %start, i64 %position
  %more = icmp slt i64 %stop, %extent
  br i1 %more, label %segment, label %row_scanned

row_scanned:
  %row.top = select i1 %is_short, $T %top.before, $T %top.1
  %row.lanes = select i1 %is_short, i64 %lanes.before, i64 %lanes.1
  %is_read_only = icmp slt i64 %i, %first
  br i1 %is_read_only, label %advance, label %check_ties

check_ties:                                ; -inf outside of the row is counted only where the limit is -inf
  %left_over = sub i64 %n_left.1, %n_above.1
  %one = icmp eq i64 %left_over, 1
  %ordered = fcmp ord $T %limit, %limit
  %alone = and i1 %one, %ordered
  br i1 %alone, label %find_top, label %count_ties, !prof !0

count_ties:
  %equal = call i64 @count_equal(ptr %row, i64 %width, $T %limit)
  %has_nan = icmp slt i64 %equal, 0
  br i1 %has_nan, label %bad_row, label %find_top

find_top:                                  ; in every step, the line of the lane that holds the largest score
  %same = phi i64 [1, %check_ties], [%equal, %count_ties]
  %lane = call i64 @llvm.cttz.i64(i64 %row.lanes, i1 true)
  %lane.line = and i64 %lane, -$A
  %row.back = sub i64 0, %row.skip
  %row.line = getelementptr $T, ptr %row, i64 %row.back
  %search.in = select i1 %is_short, ptr %read, ptr %row.line
  %row.stop = add i64 %width, %row.skip
  %top.stop.0 = add i64 %position.1, $SEGMENT
  %top.stop = call i64 @llvm.smin.i64(i64 %top.stop.0, i64 %row.stop)
  %k.first = add i64 %position.1, %lane.line
  %tops.0 = insertelement $VA poison, $T %row.top, i32 0
  %tops = shufflevector $VA %tops.0, $VA poison, $LA zeroinitializer
  br label %line_step

line_step:                                 ; per lane: the number of matches, and the sum of their distances from k.first
  %k = phi i64 [%k.first, %find_top], [%k.1, %line_step]
  %match = phi $CA [$LINE_HIGH, %find_top], [%match.1, %line_step]
  %found = phi $CA [zeroinitializer, %find_top], [%found.1, %line_step]
  %k.at = getelementptr $T, ptr %search.in, i64 %k
  %k.scores = load $VA, ptr %k.at, align 64
  %k.is_top = fcmp oeq $VA %k.scores, %tops
  %found.more = add $CA %found, %match
  %found.1 = select $MA %k.is_top, $CA %found.more, $CA %found
  %match.1 = add $CA %match, $LINE_STEP
  %k.1 = add i64 %k, $N
  %k.more = icmp slt i64 %k.1, %top.stop
  br i1 %k.more, label %line_step, label %lines_done

lines_done:
  %found.sum = call $I @llvm.vector.reduce.add.$CAN($CA %found.1)
  %hits = lshr $I %found.sum, $HALF
  %once = icmp eq $I %hits, 1
  %distance.i = and $I %found.sum, $LOW_MASK
  %distance = $EXTEND $I %distance.i to i64
  %index.0 = add i64 %position.1, %lane
  %index.1 = add i64 %index.0, %distance
  %index = sub i64 %index.1, %row.skip
  %lanes.less = sub i64 %row.lanes, 1
  %lanes.other = and i64 %row.lanes, %lanes.less
  %one_lane = icmp eq i64 %lanes.other, 0
  %unique = and i1 %once, %one_lane
  br i1 %unique, label %row_done, label %search_top, !prof !0

search_top:
  %search.first.0 = sub i64 %position.1, %row.skip
  %search.first = call i64 @llvm.smax.i64(i64 %search.first.0, i64 0)
  %search.stop = sub i64 %top.stop, %row.skip
  %packed = call i64 @first_equal(ptr %row, i64 %search.first, i64 %search.stop, $T %row.top)
  %found.first = lshr i64 %packed, 1
  %twice = trunc i64 %packed to i1
  %found.shared = or i1 %again.1, %twice
  br label %row_done

row_done:
  %chosen = phi i64 [%index, %lines_done], [%found.first, %search_top]
  %is_shared = phi i1 [%again.1, %lines_done], [%found.shared, %search_top]
  %above.at = getelementptr i64, ptr %above, i64 %i
  store i64 %n_above.1, ptr %above.at
  %others = sub i64 %same, 1
  %tied.at = getelementptr i64, ptr %tied, i64 %i
  store i64 %others, ptr %tied.at
  %predicted.at = getelementptr i64, ptr %predicted, i64 %i
  store i64 %chosen, ptr %predicted.at
  %shared.at = getelementptr i8, ptr %shared, i64 %i
  %is_shared.8 = zext i1 %is_shared to i8
  store i8 %is_shared.8, ptr %shared.at
  %is_tied = icmp ne i64 %others, 0
  %bin = select i1 %is_tied, i64 %width, i64 %n_above.1
  %bin.at = getelementptr i64, ptr %histogram, i64 %bin
  %bin.count = load i64, ptr %bin.at
  %bin.count.1 = add i64 %bin.count, 1
  store i64 %bin.count.1, ptr %bin.at
  br label %advance

advance:
  %i.1 = add i64 %i, 1
  br label %next_row_of_chunk

bad_row:
  ret i64 %counted

finished:
  ret i64 -1
}

; How many scores equal the limit, including itself; -1 if a score is NaN.
define internal i64 @count_equal(ptr %row, i64 %width, $T %limit) noinline {
entry:
  br label %loop
loop:
  %j = phi i64 [0, %entry], [%j.1, %loop]
  %equal = phi i64 [0, %entry], [%equal.1, %loop]
  %nans = phi i64 [0, %entry], [%nans.1, %loop]
  %at = getelementptr $T, ptr %row, i64 %j
  %s = load $T, ptr %at
  %is_equal = fcmp oeq $T %s, %limit
  %is_nan = fcmp uno $T %s, %s
  %one = zext i1 %is_equal to i64
  %nan = zext i1 %is_nan to i64
  %equal.1 = add i64 %equal, %one
  %nans.1 = add i64 %nans, %nan
  %j.1 = add i64 %j, 1
  %more = icmp slt i64 %j.1, %width
  br i1 %more, label %loop, label %done
done:
  %any_nan = icmp ne i64 %nans.1, 0
  %result = select i1 %any_nan, i64 -1, i64 %equal.1
  ret i64 %result
}

; Twice the first index of a score that occurs from start to stop, plus 1 if it occurs again.
define internal i64 @first_equal(ptr %row, i64 %start, i64 %stop, $T %top) noinline {
entry:
  br label %loop
loop:
  %j = phi i64 [%start, %entry], [%j.1, %loop]
  %first = phi i64 [%stop, %entry], [%first.1, %loop]
  %last = phi i64 [-1, %entry], [%last.1, %loop]
  %at = getelementptr $T, ptr %row, i64 %j
  %s = load $T, ptr %at
  %is_top = fcmp oeq $T %s, %top
  %first.j = select i1 %is_top, i64 %j, i64 %stop
  %last.j = select i1 %is_top, i64 %j, i64 -1
  %first.1 = call i64 @llvm.smin.i64(i64 %first, i64 %first.j)
  %last.1 = call i64 @llvm.smax.i64(i64 %last, i64 %last.j)
  %j.1 = add i64 %j, 1
  %more = icmp slt i64 %j.1, %stop
  br i1 %more, label %loop, label %done
done:
  %twice = icmp ne i64 %first.1, %last.1
  %bit = zext i1 %twice to i64
  %double = shl i64 %first.1, 1
  %result = or i64 %double, %bit
  ret i64 %result
}

declare i64 @llvm.smax.i64(i64, i64)
declare i64 @llvm.smin.i64(i64, i64)
declare i64 @llvm.cttz.i64(i64, i1)
declare $V @llvm.masked.load.$VN.p0(ptr, i32, $M, $V)
declare $I @llvm.vector.reduce.add.$CN($C)
declare $I @llvm.vector.reduce.add.$CAN($CA)
declare $T @llvm.vector.reduce.fmax.$VN($V)
!0 = !{!"branch_weights", i32 1000, i32 1}
