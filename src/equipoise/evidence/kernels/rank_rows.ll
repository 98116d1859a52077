; Rank counts of one target per row. rank_counts_llvm.py replaces the words that begin with $ and compiles this.
;
; The result is the first row that contains NaN or has a target outside of the row, or -1. Threads call this together:
; each takes chunks of rows from the counter next_row and has a histogram of its own, of width + 1 counts: the rows
; without ties by the number of scores above the target, and last the rows with ties.

define i64 @rank_rows(ptr %scores, i64 %stride, i64 %width, i64 %rows, i64 %chunk, ptr %targets, ptr %above, ptr %tied,
                      ptr %predicted, ptr %shared, ptr %histogram, ptr %next_row) {
entry:
  br label %next_chunk

next_chunk:
  %first = atomicrmw add ptr %next_row, i64 %chunk monotonic
  %chunk.stop = add i64 %first, %chunk
  %last = call i64 @llvm.smin.i64(i64 %chunk.stop, i64 %rows)
  br label %next_row_of_chunk

next_row_of_chunk:
  %i = phi i64 [%first, %next_chunk], [%i.1, %row_done]
  %inside = icmp slt i64 %i, %last
  br i1 %inside, label %row_start, label %chunk_done

chunk_done:
  %rows_left = icmp slt i64 %i, %rows
  br i1 %rows_left, label %next_chunk, label %finished

row_start:
  %offset = mul i64 %i, %stride
  %row = getelementptr i8, ptr %scores, i64 %offset
  %target.at = getelementptr i64, ptr %targets, i64 %i
  %target = load i64, ptr %target.at
  %is_column = icmp ult i64 %target, %width
  br i1 %is_column, label %row_scan, label %bad_row

row_scan:
  %limit.at = getelementptr $T, ptr %row, i64 %target
  %limit = load $T, ptr %limit.at
  %limit.0 = insertelement $V poison, $T %limit, i32 0
  %limits = shufflevector $V %limit.0, $V poison, $L zeroinitializer
  br label %segment

segment:                                   ; a row is scanned in segments of at most $SEGMENT scores
  %start = phi i64 [0, %row_scan], [%stop, %segment_done]
  %n_above = phi i64 [0, %row_scan], [%n_above.1, %segment_done]
  %n_left = phi i64 [0, %row_scan], [%n_left.1, %segment_done]
  %top = phi $T [$MINUS_INF, %row_scan], [%top.1, %segment_done]
  %lanes = phi i64 [1, %row_scan], [%lanes.1, %segment_done]
  %position = phi i64 [0, %row_scan], [%position.1, %segment_done]
  %again = phi i1 [false, %row_scan], [%again.1, %segment_done]
  %remaining = sub i64 %width, %start
  %length = call i64 @llvm.smin.i64(i64 %remaining, i64 $SEGMENT)
  %stop = add i64 %start, %length
  %full = and i64 %length, -$N
  %full.stop = add i64 %start, %full
  br label %step

step:                                      ; for all lanes: the largest score, and packed counts
  %j = phi i64 [%start, %segment], [%j.1, %scan]
  %largest = phi $V [$ALL_MINUS_INF, %segment], [%largest.1, %scan]
  %counts = phi $C [zeroinitializer, %segment], [%counts.1, %scan]
  %is_full = icmp slt i64 %j, %full.stop
  br i1 %is_full, label %scan, label %rest

scan:
  %s.at = getelementptr $T, ptr %row, i64 %j
  %s = load $V, ptr %s.at, align $B
  %gt = fcmp ogt $V %s, %limits
  %ge = fcmp uge $V %s, %limits
  %c.gt = add $C %counts, $ALL_TWO
  %c.1 = select $M %gt, $C %c.gt, $C %counts
  %c.ge = add $C %c.1, $ALL_HIGH
  %counts.1 = select $M %ge, $C %c.ge, $C %c.1
  %larger = fcmp ogt $V %s, %largest
  %largest.1 = select $M %larger, $V %s, $V %largest
  %j.1 = add i64 %j, $N
  br label %step

rest:                                      ; the last scores of the segment, by a mask
  %r.at = getelementptr $T, ptr %row, i64 %full.stop
  %n_rest = sub i64 %length, %full
  %n_rest.32 = trunc i64 %n_rest to i32
  %n_rest.0 = insertelement $L poison, i32 %n_rest.32, i32 0
  %n_rest.v = shufflevector $L %n_rest.0, $L poison, $L zeroinitializer
  %mask = icmp slt $L $INDICES, %n_rest.v
  %r = call $V @llvm.masked.load.$VN.p0(ptr %r.at, i32 $B, $M %mask, $V $ALL_MINUS_INF)
  %r.gt = fcmp ogt $V %r, %limits
  %r.gt.m = and $M %r.gt, %mask
  %r.ge = fcmp uge $V %r, %limits
  %r.ge.m = and $M %r.ge, %mask
  %rc.gt = add $C %counts, $ALL_TWO
  %rc.1 = select $M %r.gt.m, $C %rc.gt, $C %counts
  %rc.ge = add $C %rc.1, $ALL_HIGH
  %rc = select $M %r.ge.m, $C %rc.ge, $C %rc.1
  %r.larger = fcmp ogt $V %r, %largest
  %rl = select $M %r.larger, $V %r, $V %largest
  %total = call $I @llvm.vector.reduce.add.$CN($C %rc)
  %low = and $I %total, $LOW_MASK
  %seg.above.i = lshr $I %low, 1
  %seg.left.i = lshr $I %total, $HALF
  %seg.above = $EXTEND $I %seg.above.i to i64
  %seg.left = $EXTEND $I %seg.left.i to i64
  %seg.top = call nnan nsz $T @llvm.vector.reduce.fmax.$VN($V %rl)
  %seg.top.0 = insertelement $V poison, $T %seg.top, i32 0
  %seg.tops = shufflevector $V %seg.top.0, $V poison, $L zeroinitializer
  %seg.has = fcmp oeq $V %rl, %seg.tops
  %seg.bits = bitcast $M %seg.has to $MASK_INT
  %seg.lanes = $EXTEND_MASK $MASK_INT %seg.bits to i64
  br label %segment_done

segment_done:
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
  %more = icmp slt i64 %stop, %width
  br i1 %more, label %segment, label %row_scanned

row_scanned:
  %left_over = sub i64 %n_left.1, %n_above.1
  %one = icmp eq i64 %left_over, 1
  %ordered = fcmp ord $T %limit, %limit
  %alone = and i1 %one, %ordered
  br i1 %alone, label %find_top, label %count_ties, !prof !0

count_ties:
  %equal = call i64 @count_equal(ptr %row, i64 %width, $T %limit)
  %has_nan = icmp slt i64 %equal, 0
  br i1 %has_nan, label %bad_row, label %find_top

find_top:                                  ; all steps of the lane: leaving on a match is mispredicted in most rows
  %same = phi i64 [1, %row_scanned], [%equal, %count_ties]
  %lane = call i64 @llvm.cttz.i64(i64 %lanes.1, i1 true)
  %top.stop.0 = add i64 %position.1, $SEGMENT
  %top.stop = call i64 @llvm.smin.i64(i64 %top.stop.0, i64 %width)
  %lane.first = add i64 %position.1, %lane
  br label %lane_step

lane_step:
  %k = phi i64 [%lane.first, %find_top], [%k.1, %lane_step]
  %hits = phi i64 [0, %find_top], [%hits.1, %lane_step]
  %index = phi i64 [0, %find_top], [%index.1, %lane_step]
  %k.at = getelementptr $T, ptr %row, i64 %k
  %k.score = load $T, ptr %k.at
  %k.is_top = fcmp oeq $T %k.score, %top.1
  %k.one = zext i1 %k.is_top to i64
  %hits.1 = add i64 %hits, %k.one
  %index.1 = select i1 %k.is_top, i64 %k, i64 %index
  %k.1 = add i64 %k, $N
  %k.more = icmp slt i64 %k.1, %top.stop
  br i1 %k.more, label %lane_step, label %lane_done

lane_done:
  %once = icmp eq i64 %hits.1, 1
  %lanes.less = sub i64 %lanes.1, 1
  %lanes.other = and i64 %lanes.1, %lanes.less
  %one_lane = icmp eq i64 %lanes.other, 0
  %unique = and i1 %once, %one_lane
  br i1 %unique, label %row_done, label %search_top, !prof !0

search_top:
  %packed = call i64 @first_equal(ptr %row, i64 %position.1, i64 %top.stop, $T %top.1)
  %found = lshr i64 %packed, 1
  %twice = trunc i64 %packed to i1
  %found.shared = or i1 %again.1, %twice
  br label %row_done

row_done:
  %chosen = phi i64 [%index.1, %lane_done], [%found, %search_top]
  %is_shared = phi i1 [%again.1, %lane_done], [%found.shared, %search_top]
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
  %i.1 = add i64 %i, 1
  br label %next_row_of_chunk

bad_row:
  ret i64 %i

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
declare $T @llvm.vector.reduce.fmax.$VN($V)
!0 = !{!"branch_weights", i32 1000, i32 1}
