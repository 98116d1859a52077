; Rank counts of one target per row. rank_counts_llvm.py replaces the words that begin with $ and compiles this.
;
; The result is the first row that contains NaN or has a target outside of the row, or -1. Threads call this together:
; each takes chunks of rows from the counter next_row and has a histogram of its own, of width + 1 counts: the rows
; without ties by the number of scores above the target, and last the rows with ties.
;
; A step reads $N scores, and prefetches those $AHEAD bytes ahead. Each SIMD lane keeps its largest score of a segment of
; $SEGMENT columns. The index of the maximum is then searched in every $N-th column of one segment.

define i64 @rank_rows(ptr %scores, i64 %stride, i64 %width, i64 %rows, i64 %chunk, ptr %targets, ptr %above, ptr %tied,
                      ptr %predicted, ptr %shared, ptr %histogram, ptr %next_row) {
entry:
  %full = and i64 %width, -$N
  %rest = sub i64 %width, %full
  %has_rest = icmp ne i64 %rest, 0
  %rest.32 = trunc i64 %rest to i32
  %rest.0 = insertelement $L poison, i32 %rest.32, i32 0
  %rests = shufflevector $L %rest.0, $L poison, $L zeroinitializer
  %in_rest = icmp ult $L $INDICES, %rests
  br label %next_chunk

next_chunk:
  %first = atomicrmw add ptr %next_row, i64 %chunk monotonic
  %chunk.stop = add i64 %first, %chunk
  %last = call i64 @llvm.smin.i64(i64 %chunk.stop, i64 %rows)
  %rows_left = icmp slt i64 %first, %rows
  br i1 %rows_left, label %row_start, label %finished

row_start:
  %i = phi i64 [%first, %next_chunk], [%i.1, %row_done]
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

segment:
  %start = phi i64 [0, %row_scan], [%end, %segment_done]
  %above.0 = phi i64 [0, %row_scan], [%above.n, %segment_done]
  %left.0 = phi i64 [0, %row_scan], [%left.n, %segment_done]
  %top.0 = phi $T [$MINUS_INF, %row_scan], [%top, %segment_done]
  %lanes.0 = phi $MASK_INT [1, %row_scan], [%lanes, %segment_done]
  %position.0 = phi i64 [0, %row_scan], [%position, %segment_done]
  %again.0 = phi i1 [false, %row_scan], [%again, %segment_done]
  %end = add i64 %start, $SEGMENT
  %stop = call i64 @llvm.smin.i64(i64 %end, i64 %full)
  %has_step = icmp slt i64 %start, %stop
  br i1 %has_step, label %step, label %steps_done

step:
  %j = phi i64 [%start, %segment], [%j.1, %step]
  %largest = phi $V [$ALL_MINUS_INF, %segment], [%largest.1, %step]
  %n_above = phi i64 [%above.0, %segment], [%n_above.1, %step]
  %n_left = phi i64 [%left.0, %segment], [%n_left.1, %step]
  %s.at = getelementptr $T, ptr %row, i64 %j
$PREFETCH
  %s = load $V, ptr %s.at, align $B
  %larger = fcmp ogt $V %s, %largest
  %largest.1 = select $M %larger, $V %s, $V %largest
  %gt = fcmp ogt $V %s, %limits
  %gt.count = call i64 @count($M %gt)
  %n_above.1 = add i64 %n_above, %gt.count
  %ge = fcmp uge $V %s, %limits
  %ge.count = call i64 @count($M %ge)
  %n_left.1 = add i64 %n_left, %ge.count
  %j.1 = add i64 %j, $N
  %more = icmp slt i64 %j.1, %stop
  br i1 %more, label %step, label %steps_done

steps_done:
  %largest.f = phi $V [$ALL_MINUS_INF, %segment], [%largest.1, %step]
  %above.f = phi i64 [%above.0, %segment], [%n_above.1, %step]
  %left.f = phi i64 [%left.0, %segment], [%n_left.1, %step]
  %is_last = icmp sge i64 %end, %width
  %reads_rest = and i1 %is_last, %has_rest
  br i1 %reads_rest, label %rest_step, label %segment_done

rest_step:                                 ; -inf after the row is counted only where the limit is -inf
  %r.at = getelementptr $T, ptr %row, i64 %full
  %r = call $V @llvm.masked.load.$VN.p0(ptr %r.at, i32 $B, $M %in_rest, $V $ALL_MINUS_INF)
  %r.larger = fcmp ogt $V %r, %largest.f
  %largest.r = select $M %r.larger, $V %r, $V %largest.f
  %r.gt = fcmp ogt $V %r, %limits
  %r.gt.count = call i64 @count($M %r.gt)
  %above.r = add i64 %above.f, %r.gt.count
  %r.ge = fcmp uge $V %r, %limits
  %r.ge.count = call i64 @count($M %r.ge)
  %left.r = add i64 %left.f, %r.ge.count
  br label %segment_done

segment_done:                              ; the first segment that holds the largest score, and the lanes that do
  %largest.n = phi $V [%largest.f, %steps_done], [%largest.r, %rest_step]
  %above.n = phi i64 [%above.f, %steps_done], [%above.r, %rest_step]
  %left.n = phi i64 [%left.f, %steps_done], [%left.r, %rest_step]
  %seg.top = call nnan nsz $T @llvm.vector.reduce.fmax.$VN($V %largest.n)
  %seg.top.0 = insertelement $V poison, $T %seg.top, i32 0
  %seg.tops = shufflevector $V %seg.top.0, $V poison, $L zeroinitializer
  %seg.has = fcmp oeq $V %largest.n, %seg.tops
  %seg.lanes = bitcast $M %seg.has to $MASK_INT
  %is_first = icmp eq i64 %start, 0
  %is_higher.0 = fcmp ogt $T %seg.top, %top.0
  %is_higher = or i1 %is_higher.0, %is_first
  %is_equal = fcmp oeq $T %seg.top, %top.0
  %again.1 = or i1 %again.0, %is_equal
  %again = select i1 %is_higher, i1 false, i1 %again.1
  %top = select i1 %is_higher, $T %seg.top, $T %top.0
  %lanes = select i1 %is_higher, $MASK_INT %seg.lanes, $MASK_INT %lanes.0
  %position = select i1 %is_higher, i64 %start, i64 %position.0
  br i1 %is_last, label %row_scanned, label %segment

row_scanned:
  %left_over = sub i64 %left.n, %above.n
  %one = icmp eq i64 %left_over, 1
  %ordered = fcmp ord $T %limit, %limit
  %alone = and i1 %one, %ordered
  br i1 %alone, label %find_top, label %count_ties, !prof !0

count_ties:
  %equal = call i64 @count_equal(ptr %row, i64 %width, $T %limit)
  %has_nan = icmp slt i64 %equal, 0
  br i1 %has_nan, label %bad_row, label %find_top

find_top:                                  ; among the columns of the lane
  %same = phi i64 [1, %row_scanned], [%equal, %count_ties]
  %lane.i = call $MASK_INT @llvm.cttz.$MASK_INT($MASK_INT %lanes, i1 false)
  %lane = zext $MASK_INT %lane.i to i64
  %k.first = add i64 %position, %lane
  %k.end = add i64 %position, $SEGMENT
  %k.stop = call i64 @llvm.smin.i64(i64 %k.end, i64 %width)
  br label %lane_step

lane_step:
  %k = phi i64 [%k.first, %find_top], [%k.1, %lane_step]
  %index = phi i64 [0, %find_top], [%index.1, %lane_step]
  %hits = phi i64 [0, %find_top], [%hits.1, %lane_step]
  %k.at = getelementptr $T, ptr %row, i64 %k
  %k.score = load $T, ptr %k.at
  %k.is_top = fcmp oeq $T %k.score, %top
  %index.1 = select i1 %k.is_top, i64 %k, i64 %index
  %hit = zext i1 %k.is_top to i64
  %hits.1 = add i64 %hits, %hit
  %k.1 = add i64 %k, $N
  %k.more = icmp slt i64 %k.1, %k.stop
  br i1 %k.more, label %lane_step, label %lane_done

lane_done:
  %once = icmp eq i64 %hits.1, 1
  %lanes.less = sub $MASK_INT %lanes, 1
  %lanes.other = and $MASK_INT %lanes, %lanes.less
  %one_lane = icmp eq $MASK_INT %lanes.other, 0
  %in_one = and i1 %once, %one_lane
  %unique = select i1 %again, i1 false, i1 %in_one
  br i1 %unique, label %row_done, label %search_top, !prof !0

search_top:
  %packed = call i64 @first_equal(ptr %row, i64 %width, $T %top)
  %first.packed = lshr i64 %packed, 1
  %twice = trunc i64 %packed to i1
  br label %row_done

row_done:
  %chosen = phi i64 [%index.1, %lane_done], [%first.packed, %search_top]
  %is_shared = phi i1 [false, %lane_done], [%twice, %search_top]
  %above.at = getelementptr i64, ptr %above, i64 %i
  store i64 %above.n, ptr %above.at
  %others = sub i64 %same, 1
  %tied.at = getelementptr i64, ptr %tied, i64 %i
  store i64 %others, ptr %tied.at
  %predicted.at = getelementptr i64, ptr %predicted, i64 %i
  store i64 %chosen, ptr %predicted.at
  %shared.at = getelementptr i8, ptr %shared, i64 %i
  %is_shared.8 = zext i1 %is_shared to i8
  store i8 %is_shared.8, ptr %shared.at
  %is_tied = icmp ne i64 %others, 0
  %bin = select i1 %is_tied, i64 %width, i64 %above.n
  %bin.at = getelementptr i64, ptr %histogram, i64 %bin
  %bin.count = load i64, ptr %bin.at
  %bin.count.1 = add i64 %bin.count, 1
  store i64 %bin.count.1, ptr %bin.at
  %i.1 = add i64 %i, 1
  %i.more = icmp slt i64 %i.1, %last
  br i1 %i.more, label %row_start, label %next_chunk

bad_row:
  ret i64 %i

finished:
  ret i64 -1
}

define internal i64 @count($M %flags) alwaysinline {
  %bits = bitcast $M %flags to $MASK_INT
  %ones = call $MASK_INT @llvm.ctpop.$MASK_INT($MASK_INT %bits)
  %result = zext $MASK_INT %ones to i64
  ret i64 %result
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

; Twice the first index of the score, plus 1 if it occurs again.
define internal i64 @first_equal(ptr %row, i64 %width, $T %top) noinline {
entry:
  br label %loop
loop:
  %j = phi i64 [0, %entry], [%j.1, %loop]
  %first = phi i64 [%width, %entry], [%first.1, %loop]
  %last = phi i64 [-1, %entry], [%last.1, %loop]
  %at = getelementptr $T, ptr %row, i64 %j
  %s = load $T, ptr %at
  %is_top = fcmp oeq $T %s, %top
  %first.j = select i1 %is_top, i64 %j, i64 %width
  %last.j = select i1 %is_top, i64 %j, i64 -1
  %first.1 = call i64 @llvm.smin.i64(i64 %first, i64 %first.j)
  %last.1 = call i64 @llvm.smax.i64(i64 %last, i64 %last.j)
  %j.1 = add i64 %j, 1
  %more = icmp slt i64 %j.1, %width
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
declare void @llvm.prefetch.p0(ptr, i32, i32, i32)
declare $MASK_INT @llvm.ctpop.$MASK_INT($MASK_INT)
declare $MASK_INT @llvm.cttz.$MASK_INT($MASK_INT, i1)
declare $V @llvm.masked.load.$VN.p0(ptr, i32, $M, $V)
declare $T @llvm.vector.reduce.fmax.$VN($V)
!0 = !{!"branch_weights", i32 1000, i32 1}
